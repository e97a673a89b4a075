#include "storage/scan.hpp"

#include <algorithm>

namespace numatwin::native {
namespace {

/// What the first of several scans brings into the first-level cache (16 KiB) for the others.
constexpr std::size_t shared_block_entries = 2048;
/// Positions, up to as many as entries, shall stay in the second-level cache (64 KiB).
constexpr std::size_t positions_block_entries = 8192;
/// Bits that must be shifted come by way of scratch.
constexpr std::size_t scratch_entries = 1 << 16;
static_assert(shared_block_entries % 64 == 0 && positions_block_entries % 64 == 0 &&
              positions_block_entries <= scratch_entries && scratch_entries % 64 == 0);

}  // namespace

SharedScan::SharedScan(std::span<const Scan> scans, std::span<ScanResult> results,
                       std::uint64_t from, std::uint64_t until, const ScanKernels& kernels)
    : scans_(scans), results_(results), from_(from), kernels_(kernels) {
    const std::uint64_t entries = from < until ? until - from : 0;
    for (std::size_t i = 0; i < scans.size(); ++i) {
        ScanResult& result = results[i];
        result.matches = result.sum = 0;
        // Not cleared before: every word will be written, and zeros first would be work for
        // nothing.
        result.bitmap.resize(scans[i].output == ScanOutput::bitmap ? (entries + 63) / 64 : 0);
        result.positions.clear();
    }
}

void SharedScan::run(const ColumnRun& run) {
    const std::size_t step = block_entries(run);
    for (std::size_t at = 0; at < run.entries.size(); at += step) {
        const auto block = run.entries.subspan(at, std::min(step, run.entries.size() - at));
        for (std::size_t i = 0; i < scans_.size(); ++i) {
            play(scans_[i], results_[i], run.first + at, block);
        }
    }
}

/// A scan alone has no use for blocks, and would lose the CPU's reading ahead at the end of each.
std::size_t SharedScan::block_entries(const ColumnRun& run) const {
    if (scans_.size() > 1) return shared_block_entries;
    if (scans_.empty()) return run.entries.size();
    const ScanOutput output = scans_[0].output;
    if (output == ScanOutput::positions) return positions_block_entries;
    const bool shifts = output == ScanOutput::bitmap && (run.first - from_) % 64 != 0;
    return shifts ? scratch_entries : run.entries.size();
}

/// For what does not go to a result at once. Each thread keeps its own: made again for each chunk,
/// its pages would come and go.
std::uint64_t* SharedScan::scratch() {
    static thread_local const auto words = std::make_unique_for_overwrite<std::uint64_t[]>(
        scratch_entries + ScanKernels::positions_slack);
    return words.get();
}

void SharedScan::play(const Scan& scan, ScanResult& result, std::uint64_t position,
                      std::span<const std::uint64_t> block) {
    if (scan.output == ScanOutput::bitmap) {
        result.matches += put_bits(scan, result, position, block);
        return;
    }
    if (scan.range.empty()) return;
    switch (scan.output) {
        case ScanOutput::sum: {
            const SumOfMatches sum = kernels_.sum(block.data(), block.size(), scan.range);
            result.matches += sum.matches;
            result.sum += sum.sum;
            break;
        }
        case ScanOutput::positions: {
            std::uint64_t* found = scratch();
            const std::uint64_t matches =
                kernels_.positions(block.data(), block.size(), scan.range, position, found);
            result.positions.insert(result.positions.end(), found, found + matches);
            result.matches += matches;
            break;
        }
        default:
            result.matches += kernels_.count(block.data(), block.size(), scan.range);
    }
}

/// Where a run before ended within a word, the block's bits go there shifted; what a word has
/// beyond the bits written so far is 0.
std::uint64_t SharedScan::put_bits(const Scan& scan, ScanResult& result, std::uint64_t position,
                                   std::span<const std::uint64_t> block) {
    const std::size_t bit = position - from_, shift = bit % 64;
    const std::size_t count = (block.size() + 63) / 64;
    std::uint64_t* words = result.bitmap.data() + bit / 64;
    std::uint64_t* bits = shift == 0 ? words : scratch();
    std::uint64_t matches = 0;
    if (scan.range.empty()) {
        std::fill_n(bits, count, 0);
    } else {
        matches = kernels_.bitmap(block.data(), block.size(), scan.range, bits);
    }
    if (shift == 0) return matches;
    for (std::size_t w = 0; w < count; ++w) {
        words[w] |= bits[w] << shift;
        if (w * 64 + 64 - shift < block.size()) words[w + 1] = bits[w] >> (64 - shift);
    }
    return matches;
}

void scan(const Column& column, std::uint64_t until, std::span<const Scan> scans,
          std::span<ScanResult> results, const ScanKernels& kernels) {
    until = std::min(until, column.entries());
    SharedScan shared(scans, results, 0, until, kernels);
    column.visit_runs(0, until, [&](const ColumnRun& run) { shared.run(run); });
}

ScanResult scan(const Column& column, const Scan& wanted) {
    ScanResult result;
    scan(column, column.entries(), {&wanted, 1}, {&result, 1});
    return result;
}

}  // namespace numatwin::native
