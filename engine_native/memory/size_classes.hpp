// Sizes that blocks are rounded to: so few that each can have a list of free blocks.
//
// 16, 32, 48; multiples of 64 up to 4 KiB; then four in each doubling up to 4 MiB.
#pragma once

#include <bit>
#include <cstddef>

namespace numatwin::native::size_classes {

inline constexpr std::size_t largest = std::size_t{4} << 20;
/// Of blocks that caches hold; larger ones come from the manager one by one.
inline constexpr std::size_t largest_cached = std::size_t{32} << 10;

constexpr std::size_t of(std::size_t bytes) {
    if (bytes <= 64) return bytes == 0 ? 0 : (bytes - 1) / 16;
    if (bytes <= 4096) return 3 + (bytes - 1) / 64;
    const auto doubling = static_cast<std::size_t>(std::bit_width(bytes - 1)) - 1;  // 12: 4097 …
    return 67 + (doubling - 12) * 4 + ((bytes - 1) >> (doubling - 2)) % 4;
}

constexpr std::size_t bytes(std::size_t size_class) {
    if (size_class < 4) return (size_class + 1) * 16;
    if (size_class < 67) return (size_class - 2) * 64;
    const std::size_t doubling = 12 + (size_class - 67) / 4;
    return (5 + (size_class - 67) % 4) << (doubling - 2);
}

inline constexpr std::size_t count = of(largest) + 1;
inline constexpr std::size_t cached = of(largest_cached) + 1;

/// How many blocks a full magazine has: about 16 KiB of them.
constexpr std::size_t magazine(std::size_t size_class) {
    const std::size_t fit = (std::size_t{16} << 10) / bytes(size_class);
    return fit < 2 ? 2 : fit > 128 ? 128 : fit;
}

/// Blocks of 64 bytes and more lie at multiples of 64, those of 32 at multiples of 32.
constexpr std::size_t alignment(std::size_t bytes) {
    return bytes >= 64 ? 64 : bytes == 32 ? 32 : 16;
}

}  // namespace numatwin::native::size_classes
