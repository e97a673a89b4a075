// Turns of processes on a processor, sleepers and who wakes them: see measure_steps.hpp.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "fabric/fabric.hpp"
#include "fabric/forked.hpp"
#include "fabric/shared_words.hpp"
#include "memory/host.hpp"
#include "systems/commits/measure_windows.hpp"

namespace numatwin::native {

// Processes that send each other messages, asleep in between or not: for measurements.

// Both sleep as soon as nothing comes, or never.
class Sleepers {
  public:
    Sleepers(const RunSetup& run, int own, int other, bool sleep)
        : sleep_(sleep), board_(2 * contact_bytes) {
        peer_ = std::make_unique<Forked>([this, &run, other] {
            try {
                pin_thread(other);
                answer(run);
            } catch (const std::exception&) {
            }
        });
        pin_thread(own);
        fabric_ = ucx_fabric(run.fabric);
        fabric_->expose(4096);
        publish(board_.data(), fabric_->contact());
        to_ = fabric_->connect(await(contact()));
    }

    // Half of there and back; `post_ns` grows by the time of handing it over, `serve_ns` by that of
    // the look that found the answer.
    double there(const std::vector<std::byte>& message, double& post_ns, double& serve_ns) {
        const Patience patience("the second process");
        const std::int64_t began = steady_ns();
        fabric_->send(to_, message);
        post_ns += static_cast<double>(steady_ns() - began);
        for (;;) {
            const std::int64_t looked = steady_ns();
            if (fabric_->receive(answer_)) {
                serve_ns += static_cast<double>(steady_ns() - looked);
                break;
            }
            if (sleep_) fabric_->sleep(std::chrono::milliseconds(10));
            patience.check();
        }
        return static_cast<double>(steady_ns() - began) / 2;
    }

  private:
    static constexpr std::size_t contact_bytes = 1 << 13;

    std::byte* contact() const { return board_.data() + contact_bytes; }
    void answer(const RunSetup& run) {
        const auto fabric = ucx_fabric(run.fabric);
        fabric->expose(4096);
        publish(contact(), fabric->contact());
        const Fabric::Peer back = fabric->connect(await(board_.data()));
        std::vector<std::byte> message;
        for (;;) {
            while (!fabric->receive(message))
                if (sleep_) fabric->sleep(std::chrono::milliseconds(10));
            fabric->send(back, message);
        }
    }
    // A length, then the contact.
    static void publish(std::byte* at, const std::vector<std::byte>& contact) {
        std::memcpy(at + word_bytes, contact.data(), contact.size());
        store_release(at, contact.size());
    }
    static std::span<const std::byte> await(std::byte* at) {
        const Patience patience("the second process");
        std::uint64_t bytes = 0;
        while ((bytes = load_acquire(at)) == 0) {
            patience.check();
            ::usleep(200);
        }
        return {at + word_bytes, bytes};
    }

    bool sleep_;
    PopulatedMemory board_;
    std::unique_ptr<Forked> peer_;
    std::unique_ptr<Fabric> fabric_;
    Fabric::Peer to_{};
    std::vector<std::byte> answer_;
};

namespace {

// What two processes share while turns are measured.
struct Turns {
    std::atomic<std::uint32_t> mode;  // 0: it yields, 1: it spins, 2: it sleeps
    std::atomic<std::uint32_t> ready;
};

constexpr std::int64_t away_ns = 100'000;  // longer than anything but another's turn

// Two of the second processor's processes: one counts forever, the other sleeps and is asked by
// the first processor's. What the first loses of its time for each message and answer.
StepCost interrupted(const RunSetup& run, const std::vector<std::byte>& message,
                     const std::vector<int>& cpus, const StepPlan& plan) {
    // Short, and each between two alone that are alike: others use that core, now more, now less.
    constexpr std::int64_t window_ns = 500'000;
    constexpr std::uint32_t windows_each = 4;
    constexpr double alike = 0.03;
    const PopulatedMemory memory(4096);
    auto* count = new (memory.data()) std::atomic<std::uint64_t>{0};
    const Forked counts([count, cpu = cpus[1]] {
        pin_thread(cpu);
        for (;;) count->store(count->load(std::memory_order_relaxed) + 1);
    });
    struct Window {
        double counted, ns;
        double rate() const { return counted / ns; }
    };
    const auto counted = [count](const std::function<void()>& work) {
        const std::uint64_t before = count->load();
        const std::int64_t began = steady_ns();
        do {
            work();
        } while (steady_ns() - began < window_ns);
        const auto took = static_cast<double>(steady_ns() - began);
        return Window{static_cast<double>(count->load() - before), took};
    };
    Sleepers sleepers(run, cpus[0], cpus[1], true);
    StepCost found{"interrupted", message.size(), 0, 1, {}};
    Window before = counted([] {});
    std::vector<double> unlike;
    for (std::uint32_t window = 0; window < plan.windows * windows_each; ++window) {
        double rounds = 0, post_ns = 0, serve_ns = 0;
        const Window together = counted([&] {
            sleepers.there(message, post_ns, serve_ns);
            ++rounds;
        });
        const Window after = counted([] {});
        const double rate = (before.rate() + after.rate()) / 2;
        const bool steady = std::abs(after.rate() - before.rate()) < alike * rate;
        if (rate > 0)
            (steady ? found.samples_ns : unlike)
                .push_back((together.ns - together.counted / rate) / rounds);
        before = after;
    }
    if (found.samples_ns.size() < plan.windows)  // it never stayed alike: as it came
        found.samples_ns.insert(found.samples_ns.end(), unlike.begin(), unlike.end());
    if (found.samples_ns.empty()) throw std::runtime_error("the process that counts does not run");
    return found;
}

}  // namespace

std::vector<StepCost> measure_turns(const RunSetup& run, std::uint64_t bytes,
                                    const std::vector<int>& cpus, const StepPlan& plan) {
    if (cpus.empty()) throw std::invalid_argument("expected a processor");
    std::vector<StepCost> found;
    pin_thread(cpus[0]);
    found.push_back({"yield", 0, 0, 1, means_ns(plan, repeated(64, [] { ::sched_yield(); }))});
    {
        const PopulatedMemory memory(4096);
        auto* turns = new (memory.data()) Turns{};
        OwnPages pages;
        auto alone = means_ns(plan, repeated(64, [&pages] { pages.touch(); }));
        std::ranges::sort(alone);
        const Forked other([turns, cpu = cpus[0]] {
            pin_thread(cpu);
            OwnPages theirs;
            theirs.touch();
            turns->ready.store(1);
            for (;;) {
                const std::uint32_t mode = turns->mode.load(std::memory_order_relaxed);
                if (mode == 0) {
                    ::sched_yield();
                    theirs.touch();
                }
                if (mode == 2) ::usleep(1000);
            }
        });
        const Patience patience("the second process");
        while (turns->ready.load() == 0) {
            patience.check();
            ::usleep(200);
        }
        // Of two that yield all the time, each step is two turns; what they take to find what is
        // theirs in caches again is part of it.
        auto both = means_ns(plan, repeated(64, [&pages] {
                                 ::sched_yield();
                                 pages.touch();
                             }));
        for (double& each : both) each = each / 2 - alone[alone.size() / 2];
        found.push_back({"turn", 0, 0, 1, both});
        turns->mode.store(1);
        StepCost slice{"slice", 0, 0, 1, {}};
        const std::int64_t began = steady_ns();
        std::int64_t last = began;
        while (slice.samples_ns.size() < plan.windows && last - began < 300'000'000) {
            const std::int64_t now = steady_ns();
            if (now - last > away_ns) slice.samples_ns.push_back(static_cast<double>(now - last));
            last = now;
        }
        turns->mode.store(2);
        if (!slice.samples_ns.empty()) found.push_back(slice);
    }
    const std::vector<std::byte> message(bytes);
    struct Taken {
        std::vector<double> there, post, serve;
    };
    const auto messages = [&](int other, bool sleep) {
        Sleepers sleepers(run, cpus[0], other, sleep);
        double post_ns = 0, serve_ns = 0;
        for (int k = 0; k < 20; ++k) sleepers.there(message, post_ns, serve_ns);
        Taken taken;
        for (std::uint32_t window = 0; window < plan.windows; ++window) {
            double sum = 0, rounds = 0;
            post_ns = serve_ns = 0;
            const std::int64_t began = steady_ns();
            do {
                sum += sleepers.there(message, post_ns, serve_ns);
                ++rounds;
            } while (steady_ns() - began < plan.window_ns);
            taken.there.push_back(sum / rounds);
            taken.post.push_back(post_ns / rounds);
            taken.serve.push_back(serve_ns / rounds);
        }
        return taken;
    };
    const auto add = [&](const char* name, const std::vector<double>& samples_ns) {
        found.push_back({name, bytes, 0, 1, samples_ns});
    };
    add("sleep-same", messages(cpus[0], true).there);
    if (cpus.size() > 1) {
        const Taken asleep = messages(cpus[1], true), awake = messages(cpus[1], false);
        add("sleep-other", asleep.there);
        add("post-sleeper", asleep.post);
        add("post-across", awake.post);
        add("serve-across", awake.serve);
        found.push_back(interrupted(run, message, cpus, plan));
    }
    return found;
}

}  // namespace numatwin::native
