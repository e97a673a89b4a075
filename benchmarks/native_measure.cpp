// What a user would write to measure a host, to hold 'numatwin machine measure' against.
//
//   native_measure latency BYTES SECONDS            ns of a dependent load
//   native_measure triad BYTES SECONDS THREADS      bytes per second, counted as STREAM does
//
// As lat_mem_rd -t (McVoy and Staelin, lmbench, USENIX 1996) and STREAM (McCalpin): malloc'd
// memory, threads where the kernel puts them, one long run by the wall clock, the best of its
// passes.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

double latency_ns(std::size_t bytes, double seconds) {
    constexpr std::size_t line = 8;  // words
    std::vector<std::uint64_t> memory(bytes / 8);
    std::vector<std::size_t> order(bytes / 64);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), std::mt19937_64(2));
    for (std::size_t at = 0; at < order.size(); ++at) {
        memory[order[at] * line] = order[(at + 1) % order.size()] * line;
    }
    const std::size_t steps = std::min<std::size_t>(order.size(), 1'000'000);
    double best = std::numeric_limits<double>::infinity();
    std::uint64_t at = order[0] * line;
    for (const auto start = Clock::now(); since(start) < seconds;) {
        const auto begin = Clock::now();
        for (std::size_t step = 0; step < steps; ++step) at = memory[at];
        best = std::min(best, since(begin) / static_cast<double>(steps));
    }
    if (at == 1) std::puts("");  // the loads count
    return best * 1e9;
}

double triad_Bps(std::size_t bytes, double seconds, std::size_t threads) {
    const std::size_t words = bytes / 3 / 8;
    std::vector<double> a(words, 1.0), b(words, 2.0), c(words, 3.0);
    double best = std::numeric_limits<double>::infinity();
    for (const auto start = Clock::now(); since(start) < seconds;) {
        const auto begin = Clock::now();
        std::vector<std::jthread> team;
        for (std::size_t thread = 0; thread < threads; ++thread) {
            team.emplace_back([&, thread] {
                const std::size_t last = words * (thread + 1) / threads;
                for (std::size_t at = words * thread / threads; at < last; ++at) {
                    a[at] = b[at] + 3.0 * c[at];
                }
            });
        }
        team.clear();
        best = std::min(best, since(begin));
    }
    return 24.0 * static_cast<double>(words) / best;
}

}  // namespace

int main(int count, char** words) {
    if (count < 4) return 2;
    const std::size_t bytes = std::strtoull(words[2], nullptr, 10);
    const double seconds = std::strtod(words[3], nullptr);
    const bool is_latency = std::strcmp(words[1], "latency") == 0;
    const std::size_t threads = count > 4 ? std::strtoull(words[4], nullptr, 10) : 1;
    std::printf("%.6g\n",
                is_latency ? latency_ns(bytes, seconds) : triad_Bps(bytes, seconds, threads));
}
