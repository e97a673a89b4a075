#include "memory/clock.hpp"

#include <algorithm>
#include <utility>

namespace numatwin::native {
namespace {

using Steady = std::chrono::steady_clock;

// Both clocks at once: of several readings the one that took the least time.
std::pair<Steady::time_point, Ticks> both() {
    std::pair<Steady::time_point, Ticks> best;
    Ticks least = ~Ticks{0};
    for (int k = 0; k < 16; ++k) {
        const Ticks before = ticks();
        const auto now = Steady::now();
        const Ticks after = ticks();
        if (after - before < least) {
            least = after - before;
            best = {now, before + (after - before) / 2};
        }
    }
    return best;
}

double measured() {
    const auto [start, from] = both();
    while (Steady::now() - start < std::chrono::milliseconds(20)) {
    }
    const auto [end, to] = both();
    const std::chrono::duration<double, std::pico> lasted = end - start;
    return lasted.count() / static_cast<double>(std::max<Ticks>(to - from, 1));
}

}  // namespace

double ps_per_tick() {
    static const double found = measured();
    return found;
}

}  // namespace numatwin::native
