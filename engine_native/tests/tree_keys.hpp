// Keys that trees find easy and hard, and checks against a map: for the tests of both trees.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "scarce_memory.hpp"
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

inline Keys drawn(std::size_t count, KeyDraw& draw) {
    Keys values(count);
    for (std::uint64_t& value : values) value = draw();
    return values;
}

/// Every prefix_bits with key_bits that are least, greatest and neither.
inline std::vector<TreeShape> shapes() {
    std::vector<TreeShape> all;
    for (unsigned prefix_bits = 1; prefix_bits <= 16; ++prefix_bits)
        for (const unsigned key_bits : {9U, 33U, 64U}) all.push_back({key_bits, prefix_bits});
    for (unsigned key_bits = 1; key_bits <= 64; ++key_bits) all.push_back({key_bits, 8});
    return all;
}

Map content(const auto& tree, std::uint64_t first = 0, std::uint64_t last = MOST) {
    Map map;
    tree.scan(first, last, [&](std::uint64_t key, std::uint64_t value) {
        EXPECT_TRUE(map.empty() || map.rbegin()->first < key);
        map.emplace_hint(map.end(), key, value);
    });
    return map;
}

void check_range(const auto& tree, const Map& map, std::uint64_t first, std::uint64_t last) {
    Map expected;
    if (first <= last) expected = Map(map.lower_bound(first), map.upper_bound(last));
    ASSERT_EQ(content(tree, first, last), expected);
}

void check_lookup(const auto& tree, const Map& map, const Keys& keys) {
    Keys values(keys.size());
    std::vector<std::uint8_t> found(keys.size());
    std::size_t hits = 0;
    const std::size_t told = tree.lookup(keys, values.data(), found.data());
    for (std::size_t i = 0; i < keys.size(); ++i) {
        const auto at = map.find(keys[i]);
        hits += at != map.end();
        ASSERT_EQ(found[i], at != map.end() ? 1 : 0) << "key " << keys[i];
        ASSERT_EQ(values[i], at != map.end() ? at->second : 0) << "key " << keys[i];
    }
    ASSERT_EQ(told, hits);
}

/// Runs `change` with its first allocation failing, then its second, … until it succeeds.
template <class Change, class Check>
void fail_each_allocation(ScarceMemory& memory, Change change, Check check) {
    for (std::uint64_t allowed = 0;; ++allowed) {
        memory.fail_after(allowed);
        bool failed = false;
        try {
            change();
        } catch (const std::bad_alloc&) {
            failed = true;
        }
        memory.never_fail();
        check(failed);
        if (!failed || ::testing::Test::HasFatalFailure()) return;
    }
}

}  // namespace numatwin::native::testing
