// The 64-bit descriptor of an incoming buffer: 1 bit active, 32 bits offset, 31 bits writers.
#pragma once

#include <cstdint>

namespace numatwin::native::descriptor {

using Word = std::uint64_t;

inline constexpr Word active_bit = Word{1} << 63;
inline constexpr Word one_writer = 1;
inline constexpr int offset_shift = 31;
inline constexpr Word writers_mask = (Word{1} << offset_shift) - 1;
inline constexpr std::uint64_t offset_max = ~std::uint32_t{0};

constexpr bool is_active(Word word) {
    return (word & active_bit) != 0;
}
/// Bytes reserved so far.
constexpr std::uint64_t offset(Word word) {
    return (word & ~active_bit) >> offset_shift;
}
/// Writers that have reserved room and still copy.
constexpr std::uint64_t writers(Word word) {
    return word & writers_mask;
}
/// What a writer that reserves `bytes` leaves. `offset(word) + bytes` is at most `offset_max`.
constexpr Word reserved(Word word, std::uint64_t bytes) {
    return word + (bytes << offset_shift) + one_writer;
}

}  // namespace numatwin::native::descriptor
