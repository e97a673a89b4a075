#include "storage/chunk_copier.hpp"

#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>

#include "memory/clock.hpp"
#include "memory/host.hpp"

namespace numatwin::native {
namespace {

// Others may need this processor.
template <class Done>
void wait_until(Done done) {
    constexpr int spins = 2'000;
    for (int looks = 0; !done(); ++looks)
        if (looks > spins) std::this_thread::yield();
}

}  // namespace

std::size_t ChunkCopier::chunks(Values column) const {
    return (column.size() + chunk_values_ - 1) / chunk_values_;
}

ChunkCopier::Values ChunkCopier::chunk(Values column, std::size_t k) const {
    const std::size_t first = k * chunk_values_;
    return column.subspan(first, std::min(chunk_values_, column.size() - first));
}

ChunkCopier::ChunkCopier(std::size_t chunk_values, int cpu) : chunk_values_(chunk_values) {
    if (chunk_values == 0) throw std::invalid_argument("a chunk: expected at least one value");
    for (auto& buffer : buffers_) buffer.assign(chunk_values, 0);
    if (cpu >= 0) {
        const auto allowed = host_facts().cpus();
        if (!std::binary_search(allowed.begin(), allowed.end(), cpu))
            throw std::invalid_argument("no CPU " + std::to_string(cpu) + " for the copier");
    }
    thread_ = std::thread([this, cpu] { work(cpu); });
}

ChunkCopier::~ChunkCopier() {
    over_ = true;
    asked_.fetch_add(1, std::memory_order_release);
    asked_.notify_one();
    thread_.join();
}

void ChunkCopier::start(Values column, bool ahead) {
    column_ = column;
    ahead_ = ahead;
    scanned_.store(0, std::memory_order_relaxed);
    copied_.store(0, std::memory_order_relaxed);
    asked_.fetch_add(1, std::memory_order_release);
    asked_.notify_one();
}

void ChunkCopier::work(int cpu) {
    if (cpu >= 0) pin_thread(cpu);
    for (std::uint64_t done = 0;; ++done) {
        // Awake for a while: waking up takes longer than copying a small column.
        for (int looks = 0; looks < 100'000 && asked_.load(std::memory_order_relaxed) == done;)
            ++looks;
        asked_.wait(done, std::memory_order_acquire);
        if (over_) return;
        copy_all(column_);
    }
}

void ChunkCopier::copy_all(Values column) {
    for (std::size_t k = 0; k < chunks(column); ++k) {
        // The buffer was scanned, as chunk k - 2.
        if (ahead_) wait_until([&] { return scanned_.load(std::memory_order_acquire) + 1 >= k; });
        const Values from = chunk(column, k);
        std::memcpy(buffer(k), from.data(), from.size_bytes());
        copied_.store(k + 1, std::memory_order_release);
    }
}

SumOfMatches ChunkCopier::scan(Values column, ValueRange range) {
    SumOfMatches found{0, 0};
    if (column.empty()) return found;
    start(column, true);
    for (std::size_t k = 0; k < chunks(column); ++k) {
        wait_until([&] { return copied_.load(std::memory_order_acquire) > k; });
        const auto part = scan_kernels().sum(buffer(k), chunk(column, k).size(), range);
        found.matches += part.matches;
        found.sum += part.sum;
        scanned_.store(k + 1, std::memory_order_release);
    }
    return found;
}

void ChunkCopier::copy(Values column) {
    if (column.empty()) return;
    start(column, false);
    wait_until([&] { return copied_.load(std::memory_order_acquire) == chunks(column); });
}

std::int64_t ChunkCopier::ran_ns() {
    clockid_t clock;
    return ::pthread_getcpuclockid(thread_.native_handle(), &clock) == 0 ? cpu_ns(clock) : 0;
}

CopiedScanTimes measure_copied_scan(std::size_t column_bytes, std::size_t chunk_bytes,
                                    std::uint32_t rounds, int scanner_cpu, int copier_cpu) {
    const std::size_t values = column_bytes / sizeof(std::uint64_t);
    const std::size_t per_chunk = chunk_bytes / sizeof(std::uint64_t);
    if (values == 0 || per_chunk == 0 || per_chunk > values)
        throw std::invalid_argument("expected a column of at least one chunk, of 8 bytes or more");
    CopiedScanTimes times;
    // Its own thread: this one stays where it is.
    std::exception_ptr failure;
    std::thread scanner([&] {
        try {
            if (scanner_cpu >= 0) pin_thread(scanner_cpu);
            std::vector<std::uint64_t> column(values);
            for (std::size_t k = 0; k < values; ++k) column[k] = k * 0x9E3779B97F4A7C15u;
            const ValueRange range{0, UINT64_MAX / 10};
            const auto& sum = *scan_kernels().sum;
            ChunkCopier copier(per_chunk, copier_cpu);
            for (std::uint32_t round = 0; round < rounds; ++round) {
                // Both are busy all the time, if only with looking.
                const auto time = [&](std::vector<CopiedScanTimes::Time>& into, bool copied,
                                      const auto& run) {
                    const std::int64_t copier_ran = copier.ran_ns();
                    const std::int64_t ran = cpu_ns();
                    const std::int64_t began = steady_ns();
                    const auto found = run();
                    const std::int64_t took = steady_ns() - began;
                    const auto away = [took](std::int64_t busy) { return busy < took * 9 / 10; };
                    into.push_back({took, away(cpu_ns() - ran) ||
                                              (copied && away(copier.ran_ns() - copier_ran))});
                    return found;
                };
                const auto direct =
                    time(times.direct, false, [&] { return sum(column.data(), values, range); });
                time(times.copies, true, [&] {
                    copier.copy(column);
                    return 0;
                });
                const std::vector<std::uint64_t> buffer(column.begin(), column.begin() + per_chunk);
                sum(buffer.data(), per_chunk, range);
                time(times.cached, false, [&] {
                    SumOfMatches found{0, 0};
                    for (std::size_t left = values; left > 0;) {
                        const std::size_t some = std::min(left, per_chunk);
                        found.sum += sum(buffer.data(), some, range).sum;
                        left -= some;
                    }
                    return found;
                });
                const auto copied =
                    time(times.overlap, true, [&] { return copier.scan(column, range); });
                if (copied.matches != direct.matches || copied.sum != direct.sum)
                    throw std::runtime_error("a copied scan found something else");
            }
        } catch (...) {
            failure = std::current_exception();
        }
    });
    scanner.join();
    if (failure) std::rethrow_exception(failure);
    return times;
}

}  // namespace numatwin::native
