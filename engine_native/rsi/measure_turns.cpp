// Turns of processes on a processor, sleepers and who wakes them: see measure_steps.hpp.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>

#include "rsi/fabric.hpp"
#include "rsi/forked.hpp"
#include "rsi/measure_windows.hpp"
#include "rsi/shared_words.hpp"

namespace numatwin::native {
namespace {

void bind_to(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(cpu), &set);
    if (::sched_setaffinity(0, sizeof set, &set) != 0)
        throw std::system_error(errno, std::generic_category(), "a processor of its own");
}

// What two processes share while turns are measured.
struct Turns {
    std::atomic<std::uint32_t> mode;  // 0: it yields, 1: it spins, 2: it sleeps
    std::atomic<std::uint32_t> ready;
};

constexpr std::int64_t away_ns = 100'000;  // longer than anything but another's turn

// What a client goes through with each transaction: pages of its own.
class OwnPages {
  public:
    OwnPages() : words_(bytes / sizeof(std::uint64_t), 1) {}
    void touch() {
        for (std::size_t at = 0; at < words_.size(); at += line / sizeof(std::uint64_t))
            words_[at] = words_[at] * 3 + 1;
    }

  private:
    static constexpr std::size_t bytes = 32 << 10, line = 64;
    std::vector<std::uint64_t> words_;
};

// One after the other is asked, and answers; both sleep as soon as nothing comes.
class Sleepers {
  public:
    Sleepers(const RunSetup& run, int own, int other) : own_(own) {
        board_ = std::make_unique<SharedMemory>(board_bytes);
        peer_ = std::make_unique<Forked>([&run, other, memory = board_->data()] {
            try {
                bind_to(other);
                const auto fabric = ucx_fabric(run.fabric);
                fabric->expose(4096);
                publish(memory + board_bytes / 2, fabric->contact());
                const Fabric::Peer back = fabric->connect(await(memory));
                std::vector<std::byte> message;
                for (;;) {
                    while (!fabric->receive(message)) fabric->sleep(std::chrono::milliseconds(10));
                    fabric->send(back, message);
                }
            } catch (const std::exception&) {
            }
        });
        bind_to(own_);
        fabric_ = ucx_fabric(run.fabric);
        fabric_->expose(4096);
        publish(board_->data(), fabric_->contact());
        to_ = fabric_->connect(await(board_->data() + board_bytes / 2));
    }

    // Half of there and back; `post_ns` grows by the time of handing it over.
    double there(const std::vector<std::byte>& message, double& post_ns) {
        const std::int64_t began = steps_now_ns();
        fabric_->send(to_, message);
        post_ns += static_cast<double>(steps_now_ns() - began);
        const std::int64_t late = began + 2'000'000'000;
        while (!fabric_->receive(answer_)) {
            fabric_->sleep(std::chrono::milliseconds(10));
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
    bind_to(cpus[0]);
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
            bind_to(cpu);
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
    for (const bool same : {true, false}) {
        if (!same && cpus.size() < 2) break;
        Sleepers sleepers(run, cpus[0], same ? cpus[0] : cpus[1]);
        double post_ns = 0;
        for (int k = 0; k < 20; ++k) sleepers.there(message, post_ns);
        StepCost there{same ? "sleep-same" : "sleep-other", bytes, 0, 1, {}};
        StepCost post{"post-sleeper", bytes, 0, 1, {}};
        for (std::uint32_t window = 0; window < plan.windows; ++window) {
            double sum = 0, rounds = 0;
            post_ns = 0;
            const std::int64_t began = steps_now_ns();
            do {
                sum += sleepers.there(message, post_ns);
                ++rounds;
            } while (steps_now_ns() - began < plan.window_ns);
            there.samples_ns.push_back(sum / rounds);
            post.samples_ns.push_back(post_ns / rounds);
        }
        found.push_back(there);
        if (!same) found.push_back(post);
    }
    return found;
}

}  // namespace numatwin::native
