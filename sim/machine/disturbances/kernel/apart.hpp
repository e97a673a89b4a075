// Two processors that are now near each other, now far apart: a hypervisor moves them.
#pragma once

#include <limits>
#include <stdexcept>

#include "kernel/backlog.hpp"
#include "kernel/event_queue.hpp"
#include "kernel/philox.hpp"

namespace numatwin {

class Apart {
  public:
    Apart() = default;  // never
    // How long they are near and apart at a time, on average.
    Apart(double near_ps, double apart_ps, const Stream& stream)
        : near_ps_(near_ps), apart_ps_(apart_ps), stream_(stream) {
        if (!(near_ps > 0 && apart_ps > 0))
            throw std::invalid_argument("apart: expected times above 0");
        apart_ = stream_.uniform() * (near_ps_ + apart_ps_) < apart_ps_;
        until_ = stay();
    }

    // Whether they are just then; asked as time goes on.
    bool at(Time now) {
        while (until_ <= now) {
            apart_ = !apart_;
            until_ += stay();
        }
        return apart_;
    }

  private:
    Time stay() { return rounded_ps(stream_.exponential(apart_ ? apart_ps_ : near_ps_)); }

    double near_ps_ = 0, apart_ps_ = 0;
    Stream stream_{0, 0};
    bool apart_ = false;
    Time until_ = std::numeric_limits<Time>::max();
};

}  // namespace numatwin
