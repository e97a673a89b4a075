// The baseline of columns: one for all threads, its memory interleaved or on one node.
//
// Appends take a lock; scans do not, and see the entries that were there when they began. The
// directory never moves: its part k holds the addresses of 2^k segments.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "memory/memory.hpp"
#include "storage/column.hpp"
#include "storage/scan.hpp"

namespace numatwin::native {

class SharedColumn {
  public:
    /// `memory` is used under the lock, and at destruction.
    explicit SharedColumn(Memory& memory,
                          std::size_t segment_entries = Column::default_segment_entries);
    ~SharedColumn();
    SharedColumn(const SharedColumn&) = delete;
    SharedColumn& operator=(const SharedColumn&) = delete;

    /// All are appended, or none (std::bad_alloc).
    void append(std::span<const std::uint64_t> entries);
    /// Acquire: who sees the length sees the entries below it, which append() released.
    std::uint64_t entries() const { return entries_.load(std::memory_order_acquire); }
    /// Calls visit(ColumnRun) for the stretches of [from, until), of which entries() was told.
    template <typename Visit>
    void visit_runs(std::uint64_t from, std::uint64_t until, Visit visit) const {
        while (from < until) {
            const std::uint64_t offset = from % segment_entries_;
            const std::uint64_t count = std::min(until - from, segment_entries_ - offset);
            visit(ColumnRun{from, {*slot(from / segment_entries_) + offset, count}});
            from += count;
        }
    }

  private:
    static constexpr std::size_t parts = 40;  // 2^40 segments
    std::uint64_t** slot(std::uint64_t segment) const;
    void add_segment(std::uint64_t segment);

    Memory& memory_;
    const std::size_t segment_entries_;
    std::mutex mutex_;
    // Plain: written under the lock, and published by entries_.
    std::array<std::uint64_t**, parts> directory_{};
    std::uint64_t segments_ = 0;
    std::atomic<std::uint64_t> entries_{0};
};

/// A shared scan by any number of threads, who take morsels of the column in turn. (Leis et al.,
/// "Morsel-driven parallelism", SIGMOD 2014.)
class MorselScan {
  public:
    static constexpr std::uint64_t default_morsel_entries = std::uint64_t{1} << 16;

    /// Of the entries that are there now. A morsel's entries are a multiple of 64.
    MorselScan(const SharedColumn& column, std::vector<Scan> scans,
               std::uint64_t morsel_entries = default_morsel_entries,
               const ScanKernels& kernels = scan_kernels());
    /// Any thread: runs morsels until none is left.
    void work();
    /// Once all threads have worked: results()[i] answers scans[i].
    std::vector<ScanResult> results() &&;

  private:
    void play(std::uint64_t morsel, std::vector<ScanResult>& own);

    const SharedColumn& column_;
    const std::vector<Scan> scans_;
    const std::uint64_t until_;
    const std::uint64_t morsel_entries_;
    const ScanKernels& kernels_;
    std::atomic<std::uint64_t> next_{0};  // relaxed: it gives out numbers, no data
    std::mutex mutex_;                    // of the counts and sums
    // Of bitmaps and positions each morsel has a place of its own.
    std::vector<ScanResult> results_;
    std::vector<std::vector<std::vector<std::uint64_t>>> positions_;
};

}  // namespace numatwin::native
