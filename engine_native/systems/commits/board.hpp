// What the threads or processes of a run share beside the database: who is ready, who died, counts.
//
// A run's roles are its clients, then its nodes (servers). The board is one mapping: a file in
// memory that has no name, inherited by each process; so nothing of it is left behind, and what a
// killed process had counted stays. Whoever writes a field is alone in that; others only read.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/shared_board.hpp"
#include "systems/commits/kernel/protocol.hpp"
#include "systems/commits/run_setup.hpp"

namespace numatwin::native {

constexpr std::size_t message_types = 20;

struct Row {
    std::uint64_t sequence;
    std::int64_t time_ps, kind, client, transaction, a, b;
};

// A number that one thread counts up and others read, whenever.
class Count {
  public:
    void add(std::uint64_t by = 1) {
        value_.store(value_.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
    }
    std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

  private:
    std::atomic<std::uint64_t> value_{0};
};

// Of one role.
struct alignas(64) Counters {
    // Latencies in ps, in buckets 2^-7 of their power of two wide (sim/kernel/statistics.hpp).
    static constexpr std::size_t parts = 128, buckets = 57 * parts;

    Count commits, given_up, torn, latency_total_ps, busy_ns, updates, bytes;
    std::array<Count, causes> aborts;
    std::array<Count, message_types> messages;
    std::array<Count, buckets> latencies;

    void add_latency(std::int64_t ps);
    // Transactions that have come to an end, whichever: each try of one that aborts counts.
    std::uint64_t ended() const;
};

enum class RoleState : std::uint32_t { starting, ready, connected, done, failed };
enum class Phase : std::uint32_t { starting, running, stopping, finished };

struct alignas(64) RoleSlot {
    std::atomic<RoleState> state{RoleState::starting};
    std::atomic<std::int32_t> pid{0};
    std::atomic<std::int64_t> die{0};       // it shall stop for good: 2 + Step
    std::atomic<std::uint32_t> holding{0};  // it has stopped there
    std::atomic<std::uint32_t> fence{0};    // it shall be shut out
    std::atomic<std::uint32_t> gone{0};     // it is dead: it will never write again
    std::atomic<std::uint32_t> killed{0};   // 1 + the signal that ended it, where one did
    // Written by the role before and after each install: a kill between leaves it half done.
    std::atomic<std::uint32_t> installing{0};
    Contact contact;
    std::atomic<std::uint64_t> rows{0};
};

class Board {
  public:
    // On memory of its own, or on the file `descriptor` (of at least bytes()), which all who map
    // it share; whoever makes it first must be the one that made the file.
    Board(const RunSetup& setup, int descriptor = -1);
    static std::uint64_t bytes(const RunSetup& setup);

    std::uint32_t roles() const { return roles_; }
    RoleSlot& role(std::uint32_t role) { return slots_[role]; }
    Counters& counters(std::uint32_t role) { return counters_[role]; }

    // Acquire and release: what was written before a phase is seen by who sees it.
    Phase phase() const { return head_->phase.load(std::memory_order_acquire); }
    void set_phase(Phase phase) { head_->phase.store(phase, std::memory_order_release); }
    // The time since the run began.
    std::int64_t now_ns() const;
    void begin();

    bool all_clients(RoleState least) const { return all(0, clients_, least); }
    bool all_roles(RoleState least) const { return all(0, roles_, least); }
    void publish_contact(std::uint32_t role, std::span<const std::byte> contact);
    // Waits for it; throws std::runtime_error where none comes.
    std::span<const std::byte> contact(std::uint32_t role);
    void fail(std::uint32_t role, std::string_view text);
    void fail_run(std::string_view text) { head_->failure.tell(text); }
    std::string failure() const { return head_->failure.text(); }

    bool traced() const { return rows_each_ > 0; }
    // Of a role's trace there is room for so many rows still.
    std::uint64_t room(std::uint32_t role) const {
        return rows_each_ - slots_[role].rows.load(std::memory_order_relaxed);
    }
    void log(std::uint32_t role, RowKind kind, std::int64_t client, std::int64_t transaction,
             std::int64_t a, std::int64_t b = 0);
    // All rows in the order in which they happened, until a role has no room for more.
    std::vector<Row> trace() const;

  private:
    struct alignas(64) Head {
        std::atomic<Phase> phase{Phase::starting};
        std::atomic<std::int64_t> began_ns{0};
        FirstFailure failure;
        // Of rows: an order that agrees with what happened because of what.
        alignas(64) std::atomic<std::uint64_t> sequence{0};
    };
    bool all(std::uint32_t first, std::uint32_t last, RoleState least) const;
    Row* rows_of(std::uint32_t role) const { return rows_ + role * rows_each_; }

    std::uint32_t clients_;
    std::uint32_t roles_;
    std::uint64_t rows_each_;
    SharedMemory memory_;
    Head* head_;
    RoleSlot* slots_;
    Counters* counters_;
    Row* rows_;
};

}  // namespace numatwin::native
