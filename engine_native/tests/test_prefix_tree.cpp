// The prefix tree against std::map: random operations on all shapes, whole trees compared.
//
// A failure prints the seed; NUMATWIN_SEED=… runs that one again.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <random>
#include <stdexcept>
#include <vector>

#include "scarce_memory.hpp"
#include "storage/prefix_tree.hpp"
#include "tree_keys.hpp"

namespace numatwin::native {
namespace {

using namespace testing;

std::vector<KeyValue> run_of(const Map& map) {
    std::vector<KeyValue> run;
    for (const auto& [key, value] : map) run.push_back({key, value});
    return run;
}

/// A tree and the map it has to equal.
struct Twin {
    ScarceMemory& memory;
    PrefixTree tree;
    Map map;

    Twin(ScarceMemory& from, TreeShape shape) : memory(from), tree(from, shape) {}

    void upsert(const Keys& keys, KeyDraw& draw) {
        const Keys values = drawn(keys.size(), draw);
        const std::size_t before = map.size();
        for (std::size_t i = 0; i < keys.size(); ++i) map[keys[i]] = values[i];
        ASSERT_EQ(tree.upsert(keys, values), map.size() - before);
    }
    /// Takes the range out, and drops it.
    void drop(std::uint64_t first, std::uint64_t last) {
        if (first > last) std::swap(first, last);
        const auto from = map.lower_bound(first), to = map.upper_bound(last);
        const auto there = static_cast<std::uint64_t>(std::distance(from, to));
        ASSERT_EQ(tree.extract(first, last).keys(), there);
        map.erase(from, to);
    }
    void check_all() const {
        ASSERT_EQ(tree.keys(), map.size());
        ASSERT_EQ(content(tree), map);
        Keys keys;
        for (const auto& [key, value] : map) keys.push_back(key);
        check_lookup(tree, map, keys);
    }
};

/// Calls `check` with an empty tree of each shape, and draws of keys of its width.
template <class Check>
void with_each(const std::vector<TreeShape>& shapes, Check check) {
    for (const TreeShape shape : shapes) {
        SCOPED_TRACE(describe(shape, base_seed()));
        ScarceMemory memory;
        {
            Twin twin(memory, shape);
            KeyDraw draw(base_seed(), shape.key_bits);
            check(twin, draw);
        }
        ASSERT_EQ(memory.bytes_out(), 0U);
        if (::testing::Test::HasFatalFailure()) return;
    }
}

// Arrays that have every key of their place, and those from which one is gone.
TEST(PrefixTree, full_arrays_hold_no_other_keys) {
    HeapMemory memory;
    for (const unsigned key_bits : {9U, 20U, 64U}) {
        for (const std::uint64_t base :
             {std::uint64_t{0}, std::uint64_t{256}, std::uint64_t{1} << 40}) {
            if (key_bits < 64 && base >> key_bits != 0) continue;
            PrefixTree tree(memory, {key_bits, 8});
            std::vector<std::uint64_t> keys(256), values(256);
            for (std::uint64_t k = 0; k < 256; ++k) keys[k] = base + k, values[k] = 7 * k;
            EXPECT_EQ(tree.upsert(keys, values), 256u);
            EXPECT_EQ(tree.upsert(keys, values), 0u);
            std::vector<std::uint64_t> got(256);
            std::vector<std::uint8_t> found(256);
            for (unsigned bit = 0; bit < 64; ++bit) {
                std::vector<std::uint64_t> others = keys;
                for (std::uint64_t& key : others) key ^= std::uint64_t{1} << bit;
                EXPECT_EQ(tree.lookup(others, got.data(), found.data()), bit < 8 ? 256u : 0u)
                    << bit;
            }
            const std::vector<std::uint64_t> gone{base + 17};
            EXPECT_EQ(tree.extract(base + 17, base + 17).keys(), 1u);
            EXPECT_EQ(tree.lookup(keys, got.data(), found.data()), 255u);
            EXPECT_EQ(found[17], 0);
            EXPECT_EQ(tree.upsert(gone, std::vector<std::uint64_t>{5}), 1u);
            EXPECT_EQ(tree.lookup(keys, got.data(), found.data()), 256u);
            PrefixTree upper = tree.extract(base + 100, base + 255);
            EXPECT_EQ(tree.lookup(keys, got.data(), found.data()), 100u);
            EXPECT_EQ(upper.lookup(keys, got.data(), found.data()), 156u);
            tree.absorb(std::move(upper));
            EXPECT_EQ(tree.lookup(keys, got.data(), found.data()), 256u);
            EXPECT_EQ(got[255], 7u * 255u);
        }
    }
}

TEST(PrefixTree, EqualsAMapUnderRandomOperations) {
    with_each(shapes(), [](Twin& twin, KeyDraw& draw) {
        for (int round = 0; round < 40; ++round) {
            const Keys keys = draw.batch(300);
            if (draw() % 3 != 0)
                twin.upsert(keys, draw);
            else
                twin.drop(draw.key(), draw.key());
            check_lookup(twin.tree, twin.map, draw.batch(50));
            const std::uint64_t first = draw.key();
            check_range(twin.tree, twin.map, first, draw.key());
            ASSERT_EQ(twin.tree.keys(), twin.map.size());
            ASSERT_EQ(twin.tree.bytes(), twin.memory.bytes_out());
            if (HasFatalFailure()) return;
        }
        twin.check_all();
        // Emptied, it holds no memory.
        twin.drop(0, MOST);
        ASSERT_EQ(twin.tree.bytes(), 0U);
    });
}

TEST(PrefixTree, ExtractsAndAbsorbsRanges) {
    with_each(shapes(), [](Twin& twin, KeyDraw& draw) {
        for (int round = 0; round < 12; ++round) {
            twin.upsert(draw.batch(300), draw);
            std::uint64_t first = draw.key(), last = draw.key();
            if (first > last) std::swap(first, last);
            Twin taken(twin.memory, twin.tree.shape());
            taken.tree = twin.tree.extract(first, last);
            const auto from = twin.map.lower_bound(first), to = twin.map.upper_bound(last);
            taken.map.insert(from, to);
            twin.map.erase(from, to);
            twin.check_all();
            taken.check_all();
            ASSERT_EQ(twin.tree.bytes() + taken.tree.bytes(), twin.memory.bytes_out());
            if (round % 2 == 0) {
                // Both sides of the cut change while they are apart.
                twin.drop(draw.key(), draw.key());
                Keys inside;
                for (const std::uint64_t key : draw.batch(100))
                    if (first <= key && key <= last) inside.push_back(key);
                taken.upsert(inside, draw);
            }
            // Whichever absorbs the other, where that is allowed.
            const bool swaps =
                draw() % 2 == 0 && (twin.map.empty() || twin.map.begin()->first > last ||
                                    twin.map.rbegin()->first < first);
            if (swaps) {
                std::swap(twin.tree, taken.tree);
                std::swap(twin.map, taken.map);
            }
            twin.tree.absorb(std::move(taken.tree));
            ASSERT_EQ(taken.tree.keys(), 0U);
            ASSERT_EQ(taken.tree.bytes(), 0U);
            twin.map.merge(taken.map);
            twin.check_all();
            ASSERT_EQ(twin.tree.bytes(), twin.memory.bytes_out());
            if (HasFatalFailure()) return;
        }
    });
}

TEST(PrefixTree, RefusesToAbsorbAcrossItsOwnKeys) {
    ScarceMemory memory;
    PrefixTree tree(memory), other(memory), narrow(memory, {32, 8});
    const Keys mine{5}, theirs{1, 9};
    tree.upsert(mine, mine);
    other.upsert(theirs, theirs);
    narrow.upsert(mine, mine);
    EXPECT_THROW(tree.absorb(std::move(other)), std::invalid_argument);
    EXPECT_THROW(other.absorb(std::move(narrow)), std::invalid_argument);
    EXPECT_EQ(content(other), (Map{{1, 1}, {9, 9}}));
    EXPECT_EQ(content(tree), (Map{{5, 5}}));
}

TEST(PrefixTree, FlattensInPiecesAndIsBuiltFromThem) {
    with_each(shapes(), [](Twin& twin, KeyDraw& draw) {
        for (int round = 0; round < 20; ++round) twin.upsert(draw.batch(500), draw);
        PrefixTree rebuilt(twin.memory, twin.tree.shape());
        std::vector<KeyValue> piece(1 + draw() % 700);
        Map streamed;
        for (std::uint64_t first = 0;;) {
            const std::size_t count = twin.tree.flatten(first, MOST, piece);
            for (std::size_t i = 0; i < count; ++i) streamed[piece[i].key] = piece[i].value;
            rebuilt.append({piece.data(), count});
            if (count < piece.size() || piece.back().key == MOST) break;
            first = piece.back().key + 1;
        }
        ASSERT_EQ(streamed, twin.map);
        ASSERT_EQ(content(rebuilt), twin.map);
        ASSERT_EQ(rebuilt.keys(), twin.map.size());
        PrefixTree at_once(twin.memory, twin.tree.shape());
        at_once.append(run_of(twin.map));
        ASSERT_EQ(content(at_once), twin.map);
        twin.tree = std::move(rebuilt);
        twin.upsert(draw.batch(500), draw);
        twin.drop(draw.key(), draw.key());
        twin.check_all();
        ASSERT_EQ(twin.tree.bytes() + at_once.bytes(), twin.memory.bytes_out());
    });
}

TEST(PrefixTree, RefusesRunsOutOfOrder) {
    ScarceMemory memory;
    PrefixTree tree(memory);
    const std::vector<KeyValue> twice{{3, 0}, {3, 0}}, one{{7, 0}}, around{{6, 0}, {8, 0}};
    EXPECT_THROW(tree.append(twice), std::invalid_argument);
    tree.append(one);
    EXPECT_THROW(tree.append(around), std::invalid_argument);
    EXPECT_EQ(tree.keys(), 1U);
}

TEST(PrefixTree, RefusesShapesAndKeysOutOfBounds) {
    ScarceMemory memory;
    EXPECT_THROW(PrefixTree(memory, {0, 8}), std::invalid_argument);
    EXPECT_THROW(PrefixTree(memory, {65, 8}), std::invalid_argument);
    EXPECT_THROW(PrefixTree(memory, {64, 0}), std::invalid_argument);
    EXPECT_THROW(PrefixTree(memory, {64, 17}), std::invalid_argument);
    PrefixTree tree(memory, {8, 8});
    const Keys keys{255, 256};
    EXPECT_THROW(tree.upsert(keys, keys), std::invalid_argument);
    EXPECT_EQ(content(tree), (Map{{255, 255}}));
    Keys values(2);
    std::uint8_t found[2];
    EXPECT_EQ(tree.lookup(keys, values.data(), found), 1U);
    EXPECT_EQ(found[1], 0);
}

TEST(PrefixTree, SurvivesEveryFailedAllocationOfAnUpsert) {
    with_each({{64, 8}, {64, 1}, {64, 3}, {20, 16}, {9, 4}}, [](Twin& twin, KeyDraw& draw) {
        for (int round = 0; round < 400; ++round) {
            const Keys keys = draw.batch(6), values = drawn(keys.size(), draw);
            fail_each_allocation(
                twin.memory, [&] { twin.tree.upsert(keys, values); },
                [&](bool failed) {
                    if (!failed) {
                        for (std::size_t i = 0; i < keys.size(); ++i) twin.map[keys[i]] = values[i];
                        return;
                    }
                    // The keys before the one that failed are in, no other has changed.
                    Map after = twin.map;
                    std::size_t done = 0;
                    for (; content(twin.tree) != after && done < keys.size(); ++done)
                        after[keys[done]] = values[done];
                    ASSERT_EQ(content(twin.tree), after);
                    ASSERT_LT(done, keys.size());
                    ASSERT_EQ(twin.tree.keys(), after.size());
                    ASSERT_EQ(twin.tree.bytes(), twin.memory.bytes_out());
                });
            if (HasFatalFailure()) return;
        }
        twin.check_all();
    });
}

TEST(PrefixTree, SurvivesEveryFailedAllocationOfATransfer) {
    with_each({{64, 8}, {64, 2}, {20, 16}}, [](Twin& twin, KeyDraw& draw) {
        for (int round = 0; round < 40; ++round) {
            twin.upsert(draw.batch(200), draw);
            std::uint64_t first = draw.key(), last = draw.key();
            if (first > last) std::swap(first, last);
            PrefixTree taken(twin.memory, twin.tree.shape());
            fail_each_allocation(
                twin.memory, [&] { taken = twin.tree.extract(first, last); },
                [&](bool failed) {
                    if (failed) twin.check_all();
                });
            fail_each_allocation(
                twin.memory, [&] { twin.tree.absorb(std::move(taken)); },
                [&](bool) {
                    Map both = content(twin.tree);
                    const Map theirs = content(taken);
                    ASSERT_EQ(both.size(), twin.tree.keys());
                    ASSERT_EQ(theirs.size(), taken.keys());
                    both.insert(theirs.begin(), theirs.end());
                    ASSERT_EQ(both, twin.map);
                    ASSERT_EQ(twin.tree.keys() + taken.keys(), twin.map.size());
                    ASSERT_EQ(twin.tree.bytes() + taken.bytes(), twin.memory.bytes_out());
                });
            ASSERT_EQ(taken.keys(), 0U);
            twin.check_all();
            if (HasFatalFailure()) return;
        }
    });
}

TEST(PrefixTree, SurvivesEveryFailedAllocationOfABuild) {
    ScarceMemory memory;
    PrefixTree tree(memory);
    KeyDraw draw(base_seed(), 64);
    Map map;
    for (int round = 0; round < 4; ++round)
        for (const std::uint64_t key : draw.batch(400)) map[key] = draw();
    const std::vector<KeyValue> run = run_of(map);
    fail_each_allocation(
        memory, [&] { tree.append(run); },
        [&](bool failed) {
            ASSERT_EQ(content(tree), failed ? Map{} : map);
            ASSERT_EQ(tree.bytes(), memory.bytes_out());
        });
}

/// Bytes per key once `count` keys are in.
double bytes_per_key(std::size_t count, auto key) {
    ScarceMemory memory;
    PrefixTree tree(memory);
    Keys keys(count);
    for (std::size_t i = 0; i < count; ++i) keys[i] = key(i);
    tree.upsert(keys, keys);
    EXPECT_EQ(tree.keys(), count);
    return static_cast<double>(tree.bytes()) / static_cast<double>(count);
}

/// Nodes on the way to the keys from first to last, on average, beyond those that keys so wide
/// apart need: each takes 8 bits, above the 8 of an array of values.
double needless_levels(const PrefixTree& tree, std::uint64_t first, std::uint64_t last) {
    const auto wide = static_cast<double>(std::bit_width(first ^ last));
    const double needed = std::max(std::ceil((wide - 8) / 8), 0.0);
    double sum = 0, count = 0;
    for (std::uint64_t key = first; key <= last; key += 61, ++count) sum += tree.levels(key);
    return sum / count - needed;
}

void append_pieces(PrefixTree& tree, std::uint64_t first, std::uint64_t end, std::uint64_t piece) {
    std::vector<KeyValue> run;
    while (first < end) {
        run.clear();
        for (const std::uint64_t until = std::min(end, first + piece); first < until; ++first)
            run.push_back({first, first});
        tree.append(run);
    }
}

// An AEU's partition begins anywhere, is loaded in pieces, and changes by parts.
TEST(PrefixTree, IsAsFlatForDenseKeysWhereverTheirPiecesBegin) {
    SCOPED_TRACE(base_seed());
    std::mt19937_64 random(base_seed());
    constexpr int rounds = 100;
    double moved = 0;
    for (int round = 0; round < rounds; ++round) {
        ScarceMemory memory;
        PrefixTree left(memory), right(memory);
        const std::uint64_t wide = random() % 25;
        const std::uint64_t first = random() % (std::uint64_t{1} << wide);
        const std::uint64_t middle = first + 2'000 + random() % 300'000;
        const std::uint64_t end = middle + 2'000 + random() % 300'000;
        const std::uint64_t piece = 1'000 + random() % 20'000;
        append_pieces(left, first, middle, piece);
        append_pieces(right, middle, end, piece);
        // The less, the larger: parts of an array at either end hang where there is room.
        EXPECT_LT(needless_levels(left, first, middle - 1), 0.1) << first << ' ' << middle;
        EXPECT_LT(needless_levels(right, middle, end - 1), 0.1) << middle << ' ' << end;
        const std::uint64_t cut = first + 500 + random() % (middle - first - 1'000);
        right.absorb(left.extract(cut, middle - 1));
        // A part that moves may bring one level too many, seldom.
        const double needless = needless_levels(right, cut, end - 1);
        EXPECT_LT(needless, 1.05) << cut << ' ' << middle << ' ' << end;
        moved += needless / rounds;
    }
    EXPECT_LT(moved, 0.1);
}

TEST(PrefixTree, NeedsLittleMemoryPerKeyHoweverTheyLie) {
    std::mt19937_64 random(base_seed());
    const std::size_t count = 200'000;
    EXPECT_LT(bytes_per_key(count, [&](std::size_t i) { return i; }), 9);
    EXPECT_LT(bytes_per_key(count, [&](std::size_t i) { return MOST - i; }), 9);
    // Each key once, in another order: 7919 has no factor in common with the count.
    EXPECT_LT(bytes_per_key(count, [&](std::size_t i) { return i * 7919 % count; }), 10);
    EXPECT_LT(bytes_per_key(count, [&](std::size_t) { return random(); }), 30);
    EXPECT_LT(bytes_per_key(count, [&](std::size_t i) { return i << 40; }), 30);
    EXPECT_LT(bytes_per_key(count, [&](std::size_t i) { return i * 5; }), 30);
    // Clusters of 20 keys, anywhere.
    EXPECT_LT(bytes_per_key(count,
                            [&, base = std::uint64_t{0}](std::size_t i) mutable {
                                if (i % 20 == 0) base = random();
                                return base + i % 20;
                            }),
              50);
}

}  // namespace
}  // namespace numatwin::native
