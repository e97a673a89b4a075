// A server of a run: its messages, until the run is over. A subclass says what it serves.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/fabric.hpp"
#include "systems/commits/board.hpp"
#include "systems/commits/run_setup.hpp"

namespace numatwin::native {

class CommitNode {
  public:
    CommitNode(const RunSetup& setup, Board& board, std::uint32_t node, Fabric& fabric)
        : setup_(setup), board_(board), role_(setup.node_role(node)), fabric_(fabric) {}
    virtual ~CommitNode() = default;

    // Memory and records, before anybody connects.
    virtual void load() = 0;
    // Serves until the run is over.
    void serve();

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
