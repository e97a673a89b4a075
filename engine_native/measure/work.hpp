// What members of a team do: chase pointers, stream, copy, exchange lines, add.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "measure/team.hpp"

namespace numatwin::native {

// A stretch of memory to measure on: on one node, in huge pages or small ones, every page there.

inline constexpr std::size_t kLineBytes = 64;
inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

class Block {
  public:
    /// `bytes` (rounded up to whole lines) on `node`, or wherever the kernel puts them (-1). Huge
    /// pages are asked for or forbidden; what came can be asked by `huge_bytes`. Throws
    /// std::bad_alloc, and std::system_error where the kernel does not bind memory to that node.
    Block(std::size_t bytes, int node, bool huge_pages);
    ~Block();
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

    [[nodiscard]] std::byte* data() const { return data_; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    /// Bytes that lie in huge pages, as the kernel tells; 0 where it does not tell.
    [[nodiscard]] std::size_t huge_bytes() const;

    /// Makes the first `bytes` a cycle: each line holds the address of the next, every line comes
    /// once, in an order that no prefetcher follows. Returns the number of lines, at least two.
    std::size_t arrange_cycle(std::size_t bytes, std::uint64_t seed);

  private:
    void* reserved_ = nullptr;
    std::size_t reserved_bytes_ = 0;
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
};

/// The successor of each of `next.size()` places, one cycle through all of them, uniformly at
/// random among such cycles (Sattolo, An algorithm to generate a random cyclic permutation, 1986).
void random_cycle(std::span<std::uint32_t> next, std::uint64_t seed);

// How often, and for how long, programs on CPUs stand still.

/// [cpus] nanoseconds of each time in which a thread on that CPU, which only looks at the clock,
/// stood still for `least_ns` or longer; all of them at once, for so many seconds. Throws
/// std::system_error where a CPU may not be used.
std::vector<std::vector<double>> gaps(const std::vector<int>& cpus, double seconds,
                                      double least_ns);

/// [times] nanoseconds of mapping that many bytes, of the first touch of each of their pages, and
/// of unmapping them, on the first of the CPUs, while a thread of the process computes on each
/// other one. Throws std::system_error where a CPU may not be used, or there is no memory.
std::vector<std::array<double, 3>> stretches(const std::vector<int>& cpus, std::size_t bytes,
                                             bool huge, std::size_t times);

/// Dependent loads along the cycle that `arrange_cycle` laid, from a line on. The first
/// `warm_loads` do not count: all lines of a cycle that a cache holds, or of a longer one as many
/// as the caches hold, which then keep none that comes next. Amount: loads. Throws
/// std::invalid_argument for a line beyond the block.
Work chase(const Block& block, std::size_t start_line, std::size_t warm_loads);

/// Loads of random lines among the first `lines` of the block, none of which waits for another.
/// Amount: lines. Throws std::invalid_argument unless `lines` is a power of two within the block.
Work random_reads(const Block& block, std::size_t lines);

/// The same with `additions`, kFewAdditions or kManyAdditions, between two loads: of so many, cores
/// look ahead to fewer loads than they have miss slots. Each writes a register, as most
/// instructions do. What chooses a line, loads it and closes the loop are kAroundAdditions more.
inline constexpr std::size_t kFewAdditions = 32, kManyAdditions = 64, kAroundAdditions = 7;
Work spaced_reads(const Block& block, std::size_t lines, std::size_t additions);

/// The same line after line, with kManyAdditions: the core sees few of them ahead, so that it waits
/// where prefetchers come late.
Work spaced_stream(const Block& block, std::size_t lines);

/// System calls that do nothing but into the kernel and back. Amount: calls.
Work system_calls();

/// What a stream does with each line of its block, and what of it passes the memory controller
/// where a plain store first reads the line that it writes: "M:N" are lines read and written there.
enum class Traffic {
    kRead,            // loads: 1:0
    kUpdate,          // loads and stores the same line: 1:1
    kCopy,            // loads one line, stores another: 2:1
    kTriad,           // loads two lines, stores a third: 3:1
    kNonTemporal,     // stores past the caches: 0:1
    kNonTemporalCopy  // loads one line, stores another past the caches: 1:1
};

/// Whether this processor has stores past the caches for the engine to use.
bool has_non_temporal_stores();

/// Streams through `bytes` of the block from `offset` on, again and again, with `delay` additions
/// after each 4 KiB. Amount: bytes that the program loads and stores. Throws std::invalid_argument
/// where they are not in the block, not at a whole line, or fewer than 4 KiB for each array.
Work stream(const Block& block, std::size_t offset, std::size_t bytes, Traffic traffic,
            std::uint64_t delay);

/// memcpy of `bytes` at a time, always the same (in cache), or from and to ever other places of two
/// blocks (`spread`). Amount: copies.
Work copies(const Block& from, const Block& to, std::size_t bytes, bool spread);

/// A counter on a line of its own, for threads to contend for.
using Counter = std::atomic<std::uint64_t>;

/// A counter at 0 on that line of the block. Throws std::invalid_argument beyond its end.
Counter& counter_on(const Block& block, std::size_t line);

/// fetch-add on the counter. Amount: operations.
Work fetch_adds(Counter& counter);

/// Increments of the counter by compare-and-swap, each tried until it succeeds. Amount: increments.
Work cas_increments(Counter& counter);

/// One end of a ping-pong over the line of `counter`, which is 0 between windows: `serve` says the
/// first word and when to end. Amount of who serves: messages, of both directions; of the other: 0.
Work ping_pong(Counter& counter, bool serve);

/// Additions that wait for one another, one a cycle on any processor of this century. Amount:
/// additions.
Work additions();

}  // namespace numatwin::native
