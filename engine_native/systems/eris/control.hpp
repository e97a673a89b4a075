// What the engine tells its workers while they run: the phase, balancing cycles, when to stop.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "systems/eris/choice.hpp"
#include "systems/eris/cycle.hpp"
#include "systems/eris/setup.hpp"

namespace numatwin::native {

/// A phase as workers draw from it. Never changes.
struct ClientPhase {
    explicit ClientPhase(const PhaseSetup& setup) : keys(setup.keys) {
        if (!setup.shares.empty()) operation = Choice(setup.shares);
        for (std::size_t o = 0; o < setup.shares.size(); ++o)
            if (setup.shares[o] > 0) asked.push_back(static_cast<std::uint32_t>(o));
    }

    Choice operation;
    std::vector<std::uint32_t> asked;  // operations with a share
    std::vector<std::shared_ptr<const KeyDraws>> keys;
};

class Control {
  public:
    /// Grows with each change of what the mutex guards. Changes are made under the mutex; a worker
    /// that sees another version than its own reads them under it.
    std::uint32_t version() const { return version_.load(std::memory_order_acquire); }
    /// While holding `mutex`.
    void publish() { version_.fetch_add(1, std::memory_order_release); }

    mutable std::mutex mutex;
    std::shared_ptr<const ClientPhase> phase;
    /// All cycles since the start; those of one object one after the other.
    std::vector<std::shared_ptr<Cycle>> cycles;

    /// Clients make commands. Relaxed: sooner or later will do.
    bool making() const { return making_.load(std::memory_order_relaxed); }
    void set_making(bool on) { making_.store(on, std::memory_order_relaxed); }

    /// All leave as soon as they can.
    bool halted() const { return halted_.load(std::memory_order_relaxed); }
    void halt() { halted_.store(true, std::memory_order_relaxed); }
    /// A worker cannot go on: all halt; the first exception is kept.
    void fail(std::exception_ptr why) noexcept {
        {
            const std::scoped_lock lock(failure_mutex_);
            if (!failure_) failure_ = std::move(why);
        }
        halt();
    }
    /// Throws what a worker failed with.
    void check() const {
        const std::scoped_lock lock(failure_mutex_);
        if (failure_) std::rethrow_exception(failure_);
    }

  private:
    alignas(128) std::atomic<std::uint32_t> version_{1};
    alignas(128) std::atomic<bool> halted_{false};
    std::atomic<bool> making_{false};
    mutable std::mutex failure_mutex_;
    std::exception_ptr failure_;
};

}  // namespace numatwin::native
