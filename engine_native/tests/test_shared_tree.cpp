// The shared prefix tree: alone against std::map, and by several threads at once.
//
// A failure prints the seed; NUMATWIN_SEED=… runs that one again.
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>
#include <thread>

#include "scarce_memory.hpp"
#include "storage/shared_tree.hpp"
#include "tree_keys.hpp"

namespace numatwin::native {
namespace {

using namespace testing;

TEST(SharedTree, EqualsAMapUnderRandomOperations) {
    for (const TreeShape shape : shapes()) {
        const std::uint64_t seed = base_seed();
        SCOPED_TRACE(describe(shape, seed));
        ScarceMemory memory;
        {
            SharedTree tree(memory, shape);
            Map map;
            KeyDraw draw(seed, shape.key_bits);
            for (int round = 0; round < 30; ++round) {
                const Keys keys = draw.batch(300);
                std::size_t changed = 0;
                const Keys values = drawn(keys.size(), draw);
                for (std::size_t i = 0; i < keys.size(); ++i) {
                    changed += !map.contains(keys[i]);
                    map[keys[i]] = values[i];
                }
                ASSERT_EQ(tree.upsert(keys, values, memory), changed);
                check_lookup(tree, map, draw.batch(50));
                const std::uint64_t first = draw.key();
                check_range(tree, map, first, draw.key());
                ASSERT_EQ(tree.keys(), map.size());
                ASSERT_EQ(tree.bytes(), memory.bytes_out());
                if (HasFatalFailure()) return;
            }
            ASSERT_EQ(content(tree), map);
        }
        ASSERT_EQ(memory.bytes_out(), 0U);
    }
}

TEST(SharedTree, RefusesShapesAndKeysOutOfBounds) {
    ScarceMemory memory;
    EXPECT_THROW(SharedTree(memory, {65, 8}), std::invalid_argument);
    EXPECT_THROW(SharedTree(memory, {64, 17}), std::invalid_argument);
    SharedTree tree(memory, {8, 8});
    const Keys keys{255, 256};
    EXPECT_THROW(tree.upsert(keys, keys, memory), std::invalid_argument);
    EXPECT_EQ(content(tree), (Map{{255, 255}}));
}

TEST(SharedTree, SurvivesEveryFailedAllocation) {
    for (const TreeShape shape : {TreeShape{64, 8}, {64, 3}, {20, 16}}) {
        SCOPED_TRACE(describe(shape, base_seed()));
        ScarceMemory memory;
        SharedTree tree(memory, shape);
        Map map;
        KeyDraw draw(base_seed(), shape.key_bits);
        for (int round = 0; round < 600; ++round) {
            const Keys key{draw.key()}, value{draw()};
            fail_each_allocation(
                memory, [&] { tree.upsert(key, value, memory); },
                [&](bool failed) {
                    if (!failed) map[key[0]] = value[0];
                    ASSERT_EQ(tree.keys(), map.size());
                    ASSERT_EQ(tree.bytes(), memory.bytes_out());
                    check_lookup(tree, map, key);
                });
            if (HasFatalFailure()) return;
        }
        ASSERT_EQ(content(tree), map);
    }
}

/// The keys of a thread: every `threads`-th of keys that lie dense, sparse and far apart, so that
/// all threads change the same buckets and nodes.
Keys keys_of(unsigned thread, unsigned threads, std::uint64_t seed) {
    KeyDraw draw(seed, 64);
    Map all;
    while (all.size() < 6000)
        for (const std::uint64_t key : draw.batch(300)) all[key] = 0;
    Keys mine;
    std::size_t i = 0;
    for (const auto& [key, zero] : all)
        if (i++ % threads == thread) mine.push_back(key);
    std::shuffle(mine.begin(), mine.end(), std::mt19937_64(seed + thread));
    return mine;
}

/// Each writer upserts its keys with rising values and reads its own writes; a reader
/// checks that no key's value ever falls, and scans.
void run_threads(unsigned writers, unsigned prefix_bits) {
    const std::uint64_t seed = base_seed();
    SCOPED_TRACE(describe({64, prefix_bits}, seed));
    constexpr std::uint64_t ROUNDS = 4;
    HeapMemory memory;
    SharedTree tree(memory, {64, prefix_bits});
    std::vector<Map> expected(writers);
    std::atomic<unsigned> working{writers};
    std::vector<std::string> faults(writers + 1);
    std::vector<std::thread> threads;
    for (unsigned thread = 0; thread < writers; ++thread) {
        threads.emplace_back([&, thread] {
            const Keys keys = keys_of(thread, writers, seed);
            Map& map = expected[thread];
            for (std::uint64_t round = 1; round <= ROUNDS; ++round) {
                for (std::size_t start = 0; start < keys.size(); start += 50) {
                    const std::size_t count = std::min<std::size_t>(50, keys.size() - start);
                    const Keys batch(keys.begin() + start, keys.begin() + start + count);
                    const Keys values(count, round);
                    tree.upsert(batch, values, memory);
                    for (const std::uint64_t key : batch) map[key] = round;
                    Keys got(count);
                    std::vector<std::uint8_t> found(count);
                    tree.lookup(batch, got.data(), found.data());
                    for (std::size_t i = 0; i < count; ++i)
                        if (found[i] == 0 || got[i] != round)
                            faults[thread] = "a write of its own is not seen";
                }
            }
            --working;
        });
    }
    threads.emplace_back([&] {
        const Keys keys = keys_of(0, 1, seed);
        Keys values(keys.size()), before(keys.size());
        std::vector<std::uint8_t> found(keys.size());
        do {
            tree.lookup(keys, values.data(), found.data());
            for (std::size_t i = 0; i < keys.size(); ++i) {
                if (found[i] == 0) continue;
                if (values[i] < before[i] || values[i] > ROUNDS)
                    faults[writers] = "a value has fallen";
                before[i] = values[i];
            }
            std::uint64_t last = 0, count = 0;
            tree.scan(0, MOST, [&](std::uint64_t key, std::uint64_t) {
                if (count++ > 0 && key <= last) faults[writers] = "a scan out of order";
                last = key;
            });
        } while (working > 0);
    });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& fault : faults) EXPECT_EQ(fault, "");
    Map all;
    for (const Map& map : expected) all.insert(map.begin(), map.end());
    EXPECT_EQ(content(tree), all);
    EXPECT_EQ(tree.keys(), all.size());
}

TEST(SharedTree, TakesChangesOfTwoThreads) {
    run_threads(2, 8);
}
TEST(SharedTree, TakesChangesOfThreeThreads) {
    run_threads(3, 3);
}
TEST(SharedTree, TakesChangesOfSevenThreads) {
    run_threads(7, 8);
}
TEST(SharedTree, TakesChangesInNodesThatGrow) {
    run_threads(3, 16);
}

/// Threads that race for the very same keys: each is inserted once.
TEST(SharedTree, InsertsAKeyOnceWhoeverIsFirst) {
    for (const unsigned prefix_bits : {5U, 8U}) {
        HeapMemory memory;
        SharedTree tree(memory, {64, prefix_bits});
        const Keys keys = keys_of(0, 1, base_seed());
        std::atomic<std::size_t> inserted{0};
        std::vector<std::thread> threads;
        for (unsigned thread = 0; thread < 4; ++thread)
            threads.emplace_back([&] { inserted += tree.upsert(keys, keys, memory); });
        for (std::thread& thread : threads) thread.join();
        EXPECT_EQ(inserted, keys.size());
        EXPECT_EQ(content(tree).size(), keys.size());
    }
}

}  // namespace
}  // namespace numatwin::native
