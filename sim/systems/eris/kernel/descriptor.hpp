// The 64-bit descriptor of an incoming buffer: 1 bit active, 32 bits offset, 31 bits writers.
#pragma once

#include <cstdint>

namespace numatwin::descriptor {

inline constexpr std::uint64_t active_bit = std::uint64_t{1} << 63;
inline constexpr std::uint64_t one_writer = 1;
inline constexpr int offset_shift = 31;
inline std::uint64_t writers(std::uint64_t word) {
    return word & ((std::uint64_t{1} << 31) - 1);
}
inline std::uint64_t offset(std::uint64_t word) {
    return (word & ~active_bit) >> offset_shift;
}

}  // namespace numatwin::descriptor
