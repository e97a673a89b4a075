// How a team's windows begin and end.
//
// The last member to arrive at a window says when it begins, a little later, so that all see it in
// time. Each works until the window's end by its own clock, and leaves its result in its own place
// before it arrives at the next window. Thus the last to arrive has all results of the window
// before, and decides whether there is another.
#include "measure/team.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include "measure/work.hpp"
#include "memory/host.hpp"

namespace numatwin::native {
namespace {

constexpr std::int64_t kLeadNs = 10'000;
constexpr std::size_t kLeast = 3;          // windows, however long they take: one tells no spread
constexpr std::int64_t kSpinNs = 100'000;  // of waiting, before others may have the CPU

void bind_to_cpu(int cpu) {
    const auto count = static_cast<std::size_t>(cpu) + 1;
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(count),
                                                               [](cpu_set_t* it) { CPU_FREE(it); });
    if (!set) throw std::bad_alloc();
    const std::size_t bytes = CPU_ALLOC_SIZE(count);
    CPU_ZERO_S(bytes, set.get());
    CPU_SET_S(static_cast<std::size_t>(cpu), bytes, set.get());
    if (const int error = pthread_setaffinity_np(pthread_self(), bytes, set.get()); error != 0) {
        throw std::system_error(error, std::generic_category(), "CPU " + std::to_string(cpu));
    }
}

/// How often the scheduler has given this thread's CPU to another while it wanted to run.
long preemptions() {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
}

class Team {
  public:
    Team(std::span<const Member> members, const WindowPlan& plan)
        : members_(members), plan_(plan), results_(members.size()) {}

    std::vector<Window> run() {
        {
            std::vector<std::jthread> threads;
            threads.reserve(members_.size());
            try {
                for (std::size_t at = 0; at < members_.size(); ++at) {
                    threads.emplace_back([this, at] { guarded(at); });
                }
            } catch (...) {
                failed(std::current_exception());
            }
        }
        if (failure_) std::rethrow_exception(failure_);
        return std::move(windows_);
    }

  private:
    struct alignas(128) Result {
        double amount = 0.0;
        double elapsed_ns = 0.0;
        bool disturbed = false;
    };

    void guarded(std::size_t at) {
        try {
            bind_to_cpu(members_[at].cpu);
            member(at);
        } catch (...) {
            failed(std::current_exception());
        }
    }

    void failed(std::exception_ptr failure) {
        const std::scoped_lock lock(failing_);
        if (!failure_) failure_ = std::move(failure);
        // relaxed: a flag to stop by, nothing is read behind it; the join orders the rest.
        stopped_.store(true, std::memory_order_relaxed);
    }

    void member(std::size_t at) {
        Result& result = results_[at];
        for (std::size_t window = 0; begin(window); ++window) {
            const std::int64_t start_ns = start_ns_;
            const long before = preemptions();
            bool late = steady_ns() > start_ns;
            while (steady_ns() < start_ns) {
            }
            const std::int64_t began_ns = steady_ns();
            result.amount = members_[at].work(start_ns + plan_.window_ns);
            result.elapsed_ns = static_cast<double>(steady_ns() - began_ns);
            late = late || began_ns - start_ns > plan_.window_ns / 10;
            result.disturbed = late || preemptions() != before;
        }
    }

    /// Waits until all have arrived at `window`; false where there is none.
    bool begin(std::size_t window) {
        // acq_rel: hands this member's result to the last who arrives, who reads them all.
        if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 ==
            members_.size() * (window + 1)) {
            decide(window);
            // release: start_ns_ and over_ are there for whoever sees the window open.
            opened_.store(window + 1, std::memory_order_release);
        } else {
            const std::int64_t spin_until = steady_ns() + kSpinNs;
            // acquire: pairs with the release above.
            while (opened_.load(std::memory_order_acquire) <= window) {
                if (stopped_.load(std::memory_order_relaxed)) return false;
                if (steady_ns() > spin_until) sched_yield();
            }
        }
        return !over_;
    }

    void decide(std::size_t window) {
        const std::int64_t now = steady_ns();
        // The first to run may be the first ever to touch its data: that window warms up.
        if (window > 1) keep();
        if (window == 1) limit_ns_ = now + plan_.limit_ns;
        const bool late = now >= limit_ns_ && windows_.size() >= kLeast;
        over_ = stopped_.load(std::memory_order_relaxed) || late ||
                undisturbed_ >= std::max<std::size_t>(plan_.wanted, 1);
        start_ns_ = now + kLeadNs;
    }

    void keep() {
        Window window;
        for (const Result& result : results_) {
            window.amounts.push_back(result.amount);
            window.elapsed_ns.push_back(result.elapsed_ns);
            window.disturbed = window.disturbed || result.disturbed;
        }
        undisturbed_ += window.disturbed ? 0 : 1;
        windows_.push_back(std::move(window));
    }

    std::span<const Member> members_;
    WindowPlan plan_;
    std::vector<Result> results_;
    std::vector<Window> windows_;
    std::size_t undisturbed_ = 0;
    std::int64_t limit_ns_ = 0;
    std::int64_t start_ns_ = 0;
    bool over_ = false;
    alignas(128) std::atomic<std::size_t> arrived_{0};
    alignas(128) std::atomic<std::size_t> opened_{0};
    std::atomic<bool> stopped_{false};
    std::mutex failing_;
    std::exception_ptr failure_;
};

}  // namespace

std::vector<Window> run_team(std::span<const Member> members, const WindowPlan& plan) {
    std::set<int> cpus;
    for (const Member& member : members) {
        if (member.cpu < 0 || !cpus.insert(member.cpu).second) {
            throw std::invalid_argument("expected members on CPUs of their own");
        }
    }
    if (members.empty()) throw std::invalid_argument("expected at least one member");
    return Team(members, plan).run();
}

std::vector<std::vector<double>> gaps(const std::vector<int>& cpus, double seconds,
                                      double least_ns) {
    const double ns_per_tick = ps_per_tick() / 1000;
    const auto least = static_cast<Ticks>(least_ns / ns_per_tick);
    const auto all = static_cast<Ticks>(seconds * 1e9 / ns_per_tick);
    std::vector<std::vector<double>> found(cpus.size());
    std::exception_ptr failure;
    std::mutex mutex;
    std::vector<std::thread> threads;
    const auto watch = [&](std::size_t k) {
        try {
            pin_thread(cpus[k]);
            found[k].reserve(1 << 16);  // growing would be a gap itself
            Ticks before = ticks();
            for (const Ticks end = before + all; before < end;) {
                const Ticks now = ticks();
                if (now - before >= least)
                    found[k].push_back(static_cast<double>(now - before) * ns_per_tick);
                before = now;
            }
        } catch (...) {
            const std::scoped_lock lock(mutex);
            failure = std::current_exception();
        }
    };
    for (std::size_t k = 0; k < cpus.size(); ++k) threads.emplace_back(watch, k);
    for (std::thread& thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
    return found;
}

}  // namespace numatwin::native
