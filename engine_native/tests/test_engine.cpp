// The engine from end to end: nothing is lost, nothing is done twice, answers are right.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <numeric>
#include <thread>

#include "engine_setups.hpp"
#include "systems/eris/engine.hpp"

namespace numatwin::native {
namespace {

std::uint64_t forwarded(const Engine& engine) {
    std::uint64_t sum = 0;
    for (const auto& counts : engine.world().counts) sum += counts->forwarded.read();
    return sum;
}

class Workers : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Counts, Workers, testing::Values(1, 2, 3, 7));

TEST_P(Workers, AnswerLookupsOfLoadedKeys) {
    Started engine(small_setup(GetParam(), 1000));
    EXPECT_EQ(engine.loaded(), 1000U);
    std::vector<Ask> asks;
    for (std::uint64_t key = 0; key < 1100; ++key) asks.push_back({AskKind::lookup, 0, key, 0});
    const auto answers = engine.execute(asks);
    for (std::uint64_t key = 0; key < 1100; ++key) {
        EXPECT_EQ(answers[key].answers, 1U);
        EXPECT_EQ(answers[key].found, key < 1000 ? 1U : 0U);
        if (key < 1000) {
            EXPECT_EQ(answers[key].value, loaded_value(key));
        }
    }
    engine.stop();
}

TEST_P(Workers, ExecuteInOrder) {
    Started engine(small_setup(GetParam(), 100));
    std::vector<Ask> asks;
    for (std::uint64_t round = 1; round <= 20; ++round) {
        asks.push_back({AskKind::upsert, 0, 7, round});
        asks.push_back({AskKind::upsert, 0, 7, round + 100});
        asks.push_back({AskKind::lookup, 0, 7, 0});
    }
    const auto answers = engine.execute(asks);
    for (std::uint64_t round = 1; round <= 20; ++round)
        EXPECT_EQ(answers[3 * round - 1].value, round + 100);
    engine.stop();
}

TEST_P(Workers, ClientsLoseNothing) {
    EngineSetup setup = small_setup(GetParam(), 10'000);
    add_operation(setup, OperationKind::lookup, 0.5);
    add_operation(setup, OperationKind::upsert, 0.3);
    add_operation(setup, OperationKind::route, 0.2);
    Started engine(setup);
    for (std::size_t k = 0; k < 3; ++k) wait_done(engine, k, 5'000);
    engine.stop();  // throws where something was lost or done twice
    std::uint64_t found = 0;
    for (const auto& counts : engine.world().counts) found += counts->object[0].found.read();
    EXPECT_EQ(found, done(engine, 0));
    std::vector<std::uint64_t> buckets(Latencies::buckets);
    for (const auto& counts : engine.world().counts)
        counts->operation[0].latency.merge_into(buckets);
    EXPECT_EQ(std::accumulate(buckets.begin(), buckets.end(), std::uint64_t{0}), done(engine, 0));
}

TEST_P(Workers, RebalanceUnderTraffic) {
    const std::size_t workers = GetParam();
    for (const std::size_t nodes : {std::size_t{1}, workers}) {  // links, copies
        constexpr std::uint64_t keys = 100'000;
        EngineSetup setup = small_setup(workers, keys, 0, nodes);
        add_operation(setup, OperationKind::lookup);
        add_operation(setup, OperationKind::upsert);
        Started engine(setup);
        std::uint64_t seed = 1;
        for (int cycle = 0; cycle < 5; ++cycle) {
            wait_done(engine, 0, done(engine, 0) + 500);
            std::vector<std::uint64_t> bounds{0};
            for (std::size_t k = 1; k < workers; ++k)
                bounds.push_back((seed = seed * 6364136223846793005 + 1442695040888963407) >> 40);
            for (auto& bound : bounds) bound %= keys;
            bounds.push_back(keys);
            std::sort(bounds.begin(), bounds.end());
            balance(engine, 0, bounds);
            EXPECT_EQ(engine.bounds(0), bounds);
            std::vector<std::uint64_t> held;
            for (std::size_t k = 0; k < workers; ++k)
                held.push_back(engine.world().counts[k]->object[0].entries.load());
            for (std::size_t k = 0; k < workers; ++k)
                EXPECT_EQ(held[k], bounds[k + 1] - bounds[k]) << k;
        }
        engine.stop();
        if (workers > 1) {
            EXPECT_GT(forwarded(engine), 0U);
            EXPECT_EQ(engine.cycles().size(), 5U);
        }
    }
}

// What a scan of all entries of `expected` finds from `low` to `high`.
Answer expected_scan(const std::vector<std::uint64_t>& entries, std::uint64_t low,
                     std::uint64_t high) {
    Answer answer;
    for (const std::uint64_t entry : entries)
        if (entry >= low && entry <= high) {
            ++answer.found;
            answer.value += entry;
        }
    return answer;
}

std::vector<std::uint64_t> loaded_entries(const EngineSetup& setup, std::size_t object) {
    std::vector<std::uint64_t> entries;
    for (std::uint64_t k = 0; k < setup.objects[object].amount; ++k)
        entries.push_back(loaded_entry(setup.seed, object, k));
    return entries;
}

TEST_P(Workers, ScansSeeEachEntryOnceWhileColumnsMove) {
    const std::size_t workers = GetParam();
    for (const std::size_t nodes : {std::size_t{1}, workers}) {  // links, copies
        EngineSetup setup = small_setup(workers, 100, 100'000, nodes);
        add_operation(setup, OperationKind::scan, 1, 1);
        Started engine(setup);
        std::vector<std::uint64_t> entries = loaded_entries(setup, 1);
        std::uint64_t seed = 7;
        for (int cycle = 0; cycle < 12; ++cycle) {
            std::vector<std::uint64_t> sizes(workers, 0);
            std::uint64_t left = entries.size();
            for (std::size_t k = 0; k + 1 < workers; ++k) {
                seed = seed * 6364136223846793005 + 1442695040888963407;
                // Some end up with nothing.
                sizes[k] = (seed >> 60) < 5 ? 0 : (seed >> 32) % (left + 1);
                left -= sizes[k];
            }
            sizes.back() = left;
            engine.rebalance(1, sizes);
            do {
                std::vector<Ask> asks{{AskKind::scan, 1, 0, ~std::uint64_t{0}},
                                      {AskKind::append, 1, 0, seed},
                                      {AskKind::scan, 1, seed / 2, seed}};
                const auto answers = engine.execute(asks);
                const Answer all = expected_scan(entries, 0, ~std::uint64_t{0});
                EXPECT_EQ(answers[0].found, all.found);
                EXPECT_EQ(answers[0].value, all.value);
                entries.push_back(seed);
                const Answer some = expected_scan(entries, seed / 2, seed);
                EXPECT_EQ(answers[2].found, some.found);
                EXPECT_EQ(answers[2].value, some.value);
                EXPECT_EQ(answers[1].answers, 1U);
                seed = seed * 6364136223846793005 + 1442695040888963407;
            } while (engine.balancing(1));
        }
        wait_done(engine, 0, 10);
        engine.stop();
    }
}

TEST_P(Workers, MixedClientsWithBalancingOfBoth) {
    const std::size_t workers = GetParam();
    EngineSetup setup = small_setup(workers, 50'000, 50'000, std::max<std::size_t>(workers / 2, 1));
    add_operation(setup, OperationKind::lookup, 1);
    add_operation(setup, OperationKind::upsert, 1);
    add_operation(setup, OperationKind::scan, 0.001, 1);
    setup.result_bytes = 16;
    setup.command_bytes = 32;
    setup.think_ns = 1000;
    Started engine(setup);
    for (int cycle = 0; cycle < 5; ++cycle) {
        wait_done(engine, 0, done(engine, 0) + 1'000);
        std::vector<std::uint64_t> bounds(workers + 1, 0), sizes(workers, 0);
        for (std::size_t k = 1; k <= workers; ++k)
            bounds[k] = k == workers ? 50'000 : (cycle % 2 == 0 ? 10 * k : 50'000 - 10 * k);
        std::sort(bounds.begin(), bounds.end());
        sizes[static_cast<std::size_t>(cycle) % workers] = 50'000;
        balance(engine, 0, bounds);
        balance(engine, 1, sizes);
    }
    wait_done(engine, 2, 1);
    engine.stop();
}

TEST_P(Workers, BaselinesAnswerAlike) {
    for (const Layout placement : {Layout::interleaved, Layout::single_ram}) {
        EngineSetup setup = small_setup(GetParam(), 10'000, 10'000);
        setup.placement = placement;
        add_operation(setup, OperationKind::lookup);
        add_operation(setup, OperationKind::upsert);
        add_operation(setup, OperationKind::scan, 0.001, 1);
        Started engine(setup);
        wait_done(engine, 0, 1'000);
        wait_done(engine, 2, 1);
        const std::vector<Ask> asks{{AskKind::upsert, 0, 20'000, 3},
                                    {AskKind::lookup, 0, 20'000, 0},
                                    {AskKind::lookup, 0, 30'000, 0},
                                    {AskKind::scan, 1, 0, ~std::uint64_t{0}}};
        const auto answers = engine.execute(asks);
        EXPECT_EQ(answers[1].value, 3U);
        EXPECT_EQ(answers[1].found, 1U);
        EXPECT_EQ(answers[2].found, 0U);
        EXPECT_EQ(answers[3].value,
                  expected_scan(loaded_entries(setup, 1), 0, ~std::uint64_t{0}).value);
        engine.stop();
    }
}

TEST_P(Workers, BaselineScansTogether) {
    EngineSetup setup = small_setup(GetParam(), 10, 1'000'000);
    setup.placement = Layout::interleaved;
    add_operation(setup, OperationKind::scan, 1, 1);
    Started engine(setup);
    wait_done(engine, 0, 20);
    engine.stop();
}

TEST_P(Workers, OpenClientsArriveAtTheirRate) {
    EngineSetup setup = small_setup(GetParam(), 10'000);
    add_operation(setup, OperationKind::lookup);
    setup.arrival_ns = 20'000 * static_cast<double>(GetParam());  // 50,000 a second in all
    Started engine(setup);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    // Threads of a loaded host run late, and then do at once what has arrived meanwhile.
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    double seen = 0, asked = 0;
    do {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        seen = static_cast<double>(done(engine, 0));
        asked = engine.time_s() * 50'000;
    } while (seen < 0.9 * asked - 500 && std::chrono::steady_clock::now() < give_up);
    engine.stop();
    EXPECT_GE(seen, 0.9 * asked - 500);
    EXPECT_LE(seen, asked + 5 * std::sqrt(asked));  // Poisson, and five standard deviations
}

TEST(Engines, OpenClientsThatPauseCatchUpWithNothing) {
    EngineSetup setup = small_setup(2, 10'000);
    add_operation(setup, OperationKind::lookup);
    setup.arrival_ns = 1e5;
    Started engine(setup);
    wait_done(engine, 0, 10);
    engine.set_making(false);
    const auto all_done = [&] {
        std::uint64_t made = 0, executed = 0;
        for (const auto& counts : engine.world().counts) {
            made += counts->made.read();
            executed += counts->executed.read();
        }
        return made == executed;
    };
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // 6,000 would arrive
    while (!all_done()) std::this_thread::yield();
    const std::uint64_t before = done(engine, 0);
    const auto began = std::chrono::steady_clock::now();
    engine.set_making(true);
    wait_done(engine, 0, before + 20);
    engine.stop();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - began;
    // Of two workers, one each 100 µs: those of the pause would be 6,000 more.
    EXPECT_LT(static_cast<double>(done(engine, 0) - before), 2 * took.count() / 1e5 + 3'000);
}

TEST(Engines, AreCrowdedWhereTheyShareCpus) {
    EngineSetup setup = small_setup(3, 100);
    setup.cpu = {0, 1, 2};
    EXPECT_FALSE(setup.crowded());
    setup.cpu = {0, 1, 0};
    EXPECT_TRUE(setup.crowded());
    setup.cpu = {-1, -1, -1};
    EXPECT_EQ(setup.crowded(), std::thread::hardware_concurrency() < 3);
}

TEST(EngineFaults, StopTellsOfALostCommand) {
    EngineSetup setup = small_setup(2, 1'000);
    add_operation(setup, OperationKind::lookup);
    Started engine(setup);
    wait_done(engine, 0, 100);
    engine.world().counts[0]->made.add(1);
    EXPECT_THROW(engine.stop(0.2), std::logic_error);
    EXPECT_FALSE(engine.running());
}

TEST(EngineFaults, CancelledInTheMiddle) {
    EngineSetup setup = small_setup(3, 20'000, 100'000, 3);
    add_operation(setup, OperationKind::lookup);
    add_operation(setup, OperationKind::scan, 0.01, 1);
    {
        Engine never(setup);
    }
    {
        Engine loading(setup);
        loading.begin_load();
    }
    {
        Started running(setup);
        wait_done(running, 0, 1'000);
        running.rebalance(0, {0, 0, 0, 20'000});
        running.rebalance(1, {0, 0, 100'000});
    }
    Started ended(setup);
    ended.cancel();
    EXPECT_THROW(ended.execute(std::vector<Ask>{{AskKind::lookup, 0, 1, 0}}), std::exception);
}

TEST(EngineFaults, RefusesWhatDoesNotFit) {
    EngineSetup setup = small_setup(2, 100, 100);
    add_operation(setup, OperationKind::lookup);
    Engine engine(setup);
    EXPECT_THROW(engine.start(), std::logic_error);
    engine.load();
    engine.start();
    using Numbers = std::vector<std::uint64_t>;
    EXPECT_THROW(engine.rebalance(0, Numbers({0, 100})), std::invalid_argument);
    EXPECT_THROW(engine.rebalance(0, Numbers({1, 50, 100})), std::invalid_argument);
    EXPECT_THROW(engine.rebalance(0, Numbers({0, 101, 100})), std::invalid_argument);
    EXPECT_THROW(engine.rebalance(1, Numbers({50, 51})), std::invalid_argument);
    EXPECT_THROW(engine.rebalance(2, Numbers({50, 50})), std::invalid_argument);
    EXPECT_FALSE(engine.rebalance(0, Numbers({0, 50, 100})));
    EXPECT_FALSE(engine.rebalance(1, Numbers({50, 50})));
    EXPECT_THROW(engine.execute(std::vector<Ask>{{AskKind::scan, 0, 0, 0}}), std::invalid_argument);
    engine.stop();
    setup.cpu[1] = 100'000;
    EXPECT_THROW(Engine{setup}, std::invalid_argument);
    setup.cpu[1] = -1;
    setup.command_bytes = 12;
    EXPECT_THROW(Engine{setup}, std::invalid_argument);
}

}  // namespace
}  // namespace numatwin::native
