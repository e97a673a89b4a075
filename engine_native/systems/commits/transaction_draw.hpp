// What one client asks for, transaction by transaction: the draws of
// sim/systems/commits/workload.py.
#pragma once

#include <cstdint>
#include <vector>

// Header-only parts of the simulator: the same seed asks for the same records on every plane.
#include "kernel/durations.hpp"
#include "kernel/key_draws.hpp"
#include "kernel/philox.hpp"
#include "systems/commits/run_setup.hpp"

namespace numatwin::native {

class TransactionDraw {
  public:
    TransactionDraw(const RunSetup& setup, std::uint32_t client);

    // The next transaction: reads() and creates() change.
    void next();
    // Distinct; the first `updates` of them are written.
    const std::vector<std::int64_t>& reads() const { return reads_; }
    const std::vector<std::int64_t>& creates() const { return creates_; }
    std::int64_t think_ns();

  private:
    const RunSetup& setup_;
    std::uint32_t client_;
    KeyDraws keys_;
    Durations think_;
    Stream key_stream_, think_stream_;
    std::int64_t created_ = 0;
    std::vector<std::int64_t> reads_, creates_;
};

}  // namespace numatwin::native
