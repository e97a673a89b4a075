// How often, and for how long, programs on CPUs stand still.
#pragma once

#include <span>
#include <vector>

namespace numatwin::native {

/// [cpus] nanoseconds of each time in which a thread on that CPU, which only looks at the clock,
/// stood still for `least_ns` or longer; all of them at once, for so many seconds. Throws
/// std::system_error where a CPU may not be used.
std::vector<std::vector<double>> gaps(std::span<const int> cpus, double seconds, double least_ns);

}  // namespace numatwin::native
