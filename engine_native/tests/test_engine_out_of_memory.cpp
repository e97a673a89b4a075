// Each allocation of the engine's fails in turn: a clean error, nothing left running, no leak.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "engine_setups.hpp"

namespace {

// Allocations until one fails; below 0: none does.
std::atomic<std::int64_t> until_failure{-1};

void* checked(std::size_t bytes, std::size_t alignment) {
    if (until_failure.load(std::memory_order_relaxed) >= 0 &&
        until_failure.fetch_sub(1, std::memory_order_relaxed) == 0)
        throw std::bad_alloc();
    const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    if (void* block = std::aligned_alloc(alignment, rounded > 0 ? rounded : alignment))
        return block;
    throw std::bad_alloc();
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
    return checked(bytes, 16);
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
    return checked(bytes, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* block) noexcept {
    std::free(block);
}
[[gnu::noinline]] void operator delete(void* block, std::size_t) noexcept {
    std::free(block);
}
[[gnu::noinline]] void operator delete(void* block, std::align_val_t) noexcept {
    std::free(block);
}
[[gnu::noinline]] void operator delete(void* block, std::size_t, std::align_val_t) noexcept {
    std::free(block);
}

namespace numatwin::native {
namespace {

// A bit of everything: two nodes, so that transfers are copies.
void live(const EngineSetup& setup) {
    Started engine(setup);
    wait_done(engine, 0, 200);
    engine.rebalance(0, {0, 10, 2'000});
    engine.rebalance(1, {10, 1'990});
    std::vector<Ask> asks{{AskKind::upsert, 0, 5'000, 1},
                          {AskKind::lookup, 0, 5'000, 0},
                          {AskKind::scan, 1, 0, 9},
                          {AskKind::append, 1, 0, 9}};
    engine.execute(asks);
    wait_while(engine, [&] { return engine.balancing(0) || engine.balancing(1); });
    engine.stop();
}

TEST(OutOfMemory, AtEachAllocation) {
    EngineSetup setup = small_setup(2, 2'000, 2'000, 2);
    add_operation(setup, OperationKind::lookup);
    add_operation(setup, OperationKind::scan, 0.01, 1);
    live(setup);
    // At first each, later some: there are as many ways on as there are interleavings.
    int failed = 0, finished = 0;
    for (std::int64_t k = 0; finished < 3 && k < 100'000; k += 1 + k / 200) {
        until_failure = k;
        try {
            live(setup);
            ++finished;
        } catch (const std::bad_alloc&) {
            ++failed;
        } catch (const std::system_error&) {  // a thread could not be made
            ++failed;
        }
        until_failure = -1;
    }
    EXPECT_GT(failed, 50);
}

// The data's own memory runs out at 1, 2, 4 … MB: while loading, or while it grows.
TEST(OutOfMemory, OfTheDataSaysWhatDoesNotFit) {
    EngineSetup setup = small_setup(2, 100'000, 100'000, 2);
    add_operation(setup, OperationKind::upsert);
    int failed = 0;
    bool fits = false;
    for (std::size_t megabytes = 1; !fits && megabytes < 256; megabytes *= 2) {
        setup.limit_bytes = megabytes << 20;
        try {
            Started engine(setup);
            wait_done(engine, 0, 1'000);
            for (std::uint64_t key = 1 << 20; key < 1 << 23; key += 1 << 12)
                engine.execute(std::vector<Ask>{{AskKind::upsert, 0, key, 1}});
            engine.stop();
            fits = true;
        } catch (const std::bad_alloc& error) {
            ++failed;
            EXPECT_NE(std::string(error.what()).find("memory"), std::string::npos) << error.what();
        }
    }
    EXPECT_GT(failed, 0);
    EXPECT_TRUE(fits);
}

// More than any host has: loading can be cancelled.
TEST(OutOfMemory, IsNotWaitedFor) {
    EngineSetup setup = small_setup(2, std::uint64_t{1} << 45);
    Engine engine(setup);
    EXPECT_EQ(engine.to_load(), std::uint64_t{1} << 45);
    engine.begin_load();
    EXPECT_FALSE(engine.wait_loaded(0.001));
    engine.cancel();
}

}  // namespace
}  // namespace numatwin::native
