#include "rsi/measure_steps.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <new>
#include <random>
#include <stdexcept>
#include <system_error>

#include "rsi/fabric.hpp"
#include "rsi/forked.hpp"
#include "rsi/record_block.hpp"
#include "rsi/timestamp_bits.hpp"
#include "rsi/transaction_draw.hpp"

namespace numatwin::native {
namespace {

using Clock = std::chrono::steady_clock;

std::int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
        .count();
}

// Means per step of windows in which `work` does so many steps and says how many.
std::vector<double> means_ns(const StepPlan& plan, const std::function<double()>& work) {
    std::vector<double> found;
    for (std::uint32_t window = 0; window <= plan.windows; ++window) {
        const std::int64_t began = now_ns();
        double steps = 0;
        std::int64_t took = 0;
        do {
            steps += work();
            took = now_ns() - began;
        } while (took < plan.window_ns);
        if (window > 0) found.push_back(static_cast<double>(took) / steps);  // the first warms up
    }
    return found;
}

// -- blocks ---------------------------------------------------------------------------------------

// Shared memory as processes have it: its pages are small unless the kernel is told otherwise.
class SharedMemory {
  public:
    explicit SharedMemory(std::size_t bytes) : bytes_(bytes) {
        void* found = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (found == MAP_FAILED) throw std::bad_alloc();
        memory_ = static_cast<std::byte*>(found);
    }
    ~SharedMemory() { ::munmap(memory_, bytes_); }
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;
    std::byte* data() const { return memory_; }

  private:
    std::size_t bytes_;
    std::byte* memory_ = nullptr;
};

// As many blocks at a time as a transaction may read: processors overlap what they miss.
constexpr std::size_t together = 3;

class Blocks {
  public:
    Blocks(std::byte* region, std::uint64_t bytes, std::uint64_t blocks)
        : region_(region), bytes_(bytes), blocks_(blocks), own_(2 * together * bytes) {}

    double get() {
        draw();
        read();
        return together;
    }

    double update() {
        draw();
        read();
        for (std::size_t k = 0; k < together; ++k) std::memcpy(made(k), seen(k), bytes_);
        for (std::size_t k = 0; k < together; ++k)
            sum_ += compare_and_swap(region_ + at_[k], words_[k], words_[k] | LockWord::lock_bit);
        for (std::size_t k = 0; k < together; ++k) write(at_[k], made(k));
        return together;
    }

    double insert() {
        for (std::size_t k = 0; k < together; ++k) {
            std::memset(made(k), 0, bytes_);
            std::memcpy(made(k), &sum_, word_bytes);
            write(next_ * bytes_, made(k));
            if (++next_ == blocks_) next_ = 0;
        }
        return together;
    }

  private:
    void draw() {
        for (auto& at : at_) {
            state_ = state_ * 6364136223846793005u + 1442695040888963407u;
            at =
                static_cast<std::uint64_t>(static_cast<unsigned __int128>(state_) * blocks_ >> 64) *
                bytes_;
        }
    }
    void read() {
        for (std::size_t k = 0; k < together; ++k) copy_shared(seen(k), region_ + at_[k], bytes_);
        fence();
        for (std::size_t k = 0; k < together; ++k) {
            std::memcpy(&words_[k], seen(k), word_bytes);
            sum_ += load_acquire(region_ + at_[k]) == words_[k];
        }
    }
    void write(std::uint64_t at, const std::byte* block) {
        copy_shared(region_ + at + word_bytes, block + word_bytes, bytes_ - word_bytes);
        std::uint64_t word;
        std::memcpy(&word, block, word_bytes);
        store_release(region_ + at, word);
    }
    std::byte* seen(std::size_t k) { return own_.data() + k * bytes_; }
    std::byte* made(std::size_t k) { return own_.data() + (together + k) * bytes_; }

    std::byte* region_;
    std::uint64_t bytes_, blocks_;
    std::vector<std::byte> own_;
    std::uint64_t at_[together] = {}, words_[together] = {};
    std::uint64_t state_ = 1, next_ = 0, sum_ = 0;
};

}  // namespace

std::vector<StepCost> measure_blocks(const std::vector<std::uint64_t>& sizes,
                                     const std::vector<std::uint64_t>& regions,
                                     const StepPlan& plan) {
    std::vector<StepCost> found;
    const std::uint64_t largest = *std::max_element(regions.begin(), regions.end());
    const SharedMemory memory(largest);
    const auto add = [&](const char* name, std::uint64_t bytes, std::uint64_t region,
                         const std::function<double()>& work) {
        found.push_back({name, bytes, region, 1, means_ns(plan, work)});
    };
    for (const std::uint64_t region : regions) {
        for (const std::uint64_t bytes : sizes) {
            if (bytes % word_bytes != 0 || bytes < 2 * word_bytes || bytes > region)
                throw std::invalid_argument("blocks: whole words, within their region");
            Blocks blocks(memory.data(), bytes, region / bytes);
            const auto many = [](auto step) {
                return [step] {
                    double steps = 0;
                    for (int k = 0; k < 32; ++k) steps += step();
                    return steps;
                };
            };
            // Once through it, so that what fits into a cache is there; of what does not, some.
            for (std::uint64_t k = 0; k < std::min<std::uint64_t>(region, 64 << 20) / bytes; ++k)
                blocks.update();
            add("block-get", bytes, region, many([&] { return blocks.get(); }));
            add("block-update", bytes, region, many([&] { return blocks.update(); }));
            for (std::uint64_t k = 0; k < std::min<std::uint64_t>(region, 64 << 20) / bytes; ++k)
                blocks.insert();
            add("block-insert", bytes, region, many([&] { return blocks.insert(); }));
        }
    }
    std::vector<std::byte> own(8192);
    std::uint64_t sum = 0;
    for (const std::uint64_t bytes : {std::uint64_t{8}, std::uint64_t{8192}})
        add("words-get", bytes, 0, [&] {
            for (int k = 0; k < 64; ++k) {
                copy_shared(own.data(), memory.data(), bytes);
                fence();
                sum += load_acquire(own.data());
            }
            return 64.0;
        });
    add("word-add", word_bytes, 0, [&] {
        for (int k = 0; k < 64; ++k) sum += fetch_add(memory.data(), 1);
        return 64.0;
    });
    // A transaction's records drawn, and where they lie; a timestamp looked for, and its bit.
    RunSetup setup;
    setup.records = 1 << 20;
    setup.reads = setup.updates = setup.inserts = 4;
    setup.streams = {1, 2, 3, 4};
    TransactionDraw draw(setup, 0);
    add("key-draw", 0, 0, [&] {
        for (int k = 0; k < 8; ++k) {
            draw.next();
            for (const auto* keys : {&draw.reads(), &draw.creates()})
                for (const std::int64_t key : *keys)
                    sum += setup.server_of(key) + setup.block_of(key) * setup.block_bytes();
        }
        return 64.0;
    });
    const TimestampBits bits(2, setup.timestamp_bits);
    std::int64_t cid = 1;
    add("timestamp", 0, 0, [&] {
        for (int k = 0; k < 64; ++k) {
            const std::int64_t end =
                bits.run_end(cid, [&](std::uint64_t word) { return word + sum; });
            const TimestampBits::Bit bit = bits.bit(cid += 2);
            sum += static_cast<std::uint64_t>(end) + bit.at + bit.addend;
        }
        return 64.0;
    });
    add("clock", 0, 0, [&] {
        for (int k = 0; k < 64; ++k) sum += static_cast<std::uint64_t>(now_ns());
        return 64.0;
    });
    store_release(memory.data(), sum);  // what was summed is used
    return found;
}

// -- ends of messages -----------------------------------------------------------------------------

namespace {

constexpr std::uint64_t region_bytes = 1 << 20;

// Two ends in this thread.
class Ends {
  public:
    explicit Ends(const RunSetup& run)
        : asking_(ucx_fabric(run.fabric)), asked_(ucx_fabric(run.fabric)) {
        asked_->expose(region_bytes);
        to_asked_ = asking_->connect(asked_->contact());
        own_.resize(region_bytes);
        // Connections stand before anything is measured.
        Pending pending;
        asking_->get(to_asked_, 0, own_.data(), word_bytes, pending);
        while (pending.requests > 0) both();
        asking_->send(to_asked_, {own_.data(), word_bytes});
        while (!asked_->receive(message_)) both();
        for (int k = 0; k < 100; ++k) both();
    }

    // Times of posting, serving and completing so many.
    struct Times {
        double post = 0, serve = 0, complete = 0;
    };

    template <class Post>
    Times round(std::uint64_t count, bool flushes, const Post& post) {
        Times times;
        Pending pending;
        const std::int64_t began = now_ns();
        for (std::uint64_t k = 0; k < count; ++k) post(*asking_, k, pending);
        if (flushes) asking_->flush(to_asked_, pending);
        times.post += static_cast<double>(now_ns() - began);
        for (int idle = 0; pending.requests > 0;) {
            const bool served = look(*asked_, times.serve);
            const bool came = pending.requests > 0 && look(*asking_, times.complete);
            idle = served || came ? 0 : idle + 1;
            if (idle > 100'000'000) throw std::runtime_error("a request is not answered");
        }
        if (!flushes) return times;
        // What is left of it is nobody's wait, but work all the same.
        for (int idle = 0; idle < 2; ++idle) {
            if (look(*asked_, times.serve)) idle = 0;
            if (look(*asking_, times.complete)) idle = 0;
        }
        return times;
    }

    Times messages(std::uint64_t count, std::uint64_t bytes) {
        Times times;
        std::int64_t began = now_ns();
        for (std::uint64_t k = 0; k < count; ++k) asking_->send(to_asked_, {own_.data(), bytes});
        times.post = static_cast<double>(now_ns() - began);
        for (std::uint64_t k = 0; k < count;) {
            began = now_ns();
            const bool came = asked_->receive(message_);
            if (came) times.serve += static_cast<double>(now_ns() - began);
            if (came)
                ++k;
            else
                look(*asking_, times.complete);
        }
        return times;
    }

    bool idle_look() { return asked_->progress(); }
    void arm() { asked_->sleep(std::chrono::milliseconds(0)); }
    Fabric::Peer peer() const { return to_asked_; }
    std::byte* own(std::uint64_t at) { return own_.data() + at % (region_bytes / 2); }

  private:
    static bool look(Fabric& fabric, double& time) {
        const std::int64_t began = now_ns();
        const bool worked = fabric.progress();
        if (worked) time += static_cast<double>(now_ns() - began);
        return worked;
    }
    void both() {
        asking_->progress();
        asked_->progress();
    }

    std::unique_ptr<Fabric> asking_, asked_;
    Fabric::Peer to_asked_ = 0;
    std::vector<std::byte> own_, message_;
};

}  // namespace

std::vector<StepCost> measure_ends(const RunSetup& run, const std::vector<std::uint64_t>& sizes,
                                   const std::vector<std::uint64_t>& counts, const StepPlan& plan) {
    Ends ends(run);
    std::vector<StepCost> found;
    const Fabric::Peer peer = ends.peer();
    const auto measure = [&](const std::string& name, std::uint64_t bytes, std::uint64_t count,
                             const std::function<Ends::Times()>& round) {
        StepCost post{"post-" + name, bytes, 0, count, {}},
            serve{"serve-" + name, bytes, 0, count, {}},
            complete{"complete-" + name, bytes, 0, count, {}};
        for (std::uint32_t window = 0; window <= plan.windows; ++window) {
            Ends::Times sum;
            double rounds = 0;
            const std::int64_t began = now_ns();
            do {
                const Ends::Times one = round();
                sum.post += one.post;
                sum.serve += one.serve;
                sum.complete += one.complete;
                ++rounds;
            } while (now_ns() - began < plan.window_ns);
            if (window == 0) continue;
            const double steps = rounds * static_cast<double>(count);
            post.samples_ns.push_back(sum.post / steps);
            serve.samples_ns.push_back(sum.serve / steps);
            complete.samples_ns.push_back(sum.complete / steps);
        }
        found.push_back(post);
        found.push_back(serve);
        found.push_back(complete);
    };
    for (const std::uint64_t count : counts) {
        std::vector<std::uint64_t> words(count), expected(count);
        const std::uint64_t one = 1;
        measure("compare-and-swap", word_bytes, count, [&] {
            return ends.round(count, false, [&](Fabric& fabric, std::uint64_t k, Pending& pending) {
                expected[k] = words[k];
                words[k] = expected[k] + 1;
                fabric.compare_and_swap(peer, k * 64, expected[k], words[k], pending);
            });
        });
        measure("add", word_bytes, count, [&] {
            return ends.round(count, true, [&](Fabric& fabric, std::uint64_t k, Pending&) {
                fabric.add(peer, k * 64, one);
            });
        });
        for (const std::uint64_t asked : sizes) {
            const std::uint64_t bytes = std::clamp<std::uint64_t>(asked / 8 * 8, 16, 1 << 17);
            const auto at = [&](std::uint64_t k) { return k * bytes % (region_bytes / 2); };
            measure("get", bytes, count, [&] {
                return ends.round(count, false,
                                  [&](Fabric& fabric, std::uint64_t k, Pending& pending) {
                                      fabric.get(peer, at(k), ends.own(at(k)), bytes, pending);
                                  });
            });
            measure("put", bytes, count, [&] {
                return ends.round(count, true, [&](Fabric& fabric, std::uint64_t k, Pending&) {
                    fabric.publish(peer, at(k), ends.own(at(k)), bytes);
                });
            });
            measure("message", bytes, count, [&] { return ends.messages(count, bytes); });
        }
    }
    found.push_back({"idle-look", 0, 0, 1, means_ns(plan, [&] {
                         for (int k = 0; k < 16; ++k) ends.idle_look();
                         return 16.0;
                     })});
    found.push_back({"arm", 0, 0, 1, means_ns(plan, [&] {
                         for (int k = 0; k < 16; ++k) ends.arm();
                         return 16.0;
                     })});
    return found;
}

// -- turns ----------------------------------------------------------------------------------------

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
        const std::int64_t began = now_ns();
        fabric_->send(to_, message);
        post_ns += static_cast<double>(now_ns() - began);
        const std::int64_t late = began + 2'000'000'000;
        while (!fabric_->receive(answer_)) {
            fabric_->sleep(std::chrono::milliseconds(10));
            if (now_ns() > late && peer_->ended())
                throw std::runtime_error("the second process ended");
        }
        return static_cast<double>(now_ns() - began) / 2;
    }

  private:
    static constexpr std::size_t board_bytes = 1 << 14;
    // A length, then the contact.
    static void publish(std::byte* at, const std::vector<std::byte>& contact) {
        std::memcpy(at + word_bytes, contact.data(), contact.size());
        store_release(at, contact.size());
    }
    static std::span<const std::byte> await(std::byte* at) {
        const std::int64_t late = now_ns() + 5'000'000'000;
        std::uint64_t bytes = 0;
        while ((bytes = load_acquire(at)) == 0) {
            if (now_ns() > late) throw std::runtime_error("the second process is not ready");
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
        const Forked other([turns, cpu = cpus[0]] {
            bind_to(cpu);
            turns->ready.store(1);
            for (;;) {
                const std::uint32_t mode = turns->mode.load(std::memory_order_relaxed);
                if (mode == 0) ::sched_yield();
                if (mode == 2) ::usleep(1000);
            }
        });
        while (turns->ready.load() == 0) ::usleep(200);
        // Of two that yield all the time, each step is two turns.
        auto both = means_ns(plan, yields);
        for (double& each : both) each /= 2;
        found.push_back({"turn", 0, 0, 1, both});
        turns->mode.store(1);
        StepCost slice{"slice", 0, 0, 1, {}};
        const std::int64_t began = now_ns();
        std::int64_t last = began;
        while (slice.samples_ns.size() < plan.windows && last - began < 300'000'000) {
            const std::int64_t now = now_ns();
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
            const std::int64_t began = now_ns();
            do {
                sum += sleepers.there(message, post_ns);
                ++rounds;
            } while (now_ns() - began < plan.window_ns);
            there.samples_ns.push_back(sum / rounds);
            post.samples_ns.push_back(post_ns / rounds);
        }
        found.push_back(there);
        if (!same) found.push_back(post);
    }
    return found;
}

}  // namespace numatwin::native
