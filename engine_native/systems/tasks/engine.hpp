// Queries as tasks over parts: workers, clients that wait for their answers.
//
// A query starts the stages without inputs; a stage starts when all tasks of its inputs have ended.
// A part's rows are divided evenly over its tasks, whole words of a bitmap each. Who ends the last
// task of a stage starts what follows, under one lock; the last task of a query submits the
// client's next one.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "kernel/philox.hpp"
#include "memory/clock.hpp"
#include "systems/tasks/operators.hpp"
#include "systems/tasks/scheduler.hpp"

namespace numatwin::native::tasks {

struct QuerySpec {
    FIELDS_OF(QuerySpec);
    FIELD(std::vector<StageSpec>, stages, "each after its inputs");
    FIELD(std::uint32_t, clients, "that ask for nothing else");
    FIELD(double, share, "of the mix");
    END_OF_FIELDS;
};

struct EngineSpec {
    FIELDS_OF(EngineSpec);
    FIELD(std::vector<TableSpec>, tables, "by position");
    FIELD(std::vector<QuerySpec>, queries, "by position");
    FIELD(std::vector<std::uint32_t>, worker_node, "by worker, a position");
    FIELD(std::vector<int>, cpu, "by worker, where it begins");
    FIELD(std::vector<int>, worker_host_node, "by worker, of this host");
    FIELD(std::vector<std::uint32_t>, queue_of, "by node, where its tasks are queued");
    FIELD(std::vector<std::vector<std::uint32_t>>, distance, "between nodes, by rank");
    FIELD(std::uint32_t, classes, "of tasks", 1);
    FIELD(std::uint32_t, concurrency, "tasks of a stage; 0: as many as workers are free");
    FIELD(std::uint32_t, mix_clients, "that draw each query from the mix");
    FIELD(std::int64_t, look_ns, "how long workers poll before they sleep; negative: always", -1);
    FIELD(std::uint64_t, seed, "of the tables");
    END_OF_FIELDS;
};

/// How many were found; values by column; of groups rows, key and sums; of a join's pairs rows.
struct Answer {
    std::uint64_t entries = 0;
    std::vector<std::vector<std::uint64_t>> columns;
};

/// A query that is being answered. `client`: negative, for who asks from outside.
struct QueryRun {
    std::uint32_t query = 0;
    int client = -1;
    std::int64_t began_ns = 0;
    std::vector<StageRun> stages;
    std::vector<Work> work;  ///< by worker
};

class TaskEngine {
  public:
    /// Starts the workers, which draw the tables. Throws OutOfMemory, std::invalid_argument.
    explicit TaskEngine(EngineSpec spec);
    ~TaskEngine();
    TaskEngine(const TaskEngine&) = delete;
    TaskEngine& operator=(const TaskEngine&) = delete;

    /// All clients ask; `keys`: of the streams of the clients of the mix.
    void begin(const StreamKeys& keys);
    /// Clients ask no more; waits until all have their answers.
    void stop();
    void set_shares(std::vector<double> shares);
    void allow(std::vector<bool> classes) { scheduler_.allow(std::move(classes)); }
    /// One query from outside, while no client asks; raises what has gone wrong.
    Answer answer(std::uint32_t query);
    // Commands of a placer (placing.cpp). Queries that began before see tables as they were.
    /// In the background: the part's pages go to a node of this host.
    void move(std::int64_t number, std::size_t table, std::size_t part, int host_node);
    /// In the background: the table's rows in other parts, as many twice over, or in one.
    void remake(std::int64_t number, std::size_t table, std::vector<PartSpec> parts);
    /// Numbers of those that have ended since this was last asked.
    std::vector<std::int64_t> arrived();
    /// Queries that begin from now on use what was remade.
    void swap(std::size_t table);
    /// Tasks of the part wait until it is placed.
    void hold(std::size_t table, std::size_t part);
    /// Tasks of the part are queued for that node from now on.
    void place(std::size_t table, std::size_t part, std::uint32_t node);
    /// Of tasks that were not stolen, until now, ns and bytes: by node; by part of each table.
    std::vector<std::vector<LocalUse>> local_use() const;

    /// Rethrows what has gone wrong in a worker.
    void check() const;

    const EngineSpec& spec() const { return spec_; }
    std::shared_ptr<const TaskTable> table(std::size_t k) const {
        const std::scoped_lock lock(control_);
        return tables_[k];
    }
    const Scheduler& scheduler() const { return scheduler_; }
    std::size_t nodes() const { return spec_.queue_of.size(); }
    std::uint64_t made(std::size_t task_class) const { return made_[task_class].load(); }
    /// Bytes per second of a task, exponential average; below 0 before the first has ended.
    double class_Bps(std::size_t task_class) const { return class_Bps_[task_class].load(); }
    /// A worker's sums until now: of each class tasks done, of these stolen, and ns, of the one
    /// that runs, too; of each node tasks stolen from there, and bytes asked of its memory.
    std::vector<std::uint64_t> tally(std::size_t worker) const;
    /// Times of the answers to a query from one on, in ns.
    std::vector<std::int64_t> latencies(std::uint32_t query, std::size_t from) const;
    /// By query, answers and the sum of their times.
    std::vector<std::pair<std::uint64_t, std::uint64_t>> answered() const;
    /// The operating system's number of a worker's thread; 0 before it has begun.
    int thread(std::size_t worker) const { return tallies_.at(worker)->thread.load(); }
    /// How often the operating system has moved a worker's thread to another processor; below 0
    /// where it does not tell.
    std::int64_t migrations(std::size_t worker) const;
    std::uint64_t rows_scanned(std::size_t table, std::size_t part) const;

  private:
    struct Tally {
        std::mutex mutex;
        std::vector<std::uint64_t> words;
        std::optional<TaskRange> running;
        std::int64_t since_ns = 0;
        double Bps = 0;  // of them, as their class asks for on average
        LocalUse local{};
        std::atomic<int> thread{0};

        LocalUse use(std::int64_t ns) const {
            return {static_cast<double>(ns), static_cast<double>(ns) * 1e-9 * Bps};
        }
        LocalUse running_use() const { return use(steady_ns() - since_ns); }
    };
    using CopyJob = std::function<void(const std::stop_token&)>;

    void draw_tables();
    void work(std::size_t worker);
    void run(std::size_t worker, const TaskRange& range, Pace& pace);
    /// Ns that they took.
    std::int64_t count(std::size_t worker, const TaskRange& range, const Work& work);
    void average(const TaskRange& range, const Work& work, std::int64_t ns);
    void failed(std::exception_ptr failure);
    void begin_copy(std::int64_t number, CopyJob job);
    std::size_t tally_words() const { return 3 * spec_.classes + 2 * nodes(); }

    // Under control_.
    void submit(int client, std::uint32_t query, std::vector<TaskRange>& ready);
    void start_stages(QueryRun& run, std::vector<TaskRange>& ready);
    bool start(StageRun& stage, std::vector<TaskRange>& ready);
    void divide_parts(StageRun& stage, std::uint64_t hint);
    void divide_merge(StageRun& stage, std::uint64_t hint);
    void line_up(StageRun& stage, std::uint32_t part, std::vector<TaskRange>& ready);
    std::unique_ptr<JoinTable> table_for(std::uint64_t rows);
    void finish(QueryRun& run, std::vector<TaskRange>& ready);
    void verify(const QueryRun& run);
    void give_back(QueryRun& run);
    std::uint32_t drawn_query(int client);

    EngineSpec spec_;
    std::vector<std::shared_ptr<TaskTable>> tables_, remade_;  // the latter until swapped
    std::vector<std::shared_ptr<TaskTable>> retired_;          // that queries may still use
    Scheduler scheduler_;
    std::vector<std::unique_ptr<Buffers>> buffers_;
    std::vector<std::unique_ptr<Tally>> tallies_;
    std::unique_ptr<std::atomic<std::uint64_t>[]> made_;
    std::unique_ptr<std::atomic<double>[]> class_Bps_;
    std::atomic<std::uint32_t> running_{0};

    mutable std::mutex control_;
    std::condition_variable answered_;
    std::vector<std::unique_ptr<QueryRun>> runs_;
    std::unique_ptr<QueryRun> kept_;                       // of who asks from outside
    std::vector<std::unique_ptr<JoinTable>> join_tables_;  // that no query uses
    std::vector<std::vector<std::int64_t>> latencies_;
    std::vector<std::uint64_t> latency_sums_;
    std::vector<std::vector<std::uint64_t>> expected_;
    std::vector<std::uint32_t> turns_;  // by class
    std::vector<std::uint32_t> client_query_, queue_nodes_;
    std::vector<double> shares_;
    std::vector<Stream> streams_;
    bool asking_ = false;
    std::exception_ptr failure_;
    std::vector<std::int64_t> arrived_;
    std::map<std::int64_t, std::jthread> copying_;  // by number; told to stop at the end
    std::vector<std::jthread> workers_;
};

}  // namespace numatwin::native::tasks
