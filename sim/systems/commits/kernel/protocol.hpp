// What models and engine of commits have in common: rows of a history, messages, where records lie.
#pragma once

#include <cstddef>
#include <cstdint>

namespace numatwin {

// Kinds of a history's rows and causes of aborts: ../history.py.
enum class RowKind : std::uint8_t {
    begin,
    read,
    write,
    install,
    commit,
    rolled_back,
    outcome,
    abort,
    died,
    fenced,
    skipped,
    broken,
    message,
    stopped,
    returned,
    undone,
    failed_over,
    rejoined
};
enum Cause : std::int64_t {
    granted = -1,
    cause_snapshot,
    cause_conflict,
    cause_locked,
    cause_lease,
    cause_timestamps,
    cause_stopped,
    causes
};

// Steps of a transaction, as a client that is to die next comes to one: STEPS of ../parameters.py.
enum Step : std::int64_t { at_snapshot, at_read, at_lock, at_write, at_bit, at_commit };
constexpr Step at_no_step = static_cast<Step>(-1);

// Messages by type, the protocol's own in order: ../parameters.py.
struct OneSided {
    enum Type : std::uint32_t {
        snapshot_read,
        snapshot_data,
        read,
        record,
        cas,
        cas_result,
        write,
        write_done,
        unlock,
        unlock_done,
        bit,
        bit_done,
        claim,
        claim_result,
        break_lock,
        break_result,
        complaint,
        complaint_done,
        revoke,
        revoked
    };
    static bool answers(std::uint32_t type) { return type % 2 == 1; }
};
struct TwoPhase {
    enum Type : std::uint32_t {
        snapshot_request,
        snapshot,
        read,
        record,
        commit_request,
        timestamp_request,
        timestamp,
        prepare,
        vote,
        install,
        installed,
        rollback,
        finished,
        outcome,
        hello,  // not of the protocol: to set up a connection before the run
        hello_back
    };
    static bool answers(std::uint32_t type) {
        return type == snapshot || type == record || type == timestamp || type == vote ||
               type == installed;
    }
};
// The storage server of a record: by key; those that a client creates, in turn from its own.
inline std::uint32_t server_of_key(std::int64_t key, std::int64_t records, std::int64_t clients,
                                   std::size_t servers) {
    const auto n = static_cast<std::int64_t>(servers);
    if (key < records) return static_cast<std::uint32_t>(key % n);
    const std::int64_t created = key - records;
    return static_cast<std::uint32_t>((created % clients + created / clients) % n);
}

}  // namespace numatwin
