// Rows of a table by a key: the hash table of an equi-join, shared by all who build or probe it.
//
// Lines of four slots, half full; a key's rows are in its line, and where that had no room in those
// that follow: who went on leaves a mark, without which nobody looks there. Who adds a row takes a
// slot by one compare-and-swap; keys are read only when all rows are in. Slots have the number of
// the join, so that a table serves the next one without being emptied.
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
    /// The line in which a key's rows are first looked for.
    std::uint64_t home(std::uint64_t key) const {
        // Two odd factors: upper halves of products hardly change between keys that follow.
        key *= 0xD2E7470EE14C6C93u;
        key = (key ^ key >> 32) * 0xCA5A826395121157u;
        return static_cast<std::uint64_t>(static_cast<unsigned __int128>(key) * lines_ >> 64);
    }
    /// Brings a line into the caches; and, once it is there, the one after it where rows went on.
    void prefetch(std::uint64_t at) const { __builtin_prefetch(&line(at)); }
    void prefetch_more(std::uint64_t at) const {
        if (was_passed(line(at))) __builtin_prefetch(&line(after(at)));
    }
    /// A row of a key whose home is `at`; by several threads at once.
    void add(std::uint64_t at, std::uint64_t key, std::uint32_t row) {
        const std::uint64_t mine = std::uint64_t{join_} << row_bits | row;
        for (;; at = after(at)) {
            Line& line = this->line(at);
            for (unsigned k = 0; k < slots; ++k) {
                std::uint64_t owner = line.owner[k].load(std::memory_order_relaxed);
                // relaxed: who probes has waited for the end of all tasks that build.
                if (is_mine(owner) ||
                    !line.owner[k].compare_exchange_strong(owner, mine, std::memory_order_relaxed))
                    continue;
                line.key[k] = key;
                return;
            }
            if (!was_passed(line))
                line.owner[slots - 1].fetch_or(passed, std::memory_order_relaxed);
        }
    }
    /// Calls use(row) for each row of a key whose home is `at`; branches mostly go one way.
    template <class Use>
    void find(std::uint64_t at, std::uint64_t key, Use use) const {
        for (;; at = after(at)) {
            const Line& line = this->line(at);
            unsigned found = 0;
            for (unsigned k = 0; k < slots; ++k)
                found |= static_cast<unsigned>(line.key[k] == key) << k;
            for (; found != 0; found &= found - 1) {
                const std::uint64_t owner =
                    line.owner[std::countr_zero(found)].load(std::memory_order_relaxed);
                if (is_mine(owner)) use(static_cast<std::uint32_t>(owner));
            }
            if (!was_passed(line)) return;
        }
    }

    static constexpr std::size_t row_bytes = 32;  ///< that a row takes, of half-full lines

  private:
    static constexpr unsigned row_bits = 32, slots = 4;
    static constexpr std::uint64_t passed = std::uint64_t{1} << 63;
    struct alignas(64) Line {
        // The last one's mark, the join's number, the row; taken in order.
        std::atomic<std::uint64_t> owner[slots];
        std::uint64_t key[slots];
    };
    static_assert(2 * sizeof(Line) == slots * row_bytes);

    static std::uint64_t lines_for(std::uint64_t rows) { return 2 * rows / slots + 1; }
    bool is_mine(std::uint64_t owner) const { return (owner & ~passed) >> row_bits == join_; }
    bool was_passed(const Line& line) const {
        const std::uint64_t last = line.owner[slots - 1].load(std::memory_order_relaxed);
        return (last & passed) != 0 && is_mine(last);
    }
    std::uint64_t after(std::uint64_t at) const { return at + 1 == lines_ ? 0 : at + 1; }
    Line& line(std::uint64_t at) const { return reinterpret_cast<Line*>(memory_.begin())[at]; }

    Mapping memory_;
    std::uint64_t lines_ = 0;
    std::uint32_t join_ = 0;  // 2^31 - 1 joins of one table are out of reach
};

}  // namespace numatwin::native::tasks
