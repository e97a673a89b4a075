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

}  // namespace

Index::Index(std::size_t keys, bool dense)
    : manager_(options_of_index()), tree_(manager_.add_cache()), dense_(dense) {
    if (keys == 0) throw std::invalid_argument("expected an index of at least one key");
    constexpr std::size_t piece = std::size_t{1} << 14;
    std::mt19937_64 random(1);
    if (dense) {
        std::vector<KeyValue> run;
        for (std::size_t made = 0; made < keys; made += run.size()) {
            run.resize(std::min(piece, keys - made));
            for (std::size_t k = 0; k < run.size(); ++k) run[k] = {made + k, 1};
            tree_.append(run);
        }
        return;
    }
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

// Dense keys are drawn as they are needed: a sample of them would take room in the caches. Others
// come from the sample, whose places go round.
template <class Step>
Work Index::in_batches(std::size_t batch, Step step) {
    if (batch == 0 || (!dense_ && batch > known_.size()))
        throw std::invalid_argument("expected a batch of known keys");
    return [=, this, keys = std::vector<std::uint64_t>(batch), state = std::uint64_t{1},
            at = std::size_t{0}](std::int64_t end_ns) mutable {
        return turns_until(end_ns, [&] {
            double done = 0.0;
            for (std::size_t count = 0; count < kKeysBetweenLooks; count += batch) {
                const std::uint64_t* first = keys.data();
                if (dense_) {
                    for (std::uint64_t& key : keys) {
                        // Knuth's MMIX; its high bits, spread over the keys.
                        state = state * 6364136223846793005U + 1442695040888963407U;
                        __extension__ using Wide = unsigned __int128;
                        key = static_cast<std::uint64_t>(Wide{state} * tree_.keys() >> 64);
                    }
                } else {
                    if (at + batch > known_.size()) at = 0;
                    first = known_.data() + at;
                    at += batch;
                }
                done += step(std::span(first, batch));
            }
            return done;
        });
    };
}

Work Index::lookups(std::size_t batch) {
    auto values = std::vector<std::uint64_t>(batch);
    auto found = std::vector<std::uint8_t>(batch);
    return in_batches(batch, [=, this](std::span<const std::uint64_t> keys) mutable {
        return static_cast<double>(tree_.lookup(keys, values.data(), found.data()));
    });
}

Work Index::upserts(std::size_t batch) {
    const auto values = std::vector<std::uint64_t>(batch, 2);
    return in_batches(batch, [=, this](std::span<const std::uint64_t> keys) {
        tree_.upsert(keys, values);
        return static_cast<double>(keys.size());
    });
}

Work Index::scans(std::size_t pairs) {
    if (pairs == 0 || dense_)
        throw std::invalid_argument("expected a scan of at least one pair of random keys");
    return [this, run = std::vector<KeyValue>(pairs),
            at = std::size_t{0}](std::int64_t end_ns) mutable {
        constexpr std::uint64_t last = std::numeric_limits<std::uint64_t>::max();
        return turns_until(end_ns, [&] {
            const std::size_t found = tree_.flatten(known_[at], last, run);
            at = (at + 1) % known_.size();
            std::uint64_t sum = 0;
            for (std::size_t k = 0; k < found; ++k) sum += run[k].value;
            asm volatile("" : "+r"(sum));
            return static_cast<double>(found);
        });
    };
}

}  // namespace numatwin::native
