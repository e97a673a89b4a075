// What a run of a commit protocol on this host is made with: roles, transactions, faults, remedies.
//
// Names and meanings are those of sim/systems/commits/parameters.py; times are in nanoseconds, and
// real.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "fabric/fabric.hpp"

namespace numatwin::native {

// Deliberate mistakes, to see that the checks of a history find them.
enum class Sabotage : std::uint32_t {
    none,
    no_validation,     // a lock is taken whatever version stands there
    bit_before_write,  // the timestamp's bit is set before the blocks are written
    torn_reads,        // a block that changed while it was read is taken as it is
};

struct Death {
    std::uint32_t client = 0;
    std::int64_t at_ns = 0;
};

struct RunSetup {
    bool one_sided = true;
    std::uint32_t clients = 1;
    std::uint32_t nodes = 2;
    // Indices of nodes.
    std::vector<std::uint32_t> storage{0};
    std::vector<std::uint32_t> managers{1};
    std::uint32_t timestamps = 1;

    std::int64_t records = 1000;
    std::uint32_t record_bytes = 1024;  // payload of each record, a multiple of 8
    std::uint32_t changed_bytes = 8;    // what an update carries to a server with a processor
    std::uint32_t insert_ring = 1024;   // records that a server keeps of each client's inserts
    std::uint32_t reads = 3, updates = 3, inserts = 4;
    std::string keys = "uniform";  // or zipf, hot
    double exponent = 0;
    std::int64_t hot_records = 0;
    double hot_probability = 0;
    std::int64_t think_ns = 0;
    bool think_exponential = false;
    std::vector<std::uint64_t> streams;  // four words a client: Philox keys of keys, of think times
    std::uint32_t retries = 0;
    std::int64_t backoff_ns = 0, poll_ns = 1000;

    bool every_rm = true;
    std::uint32_t versions = 1;
    std::int64_t timestamp_bits = 60'000;
    std::uint32_t send_queue = 64;
    std::uint32_t snapshot_every = 1;
    std::uint32_t snapshot_bytes = 0;  // 0: the whole bit vector

    std::vector<Death> deaths;
    std::vector<std::uint32_t> factors;  // by client: 1, or how much slower it is; empty: all 1
    std::int64_t lease_ns = 0, skip_after_ns = 0;  // 0: without this remedy

    FabricOptions fabric;
    std::vector<int> cpus;         // by role: the processor that its process runs on; empty: any
    bool crowded = false;          // more threads than processors: who waits lets them run
    std::uint64_t trace_rows = 0;  // rows that each role keeps; 0: no trace
    Sabotage sabotage = Sabotage::none;

    std::uint32_t roles() const { return clients + nodes; }
    std::uint32_t node_role(std::uint32_t node) const { return clients + node; }
    std::uint32_t storage_role(std::size_t server) const { return node_role(storage[server]); }
    std::uint32_t timestamp_role() const { return node_role(timestamps); }
    std::uint32_t factor(std::uint32_t client) const {
        return factors.empty() ? 1 : factors[client];
    }

    // Storage server of a record, as sim/systems/commits/workload.py: by key; created ones in turn.
    std::uint32_t server_of(std::int64_t key) const {
        const auto servers = static_cast<std::int64_t>(storage.size());
        if (key < records) return static_cast<std::uint32_t>(key % servers);
        const std::int64_t created = key - records;
        return static_cast<std::uint32_t>((created % clients + created / clients) % servers);
    }
    // Which block of its server a record lies in. A client's created records take turns in its
    // part of each server, the oldest giving way.
    std::uint64_t block_of(std::int64_t key) const {
        const auto servers = static_cast<std::int64_t>(storage.size());
        if (key < records) return static_cast<std::uint64_t>(key / servers);
        const std::int64_t created = key - records;
        const std::int64_t number = created / clients / servers % insert_ring;
        return own_blocks() + static_cast<std::uint64_t>(created % clients * insert_ring + number);
    }
    std::uint64_t own_blocks() const {  // of a server, but for inserts
        return (static_cast<std::uint64_t>(records) + storage.size() - 1) / storage.size();
    }
    std::uint64_t blocks() const {
        return own_blocks() + std::uint64_t{clients} * (inserts > 0 ? insert_ring : 0);
    }
    // Where the timestamps lie in their node's region: behind the records, if it has any.
    std::uint64_t timestamps_at() const {
        if (std::find(storage.begin(), storage.end(), timestamps) == storage.end()) return 0;
        return (blocks() * block_bytes() + 63) / 64 * 64;
    }
    std::uint32_t block_bytes() const { return versions * (8 + record_bytes); }
};

}  // namespace numatwin::native
