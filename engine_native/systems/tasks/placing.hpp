// What it takes to place parts: pages that move and rows that are copied, on a thread of its own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "systems/tasks/tables.hpp"

namespace numatwin::native::tasks {

/// The rows of a table, in their order, in as many parts twice over, or in one. Each part's own
/// dictionaries keep the values that it has; those of a single part have all. What is half done at
/// `stop` is for nobody. Throws OutOfMemory.
std::shared_ptr<TaskTable> remade(const TaskTable& from, const std::vector<PartSpec>& parts,
                                  const std::stop_token& stop);

/// Does one job after the other. At its end the one under way is told to stop.
class Placing {
  public:
    using Job = std::function<void(const std::stop_token&)>;
    /// `failed`: takes what a job throws.
    explicit Placing(std::function<void(std::exception_ptr)> failed)
        : failed_(std::move(failed)),
          thread_([this](const std::stop_token& stop) { work(stop); }) {}
    void begin(std::int64_t number, Job job);
    /// Numbers of those that ended since this was last asked, in their order.
    std::vector<std::int64_t> ended();

  private:
    void work(const std::stop_token& stop);

    std::function<void(std::exception_ptr)> failed_;
    std::mutex mutex_;
    std::condition_variable_any more_;
    std::deque<std::pair<std::int64_t, Job>> jobs_;
    std::vector<std::int64_t> ended_;
    std::jthread thread_;
};

}  // namespace numatwin::native::tasks
