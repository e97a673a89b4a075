// The batch path of routing: owners of many keys at once, split by owner, append, flush when full.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "systems/eris/outgoing_buffers.hpp"
#include "systems/eris/partition_table.hpp"

namespace numatwin::native {

class Router {
  public:
    explicit Router(OutgoingBuffers& outgoing) : outgoing_(outgoing) {}

    /// Keys or pairs to their owners. Returns how many, from the front, were taken: fewer than
    /// there are only where the next one's owner has no room.
    std::size_t route_keys(const PartitionTree& table, const CommandHeader& header,
                           std::span<const std::uint64_t> keys) {
        return route(table, keys, [&](std::span<const std::uint64_t> some) {
            return outgoing_.append_keys(header, some, owners_);
        });
    }
    std::size_t route_pairs(const PartitionTree& table, const CommandHeader& header,
                            std::span<const Pair> pairs) {
        return route(table, pairs, [&](std::span<const Pair> some) {
            return outgoing_.append_pairs(header, some, owners_);
        });
    }

  private:
    // So many at a time: their owners stay in the nearest cache between the two steps.
    static constexpr std::size_t at_once = 512;

    template <class Entry, class Append>
    std::size_t route(const PartitionTree& table, std::span<const Entry> entries, Append&& append) {
        for (std::size_t from = 0; from < entries.size(); from += at_once) {
            const auto some = entries.subspan(from, std::min(at_once, entries.size() - from));
            table.find_owners(some, owners_);
            const std::size_t taken = append(some);
            if (taken < some.size()) {
                return from + taken;
            }
        }
        return entries.size();
    }

    OutgoingBuffers& outgoing_;
    std::uint32_t owners_[at_once];
};

}  // namespace numatwin::native
