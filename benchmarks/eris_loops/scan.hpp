// Scans of a column of 32-bit or 64-bit integers for the values below a bound.
#pragma once

#include <nmmintrin.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "lines.hpp"

template <typename Value>
constexpr std::size_t line_values = line_bytes / sizeof(Value);

// A plain loop: compilers turn it into vector instructions, one vector of 16 bytes a round.
template <typename Value>
[[gnu::noinline]] std::int64_t scan_sum(std::span<const Value> column, Value bound) {
    std::int64_t sum = 0;
    for (const Value value : column) sum += value < bound ? value : 0;
    return sum;
}

// A bit for each value of a vector.
inline unsigned bits_below(__m128i values, std::int64_t bound) {
    const __m128i below = _mm_cmpgt_epi64(_mm_set1_epi64x(bound), values);
    return static_cast<unsigned>(_mm_movemask_pd(_mm_castsi128_pd(below)));
}
inline unsigned bits_below(__m128i values, std::int32_t bound) {
    const __m128i below = _mm_cmpgt_epi32(_mm_set1_epi32(bound), values);
    return static_cast<unsigned>(_mm_movemask_ps(_mm_castsi128_ps(below)));
}

// A bit for each value of a cache line. No compiler finds movemask in a plain loop: so it is named.
template <typename Value>
[[gnu::always_inline]] inline unsigned line_below(const Value* line, Value bound) {
    const auto* vectors = reinterpret_cast<const __m128i*>(line);
    unsigned bits = 0;
    for (unsigned part = 0; part < 4; ++part) {
        bits |= bits_below(_mm_load_si128(vectors + part), bound)
                << (part * line_values<Value> / 4);
    }
    return bits;
}

// `bitmap`: one byte a cache line of 64-bit values, two of 32-bit values.
template <typename Value, typename Bits>
[[gnu::noinline]] void scan_bitmap(std::span<const Value> column, Value bound, Bits* bitmap) {
    static_assert(8 * sizeof(Bits) == line_values<Value>);
    const Value* end = column.data() + column.size();
    for (const Value* line = column.data(); line != end; line += line_values<Value>) {
        *bitmap++ = static_cast<Bits>(line_below(line, bound));
    }
}

// Writes where the values stand; returns the end of what it wrote.
template <typename Value>
[[gnu::noinline]] std::uint32_t* scan_positions(std::span<const Value> column, Value bound,
                                                std::uint32_t* to) {
    for (std::size_t first = 0; first < column.size(); first += line_values<Value>) {
        for (unsigned bits = line_below(&column[first], bound); bits != 0; bits &= bits - 1) {
            *to++ = static_cast<std::uint32_t>(first) + static_cast<unsigned>(__builtin_ctz(bits));
        }
    }
    return to;
}
