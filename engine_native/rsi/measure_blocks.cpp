// Steps on blocks in shared memory, alone and beside another process: see measure_steps.hpp.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "memory/host.hpp"
#include "rsi/board.hpp"
#include "rsi/forked.hpp"
#include "rsi/measure_windows.hpp"
#include "rsi/record_block.hpp"
#include "rsi/timestamp_bits.hpp"
#include "rsi/transaction_draw.hpp"

namespace numatwin::native {
namespace {

// As many blocks at a time as a transaction may read: processors overlap what they miss.
constexpr std::size_t together = 3;

class Blocks {
  public:
    Blocks(std::byte* region, std::uint64_t bytes, std::uint64_t blocks, std::uint64_t seed = 1)
        : region_(region),
          bytes_(bytes),
          blocks_(blocks),
          own_(2 * together * bytes),
          state_(seed),
          next_(blocks / seed) {
        if (next_ >= blocks_) next_ = 0;
    }

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
    std::uint64_t state_, next_, sum_ = 0;
};

// What a step of so many parts took longer than going through one's own alone; per part.
void less(std::vector<double>& with, const std::vector<double>& without, double parts) {
    for (std::size_t k = 0; k < with.size(); ++k)
        with[k] = std::max(with[k] - without[k], 0.0) / parts;
}

// A second process, on a processor of its own, that works on the same blocks when it is told to.
class Companion {
  public:
    Companion(std::byte* region, std::uint64_t bytes, int cpu)
        : shared_(4096), told_(new (shared_.data()) Told{}) {
        peer_.emplace([this, region, bytes, cpu] {
            pin_thread(cpu);
            // Its page table entries, so that it waits for none later.
            std::uint64_t sum = 0;
            for (std::uint64_t at = 0; at < bytes; at += 4096) sum += load_acquire(region + at);
            told_->works.store(sum & 0, std::memory_order_release);
            for (;;) {
                const std::uint64_t blocks = told_->blocks.load(std::memory_order_acquire);
                told_->works.store(blocks, std::memory_order_release);
                if (blocks == 0) {
                    ::usleep(50);
                    continue;
                }
                Blocks theirs(region, told_->bytes.load(), blocks, 7);
                while (told_->blocks.load(std::memory_order_acquire) == blocks) {
                    theirs.update();
                    theirs.insert();
                }
            }
        });
        tell(1, 16);
        tell(0, 16);
    }
    // Starts to work on so many blocks, or (of none) stops; returns when it has.
    void tell(std::uint64_t blocks, std::uint64_t bytes) {
        told_->bytes.store(bytes);
        told_->blocks.store(blocks, std::memory_order_release);
        while (told_->works.load(std::memory_order_acquire) != blocks) {
            if (peer_->ended()) throw std::runtime_error("the second process ended");
            ::usleep(50);
        }
    }

  private:
    struct Told {
        std::atomic<std::uint64_t> blocks{0}, bytes{16}, works{0};
    };
    SharedMemory shared_;
    Told* told_;
    std::optional<Forked> peer_;
};

}  // namespace

std::vector<StepCost> measure_blocks(const std::vector<std::uint64_t>& sizes,
                                     const std::vector<std::uint64_t>& regions,
                                     const std::vector<int>& cpus, const StepPlan& plan) {
    std::vector<StepCost> found;
    const std::uint64_t largest = *std::max_element(regions.begin(), regions.end());
    const SharedMemory memory(largest);
    std::unique_ptr<Companion> companion;
    if (cpus.size() > 1) {
        pin_thread(cpus[0]);
        companion = std::make_unique<Companion>(memory.data(), largest, cpus[1]);
    }
    const std::string names[] = {"block-get", "block-update", "block-insert"};
    OwnPages pages;
    const auto add = [&](const char* name, std::uint64_t bytes, std::uint64_t region,
                         const std::function<double()>& work) {
        found.push_back({name, bytes, region, 1, means_ns(plan, work)});
    };
    for (const std::uint64_t region : regions) {
        for (const std::uint64_t bytes : sizes) {
            if (bytes % word_bytes != 0 || bytes < 2 * word_bytes || bytes > region)
                throw std::invalid_argument("blocks: whole words, within their region");
            Blocks blocks(memory.data(), bytes, region / bytes);
            // Each time a client comes to a step, it has been through what is its own.
            const auto many = [&pages](auto step) {
                return [&pages, step] {
                    for (int k = 0; k < 32; ++k) {
                        pages.touch();
                        step();
                    }
                    return 32.0;
                };
            };
            // Once through it, so that what fits into a cache is there; of what does not, some.
            for (std::uint64_t k = 0; k < std::min<std::uint64_t>(region, 64 << 20) / bytes; ++k)
                blocks.update();
            // In turn, so that what drifts on the host hits all alike.
            const std::vector<std::function<double()>> works{
                many([&] { return blocks.get(); }), many([&] { return blocks.update(); }),
                many([&] { return blocks.insert(); }), many([] { return 0.0; })};
            const auto add_all = [&](const char* end) {
                auto samples = means_in_turn_ns(plan, works);
                for (std::size_t k = 0; k < std::size(names); ++k) {
                    less(samples[k], samples.back(), together);
                    found.push_back({names[k] + end, bytes, region, 1, samples[k]});
                }
            };
            add_all("");
            if (!companion) continue;
            companion->tell(region / bytes, bytes);
            add_all("-together");
            companion->tell(0, bytes);
        }
    }
    std::vector<std::byte> own(8192);
    std::uint64_t sum = 0;
    for (const std::uint64_t bytes : {std::uint64_t{8}, std::uint64_t{8192}}) {
        const auto words = [&](bool gets) {
            return [&, gets] {
                for (int k = 0; k < 64; ++k) {
                    pages.touch();
                    if (!gets) continue;
                    copy_shared(own.data(), memory.data(), bytes);
                    fence();
                    sum += load_acquire(own.data());
                }
                return 64.0;
            };
        };
        auto samples = means_in_turn_ns(plan, {words(true), words(false)});
        less(samples[0], samples[1], 1.0);
        found.push_back({"words-get", bytes, 0, 1, samples[0]});
    }
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
    // What a client counts of each transaction.
    const auto counters = std::make_unique<Counters>();
    add("note", 0, 0, [&] {
        for (int k = 0; k < 64; ++k) {
            for (std::size_t type = 0; type < 12; ++type) counters->messages[type].add();
            counters->commits.add();
            counters->add_latency(400'000 + (cid * 7919 + k) % 400'000);
            counters->busy_ns.add(sum);
            counters->bytes.add(sum);
            counters->updates.add(setup.updates);
        }
        ++cid;
        return 64.0;
    });
    sum += counters->commits.get();
    add("clock", 0, 0, [&] {
        for (int k = 0; k < 64; ++k) sum += static_cast<std::uint64_t>(steps_now_ns());
        return 64.0;
    });
    store_release(memory.data(), sum);  // what was summed is used
    return found;
}

}  // namespace numatwin::native
