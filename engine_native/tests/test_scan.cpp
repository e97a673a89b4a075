// Scans: each set of loops that this CPU has against the definition, shared scans, snapshots.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "memory/memory.hpp"
#include "storage/column.hpp"
#include "storage/scan.hpp"
#include "storage/shared_column.hpp"

namespace numatwin::native {
namespace {

using Entries = std::vector<std::uint64_t>;
constexpr std::uint64_t most = UINT64_MAX;

bool inside(std::uint64_t entry, ValueRange range) {
    return range.low <= entry && entry <= range.high;
}

/// What a scan of the entries shall give, by its definition.
ScanResult expected(std::span<const std::uint64_t> entries, const Scan& scan) {
    ScanResult result;
    if (scan.output == ScanOutput::bitmap) result.bitmap.resize((entries.size() + 63) / 64);
    for (std::size_t i = 0; i < entries.size(); ++i) {
        if (!inside(entries[i], scan.range)) continue;
        ++result.matches;
        if (scan.output == ScanOutput::sum) result.sum += entries[i];
        if (scan.output == ScanOutput::bitmap) result.bitmap[i / 64] |= std::uint64_t{1} << i % 64;
        if (scan.output == ScanOutput::positions) result.positions.push_back(i);
    }
    return result;
}

void expect_equal(const ScanResult& got, const ScanResult& wanted) {
    ASSERT_EQ(got.matches, wanted.matches);
    ASSERT_EQ(got.sum, wanted.sum);
    ASSERT_EQ(got.bitmap, wanted.bitmap);
    ASSERT_EQ(got.positions, wanted.positions);
}

/// Many extremes and their neighbours among what is random.
Entries some_entries(std::mt19937_64& random, std::size_t count) {
    const std::uint64_t special[] = {0, 1, most, most - 1, most / 2, most / 2 + 1, 41, 42, 43};
    Entries entries(count);
    for (std::uint64_t& entry : entries) {
        entry = random() % 3 == 0 ? random() : special[random() % std::size(special)];
    }
    return entries;
}

const ValueRange ranges[] = {
    {0, most},
    {0, 0},
    {most, most},
    {42, 42},
    {41, 43},
    {1, most},
    {0, most - 1},
    {most / 2, most / 2 + 1},
    {0, most / 2},
    {most / 2 + 1, most},
    {most / 4, most / 4 * 3},
};
const ValueRange nothing[] = {{1, 0}, {most, 0}, {43, 42}};
const ScanOutput outputs[] = {ScanOutput::count, ScanOutput::sum, ScanOutput::bitmap,
                              ScanOutput::positions};

class Kernels : public testing::TestWithParam<const ScanKernels*> {};

// Lengths around those of vectors and words, at each offset of a cache line; a guard behind each
// output is left alone.
TEST_P(Kernels, DoWhatIsDefined) {
    const ScanKernels& kernels = *GetParam();
    std::mt19937_64 random(1);
    constexpr std::uint64_t guard = 0x5a5a'5a5a'5a5a'5a5a;
    for (std::size_t length = 0; length < 300; length += length < 140 ? 1 : 13) {
        const Entries data = some_entries(random, length + 8);
        const std::span entries = std::span(data).subspan(length % 8, length);
        for (const ValueRange range : ranges) {
            const ScanResult sum = expected(entries, {range, ScanOutput::sum});
            EXPECT_EQ(kernels.count(entries.data(), length, range), sum.matches);
            const SumOfMatches got = kernels.sum(entries.data(), length, range);
            EXPECT_EQ(got.matches, sum.matches);
            EXPECT_EQ(got.sum, sum.sum);

            ScanResult bitmap = expected(entries, {range, ScanOutput::bitmap});
            Entries words(bitmap.bitmap.size() + 1, guard);
            EXPECT_EQ(kernels.bitmap(entries.data(), length, range, words.data()), sum.matches);
            bitmap.bitmap.push_back(guard);
            EXPECT_EQ(words, bitmap.bitmap) << length;

            const std::uint64_t first = random();
            Entries positions(sum.matches + ScanKernels::positions_slack + 1, guard);
            EXPECT_EQ(kernels.positions(entries.data(), length, range, first, positions.data()),
                      sum.matches);
            EXPECT_EQ(positions.back(), guard);
            positions.resize(sum.matches);
            ScanResult wanted = expected(entries, {range, ScanOutput::positions});
            for (std::uint64_t& position : wanted.positions) position += first;
            EXPECT_EQ(positions, wanted.positions) << length;
        }
    }
}

// So long that they may go past the caches, in whole lines, wherever in a line they begin and end.
TEST_P(Kernels, LongBitmapsBeginAnywhere) {
    const ScanKernels& kernels = *GetParam();
    std::mt19937_64 random(5);
    constexpr std::uint64_t guard = 0x5a5a'5a5a'5a5a'5a5a;
    constexpr std::size_t least = 1 << 16;
    const Entries data = some_entries(random, least + 2000);
    const ValueRange range{41, most / 2};
    for (const std::size_t length : {least, least + 1, least + 511, least + 1985}) {
        const std::span entries = std::span(data).first(length);
        ScanResult wanted = expected(entries, {range, ScanOutput::bitmap});
        for (std::size_t begin = 0; begin < 8; ++begin) {
            Entries words(begin + wanted.bitmap.size() + 1, guard);
            EXPECT_EQ(kernels.bitmap(entries.data(), length, range, &words[begin]), wanted.matches);
            const auto first = words.begin() + static_cast<std::ptrdiff_t>(begin);
            EXPECT_TRUE(std::equal(wanted.bitmap.begin(), wanted.bitmap.end(), first)) << begin;
            EXPECT_EQ(words.back(), guard);
            EXPECT_EQ(std::count(words.begin(), first, guard), static_cast<std::ptrdiff_t>(begin));
        }
    }
}

// A column of odd segments, some of them attached half full; all predicates and outputs at once.
TEST_P(Kernels, ShareOnePass) {
    std::mt19937_64 random(2);
    HeapMemory memory;
    std::vector<Scan> scans;
    for (const ScanOutput output : outputs) {
        for (const ValueRange range : ranges) scans.push_back({range, output});
        for (const ValueRange range : nothing) scans.push_back({range, output});
    }
    std::vector<ScanResult> results(scans.size());  // used again each turn
    for (const std::size_t segment : {1, 7, 64, 100, 5000}) {
        Column column(memory, segment);
        const std::size_t count = segment == 1 ? 200 : 9000;
        column.append(some_entries(random, count));
        Column tail = column.detach(count / 3);
        Column part(memory, 37);
        part.append(some_entries(random, 50));
        column.attach(std::move(part));
        column.attach(std::move(tail));
        Entries entries;
        column.visit_runs(0, most, [&](const ColumnRun& run) {
            entries.insert(entries.end(), run.entries.begin(), run.entries.end());
        });
        ASSERT_EQ(entries.size(), count + 50);
        for (const std::uint64_t until : {std::size_t{0}, count / 2 + 3, entries.size()}) {
            scan(column, until, scans, results, *GetParam());
            for (std::size_t i = 0; i < scans.size(); ++i) {
                expect_equal(results[i], expected(std::span(entries).first(until), scans[i]));
            }
        }
    }
}

TEST_P(Kernels, MorselsOfManyThreadsMakeOneResult) {
    std::mt19937_64 random(3);
    HeapMemory memory;
    SharedColumn column(memory, 1000);
    const Entries entries = some_entries(random, 20'011);
    column.append(entries);
    std::vector<Scan> scans;
    for (const ScanOutput output : outputs) scans.push_back({{41, most / 2}, output});
    scans.push_back({nothing[0], ScanOutput::bitmap});
    for (const int workers : {1, 2, 3, 7}) {
        MorselScan morsels(column, scans, 192, *GetParam());
        std::vector<std::thread> threads;
        for (int i = 0; i < workers; ++i) threads.emplace_back([&] { morsels.work(); });
        column.append(some_entries(random, 100));  // not theirs to see
        for (std::thread& thread : threads) thread.join();
        const std::vector<ScanResult> results = std::move(morsels).results();
        const std::uint64_t seen = column.entries() - 100;
        Entries all;
        column.visit_runs(0, seen, [&](const ColumnRun& run) {
            all.insert(all.end(), run.entries.begin(), run.entries.end());
        });
        for (std::size_t i = 0; i < scans.size(); ++i) {
            expect_equal(results[i], expected(all, scans[i]));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(OfThisCpu, Kernels,
                         testing::ValuesIn(available_scan_kernels().begin(),
                                           available_scan_kernels().end()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST(Scan, TheBestSetIsTheLast) {
    EXPECT_STREQ(available_scan_kernels().front()->name, "scalar");
    EXPECT_EQ(&scan_kernels(), available_scan_kernels().back());
}

// Appends and what is attached after the snapshot do not show.
TEST(Scan, SeesItsSnapshotOnly) {
    HeapMemory memory;
    Column column(memory, 10);
    column.append(Entries(25, 7));
    const std::uint64_t snapshot = column.entries();
    column.append(Entries(100, 7));
    Column more(memory, 10);
    more.append(Entries(5, 7));
    column.attach(std::move(more));
    const Scan wanted{{7, 7}, ScanOutput::sum};
    ScanResult result;
    scan(column, snapshot, {&wanted, 1}, {&result, 1});
    EXPECT_EQ(result.matches, 25u);
    EXPECT_EQ(result.sum, 175u);
    EXPECT_EQ(scan(column, wanted).matches, 130u);
}

TEST(Scan, MorselsAreMultiplesOfAWord) {
    HeapMemory memory;
    const SharedColumn column(memory);
    EXPECT_THROW(MorselScan(column, {}, 100), std::invalid_argument);
    EXPECT_THROW(MorselScan(column, {}, 0), std::invalid_argument);
}

}  // namespace
}  // namespace numatwin::native
