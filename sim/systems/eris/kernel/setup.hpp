// Parameters of the ERIS models: a machine as costs, the data's demands, where commands go.
//
// Everything comes from the cost model (sim/systems/eris/event_model.py), in picoseconds; the
// models know no machine fact of their own. Arrays are flat, row by row; A workers on C cores of n
// nodes with 2L directed links, O operations of which the first K are by key and the others scans.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/described.hpp"
#include "kernel/event_queue.hpp"
#include "machine/disturbances/kernel/disturbances.hpp"
#include "machine/kernel/routes.hpp"

namespace numatwin {

// What a field has one value of each: its size is checked by it.
enum class Each { node, node_pair, link, demand, streamed };

// Numbers of 0 and more, none without end; above 0 where they are Slots.
template <Each each, class Number = double>
struct Amounts : std::vector<Number> {
    using Plain = std::vector<Number>;
};
struct Slots : Amounts<Each::node> {};
using PerNode = Amounts<Each::node>;
using PerDemand = Amounts<Each::demand>;      // [O, A]: operations by workers
using PerStreamed = Amounts<Each::streamed>;  // entries of SharedStep::streamed

// Sparse rows with a row and a column of each.
template <Each row, Each column>
struct Rows : SparseRows {
    using Plain = SparseRows;
};
using NodeRows = Rows<Each::node, Each::node>;
using LinkRows = Rows<Each::node, Each::link>;

// A number of at least 1.
struct Count {
    using Plain = std::int64_t;
    std::int64_t value = 1;
    Count(std::int64_t number = 1) : value(number) {}
    operator std::int64_t&() { return value; }
    operator const std::int64_t&() const { return value; }
};

// What does not change while a scenario runs.
struct ErisMachine {
    FIELDS_OF(ErisMachine);
    FIELD(Positions, node, "[A] of each worker");
    FIELD(Positions, core, "[A] of each worker, among the cores in use");
    FIELD(Positions, home, "[n] the node whose memory a node's workers use");
    FIELD(PerNode, issue_ps, "[n] make a command and route it to its target's buffer");
    FIELD(PerNode, receive_ps, "[n] take a command from the incoming buffer");
    FIELD(PerNode, flush_ps, "[n] instructions of a flush, whatever its size");
    FIELD(PerNode, copy_ps, "[n] and for each command in it");
    FIELD(PerNode, batch_ps, "[n] execute a batch, whatever its size");
    FIELD(PerNode, round_ps, "[n] go through the loop once");
    FIELD(PerNode, swap_ps, "[n] exchange the incoming buffers");
    FIELD(Slots, stream_slots, "[n] lines that a core gets from others at a time to write");
    FIELD(Slots, read_slots, "[n] and to read");
    using PerPair = Amounts<Each::node_pair, std::int64_t>;
    FIELD(PerPair, handed_ps, "[n, n] a line that a core of i gets from a core of j");
    FIELD(bool, own_cached, "a worker's commands to itself stay in its own cache");
    FIELD(bool, exchanged_at_once, "a descriptor comes to be written: no exchange fails");
    FIELD(bool, handed_additive,
          "lines of other cores add to the time of instructions, not overlapped");
    FIELD(bool, flushed_late, "a full buffer, when the next command for it comes");
    FIELD(double, read_waits, "waits for a line of who takes what others have sent");
    FIELD(PerNode, part_ps, "[n] take a header of a part of a batch");
    FIELD(double, part_waits, "and waits for a line, where another sent it");
    FIELD(PerNode, stream_stall, "[n] part of a scan's time that work does not hide");
    FIELD(PerNode, memory_idle_ps, "[n] latency of a node's home memory");
    FIELD(PerNode, memory_line_ps, "[n] how long a line takes a controller; 0: not limited");
    FIELD(PerNode, memory_write_ps, "[n] and one that is written");
    FIELD(Numbers, load, "of a memory controller, for load_ratio");
    FIELD(Numbers, load_ratio, "loaded latency over idle, by load");
    FIELD(double, lines_per_command, "cache lines of a command", 0.25);
    FIELD(double, answer_lines, "of what is sent back for a command");
    using PerLink = Amounts<Each::link, std::int64_t>;
    FIELD(PerLink, link_data_ps, "[2L] wire time of a line with its header");
    FIELD(PerLink, link_request_ps, "[2L] wire time of a request");
    // Of a line of a flush to another node (sim/machine/hand_over_traffic.py), or of a flush.
    FIELD(double, handed_fetched, "lines that come to be written", 1.0);
    FIELD(double, handed_passed, "lines of a flush that come from other writers: nobody waits",
          0.0);
    FIELD(double, handed_passed_messages, "and messages for them, each way", 0.0);
    FIELD(double, handed_back, "and lines that go back once more, written back", 0.0);
    FIELD(double, handed_messages, "messages each way, in times of a request", 1.0);
    FIELD(double, handed_read, "lines that the reader's memory delivers", 0.0);
    FIELD(double, handed_written, "lines that are written back to it", 0.0);
    // What a line from memory costs on links: data that come from another node's memory, snoops.
    FIELD(LinkRows, line_data_ps, "[n, 2L] wire time of data of a line from memory");
    FIELD(LinkRows, line_control_ps, "[n, 2L] and of control messages");
    FIELD(LinkRows, line_bytes, "[n, 2L] bytes of both");
    FIELD(Positions, entering, "[n, v] directed link into vertex v on the way from node i");
    FIELD(Positions, predecessor, "[n, v] and the vertex that it comes from");
    FIELD(std::int64_t, vertices, "v: nodes and hubs");
    FIELD(Count, buffer_commands, "of an outgoing buffer", 128);
    FIELD(Count, round_commands, "that a worker makes in a round of its loop, at most", 0);
    FIELD(Count, incoming_commands, "of each of the two incoming buffers", 0);
    FIELD(Count, command_bytes, "of a command", 16);
    FIELD(Count, batch, "commands that are executed together", 128);
    FIELD(bool, answers, "whether each command sends one back");
    FIELD(double, think_ps, "a worker waits for its batch, then thinks; 0: never");
    FIELD(double, arrival_ps, "mean time between a worker's arrivals; 0: closed");
    FIELD(Count, scans_max, "scans of an operation under way at a time", 1);
    FIELD(Count, scan_chunk_lines, "after so many lines others get their turn", 4096);
    FIELD(Disturbances, disturbances, "of the workers' cores, one for each worker");
    END_OF_FIELDS;
};

// What an operation demands of each worker, on its present partition. Per command, or per line
// that a scan reads.
struct ErisDemands {
    FIELDS_OF(ErisDemands);
    FIELD(PerDemand, core_ps, "[O, A] instructions");
    FIELD(PerDemand, hit_ps, "[O, A] what caches deliver, slots of a core");
    FIELD(PerDemand, lines, "[O, A] lines that memory delivers");
    FIELD(PerDemand, slots, "[O, A] lines that a core has under way");
    FIELD(PerDemand, line_max_ps, "[O, A] a line takes no longer than this; 0: no such limit");
    FIELD(PerDemand, memory_lines, "[O, A] lines that the home's controller reads and writes");
    FIELD(PerDemand, written, "[O, A] how many of them it writes");
    FIELD(PerDemand, scan_lines, "[O, A] lines of a whole scan, 0 for operations by key");
    END_OF_FIELDS;
};

// Where commands go: u in [0, 1) falls into the cell with sum[cell] <= u < sum[cell + 1].
// Cell = operation * A + target for the K operations by key; then one for each scan.
struct ErisTable {
    Numbers sum;      // [cells + 1]
    Positions guide;  // [G] the cell of u = k / G: the search begins there
};

// A step of a worker's loop, per operation of the mix that one worker on a node does.
struct SharedStep {
    FIELDS_OF(SharedStep);
    FIELD(PerNode, core_ps, "[n] instructions");
    FIELD(PerNode, held_ps, "[n] slots of a core: what caches deliver, and memory at no load");
    FIELD(NodeRows, memory, "[n, n] waits at controllers: slots' time per ps of wait");
    FIELD(LinkRows, links, "[n, 2L] waits at links, likewise");
    FIELD(NodeRows, streamed, "[n, n] lines read one after the other, by home");
    using WayRows = Rows<Each::streamed, Each::link>;
    FIELD(WayRows, ways, "[streamed entries, 2L] links that each of these takes");
    FIELD(Slots, slots, "[n] of these, so many at a time");
    FIELD(PerStreamed, line_max_ps, "[streamed entries] at the most; 0: no such limit");
    FIELD(PerStreamed, idle_ps, "[streamed entries] latency at no load");
    FIELD(PerNode, stall, "[n] part of the time of lines that work does not hide");
    END_OF_FIELDS;
};

struct SharedSetup {
    FIELDS_OF(SharedSetup);
    FIELD(Positions, node, "[A] of each worker");
    FIELD(Positions, core, "[A] of each worker, among the cores in use");
    FIELD(std::vector<SharedStep>, steps, "of the loop");
    FIELD(NodeRows, memory_ps, "[n, n] work of controllers per operation of a node's worker");
    FIELD(NodeRows, memory_lines, "[n, n] and its lines");
    FIELD(LinkRows, link_data_ps, "[n, 2L] wire time of data, likewise");
    FIELD(LinkRows, link_control_ps, "[n, 2L] and of control messages");
    FIELD(LinkRows, link_bytes, "[n, 2L] bytes of both");
    FIELD(PerNode, limit_ps, "[n] work of the fullest limit of the node's transfers");
    FIELD(PerNode, line_ps, "[n] work of the line that all write to");
    FIELD(PerNode, memory_idle_ps, "[n] latency of each node's own memory");
    FIELD(Amounts<Each::link>, link_line_ps, "[2L] wire time of a line; half is the mean wait");
    FIELD(Numbers, load, "of a memory controller, for load_ratio");
    FIELD(Numbers, load_ratio, "loaded latency over idle, by load");
    FIELD(double, link_load_max, "a link's load, at the most", 0.95);
    FIELD(Numbers, shares, "[O] of the operations");
    FIELD(Count, batch, "operations that a worker begins together", 128);
    FIELD(std::int64_t, chunks, "of a scan, where nothing else is done; else 0");
    FIELD(double, think_ps, "a worker waits for its batch, then thinks; 0: never");
    FIELD(double, arrival_ps, "mean time between a worker's arrivals; 0: closed");
    END_OF_FIELDS;
};

// Throw std::invalid_argument, with the field's name, where shapes or values are wrong.
void check(const ErisMachine& of);
void check(const ErisDemands& of, std::size_t operations, std::size_t workers);
void check(const ErisTable& of, std::size_t cells);
void check(const SharedSetup& of);

}  // namespace numatwin
