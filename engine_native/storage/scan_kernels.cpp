#include "storage/scan_kernels.hpp"

#include <vector>

#include "storage/scan_sets.hpp"

namespace numatwin::native {

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
#elif defined(__aarch64__)
        found.push_back(&neon_scan_kernels);  // of every such CPU
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
