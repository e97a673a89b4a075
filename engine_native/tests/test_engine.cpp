// The engine from end to end: nothing is lost, nothing is done twice, answers are right.
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "aeu/engine.hpp"
#include "engine_setups.hpp"

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
    Engine engine(small_setup(GetParam(), 1000));
    engine.load();
    EXPECT_EQ(engine.loaded(), 1000U);
    engine.start();
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
    Engine engine(small_setup(GetParam(), 100));
    engine.load();
    engine.start();
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
    Engine engine(setup);
    engine.load();
    engine.start();
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
        Engine engine(setup);
        engine.load();
        engine.start();
        std::uint64_t seed = 1;
        for (int cycle = 0; cycle < 10; ++cycle) {
            wait_done(engine, 0, done(engine, 0) + 500);
            std::vector<std::uint64_t> bounds{0};
            for (std::size_t k = 1; k < workers; ++k)
                bounds.push_back((seed = seed * 6364136223846793005 + 1442695040888963407) >> 40);
            for (auto& bound : bounds) bound %= keys;
            bounds.push_back(keys);
            std::sort(bounds.begin(), bounds.end());
            engine.rebalance(0, bounds);
            while (engine.balancing(0)) {
                engine.check();
                std::this_thread::yield();
            }
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
            EXPECT_EQ(engine.cycles().size(), 10U);
        }
    }
}

}  // namespace
}  // namespace numatwin::native
