#include "systems/tasks/kernel/scan_plays.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "machine/kernel/copy_engine.hpp"

namespace numatwin {
namespace {

constexpr double for_ever = 1e12;
constexpr Time settling = 2 * LoadWindow::window * 10;
constexpr std::uint64_t thread_job = 0, copy_job = 1, first_background = 2;

}  // namespace

ScanPlays::ScanPlays(const TaskSetup& setup)
    : setup_(setup),
      n_(setup.copy_core.size()),
      node_(static_cast<std::size_t>(setup.worker_node.at(0))),
      core_(static_cast<std::size_t>(setup.worker_core.at(0))),
      engine_(setup.engine_of_node.empty() ? -1 : setup.engine_of_node.at(node_)),
      base_(setup.machine) {
    passing_ = base_.demand({0.0, 1.0, {}});
    for (const StageSetup& stage : setup_.stages)
        for (std::size_t home = 0; home < n_; ++home) {
            Demands& demands = demands_.emplace_back();
            const auto at_home = memory_of(stage, home), here = memory_of(stage, node_);
            demands.by_cpu = base_.demand(
                {stage.instructions_ps.at(node_), stage.separate_ps.at(node_), at_home});
            demands.work =
                base_.demand({stage.instructions_ps[node_], stage.separate_ps[node_], here});
            demands.copy[0] = demands.copy[1] = passing_;
            if (engine_ < 0) continue;
            const EngineSetup& engine = setup_.engines.at(static_cast<std::size_t>(engine_));
            const double lines = stage.part_lines();
            std::vector<MemoryUse> memory;
            for (std::uint32_t k = 0; k < n_; ++k)
                if (k == home || k == node_)
                    memory.push_back(
                        {k, k == home ? lines : 0.0, k == node_ ? lines : 0.0, engine.slots});
            demands.copy[0] = base_.demand({lines * engine.line_ps, 0.0, memory});
            demands.copy[1] = base_.demand({lines * engine.free_line_ps, 0.0, memory});
        }
    for (const BackgroundSetup& piece : setup_.background)
        background_.push_back(base_.demand({piece.instructions_ps, 0.0, piece.memory()}));
}

std::vector<MemoryUse> ScanPlays::memory_of(const StageSetup& stage, std::size_t part) const {
    std::vector<double> read(n_, 0.0), written(n_, 0.0);
    for (std::size_t k = 0; k < stage.place.size(); ++k) {
        if (stage.place[k] == 2) throw std::invalid_argument("stages: expected scans");
        const std::size_t home_node = stage.place[k] == 0 ? part : node_;
        read[home_node] += stage.read.at(k);
        written[home_node] += stage.written.at(k);
    }
    std::vector<MemoryUse> memory;
    for (std::uint32_t k = 0; k < n_; ++k)
        if (read[k] > 0 || written[k] > 0)
            memory.push_back({k, read[k], written[k], stage.slots.at(node_)});
    return memory;
}

std::uint32_t ScanPlays::state(const std::vector<std::int64_t>& pieces) {
    State made{base_, settling, {}};
    std::vector<std::int64_t> names;
    for (const std::int64_t piece : pieces) {
        const auto b = static_cast<std::size_t>(piece);
        if (piece < 0 || b >= background_.size())
            throw std::invalid_argument("pieces: expected positions in the background");
        names.push_back(made.service.start(0, static_cast<std::size_t>(setup_.background[b].core),
                                           background_[b], for_ever, first_background + b));
    }
    std::uint64_t job = 0;
    made.service.finish(settling, job);
    for (const std::int64_t name : names) made.rates.push_back(made.service.rate(name));
    state_.push_back(std::move(made));
    return static_cast<std::uint32_t>(state_.size() - 1);
}

std::vector<double> ScanPlays::rates(std::uint32_t state) const {
    return state_.at(state).rates;
}

// When that job ends; nothing else may end before.
Time ScanPlays::finish(SharedService& service, std::uint64_t job, Time now) const {
    std::uint64_t ended = 0;
    while (true) {
        now = service.next_change();
        if (now == never) throw std::logic_error("nothing ends any more");
        if (service.finish(now, ended)) break;
    }
    if (ended != job) throw std::logic_error("another piece has ended");
    return now;
}

Time ScanPlays::play(std::uint32_t state, std::size_t stage, std::size_t home, double entries,
                     std::int64_t path) const {
    if (stage >= setup_.stages.size() || home >= n_ || path < 0 || path > 2 ||
        (path > 0 && engine_ < 0) || !(entries >= 1))
        throw std::invalid_argument("play: expected a stage, a home, entries and a path");
    const State& from = state_.at(state);
    SharedService service = from.service;
    const Demands& demands = demands_[stage * n_ + home];
    Time now = from.now;
    if (path == 0) {
        service.start(now, core_, passing_, setup_.task_ps, thread_job);
        now = finish(service, thread_job, now);
        service.start(now, core_, demands.by_cpu, entries, thread_job);
        return finish(service, thread_job, now) - from.now;
    }
    const EngineSetup& engine = setup_.engines[static_cast<std::size_t>(engine_)];
    const double chunk = setup_.stages[stage].chunk_entries;
    const auto part = [&](std::uint64_t k) {
        return std::min(chunk, entries - chunk * static_cast<double>(k));
    };
    DoubleBuffer buffer(static_cast<std::uint64_t>(std::ceil(entries / chunk)));
    enum { setting_up, requesting, working, waiting } step = setting_up;
    service.start(now, core_, passing_, setup_.task_ps + engine.setup_ps, thread_job);
    while (true) {
        now = service.next_change();
        std::uint64_t ended = 0;
        if (!service.finish(now, ended)) continue;
        if (ended == copy_job) {
            buffer.end_copy();
            if (step != waiting) continue;
        } else if (step == requesting) {
            service.start(now, static_cast<std::size_t>(engine.core), demands.copy[path - 1],
                          part(buffer.copied()), copy_job);
        } else if (step == working) {
            buffer.end_work();
        }
        if (buffer.done()) return now - from.now;
        if (buffer.take_copy()) {
            step = requesting;
            service.start(now, core_, passing_, engine.request_ps, thread_job);
        } else if (buffer.take_work()) {
            step = working;
            service.start(now, core_, demands.work, part(buffer.worked()), thread_job);
        } else {
            step = waiting;
        }
    }
}

}  // namespace numatwin
