// Steps on blocks in shared memory, alone and beside another process: see measure_steps.hpp.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "fabric/forked.hpp"
#include "fabric/shared_words.hpp"
#include "memory/host.hpp"
#include "systems/commits/board.hpp"
#include "systems/commits/measure_windows.hpp"
#include "systems/commits/record_block.hpp"
#include "systems/commits/timestamp_bits.hpp"
#include "systems/commits/transaction_draw.hpp"

namespace numatwin::native {

// What a client does for each transaction beside its requests, in parts: for measurements.

class Beginning {
  public:
    static constexpr std::uint64_t words_max = 8192;

    // `words`: shared memory, so many bytes at least.
    explicit Beginning(const std::byte* words) : words_(words), draw_(setup_, 0) {}

    void get_words(std::uint64_t bytes) {
        copy_shared(own_.data(), words_, bytes);
        fence();
        sum_ += load_acquire(own_.data());
    }
    // Nobody else adds to it.
    void add_bit() { sum_ += fetch_add(own_.data(), 1); }
    // A transaction's records, and where they lie; how many.
    double draw_keys() {
        draw_.next();
        for (const auto* keys : {&draw_.reads(), &draw_.creates()})
            for (const std::int64_t key : *keys)
                sum_ += setup_.server_of(key) + setup_.block_of(key) * setup_.block_bytes();
        return static_cast<double>(draw_.reads().size() + draw_.creates().size());
    }
    // The end of the leading run, and the bit of the next timestamp.
    void find_timestamp() {
        const std::int64_t end =
            bits_.run_end(cid_, [this](std::uint64_t word) { return word + sum_; });
        const TimestampBits::Bit bit = bits_.bit(cid_ += 2);
        sum_ += static_cast<std::uint64_t>(end) + bit.at + bit.addend;
    }
    // What a client counts.
    void note() {
        for (std::size_t type = 0; type < 12; ++type) counters_->messages[type].add();
        counters_->commits.add();
        counters_->add_latency(400'000 + noted_++ * 7919 % 400'000);
        counters_->busy_ns.add(sum_);
        counters_->bytes.add(sum_);
        counters_->updates.add(setup_.updates);
    }
    std::uint64_t sum() const { return sum_ + counters_->commits.get(); }

  private:
    static RunSetup setup() {
        RunSetup made;
        made.records = 1 << 20;
        made.reads = made.updates = made.inserts = 4;
        made.streams = {1, 2, 3, 4};
        return made;
    }

    const std::byte* words_;
    const RunSetup setup_ = setup();
    TransactionDraw draw_;
    const TimestampBits bits_{2, setup_.timestamp_bits};
    const std::unique_ptr<Counters> counters_ = std::make_unique<Counters>();
    std::vector<std::byte> own_{words_max};
    std::int64_t cid_ = 1, noted_ = 0;
    std::uint64_t sum_ = 0;
};

// Blocks in shared memory as clients work on them, alone and beside another process: for
// measurements.

// As many blocks at a time as a transaction may read: processors overlap what they miss.
inline constexpr std::size_t blocks_at_a_time = 3;

class Blocks {
  public:
    // As many blocks as the region holds.
    Blocks(std::byte* region, std::uint64_t region_bytes, std::uint64_t bytes,
           std::uint64_t seed = 1)
        : region_(region),
          bytes_(bytes),
          blocks_(region_bytes / checked(bytes, region_bytes)),
          own_(2 * blocks_at_a_time * bytes),
          state_(seed),
          next_(blocks_ / seed) {
        if (next_ >= blocks_) next_ = 0;
    }

    // Once through them, so that what fits into a cache is there; of what does not, some.
    void warm_up() {
        for (std::uint64_t k = 0; k < std::min<std::uint64_t>(blocks_ * bytes_, 64 << 20) / bytes_;
             ++k)
            update();
    }

    double get() {
        draw();
        read();
        return blocks_at_a_time;
    }

    double update() {
        get();
        return write();
    }

    // What an update does to blocks that were got.
    double write() {
        for (std::size_t k = 0; k < blocks_at_a_time; ++k) std::memcpy(made(k), seen(k), bytes_);
        for (std::size_t k = 0; k < blocks_at_a_time; ++k)
            sum_ += compare_and_swap(region_ + at_[k], words_[k], words_[k] | LockWord::lock_bit);
        for (std::size_t k = 0; k < blocks_at_a_time; ++k) put(at_[k], made(k));
        return blocks_at_a_time;
    }

    double insert() {
        for (std::size_t k = 0; k < blocks_at_a_time; ++k) {
            std::memset(made(k), 0, bytes_);
            std::memcpy(made(k), &sum_, word_bytes);
            put(next_ * bytes_, made(k));
            if (++next_ == blocks_) next_ = 0;
        }
        return blocks_at_a_time;
    }

  private:
    static std::uint64_t checked(std::uint64_t bytes, std::uint64_t region_bytes) {
        if (bytes % word_bytes != 0 || bytes < 2 * word_bytes || bytes > region_bytes)
            throw std::invalid_argument("blocks: whole words, within their region");
        return bytes;
    }
    void draw() {
        for (auto& at : at_) {
            state_ = state_ * 6364136223846793005u + 1442695040888963407u;
            at =
                static_cast<std::uint64_t>(static_cast<unsigned __int128>(state_) * blocks_ >> 64) *
                bytes_;
        }
    }
    void read() {
        for (std::size_t k = 0; k < blocks_at_a_time; ++k)
            copy_shared(seen(k), region_ + at_[k], bytes_);
        fence();
        for (std::size_t k = 0; k < blocks_at_a_time; ++k) {
            std::memcpy(&words_[k], seen(k), word_bytes);
            sum_ += load_acquire(region_ + at_[k]) == words_[k];
        }
    }
    void put(std::uint64_t at, const std::byte* block) {
        copy_shared(region_ + at + word_bytes, block + word_bytes, bytes_ - word_bytes);
        std::uint64_t word;
        std::memcpy(&word, block, word_bytes);
        store_release(region_ + at, word);
    }
    std::byte* seen(std::size_t k) { return own_.data() + k * bytes_; }
    std::byte* made(std::size_t k) { return own_.data() + (blocks_at_a_time + k) * bytes_; }

    std::byte* region_;
    std::uint64_t bytes_, blocks_;
    std::vector<std::byte> own_;
    std::uint64_t at_[blocks_at_a_time] = {}, words_[blocks_at_a_time] = {};
    std::uint64_t state_, next_, sum_ = 0;
};

// A second process, on a processor of its own, that works on the same blocks on request.
class Companion {
  public:
    Companion(std::byte* region, std::uint64_t bytes, int cpu)
        : shared_(4096), order_(new (shared_.data()) Order{}) {
        peer_.emplace([this, region, bytes, cpu] {
            pin_thread(cpu);
            // Its page table entries, so that it waits for none later.
            std::uint64_t sum = 0;
            for (std::uint64_t at = 0; at < bytes; at += 4096) sum += load_acquire(region + at);
            order_->works.store(sum & 0, std::memory_order_release);
            for (;;) {
                const std::uint64_t blocks = order_->blocks.load(std::memory_order_acquire);
                order_->works.store(blocks, std::memory_order_release);
                if (blocks == 0) {
                    ::usleep(50);
                    continue;
                }
                const std::uint64_t of_bytes = order_->bytes.load();
                Blocks theirs(region, blocks * of_bytes, of_bytes, 7);
                while (order_->blocks.load(std::memory_order_acquire) == blocks) {
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
        order_->bytes.store(bytes);
        order_->blocks.store(blocks, std::memory_order_release);
        const Patience patience("the second process");
        while (order_->works.load(std::memory_order_acquire) != blocks) {
            patience.check();
            if (peer_->ended()) throw std::runtime_error("the second process ended");
            ::usleep(50);
        }
    }

  private:
    struct Order {
        std::atomic<std::uint64_t> blocks{0}, bytes{16}, works{0};
    };
    PopulatedMemory shared_;
    Order* order_;
    std::optional<Forked> peer_;
};

namespace {

// What a step of so many parts took longer than going through one's own alone; per part.
void less(std::vector<double>& with, const std::vector<double>& without, double parts) {
    for (std::size_t k = 0; k < with.size(); ++k)
        with[k] = std::max(with[k] - without[k], 0.0) / parts;
}

}  // namespace

std::vector<StepCost> measure_blocks(const std::vector<std::uint64_t>& sizes,
                                     const std::vector<std::uint64_t>& regions,
                                     const std::vector<int>& cpus, const StepPlan& plan) {
    std::vector<StepCost> found;
    const std::uint64_t largest = *std::max_element(regions.begin(), regions.end());
    const PopulatedMemory memory(largest);
    std::unique_ptr<Companion> companion;
    if (cpus.size() > 1) {
        pin_thread(cpus[0]);
        companion = std::make_unique<Companion>(memory.data(), largest, cpus[1]);
    }
    const std::string names[] = {"block-get", "block-update", "block-insert"};
    OwnPages pages;
    Beginning beginning(memory.data());
    const auto add = [&](const char* name, std::uint64_t bytes, std::uint64_t region,
                         const std::function<double()>& work) {
        found.push_back({name, bytes, region, 1, means_ns(plan, work)});
    };
    for (const std::uint64_t region : regions) {
        for (const std::uint64_t bytes : sizes) {
            Blocks blocks(memory.data(), region, bytes);
            // Each time a client comes to a step, it has been through what is its own.
            const auto many = [&pages](auto step) {
                return repeated(32, [&pages, step] {
                    pages.touch();
                    step();
                });
            };
            blocks.warm_up();
            // What is created goes to one place after another: while a client does other things,
            // the processor fetches the next ones. Back to back it could not.
            const auto interleaved = [&](auto step) {
                return many([&beginning, step] {
                    step();
                    beginning.add_bit();
                    beginning.get_words(Beginning::words_max);
                });
            };
            const auto nothing = [] {};
            // In turn, so that what drifts on the host hits all alike.
            const std::vector<std::function<double()>> works{many([&] { blocks.get(); }),
                                                             many([&] { blocks.update(); }),
                                                             interleaved([&] { blocks.insert(); }),
                                                             many(nothing),
                                                             many(nothing),
                                                             interleaved(nothing)};
            const auto measure = [&](const char* end) {
                auto samples = means_in_turn_ns(plan, works);
                for (std::size_t k = 0; k < std::size(names); ++k) {
                    less(samples[k], samples[std::size(names) + k], blocks_at_a_time);
                    found.push_back({names[k] + end, bytes, region, 1, samples[k]});
                }
            };
            measure("");
            if (!companion) continue;
            companion->tell(region / bytes, bytes);
            measure("-together");
            companion->tell(0, bytes);
        }
    }
    for (const std::uint64_t bytes : {std::uint64_t{8}, std::uint64_t{8192}}) {
        const auto words = [&](bool gets) {
            return repeated(64, [&, gets] {
                pages.touch();
                if (gets) beginning.get_words(bytes);
            });
        };
        auto samples = means_in_turn_ns(plan, {words(true), words(false)});
        less(samples[0], samples[1], 1.0);
        found.push_back({"words-get", bytes, 0, 1, samples[0]});
    }
    std::uint64_t sum = 0;
    add("word-add", word_bytes, 0, repeated(64, [&] { sum += fetch_add(memory.data(), 1); }));
    add("key-draw", 0, 0, [&] {
        double drawn = 0;
        for (int k = 0; k < 8; ++k) drawn += beginning.draw_keys();
        return drawn;
    });
    add("timestamp", 0, 0, repeated(64, [&] { beginning.find_timestamp(); }));
    add("note", 0, 0, repeated(64, [&] { beginning.note(); }));
    add("clock", 0, 0, repeated(64, [&] { sum += static_cast<std::uint64_t>(steady_ns()); }));
    store_release(memory.data(), sum + beginning.sum());  // what was summed is used
    return found;
}

}  // namespace numatwin::native
