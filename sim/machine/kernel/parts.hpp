// All parts of one machine together, and what every event model has that is made of them.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernel/described.hpp"
#include "kernel/philox.hpp"
#include "kernel/simulation.hpp"
#include "kernel/statistics.hpp"
#include "kernel/trace.hpp"
#include "machine/disturbances/kernel/disturbances.hpp"
#include "machine/kernel/interconnect.hpp"
#include "machine/kernel/memory_controller.hpp"
#include "machine/kernel/os_thread.hpp"

namespace numatwin {

// ../parts.py makes it from the cost model. Times in ps; n nodes, 2L directed links, v vertices.
struct PartsSetup {
    FIELDS_OF(PartsSetup);
    FIELD(std::vector<std::uint32_t>, core_node, "[C] node of each core that threads may have");
    FIELD(std::vector<std::uint32_t>, core, "[A] core of each thread at the start");
    FIELD(Numbers, read_ps, "[n] a line read takes a controller so long; 0: it never limits");
    FIELD(Numbers, write_ps, "[n] the same of a line written");
    FIELD(Numbers, latency_ps, "[n, n] of a line of j's memory to a core of i, without load");
    FIELD(Numbers, handed_ps, "[n, n] of a line that a core of j hands over to one of i");
    FIELD(Numbers, load, "[K] of a controller, rising");
    FIELD(Numbers, load_ratio, "[K] latency at that load over latency without");
    FIELD(Positions, link_data_ps, "[2L] a line with its header takes a link so long");
    FIELD(Positions, link_request_ps, "[2L] the same of a request");
    FIELD(Positions, entering, "[n, v] last link on the way from a node to a vertex");
    FIELD(Positions, predecessor, "[n, v] vertex before it");
    FIELD(std::size_t, vertices, "v");
    FIELD(double, interrupted_every_ps, "a core, on average: see machine/disturbances");
    FIELD(Numbers, interruption_ps, "[I] how long each kind of interruption lasts");
    FIELD(Numbers, interruption_share, "[I] of this kind or one before it, up to 1");
    FIELD(StreamKeys, interruption_keys, "[C] of each core's stream; none: nobody interrupts");
    END_OF_FIELDS;
};

// Threads on cores, memory controllers and links. Coherence is left out: a read asks no third node.
class Parts {
  public:
    explicit Parts(const PartsSetup& setup)
        : threads(checked(setup).core_node, setup.core),
          links(setup.link_data_ps, setup.link_request_ps, setup.entering, setup.predecessor,
                setup.vertices),
          curve_{setup.load, setup.load_ratio},
          latency_ps_(setup.latency_ps),
          handed_ps_(setup.handed_ps) {
        const std::size_t n = setup.read_ps.size();
        for (std::size_t k = 0; k < n; ++k)
            memory.emplace_back(setup.read_ps[k], setup.write_ps[k], latency_ps_[k * n + k]);
        if (!setup.interruption_keys.empty())
            disturbances_ = Disturbances(
                {setup.interrupted_every_ps, setup.interruption_ps, setup.interruption_share},
                streams_of(setup.interruption_keys));
    }

    // A thread begins a phase: when it is over, interruptions of its core included.
    Time execute(Time now, std::size_t thread, const CoreWork& work) {
        const std::uint32_t core = threads.core_of(thread);
        const Time done = threads.begin(now, thread, work);
        return threads.extend(thread, disturbances_.stretched(core, now, done));
    }
    // A core of `node` reads lines of memory of `home`: when controller and links are done.
    Time read(Time now, std::size_t node, std::size_t home, double lines) {
        return links.send_lines(now, home, node, lines, memory[home].serve(now, lines, 0));
    }
    // The latency of such a line, at the controller's load of late.
    double latency_ps(Time now, std::size_t node, std::size_t home) {
        return latency_ps_[node * memory.size() + home] + memory[home].wait_ps(now, curve_);
    }
    // A core of `from` hands lines over to one of `to`: when they are there.
    Time hand_over(Time now, std::size_t from, std::size_t to, double lines) {
        const double idle_ps = handed_ps_[to * memory.size() + from];
        return links.send_lines(now, from, to, lines, now + rounded_ps(idle_ps));
    }
    void start_counting(Time now) {
        threads.start_counting(now);
        for (auto& controller : memory) controller.start_counting(now);
        links.start_counting(now);
    }

    OsThreads threads;
    std::vector<MemoryController> memory;  // [n]
    Interconnect links;

  private:
    static const PartsSetup& checked(const PartsSetup& setup) {
        const std::size_t n = setup.read_ps.size(), links = setup.link_data_ps.size();
        const auto require = [](bool good, const char* what) {
            if (!good) throw std::invalid_argument(what);
        };
        require(setup.write_ps.size() == n, "write_ps: expected [n]");
        require(setup.latency_ps.size() == n * n, "latency_ps: expected [n, n]");
        require(setup.handed_ps.size() == n * n, "handed_ps: expected [n, n]");
        require(setup.load.size() >= 2 && setup.load_ratio.size() == setup.load.size(),
                "load, load_ratio: expected as many, two at least");
        require(setup.link_request_ps.size() == links, "link_request_ps: expected [2L]");
        const std::size_t hops = links > 0 ? n * setup.vertices : 0;
        require(setup.entering.size() == hops, "entering: expected [n, v]");
        require(setup.predecessor.size() == hops, "predecessor: expected [n, v]");
        const std::size_t keys = setup.interruption_keys.size();
        require(keys == 0 || keys == setup.core_node.size(), "interruption_keys: expected [C]");
        for (const auto node : setup.core_node) require(node < n, "core_node: expected below n");
        return setup;
    }

    Disturbances disturbances_;
    LoadCurve curve_;
    Numbers latency_ps_, handed_ps_;  // [n, n]
};

// What is derived has handle(event) and event_name(kind), see kernel/simulation.hpp.
class PartsModel {
  public:
    PartsModel(const PartsSetup& setup, std::size_t operations, std::uint64_t seed,
               std::uint64_t replication)
        : clock(seed, replication), parts(setup), latency(operations) {}

    void start_counting() {
        since_ = clock.now();
        parts.start_counting(since_);
        for (auto& of_operation : latency) of_operation.reset();
    }
    Time counting_since() const { return since_; }

    Simulation clock;
    Parts parts;
    std::vector<Histogram> latency;  // [O] each operation that is done adds its own
    Trace trace;

  private:
    Time since_ = 0;
};

}  // namespace numatwin
