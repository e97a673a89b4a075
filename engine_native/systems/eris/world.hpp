// What all workers of an engine share.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "memory/manager.hpp"
#include "storage/far_values.hpp"
#include "storage/shared_column.hpp"
#include "storage/shared_tree.hpp"
#include "systems/eris/control.hpp"
#include "systems/eris/counts.hpp"
#include "systems/eris/incoming_buffers.hpp"
#include "systems/eris/mailbox.hpp"
#include "systems/eris/partition_table.hpp"
#include "systems/eris/requests.hpp"
#include "systems/eris/scans.hpp"
#include "systems/eris/setup.hpp"

namespace numatwin::native {

/// What a command is, as its header says it.
enum class Kind : std::uint8_t { lookup, upsert, route, scan, append, answer };
inline constexpr std::uint8_t from_outside = 0x80;  // of `operation` in a header
inline constexpr std::uint16_t no_worker = 0xffff;

struct ObjectState {
    ObjectSetup setup;
    std::vector<std::unique_ptr<MemoryManager>> managers;  // [nodes]; one where all share
    std::unique_ptr<PartitionTable> table;                 // of an index
    std::unique_ptr<ColumnVersions> versions;              // of a column
    // Where all share the data, one of these instead; and for calls from outside:
    std::unique_ptr<SharedTree> shared_tree;
    std::unique_ptr<SharedColumn> shared_column;
    Memory* outside = nullptr;

    FarValues far() const { return FarValues(setup.value_bytes); }
};

/// Of a worker, what others write.
struct alignas(128) Client {
    std::atomic<std::int64_t> outstanding{0};  // commands not yet answered
};

/// Of an operation: its scans under way.
struct alignas(128) RunningScans {
    std::atomic<std::size_t> count{0};
};

struct World {
    explicit World(const EngineSetup& of)
        : setup(of),
          objects(of.objects.size()),
          clients(of.workers()),
          running_scans(of.operations.size()) {}

    std::size_t workers() const noexcept { return setup.workers(); }

    const EngineSetup setup;
    Control control;
    /// [nodes] of buffers.
    std::vector<std::unique_ptr<MemoryManager>> buffer_managers;
    std::vector<ObjectState> objects;
    std::vector<std::unique_ptr<WorkerCounts>> counts;
    std::vector<PlacedBuffers> incoming;
    std::vector<std::unique_ptr<TransferMailbox>> mailboxes;
    std::vector<Client> clients;
    std::vector<RunningScans> running_scans;  // [O]
    Requests requests;
};

/// Where a worker's part of keys or entries begins; that of the worker after the last one: their
/// end.
constexpr std::uint64_t part_of(std::uint64_t amount, std::uint64_t worker, std::uint64_t workers) {
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(amount) * worker / workers);
}

/// The value that a key is loaded with, and the entries of a column: the same however they are
/// partitioned.
constexpr std::uint64_t loaded_value(std::uint64_t key) {
    return key;
}
constexpr std::uint64_t loaded_entry(std::uint64_t seed, std::uint64_t object, std::uint64_t at) {
    std::uint64_t mixed = (seed ^ object << 48) + (at + 1) * 0x9E3779B97F4A7C15;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
    return mixed ^ (mixed >> 31);
}

}  // namespace numatwin::native
