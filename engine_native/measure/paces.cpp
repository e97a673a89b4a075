#include "measure/paces.hpp"

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>

#include "memory/host.hpp"
#include "systems/eris/clock.hpp"

namespace numatwin::native {
namespace {

// Of a piece: about a microsecond, so that a moment of 0.1 ms has many.
constexpr int cached_loads = 1000, memory_loads = 100;
constexpr std::size_t pieces_max = 4096;  // of a moment

// Loads wait for no others, as those of a batch: a core does as many at a time as it can.
class Words {
  public:
    explicit Words(std::size_t bytes)
        : words_(std::max<std::size_t>(bytes / sizeof(std::uint64_t), 1), 1) {}

    void load(int loads) {
        std::uint64_t sum = 0;
        for (int k = 0; k < loads; ++k) {
            const std::uint64_t drawn = mixed(next_ + static_cast<std::uint64_t>(k));
            sum += words_[static_cast<std::size_t>(
                static_cast<unsigned __int128>(drawn) * words_.size() >> 64)];
        }
        next_ += static_cast<std::uint64_t>(loads);
        used_ = sum;
    }

  private:
    // splitmix64.
    static std::uint64_t mixed(std::uint64_t k) {
        std::uint64_t z = k * 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }

    std::vector<std::uint64_t> words_;
    std::uint64_t next_ = 1;
    volatile std::uint64_t used_ = 0;  // so that a piece is done when it is over
};

// What pieces took at the moment.
class Pieces {
  public:
    explicit Pieces(std::vector<double>& moments) : moments_(moments) {
        ticks_.reserve(pieces_max);
    }
    void add(Ticks ticks) { ticks_.push_back(ticks); }
    bool full() const { return ticks_.size() >= pieces_max; }
    void end_moment(double ns_per_tick) {
        const auto middle = ticks_.begin() + static_cast<std::ptrdiff_t>(ticks_.size() / 2);
        std::nth_element(ticks_.begin(), middle, ticks_.end());
        moments_.push_back(static_cast<double>(*middle) * ns_per_tick);
        ticks_.clear();
    }

  private:
    std::vector<double>& moments_;
    std::vector<Ticks> ticks_;
};

}  // namespace

std::vector<Paces> paces(std::span<const int> cpus, std::size_t cached_bytes,
                         std::size_t memory_bytes, double seconds, double moment_ns) {
    const double ns_per_tick = ps_per_tick() / 1000;
    const auto moment = static_cast<Ticks>(moment_ns / ns_per_tick);
    const auto all = static_cast<Ticks>(seconds * 1e9 / ns_per_tick);
    std::vector<Paces> found(cpus.size());
    std::barrier start(static_cast<std::ptrdiff_t>(cpus.size()));
    std::exception_ptr failure;
    std::mutex mutex;
    const auto work = [&](std::size_t k) {
        bool waits = true;
        try {
            pin_thread(cpus[k]);
            Words cached(cached_bytes), memory(memory_bytes);  // pages of the CPU's own node
            Pieces of_cached(found[k].cached_ns), of_memory(found[k].memory_ns);
            waits = false;
            start.arrive_and_wait();
            Ticks before = ticks(), began = before;
            for (const Ticks end = before + all; before < end;) {
                cached.load(cached_loads);
                const Ticks between = ticks();
                memory.load(memory_loads);
                const Ticks now = ticks();
                of_cached.add(between - before);
                of_memory.add(now - between);
                before = now;
                if (now - began < moment && !of_cached.full()) continue;
                of_cached.end_moment(ns_per_tick);
                of_memory.end_moment(ns_per_tick);
                before = began = ticks();
            }
        } catch (...) {
            {
                const std::scoped_lock lock(mutex);
                failure = std::current_exception();
            }
            if (waits) start.arrive_and_drop();
        }
    };
    std::vector<std::thread> threads;
    for (std::size_t k = 0; k < cpus.size(); ++k) threads.emplace_back(work, k);
    for (std::thread& thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
    return found;
}

}  // namespace numatwin::native
