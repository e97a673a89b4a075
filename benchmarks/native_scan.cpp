// Column scans against the fastest plain read of the same data; one line a measurement:
// case, threads, selectivity, seconds of the scan, seconds of the plain read, matches, checksum.
//
//   native_scan MiB REPEAT THREADS...
//
// Each thread owns a column, on a CPU of its own. A turn plays each contender once, in an order
// that rotates; all threads start a play together, and it ends with the last. The median of the
// turns counts for each, so that what else the host does hits all alike.
#include <algorithm>
#include <barrier>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "memory/host.hpp"
#include "memory/manager.hpp"
#include "storage/scan.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace {

using namespace numatwin::native;
using Clock = std::chrono::steady_clock;

struct Answer {
    std::uint64_t matches = 0;
    std::uint64_t check = 0;
};

// The plain read: every entry is loaded and or-ed to one of several accumulators.
using Read = std::uint64_t (*)(const std::uint64_t* data, std::size_t entries);

std::uint64_t read_plain(const std::uint64_t* data, std::size_t entries) {
    std::uint64_t all[8] = {};
    for (std::size_t i = 0; i + 8 <= entries; i += 8) {
        for (std::size_t v = 0; v < 8; ++v) all[v] |= data[i + v];
    }
    return all[0] | all[1] | all[2] | all[3] | all[4] | all[5] | all[6] | all[7];
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) std::uint64_t read_avx2(const std::uint64_t* data,
                                                        std::size_t entries) {
    __m256i all[8];
    for (__m256i& lanes : all) lanes = _mm256_setzero_si256();
    for (std::size_t i = 0; i + 32 <= entries; i += 32) {
        for (std::size_t v = 0; v < 8; ++v) {
            const auto* from = reinterpret_cast<const __m256i*>(data + i + 4 * v);
            all[v] = _mm256_or_si256(all[v], _mm256_loadu_si256(from));
        }
    }
    for (std::size_t v = 1; v < 8; ++v) all[0] = _mm256_or_si256(all[0], all[v]);
    alignas(32) std::uint64_t each[4];
    _mm256_store_si256(reinterpret_cast<__m256i*>(each), all[0]);
    return each[0] | each[1] | each[2] | each[3];
}

template <std::size_t Accumulators, std::size_t AheadBytes>
__attribute__((target("avx512f"))) std::uint64_t read_avx512(const std::uint64_t* data,
                                                             std::size_t entries) {
    constexpr std::size_t group = 8 * Accumulators;
    __m512i all[Accumulators];
    for (__m512i& lanes : all) lanes = _mm512_setzero_si512();
    for (std::size_t i = 0; i + group <= entries; i += group) {
        for (std::size_t v = 0; v < Accumulators; ++v) {
            const std::uint64_t* from = data + i + 8 * v;
            if (AheadBytes > 0) __builtin_prefetch(from + AheadBytes / 8);
            all[v] = _mm512_or_si512(all[v], _mm512_loadu_si512(from));
        }
    }
    for (std::size_t v = 1; v < Accumulators; ++v) all[0] = _mm512_or_si512(all[0], all[v]);
    alignas(64) std::uint64_t each[8];
    _mm512_store_si512(each, all[0]);
    return each[0] | each[1] | each[2] | each[3] | each[4] | each[5] | each[6] | each[7];
}
#endif

struct Reader {
    const char* name;
    Read read;
};

std::vector<Reader> readers() {
    std::vector<Reader> found{{"scalar", read_plain}};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) found.push_back({"avx2", read_avx2});
    if (__builtin_cpu_supports("avx512f")) {
        found.push_back({"avx512x8", read_avx512<8, 0>});
        found.push_back({"avx512x8-ahead1k", read_avx512<8, 1024>});
        found.push_back({"avx512x8-ahead4k", read_avx512<8, 4096>});
        found.push_back({"avx512x16", read_avx512<16, 0>});
    }
#endif
    return found;
}

/// One thread's column and the results it uses again and again.
struct Owner {
    MemoryManager manager;
    Column column;
    std::vector<ScanResult> results{8};

    Owner(int node, std::size_t entries, std::uint64_t seed)
        : manager({.placement = Placement::on_node(node), .object = "the column"}),
          column(manager.add_cache()) {
        // Multiples of an odd number run through all residues: as many in a range as it is wide.
        std::vector<std::uint64_t> some(1 << 16);
        std::uint64_t value = seed;
        for (std::size_t done = 0; done < entries; done += some.size()) {
            for (std::uint64_t& entry : some) entry = value += 0x9e37'79b9'7f4a'7c15;
            column.append({some.data(), std::min(some.size(), entries - done)});
        }
    }
};

struct Contender {
    std::string name;
    double selectivity;
    std::function<Answer(Owner&)> play;
    std::vector<double> seconds{};
    Answer answer{};
};

Answer play_read(Owner& owner, Read read) {
    Answer answer;
    owner.column.visit_runs(0, UINT64_MAX, [&](const ColumnRun& run) {
        answer.check |= read(run.entries.data(), run.entries.size());
    });
    return answer;
}

Answer play_scans(Owner& owner, const std::vector<Scan>& scans) {
    scan(owner.column, UINT64_MAX, scans, {owner.results.data(), scans.size()});
    Answer answer;
    for (std::size_t i = 0; i < scans.size(); ++i) {
        const ScanResult& result = owner.results[i];
        answer.matches += result.matches;
        answer.check += result.sum;
        if (!result.bitmap.empty()) answer.check += result.bitmap[result.bitmap.size() / 2];
        if (!result.positions.empty()) answer.check += result.positions.back();
    }
    return answer;
}

Scan wanted(double selectivity, ScanOutput output, std::uint64_t from = 0) {
    const auto width = static_cast<std::uint64_t>(selectivity * 0x1p63) * 2 - 1;
    return {{from, from + width}, output};
}

std::vector<Contender> contenders() {
    std::vector<Contender> all;
    for (const Reader& reader : readers()) {
        all.push_back({std::string("read/") + reader.name, 0,
                       [reader](Owner& owner) { return play_read(owner, reader.read); }});
    }
    const auto add = [&](const std::string& name, double selectivity, std::vector<Scan> scans) {
        all.push_back(
            {name, selectivity, [scans](Owner& owner) { return play_scans(owner, scans); }});
    };
    for (const double selectivity : {0.01, 0.5}) {
        add("bitmap", selectivity, {wanted(selectivity, ScanOutput::bitmap)});
    }
    add("count", 0.1, {wanted(0.1, ScanOutput::count)});
    add("sum", 0.1, {wanted(0.1, ScanOutput::sum)});
    for (const double selectivity : {0.001, 0.01, 0.1, 0.5}) {
        add("positions", selectivity, {wanted(selectivity, ScanOutput::positions)});
    }
    std::vector<Scan> eight;
    for (std::uint64_t i = 0; i < 8; ++i) {
        eight.push_back(wanted(0.1, i % 2 ? ScanOutput::sum : ScanOutput::bitmap, i << 60));
    }
    add("8 predicates", 0.1, eight);
    return all;
}

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

void run(std::size_t bytes, int turns, std::size_t threads, const HostFacts& host) {
    const std::vector<int> cpus = host.cpus();
    std::vector<Contender> all = contenders();
    Clock::time_point start;
    std::size_t plays = 0;
    const auto at_barrier = [&]() noexcept {
        // Even: a play begins; odd: it ended.
        const Clock::time_point now = Clock::now();
        if (plays % 2 == 1) {
            const std::size_t play = plays / 2;
            const std::size_t turn = play / all.size(), at = (play + turn) % all.size();
            all[at].seconds.push_back(std::chrono::duration<double>(now - start).count());
        }
        ++plays;
        start = Clock::now();
    };
    std::barrier barrier(static_cast<std::ptrdiff_t>(threads), at_barrier);
    std::vector<std::vector<Answer>> answers(threads, std::vector<Answer>(all.size()));
    const auto work = [&](std::size_t thread) {
        const int cpu = cpus[thread % cpus.size()];
        pin_thread(cpu);
        int node = host.nodes.front().id;
        for (const HostNode& each : host.nodes) {
            if (std::count(each.cpus.begin(), each.cpus.end(), cpu)) node = each.id;
        }
        Owner owner(node, bytes / 8 / threads, thread);
        for (std::size_t turn = 0; turn < static_cast<std::size_t>(turns) + 1; ++turn) {
            for (std::size_t i = 0; i < all.size(); ++i) {
                const std::size_t at = (i + turn * all.size() + turn) % all.size();
                barrier.arrive_and_wait();
                answers[thread][at] = all[at].play(owner);
                barrier.arrive_and_wait();
            }
        }
    };
    std::vector<std::thread> running;
    for (std::size_t thread = 0; thread < threads; ++thread) running.emplace_back(work, thread);
    for (std::thread& thread : running) thread.join();
    for (std::size_t at = 0; at < all.size(); ++at) {
        Contender& one = all[at];
        one.seconds.erase(one.seconds.begin());  // the first turn warms up
        for (std::size_t thread = 0; thread < threads; ++thread) {
            one.answer.matches += answers[thread][at].matches;
            one.answer.check += answers[thread][at].check;
        }
        std::printf("%s,%zu,%g,%.9f,%" PRIu64 ",%" PRIu64 "\n", one.name.c_str(), threads,
                    one.selectivity, median(one.seconds), one.answer.matches, one.answer.check);
        if (getenv("VERBOSE")) {
            std::sort(one.seconds.begin(), one.seconds.end());
            std::printf("   min %.2f GB/s med %.2f\n", bytes / one.seconds[0] / 1e9,
                        bytes / median(one.seconds) / 1e9);
        }
    }
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 4) {
        std::fprintf(stderr, "native_scan MiB REPEAT THREADS...\n");
        return 2;
    }
    const std::size_t bytes = std::strtoull(arguments[1], nullptr, 10) << 20;
    const HostFacts host = host_facts();
    for (int i = 3; i < count; ++i) {
        run(bytes, std::atoi(arguments[2]), std::strtoull(arguments[i], nullptr, 10), host);
    }
}
