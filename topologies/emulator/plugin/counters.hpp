// What is counted: by processor and memory node, written by one processor each and read by others.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace numatwin {

// Written by one thread alone, so that adding needs no lock; others may read it at any time.
class Count {
  public:
    void add(std::uint64_t more = 1) { value_.store(get() + more, std::memory_order_relaxed); }
    // Where several threads write.
    void add_shared(std::uint64_t more = 1) { value_.fetch_add(more, std::memory_order_relaxed); }
    std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

  private:
    std::atomic<std::uint64_t> value_{0};
};

enum Mode : unsigned { USER, KERNEL, MODES };

// Accesses of one processor to the memory of one node. On a line of its own, too.
struct alignas(64) Accesses {
    Count reads, writes, read_bytes, written_bytes;
};

// What one processor does to one other node: as the home of lines, or as a holder of copies. On
// lines of the host that no other processor writes.
struct alignas(64) LineCounts {
    Count read_misses[MODES], write_misses[MODES];  // of the last level, by home
    Count streamed_misses;  // of these, those of the line after one that was looked for lately
    Count serial_misses;    // reads by an instruction that overwrites what it found the address by,
                            // or that a mispredicted branch waited for
    Count branch_misses;    // of these, the latter
    Count memory_reads;     // lines that came from this home's memory
    Count transfers;        // modified lines that came from this node's caches
    Count upgrades;         // shared lines made its own, by home
    Count invalidations;    // copies that this node's caches lost to writes
    Count write_backs;      // modified lines evicted to this home
};

// Of messages between two other nodes than the processor's, which several processors cause.
class PairCounts {
  public:
    explicit PairCounts(std::size_t nodes) : nodes_(nodes), counts_(nodes * nodes) {}
    void add(std::size_t from, std::size_t to) { counts_[from * nodes_ + to].add_shared(); }
    std::uint64_t get(std::size_t from, std::size_t to) const {
        return counts_[from * nodes_ + to].get();
    }

  private:
    std::size_t nodes_;
    std::vector<Count> counts_;
};

}  // namespace numatwin
