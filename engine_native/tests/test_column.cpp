// Columns against a plain vector: append, detach, attach, copy; failures of each allocation.
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "memory/manager.hpp"
#include "memory/memory.hpp"
#include "scarce_memory.hpp"
#include "storage/column.hpp"
#include "storage/shared_column.hpp"

namespace numatwin::native {
namespace {

using Entries = std::vector<std::uint64_t>;

template <typename AnyColumn>
Entries entries_of(const AnyColumn& column, std::uint64_t from, std::uint64_t until) {
    Entries all;
    column.visit_runs(from, until, [&](const ColumnRun& run) {
        EXPECT_EQ(run.first, from + all.size()) << "runs come in order";
        EXPECT_FALSE(run.entries.empty());
        all.insert(all.end(), run.entries.begin(), run.entries.end());
    });
    return all;
}

Entries entries_of(const Column& column) {
    return entries_of(column, 0, column.entries());
}

Entries numbers(std::uint64_t first, std::size_t count) {
    Entries entries(count);
    std::iota(entries.begin(), entries.end(), first);
    return entries;
}

Entries slice(const Entries& entries, std::uint64_t from, std::uint64_t until) {
    until = std::min<std::uint64_t>(until, entries.size());
    if (from >= until) return {};
    return {entries.begin() + static_cast<std::ptrdiff_t>(from),
            entries.begin() + static_cast<std::ptrdiff_t>(until)};
}

TEST(Column, HoldsWhatIsAppended) {
    HeapMemory memory;
    Column column(memory, 10);
    EXPECT_EQ(column.entries(), 0u);
    EXPECT_EQ(entries_of(column), Entries{});
    column.append({});
    column.append(numbers(0, 7));
    column.append(numbers(7, 3));
    EXPECT_EQ(column.bytes(), 80u);
    column.append(numbers(10, 25));
    EXPECT_EQ(column.bytes(), 320u);
    EXPECT_EQ(entries_of(column), numbers(0, 35));
    EXPECT_EQ(entries_of(column, 9, 21), numbers(9, 12));
    EXPECT_EQ(entries_of(column, 30, 1000), numbers(30, 5));
    EXPECT_EQ(entries_of(column, 35, 1000), Entries{});
}

// Segments of 10: entries 25–34 lie in the third and fourth; the third is cut, the fourth unlinked.
TEST(Column, DetachCopiesOfOneSegmentOnly) {
    testing::ScarceMemory memory;
    Column column(memory, 10);
    column.append(numbers(0, 35));
    const std::uint64_t* fourth = nullptr;
    column.visit_runs(30, 31, [&](const ColumnRun& run) { fourth = run.entries.data(); });
    const std::uint64_t before = memory.allocations();
    const Column taken = column.detach(10);
    EXPECT_EQ(memory.allocations(), before + 1);
    EXPECT_EQ(entries_of(column), numbers(0, 25));
    EXPECT_EQ(entries_of(taken), numbers(25, 10));
    taken.visit_runs(5, 6, [&](const ColumnRun& run) { EXPECT_EQ(run.entries.data(), fourth); });
}

TEST(Column, DetachOfNoneAllOrTooMany) {
    HeapMemory memory;
    Column column(memory, 10);
    column.append(numbers(0, 20));
    EXPECT_EQ(column.detach(0).entries(), 0u);
    EXPECT_THROW(column.detach(21), std::invalid_argument);
    EXPECT_EQ(entries_of(column), numbers(0, 20));
    EXPECT_EQ(entries_of(column.detach(20)), numbers(0, 20));
    EXPECT_EQ(column.entries(), 0u);
    column.append(numbers(5, 3));
    EXPECT_EQ(entries_of(column), numbers(5, 3));
}

TEST(Column, ASegmentHoldsAtLeastOneEntry) {
    HeapMemory memory;
    EXPECT_THROW(Column(memory, 0), std::invalid_argument);
    EXPECT_THROW(SharedColumn(memory, 0), std::invalid_argument);
}

// Any sequence of changes of two columns leaves what it leaves of two vectors.
TEST(Column, BehavesAsAVectorDoes) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        std::mt19937_64 random(seed);
        testing::ScarceMemory memory;
        {
            Column columns[2] = {Column(memory, 1 + random() % 9),
                                 Column(memory, 1 + random() % 9)};
            Entries expected[2];
            for (int step = 0; step < 60; ++step) {
                const std::size_t a = random() % 2, b = 1 - a;
                const std::uint64_t count = random() % 30;
                switch (random() % 4) {
                    case 0:
                        columns[a].append(numbers(random(), count));
                        expected[a] = entries_of(columns[a]);
                        break;
                    case 1: {
                        const std::uint64_t moved =
                            std::min<std::uint64_t>(count, expected[a].size());
                        columns[b].attach(columns[a].detach(moved));
                        const Entries tail =
                            slice(expected[a], expected[a].size() - moved, UINT64_MAX);
                        expected[b].insert(expected[b].end(), tail.begin(), tail.end());
                        expected[a].resize(expected[a].size() - moved);
                        break;
                    }
                    case 2: {
                        const std::uint64_t from = random() % 40, until = random() % 40;
                        columns[b].copy_from(columns[a], from, until);
                        const Entries copied = slice(expected[a], from, until);
                        expected[b].insert(expected[b].end(), copied.begin(), copied.end());
                        break;
                    }
                    default: {
                        Column moved(std::move(columns[a]));
                        columns[a] = std::move(columns[b]);
                        columns[b] = std::move(moved);
                        std::swap(expected[a], expected[b]);
                    }
                }
                for (const std::size_t i : {0, 1}) {
                    ASSERT_EQ(entries_of(columns[i]), expected[i]) << "seed " << seed;
                    ASSERT_EQ(columns[i].entries(), expected[i].size());
                }
            }
            EXPECT_EQ(memory.bytes_out(), columns[0].bytes() + columns[1].bytes());
        }
        EXPECT_EQ(memory.bytes_out(), 0u);
    }
}

TEST(Column, AppendIsWholeOrNotAtAll) {
    for (std::uint64_t n = 0; n < 4; ++n) {
        testing::ScarceMemory memory;
        Column column(memory, 10);
        column.append(numbers(0, 5));
        memory.fail_after(n);
        EXPECT_THROW(column.append(numbers(5, 45)), std::bad_alloc);
        EXPECT_EQ(entries_of(column), numbers(0, 5));
        memory.never_fail();
        column.append(numbers(5, 45));
        EXPECT_EQ(entries_of(column), numbers(0, 50));
        memory.fail_after(0);
        EXPECT_THROW(column.copy_from(column, 0, 50), std::bad_alloc);
        EXPECT_EQ(entries_of(column), numbers(0, 50));
    }
}

TEST(Column, DetachThatFailsChangesNothing) {
    testing::ScarceMemory memory;
    Column column(memory, 10);
    column.append(numbers(0, 35));
    memory.fail_after(0);
    EXPECT_THROW(column.detach(10), std::bad_alloc);
    EXPECT_EQ(entries_of(column), numbers(0, 35));
}

// One manager, two caches: the column goes from one thread to the other without being copied.
TEST(Column, ChangesHandsWithinAManager) {
    MemoryManager manager({});
    MemoryCache &one = manager.add_cache(), &other = manager.add_cache();
    {
        Column source(one), target(other);
        std::thread([&] { source.append(numbers(0, 1'000'000)); }).join();
        const std::size_t before = manager.use().used_bytes;
        Column moving = source.detach(500'000);
        std::thread([&] {
            moving.use(other);
            target.attach(std::move(moving));
            target.append(numbers(0, 10));
        }).join();
        EXPECT_EQ(entries_of(target, 0, 500'000), numbers(500'000, 500'000));
        // The segment that was cut, and no other.
        EXPECT_LE(manager.use().used_bytes, before + (2u << 20));
    }
    EXPECT_EQ(manager.use().used_bytes, 0u);
}

TEST(SharedColumn, IsReadWhileItGrows) {
    HeapMemory memory;
    SharedColumn column(memory, 100);
    std::vector<std::thread> threads;
    for (int reader = 0; reader < 2; ++reader) {
        threads.emplace_back([&] {
            for (std::uint64_t seen = 0; seen < 20'000;) {
                const std::uint64_t until = column.entries();
                ASSERT_GE(until, seen);
                seen = until;
                ASSERT_EQ(entries_of(column, until / 2, until),
                          numbers(until / 2, until - until / 2));
            }
        });
    }
    for (std::uint64_t at = 0; at < 20'000; at += 250) column.append(numbers(at, 250));
    for (std::thread& thread : threads) thread.join();
}

TEST(SharedColumn, AppendIsWholeOrNotAtAll) {
    testing::ScarceMemory memory;
    {
        SharedColumn column(memory, 10);
        for (std::uint64_t n = 0; n < 5; ++n) {
            const std::uint64_t before = column.entries();
            memory.fail_after(n);
            EXPECT_THROW(column.append(numbers(before, 200)), std::bad_alloc);
            EXPECT_EQ(column.entries(), before);
            memory.never_fail();
            column.append(numbers(before, 200));
            EXPECT_EQ(entries_of(column, 0, before + 200), numbers(0, before + 200));
        }
    }
    EXPECT_EQ(memory.bytes_out(), 0u);
}

}  // namespace
}  // namespace numatwin::native
