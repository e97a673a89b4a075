// The block of a record: its word, its versions, and reading it while another writes.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "fabric/fabric.hpp"
#include "systems/commits/record_block.hpp"

namespace numatwin::native {
namespace {

constexpr std::uint32_t payload_bytes = 24;

std::vector<std::byte> empty_block(std::uint32_t versions) {
    return std::vector<std::byte>(versions * (word_bytes + payload_bytes));
}

TEST(LockWord, tells_lock_and_version) {
    const std::uint64_t free = LockWord::unlocked(12345), taken = LockWord::locked(12345);
    EXPECT_FALSE(LockWord::is_locked(free));
    EXPECT_TRUE(LockWord::is_locked(taken));
    EXPECT_EQ(LockWord::cid(free, false), 12345);
    EXPECT_EQ(LockWord::cid(taken, false), 12345);
    const std::int64_t large = (std::int64_t{1} << 62) + 7;
    EXPECT_EQ(LockWord::cid(LockWord::locked(large), false), large);
}

TEST(LockWord, tells_owner_and_age_of_a_lease) {
    constexpr std::int64_t unit = LockWord::time_unit_ns;
    const std::uint64_t word = LockWord::leased(LockWord::leased_cid_max, 8191, 1000 * unit);
    EXPECT_TRUE(LockWord::is_locked(word));
    EXPECT_EQ(LockWord::owner(word), 8191u);
    EXPECT_EQ(LockWord::cid(word, true), LockWord::leased_cid_max);
    EXPECT_EQ(LockWord::age_ns(word, 1000 * unit), 0);
    EXPECT_EQ(LockWord::age_ns(word, 1007 * unit + 5), 7 * unit);
    // Its clock comes round.
    const std::int64_t round = (std::int64_t{1} << LockWord::time_bits) * unit;
    const std::uint64_t late = LockWord::leased(3, 1, round - unit);
    EXPECT_EQ(LockWord::age_ns(late, round + 4 * unit), 5 * unit);
}

TEST(RecordBlock, shift_keeps_the_newest_versions_in_order) {
    auto memory = empty_block(3);
    RecordBlock block(memory.data(), 3, payload_bytes);
    for (std::int64_t cid = 1; cid <= 5; ++cid) {
        block.shift();
        block.set_word(LockWord::unlocked(cid * 10));
        std::ranges::fill(block.payload(0), static_cast<std::byte>(cid));
    }
    EXPECT_EQ(block.cid(0), 50);
    EXPECT_EQ(block.cid(1), 40);
    EXPECT_EQ(block.cid(2), 30);
    EXPECT_EQ(block.payload(2).front(), std::byte{3});
    EXPECT_EQ(block.payload(2).back(), std::byte{3});
}

TEST(RecordBlock, a_snapshot_sees_the_newest_version_that_is_not_above_it) {
    auto memory = empty_block(2);
    RecordBlock block(memory.data(), 2, payload_bytes);
    EXPECT_EQ(block.visible(0), 0);  // version 0 stands there from the beginning
    block.shift();
    block.set_word(LockWord::unlocked(10));
    EXPECT_EQ(block.visible(10), 0);
    EXPECT_EQ(block.visible(9), 1);
    block.shift();
    block.set_word(LockWord::unlocked(20));
    EXPECT_EQ(block.visible(19), 1);
    EXPECT_EQ(block.visible(9), -1);  // version 0 is gone
}

TEST(RecordBlock, shift_of_a_leased_block_leaves_the_lock_behind) {
    auto memory = empty_block(2);
    RecordBlock block(memory.data(), 2, payload_bytes);
    block.set_word(LockWord::leased(77, 5, 123456789));
    block.shift(true);
    EXPECT_EQ(block.cid(1), 77);
}

// A writer locks and publishes versions whose payload tells their CID; readers that follow the
// rule (same word before and after, unlocked) never see a mixture.
TEST(RecordBlock, reading_twice_tells_a_block_that_is_being_written) {
    constexpr std::size_t bytes = 1032;
    const auto server = local_fabric(), writing = local_fabric(), reading = local_fabric();
    server->expose(bytes);
    const auto to_write = writing->connect(server->contact());
    const auto to_read = reading->connect(server->contact());
    std::atomic<bool> stop{false};
    std::thread writer([&] {
        std::vector<std::byte> block(bytes);
        Pending pending;
        for (std::int64_t cid = 1; !stop.load(); ++cid) {
            const std::uint64_t expected = LockWord::unlocked(cid - 1);
            std::uint64_t word = LockWord::locked(cid - 1);
            writing->compare_and_swap(to_write, 0, expected, word, pending);
            ASSERT_EQ(word, expected);
            for (std::size_t at = 0; at < bytes; at += word_bytes)
                std::memcpy(&block[at], &cid, word_bytes);
            writing->publish(to_write, 0, block.data(), bytes);
            if (cid % 3 == 0) std::this_thread::yield();  // unlocked for a while
        }
    });
    std::vector<std::byte> block(bytes);
    std::uint64_t whole = 0;
    for (int k = 0; k < 400'000 && whole < 3'000; ++k) {
        Pending pending;
        std::uint64_t second = 0;
        reading->get(to_read, 0, block.data(), bytes, pending);
        reading->order();
        reading->get(to_read, 0, reinterpret_cast<std::byte*>(&second), word_bytes, pending);
        std::uint64_t first;
        std::memcpy(&first, block.data(), word_bytes);
        if (first != second || LockWord::is_locked(first)) continue;
        ++whole;
        for (std::size_t at = 0; at < bytes; at += word_bytes) {
            std::uint64_t word;
            std::memcpy(&word, &block[at], word_bytes);
            ASSERT_EQ(word, first) << "byte " << at;
        }
    }
    stop = true;
    writer.join();
    EXPECT_GT(whole, 0u);
}

}  // namespace
}  // namespace numatwin::native
