// Two processors that are now near each other, now far apart: a hypervisor moves them.
#pragma once

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "backlog.hpp"
#include "event_queue.hpp"
#include "philox.hpp"

namespace numatwin {

// commits/apart.py. Never apart where `apart_ps` is 0.
struct ApartSetup {
    double near_ps = 0, apart_ps = 0;   // how long at a time, on average
    std::vector<Time> costs;            // of messages meanwhile, in the order of the others
    std::vector<std::uint64_t> stream;  // two words
};

class Apart {
  public:
    explicit Apart(const ApartSetup& setup) : near_ps_(setup.near_ps), apart_ps_(setup.apart_ps) {
        if (setup.apart_ps <= 0) return;
        if (setup.near_ps <= 0 || setup.stream.size() != 2)
            throw std::invalid_argument("apart: expected times above 0 and a stream");
        stream_ = Stream(setup.stream[0], setup.stream[1]);
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

    double near_ps_, apart_ps_;
    Stream stream_{0, 0};
    bool apart_ = false;
    Time until_ = std::numeric_limits<Time>::max();
};

}  // namespace numatwin
