// What one worker counts as it runs; any thread may read it meanwhile.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace numatwin::native {

// Latencies of one worker's commands, counted by it and read by others while it runs.
//
// The buckets are those of the kernel's Histogram (sim/kernel/statistics.hpp), in picoseconds: a
// value v lies in a bucket of width 2^(floor(log2 v) - 7), so a quantile is off by at most 0.39%.
// Values from 2^52 ps (75 minutes) on count as that.

/// A number that one thread writes and others read now and then: no locked instruction is needed,
/// and readers need no order among several of them (relaxed).
class Counter {
  public:
    void add(std::uint64_t more) noexcept {
        value_.store(value_.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
    }
    void set(std::uint64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }
    std::uint64_t read() const noexcept { return value_.load(std::memory_order_relaxed); }

  private:
    std::atomic<std::uint64_t> value_{0};
};

class Latencies {
  public:
    static constexpr int part_bits = 7, value_bits = 52;
    static constexpr std::uint64_t parts = std::uint64_t{1} << part_bits;
    static constexpr std::size_t buckets = (value_bits - part_bits + 1) << part_bits;

    Latencies() : bucket_(std::make_unique<Counter[]>(buckets)) {}

    void add(std::uint64_t value_ps, std::uint64_t count) noexcept {
        value_ps = std::min(value_ps, (std::uint64_t{1} << value_bits) - 1);
        bucket_[bucket_of(value_ps)].add(count);
        count_.add(count);
        // In parts: 2^52 ps of 2^20 commands are more than 64 bits hold.
        sum_ns_.add(value_ps / 1000 * count + (value_ps % 1000 * count + 500) / 1000);
    }
    /// Commands made one after the other: their latencies lie evenly in a range, here at up to
    /// eight points, as in the event plane.
    void spread(std::uint64_t least_ps, std::uint64_t most_ps, std::uint64_t count) noexcept {
        constexpr std::uint64_t points = 8;
        for (std::uint64_t k = 0; k < points && count > 0; ++k) {
            const std::uint64_t part = count / (points - k);
            if (part > 0) add(least_ps + (most_ps - least_ps) * (2 * k + 1) / (2 * points), part);
            count -= part;
        }
    }
    std::uint64_t count() const noexcept { return count_.read(); }
    std::uint64_t sum_ns() const noexcept { return sum_ns_.read(); }
    /// Adds its counts to `into`, which has a number for each bucket.
    void merge_into(std::span<std::uint64_t> into) const noexcept {
        for (std::size_t b = 0; b < buckets; ++b) into[b] += bucket_[b].read();
    }

  private:
    static std::size_t bucket_of(std::uint64_t value) noexcept {
        const int shift = static_cast<int>(std::bit_width(value | parts)) - 1 - part_bits;
        return (static_cast<std::size_t>(shift) << part_bits) + (value >> shift);
    }

    std::unique_ptr<Counter[]> bucket_;
    Counter count_, sum_ns_;
};

/// The steps of a worker's loop, as in the event plane.
enum class Step : std::uint8_t { issue, flush, receive, walk, scan, transfer };
inline constexpr std::size_t steps = 6;
inline constexpr const char* step_names[steps] = {"issue", "flush", "receive",
                                                  "walk",  "scan",  "transfer"};

/// Of one worker and one object.
struct ObjectCounts {
    Counter executed, forwarded;
    Counter found, inserted;  // by lookups; new keys and entries, by upserts and appends
    Counter ticks;            // spent on executing
    std::atomic<std::uint64_t> entries{0};  // keys or entries that the worker holds
};

/// Of one worker and one operation of the clients.
struct OperationCounts {
    Counter made, executed;  // commands
    Counter done;            // whole operations, counted by who ended them
    Latencies latency;
};

struct alignas(64) WorkerCounts {
    WorkerCounts(std::size_t objects, std::size_t operations)
        : object(objects), operation(operations) {}

    std::vector<ObjectCounts> object;
    std::vector<OperationCounts> operation;
    /// Commands by key, of clients and from outside: none may be lost or done twice.
    Counter made, executed, forwarded;
    Counter scans_made, scans_done;
    Counter batches, rounds, refused, retries, flushes, copied_bytes;
    Counter busy_ticks, idle_ticks;
    Counter step_ticks[steps];
    Counter& step(Step of) noexcept { return step_ticks[static_cast<std::size_t>(of)]; }
    std::atomic<std::uint64_t> loaded{0};  // keys and entries, while loading
};

}  // namespace numatwin::native
