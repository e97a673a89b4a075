// RSI's timestamps: bits whose meaning turns round each lap, the leading run, claims.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "systems/commits/timestamp_bits.hpp"

namespace numatwin::native {
namespace {

// The vector in memory, as the timestamp server has it.
struct Vector {
    Vector(std::int64_t clients, std::int64_t bits)
        : layout(clients, bits), words(layout.bytes() / word_bytes) {}

    void set(std::int64_t cid) {
        const auto bit = layout.bit(cid);
        words[bit.at / word_bytes] += bit.addend;
    }
    bool is_set(std::int64_t cid) const {
        return layout.is_set(words[layout.bit(cid).at / word_bytes], cid);
    }
    bool claim(std::int64_t cid) {
        auto& word = words[layout.claim_at(cid) / word_bytes];
        if (layout.is_claimed(word, cid)) return false;
        word = layout.claimed(word, cid);
        return true;
    }
    std::int64_t run_end(std::int64_t from) const {
        return layout.run_end(from, [this](std::uint64_t word) {
            return words[layout.bits_at() / word_bytes + word];
        });
    }

    std::int64_t top(std::int64_t from, std::int64_t until) const {
        return layout.top(
            from, until, [](std::uint64_t) { return true; },
            [this](std::uint64_t word) { return words[layout.bits_at() / word_bytes + word]; });
    }

    TimestampBits layout;
    std::vector<std::uint64_t> words;
};

TEST(TimestampBits, clients_own_timestamps_in_turn) {
    const TimestampBits bits(7, 100);
    EXPECT_EQ(bits.lap(), 98);
    for (std::int64_t cid = 1; cid < 300; ++cid) {
        EXPECT_EQ(bits.owner(cid), (cid - 1) % 7);
        const std::int64_t next = bits.next_of(bits.owner(cid), cid);
        EXPECT_EQ(next, cid + 7);
        EXPECT_EQ(bits.next_of(bits.owner(cid), cid - 1), cid);
    }
    EXPECT_EQ(bits.next_of(3, 0), 4);
}

// Laps that are, and are not, a multiple of a word.
class Laps : public testing::TestWithParam<std::pair<std::int64_t, std::int64_t>> {};

TEST_P(Laps, the_leading_run_ends_at_the_first_unset_bit) {
    const auto [clients, bits] = GetParam();
    Vector vector(clients, bits);
    std::mt19937_64 random(7);
    std::set<std::int64_t> set;
    std::int64_t end = 0;
    for (int step = 0; step < 20'000; ++step) {
        // Any timestamp of the lap that may be used now, in any order.
        const std::int64_t cid =
            end + 1 +
            static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(std::min<std::int64_t>(
                                                     vector.layout.lap(), 100)));
        ASSERT_EQ(vector.is_set(cid), set.contains(cid));
        if (set.insert(cid).second) vector.set(cid);
        while (set.contains(end + 1)) set.erase(++end);
        // However long ago the reader looked before, within the lap.
        const std::int64_t back = static_cast<std::int64_t>(random() % 50);
        const std::int64_t from = std::max<std::int64_t>(end - back, 0);
        if (end - from + 100 <= vector.layout.lap()) {
            ASSERT_EQ(vector.run_end(from), end) << "step " << step;
        }
    }
    EXPECT_GT(end, 3 * vector.layout.lap());
}

INSTANTIATE_TEST_SUITE_P(Shapes, Laps,
                         testing::Values(std::pair{1, 150}, std::pair{3, 200}, std::pair{7, 1000},
                                         std::pair{64, 640}, std::pair{70, 1400}));

// Clients in any order, as far apart as they may be.
TEST_P(Laps, the_highest_that_is_set_is_found) {
    const auto [clients, bits] = GetParam();
    Vector vector(clients, bits);
    std::mt19937_64 random(5);
    std::vector<std::int64_t> next;
    for (std::int64_t client = 0; client < clients; ++client) next.push_back(client + 1);
    const std::int64_t reach = vector.layout.reach();
    for (int step = 0; step < 20'000; ++step) {
        const std::int64_t end = *std::min_element(next.begin(), next.end()) - 1;
        auto& one = next[random() % next.size()];
        if (one <= end + reach) {
            vector.set(one);
            one += clients;
        }
        const std::int64_t highest = *std::max_element(next.begin(), next.end()) - clients;
        const std::int64_t from = *std::min_element(next.begin(), next.end());
        const std::int64_t until = from - 1 + reach;
        const std::int64_t found = vector.top(from, until);
        ASSERT_GE(found, from);
        ASSERT_LE(found, until);
        if (found > from) {
            ASSERT_TRUE(vector.is_set(found));
        }
        ASSERT_LE(found, std::max(highest, from));
        // What stands in one word with the next one is seen in any case.
        const std::int64_t lap = vector.layout.lap(), at = from % lap;
        if (highest <= from + std::min(64 - at % 64, lap - at)) {
            ASSERT_EQ(found, std::max(std::min(highest, until), from));
        }
    }
}

TEST(TimestampBits, who_lags_sees_the_highest) {
    Vector vector(2, 1000);
    for (std::int64_t cid = 1; cid <= 300; cid += 2) vector.set(cid);
    EXPECT_EQ(vector.run_end(0), 1);
    EXPECT_EQ(vector.top(2, 499), 299);
    EXPECT_EQ(vector.top(2, 100), 99);
    EXPECT_EQ(vector.top(299, 499), 299);
    EXPECT_EQ(vector.top(2, 2), 2);
}

TEST(TimestampBits, a_full_lap_is_seen_in_full_and_no_further) {
    Vector vector(4, 256);
    for (std::int64_t cid = 1; cid <= 256; ++cid) vector.set(cid);
    EXPECT_EQ(vector.run_end(0), 256);
    EXPECT_EQ(vector.run_end(100), 256);
    EXPECT_EQ(vector.run_end(256), 256);  // the same bits mean unset in the next lap
    vector.set(257);
    EXPECT_EQ(vector.run_end(256), 257);
}

// Clients that stop for long, anywhere: each still sees where the run ends, and all go on.
TEST_P(Laps, who_looked_away_sees_where_the_run_is) {
    const auto [clients, bits] = GetParam();
    Vector vector(clients, bits);
    struct Client {
        std::int64_t known, next;
    };
    std::vector<Client> all;
    for (std::int64_t client = 0; client < clients; ++client) all.push_back({0, client + 1});
    const std::int64_t lap = vector.layout.lap();
    std::mt19937_64 random(11);
    for (std::int64_t turn = 0; turn < 200 * clients; ++turn) {
        auto& client = all[random() % all.size()];
        for (auto steps = random() % static_cast<std::uint64_t>(lap); steps-- > 0;) {
            // By what it saw before it stopped.
            const bool may = client.next <= client.known + vector.layout.reach();
            if (may) {
                vector.set(client.next);
                client.next += clients;
            }
            std::int64_t end = all[0].next;  // the first that is not set
            for (const auto& other : all) end = std::min(end, other.next);
            const bool stuck = !may && client.known == end - 1;
            client.known = vector.run_end(client.known);
            ASSERT_EQ(client.known, end - 1) << "turn " << turn;
            if (stuck) break;
        }
    }
    EXPECT_GT(all[0].next, 10 * lap);
}

TEST(TimestampBits, a_claim_is_had_once_a_lap) {
    Vector vector(3, 300);
    for (int lap = 0; lap < 4; ++lap)
        for (std::int64_t cid = 1; cid <= 300; ++cid) {
            const std::int64_t now = cid + lap * 300;
            EXPECT_TRUE(vector.claim(now));
            EXPECT_FALSE(vector.claim(now));
        }
    // A timestamp of a lap that is over stays claimed, whoever slept through it.
    EXPECT_FALSE(vector.claim(5));
    EXPECT_FALSE(vector.claim(5 + 300));
}

TEST(TimestampBits, claims_of_a_word_never_look_as_they_did) {
    Vector vector(1, 64);
    std::set<std::pair<std::uint64_t, std::uint64_t>> seen;  // where, what
    for (std::int64_t cid = 1; cid <= 64 * 20; ++cid) {
        ASSERT_TRUE(vector.claim(cid));
        const std::uint64_t at = vector.layout.claim_at(cid);
        EXPECT_TRUE(seen.emplace(at, vector.words[at / word_bytes]).second) << cid;
    }
}

TEST(TimestampBits, lie_where_they_are_told_to) {
    const TimestampBits front(5, 100), behind(5, 100, 4096);
    EXPECT_EQ(behind.floor_at(), 4096u);
    EXPECT_EQ(behind.bit(33).at, front.bit(33).at + 4096);
    EXPECT_EQ(behind.claim_at(33), front.claim_at(33) + 4096);
    EXPECT_EQ(behind.bytes(), front.bytes());
}

}  // namespace
}  // namespace numatwin::native
