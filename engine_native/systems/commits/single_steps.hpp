// Times of single steps, as factors on what such a step mostly takes: for measurements.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "systems/commits/measure_steps.hpp"

namespace numatwin::native {

// The mean of one or more times without the slowest twentieth, and of few without the slowest: one
// of them may take longer than all others together. Clocks that tick in tens of nanoseconds do it
// no harm, as they would a median.
double usual_mean(std::vector<double> all);

// Each over what steps mostly took in its window: so what drifts on the host from one window to the
// next is no part of it.
class SingleSteps {
  public:
    // A step that takes `turn_ns` longer than usual, or more, meets another one's turn on the CPU.
    // It is left out: the models draw turns by the clock, not by the step. Without it none is, as
    // of a step that sleeps: there a turn looks like waking late.
    explicit SingleSteps(double turn_ns = std::numeric_limits<double>::infinity())
        : turn_ns_(turn_ns) {}

    void add(double ns) { window_.push_back(ns > 0 ? ns : 0.0); }
    void end_window();
    void drop_window() { window_.clear(); }
    // Another step's, beside these.
    void add(const SingleSteps& other) {
        factors_.insert(factors_.end(), other.factors_.begin(), other.factors_.end());
    }

    // Of the windows that have ended. Throws std::runtime_error where no step took any time.
    StepSpread spread(std::string name, std::uint64_t bytes, std::uint64_t region) const;

  private:
    double turn_ns_;
    std::vector<double> window_, factors_;
};

}  // namespace numatwin::native
