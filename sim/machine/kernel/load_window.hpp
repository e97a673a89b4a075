// How busy a server was of late: the load of the last window, by which latencies rise.
#pragma once

#include <algorithm>

#include "kernel/event_queue.hpp"

namespace numatwin {

class LoadWindow {
  public:
    static constexpr Time window = 100'000'000;  // 100 µs

    void add(Time work) { work_ += work; }
    // Forgets the work of the window under way, not when it began.
    void forget() { work_ = 0; }

    // Whether the window under way is over. If so, `load` is the part of it that the work took
    // (at most 1), and the next one begins.
    bool close(Time now, double& load) {
        const Time elapsed = now - start_;
        if (elapsed < window) return false;
        load = std::min(1.0, static_cast<double>(work_) / static_cast<double>(elapsed));
        start_ = now;
        work_ = 0;
        return true;
    }

  private:
    Time start_ = 0, work_ = 0;
};

}  // namespace numatwin
