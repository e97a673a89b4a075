// The whole model: events, copies of parts, what is counted: ../reference/model.py.
#include "systems/tasks/kernel/tasks.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

#include "systems/tasks/kernel/scan_plays.hpp"

namespace numatwin {
namespace {

constexpr double page_lines = 64.0;

// parameters.py has made the values; this is the last line of defence against a wrong index.
const TaskSetup& checked(const TaskSetup& setup) {
    const auto expect = [](bool fine, const char* what) {
        if (!fine) throw std::invalid_argument(std::string("task setup: wrong ") + what);
    };
    const auto below = [](const auto& values, std::int64_t least, std::size_t end) {
        return std::ranges::all_of(values, [&](std::int64_t v) {
            return v >= least && v < static_cast<std::int64_t>(end);
        });
    };
    const std::size_t n = setup.copy_core.size(), stages = setup.stages.size();
    expect(n > 0 && setup.near.size() == n * n && below(setup.near, 0, n), "near");
    expect(!setup.worker_node.empty() && below(setup.worker_node, 0, n), "worker_node");
    expect(setup.worker_core.size() == setup.worker_node.size() &&
               below(setup.worker_core, 0, setup.machine.core_node.size()),
           "worker_core");
    expect(setup.copy_core.size() == n &&
               below(setup.copy_core, 0, setup.machine.core_node.size()) &&
               setup.copy_slots.size() == n,
           "copy_core");
    expect(setup.os.core.empty() || (setup.os.begin.size() == setup.worker_node.size() &&
                                     below(setup.os.core, 0, setup.machine.core_node.size()) &&
                                     below(setup.os.node, 0, n)),
           "os");
    expect(!setup.spreads.empty() && setup.spreads.size() % n == 0 &&
               std::ranges::all_of(setup.spreads, [](double part) { return part >= 0; }),
           "spreads");
    expect(setup.query_first.size() >= 2 && below(setup.query_first, 0, stages + 1) &&
               std::ranges::is_sorted(setup.query_first) &&
               setup.query_first.back() == static_cast<std::int64_t>(stages),
           "query_first");
    const std::size_t queries = setup.query_first.size() - 1, tables = setup.part_rows.size();
    expect(setup.cumulative.size() == queries, "cumulative");
    expect(setup.part_node.size() == tables, "part_node");
    expect(below(setup.client_query, -1, queries), "client_query");
    expect(setup.last_of_mix >= -1 && setup.last_of_mix < static_cast<std::int64_t>(queries),
           "last_of_mix");
    expect(
        setup.last_of_mix >= 0 || (setup.arrival_ps == 0 && below(setup.client_query, 0, queries)),
        "last_of_mix");
    expect(setup.look_ps >= 0 && setup.wake_ps >= 0 && setup.concurrency >= 0, "scheduling");
    for (const StageSetup& stage : setup.stages) {
        expect(stage.task_class >= 0 && stage.task_class < setup.classes, "task_class");
        expect(below(std::array{stage.table, stage.counted}, -1, tables), "table");
        expect(stage.counted >= 0 || stage.parts_min <= 1, "parts_min");
        expect(below(stage.inputs, 0, stages) && below(stage.followers, 0, stages), "inputs");
        expect(stage.instructions_ps.size() == n && stage.separate_ps.size() == n &&
                   stage.slots.size() == n && stage.warm_lines.size() == n &&
                   stage.warm_ps.size() == n,
               "costs");
        expect(below(stage.locks, 0, static_cast<std::size_t>(setup.machine.limits)) &&
                   stage.held_ps.size() == stage.locks.size() &&
                   stage.interrupt_ps.size() == stage.locks.size(),
               "locks");
        expect(stage.read.size() == stage.place.size() &&
                   stage.written.size() == stage.place.size() && below(stage.place, 0, 3),
               "memory");
    }
    const std::size_t engines = setup.engines.size();
    expect(setup.paths.empty() || setup.paths.size() == stages * (n + 1), "paths");
    expect(below(setup.paths, 0, engines > 0 ? 3 : 1), "paths");
    expect(setup.machine.read_ps.size() >= n, "machine");
    expect(setup.engine_of_node.size() == (engines > 0 ? n : 0) &&
               below(setup.engine_of_node, -1, engines),
           "engine_of_node");
    const auto on_machine = [&](const auto& of) {
        return below(std::array{of.core}, 0, setup.machine.core_node.size());
    };
    for (const EngineSetup& engine : setup.engines)
        expect(on_machine(engine) && below(std::array{engine.contexts}, 1, 1u << 16), "engines");
    for (const BackgroundSetup& piece : setup.background)
        expect(on_machine(piece) && below(std::array{piece.engine}, -1, engines) &&
                   piece.read.size() == n && piece.written.size() == n,
               "background");
    return setup;
}

}  // namespace

TaskModel::TaskModel(const TaskSetup& setup, const StreamKeys& keys, std::uint64_t seed,
                     std::uint64_t replication, bool traced)
    : clock(seed, replication),
      setup_(checked(setup)),
      traced_(traced),
      n_(setup.copy_core.size()),
      service_(setup.machine),
      list_(setup.part_rows.size()),
      mix_(setup.cumulative),
      think_(Durations::exponential(setup.think_ps)),
      arrivals_(Durations::exponential(setup.arrival_ps)),
      client_stream_(streams_of(keys)),
      idle_top_(n_, none),
      queue_(n_ * static_cast<std::size_t>(setup.classes)),
      head_sequence_(queue_.size(), std::numeric_limits<std::uint64_t>::max()),
      waiting_at_(n_, 0),
      stealable_at_(n_, 0),
      victims_(setup.near),
      may_steal_(static_cast<std::size_t>(setup.classes), 0),
      turn_(may_steal_.size(), 0),
      dealt_(n_, 0),
      node_workers_(n_),
      stand_in_(n_, 0),
      kind_at_(setup.stages.size() * n_),
      os_(setup.os),
      ran_last_(setup.os.core.size(), none),
      left_at_(setup.os.core.size(), -1),
      class_(may_steal_.size()),
      latency_(setup.cumulative.size()),
      latency_total_(setup.cumulative.size(), 0),
      node_use_(n_),
      traffic_(n_ * n_, 0),
      looked_ps_(n_, 0) {
    for (std::size_t q = 0; q + 1 < setup.query_first.size(); ++q)
        stages_max_ = std::max(
            stages_max_, static_cast<std::size_t>(setup.query_first[q + 1] - setup.query_first[q]));
    for (std::size_t t = 0; t < setup.part_rows.size(); ++t)
        new_list(t, setup.part_rows[t], setup.part_node[t]);
    for (std::size_t w = 0; w < setup.worker_node.size(); ++w) {
        Worker worker;
        worker.node = static_cast<std::uint32_t>(setup.worker_node[w]);
        worker.core = static_cast<std::uint32_t>(setup.worker_core[w]);
        worker.here = static_cast<std::uint32_t>(setup.machine.core_node[worker.core]);
        worker_.push_back(worker);
    }
    processors_ = moved() ? setup.os.core.size() : worker_.size();
    find_stand_ins();
    if (moved())
        begin_threads();
    else
        for (std::uint32_t w = 0; w < worker_.size(); ++w) rest(w);
    start_engines();
    const std::size_t clients = setup.client_query.size();
    if (client_stream_.size() != 2 * clients + 2)
        throw std::invalid_argument("keys: expected two of each client, and two more");
    arrival_mix_ = client_stream_[2 * clients];
    arrival_stream_ = client_stream_[2 * clients + 1];
    for (std::uint32_t client = 0; client < clients; ++client) clock.schedule(0, asks, client);
    if (setup.arrival_ps > 0) clock.schedule(arrivals_.draw(arrival_stream_), arrives);
}

void TaskModel::handle(const Event& event) {
    switch (event.kind) {
        case changed:
            return change();
        case asks:
            ask(event.subject);
            break;
        case arrives:
            begin(drawn(arrival_mix_), none);
            clock.schedule(clock.now() + arrivals_.draw(arrival_stream_), arrives);
            break;
        case ticks:
            tick();
            break;
        case stops_looking:
            if (worker_[event.subject].turn == event.data && looks_moved(worker_[event.subject]))
                fall_asleep(event.subject);
            break;
        default:
            if (moved()) {
                const Worker& worker = worker_[event.subject];
                if (worker.waking && worker.turn == event.data && worker.cpu != none)
                    is_up(event.subject);
                break;
            }
            worker_[event.subject].waking = false;
            log(woken_row, event.subject);
            take(event.subject);
    }
    plan();
}

const char* TaskModel::event_name(std::uint32_t kind) {
    constexpr std::array names{"shares change",     "a client asks", "a query arrives",
                               "a worker is woken", "a tick",        "a worker stops looking"};
    return kind < names.size() ? names[kind] : "unknown";
}

// An event for the next change of the service, unless one comes before, which then plans again.
void TaskModel::plan() {
    settle();
    const Time at = service_.next_change();
    if (at >= planned_) return;
    planned_ = at;
    clock.schedule(at, changed);
}

void TaskModel::change() {
    if (clock.now() != planned_) return;  // another one came before
    planned_ = never;
    finish_due();
    plan();
}

// Ends all pieces whose time has come; whether there were any.
bool TaskModel::finish_due() {
    std::uint64_t job = 0;
    bool found = false;
    while (service_.finish(clock.now(), job)) {
        found = true;
        if (job < worker_.size()) {
            step_on(static_cast<std::uint32_t>(job));
            continue;
        }
        if (job >= engine_jobs) {
            copied(static_cast<std::uint32_t>(job - engine_jobs));
            continue;
        }
        const auto number = static_cast<std::int64_t>(job - worker_.size());
        log(arrived_row, number);
        arrived_.push_back(number);
        clock.halt();
    }
    return found;
}

void TaskModel::copy(std::int64_t number, std::int64_t source, std::int64_t target,
                     std::int64_t pages, double page_ps) {
    const auto n = static_cast<std::int64_t>(n_);
    if (source < -static_cast<std::int64_t>(spreads()) || source >= n || target < 0 || target >= n)
        throw std::invalid_argument("copy: expected nodes of the machine");
    if (number < 0 || pages <= 0 || !(page_ps >= 0))
        throw std::invalid_argument("copy: expected pages, and a time for each");
    std::vector<double> read(n_, 0), written(n_, 0);
    each_home(source, [&](std::size_t home, double part) { read[home] = page_lines / part; });
    written[static_cast<std::size_t>(target)] = page_lines;
    const auto node = static_cast<std::size_t>(source < 0 ? target : source);
    std::vector<MemoryUse> memory;
    for (std::uint32_t k = 0; k < n_; ++k)
        if (read[k] > 0 || written[k] > 0)
            memory.push_back({k, read[k], written[k], setup_.copy_slots[node]});
    log(copying_row, number, pages, source, target);
    service_.start(clock.now(), static_cast<std::size_t>(setup_.copy_core[node]),
                   service_.demand({page_ps, 0.0, memory}), static_cast<double>(pages),
                   worker_.size() + static_cast<std::uint64_t>(number));
    plan();
}

void TaskModel::set_mix(const std::vector<double>& cumulative) {
    if (cumulative.size() != mix_.size())
        throw std::invalid_argument("cumulative: expected a share for each query");
    mix_ = cumulative;
}

std::vector<std::int64_t> TaskModel::arrived() {
    std::vector<std::int64_t> found;
    found.swap(arrived_);
    return found;
}

// -- counted

std::vector<ThreadUse> TaskModel::up_to_now(std::vector<ThreadUse> use) const {
    for (ThreadUse& of : use) of.until(clock.now());
    return use;
}

std::vector<ThreadUse> TaskModel::part_use() const {
    std::vector<ThreadUse> found;
    for (const Part& part : part_) found.push_back(part.use);
    return up_to_now(std::move(found));
}

std::vector<std::uint32_t> TaskModel::parts(std::size_t table) const {
    if (table >= list_.size()) throw std::invalid_argument("table: expected one of the program");
    return list_[table].back().parts;
}

std::vector<std::int64_t> TaskModel::looked_ps() const {
    std::vector<std::int64_t> found = looked_ps_;
    for (const Worker& worker : worker_)
        if (moved() && looks_moved(worker)) found[worker.here] += clock.now() - worker.looks_since;
    if (moved()) return found;
    for (const Worker& worker : worker_)
        if (worker.idle)
            found[worker.node] += std::min(clock.now() - worker.idle_since, setup_.look_ps);
    return found;
}

std::vector<std::int64_t> TaskModel::idle() const {
    std::vector<std::int64_t> found(n_, 0);
    for (const Worker& worker : worker_) found[worker.node] += worker.in_use && worker.task == none;
    return found;
}

std::int64_t TaskModel::parts_waiting() const {
    std::int64_t found = 0;
    for (const Part& part : part_) found += static_cast<std::int64_t>(part.waiting.size());
    return found;
}

SharedService TaskModel::counted_service() const {
    SharedService counted = service_;
    counted.count(clock.now());
    return counted;
}

template bool Simulation::run(TaskModel&, Time, Interrupt*);

}  // namespace numatwin
