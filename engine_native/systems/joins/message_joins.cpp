// The joins whose tuples go to their owner in messages: Grace hash join, and the same behind
// semi-joins by Bloom filters.
#include <cstring>
#include <span>
#include <vector>

#include "systems/joins/bloom_filter.hpp"
#include "systems/joins/join_operator.hpp"
#include "systems/joins/local_partitions.hpp"
#include "systems/joins/message_exchange.hpp"

namespace numatwin::native {
namespace {

constexpr std::uint32_t inner = 0, outer = 1, inner_filter = 2, outer_filter = 3;

// Tuples that came, and those that stayed.
template <class Word>
class Received {
  public:
    void clear() {
        for (auto& tuples : tuples_) tuples.clear();
    }
    void keep(std::uint32_t table, const Tuple<Word>& tuple) { tuples_[table].push_back(tuple); }
    void take(std::uint32_t table, std::span<const std::byte> entries) {
        auto& tuples = tuples_[table];
        const std::size_t before = tuples.size();
        tuples.resize(before + entries.size() / sizeof(Tuple<Word>));
        std::memcpy(tuples.data() + before, entries.data(), entries.size());
    }
    std::span<const Tuple<Word>> of(std::uint32_t table) const { return tuples_[table]; }

  private:
    std::vector<Tuple<Word>> tuples_[2];
};

template <class Word>
class GraceJoin final : public JoinOperator {
  public:
    GraceJoin(JoinNode& at, const NodeTables<Word>& tables)
        : at_(at),
          tables_(tables),
          filters_{{at.setup.nodes, at.setup.filter_error},
                   {at.setup.nodes, at.setup.filter_error}},
          exchange_(at,
                    [this](std::uint32_t sender, std::uint32_t table,
                           std::span<const std::byte> entries) { take(sender, table, entries); }),
          local_(at) {}

    void play(std::uint32_t, NodeFigures& figures) override {
        PhaseClock clock(figures);
        received_.clear();
        if (at_.setup.kind() == Operator::filtered_grace_join)
            send_filtered();
        else
            send_all();
        exchange_.wait_for({inner, outer});
        clock.end(0);
        const auto of_inner = received_.of(inner), of_outer = received_.of(outer);
        local_.play(std::span(&of_inner, 1), std::span(&of_outer, 1), clock, figures);
        figures.sent_bytes = exchange_.take_sent_bytes();
    }
    std::vector<ResultRow> take_rows() override { return local_.take_rows(); }

  private:
    void send_all() {
        for (const std::uint32_t table : {inner, outer}) {
            for (const auto& tuple : table == inner ? tables_.inner : tables_.outer)
                send(table, tuple);
            exchange_.finish(table);
        }
    }
    // The outer table is reduced by filters of the inner one, then that by filters of what is left.
    void send_filtered() {
        passed_.clear();
        share_filter(inner_filter, tables_.inner);
        for (const auto& tuple : tables_.outer)
            if (filters_[0].may_have(tuple.key)) {
                passed_.push_back(tuple);
                send(outer, tuple);
            }
        exchange_.finish(outer);
        share_filter(outer_filter, passed_);
        for (const auto& tuple : tables_.inner)
            if (filters_[1].may_have(tuple.key)) send(inner, tuple);
        exchange_.finish(inner);
    }
    // Of all nodes' tuples, on all nodes.
    void share_filter(std::uint32_t number, const std::vector<Tuple<Word>>& tuples) {
        auto& filters = filters_[number - inner_filter];
        auto& own = filters.make_own(at_.node, tuples.size());
        for (const auto& tuple : tuples) own.add(tuple.key);
        exchange_.send_to_all(number, std::as_bytes(own.words()));
        exchange_.finish(number);
        exchange_.wait_for({number});
        filters.take_all_but(at_.node);
    }
    void send(std::uint32_t table, const Tuple<Word>& tuple) {
        const std::uint32_t owner = at_.owner(scattered(tuple.key));
        if (owner == at_.node)
            received_.keep(table, tuple);
        else
            exchange_.append(owner, table, tuple);
    }
    void take(std::uint32_t sender, std::uint32_t table, std::span<const std::byte> entries) {
        if (table <= outer) return received_.take(table, entries);
        auto& words = filters_[table - inner_filter].coming(sender);
        const std::size_t before = words.size();
        words.resize(before + entries.size() / sizeof(std::uint64_t));
        std::memcpy(words.data() + before, entries.data(), entries.size());
    }

    JoinNode& at_;
    const NodeTables<Word>& tables_;
    NodeFilters filters_[2];
    MessageExchange<Tuple<Word>> exchange_;
    Received<Word> received_;
    std::vector<Tuple<Word>> passed_;
    LocalJoin<Word> local_;
};

}  // namespace

template <class Word>
std::unique_ptr<JoinOperator> make_message_join(JoinNode& node, const NodeTables<Word>& tables) {
    return std::make_unique<GraceJoin<Word>>(node, tables);
}

template std::unique_ptr<JoinOperator> make_message_join(JoinNode&,
                                                         const NodeTables<std::uint32_t>&);
template std::unique_ptr<JoinOperator> make_message_join(JoinNode&,
                                                         const NodeTables<std::uint64_t>&);

}  // namespace numatwin::native
