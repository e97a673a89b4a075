// Operations of the prefix tree, in batches, on random keys.
#include <algorithm>
#include <limits>
#include <random>
#include <stdexcept>

#include "measure/engine_work.hpp"

namespace numatwin::native {
namespace {

constexpr std::size_t kKnownMax = std::size_t{1} << 20;
constexpr std::size_t kKeysBetweenLooks = 256;  // at the clock

ManagerOptions options_of_index() {
    ManagerOptions options;
    options.object = "an index to measure on";
    return options;
}

/// Calls `step(first)` with the place of the first key of each batch; the places go round.
template <class Step>
Work in_batches(std::size_t known, std::size_t batch, Step step) {
    if (batch == 0 || batch > known) throw std::invalid_argument("expected a batch of known keys");
    return [=, at = std::size_t{0}](std::int64_t end_ns) mutable {
        double done = 0.0;
        do {
            for (std::size_t keys = 0; keys < kKeysBetweenLooks; keys += batch) {
                if (at + batch > known) at = 0;
                done += step(at);
                at += batch;
            }
        } while (now_ns() < end_ns);
        return done;
    };
}

}  // namespace

Index::Index(std::size_t keys) : manager_(options_of_index()), tree_(manager_.add_cache()) {
    constexpr std::size_t piece = 4096;
    std::mt19937_64 random(1);
    std::vector<std::uint64_t> some(piece), values(piece, 1);
    const std::size_t every = std::max<std::size_t>(keys / kKnownMax, 1);
    for (std::size_t made = 0; made < keys; made += some.size()) {
        some.resize(std::min(piece, keys - made));
        for (std::uint64_t& key : some) key = random();
        tree_.upsert(some, {values.data(), some.size()});
        for (std::size_t at = 0; at < some.size(); at += every) known_.push_back(some[at]);
    }
    std::shuffle(known_.begin(), known_.end(), random);
}

Work Index::lookups(std::size_t batch) {
    auto values = std::vector<std::uint64_t>(batch);
    auto found = std::vector<std::uint8_t>(batch);
    return in_batches(known_.size(), batch, [=, this](std::size_t first) mutable {
        const std::span<const std::uint64_t> keys(known_.data() + first, batch);
        return static_cast<double>(tree_.lookup(keys, values.data(), found.data()));
    });
}

Work Index::upserts(std::size_t batch) {
    const auto values = std::vector<std::uint64_t>(batch, 2);
    return in_batches(known_.size(), batch, [=, this](std::size_t first) {
        const std::span<const std::uint64_t> keys(known_.data() + first, batch);
        tree_.upsert(keys, values);
        return static_cast<double>(batch);
    });
}

Work Index::scans(std::size_t pairs) {
    if (pairs == 0) throw std::invalid_argument("expected a scan of at least one pair");
    return [this, run = std::vector<KeyValue>(pairs),
            at = std::size_t{0}](std::int64_t end_ns) mutable {
        constexpr std::uint64_t last = std::numeric_limits<std::uint64_t>::max();
        double done = 0.0;
        do {
            const std::size_t found = tree_.flatten(known_[at], last, run);
            at = (at + 1) % known_.size();
            std::uint64_t sum = 0;
            for (std::size_t k = 0; k < found; ++k) sum += run[k].value;
            asm volatile("" : "+r"(sum));
            done += static_cast<double>(found);
        } while (now_ns() < end_ns);
        return done;
    };
}

}  // namespace numatwin::native
