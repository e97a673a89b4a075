// The closed loop of flow_solver.py in SimGrid (S4U): one actor a place in the window, each of
// which sends the next flow of the list as soon as its last one has ended.
//
// Usage: flow_solver_simgrid FLOWS TIMES WINDOW. Reads the flow list from FLOWS, writes the time at
// which each flow ended to TIMES as doubles and prints the seconds that the run took
// and the version of SimGrid.
//
// Settings, so that SimGrid solves the very same system:
// - network/model:CM02 with factors of 1 (its default) and latencies of 0: no slow start, and a
//   weight of 1 for each flow (CM02 weights flows by latency where there is one).
// - network/crosstraffic:0: no acknowledgements on the way back.
// - network/TCP-gamma:0: no bound of window over round-trip time.
// - maxmin/precision, surf/precision: SimGrid takes what is this close for full or ended; its
//   defaults (1e-5 and 1e-9) are coarser than the comparison of times.
// Factors of 1 and a gamma of 0 are CM02's defaults in 3.32; they are set in case that changes.

#include <chrono>
#include <cstdio>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

#include "flow_solver_list.hpp"
#include "simgrid/version.h"  // uses macros of s4u.hpp

namespace sg4 = simgrid::s4u;

int main(int argc, char** argv) {
    // Not a line in the log for each setting.
    std::vector<char*> arguments(argv, argv + argc);
    std::string quiet = "--log=root.thres:warning";
    arguments.push_back(quiet.data());
    int count = argc + 1;
    sg4::Engine engine(&count, arguments.data());
    if (argc != 4) return std::fprintf(stderr, "usage: %s FLOWS TIMES WINDOW\n", argv[0]), 2;
    for (const char* setting :
         {"network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0",
          "network/latency-factor:1", "network/bandwidth-factor:1", "network/weight-S:0",
          "maxmin/precision:1e-12", "surf/precision:1e-12", "contexts/stack-size:64"}) {
        sg4::Engine::set_config(setting);
    }
    const FlowList list = FlowList::read(argv[1]);
    const std::size_t window = std::stoul(argv[3]);

    // One host a flow's end; a route for each pair that the list uses.
    auto* zone = sg4::create_full_zone("network");
    std::vector<sg4::Link*> links;
    for (std::size_t r = 0; r < list.capacity.size(); ++r) {
        links.push_back(zone->create_link("link" + std::to_string(r), list.capacity[r])
                            ->set_latency(0)
                            ->seal());
    }
    std::vector<sg4::Host*> hosts;
    for (std::size_t n = 0; n < list.nodes; ++n) {
        hosts.push_back(zone->create_host("host" + std::to_string(n), 1e9)->seal());
    }
    std::vector<bool> routed(list.nodes * list.nodes, false);
    for (std::size_t f = 0; f < list.volume.size(); ++f) {
        const auto source = static_cast<std::size_t>(list.source[f]);
        const auto target = static_cast<std::size_t>(list.target[f]);
        if (routed[source * list.nodes + target]) continue;
        routed[source * list.nodes + target] = true;
        std::vector<sg4::LinkInRoute> route;
        const auto to = static_cast<std::size_t>(list.row_ptr[f + 1]);
        for (auto k = static_cast<std::size_t>(list.row_ptr[f]); k < to; ++k) {
            route.emplace_back(links[static_cast<std::size_t>(list.resource[k])]);
        }
        zone->add_route(hosts[source]->get_netpoint(), hosts[target]->get_netpoint(), nullptr,
                        nullptr, route, false);
    }
    zone->seal();

    std::vector<double> times(list.volume.size());
    std::size_t next = 0;
    for (std::size_t place = 0; place < window; ++place) {
        sg4::Actor::create("place", hosts[0], [&] {
            while (next < list.volume.size()) {
                const std::size_t f = next++;
                sg4::Comm::sendto(hosts[static_cast<std::size_t>(list.source[f])],
                                  hosts[static_cast<std::size_t>(list.target[f])],
                                  static_cast<uint64_t>(list.volume[f]));
                times[f] = sg4::Engine::get_clock();
            }
        });
    }
    const auto start = std::chrono::steady_clock::now();
    engine.run();
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    write_times(argv[2], times);
    std::printf("%.9g %d.%d\n", wall.count(), SIMGRID_VERSION_MAJOR, SIMGRID_VERSION_MINOR);
    return 0;
}
