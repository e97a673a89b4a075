// Where tuples lie in the region of their owner: a part is reserved for each table, range of
// partitions and sender, as large as that sender has tuples of it. Those of a range follow one
// another.
//
//     word 0                   how many nodes have sent all, in all rounds so far
//     from the next line on    by table, sender and range: how many entries the part has
//     then                     the parts, each from a line on
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "fabric/streaming_copy.hpp"
#include "systems/joins/join_board.hpp"

namespace numatwin::native {

// Partitions that are sent as one: range r holds those from ends[r] to before ends[r + 1], all of
// one node.
class PartRanges {
  public:
    static PartRanges by_partition(const JoinSetup& setup) {
        std::vector<std::uint32_t> ends(setup.partitions + 1), first;
        std::iota(ends.begin(), ends.end(), 0u);
        for (std::uint32_t node = 0; node <= setup.nodes; ++node)
            first.push_back(first_partition(node, setup.bits(), setup.nodes));
        return {std::move(ends), std::move(first)};
    }
    static PartRanges by_node(const JoinSetup& setup) {
        std::vector<std::uint32_t> ends, first(setup.nodes + 1);
        std::iota(first.begin(), first.end(), 0u);
        for (std::uint32_t node = 0; node <= setup.nodes; ++node)
            ends.push_back(first_partition(node, setup.bits(), setup.nodes));
        return {std::move(ends), std::move(first)};
    }

    std::uint32_t size() const { return static_cast<std::uint32_t>(ends_.size()) - 1; }
    // Ranges of a node: from this one to before the first one of the next node.
    std::uint32_t first(std::uint32_t node) const { return first_[node]; }
    // By range, of what is counted by partition.
    std::uint64_t sum(std::span<const std::uint64_t> counts, std::uint32_t range) const {
        return std::accumulate(counts.begin() + ends_[range], counts.begin() + ends_[range + 1],
                               std::uint64_t{0});
    }

  private:
    PartRanges(std::vector<std::uint32_t> ends, std::vector<std::uint32_t> first)
        : ends_(std::move(ends)), first_(std::move(first)) {}
    std::vector<std::uint32_t> ends_, first_;
};

class ReservedParts {
  public:
    // After all counts are on the board.
    ReservedParts(const JoinSetup& setup, const JoinBoard& board, const PartRanges& ranges,
                  std::size_t entry_bytes)
        : nodes_(setup.nodes), ranges_(ranges.size()), entry_bytes_(entry_bytes) {
        const std::uint32_t first_table = setup.joins() ? 0 : 1;
        at_.resize(std::size_t{2} * ranges_ * (nodes_ + 1));
        bytes_.assign(nodes_, whole_lines(word_bytes) + whole_lines(counts_bytes()));
        for (std::uint32_t table = first_table; table < 2; ++table)
            for (std::uint32_t owner = 0; owner < nodes_; ++owner)
                for (auto r = ranges.first(owner); r < ranges.first(owner + 1); ++r) {
                    auto& end = bytes_[owner];
                    for (std::uint32_t sender = 0; sender < nodes_; ++sender) {
                        at_[index(table, r, sender)] = end;
                        end +=
                            whole_lines(ranges.sum(board.counts(sender, table), r) * entry_bytes);
                    }
                    at_[index(table, r, nodes_)] = end;
                }
    }

    std::uint64_t region_bytes(std::uint32_t owner) const { return bytes_[owner]; }
    // `sender` = nodes: the end of the range.
    std::uint64_t at(std::uint32_t table, std::uint32_t range, std::uint32_t sender) const {
        return at_[index(table, range, sender)];
    }
    std::uint64_t room(std::uint32_t table, std::uint32_t range, std::uint32_t sender) const {
        return (at(table, range, sender + 1) - at(table, range, sender)) / entry_bytes_;
    }
    std::uint64_t count_at(std::uint32_t table, std::uint32_t sender, std::uint32_t range) const {
        const std::uint64_t place = (std::uint64_t{table} * nodes_ + sender) * ranges_;
        return line_bytes + (place + range) * word_bytes;
    }

  private:
    static std::uint64_t whole_lines(std::uint64_t bytes) {
        return (bytes + line_bytes - 1) / line_bytes * line_bytes;
    }
    std::uint64_t counts_bytes() const { return std::uint64_t{2} * nodes_ * ranges_ * word_bytes; }
    std::size_t index(std::uint32_t table, std::uint32_t range, std::uint32_t sender) const {
        return (std::size_t{table} * ranges_ + range) * (nodes_ + 1) + sender;
    }

    std::uint32_t nodes_, ranges_;
    std::uint64_t entry_bytes_;
    std::vector<std::uint64_t> at_, bytes_;
};

}  // namespace numatwin::native
