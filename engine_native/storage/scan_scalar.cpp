// Scan loops in plain C++.
#include "storage/scan_sets.hpp"

namespace numatwin::native {
namespace {

std::uint64_t bitmap(const std::uint64_t* data, std::size_t entries, ValueRange range,
                     std::uint64_t* words) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < entries; i += 64) {
        const std::uint64_t word =
            one_by_one::word(data + i, entries - i < 64 ? entries - i : 64, range);
        count += static_cast<std::uint64_t>(std::popcount(word));
        words[i / 64] = word;
    }
    return count;
}

}  // namespace

const ScanKernels scalar_scan_kernels{"scalar", one_by_one::count, one_by_one::sum, bitmap,
                                      one_by_one::positions};

}  // namespace numatwin::native
