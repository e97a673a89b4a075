// Numbers compared some at a time, in vectors of 16 bytes, as GCC and Clang have them for any
// processor. Other threads may change the numbers meanwhile: what is found is a position, at least.
#pragma once

#include <cstddef>
#include <cstdint>

namespace numatwin::lanes {

using Words = std::uint32_t __attribute__((vector_size(16), may_alias));
using Ages = std::int16_t __attribute__((vector_size(16), may_alias));
constexpr std::size_t BYTES = 16, WORDS = 4, AGES = 8;

// Each number is loaded whole, as x86-64 and Arm load those of a vector that is aligned; the thread
// sanitizer does not know that.
template <typename Number, typename Vector>
Vector loaded(const Vector* at) {
#ifdef __SANITIZE_THREAD__
    Vector made{};
    for (std::size_t n = 0; n < sizeof(Vector) / sizeof(Number); ++n)
        made[n] = __atomic_load_n(reinterpret_cast<const Number*>(at) + n, __ATOMIC_RELAXED);
    return made;
#else
    return *at;
#endif
}

inline Ages lesser(Ages a, Ages b) {
    return a < b ? a : b;
}

// The least of eight.
inline std::int16_t least(Ages of) {
    of = lesser(of, __builtin_shuffle(of, Ages{4, 5, 6, 7, 0, 1, 2, 3}));
    of = lesser(of, __builtin_shuffle(of, Ages{2, 3, 0, 1, 6, 7, 4, 5}));
    return lesser(of, __builtin_shuffle(of, Ages{1, 0, 3, 2, 5, 4, 7, 6}))[0];
}

// One more than the position of `word`, without the bits of `ignored`; 0 where it is not. Of a word
// that moves meanwhile, any position.
inline std::uint32_t position(const Words* at, std::size_t vectors, std::uint32_t word,
                              std::uint32_t ignored) {
    Words found{}, here{1, 2, 3, 4};
    for (const Words* end = at + vectors; at != end; ++at, here += WORDS)
        found |= (Words)((loaded<std::uint32_t>(at) & ~ignored) == word) & here;
    const std::uint32_t one = found[0] | found[1] | found[2] | found[3];
    return one <= vectors * WORDS ? one : 0;
}

// The first position of the least; 0 where it was changed meanwhile.
inline std::size_t first_least(const Ages* at, std::size_t vectors) {
    constexpr std::int16_t NOWHERE = 0x7fff;
    Ages all = loaded<std::int16_t>(at);
    for (std::size_t n = 1; n < vectors; ++n) all = lesser(all, loaded<std::int16_t>(at + n));
    const std::int16_t wanted = least(all);
    Ages first = Ages{} + NOWHERE, here{0, 1, 2, 3, 4, 5, 6, 7};
    for (const Ages* end = at + vectors; at != end; ++at, here += AGES)
        first = lesser(first, loaded<std::int16_t>(at) == wanted ? here : Ages{} + NOWHERE);
    const std::int16_t found = least(first);
    return found == NOWHERE ? 0 : static_cast<std::size_t>(found);
}

}  // namespace numatwin::lanes
