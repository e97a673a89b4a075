// Keys that trees find easy and hard, for the tests of both trees.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "storage/prefix_tree.hpp"

namespace numatwin::native::testing {

using Keys = std::vector<std::uint64_t>;
using Map = std::map<std::uint64_t, std::uint64_t>;
constexpr std::uint64_t MOST = ~std::uint64_t{0};

inline std::uint64_t base_seed() {
    const char* given = std::getenv("NUMATWIN_SEED");
    return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
}

inline std::string describe(TreeShape shape, std::uint64_t seed) {
    return "key_bits " + std::to_string(shape.key_bits) + " prefix_bits " +
           std::to_string(shape.prefix_bits) + " NUMATWIN_SEED=" + std::to_string(seed);
}

/// Draws keys of a kind that changes from batch to batch.
class KeyDraw {
  public:
    KeyDraw(std::uint64_t seed, unsigned key_bits) : random_(seed), mask_(low_mask(key_bits)) {}

    std::vector<std::uint64_t> batch(std::size_t most) {
        const std::uint64_t kind = random_() % 6;
        std::vector<std::uint64_t> keys(random_() % (most + 1));
        for (std::uint64_t& key : keys) key = draw(kind) & mask_;
        return keys;
    }
    std::uint64_t key() { return draw(random_() % 6) & mask_; }
    std::uint64_t operator()() { return random_(); }

  private:
    std::uint64_t draw(std::uint64_t kind) {
        switch (kind) {
            case 0:  // dense, from the least key
                return random_() % 1500;
            case 1:  // dense, to the greatest
                return ~(random_() % 1500);
            case 2:  // one bit, and its neighbours
                return (std::uint64_t{1} << random_() % 64) - random_() % 2;
            case 3:  // few dense clusters far from each other, long prefixes in common
                return (random_() % 5 * 0x0123'4567'89AB'0000) + random_() % 300;
            case 4:  // differ in few, distant bits only
                return random_() & 0x8000'0100'0010'0403;
            default:
                return random_();
        }
    }

    std::mt19937_64 random_;
    std::uint64_t mask_;
};

}  // namespace numatwin::native::testing
