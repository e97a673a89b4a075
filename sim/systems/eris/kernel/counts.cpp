// ErisRouting: counters, and the check that no command is lost.
#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>

#include "systems/eris/kernel/routing.hpp"

namespace numatwin {

void ErisRouting::start_counting() {
    const std::size_t count = workers();
    ErisParts::start_counting();
    counts = ErisCounts{};
    counts.executed.assign(operations_ * count, 0);
    counts.done.assign(operations_, 0);
    counts.progress.assign(operations_, 0);
    for (std::size_t i = 0; i < count; ++i) {
        Worker& w = worker_[i];
        w.time.start_counting(since_);
        core_[w.core].withdraw(-w.time.held_left(since_));
        w.asleep = 0;
        if (rests(w)) w.asleep_since = since_;
        std::fill(std::begin(w.step), std::end(w.step), 0);
    }
}

Time ErisRouting::busy(std::size_t worker) const {
    const Worker& w = worker_[worker];
    const Time asleep = w.asleep + (rests(w) ? clock.now() - w.asleep_since : 0);
    return clock.now() - since_ - asleep - held_up(worker);
}

Time ErisRouting::held_up(std::size_t worker) const {
    return worker_[worker].time.held_up(clock.now());
}

std::uint64_t ErisRouting::in_flight() const {
    std::uint64_t found = 0;
    found += count_.sum();
    for (const Worker& w : worker_)
        for (std::uint8_t k = 0; k < 2; ++k) {
            if (k == w.taken && w.received) continue;
            const ErisBatches& batches = w.incoming[k].batches;
            for (auto* at = batches.begin(); at != batches.end(); at = batches.after(at))
                found += at->count;
        }
    for (std::size_t k = 0; k < to_do_.size(); ++k)
        if (k % operations_ < keyed_) found += to_do_[k];
    return found;
}

void ErisRouting::check() const {
    const std::uint64_t under_way = in_flight();
    if (made_ != executed_ + under_way)
        throw std::logic_error("commands made: " + std::to_string(made_) +
                               ", executed: " + std::to_string(executed_) +
                               ", in flight: " + std::to_string(under_way));
    ErisParts::check();
}

// ErisRouting: durations of a worker's steps: waits, other threads, disturbances.

Time ErisRouting::phase(std::size_t i, Step step, const CoreWork& needs, const FromMemory& from) {
    const Time now = clock.now();
    Worker& w = worker_[i];
    const CoreWork work = pace_.empty() ? needs : needs.times(pace_[i]);
    Core& core = core_[w.core];
    auto [alone, done] = core.begin(now, work);
    w.time.begin(now, alone, work.held);
    if (const auto [lines, written] = from; lines > 0) {
        const auto home = static_cast<std::size_t>(machine_.home[node(i)]);
        done = std::max(done, memory_[home].serve(now, lines, written));
        // What goes back to the node's own memory asks nobody.
        const double asked = home == node(i) ? lines - written : lines;
        done = links_.use_memory(now, paths_, node(i), asked, done);
    }
    done = machine_.disturbances.stretched(i, now, done);
    w.step[step] += done - now;
    w.time.end(done);
    return done;
}

// Of a line from home's memory, at the load of the last window.
double ErisRouting::memory_latency(std::size_t i) {
    const auto home = static_cast<std::size_t>(machine_.home[node(i)]);
    return machine_.memory_idle_ps[node(i)] + memory_[home].wait_ps(clock.now(), curve_);
}

void ErisRouting::note(Kind kind, std::uint32_t worker, std::uint32_t other, std::uint64_t amount) {
    if (tracing)
        trace.push_back({clock.now(), kind, worker, other, static_cast<std::uint32_t>(amount)});
}

}  // namespace numatwin
