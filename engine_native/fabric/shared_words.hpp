// Memory that several threads or processes read and write at once: copies, and single words.
//
// A copy may meet a write half done: who reads must find that out (see record_block.hpp) before it
// uses what it got. Words are written and read whole.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace numatwin::native {

constexpr std::size_t word_bytes = 8;

inline std::atomic_ref<std::uint64_t> word_at(std::byte* memory) {
    return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(memory));
}

// Acquire: what comes after in the program sees at least what stood there before the word's store.
inline std::uint64_t load_acquire(std::byte* word) {
    return word_at(word).load(std::memory_order_acquire);
}
// Release: who sees the word sees what was written before it.
inline void store_release(std::byte* word, std::uint64_t value) {
    word_at(word).store(value, std::memory_order_release);
}
// Both: it locks (acquire) and is the end of what was done before (release). The word found.
inline std::uint64_t compare_and_swap(std::byte* word, std::uint64_t expected,
                                      std::uint64_t desired) {
    word_at(word).compare_exchange_strong(expected, desired, std::memory_order_acq_rel,
                                          std::memory_order_acquire);
    return expected;
}
// Both, as above. The word found.
inline std::uint64_t fetch_add(std::byte* word, std::uint64_t add) {
    return word_at(word).fetch_add(add, std::memory_order_acq_rel);
}

// What comes before it in the program is seen before what comes after. `all`: before it goes on,
// what was stored is seen by others too.
inline void fence(bool all = false) {
#if defined(__SANITIZE_THREAD__)
    // ThreadSanitizer knows no fences; an exchange of a word of one's own orders at least as much.
    std::atomic<int> own{all};
    own.exchange(1, std::memory_order_seq_cst);
#else
    std::atomic_thread_fence(all ? std::memory_order_seq_cst : std::memory_order_acq_rel);
#endif
}

// `bytes` and both addresses are multiples of a word. Under ThreadSanitizer word by word, so that
// races that the protocols allow for are none of the language's.
inline void copy_shared(std::byte* into, const std::byte* from, std::size_t bytes) {
#if defined(__SANITIZE_THREAD__)
    for (std::size_t at = 0; at < bytes; at += word_bytes) {
        const auto word = word_at(const_cast<std::byte*>(from) + at);
        word_at(into + at).store(word.load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
#else
    std::memcpy(into, from, bytes);
#endif
}

}  // namespace numatwin::native
