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
#include "kernel/described.hpp"
#include "systems/commits/kernel/protocol.hpp"

namespace numatwin::native {

// Deliberate mistakes, to see that the checks of a history find them.
enum class Sabotage : std::uint32_t {
    none,
    no_validation,     // a lock is taken whatever version stands there
    bit_before_write,  // the timestamp's bit is set before the blocks are written
    torn_reads,        // a block that changed while it was read is taken as it is
};

struct RunSetup {
    using Indices = std::vector<std::uint32_t>;
    using Integers = std::vector<std::int64_t>;
    FIELDS_OF(RunSetup);
    FIELD(bool, one_sided, "RSI; else 2PC", true);
    FIELD(std::uint32_t, clients, "how many; each has a role of its own", 1);
    FIELD(std::uint32_t, nodes, "servers, after the clients", 2);
    FIELD(Indices, storage, "indices of the nodes that hold records", 0u);
    FIELD(Indices, managers, "and of those that run transactions (2PC)", 1u);
    FIELD(std::uint32_t, timestamps, "and of the timestamp server", 1);
    FIELD(std::int64_t, records, "at the beginning", 1000);
    FIELD(std::uint32_t, record_bytes, "payload of each record, a multiple of 8", 1024);
    FIELD(std::uint32_t, changed_bytes, "what an update carries to a server with a processor", 8);
    FIELD(std::uint32_t, insert_ring, "records that a server keeps of each client's inserts", 1024);
    FIELD(std::uint32_t, reads, "distinct records that a transaction reads", 3);
    FIELD(std::uint32_t, updates, "how many of them it writes", 3);
    FIELD(std::uint32_t, inserts, "records that it creates", 4);
    FIELD(std::string, keys, "uniform, zipf or hot", "uniform");
    FIELD(double, exponent, "of zipf");
    FIELD(std::int64_t, hot_records, "of hot: the first ones");
    FIELD(double, hot_probability, "and how often they are drawn");
    FIELD(std::int64_t, think_ns, "from an outcome to the client's next transaction");
    FIELD(bool, think_exponential, "exponentially distributed; else always the same");
    FIELD(std::vector<std::uint64_t>, streams,
          "four words a client: Philox keys of keys, thinking");
    FIELD(std::uint32_t, retries, "of an aborted transaction, before it is given up");
    FIELD(std::int64_t, backoff_ns, "before a retry");
    FIELD(std::int64_t, poll_ns, "between two looks at the snapshot (RSI)", 1000);
    FIELD(bool, every_rm, "every storage server prepares (2PC)", true);
    FIELD(std::uint32_t, versions, "that a record keeps", 1);
    FIELD(std::int64_t, timestamp_bits, "length of the bit vector (RSI)", 60'000);
    FIELD(std::uint32_t, send_queue, "of a client: one bit of so many is signaled", 64);
    FIELD(std::uint32_t, snapshot_every, "transactions per fetch of the snapshot", 1);
    FIELD(std::uint32_t, snapshot_bytes, "0: the whole bit vector");
    FIELD(Indices, factors, "by client: 1, or how much slower it is; empty: all 1");
    FIELD(Indices, death_client, "who die");
    FIELD(Integers, death_ns, "from then on, each of them");
    FIELD(Integers, death_step, "at the next step of this kind; below 0: as soon as may be");
    FIELD(Indices, stop_node, "whose processes stop");
    FIELD(Integers, stop_ns, "when, each of them");
    FIELD(Integers, return_ns, "and when it goes on; below 0: never");
    FIELD(Integers, cut_ns, "when paths are cut");
    FIELD(Integers, mend_ns, "and when each of these is back");
    FIELD(Indices, cut_side, "by cut, then by role: 1 or 2, between which nothing passes, or 0");
    FIELD(std::int64_t, lease_ns, "of a lock; 0: without this remedy");
    FIELD(std::int64_t, skip_after_ns, "of timestamps that hold up; 0: without this remedy");
    FIELD(std::vector<int>, cpus, "by role: the processor that its process runs on; empty: any");
    FIELD(bool, crowded, "more threads than processors: who waits lets them run");
    FIELD(std::uint64_t, trace_rows, "rows that each role keeps; 0: no trace");
    END_OF_FIELDS;

    FabricOptions fabric;
    Sabotage sabotage = Sabotage::none;

    std::uint32_t roles() const { return clients + nodes; }
    std::uint32_t node_role(std::uint32_t node) const { return clients + node; }
    std::uint32_t storage_role(std::size_t server) const { return node_role(storage[server]); }
    std::uint32_t timestamp_role() const { return node_role(timestamps); }
    std::uint32_t factor(std::uint32_t client) const {
        return factors.empty() ? 1 : factors[client];
    }

    std::uint32_t server_of(std::int64_t key) const {
        return server_of_key(key, records, clients, storage.size());
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
