#include "systems/commits/transaction_draw.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace numatwin::native {
namespace {

KeyDraws key_draws(const RunSetup& setup) {
    if (setup.keys == "zipf") return KeyDraws(ZipfKeys(setup.records, setup.exponent, false));
    if (setup.keys == "hot") {
        const std::array<std::int64_t, 3> breaks{0, setup.hot_records, setup.records};
        const std::array<double, 2> mass{setup.hot_probability, 1 - setup.hot_probability};
        return KeyDraws(PiecewiseKeys(breaks, mass));
    }
    if (setup.keys != "uniform") throw std::invalid_argument("keys: uniform, zipf or hot");
    const std::array<std::int64_t, 2> breaks{0, setup.records};
    const std::array<double, 1> mass{1.0};
    return KeyDraws(PiecewiseKeys(breaks, mass));
}

Durations think_times(const RunSetup& setup) {
    if (setup.think_exponential && setup.think_ns > 0)
        return Durations::exponential(static_cast<double>(setup.think_ns) * 1e3);
    return Durations::deterministic(setup.think_ns * 1000);
}

}  // namespace

TransactionDraw::TransactionDraw(const RunSetup& setup, std::uint32_t client)
    : setup_(setup), client_(client), keys_(key_draws(setup)), think_(think_times(setup)) {
    if (setup.streams.size() < 4 * (std::size_t{client} + 1))
        throw std::invalid_argument("streams: expected four words for each client");
    const std::uint64_t* key = &setup.streams[4 * std::size_t{client}];
    key_stream_ = Stream(key[0], key[1]);
    think_stream_ = Stream(key[2], key[3]);
}

void TransactionDraw::next() {
    reads_.clear();
    while (reads_.size() < setup_.reads) {
        const std::int64_t key = keys_.draw(key_stream_.uniform());
        if (std::find(reads_.begin(), reads_.end(), key) == reads_.end()) reads_.push_back(key);
    }
    creates_.clear();
    for (std::uint32_t k = 0; k < setup_.inserts; ++k)
        creates_.push_back(setup_.records + client_ + std::int64_t{setup_.clients} * created_++);
}

std::int64_t TransactionDraw::think_ns() {
    return think_.draw(think_stream_) / 1000;
}

}  // namespace numatwin::native
