// The parts of a machine that workers of either ERIS model use.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernel/huge_pages.hpp"
#include "kernel/simulation.hpp"
#include "kernel/statistics.hpp"
#include "machine/kernel/core.hpp"
#include "machine/kernel/interconnect.hpp"
#include "machine/kernel/memory_controller.hpp"
#include "systems/eris/kernel/setup.hpp"

namespace numatwin {

class ErisParts {
  public:
    // Throws std::logic_error where a controller or link did more than time allows.
    void check() const {
        const Time passed = clock.now() - since_;
        for (std::size_t k = 0; k < memory_.size(); ++k)
            if (memory_[k].done(clock.now()) > passed)
                throw std::logic_error("memory " + std::to_string(k) +
                                       " did more than time allows");
        for (std::size_t k = 0; k < links_.links(); ++k)
            if (links_.done(k, clock.now()) > passed)
                throw std::logic_error("link " + std::to_string(k) + " did more than time allows");
    }

    Simulation clock;
    std::vector<Histogram> latency;  // [O]

    const LargeVector<Core>& cores() const { return core_; }
    const std::vector<MemoryController>& memory() const { return memory_; }
    const Interconnect& links() const { return links_; }
    Time counting_since() const { return since_; }

  protected:
    ErisParts(std::size_t operations, std::uint64_t seed, std::uint64_t replication)
        : clock(seed, replication), latency(operations) {}

    // Each worker is a thread of its core; positions were checked.
    void add_cores(const Positions& core_of) {
        core_.resize(static_cast<std::size_t>(std::ranges::max(core_of) + 1));
        for (const auto core : core_of) core_[static_cast<std::size_t>(core)].add_thread();
    }
    void start_counting() {
        since_ = clock.now();
        for (auto& of_operation : latency) of_operation.reset();
        for (auto& core : core_) core.start_counting(since_);
        for (auto& controller : memory_) controller.start_counting(since_);
        links_.start_counting(since_);
    }

    LargeVector<Core> core_;
    std::vector<MemoryController> memory_;
    LoadCurve curve_;
    Interconnect links_;
    MemoryPaths paths_;
    Time since_ = 0;
};

}  // namespace numatwin
