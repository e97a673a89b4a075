// Sizes that blocks are rounded to: so few that each can have a list of free blocks.
//
// 16, 32, 48; multiples of 64 up to 512; then four in each doubling up to 4 MiB.
#pragma once

#include <bit>
#include <cstddef>

namespace numatwin::native {

struct SizeClasses {
    static constexpr std::size_t kLargest = 4ull << 20;
    static constexpr std::size_t kLargestCached = 32ull << 10;

    static constexpr std::size_t of(std::size_t bytes) {
        if (bytes <= 64) return bytes == 0 ? 0 : (bytes - 1) / 16;
        if (bytes <= 512) return 3 + (bytes - 1) / 64;
        const auto doubling = static_cast<std::size_t>(std::bit_width(bytes - 1)) - 1;  // 9: 513 …
        return 11 + (doubling - 9) * 4 + ((bytes - 1) >> (doubling - 2)) % 4;
    }
    static constexpr std::size_t bytes(std::size_t size_class) {
        if (size_class < 4) return (size_class + 1) * 16;
        if (size_class < 11) return (size_class - 2) * 64;
        const std::size_t doubling = 9 + (size_class - 11) / 4;
        return (5 + (size_class - 11) % 4) << (doubling - 2);
    }
    static constexpr std::size_t kCount = of(kLargest) + 1;
    static constexpr std::size_t kCached = of(kLargestCached) + 1;

    /// How many blocks a full magazine has.
    static constexpr std::size_t magazine(std::size_t size_class) {
        const std::size_t fit = (16ull << 10) / bytes(size_class);
        return fit < 2 ? 2 : fit > 128 ? 128 : fit;
    }
    /// Blocks of 64 bytes and more lie at multiples of 64, smaller ones at their own if it is a
    /// power of two, else at multiples of 16.
    static constexpr std::size_t alignment(std::size_t bytes) {
        return bytes >= 64 ? 64 : bytes == 32 ? 32 : 16;
    }
};

}  // namespace numatwin::native
