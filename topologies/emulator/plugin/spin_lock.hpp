// A lock for a few dozen instructions; who waits long gives up its processor.
#pragma once

#include <atomic>
#include <thread>

namespace numatwin {

// One who waits: the holder may itself wait for a processor, as the guest has more than the host.
class Waiting {
  public:
    void once_more() {
        if (++tries_ % 128 == 0) std::this_thread::yield();
    }

  private:
    unsigned tries_ = 0;
};

class alignas(64) SpinLock {
  public:
    void lock() {
        Waiting waiting;
        while (held_.exchange(true, std::memory_order_acquire))
            while (held_.load(std::memory_order_relaxed)) waiting.once_more();
    }
    void unlock() { held_.store(false, std::memory_order_release); }

  private:
    std::atomic<bool> held_{false};
};

}  // namespace numatwin
