// Workers that the operating system moves: ../reference/moved_workers.py.
#include "systems/tasks/kernel/tasks.hpp"

namespace numatwin {
namespace {

constexpr double line_bytes = 64.0;

}  // namespace

// -- what the operating system has changed

void TaskModel::begin_threads() {
    for (std::uint32_t w = 0; w < worker_.size(); ++w) {
        Worker& worker = worker_[w];
        if (setup_.look_ps > 0) {
            worker.waking = true;
            os_.wake(clock.now(), w);
            continue;
        }
        worker.idle = worker.asleep = true;
        worker.below = idle_top_[worker.node];
        if (worker.below != none) worker_[worker.below].above = w;
        idle_top_[worker.node] = w;
        ++idle_workers_;
    }
    settle();
}

// First threads leave their processors, then others come.
void TaskModel::settle() {
    if (!moved()) return;
    for (auto changed = os_.changed(); !changed.empty(); changed = os_.changed()) {
        for (const std::uint32_t w : changed)
            if (worker_[w].cpu != none && worker_[w].cpu != os_.on(w)) leaves(w);
        for (const std::uint32_t w : changed) {
            const std::uint32_t cpu = os_.on(w);
            if (cpu != none && worker_[w].cpu == none) comes(w, cpu);
        }
    }
    const Time at = os_.next_tick(clock.now());
    if (at == never || ticking_) return;
    ticking_ = true;
    clock.schedule(at, ticks);
}

void TaskModel::tick() {
    ticking_ = false;
    finish_due_first();
    os_.tick(clock.now());
}

// Tasks that end now end before their threads are moved.
void TaskModel::finish_due_first() {
    while (finish_due()) settle();
}

void TaskModel::leaves(std::uint32_t w) {
    Worker& worker = worker_[w];
    const Time now = clock.now();
    left_at_[worker.cpu] = now;
    worker.cpu = none;
    if (worker.task != none) {
        const double left = service_.cancel(now, worker.piece);
        worker.piece = -1;
        worker.ran += now - worker.since;
        const Task& task = task_[worker.task];
        count_use(worker, task, -1);
        if (worker.warms) return count_warmed(worker, worker.warm_units - left);
        count_traffic(worker, task, worker.left - left);
        worker.left = left;
    } else if (worker.idle && !worker.asleep) {
        looked_ps_[worker.here] += now - worker.looks_since;
    }
}

void TaskModel::comes(std::uint32_t w, std::uint32_t cpu) {
    Worker& worker = worker_[w];
    const Time now = clock.now();
    const bool was_idle = left_at_[cpu] != now, is_cold = ran_last_[cpu] != w;
    const bool is_near =
        worker.ran_on != none && setup_.os.cache[worker.ran_on] == setup_.os.cache[cpu];
    ran_last_[cpu] = w;
    worker.cpu = worker.ran_on = cpu;
    worker.core = static_cast<std::uint32_t>(setup_.os.core[cpu]);
    worker.here = static_cast<std::uint32_t>(setup_.os.node[cpu]);
    log(on_row, w, cpu);
    if (worker.task != none) {
        worker.since = now;
        count_use(worker, task_[worker.task], 1);
        worker.warms = false;
        if (!is_cold || !warm_up(w, is_near)) go_on(w);
    } else if (worker.waking) {
        if (!was_idle) return is_up(w);
        clock.schedule(now + setup_.wake_ps, woken, w, ++worker.turn);
    } else {
        worker.looks_since = now;
        if (now - worker.idle_since >= setup_.look_ps) return fall_asleep(w);
        const std::uint32_t task = found_by(w);
        if (task == none) return;
        leave_idle(w);
        dequeue(task);
        start(w, task);
    }
}

// -- waking and sleeping

void TaskModel::is_up(std::uint32_t w) {
    worker_[w].waking = false;
    log(woken_row, w);
    take(w);
}

std::uint32_t TaskModel::sleeper(std::size_t node) const {
    std::uint32_t last = idle_top_[node];
    while (moved() && last != none && !worker_[last].asleep) last = worker_[last].below;
    return last;
}

void TaskModel::rest_moved(std::uint32_t w) {
    Worker& worker = worker_[w];
    worker.looks_since = clock.now();
    ++worker.turn;
    if (setup_.look_ps == 0) return fall_asleep(w);
    if (setup_.look_ps < never)
        clock.schedule(clock.now() + setup_.look_ps, stops_looking, w, worker.turn);
}

void TaskModel::fall_asleep(std::uint32_t w) {
    Worker& worker = worker_[w];
    looked_ps_[worker.here] += clock.now() - worker.looks_since;
    worker.asleep = true;
    os_.sleep(clock.now(), w);
}

// -- tasks in pieces

void TaskModel::go_on(std::uint32_t w) {
    Worker& worker = worker_[w];
    Task& task = task_[worker.task];
    task.kind = kind_of(task.stage, worker.here, task.home, task.touched);
    worker.piece =
        service_.start(clock.now(), worker.core, demand_of(task, worker.here), worker.left, w);
}

// Another thread has used the processor: its core's own cache is cold. What the stage keeps there
// comes from the last-level cache, or from where its data lie. False where it costs nothing.
bool TaskModel::warm_up(std::uint32_t w, bool is_near) {
    Worker& worker = worker_[w];
    Task& task = task_[worker.task];
    const StageSetup& stage = setup_.stages[task.stage];
    const double lines = stage.warm_lines[worker.here];
    task.kind = kind_of(task.stage, worker.here, task.home, task.touched);
    double total = 0;
    for (const MemoryUse& m : kind_[task.kind].memory) total += m.read;
    const bool from_memory = lines > 0 && !is_near && total > 0;
    double separate_ps = setup_.switch_ps;
    if (lines > 0 && !from_memory) separate_ps += stage.warm_ps[worker.here];
    if (!from_memory && !(separate_ps > 0)) return false;
    worker.warmed.clear();
    worker.warm_units = 1;
    std::vector<MemoryUse> memory;
    if (from_memory) {
        worker.warm_units = lines;
        separate_ps = separate_ps / lines;
        for (const MemoryUse& m : kind_[task.kind].memory) {
            if (!(m.read > 0)) continue;
            worker.warmed.emplace_back(m.home, m.read / total);
            memory.push_back({m.home, m.read / total, 0.0, stage.slots[worker.here]});
        }
    }
    worker.warms = true;
    worker.piece =
        service_.start(clock.now(), worker.core, service_.demand({0.0, separate_ps, memory}),
                       worker.warm_units, w);
    return true;
}

void TaskModel::count_warmed(const Worker& worker, double units) {
    for (const auto& [home, lines] : worker.warmed)
        traffic_[worker.here * n_ + home] += lines * units * line_bytes;
}

}  // namespace numatwin
