// Waiting for another thread without sleeping: first on the core, then giving the core away.
#pragma once

#include <thread>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace numatwin::native {

inline void relax_core() {
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
}

/// Where there may be more threads than cores, who is waited for may need this core.
class Spinning {
  public:
    void wait() {
        if (turns_ < turns_on_core) {
            ++turns_;
            relax_core();
        } else {
            std::this_thread::yield();
        }
    }

  private:
    static constexpr int turns_on_core = 64;
    int turns_ = 0;
};

}  // namespace numatwin::native
