// Distributed operators: against the plainest join and aggregation; the parts that they are made
// of.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "systems/joins/bloom_filter.hpp"
#include "systems/joins/group_table.hpp"
#include "systems/joins/join_board.hpp"
#include "systems/joins/partition_buffers.hpp"

namespace numatwin::native {
namespace {

using Rows = std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>>;

JoinSetup small(const std::string& name, std::uint32_t nodes) {
    JoinSetup setup;
    setup.name = name;
    setup.nodes = nodes;
    setup.inner = 300;
    setup.outer = 4'000;
    setup.groups = 700;
    setup.selectivity = 0.7;
    setup.exponent = 0.9;
    setup.partitions = 16;
    setup.buffer_bytes = 192;
    setup.signal_every = 3;
    setup.message_bytes = 400;
    setup.window = 2;
    setup.table_bytes = 4'096;
    setup.rounds = 3;
    setup.keep_rows = true;
    for (std::uint64_t k = 0; k < 4 * std::uint64_t{nodes}; ++k) setup.streams.push_back(k * k + 7);
    return setup;
}

// Of all nodes' tables together: each pair of the same key, or each group.
Rows plain(const JoinSetup& setup) {
    std::map<std::uint64_t, std::uint64_t> inner;
    std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> groups;
    Rows rows;
    for (std::uint32_t node = 0; node < setup.nodes; ++node)
        for (const auto& tuple : draw_tables<std::uint64_t>(setup, node).inner)
            EXPECT_TRUE(inner.emplace(tuple.key, tuple.payload).second);
    for (std::uint32_t node = 0; node < setup.nodes; ++node)
        for (const auto& tuple : draw_tables<std::uint64_t>(setup, node).outer) {
            if (!setup.joins()) {
                auto& [count, sum] = groups[tuple.key];
                ++count;
                sum += tuple.payload;
            } else if (const auto found = inner.find(tuple.key); found != inner.end()) {
                rows.emplace_back(tuple.key, found->second, tuple.payload);
            }
        }
    for (const auto& [key, group] : groups) rows.emplace_back(key, group.first, group.second);
    std::sort(rows.begin(), rows.end());
    return rows;
}

Rows rows_of(const JoinBoard& board) {
    Rows rows;
    for (const auto& row : board.rows()) rows.emplace_back(row.key, row.first, row.second);
    std::sort(rows.begin(), rows.end());
    return rows;
}

class Operators
    : public testing::TestWithParam<std::tuple<const char*, std::uint32_t, std::uint32_t>> {};

TEST_P(Operators, HaveTheRowsOfThePlainestOne) {
    const auto [name, nodes, tuple_bytes] = GetParam();
    auto setup = small(name, nodes);
    setup.tuple_bytes = tuple_bytes;
    JoinBoard board(setup);
    run_as_threads(setup, board);
    EXPECT_EQ(rows_of(board), plain(setup));
}

INSTANTIATE_TEST_SUITE_P(AsThreads, Operators,
                         testing::Combine(testing::ValuesIn(operator_names),
                                          testing::Values(1u, 2u, 3u), testing::Values(8u, 16u)));

#ifdef NUMATWIN_UCX
// Over UCX, as threads: of the same checks as processes, one to each kind of transport.
class Carried : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(Carried, HaveTheRowsOfThePlainestOne) {
    const auto [name, transport] = GetParam();
    auto setup = small(name, 2);
    setup.fabric.direct = std::string(transport) == "direct";
    if (std::string(transport) == "tcp") setup.fabric = {"tcp,self", "lo"};
    JoinBoard board(setup);
    std::vector<std::unique_ptr<Fabric>> fabrics;
    for (int node = 0; node < 2; ++node) fabrics.push_back(ucx_fabric(setup.fabric));
    {
        std::jthread other([&] { run_node(setup, board, 1, *fabrics[1]); });
        run_node(setup, board, 0, *fabrics[0]);
    }
    board.check();
    EXPECT_EQ(rows_of(board), plain(setup));
}

INSTANTIATE_TEST_SUITE_P(OverUcx, Carried,
                         testing::Combine(testing::ValuesIn(operator_names),
                                          testing::Values("direct", "through-ucx", "tcp")));
#endif

TEST(Runs, BehindFiltersSendHardlyMoreThanFindsAPartner) {
    const auto sent = [](const char* name) {
        auto setup = small(name, 2);
        setup.inner = setup.outer = 20'000;
        setup.selectivity = 0.1;
        setup.exponent = 0;
        setup.keep_rows = false;
        JoinBoard board(setup);
        run_as_threads(setup, board);
        return static_cast<double>(board.figures(0, 0).sent_bytes + board.figures(0, 1).sent_bytes);
    };
    // 0.1 + 0.9 · 0.1 of the outer tuples pass, and of the inner ones what these have as keys;
    // filters of some 6.2 bits a key go to the other node.
    const double bytes = 0.5 * 20'000 * 16, filters = 20'000 * 1.19 * 6.2 / 8;
    const double inner = 1 - std::exp(-0.1), found = inner + (1 - inner) * 0.1;
    EXPECT_NEAR(sent("ghj-bloom"), bytes * (0.19 + found) + filters, 0.1 * sent("ghj-bloom"));
    EXPECT_NEAR(sent("ghj"), 2 * bytes, 0.1 * sent("ghj"));
}

TEST(Tables, TellWhatTheResultWillBe) {
    auto setup = small("rrj", 3);
    setup.selectivity = 0.0;
    EXPECT_EQ(plain(setup).size(), 0u);
    setup.selectivity = 1.0;
    EXPECT_EQ(plain(setup).size(), setup.outer);
}

TEST(Runs, AreRefusedWhereATupleWasLost) {
    const auto setup = small("rrj", 2);
    JoinBoard board(setup);
    run_as_threads(setup, board);
    --board.figures(1, 0).found.tuples;
    EXPECT_THROW(board.check(), std::runtime_error);
    ++board.figures(1, 0).found.tuples;
    board.check();
    // One of them joined to another's partner.
    ++board.figures(2, 1).found.checksum;
    EXPECT_THROW(board.check(), std::runtime_error);
}

TEST(Runs, EndForAllWhereOneNodeFails) {
    auto setup = small("ghj", 2);
    setup.cpus = {0, 1 << 20};  // no such processor
    JoinBoard board(setup);
    EXPECT_THROW(run_as_threads(setup, board), std::runtime_error);
    EXPECT_NE(board.failure(), "");
}

// Remembers what is put, and does a flush only when it is waited for.
class SlowFabric final : public Fabric {
  public:
    std::span<std::byte> expose(std::size_t) override { return {}; }
    std::vector<std::byte> contact() override { return {}; }
    Peer connect(Bytes) override { return add_peer(nullptr); }
    bool receive(std::vector<std::byte>&) override { return false; }
    bool progress() override {
        if (waiting_.empty() || ++looks_ % 3 != 0) return false;
        // What was put is read only now: who has written over it meanwhile is found out.
        for (const auto& [at, from, bytes] : puts_) std::memcpy(&memory[at], from, bytes);
        puts_.clear();
        for (Pending* pending : waiting_) --pending->requests;
        waiting_.clear();
        return true;
    }
    void sleep(std::chrono::milliseconds) override {}

    std::vector<std::byte> memory = std::vector<std::byte>(1 << 16);
    int flushes = 0, put_count = 0;

  protected:
    void carry_message(Peer, Bytes) override {}
    void carry_put(Peer, std::uint64_t at, const std::byte* from, std::size_t bytes) override {
        puts_.emplace_back(at, from, bytes);
        ++put_count;
    }
    void carry_get(Peer, std::uint64_t, std::byte*, std::size_t, Pending&) override {}
    void carry_compare_and_swap(Peer, std::uint64_t, const std::uint64_t&, std::uint64_t&,
                                Pending&) override {}
    void carry_fetch_add(Peer, std::uint64_t, const std::uint64_t&, std::uint64_t&,
                         Pending&) override {}
    void carry_add(Peer, std::uint64_t, const std::uint64_t&) override {}
    void carry_order() override {}
    void carry_flush(Peer, Pending& pending) override {
        ++pending.requests;
        waiting_.push_back(&pending);
        ++flushes;
    }

  private:
    std::vector<std::tuple<std::uint64_t, const std::byte*, std::size_t>> puts_;
    std::vector<Pending*> waiting_;
    int looks_ = 0;
};

TEST(PartitionBuffers, OfPutsUnderWayAreNotUsedAgain) {
    SlowFabric fabric;
    const auto peer = fabric.connect({});
    PartitionBuffers<Tuple<std::uint32_t>> buffers(fabric, {64, 4, true});
    constexpr std::uint64_t partitions = 8, each = 512;
    for (int round = 0; round < 2; ++round) {
        std::vector<PartitionPlace> places;
        for (std::uint64_t p = 0; p < partitions; ++p)
            places.push_back({nullptr, peer, p * each * 8, each});
        buffers.open(places);
        const auto key = [&](std::uint64_t k) { return static_cast<std::uint32_t>(3 * k + round); };
        for (std::uint32_t k = 0; k < partitions * each; ++k)
            buffers.append(k % partitions, {key(k), k});
        buffers.finish();
        for (std::uint32_t k = 0; k < partitions * each; ++k) {
            Tuple<std::uint32_t> found;
            std::memcpy(&found, &fabric.memory[(k % partitions * each + k / partitions) * 8],
                        sizeof found);
            ASSERT_EQ(found.key, key(k));
            ASSERT_EQ(found.payload, k);
        }
    }
    // Eight tuples a put; one signaled request after four of them.
    EXPECT_EQ(fabric.put_count, 2 * partitions * each / 8);
    EXPECT_EQ(fabric.flushes, fabric.put_count / 4);
}

TEST(PartitionBuffers, RefuseWhatAPlaceHasNoRoomFor) {
    const auto fabric = local_fabric();
    PartitionBuffers<Tuple<std::uint32_t>> buffers(*fabric, {64, 4, true});
    alignas(64) std::array<std::byte, 128> memory;
    buffers.open({{memory.data(), 0, 0, 7}, {memory.data() + 64, 0, 0, 8}});
    for (std::uint32_t k = 0; k < 7; ++k) buffers.append(0, {k, k});
    EXPECT_THROW(buffers.append(0, {7, 7}), std::runtime_error);
}

// As if each node had sent its words to the only one that is looked at, node 0.
TEST(NodeFilters, LetKeysThroughAndOfOthersTheShareThatWasAskedFor) {
    constexpr std::uint32_t nodes = 4;
    constexpr std::uint64_t each = 5'000;
    constexpr double error = 0.1;
    NodeFilters filters(nodes, error);
    for (std::uint32_t node = nodes; node-- > 0;) {
        auto& filter = filters.make_own(node, each);
        for (std::uint64_t k = 0; k < each; ++k) filter.add(node + nodes * k);
        if (node > 0) filters.coming(node).assign(filter.words().begin(), filter.words().end());
    }
    filters.take_all_but(0);
    for (std::uint64_t key = 0; key < nodes * each; ++key) ASSERT_TRUE(filters.may_have(key));
    std::uint64_t passed = 0;
    constexpr std::uint64_t others = 100'000;
    for (std::uint64_t k = 0; k < others; ++k) passed += filters.may_have(nodes * each + k);
    // Probes are a whole number, and so not quite the best one.
    EXPECT_NEAR(static_cast<double>(passed) / others, error, 0.15 * error);
}

TEST(BloomFilter, OfNoKeyLetsNothingThrough) {
    BloomFilter filter(0, 0.1);
    EXPECT_FALSE(filter.may_have(0));
    EXPECT_TRUE(filter.words().empty());
}

TEST(GroupTable, GrowsAndAddsUp) {
    GroupTable table(8, GroupTable::of_all);
    for (std::uint64_t k = 0; k < 10'000; ++k) table.add({k % 1'000, 1, k});
    EXPECT_EQ(table.used(), 1'000u);
    std::uint64_t sum = 0;
    table.for_each([&](const Group& group) {
        EXPECT_EQ(group.count, 10u);
        EXPECT_EQ(group.sum % 1'000, group.key * 10 % 1'000);
        sum += group.sum;
    });
    EXPECT_EQ(sum, 9'999u * 10'000 / 2);
    table.clear();
    EXPECT_EQ(table.used(), 0u);
}

TEST(Setups, AreRefusedWhereTheyCannotBePlayed) {
    const auto refused = [](auto change) {
        auto setup = small("rrj", 2);
        change(setup);
        EXPECT_THROW(setup.check(), std::invalid_argument);
    };
    refused([](auto& setup) { setup.name = "nested-loops"; });
    refused([](auto& setup) { setup.partitions = 3; });
    refused([](auto& setup) { setup.partitions = 1; });
    refused([](auto& setup) { setup.tuple_bytes = 12; });
    refused([](auto& setup) { setup.filter_error = 1; });
    refused([](auto& setup) { setup.streams.pop_back(); });
    small("rrj", 2).check();
}

}  // namespace
}  // namespace numatwin::native
