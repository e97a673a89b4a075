// Additions that wait for one another: a delay, and a clock made of cycles; and some that do not.
#pragma once

#include <cstddef>
#include <cstdint>

namespace numatwin::native {

/// One addition, opaque to the compiler, which would else add many at once. `one` is in a register:
/// recent cores (Intel's since Golden Cove) add constants as they rename registers, six a cycle.
inline void add(std::uint64_t& sum, std::uint64_t one) {
#if defined(__x86_64__)
    asm volatile("add %1, %0" : "+r"(sum) : "r"(one) : "cc");
#elif defined(__aarch64__)
    asm volatile("add %0, %0, %1" : "+r"(sum) : "r"(one));
#else
    sum += one;
    asm volatile("" : "+r"(sum));
#endif
}

/// `times` additions to one register, eight in each turn of the loop, rounded up to whole turns.
inline void add_in_a_row(std::size_t times) {
    std::uint64_t sum = 0, one = 1;
    asm volatile("" : "+r"(one));
    for (std::size_t turn = 0; turn < (times + 7) / 8; ++turn) {
        for (int k = 0; k < 8; ++k) add(sum, one);
    }
}

/// Registers of `add_in_line`: few, so that none has to lie in memory.
struct Sums {
    std::uint64_t a = 0, b = 0, c = 0, d = 0, one = 1;
};

/// Additions to four registers, without a loop, whose own instructions would count with them.
template <std::size_t kTimes>
inline __attribute__((always_inline)) void add_in_line(Sums& sums) {
#pragma GCC unroll 16
    for (std::size_t k = 0; k < kTimes / 4; ++k) {
        add(sums.a, sums.one), add(sums.b, sums.one), add(sums.c, sums.one), add(sums.d, sums.one);
    }
}

}  // namespace numatwin::native
