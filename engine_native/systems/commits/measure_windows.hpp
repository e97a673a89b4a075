// Windows of time in which a step is repeated, and memory as processes share it: for measurements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "fabric/shared_board.hpp"
#include "memory/clock.hpp"
#include "systems/commits/measure_steps.hpp"

namespace numatwin::native {

// For what another process or end owes, which comes within milliseconds, or on a busy host within
// some turns of a processor; or never, as it ended, was stopped or lost a message.
class Patience {
  public:
    explicit Patience(const char* whom) : whom_(whom), until_ns_(steady_ns() + limit_ns) {}
    // Throws std::runtime_error once that has taken too long.
    void check() const {
        if (steady_ns() > until_ns_)
            throw std::runtime_error(std::string(whom_) + " has not answered for 5 s");
    }

  private:
    static constexpr std::int64_t limit_ns = 5'000'000'000;
    const char* whom_;
    std::int64_t until_ns_;
};

// Work of `times` such steps.
template <class Step>
auto repeated(int times, Step step) {
    return [times, step = std::move(step)] {
        for (int k = 0; k < times; ++k) step();
        return static_cast<double>(times);
    };
}

// Means per step of windows in which `work` does so many steps and says how many.
inline std::vector<double> means_ns(const StepPlan& plan, const std::function<double()>& work) {
    std::vector<double> found;
    for (std::uint32_t window = 0; window <= plan.windows; ++window) {
        const std::int64_t began = steady_ns();
        double steps = 0;
        std::int64_t took = 0;
        do {
            steps += work();
            took = steady_ns() - began;
        } while (took < plan.window_ns);
        if (window > 0) found.push_back(static_cast<double>(took) / steps);  // the first warms up
    }
    return found;
}

// The same of several, a window of each in turn.
inline std::vector<std::vector<double>> means_in_turn_ns(
    const StepPlan& plan, const std::vector<std::function<double()>>& works) {
    std::vector<std::vector<double>> found(works.size());
    for (std::uint32_t window = 0; window <= plan.windows; ++window)
        for (std::size_t k = 0; k < works.size(); ++k) {
            const std::vector<double> one = means_ns({1, plan.window_ns}, works[k]);
            if (window > 0) found[k].insert(found[k].end(), one.begin(), one.end());
        }
    return found;
}

// What a client goes through with each transaction: pages of its own.
class OwnPages {
  public:
    OwnPages() : words_(bytes / sizeof(std::uint64_t), 1) {}
    // Never inlined: what it takes alone is taken off from what it takes before a step.
    [[gnu::noinline]] void touch() {
        for (std::size_t at = 0; at < words_.size(); at += line / sizeof(std::uint64_t))
            words_[at] = words_[at] * 3 + 1;
    }

  private:
    static constexpr std::size_t bytes = 32 << 10, line = 64;
    std::vector<std::uint64_t> words_;
};

// With all of its pages.
class PopulatedMemory : public SharedMemory {
  public:
    explicit PopulatedMemory(std::size_t bytes)
        : SharedMemory(bytes, "memory to measure on", -1, MAP_POPULATE) {}
};

}  // namespace numatwin::native
