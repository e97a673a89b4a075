// Queues of tasks, one a node, and how workers wait for them.
//
// A worker takes the oldest task of its node; else, of the nearest node that has any of a class
// that may be stolen, the oldest one; among equally distant nodes, the one from which its node
// stole least recently comes first. Else it polls, and after `look` it sleeps. Who puts a task
// where more wait than workers poll wakes one: of its node, else of the nearest that may steal it.
// Tasks of a part are queued as a range. Of short ones a worker takes or steals several at once, by
// what those of the stage before took it: as many as last ten microseconds, but at most half of its
// share in what is left of the range, so that all have something to do until the end.
// All queues are under one lock, held for a few stores; workers that poll look at a counter alone.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "systems/tasks/operators.hpp"

namespace numatwin::native::tasks {

/// How many tasks of a stage a worker takes at once; one, of another stage than before.
class Pace {
  public:
    explicit Pace(std::size_t workers) : workers_(workers) {}
    std::size_t tasks(const TaskRange& left) const;
    void took(const TaskRange& range, std::int64_t ns);

  private:
    std::size_t workers_, tasks_ = 1;
    const StageSpec* stage_ = nullptr;
};

class Scheduler {
  public:
    /// `distance` [n][n]: by rank. `look_ns`: negative for ever.
    Scheduler(std::vector<std::vector<std::uint32_t>> distance, std::size_t classes,
              std::int64_t look_ns);
    void put(const std::vector<TaskRange>& ranges);
    /// The next tasks of a worker of that node; none at the end.
    std::optional<TaskRange> next(std::uint32_t node, const Pace& pace);
    /// Classes that may be stolen from now on.
    void allow(std::vector<bool> classes);
    /// Tasks of this part wait from now on, those in queues too, until it is released: then they
    /// are queued there, as those of a part on node `home`.
    void hold(const Part& part);
    void release(const Part& part, int home, std::uint32_t queue_of);
    /// Of all parts, to where they would have been queued.
    void release_all();
    /// Between runs workers sleep at once.
    void pause(bool paused);
    void end();
    /// By node: tasks that wait, workers that do.
    std::vector<std::pair<std::uint64_t, std::uint64_t>> waiting() const;

  private:
    struct Node {
        std::deque<TaskRange> queue;
        std::vector<std::uint32_t> victims;  // nearest first
        std::uint64_t tasks = 0, polling = 0, sleeping = 0;
        std::condition_variable woken;
    };

    // Under the lock.
    std::optional<TaskRange> take(std::uint32_t node, const Pace& pace);
    TaskRange cut(Node& from, std::deque<TaskRange>::iterator range, const Pace& pace);
    void queue(const TaskRange& range);
    void wake_for(const TaskRange& range);
    void changed();

    std::vector<std::vector<std::uint32_t>> distance_;
    std::int64_t look_ns_;
    mutable std::mutex mutex_;
    std::deque<Node> nodes_;
    std::unordered_map<const Part*, std::vector<TaskRange>> held_;
    std::vector<bool> open_;
    bool ended_ = false;
    std::atomic<bool> paused_{true};
    std::atomic<std::uint64_t> changes_{0};  // grows with whatever workers may look for
};

}  // namespace numatwin::native::tasks
