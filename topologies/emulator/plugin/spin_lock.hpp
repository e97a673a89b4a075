// A lock for a few dozen instructions; who waits long gives up its processor.
#pragma once

#include <atomic>
#include <thread>

namespace numatwin {

class alignas(64) SpinLock {
  public:
    void lock() {
        for (unsigned tries = 0; held_.exchange(true, std::memory_order_acquire); ++tries)
            while (held_.load(std::memory_order_relaxed))
                // The holder may wait for a processor: the guest has more than the host.
                if (++tries % 128 == 0) std::this_thread::yield();
    }
    void unlock() { held_.store(false, std::memory_order_release); }

  private:
    std::atomic<bool> held_{false};
};

}  // namespace numatwin
