// Scans of columns: several predicates in one pass over the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "storage/column.hpp"
#include "storage/scan_kernels.hpp"

namespace numatwin::native {

/// What a scan gives for the entries in its range.
enum class ScanOutput {
    count,      ///< how many
    sum,        ///< and their sum, modulo 2^64
    bitmap,     ///< and a bit for each entry scanned
    positions,  ///< and their positions, ascending
};

struct Scan {
    ValueRange range;
    ScanOutput output = ScanOutput::count;
};

/// Used again for another scan, it keeps its vectors' room.
struct ScanResult {
    std::uint64_t matches = 0;
    std::uint64_t sum = 0;
    /// Of a scan from entry f on, entry i's bit is bit (i - f) % 64 of word (i - f) / 64.
    std::vector<std::uint64_t> bitmap;
    std::vector<std::uint64_t> positions;
};

/// Runs scans over runs of entries as they come. Each block of entries is read from memory once
/// and from the cache for all scans but the first.
class SharedScan {
  public:
    /// Clears the results; results[i] answers scans[i], of entries [from, until).
    SharedScan(std::span<const Scan> scans, std::span<ScanResult> results, std::uint64_t from,
               std::uint64_t until, const ScanKernels& kernels = scan_kernels());
    /// The next entries.
    void run(const ColumnRun& run);

  private:
    std::size_t block_entries(const ColumnRun& run) const;
    void play(const Scan& scan, ScanResult& result, std::uint64_t position,
              std::span<const std::uint64_t> block);
    std::uint64_t put_bits(const Scan& scan, ScanResult& result, std::uint64_t position,
                           std::span<const std::uint64_t> block);
    std::uint64_t* scratch();

    std::span<const Scan> scans_;
    std::span<ScanResult> results_;
    std::uint64_t from_;
    const ScanKernels& kernels_;
};

/// Scans the first `until` entries: a snapshot against appends.
void scan(const Column& column, std::uint64_t until, std::span<const Scan> scans,
          std::span<ScanResult> results, const ScanKernels& kernels = scan_kernels());
/// One scan of all entries.
ScanResult scan(const Column& column, const Scan& wanted);

}  // namespace numatwin::native
