// Cache lines, and how many of them are fetched ahead.
#pragma once

#include <cstddef>

constexpr std::size_t line_bytes = 64;
constexpr std::size_t group_size = 16;  // keys under way at once: more than a core's load misses

// The bytes of a cache line, whatever they hold: a copy takes four vectors of 16 bytes.
struct [[gnu::may_alias]] alignas(line_bytes) Line {
    std::byte bytes[line_bytes];
};

inline void prefetch(const void* address) {
    __builtin_prefetch(address);
}
