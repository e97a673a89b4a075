// Stops a thread at a named pause point until the test lets it go on.
#pragma once

#include <cstring>
#include <future>

#include "systems/eris/pause_points.hpp"

namespace numatwin::native {

/// One thread, one point. A thread that runs `gate.run(f)` stops when it first comes by.
class PauseGate {
  public:
    explicit PauseGate(const char* point) : point_(point) { pause_hook.store(&PauseGate::pass); }
    ~PauseGate() { pause_hook.store(nullptr); }

    template <class Work>
    auto run(Work&& work) {
        armed = this;
        auto result = work();
        armed = nullptr;
        return result;
    }
    void await_stopped() { stopped_.get_future().wait(); }
    void open() { open_.set_value(); }

  private:
    static void pass(const char* name) {
        if (armed != nullptr && std::strcmp(armed->point_, name) == 0) {
            PauseGate* gate = armed;
            armed = nullptr;
            gate->stopped_.set_value();
            gate->open_.get_future().wait();
        }
    }

    static inline thread_local PauseGate* armed = nullptr;
    const char* point_;
    std::promise<void> stopped_, open_;
};

}  // namespace numatwin::native
