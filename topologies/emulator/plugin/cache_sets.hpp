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

// Numbers compared some at a time, in vectors of 16 bytes, as GCC and Clang have them for any
// processor. Other threads may change the numbers meanwhile: what is found is a position, at least.

namespace lanes {

using Words = std::uint32_t __attribute__((vector_size(16), may_alias));
using Ages = std::int16_t __attribute__((vector_size(16), may_alias));
constexpr std::size_t BYTES = 16, WORDS = 4, AGES = 8;

// Each number is loaded whole, as x86-64 and Arm load those of a vector that is aligned; the thread
// sanitizer does not know that.
template <typename Number, typename Vector>
Vector loaded(const Vector* at) {
#ifdef __SANITIZE_THREAD__
    Vector made{};
    for (std::size_t n = 0; n < sizeof(Vector) / sizeof(Number); ++n)
        made[n] = __atomic_load_n(reinterpret_cast<const Number*>(at) + n, __ATOMIC_RELAXED);
    return made;
#else
    return *at;
#endif
}

inline Ages lesser(Ages a, Ages b) {
    return a < b ? a : b;
}

// The least of eight.
inline std::int16_t least(Ages of) {
    of = lesser(of, __builtin_shuffle(of, Ages{4, 5, 6, 7, 0, 1, 2, 3}));
    of = lesser(of, __builtin_shuffle(of, Ages{2, 3, 0, 1, 6, 7, 4, 5}));
    return lesser(of, __builtin_shuffle(of, Ages{1, 0, 3, 2, 5, 4, 7, 6}))[0];
}

// One more than the position of `word`, without the bits of `ignored`; 0 where it is not. Of a word
// that moves meanwhile, any position.
inline std::uint32_t position(const Words* at, std::size_t vectors, std::uint32_t word,
                              std::uint32_t ignored) {
    Words found{}, here{1, 2, 3, 4};
    for (const Words* end = at + vectors; at != end; ++at, here += WORDS)
        found |= (Words)((loaded<std::uint32_t>(at) & ~ignored) == word) & here;
    const std::uint32_t one = found[0] | found[1] | found[2] | found[3];
    return one <= vectors * WORDS ? one : 0;
}

// The first position of the least; 0 where it was changed meanwhile.
inline std::size_t first_least(const Ages* at, std::size_t vectors) {
    constexpr std::int16_t NOWHERE = 0x7fff;
    Ages all = loaded<std::int16_t>(at);
    for (std::size_t n = 1; n < vectors; ++n) all = lesser(all, loaded<std::int16_t>(at + n));
    const std::int16_t wanted = least(all);
    Ages first = Ages{} + NOWHERE, here{0, 1, 2, 3, 4, 5, 6, 7};
    for (const Ages* end = at + vectors; at != end; ++at, here += AGES)
        first = lesser(first, loaded<std::int16_t>(at) == wanted ? here : Ages{} + NOWHERE);
    const std::int16_t found = least(first);
    return found == NOWHERE ? 0 : static_cast<std::size_t>(found);
}

}  // namespace lanes

using Line = std::uint64_t;  // a line's number: its address in memory over the line's size

// A set lies in one piece, so that it takes few lines of the host: a word per way; the times of
// their last uses and of the last one of all; and, where `marked`, 32 bits per way for the owner.
// A word is a tag << 2 | flags, 0 where it is empty.
//
// Who owns a cache looks a line up, and notes its use, without the lock under which others take it
// away; all else is done under the lock of the set (see Hierarchy). Numbers of a set are therefore
// atomic; vectors of them are loaded number by number, as far as others can see, on x86-64 and
// Arm. Each cache begins on a line of the host of its own.
class alignas(64) CacheSets {
    template <typename Number>
    static std::atomic_ref<Number> atomic(Number& of) {
        return std::atomic_ref<Number>(of);
    }
    static constexpr auto relaxed = std::memory_order_relaxed;

  public:
    using Word = std::uint32_t;
    static constexpr std::size_t NONE = ~std::size_t{0};
    static constexpr Word FLAGS = 3;
    static constexpr std::size_t ALL_IN_ORDER = ~std::size_t{0};

    // Where a line is, if it is here: in this set, with this word, but for flags.
    struct Place {
        std::size_t set;
        Word tag;
    };

    // The lowest bits of a line's number, of up to `in_order` lines in a row (a power of two),
    // choose among sets as they are; those above are hashed with all higher ones, as in last-level
    // caches, whose slices are chosen by a hash. By default none are, of a power of two of sets.
    CacheSets(std::size_t sets, std::size_t ways, std::size_t in_order = ALL_IN_ORDER,
              bool marked = false)
        : ways_(ways),
          row_(row_of(sets, in_order)),
          row_bits_(static_cast<unsigned>(std::countr_zero(row_))),
          rows_(row_ == 0 ? 0 : sets / row_),
          inverse_(rows_ == 0 ? 0 : ~std::uint64_t{0} / rows_ + 1),
          word_vectors_((ways + lanes::WORDS - 1) / lanes::WORDS),
          age_vectors_((ways + lanes::AGES - 1) / lanes::AGES),
          marks_at_((word_vectors_ + (ways + lanes::AGES) / lanes::AGES) * lanes::BYTES),
          set_bytes_(marks_at_ + (marked ? word_vectors_ * lanes::BYTES : 0)),
          host_lines_((sets * set_bytes_ + sizeof(HostLine) - 1) / sizeof(HostLine)) {
        if (sets == 0 || ways == 0 || ways > WAYS_MAX)
            throw std::invalid_argument("a cache: expected 1 set or more, 1 to 255 ways");
        for (std::size_t set = 0; set < sets; ++set) {
            std::fill(ages(set) + ways, ages(set) + age_vectors_ * lanes::AGES, NO_AGE);
            ages(set)[ways] = EMPTY + 1;
        }
    }

    // Of so many sets: the lines in a row whose sets are in order.
    static std::size_t row_of(std::size_t sets, std::size_t in_order) {
        return std::min(sets & (~sets + 1), in_order);
    }
    // Whether tags are wide enough for so many lines of memory.
    bool holds(std::uint64_t lines) const { return lines / (rows_ * row_) < (~Word{0} >> 2) - 1; }

    // Of a block of as many lines as there are sets, each has a set of its own; the tag is the
    // block's number + 1. Blocks differ in how far their rows are turned.
    Place place(Line line) const {
        const std::uint64_t row = line >> row_bits_;
        std::uint64_t block = row, set = line & (row_ - 1);
        if (rows_ != 1) {
            block = high(row, inverse_);
            const std::uint64_t turned = row - block * rows_ + turn(block);
            set |= (turned < rows_ ? turned : turned - rows_) << row_bits_;
        }
        return {set, static_cast<Word>(block + 1) << 2};
    }
    // The line that a slot holds.
    Line line(std::size_t slot) const {
        const std::uint64_t block = (value(slot) >> 2) - 1, set = set_of(slot);
        const std::uint64_t turned = set >> row_bits_, back = rows_ == 1 ? 0 : turn(block);
        const std::uint64_t row = turned < back ? turned + rows_ - back : turned - back;
        return (block * rows_ + row) << row_bits_ | (set & (row_ - 1));
    }

    // -- of a slot, which is a set and a way
    Word value(std::size_t slot) const { return atomic(word(slot)).load(relaxed); }
    void set(std::size_t slot, Word value) { atomic(word(slot)).store(value, relaxed); }
    std::uint32_t& mark(std::size_t slot) const {
        std::byte* const marks = at(set_of(slot)) + marks_at_;
        return reinterpret_cast<std::uint32_t*>(marks)[way_of(slot)];
    }

    // The slot that holds a line, NONE where none does. Without branches on what is found, here and
    // in victim(), which no processor could predict.
    std::size_t find(Line line) const { return find(place(line)); }
    std::size_t find(Place place) const {
        const auto* words = reinterpret_cast<const lanes::Words*>(at(place.set));
        const std::size_t found = lanes::position(words, word_vectors_, place.tag, FLAGS);
        return found == 0 ? NONE : (place.set << WAY_BITS) + found - 1;
    }

    // An empty slot of a set, else the one that was used least recently.
    std::size_t victim(std::size_t set) const {
        const auto* all = reinterpret_cast<const lanes::Ages*>(ages(set));
        return set << WAY_BITS | lanes::first_least(all, age_vectors_);
    }

    // What tells whether a slot was the last of its set that was used, and its word: for who asks
    // often.
    class Use {
      public:
        Use() = default;
        Word word() const { return atomic(*word_).load(relaxed); }
        bool used_last() const {
            return atomic(*own_).load(relaxed) == atomic(*last_).load(relaxed);
        }

      private:
        friend CacheSets;
        Use(Word* word, std::int16_t* own, std::int16_t* last)
            : word_(word), own_(own), last_(last) {}
        Word* word_ = nullptr;
        std::int16_t *own_ = nullptr, *last_ = nullptr;
    };
    Use use_of(std::size_t slot) const {
        std::int16_t* all = ages(set_of(slot));
        return {&word(slot), all + way_of(slot), all + ways_};
    }

    [[gnu::noinline]] void touch(std::size_t slot) {
        Age* const all = ages(set_of(slot));
        Age now = atomic(all[ways_]).load(relaxed);
        if (atomic(all[way_of(slot)]).load(relaxed) == now) return;
        if (now == NO_AGE - 1) now = begin_anew(all);
        atomic(all[way_of(slot)]).store(now + 1, relaxed);
        atomic(all[ways_]).store(now + 1, relaxed);
    }

    // Empty slots are the oldest.
    void clear(std::size_t slot) {
        set(slot, 0);
        atomic(ages(set_of(slot))[way_of(slot)]).store(EMPTY, relaxed);
    }

    // Takes the line away, if it is here.
    void remove(Line line) {
        const std::size_t slot = find(line);
        if (slot != NONE) clear(slot);
    }

  private:
    using Age = std::int16_t;
    struct alignas(64) HostLine {
        std::byte bytes[64];
    };

    static std::size_t set_of(std::size_t slot) { return slot >> WAY_BITS; }
    static std::size_t way_of(std::size_t slot) { return slot & WAYS_MAX; }

    std::byte* at(std::size_t set) const {
        return const_cast<HostLine*>(host_lines_.data())->bytes + set * set_bytes_;
    }
    Word& word(std::size_t slot) const {
        return reinterpret_cast<Word*>(at(set_of(slot)))[way_of(slot)];
    }
    // Of each way, then of the last use of all.
    Age* ages(std::size_t set) const {
        return reinterpret_cast<Age*>(at(set) + word_vectors_ * lanes::BYTES);
    }

    // The times of a set's uses begin anew, in the same order; returns the last.
    [[gnu::noinline]] Age begin_anew(Age* all) {
        std::vector<std::pair<Age, std::size_t>> used;
        for (std::size_t way = 0; way < ways_; ++way)
            if (const Age age = atomic(all[way]).load(relaxed); age != EMPTY)
                used.emplace_back(age, way);
        std::ranges::sort(used);
        Age now = EMPTY + 1;
        for (const auto& [age, way] : used) atomic(all[way]).store(++now, relaxed);
        return now;
    }

    // By how many rows those of a block are turned: the high bits of a product, which depend on all
    // bits of the block's number (Fibonacci hashing).
    std::uint64_t turn(std::uint64_t block) const {
        return ((block * 0x9e3779b97f4a7c15) >> 32) * rows_ >> 32;
    }
    // The high half of a product. With an inverse of n, rounded up: a quotient by n, of less than
    // 2^64 / n.
    static std::uint64_t high(std::uint64_t a, std::uint64_t b) {
        return static_cast<std::uint64_t>(static_cast<unsigned __int128>(a) * b >> 64);
    }

    static constexpr unsigned WAY_BITS = 8;
    static constexpr std::size_t WAYS_MAX = 255;
    static constexpr Age EMPTY = 0, NO_AGE = 0x7fff;  // later than all
    std::size_t ways_, row_;
    unsigned row_bits_;
    std::size_t rows_;
    std::uint64_t inverse_;  // of rows_, times 2^64
    std::size_t word_vectors_, age_vectors_, marks_at_, set_bytes_;
    std::vector<HostLine> host_lines_;
};

}  // namespace numatwin
