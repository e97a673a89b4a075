// The parent of a run's processes: forks them, sees who dies, kills whom the run wants dead.
//
// It is a process of its own, with one thread, so that it can fork at any time. Nothing outlives
// it: the kernel kills each of its children when it ends; and it ends when its own parent does, as
// it holds the other end of a pipe.
#pragma once

#include "systems/commits/board.hpp"
#include "systems/commits/run_setup.hpp"

namespace numatwin::native {

// Runs all roles of `setup` on the board in the file `board_descriptor`; returns when all have
// ended, or `control_descriptor` is closed at its other end (then none is left running).
void launch(const RunSetup& setup, int board_descriptor, int control_descriptor);

}  // namespace numatwin::native
