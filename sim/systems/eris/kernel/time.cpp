// ErisRouting: how long what a worker does takes: waits, other threads, slow times, others' turns.
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
    if (const auto [waits, lines, written] = from; lines > 0) {
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
    done = at_pace(i, done, from.waits * of.threads);
    done = turns_.moved(i, turns_.there(i, now) + done - now);
    of.held += held;
    w.step[step] += done - now;
    w.over = done;
    return done;
}

// When work that would end at `done`, and waits for memory for so much of the time, does: through
// the paces of its core until then.
Time ErisRouting::at_pace(std::size_t i, Time done, double waits) {
    if (machine_.pace_lasts_ps <= 0) return done;
    Worker& w = worker_[i];
    Time now = clock.now(), left = done - now;
    if (left <= 0) return done;
    const double of_memory = std::min(waits / static_cast<double>(left), 1.0);
    for (;;) {
        while (w.pace_ends <= now) {
            Stream& stream = streams_[2 * workers() + i];
            const double share = stream.uniform();
            w.slowdown = interpolated(share, machine_.pace_share, machine_.pace_slowdown);
            w.memory_slowdown =
                interpolated(share, machine_.pace_share, machine_.pace_memory_slowdown);
            w.pace_ends +=
                std::max<Time>(rounded_ps(stream.exponential(machine_.pace_lasts_ps)), 1);
        }
        const double slowdown = w.slowdown + (w.memory_slowdown - w.slowdown) * of_memory;
        const Time takes = rounded_ps(static_cast<double>(left) * slowdown);
        if (takes <= w.pace_ends - now) return now + takes;
        left -= rounded_ps(static_cast<double>(w.pace_ends - now) / slowdown);
        left = std::max<Time>(left, 0);
        now = w.pace_ends;
    }
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
