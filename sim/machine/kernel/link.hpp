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
        data_work_ += work;
        return wire_.serve(now, rounded_ps(static_cast<double>(work) * stretch_));
    }
    Time message(Time now, Time work) {
        look(now);
        window_work_ += work;
        return control_.serve(now, work);
    }

    // -- counted since start_counting()
    Time arrived() const { return data_work_ + control_.taken(); }  // work that arrived
    // Work of both kinds that was done by `now`: data at the stretch that they had in the mean.
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

// Mean wait of a line for those before it on a link that carries one after the other, M/D/1
// (Pollaczek-Khinchine): s * load / (2 * (1 - load)), where a line takes s. load < 1.
inline double line_wait_ps(double line_ps, double load) {
    return line_ps * load / (2.0 * (1.0 - load));
}

}  // namespace numatwin
