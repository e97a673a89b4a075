// Rows of a table by a key: the hash table of an equi-join, shared by all who build or probe it.
//
// Open addressing with linear probing, half full. Who adds a row takes a slot by one
// compare-and-swap; keys are read only when all rows are in. Slots are marked with the number of
// the join, so that a table serves the next one without being emptied.
#pragma once

#include <atomic>
#include <cstdint>

#include "memory/mapping.hpp"

namespace numatwin::native::tasks {

class JoinTable {
  public:
    /// For up to so many rows, page by page on all nodes. Throws OutOfMemory.
    explicit JoinTable(std::uint64_t rows)
        : memory_(slots_for(rows) * sizeof(Slot), Placement::interleaved(), true) {}

    bool has_room(std::uint64_t rows) const {
        return slots_for(rows) * sizeof(Slot) <= memory_.bytes();
    }
    /// Nothing is in it from now on, and no more than `rows` will be.
    void begin(std::uint64_t rows) {
        slots_ = slots_for(rows);
        ++join_;
    }
    /// By several threads at once.
    void add(std::uint64_t key, std::uint32_t row) {
        const std::uint64_t mine = std::uint64_t{join_} << row_bits | row;
        for (std::uint64_t at = home(key);; at = after(at)) {
            std::uint64_t owner = slot(at).owner.load(std::memory_order_relaxed);
            if (owner >> row_bits == join_) continue;
            // relaxed: who probes has waited for the end of all tasks that build.
            if (!slot(at).owner.compare_exchange_strong(owner, mine, std::memory_order_relaxed))
                continue;
            slot(at).key = key;
            return;
        }
    }
    /// Calls use(row) for each row of the key.
    template <class Use>
    void find(std::uint64_t key, Use use) const {
        for (std::uint64_t at = home(key);; at = after(at)) {
            const std::uint64_t owner = slot(at).owner.load(std::memory_order_relaxed);
            if (owner >> row_bits != join_) return;
            if (slot(at).key == key) use(static_cast<std::uint32_t>(owner));
        }
    }
    /// Where the key most likely is comes into the caches.
    void prefetch(std::uint64_t key) const { __builtin_prefetch(&slot(home(key))); }

    static constexpr std::size_t row_bytes = 32;  ///< that a row takes, of half-full slots

  private:
    struct Slot {
        std::atomic<std::uint64_t> owner;  // the join's number, the row
        std::uint64_t key;
    };
    static constexpr unsigned row_bits = 32;
    static_assert(row_bytes == 2 * sizeof(Slot));

    static std::uint64_t slots_for(std::uint64_t rows) { return 2 * rows + 2; }
    std::uint64_t home(std::uint64_t key) const {
        // Two odd factors: upper halves of products hardly change between keys that follow.
        key *= 0xD2E7470EE14C6C93u;
        key = (key ^ key >> 32) * 0xCA5A826395121157u;
        return static_cast<std::uint64_t>(static_cast<unsigned __int128>(key) * slots_ >> 64);
    }
    std::uint64_t after(std::uint64_t at) const { return at + 1 == slots_ ? 0 : at + 1; }
    Slot& slot(std::uint64_t at) const { return reinterpret_cast<Slot*>(memory_.begin())[at]; }

    Mapping memory_;
    std::uint64_t slots_ = 0;
    std::uint32_t join_ = 0;  // of 2^32 - 1, no table is left as it is for so long
};

}  // namespace numatwin::native::tasks
