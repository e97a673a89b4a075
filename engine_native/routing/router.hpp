// The batch path of routing: owners of many keys at once, split by owner, append, flush when full.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "routing/outgoing_buffers.hpp"
#include "routing/partition_table.hpp"

namespace numatwin::native {

class Router {
  public:
    explicit Router(OutgoingBuffers& outgoing);

    /// Keys (entry_words 1) or pairs (entry_words 2) to their owners. Returns how many, from the
    /// front, were taken: fewer than there are only where the next one's owner has no room.
    std::size_t route_keys(const PartitionTree& table, CommandHeader header,
                           std::span<const std::uint64_t> keys);
    std::size_t route_pairs(const PartitionTree& table, CommandHeader header,
                            std::span<const Pair> pairs);
    /// The same, never refused: for what is forwarded.
    void forward_keys(const PartitionTree& table, CommandHeader header,
                      std::span<const std::uint64_t> keys);
    void forward_pairs(const PartitionTree& table, CommandHeader header,
                       std::span<const Pair> pairs);
};

}  // namespace numatwin::native
