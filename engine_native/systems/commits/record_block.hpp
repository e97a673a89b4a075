// The block of a record under RSI: versions, the newest first, behind a word that locks it.
//
//     word | payload of the newest | CID, payload of the one before | …          (k versions)
//
//     word, unlocked         0 | CID of the newest                     1 + 63 bits
//     word, locked           1 | CID of the newest
//     word, locked, leased   1 | owner | time of locking | CID         1 + 13 + 20 + 30 bits
//
// After Binnig et al., The End of Slow Networks, PVLDB 9 (2016). The word says which version it
// validates, so that one CAS validates and locks.
//
// Reading. The source does not say how a reader finds out that a WRITE met its READ. Here: READ the
// block, then its first word again; the block is whole where both words are the same and unlocked.
// For a writer locks before it writes, and the word of its WRITE is seen last (Fabric::publish):
// so a writer whose bytes the reader saw either still held the lock at the second look, or had
// given the word a CID above the first one's. CIDs of a record rise, so a word never comes back.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "fabric/shared_words.hpp"

namespace numatwin::native {

struct LockWord {
    static constexpr std::uint64_t lock_bit = std::uint64_t{1} << 63;
    static constexpr int owner_bits = 13, time_bits = 20, cid_bits = 30;
    static constexpr std::int64_t time_unit_ns = 1 << 18;  // 0.26 ms; it comes round in 275 s
    static constexpr std::uint32_t owners_max = 1 << owner_bits;
    static constexpr std::int64_t leased_cid_max = (std::int64_t{1} << cid_bits) - 1;

    static constexpr std::uint64_t unlocked(std::int64_t cid) {
        return static_cast<std::uint64_t>(cid);
    }
    static constexpr std::uint64_t locked(std::int64_t cid) { return lock_bit | unlocked(cid); }
    static constexpr std::uint64_t leased(std::int64_t cid, std::uint32_t owner,
                                          std::int64_t now_ns) {
        return lock_bit | std::uint64_t{owner} << (time_bits + cid_bits) |
               ticks(now_ns) << cid_bits | static_cast<std::uint64_t>(cid);
    }
    static constexpr bool is_locked(std::uint64_t word) { return (word & lock_bit) != 0; }
    static constexpr std::int64_t cid(std::uint64_t word, bool leases) {
        const std::uint64_t mask =
            leases ? static_cast<std::uint64_t>(leased_cid_max) : lock_bit - 1;
        return static_cast<std::int64_t>(word & mask);
    }
    static constexpr std::uint32_t owner(std::uint64_t leased_word) {
        return static_cast<std::uint32_t>(leased_word >> (time_bits + cid_bits)) & (owners_max - 1);
    }
    // How long ago it was locked, within a time unit.
    static constexpr std::int64_t age_ns(std::uint64_t leased_word, std::int64_t now_ns) {
        const std::uint64_t then = leased_word >> cid_bits;
        return static_cast<std::int64_t>((ticks(now_ns) - then) & ((1u << time_bits) - 1)) *
               time_unit_ns;
    }

  private:
    static constexpr std::uint64_t ticks(std::int64_t now_ns) {
        return static_cast<std::uint64_t>(now_ns / time_unit_ns) & ((1u << time_bits) - 1);
    }
};

// A copy of a block, in memory of one's own.
class RecordBlock {
  public:
    RecordBlock(std::byte* memory, std::uint32_t versions, std::uint32_t payload_bytes)
        : memory_(memory), versions_(versions), payload_bytes_(payload_bytes) {}

    std::uint64_t word() const { return get(0); }
    void set_word(std::uint64_t word) { set(0, word); }
    // CID of the version at that place; `leases`: how the word of the newest is to be read.
    std::int64_t cid(std::uint32_t at, bool leases = false) const {
        return at == 0 ? LockWord::cid(get(0), leases) : static_cast<std::int64_t>(get(at));
    }
    std::span<std::byte> payload(std::uint32_t at) const {
        return {memory_ + at * slot_bytes() + word_bytes, payload_bytes_};
    }
    // The place of the newest version that a snapshot sees; -1 where it is no longer kept.
    int visible(std::int64_t rid, bool leases = false) const {
        for (std::uint32_t at = 0; at < versions_; ++at)
            if (cid(at, leases) <= rid && (at == 0 || cid(at) < cid(at - 1, leases)))
                return static_cast<int>(at);
        return -1;
    }
    // Makes room for a new version in front, which starts as a copy of the newest; the oldest goes.
    void shift(bool leases = false) {
        if (versions_ == 1) return;
        std::memmove(memory_ + slot_bytes(), memory_, (versions_ - 1) * slot_bytes());
        set(1, static_cast<std::uint64_t>(LockWord::cid(get(1), leases)));
    }

  private:
    std::size_t slot_bytes() const { return word_bytes + payload_bytes_; }
    std::uint64_t get(std::uint32_t at) const {
        std::uint64_t word;
        std::memcpy(&word, memory_ + at * slot_bytes(), word_bytes);
        return word;
    }
    void set(std::uint32_t at, std::uint64_t word) {
        std::memcpy(memory_ + at * slot_bytes(), &word, word_bytes);
    }

    std::byte* memory_;
    std::uint32_t versions_;
    std::uint32_t payload_bytes_;
};

}  // namespace numatwin::native
