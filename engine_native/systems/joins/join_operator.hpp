// A distributed operator as one node runs it.
//
//     rrj               both tables are partitioned straight into the reserved parts of the owners'
//                       memory (one-sided); then each owner joins its partitions
//     ghj               tuples go to their owner in messages, which it copies into its memory; it
//                       partitions them there, then joins the partitions
//     ghj-bloom         the same, but only tuples go that a Bloom filter of the other table lets
//                       through: each node sends filters of what it has to all others, of the inner
//                       table first, then of what these left of the outer one
//     rdma-ghj          tuples are written into the reserved part of their owner's memory while the
//                       scan goes on (one-sided); it partitions and joins them there
//     aggregation       each node aggregates its share into a table of all its groups; these go to
//                       their owner in messages, which adds them up
//     rdma-aggregation  the table stays in a cache: whenever it is full its groups are partitioned
//                       straight into the owners' memory, and it is emptied; then each owner adds
//                       up its partitions
//
// Binnig et al., The End of Slow Networks, PVLDB 9 (2016), section 5.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fabric/streaming_copy.hpp"
#include "memory/clock.hpp"
#include "systems/joins/join_board.hpp"

namespace numatwin::native {

// What an operator works with. The others' regions: peers[node], after all are connected.
struct JoinNode {
    const JoinSetup& setup;
    JoinBoard& board;
    std::uint32_t node;
    Fabric& fabric;
    std::span<std::byte> region;
    std::vector<Fabric::Peer> peers;  // by node; that of this node is of no meaning

    unsigned bits() const { return setup.bits(); }
    std::uint32_t owner(std::uint64_t hash) const {
        return owner_of(partition_of(hash, bits()), bits(), setup.nodes);
    }
    std::uint32_t first_own() const { return first_partition(node, bits(), setup.nodes); }
    std::uint32_t end_own() const { return first_partition(node + 1, bits(), setup.nodes); }
};

class JoinOperator {
  public:
    virtual ~JoinOperator() = default;
    // Of memory that the others write; before play(), as soon as all counts are on the board.
    virtual std::uint64_t region_bytes() const { return line_bytes; }
    // One round. `round` counts from 0.
    virtual void play(std::uint32_t round, NodeFigures& figures) = 0;
    // Of the last round, where rows are kept.
    virtual std::vector<ResultRow> take_rows() = 0;
};

// Times of phases, one after another.
class PhaseClock {
  public:
    explicit PhaseClock(NodeFigures& figures)
        : figures_(figures), since_ns_(steady_ns()), cpu_since_ns_(cpu_ns()) {}
    void end(std::size_t phase) {
        const std::int64_t now = steady_ns(), cpu = cpu_ns();
        figures_.phase_ns[phase] = now - since_ns_;
        figures_.cpu_ns[phase] = cpu - cpu_since_ns_;
        since_ns_ = now;
        cpu_since_ns_ = cpu;
    }

  private:
    NodeFigures& figures_;
    std::int64_t since_ns_, cpu_since_ns_;
};

// Makes a node's part of each operator. The node and its tables live as long as that.

template <class Word>
std::unique_ptr<JoinOperator> make_join(JoinNode& node, const NodeTables<Word>& tables);
template <class Word>
std::unique_ptr<JoinOperator> make_message_join(JoinNode& node, const NodeTables<Word>& tables);
template <class Word>
std::unique_ptr<JoinOperator> make_aggregation(JoinNode& node, const NodeTables<Word>& tables);

template <class Word>
std::unique_ptr<JoinOperator> make_operator(JoinNode& node, const NodeTables<Word>& tables) {
    return node.setup.joins() ? make_join(node, tables) : make_aggregation(node, tables);
}

}  // namespace numatwin::native
