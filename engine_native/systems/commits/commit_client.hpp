// A client in a closed loop, and what both protocols share; a subclass says how one commits.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/fabric.hpp"
#include "fabric/kept_connections.hpp"
#include "systems/commits/board.hpp"
#include "systems/commits/run_setup.hpp"
#include "systems/commits/transaction_draw.hpp"

namespace numatwin::native {

class CommitClient {
  public:
    // Thrown where a client leaves in the middle: the run is over, it died, or it is shut out.
    struct Left {};

    CommitClient(const RunSetup& setup, Board& board, std::uint32_t client, Fabric& fabric);
    virtual ~CommitClient() = default;

    // Sets up its connections.
    virtual void connect() = 0;
    // Transactions one after another, each tried again `retries` times, until the run is over.
    void run();
    // One transaction at a time, for benchmarks: whether it committed.
    bool run_one();

  protected:
    // The highest committed timestamp.
    virtual std::int64_t fetch_snapshot() = 0;
    // Reads and commits draw_.reads() and creates() on snapshot_: granted, or why not.
    virtual Cause transact() = 0;

    // Throws Left once the run is over.
    void check_phase() const;
    // Its own time passes; throws Left as above.
    void pause(std::int64_t time_ns);
    // A straggler: what it did since the last call takes its factor as long.
    void slow_down() {
        if (factor_ != 1) stretch_time();
    }
    // Yields while it waits without sleeping, where there are more clients than processors.
    void give_way();
    // Where a client that is to die stops for good; at no step: where it waits or has locks.
    void may_die_here(Step step = at_no_step) {
        const auto& own = slot();
        const auto dies = own.die.load(std::memory_order_relaxed) - 2;  // a Step, if it is to
        const bool holding = step == at_write || step == at_commit;
        if (dies == step || (dies == at_no_step && holding) ||
            own.fence.load(std::memory_order_relaxed) != 0)
            die_here();
    }
    void log(RowKind kind, std::int64_t a, std::int64_t b = 0) {
        if (board_.traced()) board_.log(client_, kind, client_, transaction_, a, b);
    }
    std::size_t writes() const { return setup_.updates + setup_.inserts; }
    std::int64_t written_key(std::size_t slot) const {
        return slot < setup_.updates ? draw_.reads()[slot] : draw_.creates()[slot - setup_.updates];
    }
    RoleSlot& slot() { return board_.role(client_); }
    Counters& counters() { return counters_; }
    // Waits for the role to be ready.
    Fabric::Peer connect_to(std::uint32_t role) { return fabric_.connect(board_.contact(role)); }

    const RunSetup& setup_;
    Board& board_;
    const std::uint32_t client_;
    Fabric& fabric_;
    TransactionDraw draw_;
    std::int64_t transaction_ = -1;
    std::int64_t snapshot_ = 0;
    std::int64_t cid_ = 0;  // of the transaction that committed last

  private:
    bool try_transaction();
    void die_here();
    void stretch_time();

    Counters& counters_;
    const std::uint32_t factor_;
    std::uint32_t copy_uses_ = 0;
    std::int64_t slowed_until_ns_ = 0;
    std::uint64_t counted_bytes_ = 0;
};

// A server of a run: its messages, until the run is over. A subclass says what it serves.

class CommitNode {
  public:
    CommitNode(const RunSetup& setup, Board& board, std::uint32_t node, Fabric& fabric)
        : setup_(setup), board_(board), role_(setup.node_role(node)), fabric_(fabric) {}
    virtual ~CommitNode() = default;

    // Memory and records, before anybody connects.
    virtual void load() = 0;
    // Serves until the run is over; as it begins, connections are `kept` where that is given.
    void serve(const KeptConnections* kept);

  protected:
    virtual void handle(std::span<const std::byte> message) = 0;
    // Begins to set up its own connections; connected() tells when they stand.
    virtual void greet() {}
    virtual bool connected() const { return true; }
    // Now and then; at least each millisecond while busy().
    virtual void tick() {}
    virtual bool busy() const { return false; }

    // A client that is gone gets none.
    void send(std::uint32_t role, std::span<const std::byte> message);
    bool is(std::uint32_t node) const { return setup_.node_role(node) == role_; }
    // Which of the storage servers it is; below 0: none.
    int storage_index() const;
    void log(RowKind kind, std::int64_t client, std::int64_t transaction, std::int64_t a,
             std::int64_t b = 0) {
        if (board_.traced()) board_.log(role_, kind, client, transaction, a, b);
    }

    const RunSetup& setup_;
    Board& board_;
    const std::uint32_t role_;
    Fabric& fabric_;

  private:
    static constexpr Fabric::Peer unknown = ~Fabric::Peer{0}, lost = unknown - 1;
    std::vector<Fabric::Peer> peers_;  // by role
    std::vector<std::byte> message_;
};

}  // namespace numatwin::native
