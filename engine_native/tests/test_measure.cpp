// The microbenchmarks' parts: cycles are cycles, windows are told apart, amounts are what was done.
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "measure/engine_work.hpp"
#include "measure/team.hpp"
#include "measure/work.hpp"

namespace numatwin::native {
namespace {

const WindowPlan kShort{3, 50'000, 20'000'000};
constexpr double kSome = std::numeric_limits<double>::min();

std::vector<int> allowed_cpus() {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    std::vector<int> cpus;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    }
    return cpus;
}

Work spins(double amount) {
    return [amount](std::int64_t end_ns) {
        while (steady_ns() < end_ns) {
        }
        return amount;
    };
}

void expect_amounts(const Work& work, double least) {
    const Member member{allowed_cpus().front(), work};
    for (const Window& window : run_team({&member, 1}, kShort)) EXPECT_GE(window.amounts[0], least);
}

TEST(RandomCycle, VisitsEveryPlaceOnce) {
    for (const std::size_t size : {2U, 3U, 10U, 1000U}) {
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
            std::vector<std::uint32_t> next(size);
            random_cycle(next, seed);
            std::size_t at = 0, steps = 0;
            do {
                at = next[at];
                ++steps;
            } while (at != 0 && steps <= size);
            EXPECT_EQ(steps, size) << "seed " << seed;
        }
    }
}

TEST(RandomCycle, EveryCycleOfFourComesUp) {
    std::set<std::vector<std::uint32_t>> seen;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        std::vector<std::uint32_t> next(4);
        random_cycle(next, seed);
        seen.insert(next);
    }
    EXPECT_EQ(seen.size(), 6U);  // (4 - 1)! cyclic permutations of four places
}

TEST(Block, CycleOfLinesStaysInItsBytes) {
    Block block(1 << 16, -1, false);
    EXPECT_EQ(block.bytes(), std::size_t{1} << 16);
    const std::size_t lines = block.arrange_cycle(1 << 12, 7);
    ASSERT_EQ(lines, 64U);
    std::set<const std::byte*> seen;
    const std::byte* at = block.data();
    for (std::size_t step = 0; step < lines; ++step) {
        EXPECT_TRUE(seen.insert(at).second);
        EXPECT_EQ((at - block.data()) % static_cast<std::ptrdiff_t>(kLineBytes), 0);
        std::memcpy(&at, at, sizeof at);
    }
    EXPECT_EQ(at, block.data());
    EXPECT_LT(*seen.rbegin() - block.data(), 1 << 12);
}

TEST(Block, SmallPagesAreSmall) {
    const Block block(4 << 20, -1, false);
    EXPECT_EQ(block.huge_bytes(), 0U);
}

TEST(Block, HugeBytesAreWithinItsSize) {
    const Block block((4 << 20) + 1, -1, true);
    EXPECT_EQ(block.bytes(), std::size_t{4 << 20} + kLineBytes);
    EXPECT_LE(block.huge_bytes(), block.bytes());
}

TEST(Block, RefusesWhatCannotBe) {
    EXPECT_THROW(Block(0, -1, false), std::bad_alloc);
    EXPECT_THROW(Block(std::size_t{1} << 60, -1, false), std::bad_alloc);
    EXPECT_THROW(Block(4096, 1000, false), std::system_error);
    Block block(4096, -1, false);
    EXPECT_THROW(block.arrange_cycle(64, 1), std::invalid_argument);
    EXPECT_THROW(block.arrange_cycle(8192, 1), std::invalid_argument);
}

TEST(Team, CountsWhatEachMemberDid) {
    const int cpu = allowed_cpus().front();
    const Member member{cpu, spins(5.0)};
    const auto windows = run_team({&member, 1}, kShort);
    ASSERT_FALSE(windows.empty());
    for (const Window& window : windows) {
        EXPECT_EQ(window.amounts, std::vector<double>{5.0});
        if (window.disturbed) continue;
        EXPECT_GE(window.elapsed_ns[0], 0.9 * 50'000);
    }
}

TEST(Team, EndsAtItsLimit) {
    const Member member{allowed_cpus().front(), spins(1.0)};
    const std::int64_t start = steady_ns();
    const auto windows = run_team({&member, 1}, {1'000'000, 100'000, 5'000'000});
    EXPECT_GE(steady_ns() - start, 5'000'000);
    EXPECT_FALSE(windows.empty());
    EXPECT_LT(windows.size(), 100U);
}

TEST(Team, MembersShareAWindowOrItIsDisturbed) {
    const auto cpus = allowed_cpus();
    if (cpus.size() < 2) GTEST_SKIP() << "one CPU";
    std::atomic<std::int64_t> ends[2];
    std::vector<Member> members;
    for (std::size_t at = 0; at < 2; ++at) {
        members.push_back({cpus[at], [at, &ends](std::int64_t end_ns) {
                               ends[at] = end_ns;
                               while (steady_ns() < end_ns) {
                               }
                               return 1.0;
                           }});
    }
    for (const Window& window : run_team(members, kShort)) {
        ASSERT_EQ(window.amounts.size(), 2U);
        if (window.disturbed) continue;
        for (const double elapsed_ns : window.elapsed_ns) EXPECT_GE(elapsed_ns, 0.9 * 50'000);
    }
    EXPECT_EQ(ends[0], ends[1]);
}

TEST(Team, RefusesSharedAndUnknownCpus) {
    const Work work = [](std::int64_t) { return 0.0; };
    const std::vector<Member> shared{{0, work}, {0, work}};
    EXPECT_THROW(run_team(shared, kShort), std::invalid_argument);
    EXPECT_THROW(run_team({}, kShort), std::invalid_argument);
    const std::vector<Member> unknown{{allowed_cpus().front(), work}, {100'000, work}};
    EXPECT_THROW(run_team(unknown, kShort), std::system_error);
}

TEST(Work, EachDoesSomething) {
    Block block(1 << 20, -1, false), other(1 << 20, -1, false);
    for (const Work& work :
         {random_reads(block, 1 << 10), stream(block, 0, block.bytes(), Traffic::kRead, 0),
          copies(block, other, 64, true), copies(block, other, 1 << 20, false), additions(),
          spaced_reads(block, 1 << 10, kFewAdditions), spaced_reads(block, 1 << 10, kManyAdditions),
          spaced_stream(block, 1 << 10), system_calls(),
          stream(block, 0, block.bytes(), Traffic::kTriad, 1000)}) {
        expect_amounts(work, kSome);
    }
    const std::size_t lines = block.arrange_cycle(1 << 14, 1);
    expect_amounts(chase(block, lines / 2, lines), kSome);
}

TEST(Work, StreamsTouchEveryLineOfTheirArrays) {
    for (const auto& [traffic, arrays] : {std::pair{Traffic::kUpdate, 1},
                                          {Traffic::kCopy, 2},
                                          {Traffic::kTriad, 3},
                                          {Traffic::kNonTemporal, 1},
                                          {Traffic::kNonTemporalCopy, 2}}) {
        if (!has_non_temporal_stores() && traffic >= Traffic::kNonTemporal) continue;
        const Block block(std::size_t{1} << 17, -1, false);
        std::memset(block.data(), 0x77, block.bytes());
        const Work work = stream(block, 0, block.bytes(), traffic, 0);
        // On a busy host a millisecond may be over after the first piece.
        double amount = 0;
        while (amount <= static_cast<double>(block.bytes()))
            amount += work(steady_ns() + 1'000'000);
        // The first of the arrays is what is written, all of it.
        std::size_t written = 0;
        if (traffic == Traffic::kNonTemporalCopy) continue;  // copies what was there before
        for (std::size_t at = 0; at < block.bytes(); at += kLineBytes) {
            std::uint64_t word;
            std::memcpy(&word, block.data() + at, sizeof word);
            written += word != 0x7777777777777777 ? 1 : 0;
        }
        const std::size_t lines = block.bytes() / kLineBytes;
        EXPECT_LE(written, lines / static_cast<std::size_t>(arrays));
        EXPECT_GE(written, lines / static_cast<std::size_t>(arrays) - 2 * 4096 / kLineBytes);
    }
}

TEST(Work, CountersEndAtWhatWasDone) {
    const Block block(4096, -1, false);
    for (const bool exchange : {false, true}) {
        Counter& counter = counter_on(block, 2);
        const Work work = exchange ? cas_increments(counter) : fetch_adds(counter);
        std::vector<Member> members;
        for (const int cpu : allowed_cpus()) {
            if (members.size() < 3) members.push_back({cpu, work});
        }
        // Warm-up windows are in the counter, but not in the amounts.
        double counted = 0.0;
        for (const Window& window : run_team(members, kShort)) {
            counted = std::accumulate(window.amounts.begin(), window.amounts.end(), counted);
        }
        EXPECT_GT(counted, 0.0);
        EXPECT_GE(static_cast<double>(counter.load()), counted);
    }
}

TEST(Work, PingPongEndsWithAClearLine) {
    const auto cpus = allowed_cpus();
    if (cpus.size() < 2) GTEST_SKIP() << "one CPU";
    const Block block(4096, -1, false);
    Counter& counter = counter_on(block, 0);
    const std::vector<Member> members{{cpus[0], ping_pong(counter, true)},
                                      {cpus[1], ping_pong(counter, false)}};
    for (const Window& window : run_team(members, kShort)) {
        EXPECT_GT(window.amounts[0], 0.0);
        EXPECT_EQ(window.amounts[1], 0.0);
    }
    EXPECT_EQ(counter.load(), 0U);
}

TEST(Work, RefusesWhatDoesNotFit) {
    const Block block(1 << 16, -1, false), tiny(1024, -1, false);
    EXPECT_THROW(random_reads(block, 1000), std::invalid_argument);
    EXPECT_THROW(random_reads(block, 2048), std::invalid_argument);
    EXPECT_THROW(spaced_reads(block, 2048, kFewAdditions), std::invalid_argument);
    EXPECT_THROW(spaced_reads(block, 1024, kFewAdditions + 8), std::invalid_argument);
    EXPECT_THROW(stream(block, 64, block.bytes(), Traffic::kRead, 0), std::invalid_argument);
    EXPECT_THROW(stream(block, 8, 8192, Traffic::kRead, 0), std::invalid_argument);
    EXPECT_THROW(stream(tiny, 0, tiny.bytes(), Traffic::kRead, 0), std::invalid_argument);
    EXPECT_THROW(copies(block, tiny, 2048, false), std::invalid_argument);
    EXPECT_THROW(copies(block, tiny, 0, false), std::invalid_argument);
    EXPECT_THROW(chase(block, 1024, 0), std::invalid_argument);
    EXPECT_THROW(counter_on(block, 1024), std::invalid_argument);
}

TEST(EngineWork, RoutesWithAnyNumberOfTargets) {
    for (const std::size_t targets : {1U, 3U, 64U}) {
        for (const std::size_t bytes : {32U, 2064U}) {
            expect_amounts(routing(targets, bytes), 4 * 512.0);
        }
    }
    EXPECT_THROW(routing(0, 2064), std::invalid_argument);
}

TEST(EngineWork, IndexFindsAllItsKeys) {
    Index index(10'000);
    EXPECT_EQ(index.keys(), 10'000U);
    for (const std::size_t batch : {1U, 64U, 10'000U}) {
        for (const Work& work : {index.lookups(batch), index.upserts(batch), index.scans(batch)}) {
            expect_amounts(work, kSome);
        }
        // Every key that is looked up is there: the amount is of whole batches.
        const double found = index.lookups(batch)(0);
        EXPECT_EQ(found, static_cast<double>((256 + batch - 1) / batch * batch));
    }
    EXPECT_EQ(index.keys(), 10'000U);
    EXPECT_THROW(index.lookups(0), std::invalid_argument);
    EXPECT_THROW(index.lookups(10'001), std::invalid_argument);
    EXPECT_THROW(index.scans(0), std::invalid_argument);
}

void ask_all(FabricPair& pair) {
    const auto cpus = allowed_cpus();
    for (const Verb verb :
         {Verb::kGet, Verb::kPut, Verb::kCompareAndSwap, Verb::kFetchAdd, Verb::kMessage}) {
        const std::vector<Member> members{{cpus[0], pair.ask(verb, 8)}, {cpus[1], pair.answer()}};
        for (const Window& window : run_team(members, kShort)) {
            EXPECT_GE(window.amounts[0], 4.0);
            EXPECT_EQ(window.amounts[1], 0.0);
        }
    }
}

TEST(EngineWork, VerbsAreDoneBetweenThreads) {
    if (allowed_cpus().size() < 2) GTEST_SKIP() << "one CPU";
    FabricPair pair("threads", true);
    ask_all(pair);
    EXPECT_THROW(pair.ask(Verb::kGet, 12), std::invalid_argument);
    EXPECT_THROW(pair.ask(Verb::kGet, 2 * FabricPair::region_bytes), std::invalid_argument);
}

#ifdef NUMATWIN_UCX
TEST(EngineWork, VerbsAreDoneOverUcx) {
    if (allowed_cpus().size() < 2) GTEST_SKIP() << "one CPU";
    for (const char* transports : {"posix,self", "tcp,self"}) {
        FabricPair pair(transports, false);
        ask_all(pair);
    }
}
#endif

}  // namespace
}  // namespace numatwin::native
