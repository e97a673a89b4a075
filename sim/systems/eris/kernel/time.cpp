// ErisRouting: how long what a worker does takes: waits, other threads, disturbances.
#include <algorithm>

#include "kernel/interpolation.hpp"
#include "systems/eris/kernel/routing.hpp"

namespace numatwin {

Time ErisRouting::phase(std::size_t i, Step step, double core, double held, const FromMemory& from,
                        double apart) {
    const Time now = clock.now();
    Worker& w = worker_[i];
    Core& of = core_[w.core];
    // Threads of a core divide its slots among them.
    Time done = now + rounded_ps(apart + std::max(core, held * of.threads));
    w.held_up += w.over - w.alone;
    w.alone = done;
    if (of.threads > 1) done = std::max(done, of.server.serve(now, rounded_ps(apart + core)));
    const auto home = static_cast<std::size_t>(machine_.home[node(i)]);
    if (const auto [lines, written] = from; lines > 0) {
        counts.memory_lines[home] += lines;
        if (const double each = machine_.memory_line_ps[home]; each > 0) {
            const Time work =
                rounded_ps((lines - written) * each + written * machine_.memory_write_ps[home]);
            counts.memory_asked[home] += work;
            loads_[home].work += work;
            done = std::max(done, memory_[home].serve(now, work));
        }
        const std::size_t at = node(i);
        machine_.line_data_ps.each(at, [&](std::size_t link, double each, std::size_t) {
            done = std::max(done, wire_[link].link.data(now, rounded_ps(lines * each)));
        });
        machine_.line_control_ps.each(at, [&](std::size_t link, double each, std::size_t) {
            done = std::max(done, wire_[link].link.message(now, rounded_ps(lines * each)));
        });
        machine_.line_bytes.each(at, [&](std::size_t link, double each, std::size_t) {
            counts.link_bytes[link] += lines * each;
        });
    }
    done = machine_.disturbances.stretched(i, now, done);
    of.held += held;
    w.step[step] += done - now;
    w.over = done;
    return done;
}

// Of a line from home's memory, at the load of the last window.
double ErisRouting::memory_latency(std::size_t i) {
    const auto home = static_cast<std::size_t>(machine_.home[node(i)]);
    Load& load = loads_[home];
    const Time elapsed = clock.now() - load.start;
    if (elapsed >= window) {
        const double part =
            std::min(1.0, static_cast<double>(load.work) / static_cast<double>(elapsed));
        const double ratio = interpolated(part, machine_.load, machine_.load_ratio);
        load = {clock.now(), 0, (ratio - 1.0) * machine_.memory_idle_ps[home]};
    }
    return machine_.memory_idle_ps[node(i)] + load.wait_ps;
}

// Lines that go over the links from one node to another: the wire of each link on the way is taken
// for them; requests take the way back, go first, and wait for nobody. `done`: no earlier than when
// the last line has arrived.
void ErisRouting::send_lines(std::size_t from, std::size_t to, double lines, Time& done) {
    if (from == to || wire_.empty()) return;
    const auto walk = [&](std::size_t a, std::size_t b, bool data) {
        const Way* const from_a = way_.data() + a * static_cast<std::size_t>(machine_.vertices);
        for (std::size_t at = b; at != a;) {
            const Way way = from_a[at];
            Wire& wire = wire_[way.link];
            const Time each = data ? wire.data_ps : wire.request_ps;
            const Time work = rounded_ps(lines * static_cast<double>(each));
            (data ? wire.lines : wire.requests) += lines;
            if (data)
                done = std::max(done, wire.link.data(clock.now(), work));
            else
                wire.link.message(clock.now(), work);
            at = way.before;
        }
    };
    walk(from, to, true);
    walk(to, from, false);
}

void ErisRouting::note(Kind kind, std::uint32_t worker, std::uint32_t other, std::uint64_t amount) {
    if (tracing)
        trace.push_back({clock.now(), kind, worker, other, static_cast<std::uint32_t>(amount)});
}

}  // namespace numatwin
