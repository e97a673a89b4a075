// The parts of an AEU by themselves: draws, latencies, plans of transfers, ownership of keys.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "memory/clock.hpp"
#include "memory/memory.hpp"
#include "systems/eris/choice.hpp"
#include "systems/eris/command.hpp"
#include "systems/eris/counts.hpp"
#include "systems/eris/cycle.hpp"
#include "systems/eris/index_partition.hpp"
#include "systems/eris/key_draws.hpp"

namespace numatwin::native {
namespace {

using Numbers = std::vector<std::uint64_t>;

// Of n draws, those of an alternative of chance p deviate by six standard deviations at most, with
// this fixed seed.
void expect_share(std::uint64_t seen, std::uint64_t draws, double chance) {
    const auto n = static_cast<double>(draws);
    EXPECT_NEAR(static_cast<double>(seen), n * chance,
                6 * std::sqrt(n * chance * (1 - chance)) + 1);
}

TEST(Choices, FollowTheirWeights) {
    const std::vector<double> weights{1, 0, 3, 2.5, 0, 0.001};
    const Choice choice(weights);
    Random random(1, 0);
    constexpr std::uint64_t draws = 1'000'000;
    Numbers seen(weights.size());
    for (std::uint64_t k = 0; k < draws; ++k) ++seen[choice.draw(random)];
    for (std::size_t k = 0; k < weights.size(); ++k)
        expect_share(seen[k], draws, weights[k] / 6.501);
    EXPECT_EQ(seen[1] + seen[4], 0U);
    EXPECT_THROW(Choice(std::vector<double>{0, 0}), std::invalid_argument);
    EXPECT_THROW(Choice(std::vector<double>{1, -1}), std::invalid_argument);
    EXPECT_THROW(Choice(std::vector<double>{1, NAN}), std::invalid_argument);
}

TEST(KeyDraws, draws_evenly_from_the_only_piece_that_has_mass) {
    const KeyDraws draws(Numbers{0, 10, 20, 1000}, std::vector<double>{0, 1, 0}, false);
    EXPECT_EQ(draws.keys(), 1000U);
    Random random(1, 0);
    Numbers drawn(10'000);
    draws.draw(random, drawn);
    std::array<int, 10> count{};
    for (const std::uint64_t key : drawn) {
        ASSERT_GE(key, 10U);
        ASSERT_LT(key, 20U);
        ++count[key - 10];
    }
    for (const int some : count) EXPECT_NEAR(some, 1000, 150);  // five standard deviations
}

TEST(Keys, LieInTheirPieces) {
    const KeyDraws draws(Numbers{0, 10, 20, 1000}, std::vector<double>{0.5, 0, 0.5}, false);
    Random random(2, 0);
    Numbers keys(100'000);
    draws.draw(random, keys);
    const auto low = static_cast<std::uint64_t>(
        std::count_if(keys.begin(), keys.end(), [](std::uint64_t key) { return key < 10; }));
    expect_share(low, keys.size(), 0.5);
    for (const std::uint64_t key : keys) EXPECT_TRUE(key < 10 || (key >= 20 && key < 1000));
    EXPECT_THROW(KeyDraws(Numbers{0, 10, 10}, std::vector<double>{1, 1}, false),
                 std::invalid_argument);
    EXPECT_THROW(KeyDraws(Numbers{1, 10}, std::vector<double>{1}, false), std::invalid_argument);
}

TEST(Keys, AreZipfFarBeyondTheTable) {
    constexpr std::uint64_t keys = 200'000;
    for (const double exponent : {0.5, 1.0, 1.3}) {
        const KeyDraws draws = KeyDraws::zipf(keys, exponent, false);
        std::vector<double> below(keys + 1, 0);
        for (std::uint64_t r = 1; r <= keys; ++r)
            below[r] = below[r - 1] + std::pow(static_cast<double>(r), -exponent);
        Random random(3, 0);
        Numbers drawn(1'000'000);
        draws.draw(random, drawn);
        for (const std::uint64_t end :
             {1UL, 2UL, 10UL, 1000UL, 1024UL, 1025UL, 5000UL, 100'000UL}) {
            const auto seen = static_cast<std::uint64_t>(std::count_if(
                drawn.begin(), drawn.end(), [&](std::uint64_t key) { return key < end; }));
            expect_share(seen, drawn.size(), below[end] / below[keys]);
        }
    }
}

TEST(Keys, ScatteredAreAPermutationOfRanks) {
    constexpr std::uint64_t keys = 1000;
    std::vector<double> mass(keys, 1);
    Numbers breaks(keys + 1);
    std::iota(breaks.begin(), breaks.end(), 0);
    const KeyDraws draws(breaks, mass, true);
    Random random(4, 0);
    Numbers drawn(100'000), seen(keys);
    draws.draw(random, drawn);
    for (const std::uint64_t key : drawn) ++seen[key];
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 0U), 0);
}

TEST(Latencies, AreTheKernelsBuckets) {
    Latencies latencies;
    latencies.add(255, 2);
    latencies.add(256, 1);
    latencies.add(1'000'000, 5);
    latencies.spread(0, 800, 8);
    Numbers buckets(Latencies::buckets);
    latencies.merge_into(buckets);
    EXPECT_EQ(latencies.count(), 16U);
    EXPECT_EQ(buckets[255], 2U);
    EXPECT_EQ(buckets[256], 1U);
    // 1,000,000 = 2^19 + …: shift 12, 1,000,000 >> 12 = 244.
    EXPECT_EQ(buckets[12 * 128 + 244], 5U);
    EXPECT_EQ(std::accumulate(buckets.begin(), buckets.end(), std::uint64_t{0}), 16U);
    latencies.add(~std::uint64_t{0}, 1);
    EXPECT_EQ(latencies.count(), 17U);
    Latencies long_ones;
    long_ones.add(30'000'000'000'600, 1 << 20);  // 30 s: their sum in ps has more than 64 bits
    EXPECT_EQ(long_ones.sum_ns(), (30'000'000'000ULL << 20) + ((600ULL << 20) + 500) / 1000);
}

TEST(Latencies, AreNotNegativeWhereClocksDiffer) {
    EXPECT_EQ(elapsed_ns(stamp_of(1'000), stamp_of(1'160)), 160U);
    EXPECT_EQ(elapsed_ns(0xffff'fffe, 1), 48U);  // wrapped round
    EXPECT_EQ(elapsed_ns(stamp_of(1'160), stamp_of(1'000)), 0U);
}

TEST(Time, RunsAtTheSystemsRate) {
    using Steady = std::chrono::steady_clock;
    // Whatever interrupts it: the ticks lie within the one span, and the other within them.
    const auto before = Steady::now();
    const Ticks from = ticks();
    const auto start = Steady::now();
    while (Steady::now() - start < std::chrono::milliseconds(50)) {
    }
    const Ticks until = ticks();
    const std::chrono::duration<double, std::pico> lasted = Steady::now() - before;
    EXPECT_LE(static_cast<double>(until - from) * ps_per_tick(), lasted.count() * 1.001);
    EXPECT_GE(static_cast<double>(until - from) * ps_per_tick(), 49.9e9);
}

// Every key has one owner before and after; what changes owner is in one transfer.
TEST(Plans, OfIndexesMoveWhatChangesHands) {
    Random random(5, 0);
    for (int round = 0; round < 1000; ++round) {
        const std::size_t workers = 1 + random.below(6);
        constexpr std::uint64_t keys = 40;
        const auto bounds = [&] {
            Numbers found{0};
            for (std::size_t k = 1; k < workers; ++k) found.push_back(random.below(keys + 1));
            found.push_back(keys);
            std::sort(found.begin(), found.end());
            return found;
        };
        const Numbers before = bounds(), after = bounds();
        const std::vector<std::uint32_t> node(workers, 0);
        const auto transfers = index_transfers(before, after, node);
        HeapMemory memory;
        for (std::uint64_t key = 0; key < keys + 3; ++key) {
            std::uint32_t old_owner = 99, new_owner = 99;
            for (std::uint32_t k = 0; k < workers; ++k) {
                IndexPartition partition(memory, {}, sizeof(std::uint64_t), k);
                partition.set_bounds(before);
                if (partition.owns(key)) {
                    EXPECT_EQ(old_owner, 99U);
                    old_owner = k;
                }
                partition.set_bounds(after);
                if (partition.owns(key)) {
                    EXPECT_EQ(new_owner, 99U);
                    new_owner = k;
                }
            }
            std::size_t moves = 0;
            for (const Transfer& transfer : transfers)
                if (key >= transfer.first && key <= transfer.last) {
                    ++moves;
                    EXPECT_EQ(transfer.source, old_owner);
                    EXPECT_EQ(transfer.target, new_owner);
                }
            EXPECT_EQ(moves, old_owner == new_owner ? 0U : 1U);
        }
    }
}

TEST(Plans, OfColumnsStayWithinNodesFirst) {
    // Surplus 4 0 -2 -2; nodes 0 1 0 1: two entries stay on node 0.
    const auto transfers = column_transfers({9, 5, 3, 3}, {5, 5, 5, 5}, {0, 1, 0, 1});
    ASSERT_EQ(transfers.size(), 2U);
    EXPECT_EQ(transfers[0].target, 2U);
    EXPECT_TRUE(transfers[0].link);
    EXPECT_EQ(transfers[0].entries, 2U);
    EXPECT_EQ(transfers[1].target, 3U);
    EXPECT_FALSE(transfers[1].link);
    EXPECT_EQ(transfers[1].entries, 2U);
}

TEST(Ownership, OfWhatIsOnItsWay) {
    HeapMemory memory;
    IndexPartition part(memory, {}, sizeof(std::uint64_t), 1);
    part.set_bounds({0, 10, 20, 30});
    const std::vector<Partition> partitions{{0, 0}, {10, 1}, {20, 2}};
    const PartitionTree table(memory, partitions, 1);
    EXPECT_EQ(part.place_of(15, table), 1U);
    EXPECT_EQ(part.place_of(25, table), 2U);
    part.pending.push_back({10, 14, 0, 7});
    part.leaving.push_back({nullptr, 8, 22, 24});
    EXPECT_EQ(part.place_of(12, table), 0U);  // its source still has it
    EXPECT_EQ(part.place_of(15, table), 1U);
    EXPECT_EQ(part.place_of(23, table), 1U);  // not yet sent
    EXPECT_EQ(part.place_of(21, table), 2U);  // sent
    part.arrived(7, 12);
    EXPECT_EQ(part.place_of(12, table), 1U);
    EXPECT_EQ(part.place_of(13, table), 0U);
    part.arrived(7, 14);
    EXPECT_TRUE(part.pending.empty());
    const Numbers some{10, 19}, strange{10, 20};
    EXPECT_TRUE(part.owns_all(some.data(), 2));
    EXPECT_FALSE(part.owns_all(strange.data(), 2));
}

}  // namespace
}  // namespace numatwin::native
