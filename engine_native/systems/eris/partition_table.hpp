// Which worker owns a key: a range-partitioned object's table, a CSB+-tree.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "memory/memory.hpp"
#include "systems/eris/command.hpp"
#include "systems/eris/pause_points.hpp"

namespace numatwin::native {

// Owners of keys in a small partition table, of at most 64 partitions: all of it in registers.
//
// A binary search among the partitions' last keys, eight keys at a time: on each level a key's
// separator is picked from a register by the way it has come, and compared. The way itself, a bit a
// level, first step lowest, says which owner it is: levels and owners lie in the order of ways.

struct alignas(64) RankTable {
    static constexpr std::size_t most_partitions = 64;

    unsigned levels;
    /// What is not used: the greatest key, which no key is above.
    alignas(64) std::uint64_t separators[6][32];
    std::uint32_t owners[most_partitions];
};

namespace rank_search {

/// Whether this CPU can; needed for find().
bool available();
/// Of partitions that are not empty, in order: last keys, and owners. At most 64, at least one.
RankTable table_of(std::span<const std::uint64_t> last, std::span<const std::uint32_t> owners);
/// Owners of `count` keys that lie `stride` words apart, 1 or 2.
void find(const RankTable& table, const std::uint64_t* keys, std::size_t stride, std::size_t count,
          std::uint32_t* found);

}  // namespace rank_search

/// Partition p holds the keys from `first_key` up to the next one's; owned by worker `owner`.
struct Partition {
    std::uint64_t first_key;
    std::uint32_t owner;
    bool operator==(const Partition&) const = default;
};

/// One version of a table. Never changes; balancing builds another.
///
/// CSB+-tree (Rao and Ross, Making B+-trees cache conscious in main memory, SIGMOD 2000): a node is
/// one cache line of seven separators and the number of its first child; its up to eight children
/// lie next to each other, so that one number leads to all of them. Separators are the last keys of
/// the children: child = how many of them are below the key, counted without a branch. Empty
/// partitions are not in the tree. A batch goes down level by level, all its keys together, so that
/// their misses overlap. A tree of at most 64 partitions needs no memory at all: RankTable.
class PartitionTree {
  public:
    /// By first key, the first of which is 0. Where several begin at one key, all but the last are
    /// empty. Throws std::invalid_argument and std::bad_alloc.
    PartitionTree(Memory& memory, std::span<const Partition> partitions, std::uint64_t version);
    ~PartitionTree();
    PartitionTree(const PartitionTree&) = delete;
    PartitionTree& operator=(const PartitionTree&) = delete;

    std::uint64_t version() const { return version_; }
    std::span<const Partition> partitions() const { return partitions_; }
    std::uint32_t owner(std::uint64_t key) const;
    /// Owners of many keys: `owners` is as long as `keys`.
    void find_owners(std::span<const std::uint64_t> keys, std::uint32_t* owners) const;
    /// The same of the pairs' keys.
    void find_owners(std::span<const Pair> pairs, std::uint32_t* owners) const;

    struct alignas(64) Node {
        std::uint64_t last[7];      // of the children but the last; unused ones: the greatest key
        std::uint64_t first_child;  // on the lowest level, the first of the owners
    };

  private:
    std::size_t bytes() const;

    template <class Entry>
    void find(std::span<const Entry> entries, std::uint32_t* owners) const;

    Memory& memory_;
    std::uint64_t version_;
    std::vector<Partition> partitions_;
    std::size_t nodes_ = 0, levels_ = 0, leaves_ = 0;
    std::optional<RankTable> ranks_;  // the same once more, where it is small and the CPU can
    Node* node_ = nullptr;            // the root first, then level by level
    std::uint32_t* owner_ = nullptr;  // of the partitions that are not empty, in order
};

/// The current version of a table, replaced while readers read.
///
/// Each reader has a number and a slot, in which it announces the version that it uses (hazard
/// pointers: Michael, IEEE TPDS 15(6), 2004):
///   reader:   R1  slot <- current          R2  current as before? else again from R1
///   replace:  P1  current <- new           P2  frees each old version that no slot holds
/// All four are sequentially consistent: either P2 sees R1's announcement, and the version stays,
/// or R1 came after P2's look and so R2 sees P1's change, and the reader takes the new one. With
/// less, the processor might do R2's load before R1's store, and both would miss each other.
/// A reader begins again only when a replacement came in between. Nobody waits.
class PartitionTable {
  public:
    PartitionTable(Memory& memory, std::size_t readers, std::span<const Partition> partitions);
    ~PartitionTable();
    PartitionTable(const PartitionTable&) = delete;
    PartitionTable& operator=(const PartitionTable&) = delete;

    /// A reader, at the start of its round: the current version. It stays valid until the reader's
    /// next call. Never waits.
    const PartitionTree& read(std::size_t reader) {
        std::atomic<const PartitionTree*>& slot = slots_[reader].uses;
        const PartitionTree* tree = current_.load(std::memory_order_seq_cst);
        if (slot.load(std::memory_order_relaxed) == tree) {
            return *tree;  // its own slot, so that it is announced already
        }
        for (;;) {
            slot.store(tree, std::memory_order_seq_cst);  // R1
            NUMATWIN_PAUSE_AT("table: announced");
            const PartitionTree* now = current_.load(std::memory_order_seq_cst);  // R2
            if (now == tree) {
                return *tree;
            }
            tree = now;
        }
    }
    /// A reader that reads no more for now.
    void leave(std::size_t reader) {
        // release: what it has read, it has read before the version is freed
        slots_[reader].uses.store(nullptr, std::memory_order_release);
    }

    // One thread at a time:
    /// The next version; its number. Old ones are freed once no reader uses them. Throws
    /// std::invalid_argument and std::bad_alloc; then the table is as before.
    std::uint64_t replace(std::span<const Partition> partitions);
    /// Frees the old versions that no reader uses any more; how many are left.
    std::size_t free_unused();
    /// The newest version; valid until the next replace().
    const PartitionTree& newest() const { return *versions_.back(); }

    /// Any thread: whether no reader uses another version than the newest, so that none will send
    /// by an older one. What they have sent before may still be on its way.
    bool all_use_newest() const;

  private:
    struct alignas(128) Slot {
        std::atomic<const PartitionTree*> uses{nullptr};
    };

    Memory& memory_;
    std::vector<Slot> slots_;
    std::vector<std::unique_ptr<const PartitionTree>> versions_;  // the newest last
    alignas(128) std::atomic<const PartitionTree*> current_;
};

}  // namespace numatwin::native
