// What one worker counts as it runs; any thread may read it meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "systems/eris/latencies.hpp"

namespace numatwin::native {

/// The steps of a worker's loop, as in the event plane.
enum class Step : std::uint8_t { issue, flush, receive, walk, scan, transfer };
inline constexpr std::size_t steps = 6;
inline constexpr const char* step_names[steps] = {"issue", "flush", "receive",
                                                  "walk",  "scan",  "transfer"};

/// Of one worker and one object.
struct ObjectCounts {
    Counter received, executed, forwarded;
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
    Counter batches, rounds, refused, retries, flushes, flushed_bytes, copied_bytes;
    Counter busy_ticks, idle_ticks;
    Counter step_ticks[steps];
    Counter& step(Step of) noexcept { return step_ticks[static_cast<std::size_t>(of)]; }
    std::atomic<std::uint64_t> loaded{0};  // keys and entries, while loading
};

}  // namespace numatwin::native
