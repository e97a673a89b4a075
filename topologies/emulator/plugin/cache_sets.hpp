// A set-associative cache with least-recently-used replacement: tags alone, no data.
#pragma once

#include <algorithm>
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

    // `sets` is a power of two. The lowest bits of a line's number, of `in_order` lines in a row
    // (a power of two), choose among sets as they are; those above are hashed with all higher ones,
    // as in last-level caches, whose slices are chosen by a hash. By default none are.
    CacheSets(std::size_t sets, std::size_t ways, std::size_t in_order = ALL_IN_ORDER)
        : mask_(sets - 1),
          ways_(ways),
          set_bits_(static_cast<unsigned>(std::countr_zero(sets))),
          hashed_(mask_ & ~(in_order - 1)),
          words_(sets * ways),
          ages_(sets * ways) {
        if (!std::has_single_bit(sets) || ways == 0 || ways > WAYS_MAX)
            throw std::invalid_argument("a cache: expected a power of two of sets, 1 to 255 ways");
    }

    static std::uint64_t tag(Line line) { return (line + 1) << 2; }
    static Line line_of(std::uint64_t word) { return (word >> 2) - 1; }

    std::size_t size() const { return words_.size(); }
    Word& word(std::size_t slot) { return words_[slot]; }
    std::uint64_t value(std::size_t slot) const { return words_[slot].load(relaxed); }
    void set(std::size_t slot, std::uint64_t word) { words_[slot].store(word, relaxed); }

    // The slot that holds `line`, NONE where none does.
    std::size_t find(Line line) const {
        const std::size_t first = set_of(line) * ways_;
        for (std::size_t slot = first; slot < first + ways_; ++slot)
            if ((value(slot) & ~FLAGS) == tag(line)) return slot;
        return NONE;
    }

    // An empty slot of the line's set, else the one that was used least recently. Without branches
    // on ages, which no processor could predict.
    std::size_t victim(Line line) const {
        const std::size_t first = set_of(line) * ways_;
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
    // Of a block of as many lines as there are sets, each has a set of its own. Blocks differ in
    // what the hashed bits are flipped by: the high bits of a product, which depend on all bits of
    // the block's number (Fibonacci hashing).
    std::size_t set_of(Line line) const {
        const std::uint64_t mixed = (line >> set_bits_) * 0x9e3779b97f4a7c15;
        return (line ^ (mixed >> 32 & hashed_)) & mask_;
    }

    static constexpr unsigned WAY_BITS = 8;
    static constexpr std::size_t WAYS_MAX = 255;
    static constexpr auto relaxed = std::memory_order_relaxed;
    std::size_t mask_, ways_;
    unsigned set_bits_;
    std::size_t hashed_;
    std::vector<Word> words_;
    std::vector<std::atomic<std::uint64_t>> ages_;
    std::atomic<std::uint64_t> clock_{0};
};

}  // namespace numatwin
