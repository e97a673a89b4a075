// The time of day as a thread reads it in a few nanoseconds: the processor's own counter.
//
// x86-64: the time stamp counter, which on processors of this century's second decade runs at one
// rate on all cores (constant_tsc, nonstop_tsc). aarch64: the generic timer. Reads are not ordered
// against other instructions: off by some tens of instructions, far below what is timed.
#pragma once

#include <time.h>

#include <chrono>
#include <cstdint>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace numatwin::native {

using Ticks = std::uint64_t;

inline Ticks ticks() noexcept {
#if defined(__x86_64__)
    return __rdtsc();
#elif defined(__aarch64__)
    Ticks now;
    asm volatile("mrs %0, cntvct_el0" : "=r"(now));
    return now;
#else
    return static_cast<Ticks>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

/// Nanoseconds of the system's clock that never goes back.
inline std::int64_t steady_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/// Nanoseconds on a processor: of this thread, or of whom the clock is.
inline std::int64_t cpu_ns(clockid_t clock = CLOCK_THREAD_CPUTIME_ID) {
    timespec found{};
    ::clock_gettime(clock, &found);
    return std::int64_t{found.tv_sec} * 1'000'000'000 + found.tv_nsec;
}

/// Picoseconds of a tick: against the system's clock, over some milliseconds, once.
double ps_per_tick();

}  // namespace numatwin::native
