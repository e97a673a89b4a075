// A program on a machine in plain numbers, made by ../parameters.py: what the event and the
// reference plane both run. Nodes, classes, tables, stages and workers are positions; times are
// picoseconds.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/described.hpp"
#include "kernel/event_queue.hpp"
#include "machine/kernel/os_scheduler.hpp"
#include "machine/kernel/service_machine.hpp"

namespace numatwin {

// One of several loops of a stage.
struct LoopSetup {
    using Doubles = std::vector<double>;
    using Integers = std::vector<std::int64_t>;
    FIELDS_OF(LoopSetup);
    FIELD(Doubles, instructions_ps, "[n] per entry, by node of the thread");
    FIELD(Doubles, slots, "[n] lines under way");
    FIELD(Integers, place, "[m] of memory, as of a stage");
    FIELD(Doubles, read, "[m] lines per entry");
    END_OF_FIELDS;

    bool operator==(const LoopSetup&) const = default;
};

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
    FIELD(std::vector<LoopSetup>, loops, "one after the other, with all of its reads; none: one");
    FIELD(double, task_ps, "of a task, beyond that of all stages' tasks");
    FIELD(Integers, locks, "[k] limits of the machine that its entries hold");
    FIELD(Doubles, held_ps, "[k] per entry, of separate_ps");
    FIELD(Doubles, interrupt_ps, "[k] more for each other processor, which loses as much");
    FIELD(double, chunk_entries, "that a copy engine copies at a time; 0: none does");
    FIELD(Doubles, warm_lines, "[n] in the core's own cache");
    FIELD(Doubles, warm_ps, "[n] to read them from the last-level cache");
    END_OF_FIELDS;

    // Of an entry, those that are read where its part is.
    double part_lines() const {
        double lines = 0;
        for (std::size_t k = 0; k < place.size(); ++k)
            if (place[k] == 0) lines += read[k];
        return lines;
    }
    bool operator==(const StageSetup&) const = default;
};

// A copy engine: a core of the machine.
struct EngineSetup {
    FIELDS_OF(EngineSetup);
    FIELD(std::int64_t, core, "of the machine");
    FIELD(std::int64_t, contexts, "copies at a time", 1);
    FIELD(double, setup_ps, "of a thread, before its first request");
    FIELD(double, request_ps, "of a thread, for each");
    FIELD(double, line_ps, "of a line");
    FIELD(double, free_line_ps, "likewise, not coherent; 0: it makes no such copies");
    FIELD(double, slots, "lines that it asks for at a time");
    END_OF_FIELDS;

    bool operator==(const EngineSetup&) const = default;
};

// What goes on without end besides queries.
struct BackgroundSetup {
    using Doubles = std::vector<double>;
    FIELDS_OF(BackgroundSetup);
    FIELD(std::int64_t, core, "of the machine");
    FIELD(std::int64_t, engine, "whose context it holds; -1: none", -1);
    FIELD(double, instructions_ps, "of a line");
    FIELD(Doubles, read, "[n] lines read from each home");
    FIELD(Doubles, written, "[n] likewise written");
    FIELD(double, slots, "lines under way", 1.0);
    END_OF_FIELDS;

    std::vector<MemoryUse> memory() const {
        std::vector<MemoryUse> found;
        for (std::uint32_t k = 0; k < read.size(); ++k)
            if (read[k] > 0 || written[k] > 0) found.push_back({k, read[k], written[k], slots});
        return found;
    }
    bool operator==(const BackgroundSetup&) const = default;
};

struct TaskSetup {
    using Doubles = std::vector<double>;
    using Integers = std::vector<std::int64_t>;
    using Tables = std::vector<std::vector<std::int64_t>>;
    FIELDS_OF(TaskSetup);
    FIELD(ServiceMachine, machine, "the engines and what copies parts are cores of it");
    // Threads.
    FIELD(Integers, worker_core, "[W]");
    FIELD(Integers, worker_node, "[W] of whose pool each is");
    FIELD(OsSetup, os, "threads that are moved; without processors: they are pinned");
    FIELD(double, switch_ps, "of a thread that takes over a processor in the middle of a task");
    FIELD(bool, one_queue, "of the whole machine");
    FIELD(Integers, copy_core, "[n] of copying threads");
    FIELD(Doubles, copy_slots, "[n] lines under way of copying threads");
    FIELD(Integers, near, "[n, n] nodes by distance from each, itself first");
    FIELD(Doubles, spreads,
          "[S, n] of what lies on several nodes: by what to divide it for each one's; 0: nothing");
    // Work.
    FIELD(std::int64_t, classes, "of tasks");
    FIELD(std::vector<StageSetup>, stages, "of all queries");
    FIELD(Integers, query_first, "first stage of each query, and the end of the last one");
    FIELD(Doubles, cumulative, "shares of the mix, by query");
    FIELD(std::int64_t, last_of_mix, "the last query that is drawn; -1: none");
    FIELD(Tables, part_rows, "of each table's parts");
    FIELD(Tables, part_node, "likewise; -1 - s: on those of spread s in turn");
    FIELD(Integers, client_query, "of each closed client; -1: it draws from the mix");
    FIELD(std::int64_t, concurrency, "tasks of a stage; 0: as workers are free");
    FIELD(double, task_ps, "of taking and ending a task");
    FIELD(Time, look_ps, "for work, before a worker sleeps");
    FIELD(Time, wake_ps, "until a woken worker runs");
    FIELD(bool, queue_per_worker, "tasks of a node are dealt to its workers");
    FIELD(double, think_ps, "of closed clients, on average");
    FIELD(double, arrival_ps, "between queries of open clients, on average; 0: none");
    FIELD(std::vector<EngineSetup>, engines, "that copy for scans");
    FIELD(Integers, engine_of_node, "[n] the engine that threads of a node use; -1, empty: none");
    FIELD(std::vector<BackgroundSetup>, background, "besides queries");
    FIELD(Integers, paths,
          "[stages, n + 1] by stage and home, on all nodes first: path 0 (CPU), 1, 2 (copies)");
    END_OF_FIELDS;
};

}  // namespace numatwin
