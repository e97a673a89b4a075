// Queues and workers: who runs which task, and where: ../reference/workers.py.
#include <algorithm>
#include <limits>

#include "systems/tasks/kernel/tasks.hpp"

namespace numatwin {
namespace {

constexpr double line_bytes = 64.0, average_weight = 0.125;
constexpr std::uint64_t no_sequence = std::numeric_limits<std::uint64_t>::max();

}  // namespace

// -- where tasks go

void TaskModel::queue_task(std::uint32_t task_index) {
    Task& task = task_[task_index];
    const auto node = static_cast<std::size_t>(task.node);
    const std::size_t task_class = class_of(task);
    std::uint32_t taker = none, owner = none;
    if (setup_.queue_per_worker) {
        const auto& own = node_workers_[node];
        task.owner = owner = own[dealt_[node]++ % own.size()];
        if (looks(owner)) taker = owner;
    }
    if (taker == none && within_node_) taker = looking(node);
    if (taker == none && may_steal_[task_class] && idle_workers_ > 0) {
        const std::int64_t* const near = setup_.near.data() + node * n_;
        for (std::size_t k = 1; k < n_ && taker == none; ++k)
            taker = looking(static_cast<std::size_t>(near[k]));
    }
    ++class_[task_class].waiting;
    if (taker != none) {
        leave_idle(taker);
        return start(taker, task_index);
    }
    enqueue(task_index);
    const std::uint32_t asleep = within_node_ ? sleeper(node) : owner;
    if (asleep != none && sleeps(asleep)) return wake(asleep);
    if (may_steal_[task_class] == 0 || idle_workers_ == 0) return;
    const std::int64_t* const near = setup_.near.data() + node * n_;
    for (std::size_t k = 1; k < n_; ++k) {
        const std::uint32_t thief = sleeper(static_cast<std::size_t>(near[k]));
        if (thief != none && sleeps(thief)) return wake(thief);
    }
}

void TaskModel::enqueue(std::uint32_t task_index) {
    Task& task = task_[task_index];
    const auto node = static_cast<std::size_t>(task.node);
    const std::size_t task_class = class_of(task), q = node * class_.size() + task_class;
    task.sequence = sequence_++;
    Ends& ends = queue_[q];
    task.queued = {none, ends.tail};
    if (ends.tail != none) {
        task_[ends.tail].queued.next = task_index;
    } else {
        ends.head = task_index;
        head_sequence_[q] = task.sequence;
    }
    ends.tail = task_index;
    ++waiting_at_[node];
    if (may_steal_[task_class]) {
        ++stealable_at_[node];
        ++stealable_;
    }
    if (task.owner == none) return;
    Ends& dealt = worker_[task.owner].dealt;
    task.dealt = {none, dealt.tail};
    (dealt.tail != none ? task_[dealt.tail].dealt.next : dealt.head) = task_index;
    dealt.tail = task_index;
}

void TaskModel::dequeue(std::uint32_t task_index) {
    const Task& task = task_[task_index];
    const auto node = static_cast<std::size_t>(task.node);
    const std::size_t task_class = class_of(task), q = node * class_.size() + task_class;
    Ends& ends = queue_[q];
    const auto [next, before] = task.queued;
    (before != none ? task_[before].queued.next : ends.head) = next;
    (next != none ? task_[next].queued.before : ends.tail) = before;
    if (before == none) head_sequence_[q] = next != none ? task_[next].sequence : no_sequence;
    --waiting_at_[node];
    if (may_steal_[task_class]) {
        --stealable_at_[node];
        --stealable_;
    }
    if (task.owner == none) return;
    Ends& dealt = worker_[task.owner].dealt;
    const auto [later, earlier] = task.dealt;
    (earlier != none ? task_[earlier].dealt.next : dealt.head) = later;
    (later != none ? task_[later].dealt.before : dealt.tail) = earlier;
}

// Waiting tasks leave their queues, in the order of nodes and as they came.
template <class Wanted>
std::vector<std::uint32_t> TaskModel::take_out(Wanted wanted) {
    std::vector<std::uint32_t> out;
    for (std::size_t q = 0; q < queue_.size(); ++q)
        for (std::uint32_t task_index = queue_[q].head; task_index != none;
             task_index = task_[task_index].queued.next)
            if (wanted(task_[task_index])) out.push_back(task_index);
    std::ranges::sort(out, {}, [this](std::uint32_t task_index) {
        return std::pair(task_[task_index].node, task_[task_index].sequence);
    });
    for (const std::uint32_t task_index : out) {
        dequeue(task_index);
        --class_[class_of(task_[task_index])].waiting;
    }
    return out;
}

void TaskModel::block(std::size_t table, std::size_t p) {
    Part& part = part_of(table, p);
    part.blocked = true;
    const std::uint32_t number = list_[table].back().parts[p];
    part.waiting = take_out([number](const Task& task) { return task.part == number; });
    for (const std::uint32_t task_index : part.waiting)
        ++class_[class_of(task_[task_index])].waiting;
}

// -- workers

bool TaskModel::looks(std::uint32_t w) const {
    if (moved()) return looks_moved(worker_[w]);
    return worker_[w].idle && clock.now() - worker_[w].idle_since < setup_.look_ps;
}

std::uint32_t TaskModel::looking(std::size_t node) const {
    std::uint32_t last = idle_top_[node];
    while (moved() && last != none && !looks_moved(worker_[last])) last = worker_[last].below;
    return last != none && looks(last) ? last : none;
}

void TaskModel::rest(std::uint32_t w) {
    Worker& worker = worker_[w];
    worker.idle = true;
    worker.idle_since = clock.now();
    worker.below = idle_top_[worker.node];
    worker.above = none;
    if (worker.below != none) worker_[worker.below].above = w;
    idle_top_[worker.node] = w;
    ++idle_workers_;
    if (moved()) rest_moved(w);
}

void TaskModel::leave_idle(std::uint32_t w) {
    Worker& worker = worker_[w];
    if (!moved())
        looked_ps_[worker.node] += std::min(clock.now() - worker.idle_since, setup_.look_ps);
    else if (looks_moved(worker))
        looked_ps_[worker.here] += clock.now() - worker.looks_since;
    worker.asleep = false;
    ++worker.turn;
    (worker.above != none ? worker_[worker.above].below : idle_top_[worker.node]) = worker.below;
    if (worker.below != none) worker_[worker.below].above = worker.above;
    worker.idle = false;
    --idle_workers_;
}

void TaskModel::wake(std::uint32_t w) {
    leave_idle(w);
    worker_[w].waking = true;
    if (moved()) return os_.wake(clock.now(), w, waker_);
    clock.schedule(clock.now() + setup_.wake_ps, woken, w);
}

void TaskModel::take(std::uint32_t w) {
    if (!worker_[w].in_use) return;
    const std::uint32_t task = found_by(w);
    if (task == none) return rest(w);
    dequeue(task);
    start(w, task);
}

std::uint32_t TaskModel::found_by(std::uint32_t w) const {
    const std::uint32_t own = oldest_own(w);
    return own != none ? own : oldest_stealable(w);
}

std::uint32_t TaskModel::oldest_own(std::uint32_t w) const {
    const Worker& worker = worker_[w];
    if (worker.dealt.head != none) return worker.dealt.head;
    if (waiting_at_[worker.node] == 0 || !within_node_) return none;
    const std::size_t first = worker.node * class_.size();
    const auto* const sequence = head_sequence_.data() + first;
    const auto* const oldest = std::min_element(sequence, sequence + class_.size());
    return queue_[first + static_cast<std::size_t>(oldest - sequence)].head;
}

std::uint32_t TaskModel::oldest_stealable(std::uint32_t w) const {
    if (stealable_ == 0) return none;
    const std::int64_t* const victims = victims_.data() + worker_[w].node * n_;
    for (std::size_t k = 1; k < n_; ++k) {
        const auto node = static_cast<std::size_t>(victims[k]);
        if (stealable_at_[node] == 0) continue;
        std::uint32_t found = none;
        std::uint64_t least = no_sequence;
        for (std::size_t c = 0; c < class_.size(); ++c) {
            const std::size_t q = node * class_.size() + c;
            if (may_steal_[c] == 0 || head_sequence_[q] >= least) continue;
            least = head_sequence_[q];
            found = queue_[q].head;
        }
        return found;
    }
    return none;
}

// Moves the victim behind the other nodes at the same distance.
void TaskModel::rotate_victims(std::size_t victim, std::size_t thief) {
    std::int64_t* const end = victims_.data() + (thief + 1) * n_;
    const double* const latency_ps = setup_.machine.latency_ps.data() + thief * n_;
    auto* victim_place = std::find(end - n_, end, static_cast<std::int64_t>(victim));
    while (victim_place + 1 != end &&
           latency_ps[static_cast<std::size_t>(victim_place[1])] == latency_ps[victim]) {
        std::swap(victim_place[0], victim_place[1]);
        ++victim_place;
    }
}

// Lines by home; `written` may be empty.
std::vector<MemoryUse> TaskModel::memory_of(const std::vector<std::int64_t>& place,
                                            const std::vector<double>& read,
                                            const std::vector<double>& written, double slots,
                                            std::int64_t home, std::uint32_t touched) {
    scratch_read_.assign(n_, 0);
    scratch_written_.assign(n_, 0);
    for (std::size_t k = 0; k < place.size(); ++k) {
        const std::int64_t lies = place[k] == 0   ? home
                                  : place[k] == 1 ? static_cast<std::int64_t>(touched)
                                                  : interleaved;
        each_home(lies, [&](std::size_t node_used, double part) {
            scratch_read_[node_used] += read[k] / part;
            if (!written.empty()) scratch_written_[node_used] += written[k] / part;
        });
    }
    std::vector<MemoryUse> memory;
    for (std::uint32_t k = 0; k < n_; ++k)
        if (scratch_read_[k] != 0 || scratch_written_[k] != 0)
            memory.push_back({k, scratch_read_[k], scratch_written_[k], slots});
    return memory;
}

std::uint32_t TaskModel::kind_of(std::uint32_t s, std::size_t node, std::int64_t home,
                                 std::uint32_t touched) {
    // A pinned thread is where it began its task.
    const std::size_t places = moved() ? n_ : 1;
    auto& row = kind_at_[s * n_ + node];
    if (row.empty()) row.assign((n_ + spreads()) * places, none);
    const auto at = static_cast<std::size_t>(home + static_cast<std::int64_t>(spreads()));
    std::uint32_t& found = row[at * places + (moved() ? touched : 0)];
    if (found != none) return found;
    const StageSetup& stage = setup_.stages[s];
    Kind kind;
    kind.memory =
        memory_of(stage.place, stage.read, stage.written, stage.slots[node], home, touched);
    for (const LoopSetup& loop : stage.loops)
        kind.loops.push_back(
            {loop.instructions_ps[node],
             memory_of(loop.place, loop.read, {}, loop.slots[node], home, touched)});
    found = static_cast<std::uint32_t>(kind_.size());
    kind_.push_back(std::move(kind));
    return found;
}

// Besides its own, of those that the process runs on.
double TaskModel::other_processors() const {
    return static_cast<double>(std::min(processors_, worker_.size())) - 1;
}

// The time of the task itself is spread over its entries. What an entry's interrupts take from all
// others, it takes itself: as much comes back from theirs.
std::uint32_t TaskModel::demand_of(const Task& task, std::size_t node) {
    Kind& kind = kind_[task.kind];
    if (kind.demand != none && kind.entries == task.entries) return kind.demand;
    kind.entries = task.entries;
    const auto [found, is_new] = kind.demands.try_emplace(task.entries, none);
    if (is_new) {
        const StageSetup& stage = setup_.stages[task.stage];
        const double task_ps = setup_.task_ps + stage.task_ps;
        double separate_ps = stage.separate_ps[node] + task_ps / task.entries;
        std::vector<Held> held;
        for (std::size_t k = 0; k < stage.locks.size(); ++k) {
            const double more_ps = other_processors() * stage.interrupt_ps[k];
            separate_ps += 2 * more_ps;
            held.push_back({stage.locks[k], stage.held_ps[k] + more_ps});
        }
        found->second = service_.demand(
            {stage.instructions_ps[node], separate_ps, kind.memory, kind.loops, held});
    }
    return kind.demand = found->second;
}

void TaskModel::start(std::uint32_t w, std::uint32_t task_index) {
    Worker& worker = worker_[w];
    Task& task = task_[task_index];
    ClassCounts& counts = class_[class_of(task)];
    const bool stolen = worker.node != static_cast<std::uint32_t>(task.node);
    --counts.waiting;
    ++counts.running;
    counts.stolen += stolen;
    if (stolen) rotate_victims(static_cast<std::size_t>(task.node), worker.node);
    --free_workers_;
    worker.task = task_index;
    worker.left = task.entries;
    worker.since = clock.now();
    worker.ran = 0;
    task.owner = none;
    task.touched = worker.here;
    task.bytes_per_ps = std::max(counts.bytes_per_ps, 0.0);
    count_use(worker, task, 1);
    log(began_row, task.number, w, task.node, stolen);
    if (by_engine(task, worker.here)) return begin_copied(w, task_index);
    go_on(w);
}

void TaskModel::count_use(const Worker& worker, const Task& task, std::int64_t threads) {
    const bool counts = setup_.one_queue || moved()
                            ? static_cast<std::int32_t>(worker.here) == task.home
                            : static_cast<std::int32_t>(worker.node) == task.node;
    if (!counts) return;
    const double each = static_cast<double>(threads) * task.bytes_per_ps;
    node_use_[worker.here].change(clock.now(), threads, each);
    if (task.part != none) part_[task.part].use.change(clock.now(), threads, each);
}

void TaskModel::ended(std::uint32_t w) {
    Worker& worker = worker_[w];
    if (worker.warms) {
        count_warmed(worker, worker.warm_units);
        worker.warms = false;
        return go_on(w);
    }
    waker_ = worker.cpu;
    worker.piece = -1;
    const std::uint32_t task_index = worker.task;
    const Task& task = task_[task_index];
    const StageSetup& stage = setup_.stages[task.stage];
    ClassCounts& counts = class_[class_of(task)];
    worker.task = none;
    --counts.running;
    ++counts.done;
    free_workers_ += worker.in_use;
    count_use(worker, task, -1);
    count_traffic(worker, task, worker.left);
    const auto took =
        static_cast<double>(std::max<Time>(clock.now() - worker.since + worker.ran, 1));
    const double moved = task.entries * stage.lines * line_bytes / took;
    if (counts.bytes_per_ps < 0)
        counts.bytes_per_ps = moved;
    else
        counts.bytes_per_ps += average_weight * (moved - counts.bytes_per_ps);
    log(ended_row, task.number, w, stage.task_class);
    follow(task_index, worker.here);
    free_tasks_.push_back(task_index);
    take(w);
    waker_ = none;
}

void TaskModel::count_traffic(const Worker& worker, const Task& task, double entries) {
    for (const MemoryUse& m : kind_[task.kind].memory)
        traffic_[worker.here * n_ + m.home] += (m.read + m.written) * entries * line_bytes;
}

// -- policies

void TaskModel::allow(const std::vector<bool>& classes, bool within_node) {
    if (classes.size() != class_.size())
        throw std::invalid_argument("classes: expected a truth value for each");
    std::ranges::copy(classes, may_steal_.begin());
    within_node_ = within_node || !setup_.queue_per_worker;
    stealable_ = 0;
    for (std::size_t node = 0; node < n_; ++node) {
        stealable_at_[node] = 0;
        for (std::size_t c = 0; c < class_.size(); ++c) {
            if (may_steal_[c] == 0) continue;
            std::uint32_t task_index = queue_[node * class_.size() + c].head;
            for (; task_index != none; task_index = task_[task_index].queued.next)
                ++stealable_at_[node];
        }
        stealable_ += stealable_at_[node];
    }
    for (std::size_t node = 0; node < n_; ++node)
        for (std::uint32_t w = looking(node); w != none; w = looking(node)) {
            const std::uint32_t task = found_by(w);
            if (task == none) break;
            leave_idle(w);
            dequeue(task);
            start(w, task);
        }
    plan();
}

void TaskModel::use(const std::vector<bool>& in_use) {
    processors_ = static_cast<std::size_t>(std::ranges::count(in_use, true));
    for (Kind& kind : kind_) {
        kind.demand = none;
        kind.demands.clear();
    }
    if (moved()) {
        finish_due_first();
        os_.use(clock.now(), in_use);
        return plan();
    }
    if (in_use.size() != worker_.size() || std::ranges::find(in_use, true) == in_use.end())
        throw std::invalid_argument("workers: expected a truth value for each, one true");
    std::vector<std::uint32_t> back;
    for (std::uint32_t w = 0; w < worker_.size(); ++w) {
        Worker& worker = worker_[w];
        if (worker.in_use && !in_use[w] && worker.idle) leave_idle(w);
        if (!worker.in_use && in_use[w] && worker.task == none && !worker.waking) back.push_back(w);
        worker.in_use = in_use[w];
    }
    find_stand_ins();
    const auto homeless = [this](const Task& task) {
        if (task.owner != none && !worker_[task.owner].in_use) return true;
        return stand_in_[static_cast<std::size_t>(task.node)] != task.node;
    };
    for (const std::uint32_t task_index : take_out(homeless)) {
        Task& task = task_[task_index];
        task.node = static_cast<std::int32_t>(stand_in_[static_cast<std::size_t>(task.node)]);
        task.owner = none;
        queue_task(task_index);
    }
    for (const std::uint32_t w : back) take(w);
    plan();
}

void TaskModel::find_stand_ins() {
    free_workers_ = 0;
    with_workers_.clear();
    for (auto& workers : node_workers_) workers.clear();
    for (std::uint32_t w = 0; w < worker_.size(); ++w) {
        if (!worker_[w].in_use) continue;
        node_workers_[worker_[w].node].push_back(w);
        free_workers_ += worker_[w].task == none;
    }
    for (std::size_t node = 0; node < n_; ++node)
        if (!node_workers_[node].empty()) with_workers_.push_back(static_cast<std::int64_t>(node));
    for (std::size_t node = 0; node < n_; ++node) {
        const std::int64_t* near = setup_.near.data() + node * n_;
        while (node_workers_[static_cast<std::size_t>(*near)].empty()) ++near;
        stand_in_[node] = *near;
    }
}

}  // namespace numatwin
