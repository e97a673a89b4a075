// Queries as tasks: list scheduling over the parts of a machine.
//
// The rules are written out in ../README.md and, as plain SimPy, in ../reference/; this model is
// the same as a state machine and gives the same trace, row for row. A task costs one event, at its
// end, and no allocation: tasks and queries come from pools, queues are lists through the tasks.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "kernel/durations.hpp"
#include "kernel/philox.hpp"
#include "kernel/simulation.hpp"
#include "kernel/statistics.hpp"
#include "machine/kernel/copy_engine.hpp"
#include "machine/kernel/os_scheduler.hpp"
#include "machine/kernel/shared_service.hpp"
#include "systems/tasks/kernel/setup.hpp"

namespace numatwin {

// ../history.py
using TaskRow = std::array<std::int64_t, 6>;

// Threads that work on something, and what they read and write, added up over time.
struct ThreadUse {
    std::int64_t threads = 0;
    double bytes_per_ps = 0;
    Time cpu_ps = 0;
    double bytes = 0;
    Time since = 0;

    void until(Time now) {
        cpu_ps += threads * (now - since);
        bytes += bytes_per_ps * static_cast<double>(now - since);
        since = now;
    }
    void change(Time now, std::int64_t by, double bytes_per_ps_more) {
        until(now);
        threads += by;
        bytes_per_ps = threads != 0 ? bytes_per_ps + bytes_per_ps_more : 0.0;
    }
};

struct ClassCounts {
    std::int64_t made = 0, done = 0, waiting = 0, running = 0, stolen = 0;
    double bytes_per_ps = -1;  // of a task, an exponential average; below 0 before the first ended
};

class TaskModel {
  public:
    Simulation clock;

    // `keys`: of each closed client the mix and thinking; of open ones the mix and arrivals.
    TaskModel(const TaskSetup& setup, const StreamKeys& keys, std::uint64_t seed,
              std::uint64_t replication, bool traced);

    void handle(const Event& event);
    static const char* event_name(std::uint32_t kind);

    // -- commands; where they do not fit they throw std::invalid_argument
    void copy(std::int64_t number, std::int64_t source, std::int64_t target, std::int64_t pages,
              double page_ps);
    void set_parts(std::size_t table, const std::vector<std::int64_t>& rows,
                   const std::vector<std::int64_t>& nodes);
    void block(std::size_t table, std::size_t part);
    void place(std::size_t table, std::size_t part, std::int64_t node);
    void allow(const std::vector<bool>& classes, bool within_node);
    // Of workers; where the operating system moves them, of processors.
    void use(const std::vector<bool>& workers);
    void set_mix(const std::vector<double>& cumulative);
    // The paths of scans that begin from now on: TaskSetup::paths.
    void set_paths(const std::vector<std::int64_t>& paths);
    // Copies that have arrived since this was last asked.
    std::vector<std::int64_t> arrived();

    // -- counted since the start
    const std::vector<ClassCounts>& classes() const { return class_; }
    const std::vector<Histogram>& latencies() const { return latency_; }
    const std::vector<Wide>& latency_totals() const { return latency_total_; }
    std::vector<ThreadUse> node_use() const { return up_to_now(node_use_); }
    std::vector<ThreadUse> part_use() const;
    std::vector<std::uint32_t> parts(std::size_t table) const;  // their numbers
    const std::vector<double>& traffic() const { return traffic_; }
    std::vector<std::int64_t> migrations() const {
        return {os_.migrations().begin(), os_.migrations().end()};
    }
    std::vector<std::int64_t> looked_ps() const;
    std::vector<std::int64_t> waiting() const { return waiting_at_; }
    std::vector<std::int64_t> idle() const;
    std::int64_t asked() const { return asked_; }
    std::int64_t parts_waiting() const;
    // The service with all that it has done up to now counted; itself, it counts at ends alone, so
    // that who looks changes nothing.
    SharedService counted_service() const;
    std::size_t nodes() const { return n_; }
    const TaskSetup& setup() const { return setup_; }
    const std::vector<TaskRow>& trace() const { return trace_; }

  private:
    static constexpr std::uint32_t none = ~std::uint32_t{0};
    static constexpr std::int64_t interleaved = -1, nothing = -1;
    enum EventKind : std::uint32_t { changed, asks, arrives, woken, ticks, stops_looking };
    enum RowKind : std::int64_t {
        asked_row,
        made_row,
        began_row,
        ended_row,
        answered_row,
        woken_row,
        copying_row,
        arrived_row,
        on_row
    };

    struct Link {
        std::uint32_t next, before;
    };
    struct Task {
        std::uint32_t query, stage, index;
        std::uint32_t part;  // none: of no part
        double fraction, entries, bytes_per_ps;
        std::int32_t home, node;
        std::uint32_t owner, kind;
        std::uint32_t touched;   // node of the thread that began it
        std::uint64_t sequence;  // in which it was queued
        std::int64_t number;
        Link queued, dealt;
    };
    struct Ends {
        std::uint32_t head = none, tail = none;
    };
    struct Worker {
        std::uint32_t node, core;  // of its pool; the core that it runs on
        std::uint32_t here;        // that core's node
        std::uint32_t task = none;
        bool idle = false, waking = false, in_use = true;
        Time idle_since = 0;
        std::uint32_t above = none, below = none;  // in the stack of idle ones
        Ends dealt;
        double left = 0;          // entries of its task, when it last went on
        Time since = 0, ran = 0;  // when it has run, and how long before
        // Where the operating system moves it:
        bool asleep = false, warms = false;
        std::uint32_t cpu = none, ran_on = none;
        std::uint64_t turn = 0;  // of its timers only the latest counts
        Time looks_since = 0;
        std::int64_t piece = -1;
        double warm_units = 0;
        std::vector<std::pair<std::uint32_t, double>> warmed;  // lines of a unit, by home
    };
    struct Part {
        std::int64_t rows, node;
        bool blocked = false;
        std::vector<std::uint32_t> waiting;
        ThreadUse use;
    };
    struct PartList {
        std::int64_t rows = 0;
        std::vector<std::uint32_t> parts;
        std::uint64_t version = 0;  // from which on queries see it
    };
    struct StageState {
        std::uint32_t inputs_left, tasks_left, made;
    };
    struct Query {
        std::int64_t number;
        std::uint32_t kind, client, stages_left;
        Time asked;
        std::uint64_t version;
    };
    // What a task of a stage uses, by node of its thread and home of its part.
    struct Kind {
        std::vector<MemoryUse> memory;
        std::vector<Loop> loops;
        double entries = 0;  // of the last task; its demand
        std::uint32_t demand = none;
        std::unordered_map<double, std::uint32_t> demands;  // by entries
    };

    // queries.cpp
    void begin(std::uint32_t query_kind, std::uint32_t client);
    void ask(std::uint32_t client);
    std::uint32_t drawn(Stream& stream);
    void answer(std::uint32_t query);
    void start_stage(std::uint32_t query, std::uint32_t stage);
    void expect(std::uint32_t query, std::uint32_t stage, std::uint32_t tasks);
    double entries_of(std::uint32_t query, std::uint32_t stage) const;
    std::int64_t node_of(std::uint32_t query, const StageSetup& stage, std::uint32_t index,
                         std::uint32_t part);
    void make(std::uint32_t query, std::uint32_t stage, std::uint32_t index, std::uint32_t part,
              double fraction, double entries, std::int64_t node);
    void follow(std::uint32_t task, std::uint32_t node);
    void stage_ended(std::uint32_t query, std::uint32_t stage);
    const PartList& list_of(std::uint32_t query, std::int64_t table) const;
    void new_list(std::size_t table, const std::vector<std::int64_t>& rows,
                  const std::vector<std::int64_t>& nodes);
    StageState& state(std::uint32_t query, std::uint32_t stage) {
        return state_[query * stages_max_ + stage - first_of(query)];
    }
    const StageState& state(std::uint32_t query, std::uint32_t stage) const {
        return state_[query * stages_max_ + stage - first_of(query)];
    }
    std::vector<std::int32_t>& ran(std::uint32_t query, std::uint32_t stage) {
        return ran_[query * stages_max_ + stage - first_of(query)];
    }
    std::size_t first_of(std::uint32_t query) const {
        return static_cast<std::size_t>(setup_.query_first[query_[query].kind]);
    }

    // workers.cpp
    void queue_task(std::uint32_t task);
    void enqueue(std::uint32_t task);
    void dequeue(std::uint32_t task);
    template <class Wanted>
    std::vector<std::uint32_t> take_out(Wanted wanted);
    bool looks(std::uint32_t worker) const;
    std::uint32_t looking(std::size_t node) const;
    void rest(std::uint32_t worker);
    void leave_idle(std::uint32_t worker);
    void wake(std::uint32_t worker);
    void take(std::uint32_t worker);
    std::uint32_t found_by(std::uint32_t worker) const;
    std::uint32_t oldest_own(std::uint32_t worker) const;
    std::uint32_t oldest_stealable(std::uint32_t worker) const;
    void start(std::uint32_t worker, std::uint32_t task);
    void rotate_victims(std::size_t victim, std::size_t thief);
    void count_use(const Worker& worker, const Task& task, std::int64_t threads);
    void ended(std::uint32_t worker);
    double other_processors() const;
    std::uint32_t demand_of(const Task& task, std::size_t node);
    std::size_t spreads() const { return setup_.spreads.size() / n_; }
    // use(node, by what to divide) for a home: a node, or -1 - a spread.
    template <class Use>
    void each_home(std::int64_t home, Use use) const {
        if (home >= 0) return use(static_cast<std::size_t>(home), 1.0);
        const double* row = setup_.spreads.data() + static_cast<std::size_t>(-1 - home) * n_;
        for (std::size_t k = 0; k < n_; ++k)
            if (row[k] > 0) use(k, row[k]);
    }
    std::vector<MemoryUse> memory_of(const std::vector<std::int64_t>& place,
                                     const std::vector<double>& read,
                                     const std::vector<double>& written, double slots,
                                     std::int64_t home, std::uint32_t touched);
    std::uint32_t kind_of(std::uint32_t stage, std::size_t node, std::int64_t home,
                          std::uint32_t touched);
    void find_stand_ins();
    void count_traffic(const Worker& worker, const Task& task, double entries);

    // moved_workers.cpp
    bool moved() const { return os_.cpus() > 0; }
    void begin_threads();
    void settle();
    void tick();
    void finish_due_first();
    void leaves(std::uint32_t worker);
    void comes(std::uint32_t worker, std::uint32_t cpu);
    void is_up(std::uint32_t worker);
    void fall_asleep(std::uint32_t worker);
    void rest_moved(std::uint32_t worker);
    bool looks_moved(const Worker& worker) const {
        return worker.idle && !worker.asleep && worker.cpu != none;
    }
    std::uint32_t sleeper(std::size_t node) const;
    bool sleeps(std::uint32_t worker) const {
        return moved() ? worker_[worker].asleep : worker_[worker].idle;
    }
    void go_on(std::uint32_t worker);
    bool warm_up(std::uint32_t worker, bool is_near);
    void count_warmed(const Worker& worker, double units);
    std::int64_t in_turn(std::size_t task_class) {
        return with_workers_[turn_[task_class]++ % with_workers_.size()];
    }

    // engine_scans.cpp: tasks whose data a copy engine copies ahead.
    enum class Step : std::uint8_t { by_cpu, setting_up, requesting, working, waiting };
    struct EngineScan {
        Step step = Step::by_cpu;
        DoubleBuffer buffer;
        std::uint32_t engine = 0, work = 0, copy = 0;  // demands of an entry
        double chunk = 0, entries = 0;
        std::int64_t home = 0;
        Time since = 0;  // it waits
    };
    // Above the jobs of workers and of copying threads.
    static constexpr std::uint64_t engine_jobs = std::uint64_t{1} << 48;
    void start_engines();
    bool by_engine(const Task& task, std::size_t node) const;
    void begin_copied(std::uint32_t worker, std::uint32_t task);
    void step_on(std::uint32_t worker);
    void next_step(std::uint32_t worker);
    void submit(std::uint32_t worker);
    void start_copy(std::uint32_t worker);
    void copied(std::uint32_t worker);
    std::uint32_t copy_demand(const EngineScan& scan, const StageSetup& stage, std::size_t node,
                              bool coherent);

    // tasks.cpp
    void plan();
    void change();
    bool finish_due();
    std::vector<ThreadUse> up_to_now(std::vector<ThreadUse> use) const;
    Part& part_of(std::size_t table, std::size_t part);
    std::size_t class_of(const Task& task) const {
        return static_cast<std::size_t>(setup_.stages[task.stage].task_class);
    }
    void log(std::int64_t what, std::int64_t a, std::int64_t b = 0, std::int64_t c = 0,
             std::int64_t d = 0) {
        if (traced_) trace_.push_back({clock.now(), what, a, b, c, d});
    }

    const TaskSetup setup_;
    const bool traced_;
    const std::size_t n_;
    SharedService service_;
    Time planned_ = never;

    // Work.
    std::vector<Task> task_;
    std::vector<std::uint32_t> free_tasks_;
    std::vector<Query> query_;
    std::vector<std::uint32_t> free_queries_;
    std::size_t stages_max_ = 0;
    std::vector<StageState> state_;               // by query and stage
    std::vector<std::vector<std::int32_t>> ran_;  // likewise, the nodes that tasks ran on
    std::vector<Part> part_;                      // all that ever were
    std::vector<std::vector<PartList>> list_;     // by table, in order of version
    std::uint64_t version_ = 0;
    std::int64_t asked_ = 0, tasks_made_ = 0;
    std::vector<double> mix_;
    Durations think_, arrivals_;
    std::vector<Stream> client_stream_;
    Stream arrival_mix_, arrival_stream_;

    // Threads.
    std::vector<Worker> worker_;
    std::vector<std::uint32_t> idle_top_;  // by node: the worker that became idle last
    std::size_t idle_workers_ = 0, free_workers_ = 0;
    std::size_t processors_ = 0;                // that threads may run on
    std::vector<Ends> queue_;                   // by node and class
    std::vector<std::uint64_t> head_sequence_;  // likewise, of the oldest; never: none
    std::vector<std::int64_t> waiting_at_;      // by node
    std::vector<std::int64_t> stealable_at_;    // by node
    std::int64_t stealable_ = 0;
    std::vector<std::int64_t> victims_;  // by node of the thief, in the order of their turns
    std::uint64_t sequence_ = 0;
    std::vector<std::uint8_t> may_steal_;  // by class
    bool within_node_ = true;              // may workers take what was dealt to others
    std::vector<std::uint64_t> turn_;      // by class
    std::vector<std::uint64_t> dealt_;     // by node
    std::vector<std::vector<std::uint32_t>> node_workers_;
    std::vector<std::int64_t> stand_in_, with_workers_;
    std::vector<std::vector<std::uint32_t>> kind_at_;  // by stage and node, then home; none: later
    std::vector<Kind> kind_;
    std::vector<double> scratch_read_, scratch_written_;
    std::vector<std::int64_t> copying_, arrived_;
    OsScheduler os_;
    std::vector<std::uint32_t> ran_last_;  // thread, by processor
    std::vector<Time> left_at_;            // by processor
    std::uint32_t waker_ = none;
    bool ticking_ = false;

    // Copy engines.
    std::vector<std::int64_t> path_;
    std::vector<EngineScan> engine_scan_;  // by worker
    std::vector<CopyEngine> engine_;
    std::uint32_t passing_ = none;  // a demand of a ps of a thread's time

    // Counted.
    std::vector<ClassCounts> class_;
    std::vector<Histogram> latency_;
    std::vector<Wide> latency_total_;
    std::vector<ThreadUse> node_use_;
    std::vector<double> traffic_;
    std::vector<std::int64_t> looked_ps_;
    std::vector<TaskRow> trace_;
};

extern template bool Simulation::run(TaskModel&, Time, Interrupt*);

}  // namespace numatwin
