// A set-associative cache with least-recently-used replacement: tags alone, no data.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace numatwin {

using Line = std::uint64_t;  // a line's number: its address in memory over the line's size

// One word per way: (line + 1) << 2 | flags, 0 where it is empty. Words and ages are atomic, as the
// owner looks a line up without the lock under which others take it away; all else is done under
// the lock of the set (see Hierarchy). Each cache begins on a line of the host of its own: its
// clock changes with every access, and what finds a line in the next one would be lost with it.
class alignas(64) CacheSets {
  public:
    using Word = std::atomic<std::uint64_t>;
    static constexpr std::size_t NONE = ~std::size_t{0};
    static constexpr std::uint64_t FLAGS = 3;
    static constexpr std::size_t ALL_IN_ORDER = ~(~std::size_t{0} >> 1);  // a power of two, too

    // The lowest bits of a line's number, of `in_order` lines in a row (a power of two), choose
    // among sets as they are; those above are hashed with all higher ones, as in last-level caches,
    // whose slices are chosen by a hash. By default none are. `sets` is a multiple of `in_order`,
    // or a smaller power of two.
    CacheSets(std::size_t sets, std::size_t ways, std::size_t in_order = ALL_IN_ORDER)
        : ways_(ways),
          row_(std::min(sets, in_order)),
          row_bits_(static_cast<unsigned>(std::countr_zero(row_))),
          rows_(row_ == 0 ? 0 : sets / row_),
          inverse_(rows_ == 0 ? 0 : ~std::uint64_t{0} / rows_ + 1),
          words_(sets * ways),
          ages_(sets * ways) {
        if (!std::has_single_bit(row_) || sets % row_ != 0 || ways == 0 || ways > WAYS_MAX)
            throw std::invalid_argument(
                "a cache: expected a power of two of sets or a multiple of 64, 1 to 255 ways");
    }

    static std::uint64_t tag(Line line) { return (line + 1) << 2; }
    static Line line_of(std::uint64_t word) { return (word >> 2) - 1; }

    std::size_t size() const { return words_.size; }
    Word& word(std::size_t slot) { return words_[slot]; }
    std::uint64_t value(std::size_t slot) const { return words_[slot].load(relaxed); }
    void set(std::size_t slot, std::uint64_t word) { words_[slot].store(word, relaxed); }

    // The first slot of the line's set.
    std::size_t set_at(Line line) const { return set_of(line) * ways_; }

    // The slot that holds `line`, NONE where none does. Without branches on what is found, here and
    // in victim(), which no processor could predict.
    std::size_t find(Line line) const { return find(line, set_at(line)); }
    std::size_t find(Line line, std::size_t first) const {
        std::size_t found = NONE;
        for (std::size_t slot = first; slot < first + ways_; ++slot)
            found = (value(slot) & ~FLAGS) == tag(line) ? slot : found;
        return found;
    }

    // An empty slot of a set, else the one that was used least recently.
    std::size_t victim(std::size_t first) const {
        std::uint64_t oldest = ~std::uint64_t{0};
        for (std::size_t way = 0; way < ways_; ++way)
            oldest = std::min(oldest, age(first + way) << WAY_BITS | way);
        return first + (oldest & WAYS_MAX);
    }

    void touch(std::size_t slot) {
        const std::uint64_t now = clock_.load(relaxed) + 1;
        clock_.store(now, relaxed);
        ages_[slot].store(now, relaxed);
    }
    std::uint64_t age(std::size_t slot) const { return ages_[slot].load(relaxed); }

    // Empty slots are the oldest.
    void clear(std::size_t slot) {
        set(slot, 0);
        ages_[slot].store(0, relaxed);
    }

    // Takes the line away, if it is here.
    void remove(Line line) {
        const std::size_t slot = find(line);
        if (slot != NONE) clear(slot);
    }

  private:
    // Numbers that begin on a line of the host, so that a set takes as few of these as can be.
    struct Numbers {
        struct alignas(64) HostLine {
            std::array<std::atomic<std::uint64_t>, 8> numbers{};
        };

        explicit Numbers(std::size_t size) : size(size), lines((size + 7) / 8) {}
        std::atomic<std::uint64_t>& operator[](std::size_t at) {
            return lines[at / 8].numbers[at % 8];
        }
        const std::atomic<std::uint64_t>& operator[](std::size_t at) const {
            return lines[at / 8].numbers[at % 8];
        }

        std::size_t size;
        std::vector<HostLine> lines;
    };

    // Of a block of as many lines as there are sets, each has a set of its own. Blocks differ in
    // how far their rows are turned: by the high bits of a product, which depend on all bits of the
    // block's number (Fibonacci hashing).
    std::size_t set_of(Line line) const {
        const std::size_t column = line & (row_ - 1);
        if (rows_ == 1) return column;
        const std::uint64_t row = line >> row_bits_, block = high(row, inverse_);
        const std::uint64_t mixed = (block * 0x9e3779b97f4a7c15) >> 32;
        const std::uint64_t turned = row - block * rows_ + (mixed * rows_ >> 32);
        return (turned < rows_ ? turned : turned - rows_) << row_bits_ | column;
    }
    // The high half of a product. With an inverse of n, rounded up: a quotient by n, of less than
    // 2^64 / n.
    static std::uint64_t high(std::uint64_t a, std::uint64_t b) {
        return static_cast<std::uint64_t>(static_cast<unsigned __int128>(a) * b >> 64);
    }

    static constexpr unsigned WAY_BITS = 8;
    static constexpr std::size_t WAYS_MAX = 255;
    static constexpr auto relaxed = std::memory_order_relaxed;
    std::size_t ways_, row_;
    unsigned row_bits_;
    std::size_t rows_;
    std::uint64_t inverse_;  // of rows_, times 2^64
    Numbers words_, ages_;
    std::atomic<std::uint64_t> clock_{0};
};

}  // namespace numatwin
