// Scan loops for AVX2: 4 entries a vector.
//
// It compares signed numbers only. With both sides moved by 2^63 the order is the unsigned one:
// x - low + 2^63 > high - low + 2^63 is a miss, and x - (low - 2^63) takes one subtraction.
#include "storage/scan_kernels.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#define NUMATWIN_AVX2 __attribute__((target("avx2,popcnt")))

namespace numatwin::native {
namespace {

constexpr std::size_t group = 16;  // entries that a turn of a loop takes
constexpr std::uint64_t half = std::uint64_t{1} << 63;

struct Bounds {
    __m256i low;
    __m256i width;
};

NUMATWIN_AVX2 Bounds spread(ValueRange range) {
    return {_mm256_set1_epi64x(static_cast<long long>(range.low - half)),
            _mm256_set1_epi64x(static_cast<long long>(range.high - range.low - half))};
}

NUMATWIN_AVX2 __m256i load(const std::uint64_t* data) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data));
}

/// All ones where an entry is outside.
NUMATWIN_AVX2 __m256i misses(__m256i entries, const Bounds& bounds) {
    return _mm256_cmpgt_epi64(_mm256_sub_epi64(entries, bounds.low), bounds.width);
}

NUMATWIN_AVX2 std::uint64_t total(__m256i lanes) {
    alignas(32) std::uint64_t each[4];
    _mm256_store_si256(reinterpret_cast<__m256i*>(each), lanes);
    return each[0] + each[1] + each[2] + each[3];
}

NUMATWIN_AVX2 std::uint64_t count(const std::uint64_t* data, std::size_t entries,
                                  ValueRange range) {
    const Bounds bounds = spread(range);
    __m256i missed[4] = {};
    std::size_t i = 0;
    for (; i + group <= entries; i += group) {
        for (std::size_t v = 0; v < 4; ++v) {  // a miss is -1
            missed[v] = _mm256_sub_epi64(missed[v], misses(load(data + i + 4 * v), bounds));
        }
    }
    const __m256i sum = _mm256_add_epi64(_mm256_add_epi64(missed[0], missed[1]),
                                         _mm256_add_epi64(missed[2], missed[3]));
    return i - total(sum) + one_by_one::count(data + i, entries - i, range);
}

NUMATWIN_AVX2 SumOfMatches sum(const std::uint64_t* data, std::size_t entries, ValueRange range) {
    const Bounds bounds = spread(range);
    __m256i missed[4] = {}, sums[4] = {};
    std::size_t i = 0;
    for (; i + group <= entries; i += group) {
        for (std::size_t v = 0; v < 4; ++v) {
            const __m256i values = load(data + i + 4 * v);
            const __m256i outside = misses(values, bounds);
            missed[v] = _mm256_sub_epi64(missed[v], outside);
            sums[v] = _mm256_add_epi64(sums[v], _mm256_andnot_si256(outside, values));
        }
    }
    SumOfMatches result = one_by_one::sum(data + i, entries - i, range);
    result.matches += i;
    for (std::size_t v = 0; v < 4; ++v) {
        result.matches -= total(missed[v]);
        result.sum += total(sums[v]);
    }
    return result;
}

/// Of 64 entries.
NUMATWIN_AVX2 std::uint64_t word(const std::uint64_t* data, const Bounds& bounds) {
    std::uint64_t outside = 0;
    for (int v = 0; v < 16; ++v) {
        const __m256i missed = misses(load(data + 4 * v), bounds);
        const auto bits =
            static_cast<std::uint64_t>(_mm256_movemask_pd(_mm256_castsi256_pd(missed)));
        outside |= bits << (4 * v);
    }
    return ~outside;
}

NUMATWIN_AVX2 std::uint64_t bitmap(const std::uint64_t* data, std::size_t entries, ValueRange range,
                                   std::uint64_t* words) {
    const Bounds bounds = spread(range);
    std::uint64_t count = 0;
    std::size_t i = 0;
    for (; i + 64 <= entries; i += 64) {
        words[i / 64] = word(data + i, bounds);
        count += static_cast<std::uint64_t>(_mm_popcnt_u64(words[i / 64]));
    }
    if (i == entries) return count;
    words[i / 64] = one_by_one::word(data + i, entries - i, range);
    return count + static_cast<std::uint64_t>(_mm_popcnt_u64(words[i / 64]));
}

NUMATWIN_AVX2 std::uint64_t positions(const std::uint64_t* data, std::size_t entries,
                                      ValueRange range, std::uint64_t first,
                                      std::uint64_t* positions) {
    const Bounds bounds = spread(range);
    std::uint64_t* next = positions;
    std::size_t i = 0;
    for (; i + 64 <= entries; i += 64) {
        next += one_by_one::positions_of(word(data + i, bounds), first + i, next);
    }
    next +=
        one_by_one::positions_of(one_by_one::word(data + i, entries - i, range), first + i, next);
    return static_cast<std::uint64_t>(next - positions);
}

}  // namespace

const ScanKernels avx2_scan_kernels{"avx2", count, sum, bitmap, positions};

}  // namespace numatwin::native
#endif
