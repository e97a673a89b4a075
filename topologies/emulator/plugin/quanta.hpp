// Keeps the guest's processors in step, however the host schedules their threads.
//
// Each executes a quantum of instructions, then waits until all that are not idle have: of two busy
// ones, neither is ever further ahead. (Parallel simulators synchronize so: Reinhardt et al., "The
// Wisconsin Wind Tunnel: Virtual Prototyping of Parallel Computers", SIGMETRICS 1993.)
//
// QEMU itself may wait until all processors stop between two blocks. So nobody waits here for
// longer than `patience`: then it executes a little, and waits again.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

namespace numatwin {

class Quanta {
  public:
    using Clock = std::chrono::steady_clock;

    Quanta(std::size_t processors, std::int64_t instructions,
           Clock::duration patience = std::chrono::milliseconds(5))
        : instructions_(instructions), patience_(patience), cpus_(processors) {}

    // Of a processor that is about to execute so many; called by its own thread.
    void executed(unsigned cpu, std::int64_t instructions) {
        Cpu& own = cpus_[cpu];
        own.left -= instructions;
        if (own.left < 0) end_quantum(own);
    }

    // A processor has nothing to do: nobody waits for it until it goes on.
    void idle(unsigned cpu) {
        const std::lock_guard locked(lock_);
        Cpu& own = cpus_[cpu];
        if (!own.busy) return;
        own.busy = false;
        --busy_;
        if (waiting_ == busy_) next();
    }
    // It goes on where all are: with what it left of this quantum, or with a new one.
    void resume(unsigned cpu) {
        const std::lock_guard locked(lock_);
        join(cpus_[cpu]);
    }

  private:
    static constexpr std::int64_t A_LITTLE = 100;

    struct alignas(64) Cpu {
        std::int64_t left = 0;
        std::uint64_t quantum = 0;
        bool busy = false;
    };

    void join(Cpu& own) {
        if (own.busy) return;
        own.busy = true;
        ++busy_;
        begin(own);
    }
    void begin(Cpu& own) const {
        if (own.quantum == quantum_) return;
        own.quantum = quantum_;
        own.left = std::min<std::int64_t>(own.left, 0) + instructions_;  // less what was too much
    }
    void next() {
        ++quantum_;
        waiting_ = 0;
        ended_.notify_all();
    }

    [[gnu::noinline]] void end_quantum(Cpu& own) {
        std::unique_lock locked(lock_);
        join(own);
        if (own.left >= 0) return;
        if (++waiting_ == busy_) {
            next();
        } else if (!ended_.wait_for(locked, patience_, [&] { return own.quantum != quantum_; })) {
            --waiting_;
            own.left = A_LITTLE;
            return;
        }
        begin(own);
    }

    const std::int64_t instructions_;
    const Clock::duration patience_;
    std::mutex lock_;
    std::condition_variable ended_;
    std::uint64_t quantum_ = 1;  // the number of this one
    std::size_t busy_ = 0, waiting_ = 0;
    std::vector<Cpu> cpus_;
};

}  // namespace numatwin
