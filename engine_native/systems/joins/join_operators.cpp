// The joins whose tuples are written into their owners' memory: RDMA radix join, RDMA Grace hash
// join.
#include <utility>

#include "systems/joins/join_operator.hpp"
#include "systems/joins/local_partitions.hpp"
#include "systems/joins/one_sided_parts.hpp"
#include "systems/joins/partition_join.hpp"

namespace numatwin::native {
namespace {

template <class Word>
class RadixJoin final : public JoinOperator {
  public:
    RadixJoin(JoinNode& at, const NodeTables<Word>& tables)
        : at_(at),
          tables_(tables),
          parts_(at, PartRanges::by_partition(at.setup)),
          join_(at.bits(), at.setup.keep_rows) {}

    std::uint64_t region_bytes() const override { return parts_.region_bytes(); }

    void play(std::uint32_t round, NodeFigures& figures) override {
        PhaseClock clock(figures);
        const unsigned bits = at_.bits();
        for (const std::uint32_t table : {0u, 1u}) {
            parts_.begin(table);
            for (const auto& tuple : table == 0 ? tables_.inner : tables_.outer)
                parts_.append(partition_of(scattered(tuple.key), bits), tuple);
            parts_.finish(table);
        }
        clock.end(0);
        parts_.exchange(round);
        clock.end(1);
        join_.rows.clear();
        for (std::uint32_t p = at_.first_own(); p < at_.end_own(); ++p)
            join_.join(parts_.parts(0, p), parts_.parts(1, p), figures.found);
        clock.end(2);
        figures.rows = figures.found.tuples;
        figures.sent_bytes = parts_.take_sent_bytes();
    }
    std::vector<ResultRow> take_rows() override { return std::move(join_.rows); }

  private:
    JoinNode& at_;
    const NodeTables<Word>& tables_;
    OneSidedParts<Tuple<Word>> parts_;
    PartitionJoin<Word> join_;
};

// Tuples are written into the memory of their owner while the scan goes on; the owner
// partitions them there.
template <class Word>
class OneSidedGraceJoin final : public JoinOperator {
  public:
    OneSidedGraceJoin(JoinNode& at, const NodeTables<Word>& tables)
        : at_(at), tables_(tables), parts_(at, PartRanges::by_node(at.setup)), local_(at) {}

    std::uint64_t region_bytes() const override { return parts_.region_bytes(); }

    void play(std::uint32_t round, NodeFigures& figures) override {
        PhaseClock clock(figures);
        for (const std::uint32_t table : {0u, 1u}) {
            parts_.begin(table);
            for (const auto& tuple : table == 0 ? tables_.inner : tables_.outer)
                parts_.append(at_.owner(scattered(tuple.key)), tuple);
            parts_.finish(table);
        }
        parts_.exchange(round);
        clock.end(0);
        local_.play(parts_.parts(0, at_.node), parts_.parts(1, at_.node), clock, figures);
        figures.sent_bytes = parts_.take_sent_bytes();
    }
    std::vector<ResultRow> take_rows() override { return local_.take_rows(); }

  private:
    JoinNode& at_;
    const NodeTables<Word>& tables_;
    OneSidedParts<Tuple<Word>> parts_;
    LocalJoin<Word> local_;
};

}  // namespace

template <class Word>
std::unique_ptr<JoinOperator> make_join(JoinNode& node, const NodeTables<Word>& tables) {
    switch (node.setup.kind()) {
        case Operator::radix_join:
            return std::make_unique<RadixJoin<Word>>(node, tables);
        case Operator::one_sided_grace_join:
            return std::make_unique<OneSidedGraceJoin<Word>>(node, tables);
        default:
            return make_message_join(node, tables);
    }
}

template std::unique_ptr<JoinOperator> make_join(JoinNode&, const NodeTables<std::uint32_t>&);
template std::unique_ptr<JoinOperator> make_join(JoinNode&, const NodeTables<std::uint64_t>&);

}  // namespace numatwin::native
