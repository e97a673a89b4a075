// Scan loops for NEON (every 64-bit Arm): 2 entries a vector.
#include "storage/scan_kernels.hpp"

#if defined(__aarch64__)
#include <arm_neon.h>

namespace numatwin::native {
namespace {

constexpr std::size_t group = 8;  // entries that a turn of a loop takes

struct Bounds {
    uint64x2_t low;
    uint64x2_t width;
};

Bounds spread(ValueRange range) {
    return {vdupq_n_u64(range.low), vdupq_n_u64(range.high - range.low)};
}

/// All ones where an entry is inside.
uint64x2_t matches(uint64x2_t entries, const Bounds& bounds) {
    return vcleq_u64(vsubq_u64(entries, bounds.low), bounds.width);
}

uint64x2_t matches(const std::uint64_t* data, const Bounds& bounds) {
    return matches(vld1q_u64(data), bounds);
}

std::uint64_t count(const std::uint64_t* data, std::size_t entries, ValueRange range) {
    const Bounds bounds = spread(range);
    uint64x2_t counts[4] = {};
    std::size_t i = 0;
    for (; i + group <= entries; i += group) {
        for (std::size_t v = 0; v < 4; ++v) {  // a match is -1
            counts[v] = vsubq_u64(counts[v], matches(data + i + 2 * v, bounds));
        }
    }
    std::uint64_t count = one_by_one::count(data + i, entries - i, range);
    for (const uint64x2_t& lanes : counts) count += vaddvq_u64(lanes);
    return count;
}

SumOfMatches sum(const std::uint64_t* data, std::size_t entries, ValueRange range) {
    const Bounds bounds = spread(range);
    uint64x2_t counts[4] = {}, sums[4] = {};
    std::size_t i = 0;
    for (; i + group <= entries; i += group) {
        for (std::size_t v = 0; v < 4; ++v) {
            const uint64x2_t values = vld1q_u64(data + i + 2 * v);
            const uint64x2_t inside = matches(values, bounds);
            counts[v] = vsubq_u64(counts[v], inside);
            sums[v] = vaddq_u64(sums[v], vandq_u64(inside, values));
        }
    }
    SumOfMatches result = one_by_one::sum(data + i, entries - i, range);
    for (std::size_t v = 0; v < 4; ++v) {
        result.matches += vaddvq_u64(counts[v]);
        result.sum += vaddvq_u64(sums[v]);
    }
    return result;
}

/// Of 8 entries: all ones or zeros in a byte each.
uint8x8_t byte_each(const std::uint64_t* data, const Bounds& bounds) {
    const uint32x4_t low =
        vcombine_u32(vmovn_u64(matches(data, bounds)), vmovn_u64(matches(data + 2, bounds)));
    const uint32x4_t high =
        vcombine_u32(vmovn_u64(matches(data + 4, bounds)), vmovn_u64(matches(data + 6, bounds)));
    return vmovn_u16(vcombine_u16(vmovn_u32(low), vmovn_u32(high)));
}

/// Of 64 entries: each byte keeps its own bit, and three pairwise additions make 8 bytes of 64.
std::uint64_t word(const std::uint64_t* data, const Bounds& bounds) {
    static const std::uint8_t own_bit[16] = {1, 2, 4, 8, 16, 32, 64, 128,
                                             1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t own = vld1q_u8(own_bit);
    uint8x16_t bits[4];
    for (std::size_t v = 0; v < 4; ++v) {
        const uint8x16_t all =
            vcombine_u8(byte_each(data + 16 * v, bounds), byte_each(data + 16 * v + 8, bounds));
        bits[v] = vandq_u8(all, own);
    }
    const uint8x16_t of_pairs = vpaddq_u8(vpaddq_u8(bits[0], bits[1]), vpaddq_u8(bits[2], bits[3]));
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(of_pairs, of_pairs)), 0);
}

std::uint64_t bitmap(const std::uint64_t* data, std::size_t entries, ValueRange range,
                     std::uint64_t* words) {
    const Bounds bounds = spread(range);
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < entries; i += 64) {
        const std::uint64_t bits = entries - i >= 64
                                       ? word(data + i, bounds)
                                       : one_by_one::word(data + i, entries - i, range);
        words[i / 64] = bits;
        count += static_cast<std::uint64_t>(std::popcount(bits));
    }
    return count;
}

std::uint64_t positions(const std::uint64_t* data, std::size_t entries, ValueRange range,
                        std::uint64_t first, std::uint64_t* positions) {
    const Bounds bounds = spread(range);
    std::uint64_t* next = positions;
    for (std::size_t i = 0; i < entries; i += 64) {
        const std::uint64_t bits = entries - i >= 64
                                       ? word(data + i, bounds)
                                       : one_by_one::word(data + i, entries - i, range);
        next += one_by_one::positions_of(bits, first + i, next);
    }
    return static_cast<std::uint64_t>(next - positions);
}

}  // namespace

const ScanKernels neon_scan_kernels{"neon", count, sum, bitmap, positions};

}  // namespace numatwin::native
#endif
