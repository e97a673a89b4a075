// Threads on given CPUs that work in the same short windows of time, and whether one was disturbed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "memory/clock.hpp"

namespace numatwin::native {

/// Works until `end_ns` has passed and returns how much it has done. It looks at the clock now and
/// then; what it does after `end_ns` counts, and so does the time that it takes.
using Work = std::function<double(std::int64_t end_ns)>;

/// Takes turns until `end_ns` has passed; returns the sum of what each says it has done.
template <class Turn>
double turns_until(std::int64_t end_ns, Turn&& turn) {
    double done = 0.0;
    do {
        done += turn();
    } while (steady_ns() < end_ns);
    return done;
}

struct Member {
    int cpu;
    Work work;
};

/// So many windows are wanted in which nobody was disturbed, at least one; the search for them ends
/// at the limit, but not before there are three. The first window warms up: neither it nor its time
/// counts.
struct WindowPlan {
    std::size_t wanted = 20;
    std::int64_t window_ns = 200'000;
    std::int64_t limit_ns = 100'000'000;
};

/// What each member did in one window, and how long it took. `disturbed`: the scheduler took the
/// CPU from a member, or a member came too late; what was measured holds others' time.
struct Window {
    std::vector<double> amounts;
    std::vector<double> elapsed_ns;
    bool disturbed = false;
};

/// Runs the members, each in a thread of its own bound to its CPU. Throws std::invalid_argument for
/// two members on one CPU, and std::system_error where a CPU cannot be had.
std::vector<Window> run_team(std::span<const Member> members, const WindowPlan& plan);

}  // namespace numatwin::native
