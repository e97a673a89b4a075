// What a client does for each transaction beside its requests, in parts: for measurements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/shared_words.hpp"
#include "systems/commits/board.hpp"
#include "systems/commits/timestamp_bits.hpp"
#include "systems/commits/transaction_draw.hpp"

namespace numatwin::native {

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

}  // namespace numatwin::native
