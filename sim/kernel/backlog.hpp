// A server that works off what it is given, first come first served, without an event of its own.
#pragma once

#include <algorithm>
#include <cstdint>

#include "event_queue.hpp"

namespace numatwin {

// Nearest picosecond of a time that is not negative.
inline Time rounded_ps(double time) {
    return static_cast<Time>(time + 0.5);
}

// A memory controller, a link or a core whose threads take turns. Users come with small pieces of
// work (a batch, a message), each of which waits for those before it: over many pieces all get
// equal shares, and nobody gets more than the server can do.
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

// A directed link. Control messages (requests, snoops, answers without data) have a channel of
// their own and go first: data give way to them, they do not wait for data.
class Link {
  public:
    Time data(Time now, Time work) { return wire_.serve(now, work); }
    Time message(Time now, Time work) {
        wire_.serve(now, work);
        return control_.serve(now, work);
    }
    Time taken() const { return wire_.taken(); }
    Time done(Time now) const { return wire_.done(now); }
    void start_counting(Time now) {
        wire_.start_counting(now);
        control_.start_counting(now);
    }

  private:
    Backlog wire_, control_;
};

}  // namespace numatwin
