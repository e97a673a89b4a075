// One role of a run, from beginning to end, on the thread that calls.
#pragma once

#include <cstdint>
#include <memory>

#include "fabric/kept_connections.hpp"
#include "systems/commits/board.hpp"
#include "systems/commits/commit_client.hpp"
#include "systems/commits/commit_node.hpp"
#include "systems/commits/run_setup.hpp"

namespace numatwin::native {

std::unique_ptr<CommitClient> make_client(const RunSetup& setup, Board& board, std::uint32_t client,
                                          Fabric& fabric);
std::unique_ptr<CommitNode> make_node(const RunSetup& setup, Board& board, std::uint32_t node,
                                      Fabric& fabric);

// Loads or connects, waits for the run to begin, and does its part until it is over. What goes
// wrong is told on the board. A client's connections are `kept`, where it is given.
void run_role(const RunSetup& setup, Board& board, std::uint32_t role, Fabric& fabric,
              const KeptConnections* kept = nullptr) noexcept;

}  // namespace numatwin::native
