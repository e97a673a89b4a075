// What requests and messages between two processes cost, by size, and an RSI commit made of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "systems/commits/run_setup.hpp"

namespace numatwin::native {

struct FabricCost {
    std::string operation;  // get, put, compare-and-swap, fetch-add, message
    std::uint64_t bytes;
    double latency_ns;  // one at a time: until done (of a message: half of there and back)
    double rate_ns;     // many at a time: per operation
};

// Medians over many short rounds; a put is done when it has landed. The peer is a forked process,
// so the caller should have one thread. Throws std::runtime_error.
std::vector<FabricCost> measure_fabric(const RunSetup& setup,
                                       const std::vector<std::uint64_t>& sizes, double seconds);

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
