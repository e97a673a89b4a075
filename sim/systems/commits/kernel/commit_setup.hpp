// What the commit protocols are run with: ../parameters.py, in plain numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/described.hpp"
#include "machine/kernel/message_path.hpp"

namespace numatwin {

// ../parameters.py, with indices of nodes as they stand there; none stands for no remedy.
struct RecordWork {
    FIELDS_OF(RecordWork);
    FIELD(Time, read_ps, "per record read");
    FIELD(Time, check_ps, "per record checked and locked, or unlocked");
    FIELD(Time, install_ps, "per record installed");
    END_OF_FIELDS;
};

// The clock of a machine is off from one time to another, by `ahead_ps` and what it drifts
// meanwhile.
struct ClockFault {
    FIELDS_OF(ClockFault);
    FIELD(std::uint32_t, machine, "whose clock");
    FIELD(Time, from_ps, "when it begins");
    FIELD(Time, until_ps, "when it ends");
    FIELD(Time, ahead_ps, "at first; below 0: behind");
    FIELD(std::int64_t, drift_ppm, "how much faster it is; below 0: slower");
    END_OF_FIELDS;

    Time off_ps(Time now) const {
        if (now < from_ps || now >= until_ps) return 0;
        return ahead_ps + (now - from_ps) / 1'000'000 * drift_ppm;
    }
};

struct CommitSetup {
    static constexpr Time none = -1;

    using Indices = std::vector<std::uint32_t>;
    FIELDS_OF(CommitSetup);
    FIELD(std::uint32_t, machines, "how many");
    FIELD(Indices, client_machine, "of each client");
    FIELD(std::vector<std::int64_t>, client_factor, "how much longer a client's own time takes");
    FIELD(Indices, node_machine, "of each node");
    FIELD(Indices, node_threads, "of each node, for messages");
    FIELD(Indices, storage, "indices of the nodes that hold records");
    FIELD(Indices, own_storage,
          "of each of these and each client, the one that takes its messages (2PC); empty: itself");
    FIELD(Indices, managers, "and of those that run transactions (2PC)");
    FIELD(std::uint32_t, timestamps, "and of the timestamp service");
    FIELD(std::vector<MessageCost>, costs, "by message type, then by records aboard");
    FIELD(std::uint32_t, cost_entries, "of each type; more records aboard: the last", 1);
    FIELD(std::int64_t, records, "at the beginning");
    FIELD(std::uint32_t, reads, "distinct records that a transaction reads");
    FIELD(std::uint32_t, updates, "how many of them it writes");
    FIELD(std::uint32_t, inserts, "records that it creates");
    FIELD(Time, backoff_ps, "before a retry");
    FIELD(Time, poll_ps, "between two looks at the snapshot (RSI)");
    FIELD(std::uint32_t, retries, "of an aborted transaction, before it is given up");
    FIELD(RecordWork, work, "of a server, beside its messages (2PC)");
    FIELD(bool, every_rm, "every storage server prepares (2PC)", true);
    FIELD(bool, own_managers, "client c always has the c-th manager (2PC)");
    FIELD(std::uint32_t, versions, "that a record keeps", 1);
    FIELD(std::int64_t, timestamp_bits, "length of the bit vector (RSI)");
    FIELD(std::uint32_t, send_queue, "of a client: one bit of so many is signaled", 1);
    FIELD(std::uint32_t, snapshot_every, "transactions per fetch of the snapshot", 1);
    FIELD(std::vector<std::int64_t>, death_client, "who dies");
    FIELD(std::vector<Time>, death_ps, "and when");
    FIELD(std::vector<std::int64_t>, death_step, "at the next step of this kind; below 0: at once");
    FIELD(Indices, stop_machine, "whose nodes stop");
    FIELD(std::vector<Time>, stop_ps, "when");
    FIELD(std::vector<Time>, return_ps, "and when they come back");
    FIELD(Indices, stop_empty, "not 0: without their records");
    FIELD(std::uint32_t, replicas, "copies of a record on the server after its own: 0 or 1");
    FIELD(Time, failover_ps, "until a server that stopped is out, and replicas answer", none);
    FIELD(Time, copy_ps, "of a record, to a server that comes back after its replica took over");
    FIELD(std::vector<PathFault>, path_faults, "between machines");
    FIELD(std::vector<ClockFault>, clock_faults, "of machines (RSI)");
    FIELD(Transport, transport, "that sends again what was lost");
    FIELD(std::vector<std::uint64_t>, loss_stream, "Philox key: which messages are lost");
    FIELD(bool, undoes, "fencing undoes what the owner has not committed (RSI)");
    FIELD(Time, rest_ps, "from then on no transaction begins; below 0: never", none);
    FIELD(Time, lease_ps, "of a lock; below 0: without this remedy", none);
    FIELD(Time, skip_after_ps, "of timestamps that hold up; below 0: without this remedy", none);
    FIELD(std::vector<Time>, start_ps, "by client; empty: all at once");
    FIELD(std::int64_t, timestamp_reach, "above the highest committed one; 0: a lap");
    FIELD(bool, in_step, "timestamps of clients keep together (RSI)");
    FIELD(bool, doorbell, "requests of one step are posted together (RSI)", true);
    FIELD(ProcessorSetup, processors, "that places share, or none");
    FIELD(std::vector<std::uint64_t>, streams, "[4 * clients] Philox keys of keys, of thinking");
    FIELD(bool, traced, "keep the trace");
    FIELD(bool, checked, "check snapshot isolation as it runs");
    FIELD(std::uint32_t, plant, "a Plant: a bug, for tests of the checks");
    END_OF_FIELDS;
};

}  // namespace numatwin
