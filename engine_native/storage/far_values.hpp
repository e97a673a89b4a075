// Values too large for a tree's word: blocks of whole words, to which the tree's words point.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "memory/memory.hpp"

namespace numatwin::native {

/// Of one size. Threads may read and write a block at the same time: each word is one that was
/// written, but they may be of several writes. Blocks are not given back: they live as long as the
/// memory that they are of.
class FarValues {
  public:
    explicit FarValues(std::size_t value_bytes) : words_((value_bytes + 7) / 8) {}

    /// Whether values lie there; else a tree's word is the value itself.
    bool used() const noexcept { return words_ > 1; }

    /// The word for a tree: of a new block, or the value itself. Throws std::bad_alloc.
    std::uint64_t make(Memory& memory, std::uint64_t value) const {
        if (!used()) return value;
        auto* block = static_cast<std::uint64_t*>(memory.allocate(8 * words_));
        std::fill_n(block, words_, value);
        return reinterpret_cast<std::uintptr_t>(block);
    }

    /// Reads whole blocks; of those found each word becomes its value's first. Returns the sum of
    /// all that was read.
    std::uint64_t read(std::uint64_t* words, const std::uint8_t* found,
                       std::size_t count) const noexcept {
        std::uint64_t sum = 0;
        for_each(words, found, count, [&](std::size_t k, std::uint64_t* block) {
            sum += sum_of(block);
            words[k] = load(block[0]);
        });
        return sum;
    }

    /// Writes values into the blocks of those found.
    void write(const std::uint64_t* words, const std::uint8_t* found, const std::uint64_t* values,
               std::size_t count) const noexcept {
        for_each(words, found, count,
                 [&](std::size_t k, std::uint64_t* block) { fill(block, words_, values[k]); });
    }

  private:
    /// So many are fetched while others are read: a few of each of the core's miss slots, and far
    /// less than its first cache holds.
    static constexpr std::size_t lines_ahead = 128;
    static constexpr std::size_t line_words = 8;

    // Plain, so that several words are moved at once. Aligned words are read and written whole all
    // the same; under ThreadSanitizer atomically, so that these races are none of the language's.
#if defined(__SANITIZE_THREAD__)
    static std::uint64_t load(std::uint64_t& word) noexcept {
        return std::atomic_ref(word).load(std::memory_order_relaxed);
    }
    static void store(std::uint64_t& word, std::uint64_t value) noexcept {
        std::atomic_ref(word).store(value, std::memory_order_relaxed);
    }
#else
    static std::uint64_t load(const std::uint64_t& word) noexcept { return word; }
    static void store(std::uint64_t& word, std::uint64_t value) noexcept { word = value; }
#endif

    /// Of a whole block. Several sums, so that additions do not wait for each other.
    std::uint64_t sum_of(std::uint64_t* block) const noexcept {
        std::array<std::uint64_t, line_words> sums{};
        std::size_t i = 0;
        for (; i + line_words <= words_; i += line_words)
            for (std::size_t j = 0; j < line_words; ++j) sums[j] += load(block[i + j]);
        for (; i < words_; ++i) sums[0] += load(block[i]);
        return std::accumulate(sums.begin(), sums.end(), std::uint64_t{0});
    }

    /// Line by line, so that several words are written at once.
    static void fill(std::uint64_t* block, std::size_t words, std::uint64_t value) noexcept {
        std::size_t i = 0;
        for (; i + line_words <= words; i += line_words)
            for (std::size_t j = 0; j < line_words; ++j) store(block[i + j], value);
        for (; i < words; ++i) store(block[i], value);
    }

    static std::uint64_t* block_of(std::uint64_t word) noexcept {
        return reinterpret_cast<std::uint64_t*>(static_cast<std::uintptr_t>(word));
    }
    /// Inlined: see bucket::prefetch.
    [[gnu::always_inline]] void prefetch(std::uint64_t word) const noexcept {
        for (std::size_t i = 0; i < words_; i += line_words) __builtin_prefetch(block_of(word) + i);
    }

    template <class Visit>
    void for_each(const std::uint64_t* words, const std::uint8_t* found, std::size_t count,
                  Visit&& visit) const {
        const std::size_t lines = (words_ + line_words - 1) / line_words;
        const std::size_t ahead = std::min(std::max<std::size_t>(lines_ahead / lines, 1), count);
        for (std::size_t k = 0; k < ahead; ++k)
            if (found[k]) prefetch(words[k]);
        for (std::size_t k = 0; k < count; ++k) {
            if (k + ahead < count && found[k + ahead]) prefetch(words[k + ahead]);
            if (found[k]) visit(k, block_of(words[k]));
        }
    }

    std::size_t words_;
};

/// What was read is used, so that no compiler leaves the reading out.
inline void keep(std::uint64_t value) noexcept {
    asm volatile("" : : "r"(value));
}

}  // namespace numatwin::native
