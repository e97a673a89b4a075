// Outgoing buffers: what is appended arrives, once and in order, however full the targets are.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <thread>
#include <tuple>
#include <vector>

#include "memory/memory.hpp"
#include "scarce_memory.hpp"
#include "systems/eris/outgoing_buffers.hpp"
#include "systems/eris/router.hpp"

namespace numatwin::native {
namespace {

using Words = std::vector<std::uint64_t>;

// A command as it came: operation, callback, count and payload.
using Arrived = std::tuple<unsigned, unsigned, Words>;

CommandHeader header_of(std::uint8_t operation, std::uint32_t callback = 0,
                        std::uint8_t entry_words = 1) {
    CommandHeader header;
    header.operation = operation;
    header.callback = callback;
    header.entry_words = entry_words;
    return header;
}

// Incoming buffers of several targets.
struct Targets {
    std::vector<std::unique_ptr<IncomingBuffers>> buffers;
    std::vector<IncomingBuffers*> pointers;

    Targets() = default;
    Targets(Memory& memory, std::size_t count, std::size_t bytes) {
        for (std::size_t i = 0; i < count; ++i) add(memory, bytes);
    }
    void add(Memory& memory, std::size_t bytes) {
        buffers.push_back(std::make_unique<IncomingBuffers>(memory, bytes));
        pointers.push_back(buffers.back().get());
    }
    IncomingBuffers* operator[](std::size_t target) const { return pointers[target]; }
};

class Outgoing : public ::testing::Test {
  protected:
    void build(std::size_t targets, std::size_t incoming_bytes, OutgoingSizes sizes) {
        incoming = Targets(memory, targets, incoming_bytes);
        outgoing = std::make_unique<OutgoingBuffers>(memory, incoming.pointers, sizes);
    }
    std::vector<Arrived> take(std::size_t target) {
        std::vector<Arrived> arrived;
        for (const Command command : Commands(incoming[target]->swap())) {
            EXPECT_EQ(command.words.size(), command.header.words());
            arrived.push_back({command.header.operation, command.header.callback,
                               Words(command.words.begin(), command.words.end())});
        }
        return arrived;
    }
    // Adds the keys that come to the first target until nothing is left.
    void drain(Words& arrived) {
        while (!outgoing->flush_all() || !incoming[0]->is_empty()) {
            const Words keys = keys_of(take(0));
            arrived.insert(arrived.end(), keys.begin(), keys.end());
        }
    }
    static Words keys_of(const std::vector<Arrived>& arrived) {
        Words keys;
        for (const Arrived& one : arrived) {
            keys.insert(keys.end(), std::get<2>(one).begin(), std::get<2>(one).end());
        }
        return keys;
    }

    testing::ScarceMemory memory;
    Targets incoming;
    std::unique_ptr<OutgoingBuffers> outgoing;
};

TEST_F(Outgoing, KeysOfOneHeaderTravelUnderOneHeader) {
    build(2, 1024, {256, 256});
    const Words keys{10, 11, 12, 13};
    const std::uint32_t targets[] = {0, 1, 0, 0};
    EXPECT_EQ(outgoing->append_keys(header_of(1, 9), keys, targets), 4u);
    EXPECT_EQ(outgoing->append_keys(header_of(1, 9), keys, targets), 4u);
    EXPECT_EQ(take(0).size(), 0u);
    EXPECT_EQ(outgoing->waiting_bytes(0), 16 + 6 * 8u);
    EXPECT_TRUE(outgoing->flush_all());
    EXPECT_EQ(take(0), (std::vector<Arrived>{{1, 9, {10, 12, 13, 10, 12, 13}}}));
    EXPECT_EQ(take(1), (std::vector<Arrived>{{1, 9, {11, 11}}}));
    EXPECT_TRUE(outgoing->is_empty());
    EXPECT_EQ(outgoing->counts().flushes, 2u);
    EXPECT_EQ(outgoing->counts().flushed_bytes, 64 + 32u);
}

TEST_F(Outgoing, OtherHeadersBeginOtherCommandsInOrder) {
    build(1, 1024, {512, 256});
    const std::uint32_t targets[] = {0, 0};
    outgoing->append_keys(header_of(1), Words{1, 2}, targets);
    outgoing->append_pairs(header_of(2), std::vector<Pair>{{3, 4}, {5, 6}}, targets);
    outgoing->append_keys(header_of(1), Words{7, 8}, targets);
    outgoing->append(0, header_of(1), Words{9});
    outgoing->append(0, header_of(1, 5), Words{10});
    outgoing->append_keys(header_of(1, 5), Words{11, 12}, targets);
    outgoing->flush_all();
    EXPECT_EQ(take(0),
              (std::vector<Arrived>{
                  {1, 0, {1, 2}}, {2, 0, {3, 4, 5, 6}}, {1, 0, {7, 8, 9}}, {1, 5, {10, 11, 12}}}));
}

TEST_F(Outgoing, OlderStampHoldsForMergedEntries) {
    build(1, 1024, {256, 256});
    const std::uint32_t target = 0;
    CommandHeader header = header_of(1);
    header.stamp = stamp_of(16'000);
    outgoing->append_keys(header, Words{1}, &target);
    header.stamp = stamp_of(32'000);
    outgoing->append_keys(header, Words{2}, &target);
    outgoing->flush_all();
    const Commands commands(incoming[0]->swap());
    EXPECT_EQ((*commands.begin()).header.stamp, 1000u);
    EXPECT_EQ((*commands.begin()).words.size(), 2u);
    EXPECT_EQ(elapsed_ns(1000, stamp_of(32'000)), 16'000u);
    EXPECT_EQ(elapsed_ns(0xffff'ffff, 1), 32u);  // wrapped round
}

TEST_F(Outgoing, FullBufferIsFlushedAtOnce) {
    build(2, 1024, {16 + 3 * 8, 64});
    const std::vector<std::uint32_t> targets(7, 1);
    EXPECT_EQ(outgoing->append_keys(header_of(1), Words{1, 2, 3, 4, 5, 6, 7}, targets.data()), 7u);
    EXPECT_EQ(keys_of(take(1)), (Words{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(outgoing->waiting_bytes(1), 24u);
    EXPECT_EQ(outgoing->counts().flushes, 2u);
}

TEST_F(Outgoing, RefusesWhereTheTargetIsFullAndGoesOnAfterItsSwap) {
    build(2, 128, {64, 64});
    const Words keys{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21};
    std::vector<std::uint32_t> targets(keys.size(), 0);
    targets[1] = 1;
    // Two writes of 6 keys fill the incoming buffer, 6 keys stay here.
    const std::size_t taken = outgoing->append_keys(header_of(1), keys, targets.data());
    EXPECT_EQ(taken, 19u);
    EXPECT_FALSE(outgoing->append(0, header_of(1), Words{99}));
    EXPECT_FALSE(outgoing->flush(0));
    EXPECT_TRUE(outgoing->append(1, header_of(1), Words{100}));  // others go on
    EXPECT_GT(outgoing->counts().refused, 0u);
    Words arrived = keys_of(take(0));
    const auto rest = std::span(keys).subspan(taken);
    EXPECT_EQ(outgoing->append_keys(header_of(1), rest, targets.data() + taken), 2u);
    EXPECT_TRUE(outgoing->flush_all());
    for (const std::uint64_t key : keys_of(take(0))) {
        arrived.push_back(key);
    }
    Words expected = keys;
    expected.erase(expected.begin() + 1);
    EXPECT_EQ(arrived, expected);
    EXPECT_EQ(keys_of(take(1)), (Words{2, 100}));
}

TEST_F(Outgoing, AppendAlwaysKeepsWhatFindsNoRoomInOrder) {
    build(1, 128, {64, 64});
    Words expected;
    for (std::uint64_t i = 0; i < 200; ++i) {
        outgoing->append_always(0, header_of(1, i % 2), Words{i});
        expected.push_back(i);
    }
    EXPECT_GT(outgoing->waiting_bytes(0), 1000u);
    EXPECT_FALSE(outgoing->append(0, header_of(1), Words{999, 999, 999, 999, 999, 999}));
    Words arrived;
    drain(arrived);
    EXPECT_EQ(arrived, expected);
    // The chunks serve again.
    const std::size_t bytes = memory.bytes_out();
    for (std::uint64_t i = 0; i < 200; ++i) {
        outgoing->append_always(0, header_of(1, i % 2), Words{i});
    }
    EXPECT_EQ(memory.bytes_out(), bytes);
}

TEST_F(Outgoing, MulticastIsStoredOnceAndArrivesWithTheUnicastCommands) {
    build(3, 1024, {256, 64});
    HolderBitmap holders(3);
    holders.set(0);
    holders.set(2);
    EXPECT_TRUE(outgoing->append_multicast(holders, header_of(7, 1, 2), Words{5, 6}));
    EXPECT_TRUE(outgoing->append(0, header_of(1), Words{1}));
    EXPECT_EQ(outgoing->waiting_bytes(0), 24 + 32u);
    EXPECT_EQ(outgoing->waiting_bytes(1), 0u);
    EXPECT_EQ(outgoing->waiting_bytes(2), 32u);
    EXPECT_TRUE(outgoing->flush_all());
    EXPECT_EQ(take(0), (std::vector<Arrived>{{1, 0, {1}}, {7, 1, {5, 6}}}));
    EXPECT_EQ(take(1), std::vector<Arrived>{});
    EXPECT_EQ(take(2), (std::vector<Arrived>{{7, 1, {5, 6}}}));
    EXPECT_EQ(outgoing->counts().multicast_bytes, 64u);
    EXPECT_EQ(outgoing->counts().flushes, 2u);
}

TEST_F(Outgoing, FullMulticastBufferIsFlushedAndRefusesWhileATargetHoldsIt) {
    build(2, 128, {64, 64});
    const HolderBitmap all = HolderBitmap::all(2);
    std::vector<std::uint32_t> sent;
    for (std::uint32_t i = 0;; ++i) {  // 24 bytes each
        if (!outgoing->append_multicast(all, header_of(7, i), Words{i})) {
            break;
        }
        sent.push_back(i);
        if (i % 2 == 1) {
            take(1);  // 1 keeps up, 0 does not
        }
        ASSERT_LT(i, 100u);
    }
    EXPECT_GE(sent.size(), 4u);
    Words arrived = keys_of(take(0));
    EXPECT_TRUE(outgoing->append_multicast(all, header_of(7, 1000), Words{1000}));
    sent.push_back(1000);
    drain(arrived);
    EXPECT_TRUE(std::equal(arrived.begin(), arrived.end(), sent.begin(), sent.end()));
}

TEST_F(Outgoing, CountOfEntriesDoesNotOverflow) {
    build(1, 2 << 20, {1 << 20, 64});
    const Words keys(100'000, 7);
    const std::vector<std::uint32_t> targets(keys.size(), 0);
    EXPECT_EQ(outgoing->append_keys(header_of(1), keys, targets.data()), keys.size());
    outgoing->append(0, header_of(1), std::span(keys).first(31'000));
    outgoing->append(0, header_of(1), std::span(keys).first(65'535 - 31'000));
    EXPECT_TRUE(outgoing->flush_all());
    std::vector<std::size_t> counts;
    for (const Command command : Commands(incoming[0]->swap())) {
        counts.push_back(command.header.count);
    }
    EXPECT_EQ(counts.front(), 65'535u);
    std::size_t all = 0;
    for (const std::size_t count : counts) {
        all += count;
    }
    EXPECT_EQ(all, keys.size() + 65'535);
}

TEST_F(Outgoing, RefusesBadSizesAndPayloads) {
    build(1, 128, {64, 64});
    EXPECT_EQ(outgoing->most_words(), 6u);
    EXPECT_THROW(OutgoingBuffers(memory, incoming.pointers, {72, 64}), std::invalid_argument);
    EXPECT_THROW(OutgoingBuffers(memory, incoming.pointers, {16, 64}), std::invalid_argument);
    EXPECT_THROW(OutgoingBuffers(memory, incoming.pointers, {65, 62}), std::invalid_argument);
    EXPECT_THROW(outgoing->append(0, header_of(1), Words(7)), std::length_error);
    EXPECT_THROW(outgoing->append(0, header_of(1), Words{}), std::length_error);
    EXPECT_THROW(outgoing->append(0, header_of(1, 0, 2), Words(3)), std::length_error);
    EXPECT_THROW(outgoing->append(0, header_of(1, 0, 0), Words(3)), std::length_error);
    EXPECT_THROW(outgoing->append_multicast(HolderBitmap::all(1), header_of(1), Words(7)),
                 std::length_error);
    EXPECT_TRUE(outgoing->is_empty());
}

TEST_F(Outgoing, MemoryThatFailsLosesNothing) {
    build(1, 128, {64, 64});
    memory.fail_after(0);
    EXPECT_THROW(OutgoingBuffers(memory, incoming.pointers, {64, 64}), std::bad_alloc);
    EXPECT_THROW(IncomingBuffers(memory, 64), std::bad_alloc);
    Words accepted;
    std::uint64_t key = 0;
    EXPECT_THROW(
        for (;; ++key) {
            outgoing->append_always(0, header_of(1), Words{key});
            accepted.push_back(key);
        },
        std::bad_alloc);
    memory.never_fail();
    outgoing->append_always(0, header_of(1), Words{key});
    accepted.push_back(key);
    Words arrived;
    drain(arrived);
    EXPECT_EQ(arrived, accepted);
    outgoing.reset();
    incoming = {};
    EXPECT_EQ(memory.bytes_out(), 0u);
}

// Random appends of all kinds against plain lists, one a target.
TEST(OutgoingBuffers, RandomCommandsArriveAsInPlainLists) {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937_64 random(seed);
        HeapMemory heap;
        const std::size_t targets = 1 + random() % 5;
        const OutgoingSizes sizes{40 + 8 * (random() % 40), 40 + 8 * (random() % 10)};
        Targets incoming;
        for (std::size_t i = 0; i < targets; ++i) {
            incoming.add(heap, sizes.unicast_bytes + sizes.multicast_bytes + 8 * (random() % 100));
        }
        OutgoingBuffers outgoing(heap, incoming.pointers, sizes);
        // (operation, callback, words of an entry), unicast and multicast apart: each in order
        using Entry = std::tuple<unsigned, unsigned, Words>;
        constexpr std::uint8_t multicast = 100;
        std::vector<std::vector<Entry>> sent(2 * targets), arrived(2 * targets);
        const auto take = [&](std::size_t target) {
            for (const Command command : Commands(incoming[target]->swap())) {
                const std::size_t of_entry = command.header.entry_words;
                const bool many = command.header.operation == multicast;
                for (std::size_t i = 0; i < command.words.size(); i += of_entry) {
                    const auto entry = command.words.subspan(i, of_entry);
                    arrived[2 * target + many].push_back({command.header.operation,
                                                          command.header.callback,
                                                          Words(entry.begin(), entry.end())});
                }
            }
        };
        const auto some_header = [&](std::uint8_t entry_words) {
            return header_of(static_cast<std::uint8_t>(random() % 2), random() % 2, entry_words);
        };
        for (int step = 0; step < 400; ++step) {
            const auto target = static_cast<std::uint32_t>(random() % targets);
            const std::size_t count = 1 + random() % 9;
            const bool always = random() % 4 == 0;
            switch (random() % 6) {
                case 0:
                case 1: {
                    const bool pairs = random() % 2 == 0;
                    std::vector<Pair> some(count);
                    Words keys(count);
                    std::vector<std::uint32_t> to(count);
                    for (std::size_t i = 0; i < count; ++i) {
                        keys[i] = random();
                        some[i] = {keys[i], random()};
                        to[i] = static_cast<std::uint32_t>(random() % targets);
                    }
                    const CommandHeader header = some_header(pairs ? 2 : 1);
                    const std::size_t taken = pairs ? outgoing.append_pairs(header, some, to.data())
                                                    : outgoing.append_keys(header, keys, to.data());
                    for (std::size_t i = 0; i < taken; ++i) {
                        const Words entry =
                            pairs ? Words{some[i].key, some[i].value} : Words{keys[i]};
                        sent[2 * to[i]].push_back({header.operation, header.callback, entry});
                    }
                    break;
                }
                case 2: {
                    const auto entry_words = static_cast<std::uint8_t>(1 + random() % 3);
                    const CommandHeader header = some_header(entry_words);
                    const std::size_t entries =
                        1 + random() % std::max<std::size_t>(1, outgoing.most_words() / 3);
                    Words words(std::min(entries, outgoing.most_words() / entry_words) *
                                entry_words);
                    for (std::uint64_t& word : words) {
                        word = random();
                    }
                    if (words.empty()) {
                        break;
                    }
                    bool taken = true;
                    if (always) {
                        outgoing.append_always(target, header, words);
                    } else {
                        taken = outgoing.append(target, header, words);
                    }
                    for (std::size_t i = 0; taken && i < words.size(); i += entry_words) {
                        sent[2 * target].push_back(
                            {header.operation, header.callback,
                             Words(words.begin() + i, words.begin() + i + entry_words)});
                    }
                    break;
                }
                case 3: {
                    HolderBitmap holders(targets);
                    for (std::size_t i = 0; i < targets; ++i) {
                        holders.set(i, random() % 2 == 0);
                    }
                    CommandHeader header = header_of(multicast, random() % 2);
                    const std::uint64_t word = random();
                    if (outgoing.append_multicast(holders, header, Words{word})) {
                        holders.for_each([&](std::size_t i) {
                            sent[2 * i + 1].push_back({multicast, header.callback, {word}});
                        });
                    }
                    break;
                }
                case 4:
                    outgoing.flush(target);
                    break;
                default:
                    take(target);
            }
        }
        while (!outgoing.flush_all()) {
            for (std::size_t target = 0; target < targets; ++target) {
                take(target);
            }
        }
        EXPECT_TRUE(outgoing.is_empty());
        for (std::size_t target = 0; target < targets; ++target) {
            take(target);
        }
        ASSERT_EQ(arrived, sent);
    }
}

TEST(Router, SendsEachKeyToItsOwner) {
    HeapMemory heap;
    const Targets incoming(heap, 5, 1 << 20);
    OutgoingBuffers outgoing(heap, incoming.pointers);
    Router router(outgoing);
    const std::vector<Partition> partitions{{0, 3}, {100, 0}, {200, 4}, {200, 1}, {300, 2}};
    const PartitionTree table(heap, partitions, 0);
    std::mt19937_64 random(1);
    std::vector<Words> expected(5), arrived(5);
    Words keys(2000);
    std::vector<Pair> pairs;
    for (std::uint64_t& key : keys) {
        key = random() % 400;
        expected[table.owner(key)].push_back(key);
    }
    EXPECT_EQ(router.route_keys(table, header_of(1), keys), keys.size());
    for (const std::uint64_t key : keys) {
        pairs.push_back({key, ~key});
    }
    EXPECT_EQ(router.route_pairs(table, header_of(2), pairs), pairs.size());
    EXPECT_TRUE(outgoing.flush_all());
    for (std::size_t target = 0; target < 5; ++target) {
        for (const Command command : Commands(incoming[target]->swap())) {
            if (command.header.entry_words == 1) {
                arrived[target].insert(arrived[target].end(), command.words.begin(),
                                       command.words.end());
            } else {
                for (const Pair& pair : command.pairs()) {
                    EXPECT_EQ(pair.value, ~pair.key);
                    arrived[target].push_back(pair.key);
                }
            }
        }
        Words twice = expected[target];
        twice.insert(twice.end(), expected[target].begin(), expected[target].end());
        EXPECT_EQ(arrived[target], twice) << target;
    }
    EXPECT_TRUE(expected[4].empty());
}

TEST(Router, EachCommandOfManyWritersComesOnceAndInOrder) {
    constexpr std::size_t senders = 3, receivers = 2;
    constexpr std::uint64_t keys_each = 200'000;
    HeapMemory heap;
    const Targets incoming(heap, receivers, 8192);
    const std::uint64_t half = std::uint64_t{1} << 63;
    const std::vector<Partition> partitions{{0, 0}, {half, 1}};
    PartitionTable table(heap, senders, partitions);
    std::vector<std::thread> threads;
    for (std::size_t sender = 0; sender < senders; ++sender) {
        threads.emplace_back([&, sender] {
            OutgoingBuffers outgoing(heap, incoming.pointers, {528, 512});
            Router router(outgoing);
            CommandHeader header = header_of(1);
            header.origin = static_cast<std::uint16_t>(sender);
            std::mt19937_64 random(sender);
            std::vector<Pair> pairs;
            for (std::uint64_t i = 0; i < keys_each; ++i) {
                pairs.push_back({random(), i});
            }
            for (std::span<const Pair> left = pairs; !left.empty();) {
                const std::size_t some = std::min<std::size_t>(left.size(), 1000);
                const std::size_t taken =
                    router.route_pairs(table.read(sender), header, left.first(some));
                left = left.subspan(taken);
                if (taken < some) {
                    std::this_thread::yield();
                }
            }
            while (!outgoing.flush_all()) {
                std::this_thread::yield();
            }
            table.leave(sender);
        });
    }
    std::atomic<std::uint64_t> received{0}, wrong{0}, sum{0};
    for (std::size_t receiver = 0; receiver < receivers; ++receiver) {
        threads.emplace_back([&, receiver] {
            std::uint64_t last[senders] = {};
            while (received < senders * keys_each) {
                std::uint64_t count = 0;
                for (const Command command : Commands(incoming[receiver]->swap())) {
                    for (const Pair& pair : command.pairs()) {
                        std::uint64_t& before = last[command.header.origin];
                        wrong += (pair.key >= half) != (receiver == 1) || pair.value < before;
                        before = pair.value + 1;  // the next must be a later one
                        sum += pair.value;
                        ++count;
                    }
                }
                received += count;
                if (count == 0) {
                    std::this_thread::yield();
                }
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(received, senders * keys_each);
    EXPECT_EQ(sum, senders * (keys_each * (keys_each - 1) / 2));
}

}  // namespace
}  // namespace numatwin::native
