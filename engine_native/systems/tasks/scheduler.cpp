#include "systems/tasks/scheduler.hpp"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "memory/clock.hpp"

namespace numatwin::native::tasks {

constexpr unsigned spins = 2'000;  // between two looks at the clock, which let others run

Scheduler::Scheduler(std::vector<std::vector<std::uint32_t>> distance, std::size_t classes,
                     std::int64_t look_ns)
    : distance_(std::move(distance)), look_ns_(look_ns), nodes_(distance_.size()), open_(classes) {
    const auto n = static_cast<std::uint32_t>(nodes_.size());
    for (std::uint32_t node = 0; node < n; ++node) {
        for (std::uint32_t k = 1; k < n; ++k) nodes_[node].victims.push_back((node + k) % n);
        std::ranges::stable_sort(nodes_[node].victims, {},
                                 [&](std::uint32_t other) { return distance_[node][other]; });
    }
}

void Scheduler::put(const std::vector<Task*>& tasks) {
    const std::scoped_lock lock(mutex_);
    for (Task* task : tasks) queue(task);
    changes_.fetch_add(1);
}

void Scheduler::queue(Task* task) {
    if (!held_.empty()) {
        const auto held = held_.find(task->of_part());
        if (held != held_.end()) return held->second.push_back(task);
    }
    nodes_[task->queue].queue.push_back(task);
    wake_for(*task);
}

void Scheduler::hold(const Part& part) {
    const std::scoped_lock lock(mutex_);
    std::vector<Task*>& held = held_[&part];
    for (Node& node : nodes_) {
        const auto others = std::ranges::stable_partition(
            node.queue, [&part](const Task* task) { return task->of_part() != &part; });
        held.insert(held.end(), others.begin(), others.end());
        node.queue.erase(others.begin(), others.end());
    }
}

void Scheduler::release(const Part& part, int home, std::uint32_t queue_of) {
    const std::scoped_lock lock(mutex_);
    const auto held = held_.extract(&part);
    for (Task* task : held.empty() ? std::vector<Task*>() : held.mapped()) {
        task->home = home;
        task->queue = queue_of;
        queue(task);
    }
    changes_.fetch_add(1);
}

void Scheduler::release_all() {
    const std::scoped_lock lock(mutex_);
    for (const auto& [part, tasks] : std::exchange(held_, {}))
        for (Task* task : tasks) queue(task);
    changes_.fetch_add(1);
}

void Scheduler::wake_for(const Task& task) {
    Node& own = nodes_[task.queue];
    if (own.queue.size() <= own.polling) return;
    if (own.sleeping > 0) return own.woken.notify_one();
    if (!open_[task.stage->spec->task_class]) return;
    for (const std::uint32_t other : own.victims) {
        if (nodes_[other].polling > 0) return;
        if (nodes_[other].sleeping > 0) return nodes_[other].woken.notify_one();
    }
}

Task* Scheduler::next(std::uint32_t node) {
    Node& own = nodes_[node];
    std::unique_lock lock(mutex_);
    for (std::int64_t since_ns = steady_ns();;) {
        if (Task* task = take(node)) return task;
        if (ended_) return nullptr;
        if (paused_.load() || (look_ns_ >= 0 && steady_ns() - since_ns >= look_ns_)) {
            ++own.sleeping;
            own.woken.wait(lock);
            --own.sleeping;
            since_ns = steady_ns();
            continue;
        }
        ++own.polling;
        const std::uint64_t seen = changes_.load();
        lock.unlock();
        for (unsigned turn = 0; turn < spins && changes_.load() == seen; ++turn) {
        }
        if (changes_.load() == seen) sched_yield();
        lock.lock();
        --own.polling;
    }
}

Task* Scheduler::take(std::uint32_t node) {
    Node& own = nodes_[node];
    if (!own.queue.empty()) {
        Task* task = own.queue.front();
        own.queue.pop_front();
        return task;
    }
    for (auto at = own.victims.begin(); at != own.victims.end(); ++at) {
        std::deque<Task*>& queue = nodes_[*at].queue;
        const auto found = std::ranges::find_if(
            queue, [this](const Task* each) { return open_[each->stage->spec->task_class]; });
        if (found == queue.end()) continue;
        Task* task = *found;
        queue.erase(found);
        // Behind all that are as near.
        const auto end = std::find_if(at, own.victims.end(), [&](std::uint32_t each) {
            return distance_[node][each] > distance_[node][*at];
        });
        std::rotate(at, at + 1, end);
        return task;
    }
    return nullptr;
}

void Scheduler::changed() {
    changes_.fetch_add(1);
    for (Node& node : nodes_) node.woken.notify_all();
}

void Scheduler::allow(std::vector<bool> classes) {
    const std::scoped_lock lock(mutex_);
    open_ = std::move(classes);
    changed();
}

void Scheduler::pause(bool paused) {
    const std::scoped_lock lock(mutex_);
    paused_.store(paused);
    changed();
}

void Scheduler::end() {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
    changed();
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> Scheduler::waiting() const {
    const std::scoped_lock lock(mutex_);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> found;
    for (const Node& node : nodes_)
        found.emplace_back(node.queue.size(), node.polling + node.sleeping);
    return found;
}

}  // namespace numatwin::native::tasks
