// A run whose roles are threads of this process, over plain memory: for tests, and without UCX.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "systems/commits/board.hpp"
#include "systems/commits/run_setup.hpp"

namespace numatwin::native {

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
