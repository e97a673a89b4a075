// Named points at which a test can stop a thread, so that a race becomes a deterministic test.
//
// With NUMATWIN_PAUSE_POINTS, `NUMATWIN_PAUSE_AT(name)` calls what the test has set; without, it is
// nothing.
#pragma once

#include <atomic>

namespace numatwin::native {

#ifdef NUMATWIN_PAUSE_POINTS
/// Called with the point's name by whichever thread comes by. Set while no other thread runs.
using PauseHook = void (*)(const char* name);
inline std::atomic<PauseHook> pause_hook{nullptr};

inline void pause_at(const char* name) {
    if (const PauseHook hook = pause_hook.load(std::memory_order_relaxed)) {
        hook(name);
    }
}
#define NUMATWIN_PAUSE_AT(name) ::numatwin::native::pause_at(name)
#else
#define NUMATWIN_PAUSE_AT(name) static_cast<void>(0)
#endif

}  // namespace numatwin::native
