#include "systems/tasks/scheduler.hpp"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "memory/clock.hpp"

namespace numatwin::native::tasks {

constexpr unsigned spins = 2'000;           // between two looks at the clock, which let others run
constexpr std::uint64_t short_ns = 10'000;  // about what it takes to wake a worker

std::size_t Pace::tasks(const TaskRange& left) const {
    const std::size_t share = left.tasks.size() / workers_ / 2;
    return left.stage->spec == stage_ ? std::clamp<std::size_t>(share, 1, tasks_) : 1;
}

void Pace::took(const TaskRange& range, std::int64_t ns) {
    const std::size_t most = range.stage->spec == stage_ ? 2 * tasks_ : 2;
    const auto within =
        short_ns * range.tasks.size() / static_cast<std::size_t>(std::max<std::int64_t>(ns, 1));
    tasks_ = std::clamp<std::size_t>(within, 1, most);
    stage_ = range.stage->spec;
}

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

void Scheduler::put(const std::vector<TaskRange>& ranges) {
    const std::scoped_lock lock(mutex_);
    for (const TaskRange& range : ranges) queue(range);
    changes_.fetch_add(1);
}

void Scheduler::queue(const TaskRange& range) {
    if (!held_.empty()) {
        const auto held = held_.find(range.of_part());
        if (held != held_.end()) return held->second.push_back(range);
    }
    nodes_[range.queue].queue.push_back(range);
    nodes_[range.queue].tasks += range.tasks.size();
    wake_for(range);
}

void Scheduler::hold(const Part& part) {
    const std::scoped_lock lock(mutex_);
    std::vector<TaskRange>& held = held_[&part];
    for (Node& node : nodes_) {
        const auto others = std::ranges::stable_partition(
            node.queue, [&part](const TaskRange& range) { return range.of_part() != &part; });
        held.insert(held.end(), others.begin(), others.end());
        for (const TaskRange& range : others) node.tasks -= range.tasks.size();
        node.queue.erase(others.begin(), others.end());
    }
}

void Scheduler::release(const Part& part, int home, std::uint32_t queue_of) {
    const std::scoped_lock lock(mutex_);
    const auto held = held_.extract(&part);
    for (TaskRange range : held.empty() ? std::vector<TaskRange>() : held.mapped()) {
        range.home = home;
        range.queue = queue_of;
        queue(range);
    }
    changes_.fetch_add(1);
}

void Scheduler::release_all() {
    const std::scoped_lock lock(mutex_);
    for (const auto& [part, ranges] : std::exchange(held_, {}))
        for (const TaskRange& range : ranges) queue(range);
    changes_.fetch_add(1);
}

void Scheduler::wake_for(const TaskRange& range) {
    Node& own = nodes_[range.queue];
    if (own.tasks <= own.polling) return;
    const auto wake = [left = std::min(own.tasks - own.polling, range.tasks.size())](Node& node) {
        for (std::size_t k = 0; k < std::min(left, node.sleeping); ++k) node.woken.notify_one();
    };
    if (own.sleeping > 0) return wake(own);
    if (!open_[range.stage->spec->task_class]) return;
    for (const std::uint32_t other : own.victims) {
        if (nodes_[other].polling > 0) return;
        if (nodes_[other].sleeping > 0) return wake(nodes_[other]);
    }
}

std::optional<TaskRange> Scheduler::next(std::uint32_t node, const Pace& pace) {
    Node& own = nodes_[node];
    std::unique_lock lock(mutex_);
    for (std::int64_t since_ns = steady_ns();;) {
        if (auto found = take(node, pace)) return found;
        if (ended_) return {};
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

std::optional<TaskRange> Scheduler::take(std::uint32_t node, const Pace& pace) {
    Node& own = nodes_[node];
    if (!own.queue.empty()) return cut(own, own.queue.begin(), pace);
    for (auto at = own.victims.begin(); at != own.victims.end(); ++at) {
        Node& victim = nodes_[*at];
        const auto found = std::ranges::find_if(victim.queue, [this](const TaskRange& each) {
            return open_[each.stage->spec->task_class];
        });
        if (found == victim.queue.end()) continue;
        // Behind all that are as near.
        const auto end = std::find_if(at, own.victims.end(), [&](std::uint32_t each) {
            return distance_[node][each] > distance_[node][*at];
        });
        std::rotate(at, at + 1, end);
        return cut(victim, found, pace);
    }
    return {};
}

TaskRange Scheduler::cut(Node& from, std::deque<TaskRange>::iterator range, const Pace& pace) {
    const std::size_t count = pace.tasks(*range);
    TaskRange first = *range;
    first.tasks = range->tasks.first(count);
    range->tasks = range->tasks.subspan(count);
    from.tasks -= count;
    if (range->tasks.empty()) from.queue.erase(range);
    return first;
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
    for (const Node& node : nodes_) found.emplace_back(node.tasks, node.polling + node.sleeping);
    return found;
}

}  // namespace numatwin::native::tasks
