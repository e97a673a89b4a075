// Tasks over parts of tables: ids packed into bits, and workers that steal, sleep and are woken
// while each row is read once.
#include <gtest/gtest.h>
#include <numaif.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "memory/host.hpp"
#include "systems/tasks/engine.hpp"

namespace numatwin::native::tasks {
namespace {

TEST(PackedIds, MatchAsOneByOne) {
    std::mt19937_64 random(7);
    for (unsigned bits = 1; bits <= PackedIds::bits_max; ++bits) {
        constexpr std::uint64_t ids = 1'000;
        std::vector<std::byte> memory(PackedIds::bytes(ids, bits));
        PackedIds packed(memory.data(), bits);
        const std::uint64_t largest = (std::uint64_t{1} << bits) - 1;
        std::vector<std::uint64_t> plain;
        for (std::uint64_t k = 0; k < ids; ++k) {
            // Both ends of what there is, too.
            plain.push_back(k % 7 == 0 ? largest : k % 5 == 0 ? 0 : random() & largest);
            packed.put(k, plain.back());
        }
        for (const std::uint64_t first : {0, 8, 136}) {
            const std::uint64_t low = random() & largest, high = random() & largest;
            for (const ValueRange range : {ValueRange{low, high}, ValueRange{0, largest / 2},
                                           ValueRange{largest, largest}, ValueRange{}}) {
                std::vector<std::uint64_t> words(16, ~std::uint64_t{0});
                packed.match(first, ids - first, range, words.data());
                for (std::uint64_t k = first; k < (ids + 63) / 64 * 64 - 64; ++k) {
                    const bool inside = k < ids && range.low <= plain[k] && plain[k] <= range.high;
                    ASSERT_EQ(words[(k - first) / 64] >> (k - first) % 64 & 1, inside)
                        << bits << " bits, id " << k << " from " << first;
                }
                const std::uint64_t left = (ids - first) % 64;
                if (left != 0) {
                    EXPECT_EQ(words[(ids - first) / 64] >> left, 0U);
                }
            }
        }
    }
}

TEST(JoinTable, HasRowsOfTheLastJoinAloneInFullLines) {
    JoinTable table(1'000);
    for (std::uint32_t join = 1; join < 4; ++join) {
        const std::uint64_t rows = 1'000 / join, keys = 100 / join;
        table.begin(rows);
        for (std::uint32_t row = 0; row < rows; ++row)
            table.add(table.home(row % keys), row % keys, row);
        for (std::uint64_t key = 0; key < 2 * keys; ++key) {
            std::vector<std::uint32_t> found, expected;
            table.find(table.home(key), key, [&](std::uint32_t row) { found.push_back(row); });
            std::ranges::sort(found);
            for (std::uint64_t row = key; key < keys && row < rows; row += keys)
                expected.push_back(static_cast<std::uint32_t>(row));
            EXPECT_EQ(found, expected);
        }
    }
}

TEST(GroupSums, RangesOfHashesMergeToAllGroups) {
    Buffers buffers;
    std::mt19937_64 random(3);
    std::map<std::uint64_t, std::uint64_t> plain;
    std::vector<GroupSums> local;
    for (int k = 0; k < 3; ++k) {
        GroupSums& table = local.emplace_back(buffers, 1, 1);
        for (int row = 0; row < 5'000; ++row) {
            const std::uint64_t key = random() % 700 * (k + 1), value = random() % 9;
            std::uint64_t* words = table.group(key);
            ++words[0];
            words[2] += value;
            plain[key] += value;
        }
    }
    std::map<std::uint64_t, std::uint64_t> merged;
    constexpr std::uint64_t each = UINT64_MAX / 3;
    for (std::uint64_t m = 0; m < 3; ++m) {
        GroupSums part(buffers, 1, 1);
        for (const GroupSums& table : local)
            part.merge(table, m * each + (m > 0), m == 2 ? UINT64_MAX : (m + 1) * each);
        part.for_each([&](const std::uint64_t* words) {
            EXPECT_TRUE(merged.emplace(words[1], words[2]).second) << "a group in two ranges";
        });
    }
    EXPECT_EQ(merged, plain);
}

TEST(Scheduler, ShortTasksAreTakenTogetherWhileThereAreManyTheOldestFirst) {
    StageSpec spec;
    StageRun stage;
    stage.spec = &spec;
    std::vector<Task> tasks(64);
    Scheduler scheduler({{0}}, 1, -1);
    for (const std::int64_t each_ns : {10, 6'000}) {
        scheduler.put({TaskRange{&stage, tasks}});
        Pace pace(2);
        std::vector<std::size_t> taken;
        for (const Task* at = tasks.data(); at != tasks.data() + tasks.size();) {
            const TaskRange range = *scheduler.next(0, pace);
            EXPECT_EQ(range.tasks.data(), at);
            taken.push_back(range.tasks.size());
            at += taken.back();
            pace.took(range, each_ns * static_cast<std::int64_t>(taken.back()));
        }
        taken.resize(12);
        const std::vector<std::size_t> many{1, 2, 4, 8, 12, 9, 7, 5, 4, 3, 2, 1};
        EXPECT_EQ(taken, each_ns == 10 ? many : std::vector<std::size_t>(12, 1));
    }
}

// A table in so many parts, all on node 0 of two; a worker on each node at least.
EngineSpec setup(std::uint32_t parts, std::uint32_t workers, std::int64_t look_ns,
                 std::uint32_t concurrency = 0) {
    EngineSpec spec;
    spec.concurrency = concurrency;
    TableSpec table;
    ColumnSpec few, many;
    few.bits = 5, few.distinct = 20;
    many.bits = 12, many.distinct = 3'000, many.by_row = true;
    table.columns = {few, many};
    for (std::uint32_t k = 0; k < parts; ++k) {
        PartSpec part;
        part.rows = 1'200 + 64 * k;
        table.parts.push_back(part);
    }
    spec.tables = {table};
    StageSpec scan, agreed, sums, build, probe, merge;
    scan.table = agreed.table = sums.table = build.table = probe.table = 0;
    scan.columns = {1}, scan.smallest = {1'500};
    agreed.kind = Kind::dictionaries;
    agreed.parts_min = 2;
    sums.kind = Kind::aggregate;
    sums.task_class = agreed.task_class = merge.task_class = 1;
    sums.inputs = {0, 1};
    sums.selection = 0, sums.agreed = 1;
    agreed.columns = sums.columns = merge.columns = {0};
    sums.radix = {20};
    sums.sums = merge.sums = {1};
    // The rows that were found, with all that have their value.
    build.kind = Kind::build;
    build.selection = 0, build.inputs = {0};
    probe.kind = Kind::probe;
    probe.built = 3, probe.inputs = {3};
    build.columns = probe.columns = {1};
    merge.kind = Kind::merge;
    merge.inputs = {2};
    QuerySpec query;
    query.stages = {scan, agreed, sums, build, probe, merge};
    query.clients = 3;
    spec.queries = {query};
    spec.classes = 2;
    spec.queue_of = {0, 1};
    spec.distance = {{0, 1}, {1, 0}};
    spec.look_ns = look_ns;
    const std::vector<int> cpus = host_facts().cpus();
    for (std::uint32_t w = 0; w < workers; ++w) {
        spec.worker_node.push_back(w % 2);
        spec.cpu.push_back(cpus[w % cpus.size()]);
        spec.worker_host_node.push_back(-1);
    }
    return spec;
}

std::map<std::uint64_t, std::uint64_t> sums_of(const Answer& answer) {
    std::map<std::uint64_t, std::uint64_t> found;
    for (std::size_t k = 0; k < answer.columns[1].size(); ++k)
        found[answer.columns[1][k]] = answer.columns[2][k];
    return found;
}

void play(std::int64_t look_ns, std::uint32_t concurrency) {
    constexpr std::uint32_t parts = 5;
    TaskEngine engine(setup(parts, 4, look_ns, concurrency));
    const Answer before = engine.answer(0);
    EXPECT_EQ(before.columns.size(), 3U);
    for (int run = 0; run < 3; ++run) {
        engine.begin({});
        for (int k = 0; k < 20; ++k) {
            engine.allow({k % 2 == 0, k % 3 == 0});
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
        engine.stop();
        engine.check();
    }
    const Answer after = engine.answer(0);
    EXPECT_EQ(before.entries, after.entries);
    EXPECT_EQ(sums_of(before), sums_of(after));
    const std::uint64_t answered = engine.answered()[0].first;
    EXPECT_GT(answered, 3U);
    for (std::uint32_t part = 0; part < parts; ++part)
        EXPECT_EQ(engine.rows_scanned(0, part), answered * (1'200 + 64 * part));
    std::uint64_t made = 0, done = 0, stolen = 0;
    for (std::size_t k = 0; k < 2; ++k) {
        made += engine.made(k);
        for (std::size_t worker = 0; worker < 4; ++worker) {
            done += engine.tally(worker)[k];
            stolen += engine.tally(worker)[2 + k];
        }
    }
    EXPECT_EQ(made, done);
    EXPECT_GT(stolen, 0U);
}

TEST(TaskEngine, EachRowIsReadOnceWhileWorkersPollAndSteal) {
    play(-1, 0);
}

TEST(TaskEngine, EachRowIsReadOnceWhileWorkersSleepAndAreWoken) {
    play(0, 1'000);
}

void wait_for(TaskEngine& engine, std::int64_t number) {
    for (bool ended = false; !ended; std::this_thread::yield()) {
        engine.check();
        ended = std::ranges::count(engine.arrived(), number) > 0;
    }
}

// Partitioned and merged while clients ask, which hold tables as they were; parts wait and move.
TEST(TaskEngine, EachRowIsReadOnceWhilePartsArePlaced) {
    TaskEngine engine(setup(1, 4, 1'000, 1'000));
    const Answer before = engine.answer(0);
    engine.begin({});
    std::int64_t number = 0;
    for (int round = 0; round < 4; ++round) {
        for (const std::vector<std::uint64_t>& rows :
             {std::vector<std::uint64_t>{600, 600}, {300, 300, 300, 300}, {1'200}}) {
            std::vector<PartSpec> parts(rows.size());
            for (std::size_t p = 0; p < rows.size(); ++p) {
                parts[p].rows = rows[p];
                parts[p].node = static_cast<int>(p % 2);
            }
            engine.remake(++number, 0, parts);
            wait_for(engine, number);
            engine.swap(0);
            EXPECT_EQ(engine.table(0)->parts(), rows.size());
            for (std::size_t p = 0; p < rows.size(); ++p) {
                engine.hold(0, p);
                engine.move(++number, 0, p, 0);
                wait_for(engine, number);
                engine.place(0, p, round % 2);
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
    }
    engine.hold(0, 0);  // stays so at the end
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    engine.stop();
    engine.check();
    EXPECT_EQ(sums_of(engine.answer(0)), sums_of(before));
}

TEST(TaskEngine, TasksOfAPartThatIsHeldWaitAndAreQueuedWhereItIsPlaced) {
    TaskEngine engine(setup(1, 4, 0));
    engine.allow({false, false});
    engine.hold(0, 0);
    engine.begin({});
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(engine.answered()[0].first, 0U);
    EXPECT_EQ(engine.local_use()[1][0], (LocalUse{0, 0}));
    engine.place(0, 0, 1);
    while (engine.answered()[0].first == 0) std::this_thread::yield();
    engine.stop();
    const auto use = engine.local_use();
    EXPECT_EQ(use[0][0][0], 0);
    EXPECT_GT(use[1][0][0], 0);
    EXPECT_LT(use[1][0][0], use[0][1][0]);  // merges are of no part
}

TEST(TaskEngine, WhereNoPagesCanMoveToIsSaidAndDataStay) {
    TaskEngine engine(setup(1, 2, 0));
    const Answer before = engine.answer(0);
    EXPECT_THROW(
        {
            engine.move(1, 0, 0, 999);
            wait_for(engine, 1);
        },
        std::invalid_argument);
    EXPECT_EQ(engine.table(0)->part(0).column(0).dictionary.values(), 20U);
    EXPECT_TRUE(engine.arrived().empty());
}

TEST(Mapping, MovesToTheNodesOfThisHost) {
    Mapping memory(std::size_t{5} << 20, Placement::on_node(0), false);
    for (std::size_t k = 0; k < memory.bytes(); k += 8) memory.begin()[k] = std::byte(k / 8 % 251);
    for (const HostNode& node : host_facts().nodes) {
        if (!node.may_allocate || node.memory_bytes == 0) continue;
        memory.move(node.id, {});
        for (std::size_t k = 0; k < memory.bytes(); k += std::size_t{1} << 20) {
            int found = -1;
            ASSERT_EQ(
                get_mempolicy(&found, nullptr, 0, memory.begin() + k, MPOL_F_NODE | MPOL_F_ADDR),
                0);
            EXPECT_EQ(found, node.id);
        }
    }
    for (std::size_t k = 0; k < memory.bytes(); k += 8)
        ASSERT_EQ(memory.begin()[k], std::byte(k / 8 % 251));
}

TEST(TaskEngine, NothingIsStolenThatMayNotBe) {
    TaskEngine engine(setup(4, 2, 0));
    engine.allow({false, false});
    for (int k = 0; k < 5; ++k) engine.answer(0);
    // Merges run where their inputs ran.
    EXPECT_EQ(engine.tally(1)[0] + engine.tally(1)[1], 0U);
}

TEST(TaskEngine, ATaskCountsWhileItRuns) {
    EngineSpec spec = setup(1, 1, -1);
    spec.tables[0].parts[0].rows = 2'000'000;
    spec.queries[0].stages.resize(3);  // so many rows of few keys make too many pairs
    TaskEngine engine(std::move(spec));
    engine.begin({});
    bool seen = false;
    for (int look = 0; look < 1'000'000 && !seen; ++look) {
        const auto before = engine.tally(0), after = engine.tally(0);
        const bool ended = before[0] + before[1] != after[0] + after[1];
        seen = !ended && before[4] + before[5] < after[4] + after[5];
    }
    engine.stop();
    EXPECT_TRUE(seen);
}

TEST(TaskEngine, EndsWhileClientsAsk) {
    TaskEngine engine(setup(3, 3, 1'000));
    engine.begin({});
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
}

}  // namespace
}  // namespace numatwin::native::tasks
