// All links of a machine, and the routes that lines take over them.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernel/fifo_server.hpp"
#include "kernel/huge_pages.hpp"
#include "machine/kernel/routes.hpp"

namespace numatwin {

// A directed link between two nodes or hubs: a channel for data and one for control messages.

// Control messages (requests, snoops, answers without data) have a channel of their own and go
// first, line by line between data: they do not wait for data, and data get the part of the wire
// that control messages left free in the last window, at least `data_part_min` (as in
// sim/planes/rate_solver.py). Those of a whole batch are handed over at once, but do not block data
// in one piece.
class Link {
  public:
    static constexpr Time window = 100'000'000;  // 100 µs
    static constexpr double data_part_min = 0.05;

    // Data that take the wire so long arrive. Returns when they are across.
    Time data(Time now, Time work) {
        look(now);
        both_.serve(now, work);
        return data_free_ =
                   std::max(data_free_, now) + rounded_ps(static_cast<double>(work) * stretch_);
    }
    Time message(Time now, Time work) {
        look(now);
        window_work_ += work;
        both_.serve(now, work);
        return control_free_ = std::max(control_free_, now) + work;
    }

    // -- counted since start_counting()
    Time arrived() const { return both_.taken(); }  // work that arrived
    // How long the wire was busy by `now`. Both kinds share it, and it rests only when nothing of
    // either is left.
    Time done(Time now) const { return both_.done(now); }
    void start_counting(Time now) { both_.start_counting(now); }

  private:
    void look(Time now) {
        const Time elapsed = now - window_start_;
        if (elapsed < window) return;
        const double load = static_cast<double>(window_work_) / static_cast<double>(elapsed);
        stretch_ = 1.0 / std::max(1.0 - load, data_part_min);
        window_start_ = now;
        window_work_ = 0;
    }

    Backlog both_;
    Time data_free_ = 0, control_free_ = 0, window_start_ = 0, window_work_ = 0;
    double stretch_ = 1;
};

// Mean wait of a line for those before it on a link that carries one after the other, M/D/1
// (Pollaczek-Khinchine): s * load / (2 * (1 - load)), where a line takes s. load < 1.
inline double line_wait_ps(double line_ps, double load) {
    return line_ps * load / (2.0 * (1.0 - load));
}

// What a line of memory costs on links, by the node that uses it: wire time of data and of control
// messages (requests, snoops), and bytes of both.
struct MemoryPaths {
    SparseRows data_ps, control_ps, bytes;
};

// What goes from one node to another at a time: lines with their headers, and messages of the size
// of a request. What is behind comes after the rest, and nobody waits for it.
struct Crossing {
    double lines, messages, behind, messages_behind;
};

class Interconnect {
  public:
    Interconnect() = default;
    // Without routes.
    explicit Interconnect(std::size_t links) : wire_(links) {}
    // data_ps, request_ps [2L]: how long a line with its header, and a request for one, take each
    // directed link. The rest: see Routes.
    template <class Times>
    Interconnect(const Times& data_ps, const Times& request_ps, const Positions& entering,
                 const Positions& predecessor, std::size_t vertices)
        : wire_(data_ps.size()), routes_(entering, predecessor, vertices) {
        for (std::size_t k = 0; k < wire_.size(); ++k) {
            wire_[k].data_ps = rounded_ps(static_cast<double>(data_ps[k]));
            wire_[k].request_ps = rounded_ps(static_cast<double>(request_ps[k]));
        }
    }

    std::size_t links() const { return wire_.size(); }

    // Lines are sent from one node to another: each link on the way carries them as data; requests
    // for them take the way back, and nobody waits for these. Returns when the last line is across,
    // no earlier than `done`.
    Time send_lines(Time now, std::size_t from, std::size_t to, double lines, Time done) {
        if (from == to || wire_.empty()) return done;
        walk(from, to, [&](Wire& wire) { done = std::max(done, wire.carry(now, lines)); });
        walk(to, from, [&](Wire& wire) { wire.signal(now, lines); });
        return done;
    }

    // The same for all that goes one way at a time.
    Time cross(Time now, std::size_t from, std::size_t to, const Crossing& all, Time done) {
        if (from == to || wire_.empty()) return done;
        walk(from, to, [&](Wire& wire) {
            done = std::max(done, wire.carry(now, all.lines));
            wire.signal(now, all.messages);
            if (all.behind > 0) wire.carry(now, all.behind);
            if (all.messages_behind > 0) wire.signal(now, all.messages_behind);
        });
        return done;
    }

    // A core of `node` reads or writes lines of memory. Returns when all messages that they take
    // are across, no earlier than `done`.
    Time use_memory(Time now, const MemoryPaths& paths, std::size_t node, double lines, Time done) {
        paths.data_ps.each(node, [&](std::size_t link, double each, std::size_t) {
            done = std::max(done, wire_[link].link.data(now, rounded_ps(lines * each)));
        });
        paths.control_ps.each(node, [&](std::size_t link, double each, std::size_t) {
            done = std::max(done, wire_[link].link.message(now, rounded_ps(lines * each)));
        });
        paths.bytes.each(node, [&](std::size_t link, double each, std::size_t) {
            wire_[link].bytes += lines * each;
        });
        return done;
    }

    // -- for callers that fetch into the cache what they will need
    // Where a way is looked up, and where its links are: use(place) for each cache line.
    const void* last_hop(std::size_t from, std::size_t to) const {
        return routes_.last_hop(from, to);
    }
    template <class Use>
    void each_place(std::size_t from, std::size_t to, Use use) const {
        routes_.each_link(from, to, [&](std::size_t link) {
            const auto* const wire = reinterpret_cast<const char*>(wire_.data() + link);
            use(wire);
            use(wire + 64);
        });
    }

    // -- counted since start_counting()
    // Lines, and requests for lines, that went from node to node.
    double lines(std::size_t link) const { return wire_[link].lines; }
    double requests(std::size_t link) const { return wire_[link].requests; }
    // Of uses of memory.
    double bytes(std::size_t link) const { return wire_[link].bytes; }
    // How long what arrived takes the link, and how long it was busy.
    Time arrived(std::size_t link) const { return wire_[link].link.arrived(); }
    Time done(std::size_t link, Time now) const { return wire_[link].link.done(now); }
    void start_counting(Time now) {
        for (Wire& wire : wire_) {
            wire.link.start_counting(now);
            wire.lines = wire.requests = wire.bytes = 0;
        }
    }

  private:
    struct alignas(128) Wire {
        Link link;
        Time data_ps = 0, request_ps = 0;
        double lines = 0, requests = 0, bytes = 0;

        Time carry(Time now, double more) {
            lines += more;
            return link.data(now, rounded_ps(more * static_cast<double>(data_ps)));
        }
        void signal(Time now, double more) {
            requests += more;
            link.message(now, rounded_ps(more * static_cast<double>(request_ps)));
        }
    };
    static_assert(sizeof(Wire) == 128);

    // Each link on the way, the last one first.
    template <class Use>
    void walk(std::size_t from, std::size_t to, Use use) {
        routes_.each_link(from, to, [&](std::size_t link) { use(wire_[link]); });
    }

    LargeVector<Wire> wire_;
    Routes routes_;
};

}  // namespace numatwin
