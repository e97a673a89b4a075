// Additions that wait for one another: a delay, and a clock made of cycles; and some that do not,
// which take all of a core.
#pragma once

#include <cstddef>
#include <cstdint>

namespace numatwin::native {

/// One addition, opaque to the compiler, which would else add many at once.
inline void add_one(std::uint64_t& sum) {
#if defined(__x86_64__)
    asm volatile("add $1, %0" : "+r"(sum) : : "cc");
#elif defined(__aarch64__)
    asm volatile("add %0, %0, #1" : "+r"(sum));
#else
    ++sum;
    asm volatile("" : "+r"(sum));
#endif
}

/// `times` additions to one register, eight in each turn of the loop, rounded up to whole turns.
inline void add_in_a_row(std::size_t times) {
    std::uint64_t sum = 0;
    for (std::size_t turn = 0; turn < (times + 7) / 8; ++turn) {
        for (int k = 0; k < 8; ++k) add_one(sum);
    }
}

/// `times` additions to eight registers in turn, rounded up to whole turns: as many at once as the
/// core has adders for, so that whoever shares the core takes of them.
inline void add_side_by_side(std::size_t times) {
    std::uint64_t a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0;
    for (std::size_t turn = 0; turn < (times + 7) / 8; ++turn) {
        add_one(a), add_one(b), add_one(c), add_one(d);
        add_one(e), add_one(f), add_one(g), add_one(h);
    }
}

}  // namespace numatwin::native
