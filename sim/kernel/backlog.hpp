// A first-come-first-served server without an event of its own.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernel/event_queue.hpp"

namespace numatwin {

// Nearest picosecond of a time that is not negative.
inline Time rounded_ps(double time) {
    return static_cast<Time>(time + 0.5);
}

// Users come with small pieces of work, each of which waits for those before it: over many pieces
// all get equal shares, and nobody gets more than the server can do.
class Backlog {
  public:
    // When `work` that comes at `now` is done.
    Time serve(Time now, Time work) {
        free_ = std::max(free_, now) + work;
        taken_ += work;
        return free_;
    }
    Time free() const { return free_; }
    // Work taken on since the count began.
    Time taken() const { return taken_; }
    // Work taken on since the count began that was done by `now`.
    Time done(Time now) const { return taken_ - std::max<Time>(free_ - now, 0) + before_; }
    void start_counting(Time now) {
        taken_ = 0;
        before_ = std::max<Time>(free_ - now, 0);
    }

  private:
    Time free_ = 0;
    Time taken_ = 0;
    Time before_ = 0;  // left of what came before the count began
};

}  // namespace numatwin
