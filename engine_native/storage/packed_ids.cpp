#include "storage/packed_ids.hpp"

#include <algorithm>
#include <array>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace numatwin::native {
namespace {

#if defined(__x86_64__)

// Of these, and where in a byte they begin, there are four in half a register.
constexpr unsigned vector_bits_max = 25;

/// How a register gets eight ids from two loads, the upper half's from byte `upper` on.
struct Unpacking {
    alignas(32) std::uint8_t bytes[32];
    alignas(32) std::uint32_t shifts[8];
    unsigned upper;
};

constexpr auto unpackings = [] {
    std::array<Unpacking, vector_bits_max + 1> all{};
    for (unsigned bits = 1; bits <= vector_bits_max; ++bits) {
        auto& [bytes, shifts, upper] = all[bits];
        upper = 4 * bits / 8;
        for (unsigned k = 0; k < 8; ++k) {
            const unsigned bit = k * bits - (k < 4 ? 0 : 8 * upper);
            for (unsigned b = 0; b < 4; ++b) bytes[4 * k + b] = std::uint8_t(bit / 8 + b);
            shifts[k] = bit % 8;
        }
    }
    return all;
}();

/// Words of 64 ids each.
__attribute__((target("avx2"))) void match_words(const std::byte* from, unsigned bits,
                                                 std::uint64_t words, ValueRange range,
                                                 std::uint64_t* into) {
    const Unpacking& of = unpackings[bits];
    const __m256i order = _mm256_load_si256(reinterpret_cast<const __m256i*>(of.bytes));
    const __m256i shift = _mm256_load_si256(reinterpret_cast<const __m256i*>(of.shifts));
    const __m256i mask = _mm256_set1_epi32(static_cast<int>((1U << bits) - 1));
    const __m256i low = _mm256_set1_epi32(static_cast<int>(range.low));
    const __m256i width = _mm256_set1_epi32(static_cast<int>(range.high - range.low));
    for (std::uint64_t w = 0; w < words; ++w) {
        std::uint64_t found = 0;
        for (unsigned k = 0; k < 64; k += 8, from += bits) {
            const auto* half = reinterpret_cast<const __m128i*>(from);
            const auto* other = reinterpret_cast<const __m128i*>(from + of.upper);
            const __m256i both = _mm256_inserti128_si256(
                _mm256_castsi128_si256(_mm_loadu_si128(half)), _mm_loadu_si128(other), 1);
            const __m256i ids =
                _mm256_and_si256(_mm256_srlv_epi32(_mm256_shuffle_epi8(both, order), shift), mask);
            const __m256i above = _mm256_sub_epi32(ids, low);
            const __m256i inside = _mm256_cmpeq_epi32(_mm256_min_epu32(above, width), above);
            const auto eight =
                static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(inside)));
            found |= std::uint64_t{eight} << k;
        }
        into[w] = found;
    }
}

#endif

}  // namespace

void PackedIds::match(std::uint64_t first, std::uint64_t ids, ValueRange range,
                      std::uint64_t* words) const {
    std::uint64_t done = 0;
    range.high = std::min(range.high, mask_);
    if (range.empty()) {
        std::fill_n(words, (ids + 63) / 64, 0);
        return;
    }
#if defined(__x86_64__)
    static const bool able = (__builtin_cpu_init(), __builtin_cpu_supports("avx2"));
    if (able && bits_ <= vector_bits_max) {
        done = ids / 64 * 64;
        match_words(bytes_ + first / 8 * bits_, bits_, done / 64, range, words);
    }
#endif
    match_one_by_one(first + done, ids - done, range, words + done / 64);
}

void PackedIds::match_one_by_one(std::uint64_t first, std::uint64_t ids, ValueRange range,
                                 std::uint64_t* words) const {
    for (std::uint64_t from = 0; from < ids; from += 64) {
        const std::uint64_t until = std::min<std::uint64_t>(ids - from, 64);
        std::uint64_t found = 0;
        for (std::uint64_t k = 0; k < until; ++k) {
            const bool inside =
                !range.empty() && at(first + from + k) - range.low <= range.high - range.low;
            found |= std::uint64_t{inside} << k;
        }
        words[from / 64] = found;
    }
}

}  // namespace numatwin::native
