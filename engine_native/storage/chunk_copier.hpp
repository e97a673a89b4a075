// Scans of a column that a thread copies ahead, as a copy engine would.
//
// Two buffers of a chunk each. While chunk k is scanned in one, k + 1 is copied into the other:
//
//     copier    waits until k - 1 chunks are scanned    copies chunk k    says so (release)
//     scanner   waits until chunk k is copied           scans it          says so (release)
//
// Each of both counters has one writer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

#include "storage/scan_kernels.hpp"

namespace numatwin::native {

// Scans columns chunk by chunk in two buffers, into which its thread copies ahead.
class ChunkCopier {
  public:
    using Values = std::span<const std::uint64_t>;

    // Chunks of so many values (the last one of a column may have fewer). The thread runs on `cpu`,
    // on any where it is negative. Throws std::invalid_argument.
    ChunkCopier(std::size_t chunk_values, int cpu);
    ~ChunkCopier();
    ChunkCopier(const ChunkCopier&) = delete;
    ChunkCopier& operator=(const ChunkCopier&) = delete;

    // Matches of the column and their sum, double buffered.
    SumOfMatches scan(Values column, ValueRange range);
    // The same copies, which nobody scans, until the last one is done.
    void copy(Values column);
    // How long the thread has run.
    std::int64_t ran_ns();

  private:
    std::size_t chunks(Values column) const;
    Values chunk(Values column, std::size_t k) const;
    std::uint64_t* buffer(std::size_t k) { return buffers_[k % 2].data(); }
    void work(int cpu);
    void copy_all(Values column);
    void start(Values column, bool ahead);

    const std::size_t chunk_values_;
    std::vector<std::uint64_t> buffers_[2];
    // Written by who asks, before `asked_`.
    Values column_;
    bool ahead_ = false;
    bool over_ = false;
    alignas(64) std::atomic<std::uint64_t> asked_{0};    // columns so far
    alignas(64) std::atomic<std::uint64_t> scanned_{0};  // chunks of this column
    alignas(64) std::atomic<std::uint64_t> copied_{0};   // chunks of this column
    std::thread thread_;
};

// What a scan and its copies take, one after another in each round, in nanoseconds: by round the
// time, and whether the operating system took a processor from the scanner or the copier meanwhile.
struct CopiedScanTimes {
    struct Time {
        std::int64_t ns;
        bool disturbed;
    };
    std::vector<Time> direct;   // scanned where it lies
    std::vector<Time> copies;   // copied, and not scanned
    std::vector<Time> cached;   // as many chunks scanned, each in a buffer that was scanned
    std::vector<Time> overlap;  // scanned while it is copied
};

// A column of so many bytes, scanned by a thread of its own and copied by another. Throws
// std::invalid_argument, and std::runtime_error where two ways do not find the same.
CopiedScanTimes measure_copied_scan(std::size_t column_bytes, std::size_t chunk_bytes,
                                    std::uint32_t rounds, int scanner_cpu, int copier_cpu);

}  // namespace numatwin::native
