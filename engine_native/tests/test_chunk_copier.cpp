// Scans that another thread copies ahead for find what plain ones do, whatever the chunk.
#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>
#include <vector>

#include "storage/chunk_copier.hpp"

namespace numatwin::native {
namespace {

TEST(ChunkCopier, FindsWhatAPlainScanFinds) {
    std::vector<std::uint64_t> column(10'007);
    std::iota(column.begin(), column.end(), 0);
    for (const std::size_t chunk : {1'000u, 64u, 10'007u, 20'000u, 7u}) {
        ChunkCopier copier(chunk, -1);
        for (std::uint64_t round = 0; round < 4; ++round) {
            // Others than before: what was copied last time would show.
            for (auto& value : column) ++value;
            const ValueRange range{500, 4'000};
            const auto plain = scan_kernels().sum(column.data(), column.size(), range);
            const auto found = copier.scan(column, range);
            EXPECT_EQ(found.matches, plain.matches);
            EXPECT_EQ(found.sum, plain.sum);
            copier.copy(column);
        }
        EXPECT_EQ(copier.scan({}, {0, 1}).matches, 0u);
    }
}

TEST(ChunkCopier, IsRefusedWithoutAChunkOrAProcessor) {
    EXPECT_THROW(ChunkCopier(0, -1), std::invalid_argument);
    EXPECT_THROW(ChunkCopier(8, 1 << 20), std::invalid_argument);
    EXPECT_THROW(measure_copied_scan(64, 128, 1, -1, -1), std::invalid_argument);
}

TEST(CopiedScans, AreTimedFourWays) {
    const auto times = measure_copied_scan(1 << 16, 1 << 12, 3, -1, -1);
    for (const auto* each : {&times.direct, &times.copies, &times.cached, &times.overlap}) {
        ASSERT_EQ(each->size(), 3u);
        for (const auto& time : *each) EXPECT_GT(time.ns, 0);
    }
}

}  // namespace
}  // namespace numatwin::native
