// ErisRouting: durations of a worker's steps: waits, other threads, disturbances.
#include <algorithm>

#include "systems/eris/kernel/routing.hpp"

namespace numatwin {

Time ErisRouting::phase(std::size_t i, Step step, const CoreWork& work, const FromMemory& from) {
    const Time now = clock.now();
    Worker& w = worker_[i];
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
