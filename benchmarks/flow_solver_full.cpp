// The closed loop of flow_solver.py with a full solve after each completion: what shares that are
// kept up to date (flow_solver_classes.cpp) are measured against.
//
// Usage: flow_solver_full FLOWS TIMES WINDOW; see flow_solver_simgrid.cpp.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "flow_solver_list.hpp"
#include "kernel/max_min.hpp"

int main(int argc, char** argv) {
    if (argc != 4) return std::fprintf(stderr, "usage: %s FLOWS TIMES WINDOW\n", argv[0]), 2;
    const FlowList list = FlowList::read(argv[1]);
    constexpr double infinity = std::numeric_limits<double>::infinity();

    // The running flows, compact: a place that ends takes the next flow, or else the last place.
    std::vector<std::size_t> running;
    std::vector<double> remaining;
    std::vector<std::int64_t> row_ptr, resource, binding;
    std::vector<double> coefficient, cap, weight, rate, use(list.capacity.size());
    std::vector<double> times(list.volume.size());
    numatwin::MaxMinSolver solver;
    double now = 0;

    const auto start = std::chrono::steady_clock::now();
    std::size_t next = std::min(static_cast<std::size_t>(std::stoul(argv[3])), times.size());
    for (std::size_t f = 0; f < next; ++f) {
        running.push_back(f);
        remaining.push_back(list.volume[f]);
    }
    while (!running.empty()) {
        row_ptr.assign(1, 0);
        resource.clear();
        for (const std::size_t f : running) {
            resource.insert(resource.end(), list.resource.begin() + list.row_ptr[f],
                            list.resource.begin() + list.row_ptr[f + 1]);
            row_ptr.push_back(static_cast<std::int64_t>(resource.size()));
        }
        coefficient.assign(resource.size(), 1.0);
        cap.assign(running.size(), infinity);
        weight.assign(running.size(), 1.0);
        rate.resize(running.size());
        binding.resize(running.size());
        solver.solve({list.capacity, row_ptr, resource, coefficient, cap, weight},
                     {rate, binding, use});
        double step = infinity;
        std::size_t first = 0;
        for (std::size_t place = 0; place < running.size(); ++place) {
            if (remaining[place] / rate[place] < step) {
                step = remaining[place] / rate[place];
                first = place;
            }
        }
        now += step;
        for (std::size_t place = 0; place < running.size(); ++place) {
            remaining[place] -= rate[place] * step;
        }
        times[running[first]] = now;
        if (next < times.size()) {
            running[first] = next;
            remaining[first] = list.volume[next++];
        } else {
            running[first] = running.back();
            remaining[first] = remaining.back();
            running.pop_back();
            remaining.pop_back();
        }
    }
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    write_times(argv[2], times);
    std::printf("%.9g\n", wall.count());
    return 0;
}
