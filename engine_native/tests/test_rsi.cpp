// Whole runs by threads of this process: both protocols, faults and remedies.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <thread>
#include <tuple>
#include <vector>

#include "systems/commits/roles.hpp"

namespace numatwin::native {
namespace {

using std::chrono::milliseconds;

RunSetup small(std::uint32_t clients) {
    RunSetup setup;
    setup.clients = clients;
    setup.nodes = 3;
    setup.storage = {0, 1};
    setup.managers = {2};
    setup.timestamps = 2;
    setup.records = 100 * clients;
    setup.record_bytes = 64;
    setup.insert_ring = 8;
    setup.timestamp_bits = 640;  // many laps
    setup.crowded = true;
    setup.trace_rows = 1'000'000;
    for (std::uint64_t k = 0; k < 4 * clients; ++k) setup.streams.push_back(k + 1);
    return setup;
}

struct Seen {
    std::uint64_t commits = 0, torn = 0;
    std::vector<Row> trace;
    std::string failure;
    std::uint64_t of(RowKind kind) const {
        std::uint64_t count = 0;
        for (const Row& row : trace) count += row.kind == static_cast<std::int64_t>(kind);
        return count;
    }
};

std::uint64_t sum_of(const RunSetup& setup, Board& board, auto Counters::* counter) {
    std::uint64_t sum = 0;
    for (std::uint32_t client = 0; client < setup.clients; ++client)
        sum += (board.counters(client).*counter).get();
    return sum;
}

// Until so many have committed (or, where none may, for the time).
Seen run(const RunSetup& setup, std::uint64_t commits,
         milliseconds longest = milliseconds(30'000)) {
    ThreadCluster cluster(setup);
    cluster.start();
    auto& board = cluster.board();
    Seen seen;
    const auto committed = [&] { return sum_of(setup, board, &Counters::commits); };
    // Half of it: who looks may itself be late.
    const auto room = [&] {
        for (std::uint32_t role = 0; role < setup.roles(); ++role)
            if (board.room(role) < setup.trace_rows / 2) return false;
        return true;
    };
    // Threads of a loaded host run late: where somebody is to die, the time counts from there.
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    const auto all_died = [&] {
        return std::ranges::all_of(setup.death_client, [&](const auto& client) {
            return board.role(client).holding.load(std::memory_order_acquire) != 0;
        });
    };
    while (!all_died() && room() && std::chrono::steady_clock::now() < give_up)
        std::this_thread::sleep_for(milliseconds(2));
    const auto late = std::chrono::steady_clock::now() + longest;
    while (committed() < commits && room() && std::chrono::steady_clock::now() < late)
        std::this_thread::sleep_for(milliseconds(2));
    cluster.stop();
    seen.commits = committed();
    seen.torn = sum_of(setup, board, &Counters::torn);
    seen.trace = board.trace();
    seen.failure = board.failure();
    return seen;
}

// First committer wins: each version of a record was written by one whose snapshot saw the one
// before. (The Python suite checks whole histories; this holds under sanitizers too.)
std::uint64_t lost_updates(const Seen& seen) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> rid;
    std::map<std::int64_t, std::int64_t> newest;
    std::uint64_t lost = 0;
    for (const Row& row : seen.trace) {
        if (row.kind == static_cast<std::int64_t>(RowKind::begin))
            rid[{row.client, row.transaction}] = row.a;
        if (row.kind != static_cast<std::int64_t>(RowKind::install)) continue;
        auto& before = newest[row.a];
        lost += rid[{row.client, row.transaction}] < before;
        before = std::max(before, row.b);
    }
    return lost;
}

class Protocols : public testing::TestWithParam<std::tuple<bool, std::uint32_t, std::uint32_t>> {};

TEST_P(Protocols, commit_without_losing_updates) {
    const auto [one_sided, clients, versions] = GetParam();
    auto setup = small(clients);
    setup.one_sided = one_sided;
    setup.versions = versions;
    const Seen seen = run(setup, 300);
    EXPECT_EQ(seen.failure, "");
    EXPECT_GT(seen.commits, 50u);
    EXPECT_EQ(seen.torn, 0u);
    EXPECT_EQ(lost_updates(seen), 0u);
    EXPECT_GE(seen.of(RowKind::outcome), seen.commits);
}

INSTANTIATE_TEST_SUITE_P(All, Protocols,
                         testing::Combine(testing::Bool(), testing::Values(1u, 3u, 7u),
                                          testing::Values(1u, 3u)));

TEST(Rsi, what_clients_took_from_the_stock_is_gone_from_it) {
    auto setup = small(3);
    setup.trace_rows = 0;
    setup.inserts = 0;
    ThreadCluster cluster(setup);
    cluster.start();
    auto& board = cluster.board();
    const auto updated = [&] { return sum_of(setup, board, &Counters::updates); };
    // On a busy host, until there is something to see.
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    do std::this_thread::sleep_for(milliseconds(150));
    while (updated() == 0 && std::chrono::steady_clock::now() < give_up);
    // Clients stop; servers go on until the thread cluster is stopped.
    board.set_phase(Phase::stopping);
    while (!board.all_clients(RoleState::done)) std::this_thread::sleep_for(milliseconds(1));
    const auto looking = local_fabric();
    std::int64_t stock = 0;
    for (std::size_t server = 0; server < setup.storage.size(); ++server) {
        const auto peer = looking->connect(board.contact(setup.storage_role(server)));
        for (std::uint64_t block = 0; block < setup.own_blocks(); ++block) {
            std::uint64_t words[2];
            Pending pending;
            looking->get(peer, block * setup.block_bytes(), reinterpret_cast<std::byte*>(words),
                         sizeof words, pending);
            EXPECT_FALSE(words[0] >> 63) << "a lock was left";
            stock += static_cast<std::int64_t>(words[1]);
        }
    }
    EXPECT_GT(updated(), 0u);
    EXPECT_EQ(-stock, static_cast<std::int64_t>(updated()));
    cluster.stop();
}

TEST(Rsi, without_validation_updates_are_lost) {
    auto setup = small(4);
    setup.records = 6;
    setup.versions = 8;
    setup.sabotage = Sabotage::no_validation;
    std::uint64_t lost = 0;
    for (int tries = 0; tries < 20 && lost == 0; ++tries) lost = lost_updates(run(setup, 2'000));
    EXPECT_GT(lost, 0u);
}

RunSetup with_a_death() {
    auto setup = small(2);
    setup.records = 12;  // soon the other client meets what the dead one locked
    setup.versions = 4;
    setup.death_client = {1};
    setup.death_ns = {10'000'000};
    setup.death_step = {-1};
    return setup;
}

std::size_t place_of(const Seen& seen, RowKind kind) {
    std::size_t at = 0;
    while (at < seen.trace.size() && seen.trace[at].kind != static_cast<std::int64_t>(kind)) ++at;
    return at;
}

TEST(Rsi, locks_of_the_dead_stay_without_a_lease) {
    const auto setup = with_a_death();
    const Seen seen = run(setup, ~std::uint64_t{0}, milliseconds(100));
    ASSERT_EQ(seen.of(RowKind::died), 1u);
    EXPECT_EQ(seen.of(RowKind::broken), 0u);
    const std::size_t death = place_of(seen, RowKind::died);
    std::set<std::int64_t> held;
    for (const Row& row : seen.trace)
        if (row.kind == static_cast<std::int64_t>(RowKind::read) && row.client == 1 &&
            row.transaction == seen.trace[death].transaction)
            held.insert(row.a);
    EXPECT_EQ(held.size(), setup.updates);
    for (std::size_t k = death; k < seen.trace.size(); ++k)
        if (seen.trace[k].kind == static_cast<std::int64_t>(RowKind::install)) {
            EXPECT_FALSE(held.contains(seen.trace[k].a)) << "record " << seen.trace[k].a;
        }
}

TEST(Rsi, a_lease_frees_what_the_dead_held) {
    auto setup = with_a_death();
    setup.lease_ns = 40'000'000;
    setup.trace_rows = 4'000'000;
    std::uint64_t later = 0;
    // A busy host may leave the other client waiting for a second.
    for (int seconds = 1; seconds <= 16 && later == 0; seconds *= 4) {
        const Seen seen = run(setup, ~std::uint64_t{0}, milliseconds(1000 * seconds));
        ASSERT_EQ(seen.of(RowKind::died), 1u);
        EXPECT_EQ(lost_updates(seen), 0u);
        EXPECT_EQ(seen.torn, 0u);
        for (std::size_t k = place_of(seen, RowKind::broken); k < seen.trace.size(); ++k)
            later += seen.trace[k].kind == static_cast<std::int64_t>(RowKind::outcome);
    }
    EXPECT_GT(later, 0u) << "nobody committed after a lock was broken";
}

TEST(Rsi, unclaimed_timestamps_of_a_straggler_are_skipped) {
    auto setup = small(3);
    setup.factors = {1, 1, 200};
    setup.skip_after_ns = 1'000'000;
    const Seen seen = run(setup, 400);
    EXPECT_GT(seen.of(RowKind::skipped), 0u);
    EXPECT_EQ(seen.torn, 0u);
    EXPECT_EQ(lost_updates(seen), 0u);
    // No timestamp was had twice.
    std::set<std::int64_t> cids;
    for (const Row& row : seen.trace)
        if (row.kind == static_cast<std::int64_t>(RowKind::outcome)) {
            EXPECT_TRUE(cids.insert(row.a).second) << row.a;
        }
}

// It thinks for as many times as long: no part of that is work, which takes it longer once more.
TEST(Rsi, what_a_straggler_thinks_is_no_part_of_its_latency) {
    for (const bool one_sided : {true, false}) {
        auto setup = small(1);
        setup.one_sided = one_sided;
        setup.trace_rows = 0;
        setup.factors = {4};
        setup.think_ns = 20'000'000;
        ThreadCluster cluster(setup);
        cluster.start();
        const auto& counted = cluster.board().counters(0);
        const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        while (counted.commits.get() < 6 && std::chrono::steady_clock::now() < give_up)
            std::this_thread::sleep_for(milliseconds(2));
        cluster.stop();
        ASSERT_GE(counted.commits.get(), 6u);
        const double mean_ns = static_cast<double>(counted.latency_total_ps.get()) / 1e3 /
                               static_cast<double>(counted.commits.get());
        EXPECT_LT(mean_ns, 3.0 * static_cast<double>(setup.think_ns));
    }
}

TEST(Rsi, a_few_words_of_the_vector_do_as_well_as_all) {
    auto setup = small(3);
    setup.snapshot_bytes = 8;
    const Seen seen = run(setup, 300);
    EXPECT_GT(seen.commits, 50u);
    EXPECT_EQ(lost_updates(seen), 0u);
}

TEST(Rsi, one_node_may_hold_records_and_timestamps) {
    auto setup = small(2);
    setup.nodes = 1;
    setup.storage = {0};
    setup.managers = {0};
    setup.timestamps = 0;
    for (const bool one_sided : {true, false}) {
        setup.one_sided = one_sided;
        const Seen seen = run(setup, 100);
        EXPECT_GT(seen.commits, 20u);
        EXPECT_EQ(lost_updates(seen), 0u);
    }
}

TEST(TwoPhase, only_holders_may_take_part) {
    auto setup = small(3);
    setup.one_sided = false;
    setup.every_rm = false;
    setup.managers = {0, 1};
    const Seen seen = run(setup, 200);
    EXPECT_GT(seen.commits, 50u);
    EXPECT_EQ(lost_updates(seen), 0u);
}

}  // namespace
}  // namespace numatwin::native
