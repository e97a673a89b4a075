// Buckets of a prefix tree: 4, 8 or 16 pairs in 1, 2 or 4 cache lines, each a small hash table.
//
// A key is at home in one line, chosen by a multiplicative hash (Knuth, The Art of Computer
// Programming 3, 6.4); where that one is full, in the next that is not. A search so ends at the
// first line with a free place and mostly touches one. Which places are taken stands in the word
// that links the bucket, not in the bucket. Scans sort what they read.
#pragma once

#include <array>
#include <span>

#include "storage/tree_word.hpp"

namespace numatwin::native {

/// A cache line of a bucket.
struct Line {
    std::uint64_t keys[4];
    std::uint64_t values[4];
};
static_assert(sizeof(Line) == 64);

namespace bucket {

inline constexpr unsigned MOST = 16;
inline constexpr int NONE = -1;

constexpr unsigned lines(unsigned kind) {
    return 1U << (kind - 1);
}
constexpr unsigned capacity(unsigned kind) {
    return 4 * lines(kind);
}
constexpr std::size_t bytes(unsigned kind) {
    return sizeof(Line) * lines(kind);
}

/// The line where a key is looked for first.
constexpr unsigned home(unsigned kind, std::uint64_t key) {
    return static_cast<unsigned>((key * 0x9E37'79B9'7F4A'7C15ULL) >> 1 >> (64 - kind));
}

// Inlined, whatever it costs: GCC takes a function that only prefetches for one without effect, and
// drops the calls that are left when it looks.
[[gnu::always_inline]] inline void prefetch(Word word, std::uint64_t key) {
    __builtin_prefetch(word.block<const Line>() + home(word.kind(), key));
}

/// Reads of a bucket that nobody else writes; a shared tree reads by atomics.
struct PlainLoad {
    std::uint64_t operator()(const std::uint64_t& from) const { return from; }
};

/// The place of a key, or NONE.
template <class Load = PlainLoad>
inline int find(Word word, std::uint64_t key, Load load = {}) {
    const Line* block = word.block<const Line>();
    const std::uint64_t taken = word.taken();
    const unsigned count = lines(word.kind());
    unsigned line = home(word.kind(), key);
    for (unsigned tried = 0; tried < count; ++tried) {
        const Line& at = block[line];
        const unsigned here = taken >> (4 * line) & 15;
        const unsigned same =
            (load(at.keys[0]) == key ? 1U : 0U) | (load(at.keys[1]) == key ? 2U : 0U) |
            (load(at.keys[2]) == key ? 4U : 0U) | (load(at.keys[3]) == key ? 8U : 0U);
        if (const unsigned match = same & here; match != 0)
            return static_cast<int>(4 * line) + std::countr_zero(match);
        if (here != 15) return NONE;
        line = (line + 1) & (count - 1);
    }
    return NONE;
}

/// The place a new key gets, or NONE where the bucket is full.
inline int free_place(Word word, std::uint64_t key) {
    const unsigned count = lines(word.kind());
    unsigned line = home(word.kind(), key);
    for (unsigned tried = 0; tried < count; ++tried) {
        const unsigned free = ~static_cast<unsigned>(word.taken() >> (4 * line)) & 15;
        if (free != 0) return static_cast<int>(4 * line) + std::countr_zero(free);
        line = (line + 1) & (count - 1);
    }
    return NONE;
}

inline std::uint64_t& key_at(Word word, int place) {
    return word.block<Line>()[place / 4].keys[place % 4];
}
inline std::uint64_t& value_at(Word word, int place) {
    return word.block<Line>()[place / 4].values[place % 4];
}

/// Writes a pair to a free place; returns the word with the place taken.
inline Word put(Word word, int place, std::uint64_t key, std::uint64_t value) {
    key_at(word, place) = key;
    value_at(word, place) = value;
    return word.with_taken(word.taken() | std::uint64_t{1} << place);
}

/// The pairs of a bucket, in no order.
class Pairs {
  public:
    Pairs() = default;
    explicit Pairs(Word word) {
        for (std::uint64_t left = word.taken(); left != 0; left &= left - 1) {
            const int place = std::countr_zero(left);
            add({key_at(word, place), value_at(word, place)});
        }
    }
    void add(KeyValue pair) { pairs_[count_++] = pair; }
    unsigned size() const { return count_; }
    const KeyValue* begin() const { return pairs_.data(); }
    const KeyValue* end() const { return pairs_.data() + count_; }
    KeyValue* begin() { return pairs_.data(); }
    KeyValue* end() { return pairs_.data() + count_; }
    void sort() {
        std::sort(begin(), end(), [](KeyValue a, KeyValue b) { return a.key < b.key; });
    }

  private:
    std::array<KeyValue, MOST> pairs_;
    unsigned count_ = 0;
};

/// The smallest bucket for `pairs` with room for more, so that it does not grow at once.
constexpr unsigned roomy_kind(std::size_t pairs) {
    return pairs <= 3 ? 1 : pairs <= 6 ? 2 : 3;
}

/// Fills a fresh block.
inline Word fill(unsigned kind, void* block, std::span<const KeyValue> pairs, unsigned span) {
    Word word = Word::bucket(kind, block, 0, span);
    for (const KeyValue& pair : pairs)
        word = put(word, free_place(word, pair.key), pair.key, pair.value);
    return word;
}

}  // namespace bucket
}  // namespace numatwin::native
