// Sends partitioned entries into the reserved parts of their owners, by one-sided requests alone.
//
// Who has sent all of a round to a node first sees that it landed, then puts there how many entries
// each part has, then adds 1 to the word at the beginning of that region. An owner whose word shows
// all others reads its parts.
#pragma once

#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "fabric/streaming_copy.hpp"
#include "systems/joins/join_board.hpp"
#include "systems/joins/join_operator.hpp"
#include "systems/joins/partition_buffers.hpp"

namespace numatwin::native {

// Where tuples lie in the region of their owner: a part is reserved for each table, range of
// partitions and sender, as large as that sender has tuples of it. Those of a range follow one
// another.
//
//     word 0                   how many nodes have sent all, in all rounds so far
//     from the next line on    by table, sender and range: how many entries the part has
//     then                     the parts, each from a line on

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

template <class Entry>
class OneSidedParts {
  public:
    using Part = std::span<const Entry>;

    // Each of `ranges` is sent as one.
    OneSidedParts(JoinNode& at, PartRanges ranges)
        : at_(at),
          ranges_(std::move(ranges)),
          reserved_(at.setup, at.board, ranges_, sizeof(Entry)),
          buffers_(at.fabric, {at.setup.buffer_bytes, at.setup.signal_every, at.setup.streaming}) {}

    std::uint64_t region_bytes() const { return reserved_.region_bytes(at_.node); }

    // Ranges follow, by table; each table is finished before the next begins.
    void begin(std::uint32_t table) {
        std::vector<PartitionPlace> places;
        for (std::uint32_t owner = 0; owner < at_.setup.nodes; ++owner) {
            const auto [region, peer] = region_of(owner);
            for (auto r = ranges_.first(owner); r < ranges_.first(owner + 1); ++r) {
                const std::uint64_t at = reserved_.at(table, r, at_.node);
                places.push_back({region == nullptr ? nullptr : region + at, peer, at,
                                  reserved_.room(table, r, at_.node)});
            }
        }
        buffers_.open(std::move(places));
    }
    void append(std::uint32_t range, const Entry& entry) { buffers_.append(range, entry); }
    // Of the table; tells its counts.
    void finish(std::uint32_t table) {
        buffers_.finish();
        counts_[table] = buffers_.written();
        for (std::uint32_t to = 0; to < at_.setup.nodes; ++to) {
            const std::uint32_t first = ranges_.first(to), end = ranges_.first(to + 1);
            const auto* from = reinterpret_cast<const std::byte*>(&counts_[table][first]);
            const std::size_t bytes = (end - first) * word_bytes;
            const std::uint64_t into = reserved_.count_at(table, at_.node, first);
            const auto [region, peer] = region_of(to);
            if (region != nullptr)
                copy_shared(region + into, from, bytes);
            else
                at_.fabric.put(peer, into, from, bytes);
            if (to == at_.node) continue;
            for (std::uint32_t r = first; r < end; ++r)
                sent_bytes_ += counts_[table][r] * sizeof(Entry);
        }
    }
    // Tells the others that all is sent, and waits for what they send in this round.
    void exchange(std::uint32_t round) {
        Pending pending;
        for_others([&](Fabric::Peer peer) { at_.fabric.flush(peer, pending); });
        at_.fabric.wait(pending);
        for_others([&](Fabric::Peer peer) { at_.fabric.add(peer, 0, one_); });
        for_others([&](Fabric::Peer peer) { at_.fabric.flush(peer, pending); });
        at_.fabric.wait(pending);
        const std::uint64_t all = std::uint64_t{at_.setup.nodes - 1} * (round + 1);
        at_.board.wait(at_.fabric, [&] { return load_acquire(at_.region.data()) >= all; });
    }
    // What has come of an own range, by sender.
    std::vector<Part> parts(std::uint32_t table, std::uint32_t range) const {
        std::vector<Part> found;
        for (std::uint32_t sender = 0; sender < at_.setup.nodes; ++sender) {
            const auto* begin =
                reinterpret_cast<const Entry*>(&at_.region[0] + reserved_.at(table, range, sender));
            std::uint64_t count;
            std::memcpy(&count, &at_.region[reserved_.count_at(table, sender, range)],
                        sizeof count);
            found.emplace_back(begin, count);
        }
        return found;
    }
    std::uint64_t take_sent_bytes() { return std::exchange(sent_bytes_, 0); }

  private:
    // Null where it is out of this processor's reach.
    std::pair<std::byte*, Fabric::Peer> region_of(std::uint32_t node) const {
        if (node == at_.node) return {at_.region.data(), 0};
        return {at_.fabric.reach(at_.peers[node]), at_.peers[node]};
    }
    template <class Use>
    void for_others(Use use) const {
        for (std::uint32_t node = 0; node < at_.setup.nodes; ++node)
            if (node != at_.node) use(at_.peers[node]);
    }

    JoinNode& at_;
    PartRanges ranges_;
    ReservedParts reserved_;
    PartitionBuffers<Entry> buffers_;
    std::vector<std::uint64_t> counts_[2];
    std::uint64_t sent_bytes_ = 0;
    const std::uint64_t one_ = 1;
};

}  // namespace numatwin::native
