// Copies that go past the caches: lines that nobody reads soon push nothing out, and none is read
// before it is written.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#include <emmintrin.h>
#endif

#include "fabric/shared_words.hpp"

namespace numatwin::native {

constexpr std::size_t line_bytes = 64;

// Memory that begins with a line.
struct FreeLines {
    void operator()(void* memory) const {
        ::operator delete[](memory, std::align_val_t{line_bytes});
    }
};
template <class Value = std::byte>
using Lines = std::unique_ptr<Value[], FreeLines>;
template <class Value>
Lines<Value> make_lines(std::size_t count) {
    return Lines<Value>(
        static_cast<Value*>(::operator new[](count * sizeof(Value), std::align_val_t{line_bytes})));
}
inline Lines<> zeroed_lines(std::size_t bytes) {
    auto made = make_lines<std::byte>(bytes);
    std::memset(made.get(), 0, bytes);
    return made;
}

// `into` is at the beginning of a line; what is left of the last line goes through the caches.
// Others see it after streamed().
inline void copy_streaming(std::byte* into, const std::byte* from, std::size_t bytes) {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    const std::size_t whole = bytes / line_bytes * line_bytes;
    for (std::size_t at = 0; at < whole; at += sizeof(__m128i))
        _mm_stream_si128(reinterpret_cast<__m128i*>(into + at),
                         _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at)));
    std::memcpy(into + whole, from + whole, bytes - whole);
#else
    copy_shared(into, from, bytes);
#endif
}

// What was copied so is seen before what comes after in the program.
inline void streamed() {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    _mm_sfence();
#else
    fence();
#endif
}

}  // namespace numatwin::native
