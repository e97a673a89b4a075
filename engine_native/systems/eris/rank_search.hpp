// Owners of keys in a small partition table, of at most 64 partitions: all of it in registers.
//
// A binary search among the partitions' last keys, eight keys at a time: on each level a key's
// separator is picked from a register by the way it has come, and compared. The way itself, a bit a
// level, first step lowest, says which owner it is: levels and owners lie in the order of ways.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace numatwin::native {

struct alignas(64) RankTable {
    static constexpr std::size_t most_partitions = 64;

    unsigned levels;
    /// What is not used: the greatest key, which no key is above.
    alignas(64) std::uint64_t separators[6][32];
    std::uint32_t owners[most_partitions];
};

namespace rank_search {

/// Whether this CPU can; needed for find().
bool available();
/// Of partitions that are not empty, in order: last keys, and owners. At most 64, at least one.
RankTable table_of(std::span<const std::uint64_t> last, std::span<const std::uint32_t> owners);
/// Owners of `count` keys that lie `stride` words apart, 1 or 2.
void find(const RankTable& table, const std::uint64_t* keys, std::size_t stride, std::size_t count,
          std::uint32_t* found);

}  // namespace rank_search
}  // namespace numatwin::native
