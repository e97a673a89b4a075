// The double incoming buffer: each race of its protocol by name, then many writers at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "memory/memory.hpp"
#include "pause_gate.hpp"
#include "scarce_memory.hpp"
#include "systems/eris/incoming_buffers.hpp"

namespace numatwin::native {
namespace {

using Words = std::vector<std::uint64_t>;

class Incoming : public ::testing::Test {
  protected:
    bool write(const Words& words) { return buffers.write(std::as_bytes(std::span(words))); }
    Words swap() {
        const auto bytes = buffers.swap();
        const auto* words = reinterpret_cast<const std::uint64_t*>(bytes.data());
        return Words(words, words + bytes.size() / 8);
    }
    // Another thread, stopped at the gate when this returns.
    std::future<bool> writer_at(PauseGate& gate, const Words& words) {
        auto done = std::async(std::launch::async,
                               [&, words] { return gate.run([&] { return write(words); }); });
        gate.await_stopped();
        return done;
    }
    std::future<Words> owner_at(PauseGate& gate) {
        auto done =
            std::async(std::launch::async, [&] { return gate.run([&] { return swap(); }); });
        gate.await_stopped();
        return done;
    }
    // What it does once the gate is open.
    template <typename Result>
    static Result after(PauseGate& gate, std::future<Result>& stopped) {
        gate.open();
        return stopped.get();
    }

    HeapMemory heap;
    IncomingBuffers buffers{heap, 64};
};

TEST_F(Incoming, GivesWhatWasWrittenOnce) {
    EXPECT_TRUE(buffers.is_empty());
    EXPECT_TRUE(write({1, 2}));
    EXPECT_TRUE(write({3}));
    EXPECT_FALSE(buffers.is_empty());
    EXPECT_EQ(swap(), (Words{1, 2, 3}));
    EXPECT_TRUE(buffers.is_empty());
    EXPECT_EQ(swap(), Words{});
    EXPECT_TRUE(write({4}));
    EXPECT_EQ(swap(), Words{4});
}

TEST_F(Incoming, WhatWasTakenStaysUntilTheNextSwapTakesMore) {
    write({1});
    const auto taken = buffers.swap();
    write({2, 2, 2, 2, 2, 2, 2, 2});  // into the other buffer, all of it
    std::uint64_t first;
    std::memcpy(&first, taken.data(), 8);
    EXPECT_EQ(first, 1u);
}

TEST_F(Incoming, FullBufferRefusesAndTakesAgainAfterASwap) {
    EXPECT_TRUE(write({1, 2, 3, 4, 5}));
    EXPECT_FALSE(write({6, 7, 8, 9}));
    EXPECT_TRUE(write({6, 7, 8}));
    EXPECT_FALSE(write({9}));
    EXPECT_EQ(swap(), (Words{1, 2, 3, 4, 5, 6, 7, 8}));
    EXPECT_TRUE(write({9}));
    EXPECT_EQ(swap(), Words{9});
}

TEST_F(Incoming, SwapWaitsForAWriterThatCopies) {
    PauseGate writing("write: reserved"), swapping("swap: deactivated");
    auto writer = writer_at(writing, {1, 2});
    auto owner = owner_at(swapping);
    EXPECT_TRUE(write({3}));  // others go on meanwhile, into the other buffer
    swapping.open();
    EXPECT_EQ(owner.wait_for(std::chrono::milliseconds(30)), std::future_status::timeout);
    EXPECT_TRUE(after(writing, writer));
    EXPECT_EQ(owner.get(), (Words{1, 2}));
    EXPECT_EQ(swap(), Words{3});
}

TEST_F(Incoming, SwapWaitsForAWriterThatHasCopiedAndIsStillThere) {
    PauseGate writing("write: copied"), swapping("swap: deactivated");
    auto writer = writer_at(writing, {1, 2});
    auto owner = owner_at(swapping);
    swapping.open();
    EXPECT_EQ(owner.wait_for(std::chrono::milliseconds(30)), std::future_status::timeout);
    EXPECT_TRUE(after(writing, writer));
    EXPECT_EQ(owner.get(), (Words{1, 2}));
}

TEST_F(Incoming, AnotherWritersReservationSendsAWriterBackToTheNextPlace) {
    PauseGate reading("write: descriptor read");
    auto writer = writer_at(reading, {1, 1});
    EXPECT_TRUE(write({2}));
    EXPECT_TRUE(after(reading, writer));
    EXPECT_EQ(swap(), (Words{2, 1, 1}));
}

TEST_F(Incoming, LastRoomGoesToOneOfTwoWriters) {
    PauseGate reading("write: descriptor read");
    auto writer = writer_at(reading, {1, 1, 1, 1, 1});
    EXPECT_TRUE(write({2, 2, 2, 2}));
    EXPECT_FALSE(after(reading, writer));
    EXPECT_EQ(swap(), (Words{2, 2, 2, 2}));
}

TEST_F(Incoming, ASwapSendsAWriterToTheOtherBuffer) {
    PauseGate reading("write: descriptor read");
    EXPECT_TRUE(write({1}));
    auto writer = writer_at(reading, {2});
    EXPECT_EQ(swap(), Words{1});
    EXPECT_TRUE(after(reading, writer));
    EXPECT_EQ(swap(), Words{2});
}

TEST_F(Incoming, ADescriptorThatComesRoundAgainIsAsGoodAsNew) {
    PauseGate reading("write: descriptor read");
    EXPECT_TRUE(write({1}));
    auto writer = writer_at(reading, {2});  // has read: active, 8 bytes, no writers
    EXPECT_EQ(swap(), Words{1});
    EXPECT_TRUE(write({3}));
    EXPECT_EQ(swap(), Words{3});
    EXPECT_TRUE(write({4}));  // the first buffer again, and its word as it was
    EXPECT_TRUE(after(reading, writer));
    EXPECT_EQ(swap(), (Words{4, 2}));
}

TEST_F(Incoming, WriterDoesNotWaitForASwapThatIsHalfDone) {
    EXPECT_TRUE(write({1}));
    PauseGate swapping("swap: published");
    auto owner = owner_at(swapping);
    EXPECT_FALSE(write({2}));
    EXPECT_EQ(after(swapping, owner), Words{1});
    EXPECT_TRUE(write({2}));
    EXPECT_EQ(swap(), Words{2});
}

TEST_F(Incoming, AWriterThatComesLateIntoTheOldBufferIsTakenWithIt) {
    EXPECT_TRUE(write({1}));
    PauseGate reading("write: descriptor read"), swapping("swap: activated");
    auto writer = writer_at(reading, {2});
    auto owner = owner_at(swapping);      // both are active
    EXPECT_TRUE(write({3}));              // into the new one
    EXPECT_TRUE(after(reading, writer));  // into the old one
    EXPECT_EQ(after(swapping, owner), (Words{1, 2}));
    EXPECT_EQ(swap(), Words{3});
}

TEST_F(Incoming, AWriterOfLongAgoMeetsTheBufferClosed) {
    PauseGate reading("write: descriptor read");
    EXPECT_TRUE(write({1}));
    auto writer = writer_at(reading, {2});
    EXPECT_EQ(swap(), Words{1});
    EXPECT_TRUE(write({3}));
    PauseGate swapping("swap: published");
    auto owner = owner_at(swapping);  // back to the first buffer, which is not active yet
    EXPECT_FALSE(after(reading, writer));
    EXPECT_EQ(after(swapping, owner), Words{3});
    EXPECT_EQ(swap(), Words{});
}

TEST(IncomingBuffers, RefusesSizesThatADescriptorCannotTell) {
    HeapMemory heap;
    EXPECT_THROW(IncomingBuffers(heap, 0), std::invalid_argument);
    EXPECT_THROW(IncomingBuffers(heap, 12), std::invalid_argument);
    EXPECT_THROW(IncomingBuffers(heap, std::size_t{1} << 32), std::invalid_argument);
}

// Command k of a writer: its number, k, and words that follow from both, a different length each.
Words command(std::uint64_t writer, std::uint64_t k) {
    Words words{writer << 32 | k, 1 + (writer + 3 * k) % 13};
    for (std::uint64_t i = 0; i < words[1]; ++i) {
        words.push_back(words[0] * 0x9e3779b97f4a7c15 + i);
    }
    return words;
}

TEST(IncomingBuffers, EachCommandOfManyWritersComesOnceAndInOrder) {
    // A loaded host gives writers and owner their turns in ten milliseconds; each full buffer is
    // one.
    constexpr std::uint64_t commands = 5'000;
    for (const std::uint64_t writers : {1, 2, 3, 7}) {
        HeapMemory heap;
        IncomingBuffers buffers(heap, 1024);  // small, so that it is often full
        std::vector<std::thread> threads;
        for (std::uint64_t writer = 0; writer < writers; ++writer) {
            threads.emplace_back([&, writer] {
                for (std::uint64_t k = 0; k < commands; ++k) {
                    const Words words = command(writer, k);
                    while (!buffers.write(std::as_bytes(std::span(words)))) {
                        std::this_thread::yield();
                    }
                }
            });
        }
        std::vector<std::uint64_t> next(writers, 0);
        std::uint64_t wrong = 0;
        for (std::uint64_t taken = 0; taken < writers * commands;) {
            const auto bytes = buffers.swap();
            if (bytes.empty()) {
                std::this_thread::yield();
            }
            const auto* at = reinterpret_cast<const std::uint64_t*>(bytes.data());
            const auto* end = at + bytes.size() / 8;
            while (at < end) {
                const std::uint64_t writer = at[0] >> 32;
                ASSERT_LT(writer, writers);
                const Words expected = command(writer, next[writer]++);
                wrong += !std::equal(expected.begin(), expected.end(), at);
                at += expected.size();
                ++taken;
            }
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        EXPECT_EQ(wrong, 0u) << writers << " writers";
        EXPECT_EQ(next, std::vector<std::uint64_t>(writers, commands));
        EXPECT_TRUE(buffers.is_empty());
    }
}

// Descriptors are in the block that the buffers' owner gave, as the commands are.
TEST(PlacedBuffers, AreAllInTheOwnersMemory) {
    testing::ScarceMemory memory;
    {
        const PlacedBuffers buffers = placed_buffers(memory, 64);
        EXPECT_GE(memory.bytes_out(), sizeof(IncomingBuffers) + 2 * 64);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffers.get()) % alignof(IncomingBuffers), 0u);
        const Words words{7};
        EXPECT_TRUE(buffers->write(std::as_bytes(std::span(words))));
        EXPECT_EQ(buffers->swap().size(), 8u);
    }
    EXPECT_EQ(memory.bytes_out(), 0u);
}

TEST(PlacedBuffers, ThatFindNoMemoryLeaveNothing) {
    testing::ScarceMemory memory;
    for (std::uint64_t allocations = 0; allocations < 2; ++allocations) {
        memory.fail_after(allocations);
        EXPECT_THROW(placed_buffers(memory, 64), std::bad_alloc);
        EXPECT_EQ(memory.bytes_out(), 0u);
    }
    memory.never_fail();
    EXPECT_THROW(placed_buffers(memory, 7), std::invalid_argument);
    EXPECT_EQ(memory.bytes_out(), 0u);
}

}  // namespace
}  // namespace numatwin::native
