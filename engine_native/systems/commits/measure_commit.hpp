// What an RSI commit over shared memory takes, and its parts.
#pragma once

#include <cstdint>

#include "systems/commits/run_setup.hpp"

namespace numatwin::native {

// Times of one commit and of its parts, by turns in one process, in ns: means over `commits`, the
// slowest twentieth and the clock's own time left out.
struct CommitCost {
    double commit_ns;       // from the first CAS to the timestamp's bit, by the protocol
    double raw_ns;          // the same CAS and copies on the shared mapping, with nothing between
    double raw_fabric_ns;   // the same, each through the fabric
    double transaction_ns;  // with snapshot, reads and the new blocks made
    std::uint64_t hash;     // of what stands in the records afterwards
};

// `setup`: one client; one node that holds records and timestamps, a forked process.
CommitCost measure_commit(const RunSetup& setup, std::uint32_t commits);

}  // namespace numatwin::native
