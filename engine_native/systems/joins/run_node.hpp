// A node of a run from its tables to its last round; all nodes as threads, and as processes.
#pragma once

#include "systems/joins/join_board.hpp"

namespace numatwin::native {

// A failure is noted on the board.
void run_node(const JoinSetup& setup, JoinBoard& board, std::uint32_t node,
              Fabric& fabric) noexcept;

// Each node is a thread of this process, over plain memory. Throws std::runtime_error where the
// run failed, or a tuple was lost or taken twice.
void run_as_threads(const JoinSetup& setup, JoinBoard& board);

// Each node is a child of this process, over UCX. Throws as above; no child is left.
void run_as_processes(const JoinSetup& setup, JoinBoard& board);

}  // namespace numatwin::native
