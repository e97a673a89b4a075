// The aggregations: by messages, and by one-sided requests.
#include <bit>
#include <cstring>
#include <span>
#include <utility>

#include "systems/joins/group_table.hpp"
#include "systems/joins/join_operator.hpp"
#include "systems/joins/message_exchange.hpp"
#include "systems/joins/one_sided_parts.hpp"

namespace numatwin::native {
namespace {

// Few at first: the number of groups is unknown.
constexpr std::uint64_t slots_at_first = 1'024;

// Counts the groups of a final table, and keeps them where they are asked for.
class GroupResult {
  public:
    explicit GroupResult(bool keep) : keep_(keep) {}
    void clear() { rows.clear(); }
    void take(const GroupTable& table, NodeFigures& figures) {
        figures.rows += table.used();
        table.for_each([&](const Group& group) {
            figures.found += {group.count, scattered(group.key) * group.sum};
            if (keep_) rows.push_back({group.key, group.count, group.sum});
        });
    }
    std::vector<ResultRow> rows;

  private:
    bool keep_;
};

template <class Word>
class MessageAggregation final : public JoinOperator {
  public:
    MessageAggregation(JoinNode& at, const NodeTables<Word>& tables)
        : at_(at),
          tables_(tables),
          exchange_(at, [this](std::uint32_t, std::uint32_t,
                               std::span<const std::byte> entries) { take(entries); }),
          result_(at.setup.keep_rows) {}

    void play(std::uint32_t, NodeFigures& figures) override {
        PhaseClock clock(figures);
        GroupTable own(slots_at_first, GroupTable::own_share);
        for (const auto& tuple : tables_.outer) own.add({tuple.key, 1, tuple.payload});
        clock.end(0);
        own.for_each([this](const Group& group) {
            const std::uint32_t owner = at_.owner(scattered(group.key));
            if (owner == at_.node)
                final_.add(group);
            else
                exchange_.append(owner, 1, group);
        });
        exchange_.finish(1);
        exchange_.wait_for({1});
        clock.end(1);
        result_.clear();
        result_.take(final_, figures);
        final_ = GroupTable(slots_at_first, GroupTable::of_all);
        clock.end(2);
        figures.sent_bytes = exchange_.take_sent_bytes();
    }
    std::vector<ResultRow> take_rows() override { return std::move(result_.rows); }

  private:
    // May come before this node is through with its own share.
    void take(std::span<const std::byte> entries) {
        for (std::size_t at = 0; at < entries.size(); at += sizeof(Group)) {
            Group group;
            std::memcpy(&group, &entries[at], sizeof group);
            final_.add(group);
        }
    }

    JoinNode& at_;
    const NodeTables<Word>& tables_;
    MessageExchange<Group> exchange_;
    GroupTable final_{slots_at_first, GroupTable::of_all};
    GroupResult result_;
};

template <class Word>
class OneSidedAggregation final : public JoinOperator {
  public:
    OneSidedAggregation(JoinNode& at, const NodeTables<Word>& tables)
        : at_(at),
          tables_(tables),
          parts_(at, PartRanges::by_partition(at.setup)),
          cached_(std::bit_floor(at.setup.table_bytes / sizeof(Group)), GroupTable::own_share),
          final_(slots_at_first, GroupTable::of_all),
          result_(at.setup.keep_rows) {}

    std::uint64_t region_bytes() const override { return parts_.region_bytes(); }

    void play(std::uint32_t round, NodeFigures& figures) override {
        PhaseClock clock(figures);
        parts_.begin(1);
        for (const auto& tuple : tables_.outer) {
            if (cached_.is_full()) ship();
            cached_.place({tuple.key, 1, tuple.payload});
        }
        ship();
        parts_.finish(1);
        clock.end(0);
        parts_.exchange(round);
        clock.end(1);
        result_.clear();
        for (std::uint32_t p = at_.first_own(); p < at_.end_own(); ++p) {
            for (const auto& part : parts_.parts(1, p))
                for (const auto& group : part) final_.add(group);
            result_.take(final_, figures);
            final_.clear();
        }
        clock.end(2);
        figures.sent_bytes = parts_.take_sent_bytes();
    }
    std::vector<ResultRow> take_rows() override { return std::move(result_.rows); }

  private:
    void ship() {
        const unsigned bits = at_.bits();
        cached_.for_each([&](const Group& group) {
            parts_.append(partition_of(scattered(group.key), bits), group);
        });
        cached_.clear();
    }

    JoinNode& at_;
    const NodeTables<Word>& tables_;
    OneSidedParts<Group> parts_;
    GroupTable cached_, final_;
    GroupResult result_;
};

}  // namespace

template <class Word>
std::unique_ptr<JoinOperator> make_aggregation(JoinNode& node, const NodeTables<Word>& tables) {
    if (node.setup.kind() == Operator::aggregation)
        return std::make_unique<MessageAggregation<Word>>(node, tables);
    return std::make_unique<OneSidedAggregation<Word>>(node, tables);
}

template std::unique_ptr<JoinOperator> make_aggregation(JoinNode&,
                                                        const NodeTables<std::uint32_t>&);
template std::unique_ptr<JoinOperator> make_aggregation(JoinNode&,
                                                        const NodeTables<std::uint64_t>&);

}  // namespace numatwin::native
