// Partition table: against std::upper_bound, and replaced while readers read.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "memory/memory.hpp"
#include "pause_gate.hpp"
#include "scarce_memory.hpp"
#include "systems/eris/holder_bitmap.hpp"
#include "systems/eris/node_search.hpp"
#include "systems/eris/partition_table.hpp"

namespace numatwin::native {
namespace {

using Keys = std::vector<std::uint64_t>;
using Partitions = std::vector<Partition>;
constexpr std::uint64_t greatest = std::numeric_limits<std::uint64_t>::max();

// The definition: the last partition that begins at or below the key.
std::uint32_t owner_by_definition(const Partitions& partitions, std::uint64_t key) {
    const auto above =
        std::upper_bound(partitions.begin(), partitions.end(), key,
                         [](std::uint64_t key, const Partition& p) { return key < p.first_key; });
    return std::prev(above)->owner;
}

Keys keys_around(const Partitions& partitions, std::mt19937_64& random) {
    Keys keys{0, 1, greatest - 1, greatest};
    for (const Partition& partition : partitions) {
        keys.push_back(partition.first_key - 1);
        keys.push_back(partition.first_key);
        keys.push_back(partition.first_key + 1);
        keys.push_back(random());
    }
    std::shuffle(keys.begin(), keys.end(), random);
    return keys;
}

void expect_by_definition(const Partitions& partitions, std::mt19937_64& random) {
    HeapMemory heap;
    const PartitionTree tree(heap, partitions, 5);
    const Keys keys = keys_around(partitions, random);
    std::vector<std::uint32_t> expected, found(keys.size()), found_of_pairs(keys.size());
    std::vector<Pair> pairs;
    for (const std::uint64_t key : keys) {
        expected.push_back(owner_by_definition(partitions, key));
        pairs.push_back({key, ~key});
    }
    tree.find_owners(keys, found.data());
    EXPECT_EQ(found, expected);
    tree.find_owners(pairs, found_of_pairs.data());
    EXPECT_EQ(found_of_pairs, expected);
    EXPECT_EQ(tree.owner(keys[0]), expected[0]);
    EXPECT_EQ(tree.version(), 5u);
}

Partitions random_partitions(std::size_t count, std::uint64_t bound, std::mt19937_64& random) {
    Keys first{0};
    while (first.size() < count) {
        first.push_back(bound == greatest ? random() : random() % (bound + 1));
    }
    std::sort(first.begin(), first.end());
    Partitions partitions;
    for (const std::uint64_t key : first) {
        partitions.push_back({key, static_cast<std::uint32_t>(random() % 5000)});
    }
    return partitions;
}

TEST(PartitionTree, AgreesWithUpperBound) {
    std::mt19937_64 random(1);
    for (std::size_t count = 1; count <= 4096; count += 1 + count / 7) {
        SCOPED_TRACE(count);
        expect_by_definition(random_partitions(count, greatest, random), random);
    }
    // round the sizes at which a level or a node is full
    for (const std::size_t count : {7, 8, 9, 63, 64, 65, 511, 512, 513, 4095, 4096}) {
        SCOPED_TRACE(count);
        expect_by_definition(random_partitions(count, greatest, random), random);
    }
}

TEST(PartitionTree, EmptyPartitionsHoldNothing) {
    std::mt19937_64 random(2);
    for (const std::size_t count : {2, 3, 8, 9, 70, 600, 4096}) {
        for (const std::uint64_t bound : {0, 1, 5, 100}) {  // many begin at the same keys
            SCOPED_TRACE(count);
            expect_by_definition(random_partitions(count, bound, random), random);
        }
    }
    expect_by_definition({{0, 1}, {greatest, 2}}, random);
    expect_by_definition({{0, 1}, {greatest, 2}, {greatest, 3}}, random);
    expect_by_definition({{0, 1}, {0, 2}, {0, 3}}, random);
}

TEST(PartitionTree, SearchWithoutSimdAgrees) {
    using Node = PartitionTree::Node;
    // Two levels: the root's children hold the partitions that begin at 0, 10, 20 and 30, 40.
    Node nodes[3];
    for (Node& node : nodes) {
        std::fill(std::begin(node.last), std::end(node.last), greatest);
    }
    nodes[0].last[0] = 29;
    nodes[0].first_child = 1;
    nodes[1].last[0] = 9;
    nodes[1].last[1] = 19;
    nodes[1].first_child = 0;
    nodes[2].last[0] = 39;
    nodes[2].first_child = 8;
    const std::uint32_t owners[] = {7, 6, 5, 0, 0, 0, 0, 0, 4, 3};
    const node_search::Tree tree{nodes, 2, owners};
    Keys keys;
    std::vector<std::uint32_t> expected;
    for (std::uint64_t key = 0; key < 50; ++key) {
        keys.push_back(key);
        expected.push_back(7 - static_cast<std::uint32_t>(key / 10));
    }
    keys.push_back(greatest);
    expected.push_back(3);
    std::vector<std::uint32_t> plain(keys.size()), chosen(keys.size());
    node_search::find_portable(tree, keys.data(), 1, keys.size(), plain.data());
    node_search::find(tree, keys.data(), 1, keys.size(), chosen.data());
    EXPECT_EQ(plain, expected);
    EXPECT_EQ(chosen, expected);
}

TEST(PartitionTree, RefusesWhatIsNoPartitioning) {
    HeapMemory heap;
    EXPECT_THROW(PartitionTree(heap, {}, 0), std::invalid_argument);
    EXPECT_THROW(PartitionTree(heap, Partitions{{1, 0}}, 0), std::invalid_argument);
    EXPECT_THROW(PartitionTree(heap, Partitions{{0, 0}, {5, 1}, {4, 2}}, 0), std::invalid_argument);
}

TEST(PartitionTable, OldVersionStaysWhileAReaderUsesIt) {
    HeapMemory heap;
    PartitionTable table(heap, 2, Partitions{{0, 1}});
    const PartitionTree& old = table.read(0);
    EXPECT_EQ(table.read(1).version(), 0u);
    EXPECT_EQ(table.replace(Partitions{{0, 2}}), 1u);
    EXPECT_EQ(old.owner(5), 1u);
    EXPECT_FALSE(table.all_use_newest());
    EXPECT_EQ(table.read(1).owner(5), 2u);
    EXPECT_EQ(table.free_unused(), 1u);
    EXPECT_EQ(table.replace(Partitions{{0, 3}}), 2u);
    EXPECT_EQ(table.free_unused(), 2u);  // one for each reader
    table.leave(1);
    EXPECT_EQ(table.free_unused(), 1u);
    EXPECT_EQ(old.owner(5), 1u);
    EXPECT_EQ(table.read(0).owner(5), 3u);
    EXPECT_TRUE(table.all_use_newest());
    EXPECT_EQ(table.free_unused(), 0u);
}

TEST(PartitionTable, ReaderThatAnnouncesAnOldVersionTakesTheNewOne) {
    HeapMemory heap;
    PartitionTable table(heap, 1, Partitions{{0, 1}});
    PauseGate announcing("table: announced");
    auto reader = std::async(std::launch::async, [&] {
        return announcing.run([&] { return table.read(0).version(); });
    });
    announcing.await_stopped();
    EXPECT_EQ(table.replace(Partitions{{0, 2}}), 1u);
    EXPECT_EQ(table.free_unused(), 1u);  // announced, though not used yet
    EXPECT_FALSE(table.all_use_newest());
    announcing.open();
    EXPECT_EQ(reader.get(), 1u);
    EXPECT_EQ(table.free_unused(), 0u);
    EXPECT_TRUE(table.all_use_newest());
}

TEST(PartitionTable, ReadersSeeWholeVersionsWhileItIsReplaced) {
    constexpr std::size_t readers = 3;
    constexpr std::uint64_t versions = 2000;
    HeapMemory heap;
    const auto partitions_of = [](std::uint64_t version) {
        Partitions partitions{{0, static_cast<std::uint32_t>(version)}};
        for (std::uint64_t p = 1; p < 2 + version % 90; ++p) {
            partitions.push_back({p << 32, static_cast<std::uint32_t>(version + p)});
        }
        return partitions;
    };
    PartitionTable table(heap, readers, partitions_of(0));
    std::atomic<std::uint64_t> wrong{0};
    std::vector<std::thread> threads;
    for (std::size_t reader = 0; reader < readers; ++reader) {
        threads.emplace_back([&, reader] {
            std::uint64_t seen = 0;
            while (seen < versions) {
                const PartitionTree& tree = table.read(reader);
                wrong += tree.version() < seen;  // never back
                seen = tree.version();
                const std::uint64_t last = 1 + seen % 90;
                wrong += tree.owner(last << 32) != seen + last || tree.owner(1) != seen;
                if (seen % 7 == 0) {
                    table.leave(reader);
                }
                std::this_thread::yield();
            }
            table.leave(reader);
        });
    }
    std::size_t most_held = 0;
    for (std::uint64_t version = 1; version <= versions; ++version) {
        EXPECT_EQ(table.replace(partitions_of(version)), version);
        most_held = std::max(most_held, table.free_unused());
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(wrong, 0u);
    EXPECT_LE(most_held, readers);
    EXPECT_EQ(table.free_unused(), 0u);
}

TEST(PartitionTable, StaysAsItWasWhereMemoryFails) {
    testing::ScarceMemory memory;
    {
        PartitionTable table(memory, 1, Partitions{{0, 1}});
        memory.fail_after(0);
        EXPECT_THROW(table.replace(Partitions{{0, 2}}), std::bad_alloc);
        EXPECT_EQ(table.read(0).owner(9), 1u);
        EXPECT_EQ(table.newest().version(), 0u);
        memory.never_fail();
        EXPECT_EQ(table.replace(Partitions{{0, 2}}), 1u);
        EXPECT_EQ(table.read(0).owner(9), 2u);
        memory.fail_after(0);
        EXPECT_THROW(PartitionTable(memory, 1, Partitions{{0, 1}}), std::bad_alloc);
    }
    EXPECT_EQ(memory.bytes_out(), 0u);
}

TEST(HolderBitmap, VisitsItsHoldersInOrder) {
    HolderBitmap holders(200);
    std::vector<std::size_t> set{0, 1, 63, 64, 130, 199};
    for (const std::size_t worker : set) {
        holders.set(worker);
    }
    std::vector<std::size_t> visited;
    holders.for_each([&](std::size_t worker) { visited.push_back(worker); });
    EXPECT_EQ(visited, set);
    EXPECT_EQ(holders.count(), set.size());
    holders.set(64, false);
    EXPECT_FALSE(holders.test(64));
    EXPECT_EQ(holders.count(), set.size() - 1);
    EXPECT_EQ(HolderBitmap::all(65).count(), 65u);
    EXPECT_EQ(HolderBitmap(0).count(), 0u);
}

}  // namespace
}  // namespace numatwin::native
