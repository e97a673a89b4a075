#include "storage/scan_kernels.hpp"

#include <vector>

namespace numatwin::native {

// Scan loops in plain C++. On Arm these are all: GCC makes NEON of them but for positions().

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

std::span<const ScanKernels* const> available_scan_kernels() {
    static const std::vector<const ScanKernels*> sets = [] {
        std::vector<const ScanKernels*> found{&scalar_scan_kernels};
#if defined(__x86_64__)
        __builtin_cpu_init();
        // The CPU and the system: GCC asks XGETBV whether the wide registers are saved.
        if (__builtin_cpu_supports("avx2")) found.push_back(&avx2_scan_kernels);
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) {
            found.push_back(&avx512_scan_kernels);
        }
#endif
        return found;
    }();
    return sets;
}

const ScanKernels& scan_kernels() {
    static const ScanKernels& best = *available_scan_kernels().back();
    return best;
}

}  // namespace numatwin::native
