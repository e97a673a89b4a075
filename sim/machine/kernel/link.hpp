// A directed link between two nodes or hubs: a channel for data and one for control messages.
#pragma once

#include <algorithm>

#include "kernel/backlog.hpp"

namespace numatwin {

// Control messages (requests, snoops, answers without data) have a channel of their own and go
// first, line by line between data: they do not wait for data, and data get the part of the wire
// that control messages left free in the last window, at least `data_part_min` (as in
// sim/planes/rate_solver.py). Those of a whole batch are handed over at once, but do not block data
// in one piece.
class Link {
  public:
    static constexpr Time window = 100'000'000;  // 100 µs
    static constexpr double data_part_min = 0.05;

    // Data that take the wire so long arrive. Returns when they are across.
    Time data(Time now, Time work) {
        look(now);
        both_.serve(now, work);
        return data_free_ =
                   std::max(data_free_, now) + rounded_ps(static_cast<double>(work) * stretch_);
    }
    Time message(Time now, Time work) {
        look(now);
        window_work_ += work;
        both_.serve(now, work);
        return control_free_ = std::max(control_free_, now) + work;
    }

    // -- counted since start_counting()
    Time arrived() const { return both_.taken(); }  // work that arrived
    // How long the wire was busy by `now`. Both kinds share it, and it rests only when nothing of
    // either is left.
    Time done(Time now) const { return both_.done(now); }
    void start_counting(Time now) { both_.start_counting(now); }

  private:
    void look(Time now) {
        const Time elapsed = now - window_start_;
        if (elapsed < window) return;
        const double load = static_cast<double>(window_work_) / static_cast<double>(elapsed);
        stretch_ = 1.0 / std::max(1.0 - load, data_part_min);
        window_start_ = now;
        window_work_ = 0;
    }

    Backlog both_;
    Time data_free_ = 0, control_free_ = 0, window_start_ = 0, window_work_ = 0;
    double stretch_ = 1;
};

// Mean wait of a line for those before it on a link that carries one after the other, M/D/1
// (Pollaczek-Khinchine): s * load / (2 * (1 - load)), where a line takes s. load < 1.
inline double line_wait_ps(double line_ps, double load) {
    return line_ps * load / (2.0 * (1.0 - load));
}

}  // namespace numatwin
