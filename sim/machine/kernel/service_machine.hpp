// What long pieces of work share, and what they demand of it.
#pragma once

#include <cstdint>
#include <span>

#include "machine/kernel/memory_controller.hpp"
#include "machine/kernel/sparse_rows.hpp"

namespace numatwin {

// n nodes, C cores, 2L directed links, v vertices (nodes first); times in picoseconds.
struct ServiceMachine {
    Numbers read_ps, write_ps;        // [n] of a line at the controller; 0: not limited
    Numbers latency_ps;               // [n, n] of a line of node j's memory on node i, without load
    LoadCurve curve;                  // latency by load
    Positions core_node;              // [C]
    Positions core_threads;           // [C] how many pieces run on a core at most
    Positions data_ps;                // [2L] wire time of a line
    Positions request_ps;             // [2L] and of a request for one
    Positions entering, predecessor;  // [n, v] as for Interconnect
    std::int64_t vertices = 0;
    double smt_throughput = 1;  // of a core that runs several threads, over that of one thread
    Numbers entries = {};       // [n] lines under way at a node's home agents; none, 0: not limited
    bool directory_in_memory = false;  // its updates are writes

    // Throws std::invalid_argument, with the field's name, where shapes or values are wrong.
    void check() const;
};

// Lines of one node's memory, per unit of a piece. `slots` are read at a time.
struct MemoryUse {
    std::uint32_t home;
    double read, written;
    double slots;
};

// What a unit of a piece takes.
struct PieceDemand {
    double instructions_ps, separate_ps;  // separate: overlaps with nothing
    std::span<const MemoryUse> memory;
};

// Latency over that without load, where load times this is so much; at most that at full load.
double settled_ratio(const LoadCurve& curve, double under_way);

namespace service {

// Throws std::invalid_argument: "field: expected ...".
void require(bool holds, const char* field, const char* expected);
// Finite, and at least 0.
bool is_amount(double value);

}  // namespace service

}  // namespace numatwin
