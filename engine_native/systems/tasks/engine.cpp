#include "systems/tasks/engine.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <string>

#include "memory/clock.hpp"
#include "memory/host.hpp"

namespace numatwin::native::tasks {
namespace {

constexpr double average_weight = 1.0 / 8;

}  // namespace

TaskEngine::TaskEngine(EngineSpec spec)
    : spec_(std::move(spec)),
      remade_(spec_.tables.size()),
      scheduler_(spec_.distance, spec_.classes, spec_.look_ns),
      made_(std::make_unique<std::atomic<std::uint64_t>[]>(spec_.classes)),
      class_Bps_(std::make_unique<std::atomic<double>[]>(spec_.classes)),
      latencies_(spec_.queries.size()),
      latency_sums_(spec_.queries.size()),
      expected_(spec_.queries.size()),
      turns_(spec_.classes) {
    for (std::size_t k = 0; k < spec_.classes; ++k) class_Bps_[k].store(-1.0);
    for (std::size_t n = 0; n < nodes(); ++n) buffers_.push_back(std::make_unique<Buffers>());
    for (std::size_t w = 0; w < spec_.cpu.size(); ++w)
        tallies_.emplace_back(std::make_unique<Tally>())->words.resize(tally_words());
    for (const TableSpec& table : spec_.tables)
        tables_.push_back(std::make_shared<TaskTable>(table));
    for (std::uint32_t q = 0; q < spec_.queries.size(); ++q) {
        client_query_.insert(client_query_.end(), spec_.queries[q].clients, q);
        shares_.push_back(spec_.queries[q].share);
    }
    queue_nodes_ = spec_.worker_node;
    std::ranges::sort(queue_nodes_);
    queue_nodes_.erase(std::unique(queue_nodes_.begin(), queue_nodes_.end()), queue_nodes_.end());
    draw_tables();
    for (const QuerySpec& query : spec_.queries)
        for (const StageSpec& stage : query.stages)
            if (stage.kind == Kind::dictionaries)
                for (const std::uint32_t column : stage.columns)
                    tables_[static_cast<std::size_t>(stage.table)]->make_all_values(column);
    try {
        for (std::size_t w = 0; w < spec_.cpu.size(); ++w)
            workers_.emplace_back([this, w] { work(w); });
    } catch (...) {
        scheduler_.end();
        throw;
    }
}

TaskEngine::~TaskEngine() {
    {
        const std::scoped_lock lock(control_);
        asking_ = false;
    }
    scheduler_.end();
}

void TaskEngine::draw_tables() {
    std::vector<std::pair<std::size_t, std::size_t>> parts;
    for (std::size_t t = 0; t < tables_.size(); ++t)
        for (std::size_t p = 0; p < tables_[t]->parts(); ++p) parts.emplace_back(t, p);
    std::atomic<std::size_t> next{0};
    {
        std::vector<std::jthread> threads;
        for (std::size_t w = 0; w < std::min(spec_.cpu.size(), parts.size()); ++w) {
            threads.emplace_back([&] {
                try {
                    for (std::size_t k; (k = next.fetch_add(1)) < parts.size();)
                        tables_[parts[k].first]->make(parts[k].second, spec_.seed + parts[k].first);
                } catch (...) {
                    next.store(parts.size());
                    failed(std::current_exception());
                }
            });
        }
    }
    check();
}

void TaskEngine::begin(const StreamKeys& keys) {
    std::vector<TaskRange> ready;
    scheduler_.pause(false);
    {
        const std::scoped_lock lock(control_);
        streams_ = streams_of(keys);
        asking_ = true;
        const auto clients = static_cast<int>(client_query_.size() + spec_.mix_clients);
        for (int client = 0; client < clients; ++client) submit(client, drawn_query(client), ready);
    }
    scheduler_.put(ready);
}

void TaskEngine::stop() {
    std::unique_lock lock(control_);
    asking_ = false;
    scheduler_.release_all();
    answered_.wait(lock, [this] { return runs_.empty() || failure_; });
    scheduler_.pause(true);
}

void TaskEngine::set_shares(std::vector<double> shares) {
    const std::scoped_lock lock(control_);
    shares_ = std::move(shares);
}

/// The first clients have a query each, the others draw from the mix.
std::uint32_t TaskEngine::drawn_query(int client) {
    const auto at = static_cast<std::size_t>(client);
    if (at < client_query_.size()) return client_query_[at];
    const double total = std::accumulate(shares_.begin(), shares_.end(), 0.0);
    double drawn = streams_.at(at - client_query_.size()).uniform() * total;
    std::uint32_t last = 0;
    for (std::uint32_t q = 0; q < shares_.size(); ++q) {
        if (shares_[q] <= 0) continue;
        last = q;
        if ((drawn -= shares_[q]) < 0) break;
    }
    return last;
}

void TaskEngine::submit(int client, std::uint32_t query, std::vector<TaskRange>& ready) {
    const std::vector<StageSpec>& specs = spec_.queries[query].stages;
    auto& run = *runs_.emplace_back(std::make_unique<QueryRun>());
    run.query = query;
    run.client = client;
    for (const std::uint32_t node : spec_.worker_node) run.work.emplace_back(*buffers_[node], node);
    run.stages = std::vector<StageRun>(specs.size());
    for (std::size_t k = 0; k < specs.size(); ++k) {
        StageRun& stage = run.stages[k];
        stage.spec = &specs[k];
        stage.stages = &run.stages;
        stage.query = &run;
        if (specs[k].table >= 0) stage.table = tables_[static_cast<std::size_t>(specs[k].table)];
    }
    run.began_ns = steady_ns();
    start_stages(run, ready);
}

void TaskEngine::start_stages(QueryRun& run, std::vector<TaskRange>& ready) {
    // Inputs come earlier.
    for (StageRun& stage : run.stages) {
        const bool able = std::ranges::all_of(
            stage.spec->inputs, [&](std::uint32_t input) { return run.stages[input].done; });
        if (stage.began || !able) continue;
        stage.began = true;
        stage.done = !start(stage, ready);
    }
}

/// False where it is left out.
bool TaskEngine::start(StageRun& stage, std::vector<TaskRange>& ready) {
    const StageSpec& spec = *stage.spec;
    if (stage.table != nullptr && stage.table->parts() < spec.parts_min) return false;
    const std::uint32_t stated = spec.concurrency > 0 ? spec.concurrency : spec_.concurrency;
    const auto workers = static_cast<std::uint32_t>(spec_.cpu.size());
    const std::uint32_t running = std::min(running_.load(), workers);
    const std::uint32_t hint = stated > 0 ? stated : std::max(workers - running, 1U);
    if (spec.kind == Kind::merge) {
        divide_merge(stage, hint);
    } else {
        divide_parts(stage, hint);
    }
    if (spec.kind == Kind::build) stage.built = table_for(stage.rows_taken());
    stage.left.store(stage.tasks.size());
    made_[spec.task_class].fetch_add(stage.tasks.size());
    for (std::uint32_t p = 0; p < stage.by_part.size(); ++p) line_up(stage, p, ready);
    return true;
}

/// Room for so many tasks of each part.
static void divide(StageRun& stage, const std::vector<std::uint64_t>& each) {
    stage.tasks = std::vector<Task>(std::accumulate(each.begin(), each.end(), std::uint64_t{0}));
    stage.by_part = std::vector<PartTasks>(each.size());
    std::span<Task> left = stage.tasks;
    for (std::size_t p = 0; p < each.size(); ++p) {
        stage.by_part[p].tasks = left.first(each[p]);
        left = left.subspan(each[p]);
    }
}

void TaskEngine::divide_parts(StageRun& stage, std::uint64_t hint) {
    const StageSpec& spec = *stage.spec;
    const TaskTable& table = *stage.table;
    const double rows = static_cast<double>(std::max<std::uint64_t>(table.rows(), 1));
    std::vector<std::uint64_t> each;
    for (std::size_t p = 0; p < table.parts(); ++p) {
        const std::uint64_t own = table.part(p).rows();
        std::uint64_t most = spec.kind == Kind::dictionaries ? 1 : own / word_rows;
        if (spec.selection >= 0) {
            const StageRun& scans = (*stage.stages)[static_cast<std::size_t>(spec.selection)];
            most = std::min(most, scans.entries(p));
        }
        const auto wanted =
            static_cast<std::uint64_t>(static_cast<double>(hint * own) / rows * (1 + 1e-12));
        each.push_back(std::max<std::uint64_t>(std::min(wanted, most), 1));
    }
    divide(stage, each);
}

void TaskEngine::divide_merge(StageRun& stage, std::uint64_t hint) {
    std::uint64_t groups = 0;
    for (const Task& task : (*stage.stages)[stage.spec->inputs.front()].tasks)
        groups += task.groups->groups();
    divide(stage, {std::clamp<std::uint64_t>(hint, 1, std::max<std::uint64_t>(groups, 1))});
}

std::unique_ptr<JoinTable> TaskEngine::table_for(std::uint64_t rows) {
    const auto has_room = [rows](const auto& table) { return table->has_room(rows); };
    const auto at = std::ranges::find_if(join_tables_, has_room);
    std::unique_ptr<JoinTable> found;
    if (at == join_tables_.end()) {
        found = std::make_unique<JoinTable>(rows);
    } else {
        found = std::move(*at);
        join_tables_.erase(at);
    }
    found->begin(rows);
    return found;
}

/// Of a part in the queue of its home; of a merge each where an input ran; else in turn.
void TaskEngine::line_up(StageRun& stage, std::uint32_t part, std::vector<TaskRange>& ready) {
    const std::span<Task> tasks = stage.by_part[part].tasks;
    const int home = stage.table == nullptr ? -1 : stage.table->part(part).node();
    if (home >= 0)
        return ready.push_back({&stage, tasks, part, home, spec_.queue_of[std::size_t(home)]});
    std::uint32_t& turn = turns_[stage.spec->task_class];
    const auto queue = [&](std::size_t k) {
        if (stage.spec->kind != Kind::merge) return queue_nodes_[turn++ % queue_nodes_.size()];
        const std::vector<Task>& before = stage.at(stage.spec->inputs.front()).tasks;
        return before[k % before.size()].ran_on;
    };
    for (std::size_t k = 0; k < tasks.size(); ++k)
        ready.push_back({&stage, tasks.subspan(k, 1), part, home, queue(k)});
}

void TaskEngine::work(std::size_t worker) {
    try {
        pin_thread(spec_.cpu[worker]);
        move_stack(spec_.worker_host_node[worker]);
        tallies_[worker]->thread.store(::gettid());
        Pace pace(spec_.cpu.size());
        while (const auto range = scheduler_.next(spec_.worker_node[worker], pace))
            run(worker, *range, pace);
    } catch (...) {
        failed(std::current_exception());
    }
}

void TaskEngine::run(std::size_t worker, const TaskRange& range, Pace& pace) {
    StageRun& stage = *range.stage;
    running_.fetch_add(1);
    {
        Tally& tally = *tallies_[worker];
        const std::scoped_lock lock(tally.mutex);
        tally.running = range;
        tally.since_ns = steady_ns();
        tally.Bps = std::max(class_Bps_[stage.spec->task_class].load(), 0.0);
    }
    Work& work = stage.query->work[worker];
    work.part_bytes = work.own_bytes = work.shared_bytes = 0;
    run_tasks(range, work);
    pace.took(range, count(worker, range, work));
    running_.fetch_sub(1);
    // acq_rel: who ends the last task sees what all of them have made.
    const std::uint64_t ended = range.tasks.size();
    if (stage.left.fetch_sub(ended, std::memory_order_acq_rel) != ended) return;
    std::vector<TaskRange> ready;
    {
        const std::scoped_lock lock(control_);
        QueryRun& query = *stage.query;
        stage.done = true;
        start_stages(query, ready);
        if (std::ranges::all_of(query.stages, &StageRun::done)) finish(query, ready);
    }
    scheduler_.put(ready);
}

std::int64_t TaskEngine::count(std::size_t worker, const TaskRange& range, const Work& work) {
    const std::uint32_t task_class = range.stage->spec->task_class;
    Tally& tally = *tallies_[worker];
    const std::scoped_lock lock(tally.mutex);
    const std::int64_t ns = steady_ns() - tally.since_ns;
    tally.running.reset();
    if (range.queue == work.node) {
        add(tally.local, tally.use(ns));
        if (const Part* part = range.of_part()) add(part->use().local, tally.use(ns));
    }
    const std::uint64_t ended = range.tasks.size(), stolen = range.queue == work.node ? 0 : ended;
    tally.words[task_class] += ended;
    tally.words[spec_.classes + task_class] += stolen;
    tally.words[2 * spec_.classes + task_class] += static_cast<std::uint64_t>(ns);
    tally.words[3 * spec_.classes + range.queue] += stolen;
    std::uint64_t* const traffic = tally.words.data() + 3 * spec_.classes + nodes();
    traffic[work.node] += work.own_bytes;
    // What lies on all nodes is read from each alike.
    const std::uint64_t on_all = work.shared_bytes + (range.home < 0 ? work.part_bytes : 0);
    for (std::size_t n = 0; n < nodes(); ++n) traffic[n] += on_all / nodes();
    if (range.home >= 0) traffic[range.home] += work.part_bytes;
    average(range, work, ns);
    return ns;
}

/// As if each of them had been as fast as all together.
void TaskEngine::average(const TaskRange& range, const Work& work, std::int64_t ns) {
    const std::uint64_t bytes = work.part_bytes + work.own_bytes + work.shared_bytes;
    const double Bps =
        static_cast<double>(bytes) * 1e9 / static_cast<double>(std::max<std::int64_t>(ns, 1));
    const double kept = std::pow(1 - average_weight, range.tasks.size());
    // Of two tasks that end at once one may not count: it is an average.
    std::atomic<double>& found = class_Bps_[range.stage->spec->task_class];
    const double before = found.load();
    found.store(before < 0 ? Bps : Bps + kept * (before - Bps));
}

void TaskEngine::finish(QueryRun& run, std::vector<TaskRange>& ready) {
    const std::int64_t took_ns = steady_ns() - run.began_ns;
    verify(run);
    latencies_[run.query].push_back(took_ns);
    latency_sums_[run.query] += static_cast<std::uint64_t>(took_ns);
    const auto at =
        std::ranges::find_if(runs_, [&run](const auto& each) { return each.get() == &run; });
    std::unique_ptr<QueryRun> ended = std::move(*at);
    std::swap(*at, runs_.back());
    runs_.pop_back();
    if (const int client = ended->client; client < 0) {
        kept_ = std::move(ended);
    } else {
        give_back(*ended);
        if (asking_) submit(client, drawn_query(client), ready);
    }
    answered_.notify_all();
}

/// Each row was scanned once, and the answer is that of before.
void TaskEngine::verify(const QueryRun& run) {
    std::vector<std::uint64_t> found;
    for (const StageRun& stage : run.stages) {
        std::uint64_t rows = 0, entries = 0;
        for (std::size_t p = 0; p < stage.by_part.size(); ++p) {
            const PartTasks& part = stage.by_part[p];
            rows += part.rows.load();
            entries += part.entries.load();
            if (stage.spec->kind == Kind::scan)
                stage.table->part(p).use().scanned += part.rows.load();
        }
        if (stage.spec->kind == Kind::scan && rows != stage.table->rows())
            throw std::runtime_error("rows were scanned twice or not at all");
        // Dictionaries of other parts have other values.
        if (stage.spec->kind != Kind::dictionaries) found.push_back(entries);
    }
    std::vector<std::uint64_t>& expected = expected_[run.query];
    if (expected.empty()) expected = found;
    if (expected != found) throw std::runtime_error("a query had another answer than before");
}

void TaskEngine::give_back(QueryRun& run) {
    for (Work& work : run.work) work.give_back();
    for (StageRun& stage : run.stages)
        if (stage.built) join_tables_.push_back(std::move(stage.built));
}

/// Of the last stage of a query.
static Answer answer_of(const StageRun& last) {
    Answer found;
    const bool values = last.spec->kind == Kind::materialise,
               pairs = last.spec->kind == Kind::probe;
    found.columns.resize(values                           ? last.spec->columns.size()
                         : last.spec->kind == Kind::merge ? 2 + last.spec->sums.size()
                         : pairs                          ? 2
                                                          : 0);
    if (found.columns.empty()) {
        for (const PartTasks& part : last.by_part) found.entries += part.entries.load();
        return found;
    }
    for (const Task& task : last.tasks) {
        found.entries += task.entries;
        std::byte* at = task.made;
        for (std::size_t c = 0; values && c < found.columns.size(); ++c) {
            const std::uint32_t width =
                last.table_of(c).spec().columns[last.spec->columns[c]].value_bytes;
            const Dictionary made(at, task.entries, width);
            for (std::uint64_t k = 0; k < task.entries; ++k) found.columns[c].push_back(made.at(k));
            at += task.entries * width;
        }
        for (std::uint64_t k = 0; pairs && k < task.entries; ++k) {
            const auto* const of_pair = task.as<std::uint32_t>() + k;
            found.columns[0].push_back(last.table->first(task.part) + of_pair[0]);
            found.columns[1].push_back(of_pair[task.room]);
        }
        if (!task.groups) continue;
        task.groups->for_each([&](const std::uint64_t* words) {
            for (std::size_t c = 0; c < found.columns.size(); ++c)
                found.columns[c].push_back(words[c]);
        });
    }
    return found;
}

Answer TaskEngine::answer(std::uint32_t query) {
    std::vector<TaskRange> ready;
    scheduler_.pause(false);
    {
        const std::scoped_lock lock(control_);
        kept_.reset();
        submit(-1, query, ready);
    }
    scheduler_.put(ready);
    std::unique_lock lock(control_);
    answered_.wait(lock, [this] { return kept_ || failure_; });
    scheduler_.pause(true);
    if (failure_) std::rethrow_exception(failure_);
    Answer found = answer_of(kept_->stages.back());
    give_back(*kept_);
    kept_.reset();
    return found;
}

void TaskEngine::failed(std::exception_ptr failure) {
    {
        const std::scoped_lock lock(control_);
        if (!failure_) failure_ = std::move(failure);
    }
    answered_.notify_all();
    scheduler_.end();
}

void TaskEngine::check() const {
    const std::scoped_lock lock(control_);
    if (failure_) std::rethrow_exception(failure_);
}

std::vector<std::int64_t> TaskEngine::latencies(std::uint32_t query, std::size_t from) const {
    const std::scoped_lock lock(control_);
    const auto& all = latencies_[query];
    return {all.begin() + static_cast<std::ptrdiff_t>(std::min(from, all.size())), all.end()};
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> TaskEngine::answered() const {
    const std::scoped_lock lock(control_);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> found;
    for (std::size_t q = 0; q < latencies_.size(); ++q)
        found.emplace_back(latencies_[q].size(), latency_sums_[q]);
    return found;
}

std::int64_t TaskEngine::migrations(std::size_t worker) const {
    std::ifstream stats("/proc/self/task/" + std::to_string(thread(worker)) + "/sched");
    for (std::string line; std::getline(stats, line);)
        if (line.starts_with("se.nr_migrations"))
            return std::stoll(line.substr(line.find(':') + 1));
    return -1;
}

std::uint64_t TaskEngine::rows_scanned(std::size_t table, std::size_t part) const {
    const std::scoped_lock lock(control_);
    return tables_[table]->part(part).use().scanned;
}

std::vector<std::uint64_t> TaskEngine::tally(std::size_t worker) const {
    Tally& tally = *tallies_[worker];
    const std::scoped_lock lock(tally.mutex);
    std::vector<std::uint64_t> found = tally.words;
    if (tally.running)
        found[2 * spec_.classes + tally.running->stage->spec->task_class] +=
            static_cast<std::uint64_t>(steady_ns() - tally.since_ns);
    return found;
}

}  // namespace numatwin::native::tasks
