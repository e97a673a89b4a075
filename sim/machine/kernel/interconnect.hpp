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
