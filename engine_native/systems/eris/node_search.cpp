#include "systems/eris/node_search.hpp"

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

}  // namespace

#endif

void find(const Tree& tree, const std::uint64_t* keys, std::size_t stride, std::size_t count,
          std::uint32_t* found) {
#if defined(__x86_64__)
    static const bool avx512 =
        __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
    if (avx512) {
        find_avx512(tree, keys, stride, count, found);
        return;
    }
#endif
    find_portable(tree, keys, stride, count, found);
}

}  // namespace numatwin::native::node_search
