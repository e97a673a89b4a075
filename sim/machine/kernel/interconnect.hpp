// All links of a machine, and the routes that lines take over them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernel/huge_pages.hpp"
#include "machine/kernel/link.hpp"
#include "machine/kernel/routes.hpp"
#include "machine/kernel/sparse_rows.hpp"

namespace numatwin {

// What a line of memory costs on links, by the node that uses it: wire time of data and of control
// messages (requests, snoops), and bytes of both.
struct MemoryPaths {
    SparseRows data_ps, control_ps, bytes;
};

class Interconnect {
  public:
    Interconnect() = default;
    // Without routes.
    explicit Interconnect(std::size_t links) : wire_(links) {}
    // data_ps, request_ps [2L]: how long a line with its header, and a request for one, take each
    // directed link. The rest: see Routes.
    Interconnect(const Positions& data_ps, const Positions& request_ps, const Positions& entering,
                 const Positions& predecessor, std::size_t vertices)
        : wire_(data_ps.size()), routes_(entering, predecessor, vertices) {
        for (std::size_t k = 0; k < wire_.size(); ++k) {
            wire_[k].data_ps = data_ps[k];
            wire_[k].request_ps = request_ps[k];
        }
    }

    std::size_t links() const { return wire_.size(); }

    // Lines are sent from one node to another: each link on the way carries them as data; requests
    // for them take the way back, and nobody waits for these. Returns when the last line is across,
    // no earlier than `done`.
    Time send_lines(Time now, std::size_t from, std::size_t to, double lines, Time done) {
        return send(now, from, to, lines, lines, done);
    }
    // The same with so many `requests`, or messages of their size.
    Time send(Time now, std::size_t from, std::size_t to, double lines, double requests,
              Time done) {
        if (from == to || wire_.empty()) return done;
        walk(from, to, [&](Wire& wire) {
            const Time work = rounded_ps(lines * static_cast<double>(wire.data_ps));
            wire.lines += lines;
            done = std::max(done, wire.link.data(now, work));
        });
        walk(to, from, [&](Wire& wire) {
            const Time work = rounded_ps(requests * static_cast<double>(wire.request_ps));
            wire.requests += requests;
            wire.link.message(now, work);
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
