// The explorer of interleavings itself: litmus tests whose outcomes C++ allows or forbids.
#include <gtest/gtest.h>

#include <set>

#include "interleavings.hpp"

namespace numatwin::native::interleavings {
namespace {

using Outcomes = std::set<std::vector<Value>>;
constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto acquire = std::memory_order_acquire;
constexpr auto release = std::memory_order_release;

struct Two {
    Atomic<Value> x{0}, y{0};
};

Outcomes outcomes(std::vector<Explorer::Body> threads) {
    Explorer explorer(std::move(threads));
    explorer.run();
    Outcomes outcomes;
    for (const auto& [outcome, times] : explorer.outcomes()) {
        outcomes.insert(outcome);
    }
    return outcomes;
}

// x = 1; y = 1  |  y? x?    The second may see y and not x, unless y is released and acquired.
Explorer::Body sends(std::memory_order store) {
    return [=] {
        Two two;
        two.x.store(1, relaxed);
        two.y.store(1, store);
        return Value{0};
    };
}

Explorer::Body receives(std::memory_order load) {
    return [=] {
        Two two;
        const Value y = two.y.load(load);
        return 10 * y + two.x.load(relaxed);
    };
}

Outcomes message_passing(std::memory_order store, std::memory_order load) {
    return outcomes({sends(store), receives(load)});
}

TEST(Interleavings, MessagePassing) {
    const Outcomes all{{0, 0}, {0, 1}, {0, 10}, {0, 11}};
    const Outcomes ordered{{0, 0}, {0, 1}, {0, 11}};
    EXPECT_EQ(message_passing(relaxed, relaxed), all);
    EXPECT_EQ(message_passing(release, relaxed), all);
    EXPECT_EQ(message_passing(relaxed, acquire), all);
    EXPECT_EQ(message_passing(release, acquire), ordered);
}

TEST(Interleavings, StoreBufferingIsAllowedWithReleaseAndAcquire) {
    const auto swaps = [](Atomic<Value> Two::* mine, Atomic<Value> Two::* other) {
        return [=] {
            Two two;
            (two.*mine).store(1, release);
            return (two.*other).load(acquire);
        };
    };
    EXPECT_EQ(outcomes({swaps(&Two::x, &Two::y), swaps(&Two::y, &Two::x)}),
              (Outcomes{{0, 0}, {0, 1}, {1, 0}, {1, 1}}));
}

TEST(Interleavings, OneAtomicIsCoherent) {
    const auto writer = [] {
        Two two;
        two.x.store(1, relaxed);
        two.x.store(2, relaxed);
        return Value{0};
    };
    const auto reader = [] {
        Two two;
        const Value first = two.x.load(relaxed);
        return 10 * first + two.x.load(relaxed);
    };
    EXPECT_EQ(outcomes({writer, reader}),
              (Outcomes{{0, 0}, {0, 1}, {0, 2}, {0, 11}, {0, 12}, {0, 22}}));
}

// Two writers to two atomics in opposite order: both first stores may end up last (2+2W).
TEST(Interleavings, StoresMayComeBeforeOthersThatWereMadeEarlier) {
    const auto stores = [](Atomic<Value> Two::* first, Atomic<Value> Two::* second) {
        return [=] {
            Two two;
            (two.*first).store(1, relaxed);
            (two.*second).store(2, relaxed);
            return Value{0};
        };
    };
    const auto last = [] {
        Two two;
        join(0);
        join(1);
        return 10 * two.x.load(relaxed) + two.y.load(relaxed);
    };
    const Outcomes found = outcomes({stores(&Two::x, &Two::y), stores(&Two::y, &Two::x), last});
    EXPECT_EQ(found, (Outcomes{{0, 0, 11}, {0, 0, 12}, {0, 0, 21}, {0, 0, 22}}));
}

TEST(Interleavings, TwoReadersMayDisagreeOnTwoWriters) {
    const auto write = [](bool to_x) {
        return [to_x] {
            Two two;
            (to_x ? two.x : two.y).store(1, release);
            return Value{0};
        };
    };
    const auto read = [](bool x_first) {
        return [x_first] {
            Two two;
            const Value first = (x_first ? two.x : two.y).load(acquire);
            return 10 * first + (x_first ? two.y : two.x).load(acquire);
        };
    };
    EXPECT_TRUE(
        outcomes({write(true), write(false), read(true), read(false)}).contains({0, 0, 10, 10}));
}

TEST(Interleavings, ReadModifyWritesPassOnWhatWasReleased) {
    const auto sender = sends(release), receiver = receives(acquire);
    const auto adder = [] {
        Two two;
        return two.y.fetch_add(1, relaxed);
    };
    const auto storer = [] {
        Two two;
        const Value seen = two.y.load(relaxed);
        if (seen == 1) {
            two.y.store(2, relaxed);
        }
        return seen;
    };
    EXPECT_FALSE(outcomes({sender, receiver, adder}).contains({0, 20, 1}));
    EXPECT_TRUE(outcomes({sender, receiver, storer}).contains({0, 20, 1}));
}

TEST(Interleavings, NoAdditionIsLostAndOneExchangeWins) {
    const auto add = [] {
        Two two;
        return two.x.fetch_add(1, relaxed);
    };
    EXPECT_EQ(outcomes({add, add}), (Outcomes{{0, 1}, {1, 0}}));
    const auto exchange = [] {
        Two two;
        Value expected = 0;
        return Value{two.x.compare_exchange_weak(expected, 1, relaxed, relaxed)};
    };
    EXPECT_EQ(outcomes({exchange, exchange}), (Outcomes{{0, 1}, {1, 0}}));
}

TEST(Interleavings, TellsRacesAndDeadlocks) {
    const auto passes = [](std::memory_order order) {
        const auto writer = [order] {
            Two two;
            put(0, 7);
            two.x.store(1, order);
            return Value{0};
        };
        const auto reader = [] {
            Two two;
            two.x.await([](Value x) { return x == 1; });
            return take(0);
        };
        return outcomes({writer, reader});
    };
    EXPECT_EQ(passes(release), (Outcomes{{0, 7}}));
    EXPECT_THROW(passes(relaxed), Violation);
    // A read that the next write does not know of is a race too.
    const auto reads_then_tells = [] {
        Two two;
        const Value value = take(0);
        two.x.store(1, relaxed);
        return value;
    };
    const auto writes_when_told = [] {
        Two two;
        two.x.await([](Value x) { return x == 1; });
        put(0, 1);
        return Value{0};
    };
    EXPECT_THROW(outcomes({reads_then_tells, writes_when_told}), Violation);
    const auto waits = [] {
        Two two;
        two.x.await([](Value x) { return x == 1; });
        return Value{0};
    };
    EXPECT_THROW(outcomes({waits, waits}), Violation);
}

}  // namespace
}  // namespace numatwin::native::interleavings
