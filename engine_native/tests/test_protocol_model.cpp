// The protocol of incoming buffers, the very code that ships, through all interleavings on weak
// memory; and protocols broken on purpose, each of which must be found out.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "interleavings.hpp"
#include "systems/eris/incoming_protocol.hpp"

namespace numatwin::native {
namespace {

using descriptor::Word;
using interleavings::Explorer;
using interleavings::Kind;
using interleavings::Operation;
using interleavings::Value;
using interleavings::Violation;

// The protocol's atomics, in the order in which it makes them.
constexpr int writable = 0;

struct ModelPlatform {
    template <class T>
    using Atomic = interleavings::Atomic<T>;
    static bool is_open(Word word) { return descriptor::is_active(word); }
    template <class T, class Done>
    static void wait_acquire(const Atomic<T>& atomic, Done done) {
        atomic.await(done);
    }
    static void pause(const char*) {}
    template <class T>
    static void prefetch_to_write(const T&) {}
};

// Sanitizers watch the explorer, not the model: some fewer states will do.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool slow_build = true;
#else
constexpr bool slow_build = false;
#endif

struct Sizes {
    std::size_t writers = 2, writes = 2, swaps = 2;
    std::uint64_t room = 6;    // of a buffer, in words
    std::uint64_t words = 1;   // of a command
    std::size_t attempts = 1;  // of a write that is refused
};

// A writer's commands are numbers that count up: 1, 2, ... with the writer in the higher bits.
// Returns a bit for each that was accepted.
template <class Protocol>
Value write_all(std::size_t writer, const Sizes& sizes) {
    Protocol protocol(8 * sizes.room);
    Value accepted = 0;
    std::uint64_t retries = 0;
    for (std::size_t k = 0; k < sizes.writes; ++k) {
        for (std::size_t attempt = 0; attempt < sizes.attempts; ++attempt) {
            interleavings::merge(accepted << 16 | k << 8 | attempt);
            const bool written = protocol.write(
                8 * sizes.words,
                [&](std::uint32_t buffer, std::uint64_t offset) {
                    for (std::size_t word = 0; word < sizes.words; ++word) {
                        interleavings::put(buffer * sizes.room + offset / 8 + word,
                                           writer << 8 | (k + 1));
                    }
                },
                retries);
            if (written) {
                accepted |= Value{1} << k;
                break;
            }
        }
    }
    interleavings::merge(accepted << 16 | 0xffff);
    return accepted;
}

// Swaps while the writers write, then takes what is left. What came must be what was accepted, each
// command whole and once, in the order of its writer. Returns how many came before the writers'
// end.
template <class Protocol>
Value take_all(const Sizes& sizes) {
    Protocol protocol(8 * sizes.room);
    std::vector<Value> taken;
    const auto swap = [&] {
        const auto [buffer, bytes] = protocol.swap();
        for (std::uint64_t at = 0; at < bytes / 8; at += sizes.words) {
            const Value command = interleavings::take(buffer * sizes.room + at);
            for (std::size_t word = 1; word < sizes.words; ++word) {
                if (interleavings::take(buffer * sizes.room + at + word) != command) {
                    throw Violation("a command was torn");
                }
            }
            taken.push_back(command);
        }
    };
    for (std::size_t i = 0; i < sizes.swaps; ++i) {
        swap();
        Value state =
            1 << 6 | i << 1 | protocol.owned();  // and what was taken, five bits a command
        for (const Value command : taken) {
            state = state << 5 | (command >> 8) << 3 | (command & 0xff);
        }
        interleavings::merge(state);
    }
    const std::size_t early = taken.size();
    std::vector<Value> accepted;
    for (std::size_t writer = 0; writer < sizes.writers; ++writer) {
        accepted.push_back(interleavings::join(writer));
    }
    swap();
    swap();
    for (std::size_t writer = 0; writer < sizes.writers; ++writer) {
        std::vector<Value> expected, came;
        for (std::size_t k = 0; k < sizes.writes; ++k) {
            if (accepted[writer] >> k & 1) {
                expected.push_back(k + 1);
            }
        }
        for (const Value command : taken) {
            if (command >> 8 == writer) {
                came.push_back(command & 0xff);
            }
        }
        if (came != expected) {
            std::vector<Value> sorted = came;
            std::sort(sorted.begin(), sorted.end());
            throw Violation(sorted == expected ? "commands came out of order"
                                               : "a command was lost, came twice or from nowhere");
        }
    }
    return early;
}

template <class Protocol>
Explorer explore(const Sizes& sizes, Explorer::Change change = {}) {
    std::vector<Explorer::Body> threads;
    for (std::size_t writer = 0; writer < sizes.writers; ++writer) {
        threads.push_back([=] { return write_all<Protocol>(writer, sizes); });
    }
    threads.push_back([=] { return take_all<Protocol>(sizes); });
    Explorer explorer(std::move(threads), std::move(change));
    explorer.run();
    return explorer;
}

using Shipped = IncomingProtocol<ModelPlatform>;

// All is right in each state; and the model does get to where it is interesting.
void expect_right(const Sizes& sizes) {
    const Explorer explored = explore<Shipped>(sizes);
    const Value all = (Value{1} << sizes.writes) - 1;
    bool all_accepted_and_early = false;
    for (const auto& [outcome, times] : explored.outcomes()) {
        bool all_accepted = true;
        for (std::size_t writer = 0; writer < sizes.writers; ++writer) {
            all_accepted &= outcome[writer] == all;
        }
        all_accepted_and_early |= all_accepted && outcome.back() == sizes.writers * sizes.writes;
    }
    EXPECT_TRUE(all_accepted_and_early);
    std::printf("%zu writers, %zu writes each, %zu swaps: %zu states, %zu outcomes\n",
                sizes.writers, sizes.writes, sizes.swaps, explored.states(),
                explored.outcomes().size());
}

TEST(ProtocolModel, TwoWritersOfTwoCommandsAndTwoSwaps) {
    expect_right({.writers = 2, .writes = 2, .swaps = slow_build ? 1 : 2});
}

TEST(ProtocolModel, OneWriterAndManySwaps) {
    expect_right({.writers = 1, .writes = 4, .swaps = 5, .attempts = 2});
}

TEST(ProtocolModel, ThreeWritersAndASwap) {
    expect_right({.writers = 3, .writes = 1, .swaps = 1});
}

TEST(ProtocolModel, CommandsOfTwoWordsAreNotTorn) {
    expect_right({.writers = 2, .writes = 1, .swaps = 3, .words = 2});
}

TEST(ProtocolModel, BuffersThatAreOftenFull) {
    expect_right(
        {.writers = 2, .writes = slow_build ? 1 : 2, .swaps = 2, .room = slow_build ? 1 : 2});
}

// -- broken protocols

// What the model says of a protocol: the first line of the violation, or that it is right.
template <class Protocol>
std::string verdict(Explorer::Change change = {}) {
    // Small ones first: a violation has few steps then.
    for (const Sizes& sizes : {Sizes{.writers = 1, .writes = 2, .swaps = 3},
                               Sizes{.writers = 2, .writes = 2, .swaps = 2}}) {
        try {
            explore<Protocol>(sizes, change);
        } catch (const Violation& violation) {
            const std::string text = violation.what();
            return text.substr(0, text.find('\n'));
        }
    }
    return "right";
}

// An order weakened, of one kind of operation on the descriptors.
std::string with_relaxed(Kind kind, std::memory_order from) {
    return verdict<Shipped>([=](Operation& operation) {
        if (operation.kind == kind && operation.place != writable && operation.order == from) {
            operation.order = std::memory_order_relaxed;
        }
    });
}

TEST(ProtocolModel, EachOrderIsNeeded) {
    EXPECT_EQ(with_relaxed(Kind::store, std::memory_order_release), "data race");     // S2
    EXPECT_EQ(with_relaxed(Kind::exchange, std::memory_order_acquire), "data race");  // W3
    EXPECT_EQ(with_relaxed(Kind::add, std::memory_order_release), "data race");       // W5
    EXPECT_EQ(with_relaxed(Kind::await, std::memory_order_acquire), "data race");     // S4
}

struct WithoutActiveCheck : ModelPlatform {
    static bool is_open(Word) { return true; }
};
TEST(ProtocolModel, FindsAMissingCheckOfTheActiveBit) {
    EXPECT_NE(verdict<IncomingProtocol<WithoutActiveCheck>>(), "right");
}

struct WithoutWaiting : ModelPlatform {
    template <class T, class Done>
    static void wait_acquire(const Atomic<T>& atomic, Done) {
        atomic.load(std::memory_order_acquire);
    }
};
TEST(ProtocolModel, FindsAnOwnerThatDoesNotWaitForWriters) {
    EXPECT_EQ(verdict<IncomingProtocol<WithoutWaiting>>(), "data race");
}

// The first steps of a swap in another way: they return the word of the buffer that was active.
struct OtherSwap : Shipped {
    using Shipped::Shipped;
    template <class Steps>
    Taken swap_by(Steps steps) {
        if (is_empty()) {
            return {owned_, 0};
        }
        const std::uint32_t old = owned_;
        const Word word = steps(old);
        await_writers(old);
        owned_ = 1 - old;
        return {old, descriptor::offset(word)};
    }
};

struct ActivatesFirst : OtherSwap {
    using OtherSwap::OtherSwap;
    Taken swap() {
        return swap_by([this](std::uint32_t old) {
            activate(1 - old);
            publish(1 - old);
            return deactivate(old);
        });
    }
};
TEST(ProtocolModel, FindsABufferThatIsActiveBeforeItIsPublished) {
    EXPECT_EQ(verdict<ActivatesFirst>(), "commands came out of order");
}

struct TakesTheOffsetFirst : OtherSwap {
    using OtherSwap::OtherSwap;
    Taken swap() {
        return swap_by([this](std::uint32_t old) {
            publish(1 - old);
            activate(1 - old);
            const Word word = descriptor_[old].word.load(std::memory_order_relaxed);
            deactivate(old);
            return word;
        });
    }
};
TEST(ProtocolModel, FindsAnOffsetThatWasNotFinal) {
    EXPECT_EQ(verdict<TakesTheOffsetFirst>(), "a command was lost, came twice or from nowhere");
}

struct DeactivatesByAStore : OtherSwap {
    using OtherSwap::OtherSwap;
    Taken swap() {
        return swap_by([this](std::uint32_t old) {
            publish(1 - old);
            activate(1 - old);
            const Word word = descriptor_[old].word.load(std::memory_order_relaxed);
            descriptor_[old].word.store(word - descriptor::active_bit, std::memory_order_relaxed);
            return word;
        });
    }
};
TEST(ProtocolModel, FindsADeactivationThatIsNotOneStep) {
    EXPECT_NE(verdict<DeactivatesByAStore>(), "right");
}

// An exchange that is a load and a store.
struct TornExchange : ModelPlatform {
    template <class T>
    struct Atomic : interleavings::Atomic<T> {
        using interleavings::Atomic<T>::Atomic;
        bool compare_exchange_weak(T& expected, T value, std::memory_order order,
                                   std::memory_order) {
            const T found = this->load(order);
            if (found != expected) {
                expected = found;
                return false;
            }
            this->store(value, std::memory_order_relaxed);
            return true;
        }
    };
};
TEST(ProtocolModel, FindsAnExchangeThatIsNotOneStep) {
    EXPECT_NE(verdict<IncomingProtocol<TornExchange>>(), "right");
}

}  // namespace
}  // namespace numatwin::native
