// Going down a partition table's tree with many keys at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "systems/eris/partition_table.hpp"

namespace numatwin::native::node_search {

struct Tree {
    const PartitionTree::Node* nodes;  // the root first, then level by level
    std::size_t levels;
    const std::uint32_t* owners;
};

/// Owners of `count` keys that lie `stride` words apart, 1 or 2.
void find(const Tree& tree, const std::uint64_t* keys, std::size_t stride, std::size_t count,
          std::uint32_t* found);

/// The same without SIMD of its own.
void find_portable(const Tree& tree, const std::uint64_t* keys, std::size_t stride,
                   std::size_t count, std::uint32_t* found);

}  // namespace numatwin::native::node_search
