// How fast programs on CPUs go from one moment to the next, as others use what they share.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace numatwin::native {

/// Nanoseconds [moments] that a piece of work takes mostly at each moment.
struct Paces {
    std::vector<double> cached_ns, memory_ns;
};

/// [cpus] paces of programs on them, all at once, in moments of `moment_ns`, for so many seconds. A
/// piece of work draws numbers and loads the words at these places: of `cached_bytes`, and in turn
/// with it of `memory_bytes`, the CPU's own. Throws std::system_error where a CPU may not be used,
/// std::bad_alloc.
std::vector<Paces> paces(std::span<const int> cpus, std::size_t cached_bytes,
                         std::size_t memory_bytes, double seconds, double moment_ns);

}  // namespace numatwin::native
