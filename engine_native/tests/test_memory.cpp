// Size classes, managers and their caches, limits, hosts without memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "memory/host.hpp"
#include "memory/manager.hpp"
#include "memory/mapping.hpp"
#include "memory/memory.hpp"

namespace numatwin::native {
namespace {

struct Held {
    std::byte* block;
    std::size_t bytes;
};

/// Writes a block full and so finds two that overlap.
Held hold(Memory& memory, std::size_t bytes, std::uint8_t mark) {
    auto* block = static_cast<std::byte*>(memory.allocate(bytes));
    std::memset(block, mark, bytes);
    return {block, bytes};
}

void check_and_release(Memory& memory, const Held& held, std::uint8_t mark) {
    const bool whole = std::all_of(held.block, held.block + held.bytes,
                                   [&](std::byte byte) { return byte == std::byte{mark}; });
    ASSERT_TRUE(whole) << "a block of " << held.bytes << " bytes was written by another's owner";
    memory.release(held.block, held.bytes);
}

std::string message_of(MemoryCache& cache, std::size_t bytes) {
    try {
        cache.allocate(bytes);
    } catch (const std::bad_alloc& error) {
        return error.what();
    }
    return "";
}

TEST(SizeClasses, EachIsTheLeastThatFits) {
    for (std::size_t c = 0; c < size_classes::count; ++c) {
        const std::size_t bytes = size_classes::bytes(c);
        EXPECT_EQ(size_classes::of(bytes), c);
        EXPECT_EQ(size_classes::of(bytes + 1), c + 1);
        EXPECT_EQ(bytes % size_classes::alignment(bytes), 0u);
    }
    EXPECT_EQ(size_classes::bytes(size_classes::count - 1), size_classes::largest);
    EXPECT_EQ(size_classes::bytes(size_classes::of(2080)), 2112u);
}

TEST(Memory, BlocksAreAlignedAndApart) {
    MemoryManager manager({});
    MemoryCache& cache = manager.add_cache();
    std::mt19937_64 random(1);
    std::vector<Held> held;
    for (int i = 0; i < 8000; ++i) {
        const std::size_t bytes = 1 + random() % (random() % 300 == 0 ? 9 << 20 : 3000);
        if (bytes > 4096 && held.size() > 4000) continue;
        held.push_back(hold(cache, bytes, static_cast<std::uint8_t>(held.size())));
        const auto address = reinterpret_cast<std::uintptr_t>(held.back().block);
        EXPECT_EQ(address % size_classes::alignment(bytes), 0u) << bytes;
    }
    for (std::size_t i = 0; i < held.size(); ++i) {
        check_and_release(cache, held[i], static_cast<std::uint8_t>(i));
    }
    EXPECT_EQ(manager.use().used_bytes, 0u);
}

TEST(Memory, UseIsExact) {
    MemoryManager manager({.huge_pages = false});
    MemoryCache& cache = manager.add_cache();
    EXPECT_EQ(manager.use().reserved_bytes, 0u);
    void* small = cache.allocate(100);            // 128
    void* middle = cache.allocate(100 << 10);     // 112 KiB
    void* large = cache.allocate((5 << 20) + 1);  // and a page
    MemoryUse use = manager.use();
    EXPECT_EQ(use.used_bytes, 128u + (112 << 10) + (5 << 20) + host_facts().page_bytes);
    EXPECT_EQ(use.reserved_bytes, (2u << 20) + (5 << 20) + host_facts().page_bytes);
    cache.release(large, (5 << 20) + 1);
    use = manager.use();
    EXPECT_EQ(use.used_bytes, 128u + (112 << 10));
    EXPECT_EQ(use.reserved_bytes, 2u << 20) << "a mapping of its own goes back to the host";
    cache.release(small, 100);
    cache.release(middle, 100 << 10);
    EXPECT_EQ(manager.use().used_bytes, 0u);
    EXPECT_EQ(manager.use().huge_bytes + manager.use().transparent_bytes, 0u);
}

// What is freed is used again: by the same cache, and by another once a magazine is full.
TEST(Memory, IsUsedAgain) {
    MemoryManager manager({});
    MemoryCache &one = manager.add_cache(), &other = manager.add_cache();
    const auto blocks = [&](MemoryCache& from) {
        std::vector<void*> all;
        for (int i = 0; i < 100000; ++i) all.push_back(from.allocate(192));
        return all;
    };
    std::size_t reserved = 0;
    for (int turn = 0; turn < 5; ++turn) {
        for (void* block : blocks(one)) other.release(block, 192);
        if (turn == 0) reserved = manager.use().reserved_bytes;
        // A cache keeps up to two magazines for itself.
        EXPECT_LE(manager.use().reserved_bytes, reserved + (2 << 20));
    }
    EXPECT_EQ(manager.use().used_bytes, 0u);
}

TEST(Memory, NothingOfARunIsLost) {
    MemoryManager manager({.limit_bytes = 2 << 20, .huge_pages = false});
    MemoryCache& cache = manager.add_cache();
    std::size_t got = 0;
    EXPECT_THROW(
        for (;;) {
            cache.allocate(30 << 10);
            got += 30 << 10;
        },
        OutOfMemory);
    EXPECT_THROW(
        for (;;) {
            cache.allocate(16);
            got += 16;
        },
        OutOfMemory);
    // 30 KiB are 32 KiB of their class: each wastes 2.
    EXPECT_EQ(manager.use().used_bytes, 2u << 20);
    EXPECT_GE(got, (2u << 20) / 32 * 30);
}

TEST(Memory, LimitIsAClearError) {
    MemoryManager manager({.limit_bytes = 8 << 20, .huge_pages = false, .object = "orders"});
    MemoryCache& cache = manager.add_cache();
    void* kept = cache.allocate(64);
    EXPECT_EQ(message_of(cache, 7 << 20),
              "no memory left: the limit is 8 MiB (orders on this host has 2 MiB)");
    // Nothing was lost by it.
    for (int i = 0; i < 3; ++i) EXPECT_NE(cache.allocate(1 << 20), nullptr);
    EXPECT_LE(manager.use().reserved_bytes, 8u << 20);
    cache.release(kept, 64);
    EXPECT_NE(message_of(cache, 9 << 20), "");
    EXPECT_EQ(manager.use().used_bytes, 3u << 20);
}

TEST(Memory, ALimitIsUsedUpToItsEnd) {
    MemoryManager manager({.limit_bytes = (3 << 20) + 100, .huge_pages = false});
    MemoryCache& cache = manager.add_cache();
    std::size_t blocks = 0;
    EXPECT_THROW(for (;; ++blocks) cache.allocate(64 << 10), OutOfMemory);
    EXPECT_EQ(blocks, 48u);
}

TEST(Memory, MoreThanTheHostHasIsAClearError) {
    MemoryManager manager({});
    MemoryCache& cache = manager.add_cache();
    const std::string message = message_of(cache, std::size_t{1} << 44);
    EXPECT_EQ(message.rfind("no memory left: 16777216 MiB more wanted, and ", 0), 0u) << message;
    EXPECT_NE(message.find(" can spare "), std::string::npos) << message;
    EXPECT_EQ(message_of(cache, SIZE_MAX / 2).rfind("no memory left: ", 0), 0u);
    EXPECT_EQ(manager.use().reserved_bytes, 0u);
}

TEST(Memory, ANodeThatDoesNotExistIsAnError) {
    MemoryManager manager({.placement = Placement::on_node(4000)});
    EXPECT_THROW(manager.add_cache().allocate(64), std::invalid_argument);
}

TEST(Memory, EveryPlacementGivesMemory) {
    for (const Placement placement : {Placement::anywhere(), Placement::interleaved(),
                                      Placement::on_node(host_facts().nodes.front().id)}) {
        MemoryManager manager({.placement = placement});
        MemoryCache& cache = manager.add_cache();
        for (const std::size_t bytes : {64u, 3u << 20, 20u << 20}) {
            check_and_release(cache, hold(cache, bytes, 7), 7);
        }
        const MemoryUse use = manager.use();
        EXPECT_EQ(use.refusal,
                  placement.kind == Placement::Kind::anywhere ? "" : host_facts().binding_refused);
        if (host_facts().transparent_huge_pages != "never") {
            EXPECT_EQ(use.huge_bytes + use.transparent_bytes, use.reserved_bytes);
        }
    }
}

/// Flags of the kernel's for the mapping that holds `at`, as /proc/self/smaps tells them.
std::string flags_of(const std::byte* at) {
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    std::ifstream smaps("/proc/self/smaps");
    bool here = false;
    for (std::string line; std::getline(smaps, line);) {
        std::uintptr_t begin = 0, end = 0;
        if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2)
            here = begin <= address && address < end;
        if (here && line.starts_with("VmFlags:")) return line + " ";
    }
    return "";
}

// "nh": the kernel gives no huge pages, "hg": it shall.
TEST(Mapping, PagesAreAsSmallAsWanted) {
    if (host_facts().transparent_huge_pages == "never") GTEST_SKIP() << "no huge pages here";
    const Mapping small(8u << 20, Placement::anywhere(), false);
    EXPECT_NE(flags_of(small.begin()).find(" nh "), std::string::npos) << flags_of(small.begin());
    const Mapping large(8u << 20, Placement::anywhere(), true);
    if (large.pages() == Pages::transparent) {
        EXPECT_NE(flags_of(large.begin()).find(" hg "), std::string::npos)
            << flags_of(large.begin());
    }
}

// Threads hand blocks to each other through a common shelf, so that most are freed by a thread that
// did not allocate them.
TEST(Memory, ThreadsFreeEachOthersBlocks) {
    MemoryManager manager({});
    std::mutex mutex;
    std::vector<std::pair<Held, std::uint8_t>> shelf;
    const auto work = [&](std::uint64_t seed) {
        MemoryCache& cache = manager.add_cache();
        std::mt19937_64 random(seed);
        for (int i = 0; i < 5000; ++i) {
            const std::size_t bytes = 1 + random() % (i % 500 == 0 ? 5 << 20 : 600);
            const auto mark = static_cast<std::uint8_t>(random());
            std::pair<Held, std::uint8_t> taken{hold(cache, bytes, mark), mark};
            {
                const std::scoped_lock lock(mutex);
                shelf.push_back(taken);
                std::swap(shelf[random() % shelf.size()], shelf.back());
                if (shelf.size() < 500) continue;
                taken = shelf.back();
                shelf.pop_back();
            }
            check_and_release(cache, taken.first, taken.second);
        }
    };
    std::vector<std::thread> threads;
    for (std::uint64_t seed = 1; seed <= 3; ++seed) threads.emplace_back(work, seed);
    for (std::thread& thread : threads) thread.join();
    MemoryCache& cache = manager.add_cache();
    for (const auto& [held, mark] : shelf) check_and_release(cache, held, mark);
    EXPECT_EQ(manager.use().used_bytes, 0u);
}

// A memory that changes hands: what one thread allocated and filled the next one uses.
TEST(Memory, ACacheChangesThreads) {
    MemoryManager manager({});
    MemoryCache& cache = manager.add_cache();
    std::vector<Held> held;
    for (int turn = 0; turn < 4; ++turn) {
        std::thread([&] {
            for (int i = 0; i < 100; ++i) held.push_back(hold(cache, 320, 9));
        }).join();
    }
    for (const Held& each : held) check_and_release(cache, each, 9);
    EXPECT_EQ(manager.use().used_bytes, 0u);
}

/// A saved part of /proc and /sys.
class Available : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = testing::TempDir() + "available-XXXXXX";
        root_ = mkdtemp(name.data());
        put("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable:     800 kB\n");
    }
    void TearDown() override { std::filesystem::remove_all(root_); }

    void put(const std::string& path, const std::string& text) {
        const std::filesystem::path file = root_ / path;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << text;
    }
    KernelFiles files() const { return {root_ / "proc", root_ / "sys"}; }

    std::filesystem::path root_;
};

TEST_F(Available, IsWhatTheHostSays) {
    EXPECT_EQ(available_bytes(files()), 800u * 1024);
    EXPECT_EQ(available_bytes({root_ / "nothing", root_ / "nothing"}), UINT64_MAX);
}

TEST_F(Available, ACgroupOfVersion2LeavesLess) {
    put("proc/self/cgroup", "0::/a/b\n");
    put("sys/fs/cgroup/a/b/memory.max", "max\n");
    put("sys/fs/cgroup/a/b/memory.current", "900000\n");
    EXPECT_EQ(available_bytes(files()), 800u * 1024);
    // The one around it has a limit: 500,000 - (300,000 - 100,000 of droppable cache).
    put("sys/fs/cgroup/a/memory.max", "500000\n");
    put("sys/fs/cgroup/a/memory.current", "300000\n");
    put("sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 100000\n");
    EXPECT_EQ(available_bytes(files()), 300000u);
    put("sys/fs/cgroup/a/memory.current", "900000\n");
    EXPECT_EQ(available_bytes(files()), 0u) << "more than the limit is used: nothing is left";
}

TEST_F(Available, ACgroupOfVersion1LeavesLess) {
    put("proc/self/cgroup", "9:cpu:/x\n4:hugetlb,memory:/a\n0::/\n");
    put("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "400000\n");
    put("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "300000\n");
    put("sys/fs/cgroup/memory/a/memory.stat", "inactive_file 5\ntotal_inactive_file 50000\n");
    EXPECT_EQ(available_bytes(files()), 150000u);
}

TEST_F(Available, OfANode) {
    put("sys/devices/system/node/node3/meminfo",
        "Node 3 MemTotal: 900 kB\nNode 3 MemFree:  100 kB\nNode 3 Active(file): 30 kB\n"
        "Node 3 Inactive(file): 50 kB\nNode 3 SReclaimable: 20 kB\n");
    EXPECT_EQ(node_available_bytes(3, files()), (100u + 50) * 1024);
    EXPECT_EQ(node_available_bytes(4, files()), UINT64_MAX);
}

TEST_F(Available, ANodeAloneHasWhatTheHostHas) {
    put("sys/devices/system/node/node0/meminfo", "Node 0 MemFree: 100 kB\n");
    EXPECT_EQ(node_available_bytes(0, files()), UINT64_MAX);
    put("sys/devices/system/node/node1/meminfo", "Node 1 MemFree: 200 kB\n");
    EXPECT_EQ(node_available_bytes(0, files()), 100u * 1024);
}

TEST(Host, HasNodesWithTheCpusThatMayBeUsed) {
    const HostFacts host = host_facts();
    ASSERT_FALSE(host.nodes.empty());
    EXPECT_FALSE(host.cpus().empty());
    EXPECT_GT(host.available_bytes, 0u);
    EXPECT_EQ(host.page_bytes % 4096, 0u);
    for (const HostNode& node : host.nodes) EXPECT_LE(node.free_bytes, node.memory_bytes);
}

TEST(Host, PinsAThreadAndStillSeesAllCpus) {
    const std::vector<int> cpus = host_facts().cpus();
    for (const int cpu : cpus) {
        std::thread([&] {
            pin_thread(cpu);
            EXPECT_EQ(sched_getcpu(), cpu);
            EXPECT_EQ(host_facts().cpus(), cpus);
        }).join();
    }
}

TEST(Host, ACpuThatIsForbiddenIsAClearError) {
    for (const int cpu : {-1, 4095, 100000}) {
        try {
            pin_thread(cpu);
            ADD_FAILURE() << cpu << " was allowed";
        } catch (const std::invalid_argument& error) {
            const std::string start =
                "CPU " + std::to_string(cpu) + " is not one that this process may use (";
            EXPECT_EQ(std::string(error.what()).rfind(start, 0), 0u) << error.what();
        }
    }
}

}  // namespace
}  // namespace numatwin::native
