// A server that works off what it is given, first come first served, without an event of its own.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernel/event_queue.hpp"

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
// their own and go first, line by line between data: they do not wait for data, and data get the
// part of the wire that control messages left free in the last window, at least `data_part_min`
// (as in sim/planes/rate_solver.py). Those of a whole batch are handed over at once, but are not in
// one piece in data's way.
class Link {
  public:
    static constexpr Time window = 100'000'000;  // 100 µs
    static constexpr double data_part_min = 0.05;

    Time data(Time now, Time work) {
        look(now);
        data_work_ += work;
        return wire_.serve(now, rounded_ps(static_cast<double>(work) * stretch_));
    }
    Time message(Time now, Time work) {
        look(now);
        window_work_ += work;
        return control_.serve(now, work);
    }
    Time taken() const { return data_work_ + control_.taken(); }
    // Work of both kinds since the count began that was done by `now`: data at the stretch that
    // they had in the mean.
    Time done(Time now) const {
        const double mean =
            data_work_ > 0 ? static_cast<double>(wire_.taken()) / static_cast<double>(data_work_)
                           : stretch_;
        const Time data = rounded_ps(static_cast<double>(wire_.done(now)) / mean);
        return std::min(data + control_.done(now), now - since_);
    }
    void start_counting(Time now) {
        wire_.start_counting(now);
        control_.start_counting(now);
        data_work_ = 0;
        since_ = now;
    }

  private:
    void look(Time now) {
        const Time elapsed = now - window_start_;
        if (elapsed < window) return;
        const double load = static_cast<double>(window_work_) / static_cast<double>(elapsed);
        stretch_ = 1.0 / std::max(1.0 - load, data_part_min);
        window_start_ = now;
        window_work_ = 0;
    }

    Backlog wire_, control_;
    Time data_work_ = 0, since_ = 0, window_start_ = 0, window_work_ = 0;
    double stretch_ = 1;
};

}  // namespace numatwin
