// Column scans against the fastest plain read of the same data; one line a measurement:
// read or scan, its name, threads, selectivity, GB/s, ratio to the fastest plain read, that read's
// name, matches and a checksum, between tabs.
//
//   native_scan MiB STEPS THREADS...
//
// Each thread owns a column, on a CPU of its own, cut into slices. In a step each contender plays
// one slice, the next contender the next slice: so no slice is in a cache when it is played, and
// whatever else the host does hits all alike. All threads start a play together; its time is the
// CPU time of the slowest. A play in which threads did not run all the time, side by side, does not
// count: one that took a quarter longer by the clock; nor one before or after which a core lacked a
// tenth of its additions: a hypervisor may give its other hardware thread to somebody else for a
// while. Figures are medians of those that count.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "measure/additions.hpp"
#include "memory/host.hpp"
#include "memory/manager.hpp"
#include "storage/scan.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
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
            if constexpr (AheadBytes > 0) __builtin_prefetch(from + AheadBytes / 8);
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
    std::vector<Reader> found{{"C++", read_plain}};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) found.push_back({"AVX2", read_avx2});
    if (__builtin_cpu_supports("avx512f")) {
        found.push_back({"AVX-512", read_avx512<8, 0>});
        found.push_back({"AVX-512, 16 accumulators", read_avx512<16, 0>});
        found.push_back({"AVX-512 with prefetch", read_avx512<8, 1024>});
    }
#endif
    return found;
}

/// One thread's column and what it answers.
class Owner {
  public:
    static constexpr std::size_t slices = 64;

    Owner(int node, std::uint64_t entries, std::uint64_t seed, std::size_t contenders)
        : manager_({.placement = Placement::on_node(node), .object = "the column"}),
          column_(manager_.add_cache()),
          slice_entries_(entries / slices),
          results_(contenders * slices) {
        // Multiples of an odd number run through all residues: as many in a range as it is wide.
        std::vector<std::uint64_t> some(1 << 16);
        std::uint64_t value = seed;
        for (std::uint64_t done = 0; done < entries; done += some.size()) {
            for (std::uint64_t& entry : some) entry = value += 0x9e37'79b9'7f4a'7c15;
            column_.append({some.data(), std::min<std::uint64_t>(some.size(), entries - done)});
        }
    }

    template <typename Visit>
    void visit(std::size_t slice, Visit visit) const {
        column_.visit_runs(slice * slice_entries_, (slice + 1) * slice_entries_, visit);
    }

    /// Bitmaps stay, one for each slice, as those of a whole column would; of positions, which may
    /// be as long as the data, the last slice's alone.
    void play(std::size_t contender, std::size_t slice, const std::vector<Scan>& scans) {
        const bool bitmaps = scans.front().output == ScanOutput::bitmap;
        std::vector<ScanResult>& results = results_[contender * slices + (bitmaps ? slice : 0)];
        results.resize(scans.size());
        const std::uint64_t from = slice * slice_entries_;
        SharedScan shared(scans, results, from, from + slice_entries_);
        visit(slice, [&](const ColumnRun& run) { shared.run(run); });
        for (const ScanResult& result : results) {
            answer_.matches += result.matches;
            answer_.check += result.sum;
            for (std::size_t w = 0; w < result.bitmap.size(); w += 4096) {
                answer_.check += result.bitmap[w];
            }
            if (!result.positions.empty()) answer_.check += result.positions.back();
        }
    }

    Answer take_answer() { return std::exchange(answer_, {}); }

  private:
    MemoryManager manager_;
    Column column_;
    std::uint64_t slice_entries_;
    std::vector<std::vector<ScanResult>> results_;
    Answer answer_;
};

struct Play {
    double clock_s = 0;
    double cpu_s = 0;           // of the thread with most
    double additions_ns = 1e9;  // per nanosecond, before or after it, of the core with least
};

/// A plain read if `read`, else scans.
struct Contender {
    std::string name;
    double selectivity;
    Read read;
    std::vector<Scan> scans;
    std::vector<Play> plays{};  // one a step
    Answer answer{};            // to the first pass over all slices
};

Scan wanted(double selectivity, ScanOutput output, std::uint64_t from = 0) {
    const auto width = static_cast<std::uint64_t>(selectivity * 0x1p63) * 2 - 1;
    return {{from, from + width}, output};
}

std::vector<Contender> contenders() {
    std::vector<Contender> all;
    for (const Reader& reader : readers()) all.push_back({reader.name, 1, reader.read, {}});
    for (const double selectivity : {0.01, 0.1, 0.5}) {
        all.push_back({"bitmap", selectivity, nullptr, {wanted(selectivity, ScanOutput::bitmap)}});
    }
    all.push_back({"count", 0.1, nullptr, {wanted(0.1, ScanOutput::count)}});
    all.push_back({"sum", 0.1, nullptr, {wanted(0.1, ScanOutput::sum)}});
    for (const double selectivity : {0.001, 0.01, 0.1, 0.5}) {
        all.push_back(
            {"positions", selectivity, nullptr, {wanted(selectivity, ScanOutput::positions)}});
    }
    std::vector<Scan> eight;
    for (std::uint64_t i = 0; i < 8; ++i) {
        eight.push_back(wanted(0.1, i % 2 == 0 ? ScanOutput::bitmap : ScanOutput::sum, i << 60));
    }
    all.push_back({"8 predicates", 0.1, nullptr, eight});
    return all;
}

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// Of an undisturbed core: what a tenth of all plays reach.
double full_additions_ns(const std::vector<Contender>& all) {
    std::vector<double> found;
    for (const Contender& each : all)
        for (const Play& play : each.plays) found.push_back(play.additions_ns);
    const auto place = found.begin() + static_cast<std::ptrdiff_t>(found.size() * 9 / 10);
    std::nth_element(found.begin(), place, found.end());
    return *place;
}

/// Of the plays that count; of all where a busy host leaves fewer than three.
double median_seconds(const Contender& contender, double full_additions_ns) {
    std::vector<double> counted, all;
    for (const Play& play : contender.plays) {
        all.push_back(play.cpu_s);
        if (play.clock_s <= 1.25 * play.cpu_s && play.additions_ns >= 0.9 * full_additions_ns)
            counted.push_back(play.cpu_s);
    }
    return median(counted.size() < 3 ? all : counted);
}

/// What this core adds in a nanosecond just now: to eight registers in turn, as many at once as it
/// has adders for, so that whoever shares the core takes of them.
double additions_ns() {
    constexpr std::size_t times = 80'000;  // ten microseconds or so
    const Clock::time_point start = Clock::now();
    std::uint64_t sums[8] = {}, one = 1;
    asm volatile("" : "+r"(one));
    for (std::size_t turn = 0; turn < times / 8; ++turn) {
#pragma GCC unroll 8
        for (std::uint64_t& sum : sums) add(sum, one);
    }
    return static_cast<double>(times) /
           std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

double cpu_seconds() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

int node_of(int cpu, const HostFacts& host) {
    for (const HostNode& node : host.nodes) {
        if (std::count(node.cpus.begin(), node.cpus.end(), cpu) > 0) return node.id;
    }
    return host.nodes.front().id;
}

/// The reads keep what they read from being optimised away.
std::atomic<std::uint64_t> seen{0};

/// The first pass over all slices warms up; it gives the answers, and no times.
void play_all(std::vector<Contender>& all, std::size_t bytes, std::size_t steps,
              std::size_t threads, const HostFacts& host) {
    const std::vector<int> cpus = host.cpus();
    for (Contender& each : all) each.plays.resize(Owner::slices + steps);
    std::barrier barrier(static_cast<std::ptrdiff_t>(threads));
    std::mutex mutex;
    const auto work = [&](std::size_t thread) {
        const int cpu = cpus[thread % cpus.size()];
        pin_thread(cpu);
        Owner owner(node_of(cpu, host), bytes / 8 / threads, thread, all.size());
        double before_ns = additions_ns();
        for (std::size_t step = 0; step < Owner::slices + steps; ++step) {
            for (std::size_t at = 0; at < all.size(); ++at) {
                const std::size_t slice = (step + at) % Owner::slices;
                Contender& contender = all[at];
                barrier.arrive_and_wait();
                const Clock::time_point start = Clock::now();
                const double cpu_start_s = cpu_seconds();
                if (contender.read != nullptr) {
                    std::uint64_t bits = 0;
                    owner.visit(slice, [&](const ColumnRun& run) {
                        bits |= contender.read(run.entries.data(), run.entries.size());
                    });
                    seen.fetch_or(bits, std::memory_order_relaxed);
                } else {
                    owner.play(at, slice, contender.scans);
                }
                const double cpu_s = cpu_seconds() - cpu_start_s;
                barrier.arrive_and_wait();
                // The barrier ends for all when the slowest arrives.
                const double clock_s = std::chrono::duration<double>(Clock::now() - start).count();
                const double after_ns = additions_ns();
                const Answer answer = owner.take_answer();
                const std::scoped_lock lock(mutex);
                Play& play = contender.plays[step];
                play = {std::max(play.clock_s, clock_s), std::max(play.cpu_s, cpu_s),
                        std::min({play.additions_ns, before_ns, after_ns})};
                before_ns = after_ns;
                if (step >= Owner::slices) continue;
                contender.answer.matches += answer.matches;
                contender.answer.check += answer.check;
            }
        }
    };
    std::vector<std::thread> running;
    for (std::size_t thread = 0; thread < threads; ++thread) running.emplace_back(work, thread);
    for (std::thread& thread : running) thread.join();
    for (Contender& each : all)
        each.plays.erase(each.plays.begin(), each.plays.begin() + Owner::slices);
}

void run(std::size_t bytes, std::size_t steps, std::size_t threads, const HostFacts& host) {
    std::vector<Contender> all = contenders();
    play_all(all, bytes, steps, threads, host);
    const std::size_t reads = readers().size();
    const double full = full_additions_ns(all);
    const auto seconds = [&](const Contender& each) { return median_seconds(each, full); };
    const Contender& best = *std::min_element(
        all.begin(), all.begin() + static_cast<std::ptrdiff_t>(reads),
        [&](const Contender& a, const Contender& b) { return seconds(a) < seconds(b); });
    for (const Contender& each : all) {
        const double bandwidth_Bps = static_cast<double>(bytes / Owner::slices) / seconds(each);
        std::printf("%s\t%s\t%zu\t%g\t%.3f\t%.4f\t%s\t%" PRIu64 "\t%" PRIu64 "\n",
                    each.read != nullptr ? "read" : "scan", each.name.c_str(), threads,
                    each.selectivity, bandwidth_Bps / 1e9, seconds(best) / seconds(each),
                    best.name.c_str(), each.answer.matches, each.answer.check);
    }
    std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 4) {
        std::fprintf(stderr, "native_scan MiB STEPS THREADS...\n");
        return 2;
    }
    const std::size_t bytes = std::strtoull(arguments[1], nullptr, 10) << 20;
    const std::size_t steps = std::strtoull(arguments[2], nullptr, 10);
    const HostFacts host = host_facts();
    for (int i = 3; i < count; ++i) {
        run(bytes, steps, std::strtoull(arguments[i], nullptr, 10), host);
    }
}
