// Additions that wait for one another: a delay, and a clock made of cycles.
#pragma once

#include <cstddef>
#include <cstdint>

namespace numatwin::native {

/// `times` additions to one register, eight in each turn of the loop, rounded up to whole turns.
inline void add_in_a_row(std::size_t times) {
    std::uint64_t sum = 0;
    for (std::size_t turn = 0; turn < (times + 7) / 8; ++turn) {
        for (int k = 0; k < 8; ++k) {
            // Opaque to the compiler, which would else add once.
#if defined(__x86_64__)
            asm volatile("add $1, %0" : "+r"(sum) : : "cc");
#elif defined(__aarch64__)
            asm volatile("add %0, %0, #1" : "+r"(sum));
#else
            ++sum;
            asm volatile("" : "+r"(sum));
#endif
        }
    }
}

}  // namespace numatwin::native
