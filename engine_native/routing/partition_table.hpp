// Which worker owns a key: a range-partitioned object's table, a CSB+-tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "memory/memory.hpp"

namespace numatwin::native {

/// Partition p holds the keys from `first_key` up to the next one's; owned by worker `owner`.
struct Partition {
    std::uint64_t first_key;
    std::uint32_t owner;
    bool operator==(const Partition&) const = default;
};

/// One version of a table. Never changes; balancing builds another.
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
    /// Owners of many keys at once: `owners` is as long as `keys`.
    void owners(std::span<const std::uint64_t> keys, std::uint32_t* owners) const;
    /// The same of keys that lie `stride` words apart.
    void owners(const std::uint64_t* keys, std::size_t stride, std::size_t count,
                std::uint32_t* owners) const;

  private:
    Memory& memory_;
    std::uint64_t version_;
    std::vector<Partition> partitions_;
    struct Levels;
    Levels* levels_ = nullptr;
};

/// The current version, replaced while readers read. Each reader has a number.
class PartitionTable {
  public:
    PartitionTable(Memory& memory, std::size_t readers, std::span<const Partition> partitions);
    ~PartitionTable();
    PartitionTable(const PartitionTable&) = delete;
    PartitionTable& operator=(const PartitionTable&) = delete;

    /// A reader, at the start of its round: the current version. It stays valid until the reader's
    /// next call. Never waits.
    const PartitionTree& read(std::size_t reader);
    /// A reader that reads no more; it may come back by read().
    void leave(std::size_t reader);

    /// One thread at a time: the next version. The old one is freed once no reader uses it.
    /// Returns the new version's number: 1 after the first.
    std::uint64_t replace(std::span<const Partition> partitions);
    /// Whether every reader that has not left has read `version` or a later one.
    bool all_have_read(std::uint64_t version) const;
    /// The replacing thread: the current version's number, and how many are not freed yet.
    std::uint64_t version() const;
    std::size_t versions_held();
};

}  // namespace numatwin::native
