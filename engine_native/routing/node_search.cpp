#include "routing/node_search.hpp"

#include <algorithm>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace numatwin::native::node_search {

namespace {

using Node = PartitionTree::Node;

// So many keys go down together: their lines are on their way at the same time.
constexpr std::size_t group = 16;

}  // namespace

// Plain code: seven comparisons, no branch. Compilers make SIMD of it where that pays (NEON).
void find_portable(const Tree& tree, const std::uint64_t* keys, std::size_t stride,
                   std::size_t count, std::uint32_t* found) {
    for (std::size_t from = 0; from < count; from += group) {
        const std::size_t keys_here = std::min(group, count - from);
        std::uint64_t at[group] = {};
        for (std::size_t level = 0; level < tree.levels; ++level) {
            for (std::size_t i = 0; i < keys_here; ++i) {
                const Node& node = tree.nodes[at[i]];
                const std::uint64_t key = keys[(from + i) * stride];
                std::uint64_t child = node.first_child;
                for (const std::uint64_t last : node.last) {
                    child += last < key;
                }
                at[i] = child;
            }
        }
        for (std::size_t i = 0; i < keys_here; ++i) {
            found[from + i] = tree.owners[at[i]];
        }
    }
}

#if defined(__x86_64__)

namespace {

#define NUMATWIN_AVX512 __attribute__((target("avx512f,avx512vl,popcnt")))

// One comparison a node.
NUMATWIN_AVX512 void find_avx512(const Tree& tree, const std::uint64_t* keys, std::size_t stride,
                                 std::size_t count, std::uint32_t* found) {
    for (std::size_t from = 0; from < count; from += group) {
        const std::size_t keys_here = std::min(group, count - from);
        std::uint64_t at[group] = {};
        for (std::size_t level = 0; level < tree.levels; ++level) {
            for (std::size_t i = 0; i < keys_here; ++i) {
                const Node& node = tree.nodes[at[i]];
                const __m512i key =
                    _mm512_set1_epi64(static_cast<long long>(keys[(from + i) * stride]));
                // The eighth word is no separator.
                const __mmask8 below =
                    _mm512_mask_cmplt_epu64_mask(0x7f, _mm512_load_si512(&node), key);
                at[i] = node.first_child + static_cast<unsigned>(__builtin_popcount(below));
            }
        }
        for (std::size_t i = 0; i < keys_here; ++i) {
            found[from + i] = tree.owners[at[i]];
        }
    }
}

// Eight keys or pairs' keys in a register.
NUMATWIN_AVX512 __m512i eight_keys(const std::uint64_t* keys, std::size_t stride) {
    if (stride == 1) {
        return _mm512_loadu_si512(keys);
    }
    const __m512i evens = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
    return _mm512_permutex2var_epi64(_mm512_loadu_si512(keys), evens, _mm512_loadu_si512(keys + 8));
}

// Small trees, of one or two levels, without a look-up in memory: the separators stay in registers,
// and eight keys are compared with one separator each at a time. On the second level, each key's
// separator is picked by its node.
NUMATWIN_AVX512 void find_small_avx512(const Tree& tree, const std::uint64_t* keys,
                                       std::size_t stride, std::size_t count,
                                       std::uint32_t* found) {
    constexpr __mmask8 all = 0xff;  // GCC warns of what the unmasked intrinsics do themselves
    const __m512i one = _mm512_set1_epi64(1);
    __m512i root[7];
    __m512i column[7];  // separator j of the root's child i, at i
    for (int j = 0; j < 7; ++j) {
        root[j] = _mm512_set1_epi64(static_cast<long long>(tree.nodes[0].last[j]));
        alignas(64) std::uint64_t of_child[8] = {};
        for (std::size_t child = 1; child < tree.node_count; ++child) {
            of_child[child - 1] = tree.nodes[child].last[j];
        }
        column[j] = _mm512_load_si512(of_child);
    }
    alignas(64) std::uint32_t owners[64] = {};
    std::copy_n(tree.owners, std::min<std::size_t>(tree.leaves, 64), owners);
    __m512i owner[4];
    for (int i = 0; i < 4; ++i) {
        owner[i] = _mm512_load_si512(owners + 16 * i);
    }
    std::size_t from = 0;
    for (; from + 8 <= count; from += 8) {
        const __m512i key = eight_keys(keys + from * stride, stride);
        __m512i at = _mm512_setzero_si512();
        for (const __m512i& last : root) {
            at = _mm512_mask_add_epi64(at, _mm512_cmplt_epu64_mask(last, key), at, one);
        }
        if (tree.levels == 2) {
            const __m512i child = at;
            at = _mm512_maskz_slli_epi64(all, child, 3);
            for (const __m512i& lasts : column) {
                const __m512i last = _mm512_maskz_permutexvar_epi64(all, child, lasts);
                at = _mm512_mask_add_epi64(at, _mm512_cmplt_epu64_mask(last, key), at, one);
            }
        }
        // Sixteen owners a register, picked by the lower bits; the upper ones say from which.
        const __m512i lower = _mm512_permutex2var_epi32(owner[0], at, owner[1]);
        const __m512i upper = _mm512_permutex2var_epi32(owner[2], at, owner[3]);
        const __m512i of_key = _mm512_mask_blend_epi32(
            _mm512_test_epi32_mask(at, _mm512_set1_epi32(32)), lower, upper);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(found + from),
                            _mm512_maskz_cvtepi64_epi32(all, of_key));
    }
    find_avx512(tree, keys + from * stride, stride, count - from, found + from);
}

}  // namespace

#endif

void find(const Tree& tree, const std::uint64_t* keys, std::size_t stride, std::size_t count,
          std::uint32_t* found) {
#if defined(__x86_64__)
    static const bool avx512 =
        __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
    if (avx512) {
        (tree.levels <= 2 && count >= 64 ? find_small_avx512 : find_avx512)(tree, keys, stride,
                                                                            count, found);
        return;
    }
#endif
    find_portable(tree, keys, stride, count, found);
}

}  // namespace numatwin::native::node_search
