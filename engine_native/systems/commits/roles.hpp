// The roles of a run: one of them on the thread that calls, all as processes, all as threads.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "fabric/kept_connections.hpp"
#include "systems/commits/board.hpp"
#include "systems/commits/commit_client.hpp"
#include "systems/commits/run_setup.hpp"

namespace numatwin::native {

std::unique_ptr<CommitClient> make_client(const RunSetup& setup, Board& board, std::uint32_t client,
                                          Fabric& fabric);
std::unique_ptr<CommitNode> make_node(const RunSetup& setup, Board& board, std::uint32_t node,
                                      Fabric& fabric);

// Loads or connects, waits for the run to begin, and does its part until it is over. What goes
// wrong is told on the board. Connections are `kept`, where it is given: those of clients, and of
// servers where paths are cut.
void run_role(const RunSetup& setup, Board& board, std::uint32_t role, Fabric& fabric,
              const KeptConnections* kept = nullptr) noexcept;

// The parent of a run's processes: forks them, sees who dies, kills whom the run wants dead.
//
// It is a process of its own, with one thread, so that it can fork at any time. Nothing outlives
// it: the kernel kills each of its children when it ends; and it ends when its own parent does, as
// it holds the other end of a pipe.

// Runs all roles of `setup` on the board in the file `board_descriptor`; returns when all have
// ended, or `control_descriptor` is closed at its other end (then none is left running).
void launch(const RunSetup& setup, int board_descriptor, int control_descriptor);

// A run whose roles are threads of this process, over plain memory: for tests, and without UCX.

class ThreadCluster {
  public:
    explicit ThreadCluster(const RunSetup& setup);
    // Ends the run, whatever its state.
    ~ThreadCluster();

    Board& board() { return board_; }
    // Connects all, and lets the clients begin. Throws std::runtime_error.
    void start();
    // Clients end their transactions; then the servers stop.
    void stop();

  private:
    void play_deaths();

    const RunSetup setup_;
    Board board_;
    std::vector<std::unique_ptr<Fabric>> fabrics_;  // by role; they outlive all threads
    std::vector<std::thread> threads_;
    std::thread deaths_;
};

}  // namespace numatwin::native
