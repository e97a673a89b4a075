// Sends partitioned entries into the reserved parts of their owners, by one-sided requests alone.
//
// Who has sent all of a round to a node first sees that it landed, then puts there how many entries
// each part has, then adds 1 to the word at the beginning of that region. An owner whose word shows
// all others reads its parts.
#pragma once

#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "systems/joins/join_operator.hpp"
#include "systems/joins/partition_buffers.hpp"
#include "systems/joins/reserved_parts.hpp"

namespace numatwin::native {

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
