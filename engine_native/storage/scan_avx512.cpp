// Scan loops for AVX-512: 8 entries a vector, unsigned comparison to a mask.
#include <algorithm>

#include "storage/scan_kernels.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#define NUMATWIN_AVX512 __attribute__((target("avx512f,avx512bw,popcnt")))

namespace numatwin::native {
namespace {

constexpr __mmask8 all = 0xff;  // GCC 12 warns of what the unmasked forms leave undefined

/// In entries, 3 KiB: the CPU reads ahead by itself, but keeps fewer reads under way the more a
/// loop does with an entry. A prefetch behind the end is harmless.
constexpr std::size_t ahead = 384;

/// Instructions for a line count as they limit how far the CPU looks ahead: so the lower bound is
/// added negative, which can take the entries from memory, and a bitmap's bits are stored as they
/// come, eight at a time, and counted later, a line of the bitmap at a time.
constexpr std::size_t line_entries = 512, line_words = line_entries / 64;

/// A scan of 512 KiB or more pushes its bitmap out of the caches: that is stored past them, in
/// whole lines, which saves reading them first. Its bits are gathered in a few lines in the cache.
/// A line leaves some lines later: its bits' stores wait for the entries, which are still on their
/// way.
constexpr std::size_t long_scan_entries = 1 << 16;
constexpr std::size_t gathered_lines = 4;

struct Bounds {
    __m512i minus_low;
    __m512i width;
};

NUMATWIN_AVX512 Bounds spread(ValueRange range) {
    return {_mm512_set1_epi64(static_cast<long long>(0 - range.low)),
            _mm512_set1_epi64(static_cast<long long>(range.high - range.low))};
}

NUMATWIN_AVX512 __mmask8 matches(__m512i entries, const Bounds& bounds) {
    return _mm512_cmple_epu64_mask(_mm512_maskz_add_epi64(all, entries, bounds.minus_low),
                                   bounds.width);
}

NUMATWIN_AVX512 std::uint64_t ones(std::uint64_t mask) {
    return static_cast<std::uint64_t>(_mm_popcnt_u64(mask));
}

NUMATWIN_AVX512 std::uint64_t total(__m512i lanes) {
    alignas(64) std::uint64_t each[8];
    _mm512_store_si512(each, lanes);
    std::uint64_t total = 0;
    for (const std::uint64_t lane : each) total += lane;
    return total;
}

/// Of the eight entries at `data`.
NUMATWIN_AVX512 __mmask8 matches_at(const std::uint64_t* data, const Bounds& bounds) {
    __builtin_prefetch(data + ahead);
    return matches(_mm512_loadu_si512(data), bounds);
}

/// Of 64 entries.
NUMATWIN_AVX512 std::uint64_t word(const std::uint64_t* data, const Bounds& bounds) {
    __mmask8 mask[8];
    for (int v = 0; v < 8; ++v) mask[v] = matches_at(data + 8 * v, bounds);
    const __mmask16 of_16[4] = {
        _mm512_kunpackb(mask[1], mask[0]), _mm512_kunpackb(mask[3], mask[2]),
        _mm512_kunpackb(mask[5], mask[4]), _mm512_kunpackb(mask[7], mask[6])};
    return _mm512_kunpackd(_mm512_kunpackw(of_16[3], of_16[2]),
                           _mm512_kunpackw(of_16[1], of_16[0]));
}

NUMATWIN_AVX512 std::uint64_t count(const std::uint64_t* data, std::size_t entries,
                                    ValueRange range) {
    const Bounds bounds = spread(range);
    std::uint64_t count = 0;
    std::size_t i = 0;
    for (; i + 64 <= entries; i += 64) count += ones(word(data + i, bounds));
    return count + one_by_one::count(data + i, entries - i, range);
}

NUMATWIN_AVX512 SumOfMatches sum(const std::uint64_t* data, std::size_t entries, ValueRange range) {
    const Bounds bounds = spread(range);
    const __m512i one = _mm512_set1_epi64(1);
    __m512i sums[8], counts[8];
    for (__m512i& lanes : sums) lanes = _mm512_setzero_si512();
    for (__m512i& lanes : counts) lanes = _mm512_setzero_si512();
    std::size_t i = 0;
    for (; i + 64 <= entries; i += 64) {
        for (std::size_t v = 0; v < 8; ++v) {
            __builtin_prefetch(data + i + 8 * v + ahead);
            const __m512i values = _mm512_loadu_si512(data + i + 8 * v);
            const __mmask8 mask = matches(values, bounds);
            counts[v] = _mm512_mask_add_epi64(counts[v], mask, counts[v], one);
            sums[v] = _mm512_mask_add_epi64(sums[v], mask, sums[v], values);
        }
    }
    SumOfMatches result = one_by_one::sum(data + i, entries - i, range);
    for (std::size_t v = 0; v < 8; ++v) {
        result.matches += total(counts[v]);
        result.sum += total(sums[v]);
    }
    return result;
}

/// Puts the bits of 64 entries; x86 is little-endian.
NUMATWIN_AVX512 void put_word(const std::uint64_t* data, const Bounds& bounds,
                              std::uint64_t* words) {
    auto* masks = reinterpret_cast<__mmask8*>(words);
    for (std::size_t v = 0; v < 8; ++v) masks[v] = matches_at(data + 8 * v, bounds);
}

NUMATWIN_AVX512 std::uint64_t ones_of_line(const std::uint64_t* words) {
    std::uint64_t count = 0;
    for (std::size_t w = 0; w < line_words; ++w) count += ones(words[w]);
    return count;
}

/// Of so many lines of the bitmap, past the caches; `words` is aligned to lines. The matches.
NUMATWIN_AVX512 std::uint64_t stream_lines(const std::uint64_t* data, std::size_t lines,
                                           const Bounds& bounds, std::uint64_t* words) {
    alignas(64) std::uint64_t gathered[gathered_lines][line_words];
    constexpr std::size_t later = gathered_lines - 1;
    std::uint64_t count = 0;
    for (std::size_t l = 0; l < lines + later; ++l) {
        if (l < lines) {
            std::uint64_t* line = gathered[l % gathered_lines];
            for (std::size_t w = 0; w < line_words; ++w) {
                put_word(data + l * line_entries + 64 * w, bounds, line + w);
            }
        }
        if (l < later) continue;
        const std::uint64_t* line = gathered[(l - later) % gathered_lines];
        count += ones_of_line(line);
        _mm512_stream_si512(reinterpret_cast<__m512i*>(words + (l - later) * line_words),
                            _mm512_load_si512(line));
    }
    _mm_sfence();  // such stores are seen at any time: before what comes after
    return count;
}

NUMATWIN_AVX512 std::uint64_t bitmap(const std::uint64_t* data, std::size_t entries,
                                     ValueRange range, std::uint64_t* words) {
    const Bounds bounds = spread(range);
    std::uint64_t count = 0;
    std::size_t i = 0;
    if (entries >= long_scan_entries) {
        for (; reinterpret_cast<std::uintptr_t>(words + i / 64) % 64 != 0; i += 64) {
            put_word(data + i, bounds, words + i / 64);
            count += ones(words[i / 64]);
        }
        const std::size_t lines = (entries - i) / line_entries;
        count += stream_lines(data + i, lines, bounds, words + i / 64);
        i += lines * line_entries;
    }
    while (i + 64 <= entries) {
        const std::size_t first = i, until = std::min(i + line_entries, entries / 64 * 64);
        for (; i < until; i += 64) put_word(data + i, bounds, words + i / 64);
        for (std::size_t w = first / 64; w < until / 64; ++w) count += ones(words[w]);
    }
    if (i == entries) return count;
    words[i / 64] = one_by_one::word(data + i, entries - i, range);
    return count + ones(words[i / 64]);
}

/// The compressed vector is stored whole: what is beyond its matches is written over by the next.
NUMATWIN_AVX512 std::uint64_t positions(const std::uint64_t* data, std::size_t entries,
                                        ValueRange range, std::uint64_t first,
                                        std::uint64_t* positions) {
    const Bounds bounds = spread(range);
    const __m512i step = _mm512_set1_epi64(8);
    __m512i at = _mm512_add_epi64(_mm512_set1_epi64(static_cast<long long>(first)),
                                  _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0));
    std::uint64_t* next = positions;
    std::size_t i = 0;
    for (; i + 8 <= entries; i += 8) {
        const __mmask8 mask = matches(_mm512_loadu_si512(data + i), bounds);
        _mm512_storeu_si512(next, _mm512_maskz_compress_epi64(mask, at));
        next += ones(mask);
        at = _mm512_maskz_add_epi64(all, at, step);
    }
    next += one_by_one::positions(data + i, entries - i, range, first + i, next);
    return static_cast<std::uint64_t>(next - positions);
}

static_assert(ScanKernels::positions_slack >= 8);

}  // namespace

const ScanKernels avx512_scan_kernels{"avx512", count, sum, bitmap, positions};

}  // namespace numatwin::native
#endif
