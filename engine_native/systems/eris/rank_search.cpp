#include <algorithm>
#include <bit>
#include <limits>

#include "systems/eris/partition_table.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace numatwin::native::rank_search {

namespace {

/// The rank that a way leads to: its first step decides most.
std::size_t rank_of(std::size_t way, unsigned steps, unsigned levels) {
    std::size_t rank = 0;
    for (unsigned step = 0; step < steps; ++step) {
        rank |= (way >> step & 1) << (levels - 1 - step);
    }
    return rank;
}

}  // namespace

RankTable table_of(std::span<const std::uint64_t> last, std::span<const std::uint32_t> owners) {
    RankTable table;
    table.levels = static_cast<unsigned>(std::bit_width(owners.size() - 1));
    std::fill_n(&table.separators[0][0], 6 * 32, std::numeric_limits<std::uint64_t>::max());
    for (unsigned level = 0; level < table.levels; ++level) {
        for (std::size_t way = 0; way < std::size_t{1} << level; ++way) {
            // The last one of the lower half of what is left.
            const std::size_t middle =
                rank_of(way, level, table.levels) + (std::size_t{1} << (table.levels - 1 - level));
            if (middle < last.size()) {
                table.separators[level][way] = last[middle - 1];
            }
        }
    }
    for (std::size_t way = 0; way < RankTable::most_partitions; ++way) {
        const std::size_t rank = rank_of(way, table.levels, table.levels);
        table.owners[way] = owners[std::min(rank, owners.size() - 1)];
    }
    return table;
}

#if defined(__x86_64__)

namespace {

#define NUMATWIN_AVX512 [[gnu::target("avx512f")]]
#define NUMATWIN_INLINE [[gnu::target("avx512f"), gnu::always_inline]] inline

constexpr __mmask8 all = 0xff;  // GCC warns of what the unmasked intrinsics do themselves
constexpr __mmask16 all_16 = 0xffff;

/// Eight keys or pairs' keys.
NUMATWIN_INLINE __m512i eight_keys(const std::uint64_t* keys, std::size_t stride) {
    if (stride == 1) {
        return _mm512_loadu_si512(keys);
    }
    const __m512i evens = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
    return _mm512_permutex2var_epi64(_mm512_loadu_si512(keys), evens, _mm512_loadu_si512(keys + 8));
}

/// The ways of eight keys. The compiler keeps what is loaded in registers from call to call.
template <unsigned levels>
NUMATWIN_INLINE __m512i ways_of(const RankTable& table, __m512i keys) {
    const auto part = [&](unsigned level, unsigned of) {
        return &table.separators[level][std::size_t{8} * of];
    };
    __m512i ways = _mm512_setzero_si512();
    __mmask8 above = 0;
    for (unsigned level = 0; level < levels; ++level) {
        __m512i separators = _mm512_load_si512(part(level, 0));
        if (level == 0) {
            separators = _mm512_set1_epi64(static_cast<long long>(table.separators[0][0]));
        } else if (level <= 3) {
            separators = _mm512_maskz_permutexvar_epi64(all, ways, separators);
        } else {
            separators =
                _mm512_permutex2var_epi64(separators, ways, _mm512_load_si512(part(level, 1)));
        }
        if (level == 5) {
            const __m512i upper = _mm512_permutex2var_epi64(_mm512_load_si512(part(level, 2)), ways,
                                                            _mm512_load_si512(part(level, 3)));
            separators = _mm512_mask_blend_epi64(above, separators, upper);
        }
        above = _mm512_cmplt_epu64_mask(separators, keys);
        ways = _mm512_mask_add_epi64(ways, above, ways, _mm512_set1_epi64(1LL << level));
    }
    return ways;
}

template <unsigned levels>
NUMATWIN_INLINE void find_sixteen(const RankTable& table, const std::uint64_t* keys,
                                  std::size_t stride, std::uint32_t* found) {
    const __m512i evens =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i ways =
        _mm512_permutex2var_epi32(ways_of<levels>(table, eight_keys(keys, stride)), evens,
                                  ways_of<levels>(table, eight_keys(keys + 8 * stride, stride)));
    const auto owners = [&](int of) { return table.owners + 16 * of; };
    __m512i owner = _mm512_load_si512(owners(0));
    if (levels <= 4) {
        owner = _mm512_maskz_permutexvar_epi32(all_16, ways, owner);
    } else {
        owner = _mm512_permutex2var_epi32(owner, ways, _mm512_load_si512(owners(1)));
    }
    if (levels == 6) {
        const __m512i upper = _mm512_permutex2var_epi32(_mm512_load_si512(owners(2)), ways,
                                                        _mm512_load_si512(owners(3)));
        const __mmask16 is_upper = _mm512_test_epi32_mask(ways, _mm512_set1_epi32(32));
        owner = _mm512_mask_blend_epi32(is_upper, owner, upper);
    }
    _mm512_storeu_si512(found, owner);
}

template <unsigned levels, std::size_t stride>
NUMATWIN_AVX512 void find_all(const RankTable& table, const std::uint64_t* keys, std::size_t count,
                              std::uint32_t* found) {
    std::size_t at = 0;
    for (; at + 16 <= count; at += 16) {
        find_sixteen<levels>(table, keys + at * stride, stride, found + at);
    }
    if (at < count) {
        std::uint64_t some[16 * stride] = {};
        std::uint32_t found_of_them[16];
        // A pair's value may not be there to be read.
        std::copy_n(keys + at * stride, (count - at - 1) * stride + 1, some);
        find_sixteen<levels>(table, some, stride, found_of_them);
        std::copy_n(found_of_them, count - at, found + at);
    }
}

template <unsigned levels>
void find_levels(const RankTable& table, const std::uint64_t* keys, std::size_t stride,
                 std::size_t count, std::uint32_t* found) {
    (stride == 1 ? find_all<levels, 1> : find_all<levels, 2>)(table, keys, count, found);
}

constexpr decltype(&find_levels<0>) by_levels[] = {find_levels<0>, find_levels<1>, find_levels<2>,
                                                   find_levels<3>, find_levels<4>, find_levels<5>,
                                                   find_levels<6>};

}  // namespace

bool available() {
    static const bool avx512 = __builtin_cpu_supports("avx512f");
    return avx512;
}

void find(const RankTable& table, const std::uint64_t* keys, std::size_t stride, std::size_t count,
          std::uint32_t* found) {
    by_levels[table.levels](table, keys, stride, count, found);
}

#else

bool available() {
    return false;
}

void find(const RankTable&, const std::uint64_t*, std::size_t, std::size_t, std::uint32_t*) {}

#endif

}  // namespace numatwin::native::rank_search
