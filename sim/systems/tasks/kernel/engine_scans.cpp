// Tasks whose data a copy engine copies ahead, chunk by chunk: ../reference/engine_scans.py.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "systems/tasks/kernel/tasks.hpp"

namespace numatwin {
namespace {

constexpr double line_bytes = 64.0, for_ever = 1e12;
constexpr std::uint64_t background_jobs = std::uint64_t{1} << 49;

}  // namespace

// What goes on in the background goes on from time 0 without end.
void TaskModel::start_engines() {
    path_ = setup_.paths;
    engine_scan_.resize(worker_.size());
    for (const EngineSetup& engine : setup_.engines)
        engine_.emplace_back(static_cast<std::size_t>(engine.contexts));
    passing_ = service_.demand({0.0, 1.0, {}});
    std::uint64_t job = background_jobs;
    for (const BackgroundSetup& piece : setup_.background) {
        if (piece.engine >= 0 && !engine_[static_cast<std::size_t>(piece.engine)].request(0))
            throw std::invalid_argument("task setup: wrong background");
        service_.start(0, static_cast<std::size_t>(piece.core),
                       service_.demand({piece.instructions_ps, 0.0, piece.memory()}), for_ever,
                       job++);
    }
    plan();
}

void TaskModel::set_paths(const std::vector<std::int64_t>& paths) {
    const auto known = [&](std::int64_t path) { return path >= 0 && path < 3; };
    if (paths.size() != setup_.stages.size() * (n_ + 1) || !std::ranges::all_of(paths, known) ||
        (engine_.empty() && std::ranges::any_of(paths, [](auto path) { return path != 0; })))
        throw std::invalid_argument("paths: expected one for each stage and home");
    path_ = paths;
}

bool TaskModel::by_engine(const Task& task, std::size_t node) const {
    if (path_.empty() || setup_.stages[task.stage].chunk_entries <= 0) return false;
    return path_[task.stage * (n_ + 1) + static_cast<std::size_t>(std::max(task.home, -1) + 1)] !=
               0 &&
           setup_.engine_of_node[node] >= 0;
}

void TaskModel::begin_copied(std::uint32_t w, std::uint32_t at) {
    Task& task = task_[at];
    const StageSetup& stage = setup_.stages[task.stage];
    const std::size_t node = worker_[w].here;
    EngineScan& scan = engine_scan_[w];
    scan.chunk = stage.chunk_entries;
    scan.entries = task.entries;
    scan.buffer = DoubleBuffer(static_cast<std::uint64_t>(std::ceil(task.entries / scan.chunk)));
    scan.engine = static_cast<std::uint32_t>(setup_.engine_of_node[node]);
    scan.home = task.home;
    // What it works on lies in its own node's memory.
    task.kind = kind_of(task.stage, node, static_cast<std::int64_t>(node), task.touched);
    scan.work = service_.demand(
        {stage.instructions_ps[node], stage.separate_ps[node], kind_[task.kind].memory});
    const auto path =
        path_[task.stage * (n_ + 1) + static_cast<std::size_t>(std::max(task.home, -1) + 1)];
    scan.copy = copy_demand(scan, stage, node, path == 1);
    scan.step = Step::setting_up;
    service_.start(clock.now(), worker_[w].core, passing_,
                   setup_.task_ps + setup_.engines[scan.engine].setup_ps, w);
}

// Of an entry: the lines of its part, to the thread's node.
std::uint32_t TaskModel::copy_demand(const EngineScan& scan, const StageSetup& stage,
                                     std::size_t node, bool coherent) {
    const double lines = stage.part_lines();
    std::vector<double> read(n_, 0.0);
    each_home(scan.home, [&](std::size_t home, double part) { read[home] = lines / part; });
    std::vector<MemoryUse> memory;
    for (std::uint32_t k = 0; k < n_; ++k)
        if (read[k] > 0 || k == node)
            memory.push_back(
                {k, read[k], k == node ? lines : 0.0, setup_.engines[scan.engine].slots});
    const EngineSetup& engine = setup_.engines[scan.engine];
    const double line_ps = coherent ? engine.line_ps : engine.free_line_ps;
    return service_.demand({lines * line_ps, 0.0, memory});
}

// The worker's piece has ended.
void TaskModel::step_on(std::uint32_t w) {
    EngineScan& scan = engine_scan_[w];
    if (scan.step == Step::by_cpu) return ended(w);
    if (scan.step == Step::requesting) submit(w);
    if (scan.step == Step::working) scan.buffer.end_work();
    next_step(w);
}

// It asks for the next copy as soon as a buffer is free, else works on what is there, else waits.
void TaskModel::next_step(std::uint32_t w) {
    EngineScan& scan = engine_scan_[w];
    const Worker& worker = worker_[w];
    if (scan.buffer.done()) {
        scan.step = Step::by_cpu;
        return ended(w);
    }
    if (scan.buffer.take_copy()) {
        scan.step = Step::requesting;
        service_.start(clock.now(), worker.core, passing_, setup_.engines[scan.engine].request_ps,
                       w);
    } else if (scan.buffer.take_work()) {
        scan.step = Step::working;
        const double before = scan.chunk * static_cast<double>(scan.buffer.worked());
        service_.start(clock.now(), worker.core, scan.work,
                       std::min(scan.chunk, scan.entries - before), w);
    } else {
        scan.step = Step::waiting;
        scan.since = clock.now();
    }
}

void TaskModel::submit(std::uint32_t w) {
    if (engine_[engine_scan_[w].engine].request(w)) start_copy(w);
}

void TaskModel::start_copy(std::uint32_t w) {
    EngineScan& scan = engine_scan_[w];
    const double before = scan.chunk * static_cast<double>(scan.buffer.copied());
    service_.start(clock.now(), static_cast<std::size_t>(setup_.engines[scan.engine].core),
                   scan.copy, std::min(scan.chunk, scan.entries - before), engine_jobs + w);
}

void TaskModel::copied(std::uint32_t w) {
    EngineScan& scan = engine_scan_[w];
    const StageSetup& stage = setup_.stages[task_[worker_[w].task].stage];
    const double before = scan.chunk * static_cast<double>(scan.buffer.copied());
    const double entries = std::min(scan.chunk, scan.entries - before);
    const std::size_t node = worker_[w].here;
    for (std::size_t k = 0; k < stage.place.size(); ++k) {
        if (stage.place[k] != 0) continue;
        const double bytes = stage.read[k] * entries * line_bytes;
        traffic_[node * n_ + node] += bytes;
        each_home(scan.home, [&](std::size_t home, double part) {
            traffic_[node * n_ + home] += bytes / part;
        });
    }
    std::uint64_t next = 0;
    if (engine_[scan.engine].end(next)) start_copy(static_cast<std::uint32_t>(next));
    scan.buffer.end_copy();
    if (scan.step != Step::waiting) return;
    looked_ps_[node] += clock.now() - scan.since;  // it polled
    next_step(w);
}

}  // namespace numatwin
