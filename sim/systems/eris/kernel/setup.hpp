// What the ERIS models are told: a machine as costs, the data's demands, where commands go.
//
// Everything comes from the cost model (sim/systems/eris/event_model.py), in picoseconds; the
// models know no machine fact of their own. Arrays are flat, row by row; A workers on C cores of n
// nodes with 2L directed links, O operations of which the first K are by key and the others scans.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernel/event_queue.hpp"
#include "machine/disturbances/kernel/turns.hpp"

namespace numatwin {

using Numbers = std::vector<double>;
using Positions = std::vector<std::int64_t>;

// Sparse rows: entries first[i] … first[i + 1] - 1 are those of node i.
struct SparseRows {
    Positions first, column;
    Numbers value;

    template <class Use>
    void each(std::size_t row, Use use) const {
        if (row + 1 >= first.size()) return;
        for (auto k = first[row]; k < first[row + 1]; ++k) {
            const auto at = static_cast<std::size_t>(k);
            use(static_cast<std::size_t>(column[at]), value[at], at);
        }
    }
};

// What does not change while a scenario runs.
struct ErisMachine {
    Positions node;                  // [A] of each worker
    Positions core;                  // [A] among the cores in use
    Positions home;                  // [n] the node whose memory a node's workers use
    Numbers issue_ps;                // [n] make a command and route it to its target's buffer
    Numbers receive_ps;              // [n] take a command from the incoming buffer
    Numbers flush_ps;                // [n] instructions of a flush, whatever its size
    Numbers copy_ps;                 // [n] and for each command in it
    Numbers batch_ps;                // [n] execute a batch, whatever its size
    Numbers round_ps;                // [n] go through the loop once
    Numbers swap_ps;                 // [n] exchange the incoming buffers
    Numbers stream_slots;            // [n] lines that a core gets from others at a time to write
    Numbers read_slots;              // [n] and to read
    Positions handed_ps;             // [n, n] a line that a core of i gets from a core of j
    bool own_cached = false;         // a worker's commands to itself stay in its own cache
    bool exchanged_at_once = false;  // a descriptor comes to be written: no exchange fails
    bool handed_beside = false;      // lines of other cores take time beside instructions
    bool flushed_late = false;       // a full buffer, when the next command for it comes
    double read_waits = 0;           // waits for a line of who takes what others have sent
    Numbers part_ps;                 // [n] take a header of a part of a batch
    double part_waits = 0;           // and waits for a line, where another sent it
    Numbers memory_idle_ps;          // [n] latency of a node's home memory
    Numbers memory_line_ps;          // [n] how long a line takes a controller; 0: not limited
    Numbers memory_write_ps;         // [n] and one that is written
    Numbers load, load_ratio;        // loaded latency over idle, by load
    double lines_per_command = 0.25;
    double answer_lines = 0;    // of what is sent back for a command
    Positions link_data_ps;     // [2L] wire time of a line with its header
    Positions link_request_ps;  // [2L] wire time of a request
    // What a line from memory costs on links: data that come from another node's memory, snoops.
    SparseRows line_data_ps;     // wire time of data
    SparseRows line_control_ps;  // and of control messages
    SparseRows line_bytes;       // bytes of both
    Positions entering;          // [n, v] directed link into vertex v on the way from node i
    Positions predecessor;       // [n, v] and the vertex that it comes from
    std::int64_t vertices = 0;
    std::int64_t buffer_commands = 128;  // of an outgoing buffer
    std::int64_t round_commands = 0;     // that a worker makes in a round of its loop, at most
    std::int64_t incoming_commands = 0;  // of each of the two incoming buffers
    std::int64_t command_bytes = 16;
    std::int64_t batch = 128;              // commands that are executed together
    bool answers = false;                  // whether each command sends one back
    double think_ps = 0;                   // a worker waits for its batch, then thinks; 0: never
    double arrival_ps = 0;                 // mean time between a worker's arrivals; 0: closed
    std::int64_t scans_max = 1;            // scans of an operation under way at a time
    std::int64_t scan_chunk_lines = 4096;  // after so many lines others get their turn
    std::optional<TurnSetup> turns;        // of others on each worker's core
    // A core is slower or faster than usual as others use what it shares: how long it stays so on
    // average, 0: always as usual; [K] how many times as long as usual work takes, and waiting for
    // lines of memory, by the share [K], from 0 to 1, of the time in which it is that or more.
    double pace_lasts_ps = 0;
    Numbers pace_share, pace_slowdown, pace_memory_slowdown;
    // Cores are now near each other, now far apart: how long at a time, on average (0: never), and
    // how many times as long a line takes meanwhile that a core of the same node hands over.
    double near_ps = 0, apart_ps = 0, apart_times = 1;
};

// What an operation demands of each worker, on its present partition. Per command, or per line
// that a scan reads.
struct ErisDemands {
    Numbers core_ps;       // [O, A] instructions
    Numbers hit_ps;        // [O, A] what caches deliver, slots of a core
    Numbers lines;         // [O, A] lines that memory delivers
    Numbers slots;         // [O, A] lines that a core has under way
    Numbers surely_ps;     // [O, A] a line takes no longer than this; 0: no such limit
    Numbers memory_lines;  // [O, A] lines that the home's controller reads and writes
    Numbers written;       // [O, A] how many of them it writes
    Numbers scan_lines;    // [O, A] lines of a whole scan, 0 for operations by key
};

// Where commands go: u in [0, 1) falls into the cell with sum[cell] <= u < sum[cell + 1].
// Cell = operation * A + target for the K operations by key; then one for each scan.
struct ErisTable {
    Numbers sum;      // [cells + 1]
    Positions guide;  // [G] the cell of u = k / G: the search begins there
};

// A step of a worker's loop, per operation of the mix that one worker on a node does.
struct SharedStep {
    Numbers core_ps;      // [n] instructions
    Numbers held_ps;      // [n] slots of a core: what caches deliver, and memory at no load
    SparseRows memory;    // waits at controllers: slots' time per ps of wait
    SparseRows links;     // waits at links, likewise
    SparseRows streamed;  // lines read one after the other, by home
    SparseRows ways;      // [streamed entries] links that each of these takes
    Numbers slots;        // [n] of these, so many at a time
    Numbers surely_ps;    // [streamed entries] none takes longer than this; 0: no such limit
    Numbers idle_ps;      // [streamed entries] latency at no load
};

struct SharedSetup {
    Positions node, core;  // [A]
    std::vector<SharedStep> steps;
    SparseRows memory_ps;     // work of controllers per operation of a worker on a node
    SparseRows memory_lines;  // and its lines
    SparseRows link_data_ps, link_control_ps, link_bytes;
    Numbers pair_ps;           // [n] work of the node's most used pair
    Numbers line_ps;           // [n] work of the line that all write to
    Numbers memory_idle_ps;    // [n] latency of each node's own memory
    Numbers link_line_ps;      // [2L] wire time of a line, of which half is the mean wait
    Numbers load, load_ratio;  // loaded latency over idle
    double link_load_max = 0.95;
    Numbers shares;  // [O] of the operations
    std::int64_t batch = 128;
    std::int64_t chunks = 0;  // of a scan, where nothing else is done; else 0
    double think_ps = 0, arrival_ps = 0;
};

// Throw std::invalid_argument, with the field's name, where shapes or values are wrong.
void check(const ErisMachine& of);
void check(const ErisDemands& of, std::size_t operations, std::size_t workers);
void check(const ErisTable& of, std::size_t cells);
void check(const SharedSetup& of);

}  // namespace numatwin
