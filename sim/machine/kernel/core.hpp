// A core: its hardware threads take turns on its pipeline and share its miss slots.
#pragma once

#include <algorithm>

#include "kernel/fifo_server.hpp"
#include "machine/kernel/overlap.hpp"

namespace numatwin {

// What a thread does on its core between two points: instructions, and cache misses that hold miss
// slots. Times in picoseconds; `held` is the time that the misses would take one thread that has
// all of the core's slots.
struct CoreWork {
    double instructions = 0;  // overlap with the misses
    double held = 0;
    double separate = 0;  // instructions that overlap with nothing
    double stall = 0;     // of a stream: see overlapped()

    // On a core that takes so many times as long.
    CoreWork times(double pace) const {
        return {instructions * pace, held * pace, separate * pace, stall};
    }
};

// When a phase ends: were the thread alone (though with its share of the slots), and as it is.
struct PhaseEnd {
    Time alone, done;
};

// Each of the core's threads has an equal share of its miss slots. Their instructions are served in
// order of arrival: over many phases each thread gets an equal share of the pipeline.
class alignas(64) Core {
  public:
    void add_thread() { threads_ += 1; }
    double threads() const { return threads_; }

    // A thread of this core begins a phase: its instructions and misses overlap.
    PhaseEnd begin(Time now, const CoreWork& work) {
        const Time alone =
            now + rounded_ps(work.separate +
                             overlapped(work.instructions, work.held * threads_, work.stall));
        Time done = alone;
        if (threads_ > 1)
            done =
                std::max(done, server_.serve(now, rounded_ps(work.separate + work.instructions)));
        held_ += work.held;
        return {alone, done};
    }

    // So much of what `held` counts goes elsewhere, with a thread that leaves; comes, if below 0.
    void withdraw(double held) { held_ -= held; }

    // -- counted since start_counting()
    // Slot time of misses, of phases under way to their ends (ThreadTime::held_left).
    double held() const { return held_; }
    // Time that its pipeline worked; of a core with one thread the thread tells.
    Time executed(Time now) const { return server_.done(now); }
    void start_counting(Time now) {
        server_.start_counting(now);
        held_ = 0;
    }

  private:
    Backlog server_;
    double threads_ = 0;
    double held_ = 0;
};

// How long a thread is kept waiting by all that it shares: memory, links, its core; and what is
// left of its phase.
class ThreadTime {
  public:
    // A phase begins, and would be over at `alone` with nobody in its way. Its misses hold slots
    // for `held`.
    void begin(Time now, Time alone, double held) {
        held_up_ += over_ - alone_;
        begun_ = now;
        alone_ = alone;
        held_ = held;
    }
    // It will be over at `done`.
    void end(Time done) { over_ = done; }

    // The part of its phase that is ahead, and of the slot time of its misses: these come evenly.
    double left(Time now) const {
        return over_ > now ? static_cast<double>(over_ - now) / static_cast<double>(over_ - begun_)
                           : 0.0;
    }
    double held_left(Time now) const { return left(now) * held_; }

    // Time that it was kept waiting up to now, since start_counting().
    Time held_up(Time now) const {
        return held_up_ + std::max<Time>(std::min(now, over_) - alone_, 0);
    }
    void start_counting(Time now) {
        held_up_ = 0;
        held_up_ = -held_up(now);
    }

  private:
    Time begun_ = 0, alone_ = 0, over_ = 0;  // the phase under way, and its ends
    double held_ = 0;
    Time held_up_ = 0;  // by phases before it
};

}  // namespace numatwin
