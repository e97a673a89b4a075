// Turns of processes on a processor, sleepers and who wakes them: see measure_steps.hpp.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>

#include "memory/host.hpp"
#include "rsi/fabric.hpp"
#include "rsi/forked.hpp"
#include "rsi/measure_windows.hpp"
#include "rsi/shared_words.hpp"

namespace numatwin::native {
namespace {

// What two processes share while turns are measured.
struct Turns {
    std::atomic<std::uint32_t> mode;  // 0: it yields, 1: it spins, 2: it sleeps
    std::atomic<std::uint32_t> ready;
};

constexpr std::int64_t away_ns = 100'000;  // longer than anything but another's turn

// One after the other is asked, and answers; both sleep as soon as nothing comes, or never.
class Sleepers {
  public:
    Sleepers(const RunSetup& run, int own, int other, bool sleep) : own_(own), sleep_(sleep) {
        board_ = std::make_unique<SharedMemory>(board_bytes);
        peer_ = std::make_unique<Forked>([&run, other, sleep, memory = board_->data()] {
            try {
                pin_thread(other);
                const auto fabric = ucx_fabric(run.fabric);
                fabric->expose(4096);
                publish(memory + board_bytes / 2, fabric->contact());
                const Fabric::Peer back = fabric->connect(await(memory));
                std::vector<std::byte> message;
                for (;;) {
                    while (!fabric->receive(message))
                        if (sleep) fabric->sleep(std::chrono::milliseconds(10));
                    fabric->send(back, message);
                }
            } catch (const std::exception&) {
            }
        });
        pin_thread(own_);
        fabric_ = ucx_fabric(run.fabric);
        fabric_->expose(4096);
        publish(board_->data(), fabric_->contact());
        to_ = fabric_->connect(await(board_->data() + board_bytes / 2));
    }

    // Half of there and back; `post_ns` grows by the time of handing it over, `serve_ns` by that of
    // the look that found the answer.
    double there(const std::vector<std::byte>& message, double& post_ns, double& serve_ns) {
        const std::int64_t began = steps_now_ns();
        fabric_->send(to_, message);
        post_ns += static_cast<double>(steps_now_ns() - began);
        const std::int64_t late = began + 2'000'000'000;
        for (;;) {
            const std::int64_t looked = steps_now_ns();
            if (fabric_->receive(answer_)) {
                serve_ns += static_cast<double>(steps_now_ns() - looked);
                break;
            }
            if (sleep_) fabric_->sleep(std::chrono::milliseconds(10));
            if (steps_now_ns() > late && peer_->ended())
                throw std::runtime_error("the second process ended");
        }
        return static_cast<double>(steps_now_ns() - began) / 2;
    }

  private:
    static constexpr std::size_t board_bytes = 1 << 14;
    // A length, then the contact.
    static void publish(std::byte* at, const std::vector<std::byte>& contact) {
        std::memcpy(at + word_bytes, contact.data(), contact.size());
        store_release(at, contact.size());
    }
    static std::span<const std::byte> await(std::byte* at) {
        const std::int64_t late = steps_now_ns() + 5'000'000'000;
        std::uint64_t bytes = 0;
        while ((bytes = load_acquire(at)) == 0) {
            if (steps_now_ns() > late) throw std::runtime_error("the second process is not ready");
            ::usleep(200);
        }
        return {at + word_bytes, bytes};
    }

    int own_;
    bool sleep_;
    std::unique_ptr<SharedMemory> board_;
    std::unique_ptr<Forked> peer_;
    std::unique_ptr<Fabric> fabric_;
    Fabric::Peer to_ = 0;
    std::vector<std::byte> answer_;
};

}  // namespace

std::vector<StepCost> measure_turns(const RunSetup& run, std::uint64_t bytes,
                                    const std::vector<int>& cpus, const StepPlan& plan) {
    if (cpus.empty()) throw std::invalid_argument("expected a processor");
    std::vector<StepCost> found;
    pin_thread(cpus[0]);
    const auto yields = [] {
        for (int k = 0; k < 64; ++k) ::sched_yield();
        return 64.0;
    };
    found.push_back({"yield", 0, 0, 1, means_ns(plan, yields)});
    {
        const SharedMemory memory(4096);
        auto* turns = new (memory.data()) Turns{};
        OwnPages pages;
        const auto touches = [&pages] {
            for (int k = 0; k < 64; ++k) pages.touch();
            return 64.0;
        };
        auto alone = means_ns(plan, touches);
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
        while (turns->ready.load() == 0) ::usleep(200);
        // Of two that yield all the time, each step is two turns; what they take to find what is
        // theirs in caches again is part of it.
        auto both = means_ns(plan, [&pages] {
            for (int k = 0; k < 64; ++k) {
                ::sched_yield();
                pages.touch();
            }
            return 64.0;
        });
        for (double& each : both) each = each / 2 - alone[alone.size() / 2];
        found.push_back({"turn", 0, 0, 1, both});
        turns->mode.store(1);
        StepCost slice{"slice", 0, 0, 1, {}};
        const std::int64_t began = steps_now_ns();
        std::int64_t last = began;
        while (slice.samples_ns.size() < plan.windows && last - began < 300'000'000) {
            const std::int64_t now = steps_now_ns();
            if (now - last > away_ns) slice.samples_ns.push_back(static_cast<double>(now - last));
            last = now;
        }
        turns->mode.store(2);
        if (!slice.samples_ns.empty()) found.push_back(slice);
    }
    const std::vector<std::byte> message(bytes);
    struct Taken {
        StepCost there, post, serve;
    };
    const auto messages = [&](int other, bool sleep) {
        Sleepers sleepers(run, cpus[0], other, sleep);
        double post_ns = 0, serve_ns = 0;
        for (int k = 0; k < 20; ++k) sleepers.there(message, post_ns, serve_ns);
        const StepCost empty{"", bytes, 0, 1, {}};
        Taken taken{empty, empty, empty};
        for (std::uint32_t window = 0; window < plan.windows; ++window) {
            double sum = 0, rounds = 0;
            post_ns = serve_ns = 0;
            const std::int64_t began = steps_now_ns();
            do {
                sum += sleepers.there(message, post_ns, serve_ns);
                ++rounds;
            } while (steps_now_ns() - began < plan.window_ns);
            taken.there.samples_ns.push_back(sum / rounds);
            taken.post.samples_ns.push_back(post_ns / rounds);
            taken.serve.samples_ns.push_back(serve_ns / rounds);
        }
        return taken;
    };
    const auto add = [&found](const char* name, StepCost step) {
        step.name = name;
        found.push_back(std::move(step));
    };
    add("sleep-same", messages(cpus[0], true).there);
    if (cpus.size() > 1) {
        const Taken asleep = messages(cpus[1], true), awake = messages(cpus[1], false);
        add("sleep-other", asleep.there);
        add("post-sleeper", asleep.post);
        add("post-across", awake.post);
        add("serve-across", awake.serve);
    }
    return found;
}

}  // namespace numatwin::native
