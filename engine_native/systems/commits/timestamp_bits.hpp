// RSI's timestamps: a bit each, used again lap after lap; the leading run of set bits is committed.
//
// Timestamps count from 1. Client i of n owns i + 1, i + 1 + n, i + 1 + 2n, …; the vector has room
// for `lap` of them, a multiple of n. Nothing is cleared: in one lap a set bit is a 1, in the next
// a 0, and so on. So who looks must know which lap a bit is of: nobody sets one more than a lap
// above what another one may still take for the end of the leading run.
//
// - Without remedies that is what it saw when it last looked. The run cannot pass its own next
//   timestamp, which lies at most `reach` + n above that, and the others go `reach` above the run:
//   half a lap does.
// - With remedies the timestamp server sets timestamps in others' stead, and the run may pass that
//   one while its owner sleeps. Then all go by the floor, and a lap above it; clients raise it too.
//
// A bit is set by an atomic add to its word, as up to 64 clients share that: the source's WRITE of
// a bit would undo their bits, and no network writes less than a byte. Each bit is added to once a
// lap, by its owner or, where it was skipped or retired, by the timestamp server; never by both.
//
// In memory: the floor (a timestamp that the leading run has reached), padding to 64 bytes, the
// bits in order, and the claims, in which each client has words of its own: 32 claims, and above
// them which lap these are of, counted from 1. So a word never comes back, and a CAS on it cannot
// succeed on a claim of laps ago.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "fabric/shared_words.hpp"

namespace numatwin::native {

class TimestampBits {
  public:
    // `first_at`: where they begin in their region.
    TimestampBits(std::int64_t clients, std::int64_t bits, std::uint64_t first_at = 0)
        : clients_(clients), rows_(bits / clients), lap_(rows_ * clients), first_at_(first_at) {}

    std::int64_t lap() const { return lap_; }
    // How far above the end that it has seen a client may go, where nobody keeps a floor.
    std::int64_t reach() const { return std::max<std::int64_t>((lap_ - clients_ + 1) / 2, 1); }
    std::int64_t clients() const { return clients_; }
    std::int64_t owner(std::int64_t cid) const { return (cid - 1) % clients_; }
    // The client's first timestamp above that one.
    std::int64_t next_of(std::int64_t client, std::int64_t above) const {
        const std::int64_t first = client + 1;
        if (above < first) return first;
        return first + ((above - first) / clients_ + 1) * clients_;
    }

    std::uint64_t floor_at() const { return first_at_; }
    std::uint64_t bits_at() const { return first_at_ + head_bytes; }
    static constexpr std::uint64_t head_bytes = 64;
    std::uint64_t vector_bytes() const { return words(lap_) * word_bytes; }
    std::uint64_t claims_at() const { return bits_at() + vector_bytes(); }
    std::uint64_t bytes() const {
        return claims_at() - first_at_ +
               static_cast<std::uint64_t>(clients_) * claim_words() * word_bytes;
    }

    // Where the word with a timestamp's bit lies, and what to add to it to set the bit.
    struct Bit {
        std::uint64_t at;
        std::uint64_t addend;
    };
    Bit bit(std::int64_t cid) const {
        const std::int64_t lap = (cid - 1) / lap_;
        const auto place = static_cast<std::uint64_t>(cid - 1 - lap * lap_);
        const std::uint64_t one = std::uint64_t{1} << place % 64;
        return {bits_at() + place / 64 * word_bytes, lap % 2 != 0 ? 0 - one : one};
    }
    bool is_set(std::uint64_t word, std::int64_t cid) const {
        return ((word >> place(cid) % 64 & 1) != 0) != odd_lap(cid);
    }

    // Where the word with a timestamp's claim lies, whether it is claimed (or its lap is long
    // over), and the word that claims it too.
    std::uint64_t claim_at(std::int64_t cid) const {
        const auto own = static_cast<std::uint64_t>(owner(cid)) * claim_words();
        return claims_at() + (own + row(cid) / 32) * word_bytes;
    }
    bool is_claimed(std::uint64_t word, std::int64_t cid) const {
        if (word >> 32 != claim_lap(cid)) return word >> 32 > claim_lap(cid);
        return (word >> row(cid) % 32 & 1) != 0;
    }
    std::uint64_t claimed(std::uint64_t word, std::int64_t cid) const {
        const std::uint64_t bit = std::uint64_t{1} << row(cid) % 32;
        return word >> 32 == claim_lap(cid) ? word | bit : claim_lap(cid) << 32 | bit;
    }

    // The end of the leading run, known to have reached `from`; at most `from` + lap. `word` gives
    // the words of the vector by their index.
    template <typename Word>
    std::int64_t run_end(std::int64_t from, const Word& word) const {
        std::int64_t cid = from + 1;
        while (cid <= from + lap_) {
            const std::uint64_t at = place(cid);
            const auto left = static_cast<int>(
                std::min<std::uint64_t>(64 - at % 64, static_cast<std::uint64_t>(lap_) - at));
            const std::uint64_t found = word(at / 64) ^ (odd_lap(cid) ? ~std::uint64_t{0} : 0);
            const int run = std::min(std::countr_one(found >> at % 64), left);
            cid += run;
            if (run < left) break;
        }
        return std::min(cid - 1, from + lap_);
    }

    // The highest timestamp above `from`, and at most `until`, that is set; else `from`. It looks
    // as far as each word of the vector has one, and `has` it. Whoever asks knows that the run has
    // reached a lap below `until`.
    template <typename Has, typename Word>
    std::int64_t top(std::int64_t from, std::int64_t until, const Has& has,
                     const Word& word) const {
        std::int64_t highest = from;
        for (std::int64_t cid = from + 1; cid <= until;) {
            const std::uint64_t at = place(cid);
            if (!has(at / 64)) break;
            const auto left = static_cast<int>(
                std::min<std::uint64_t>({64 - at % 64, static_cast<std::uint64_t>(lap_) - at,
                                         static_cast<std::uint64_t>(until - cid + 1)}));
            std::uint64_t found =
                (word(at / 64) ^ (odd_lap(cid) ? ~std::uint64_t{0} : 0)) >> at % 64;
            if (left < 64) found &= (std::uint64_t{1} << left) - 1;
            if (found == 0) break;
            highest = cid + std::bit_width(found) - 1;
            cid += left;
        }
        return highest;
    }

  private:
    static std::uint64_t words(std::int64_t bits) {
        return (static_cast<std::uint64_t>(bits) + 63) / 64;
    }
    std::uint64_t place(std::int64_t cid) const {
        return static_cast<std::uint64_t>((cid - 1) % lap_);
    }
    std::uint64_t row(std::int64_t cid) const {
        return static_cast<std::uint64_t>((cid - 1) / clients_ % rows_);
    }
    std::uint64_t claim_words() const { return (static_cast<std::uint64_t>(rows_) + 31) / 32; }
    std::uint64_t claim_lap(std::int64_t cid) const {
        return static_cast<std::uint64_t>((cid - 1) / lap_) + 1;
    }
    bool odd_lap(std::int64_t cid) const { return ((cid - 1) / lap_ & 1) != 0; }

    std::int64_t clients_;
    std::int64_t rows_;
    std::int64_t lap_;
    std::uint64_t first_at_;
};

}  // namespace numatwin::native
