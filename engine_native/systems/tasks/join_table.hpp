// Rows of a table by a key: the hash table of an equi-join, shared by all who build or probe it.
//
// Lines of four slots, half full; a key's rows are in its line, and where that is full in those
// that follow. Who adds a row takes a slot by one compare-and-swap; keys are read only when all
// rows are in. Slots are marked with the number of the join, so that a table serves the next one
// without being emptied.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "memory/mapping.hpp"

namespace numatwin::native::tasks {

class JoinTable {
  public:
    /// For up to so many rows, page by page on all nodes. Throws OutOfMemory.
    explicit JoinTable(std::uint64_t rows)
        : memory_(lines_for(rows) * sizeof(Line), Placement::interleaved(), true) {}

    bool has_room(std::uint64_t rows) const {
        return lines_for(rows) * sizeof(Line) <= memory_.bytes();
    }
    /// Nothing is in it from now on, and no more than `rows` will be.
    void begin(std::uint64_t rows) {
        lines_ = lines_for(rows);
        ++join_;
    }
    /// By several threads at once.
    void add(std::uint64_t key, std::uint32_t row) {
        const std::uint64_t mine = std::uint64_t{join_} << row_bits | row;
        for (std::uint64_t at = home(key);;) {
            Line& line = this->line(at);
            const unsigned taken = line.taken(join_);
            if (taken == slots) {
                at = after(at);
                continue;
            }
            std::uint64_t owner = line.owner[taken].load(std::memory_order_relaxed);
            // relaxed: who probes has waited for the end of all tasks that build.
            if (owner >> row_bits == join_ ||
                !line.owner[taken].compare_exchange_strong(owner, mine, std::memory_order_relaxed))
                continue;
            line.key[taken] = key;
            return;
        }
    }
    /// Calls use(row) for each row of the key. Branches are few, and mostly go one way.
    template <class Use>
    void find(std::uint64_t key, Use use) const {
        for (std::uint64_t at = home(key);; at = after(at)) {
            const Line& line = this->line(at);
            const unsigned taken = line.taken(join_);
            unsigned found = 0;
            for (unsigned k = 0; k < slots; ++k)
                found |= static_cast<unsigned>(line.key[k] == key) << k;
            for (found &= (1U << taken) - 1; found != 0; found &= found - 1)
                use(static_cast<std::uint32_t>(
                    line.owner[std::countr_zero(found)].load(std::memory_order_relaxed)));
            if (taken < slots) return;
        }
    }
    /// Brings the key's line into the caches; and, once it is there, the one after a full line.
    void prefetch(std::uint64_t key) const { __builtin_prefetch(&line(home(key))); }
    void prefetch_more(std::uint64_t key) const {
        const std::uint64_t at = home(key);
        if (line(at).owner[slots - 1].load(std::memory_order_relaxed) >> row_bits == join_)
            __builtin_prefetch(&line(after(at)));
    }

    static constexpr std::size_t row_bytes = 32;  ///< that a row takes, of half-full lines

  private:
    static constexpr unsigned row_bits = 32, slots = 4;
    struct alignas(64) Line {
        std::atomic<std::uint64_t> owner[slots];  // the join's number, the row; taken in order
        std::uint64_t key[slots];

        unsigned taken(std::uint64_t join) const {
            unsigned count = 0;
            for (const std::atomic<std::uint64_t>& each : owner)
                count += each.load(std::memory_order_relaxed) >> row_bits == join;
            return count;
        }
    };
    static_assert(2 * sizeof(Line) == slots * row_bytes);

    static std::uint64_t lines_for(std::uint64_t rows) { return 2 * rows / slots + 1; }
    std::uint64_t home(std::uint64_t key) const {
        // Two odd factors: upper halves of products hardly change between keys that follow.
        key *= 0xD2E7470EE14C6C93u;
        key = (key ^ key >> 32) * 0xCA5A826395121157u;
        return static_cast<std::uint64_t>(static_cast<unsigned __int128>(key) * lines_ >> 64);
    }
    std::uint64_t after(std::uint64_t at) const { return at + 1 == lines_ ? 0 : at + 1; }
    Line& line(std::uint64_t at) const { return reinterpret_cast<Line*>(memory_.begin())[at]; }

    Mapping memory_;
    std::uint64_t lines_ = 0;
    std::uint32_t join_ = 0;  // 2^32 - 1 joins of one table are out of reach
};

}  // namespace numatwin::native::tasks
