// What the model of tasks is played with: ../parameters.py, in plain numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/described.hpp"
#include "kernel/event_queue.hpp"
#include "machine/kernel/os_scheduler.hpp"

namespace numatwin {

struct StageSetup {
    using Doubles = std::vector<double>;
    using Integers = std::vector<std::int64_t>;
    FIELDS_OF(StageSetup);
    FIELD(std::int64_t, task_class, "of its tasks");
    FIELD(std::int64_t, table, "whose parts its tasks work on; -1: none");
    FIELD(std::int64_t, counted, "the table that parts_min is about; -1: none");
    FIELD(Integers, inputs, "stages that come before it");
    FIELD(Integers, followers, "stages that come after it");
    FIELD(bool, pipelined, "each task follows one of its input's");
    FIELD(bool, kept, "a later stage follows the nodes of its tasks");
    FIELD(std::int64_t, parts_min, "with fewer parts it is left out", 1);
    FIELD(std::int64_t, concurrency, "tasks at most; 0: as the system says");
    FIELD(double, per_row, "entries");
    FIELD(double, per_part, "entries");
    FIELD(double, per_input_task, "entries");
    FIELD(double, constant, "entries");
    FIELD(double, most, "entries at most, in all");
    FIELD(Doubles, instructions_ps, "[n] per entry, by node of the thread");
    FIELD(Doubles, separate_ps, "[n] per entry: overlaps with nothing");
    FIELD(Doubles, slots, "[n] lines under way");
    FIELD(Integers, place, "[m] of memory: 0 with the part, 1 local, 2 interleaved");
    FIELD(Doubles, read, "[m] lines per entry");
    FIELD(Doubles, written, "[m] lines per entry");
    FIELD(double, lines, "per entry, in all");
    FIELD(double, chunk_entries, "that a copy engine copies at a time; 0: none does");
    FIELD(Doubles, warm_lines, "[n] in the core's own cache");
    FIELD(Doubles, warm_ps, "[n] to read them from the last-level cache");
    END_OF_FIELDS;
};

// Copy engines of the machine, and what uses them and the links besides queries.
struct EngineSetup {
    using Doubles = std::vector<double>;
    using Integers = std::vector<std::int64_t>;
    FIELDS_OF(EngineSetup);
    FIELD(Integers, core, "[E] of the service");
    FIELD(Integers, contexts, "[E] copies at a time");
    FIELD(Doubles, setup_ps, "[E] of a thread, before its first request");
    FIELD(Doubles, request_ps, "[E] of a thread, for each");
    FIELD(Doubles, line_ps, "[E] of a line");
    FIELD(Doubles, free_line_ps, "[E] likewise, not coherent; 0: it makes no such copies");
    FIELD(Doubles, slots, "[E] lines asked for at a time");
    FIELD(Integers, of_node, "[n] the engine that threads of a node use; -1: none");
    FIELD(Integers, background_core, "[B] of the service");
    FIELD(Integers, background_engine, "[B] whose context it holds; -1: none");
    FIELD(Doubles, background_instructions_ps, "[B] of a line");
    FIELD(std::vector<Doubles>, background_read, "[B, n] lines read from each home");
    FIELD(std::vector<Doubles>, background_written, "[B, n] likewise written");
    FIELD(Doubles, background_slots, "[B] lines under way");
    END_OF_FIELDS;
};

struct TaskSetup {
    using Doubles = std::vector<double>;
    using Integers = std::vector<std::int64_t>;
    using Tables = std::vector<std::vector<std::int64_t>>;
    FIELDS_OF(TaskSetup);
    // The machine, as SharedService takes it.
    FIELD(Doubles, read_ps, "[n] of a line at the controller");
    FIELD(Doubles, write_ps, "[n] of a line at the controller");
    FIELD(Doubles, latency_ps, "[n, n] without load");
    FIELD(Doubles, load, "of the loaded-latency curve");
    FIELD(Doubles, load_ratio, "at each load");
    FIELD(Integers, core_node, "[C]");
    FIELD(Integers, core_threads, "[C] pieces at a time");
    FIELD(Integers, data_ps, "[2L] of a line on a link");
    FIELD(Integers, request_ps, "[2L] of a request");
    FIELD(Integers, entering, "[n, v] links of routes");
    FIELD(Integers, predecessor, "[n, v] vertices of routes");
    FIELD(std::int64_t, vertices, "v");
    FIELD(double, smt_throughput, "of a core that runs several threads, over that of one", 1.0);
    FIELD(Doubles, entries, "[n] lines under way at home agents; none, 0: not limited");
    FIELD(bool, directory_in_memory, "its updates are writes", false);
    // Threads.
    FIELD(Integers, worker_core, "[W]");
    FIELD(Integers, worker_node, "[W] of whose pool each is");
    FIELD(OsSetup, os, "threads that are moved; without processors: they are pinned");
    FIELD(double, switch_ps, "of a thread that takes over a processor in the middle of a task");
    FIELD(bool, one_queue, "of the whole machine");
    FIELD(Integers, copy_core, "[n] of copying threads");
    FIELD(Doubles, copy_slots, "[n] lines under way of copying threads");
    FIELD(Integers, near, "[n, n] nodes by distance from each, itself first");
    FIELD(Integers, memory_nodes, "nodes with memory");
    // Work.
    FIELD(std::int64_t, classes, "of tasks");
    FIELD(std::vector<StageSetup>, stages, "of all queries");
    FIELD(Integers, query_first, "first stage of each query, and the end of the last one");
    FIELD(Doubles, cumulative, "shares of the mix, by query");
    FIELD(std::int64_t, last_of_mix, "the last query that is drawn; -1: none");
    FIELD(Tables, part_rows, "of each table's parts");
    FIELD(Tables, part_node, "likewise; -1: on all nodes in turn");
    FIELD(Integers, client_query, "of each closed client; -1: it draws from the mix");
    FIELD(std::int64_t, concurrency, "tasks of a stage; 0: as workers are free");
    FIELD(double, task_ps, "of taking and ending a task");
    FIELD(Time, look_ps, "for work, before a worker sleeps");
    FIELD(Time, wake_ps, "until a woken worker runs");
    FIELD(bool, queue_per_worker, "tasks of a node are dealt to its workers");
    FIELD(double, think_ps, "of closed clients, on average");
    FIELD(double, arrival_ps, "between queries of open clients, on average; 0: none");
    FIELD(std::vector<std::uint64_t>, streams,
          "Philox keys: of closed clients, the mix and thinking; of open ones, the mix, arrivals");
    FIELD(bool, traced, "keep the trace");
    FIELD(EngineSetup, engines, "that copy for scans");
    FIELD(Integers, paths,
          "[stages, n + 1] by stage and home, on all nodes first: path 0 (CPU), 1, 2 (copies)");
    END_OF_FIELDS;
};

}  // namespace numatwin
