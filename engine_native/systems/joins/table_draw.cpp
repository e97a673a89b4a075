#include <array>
#include <span>
#include <utility>

#include "systems/joins/tuples.hpp"

// Header-only parts of the simulator.
#include "kernel/key_draws.hpp"
#include "kernel/philox.hpp"

namespace numatwin::native {
namespace {

KeyDraws key_draws(const JoinSetup& setup) {
    const auto keys = static_cast<std::int64_t>(setup.keys());
    if (setup.exponent > 0 && keys > 1) return KeyDraws(ZipfKeys(keys, setup.exponent, true));
    const std::array<std::int64_t, 2> breaks{0, keys};
    const std::array<double, 1> mass{1.0};
    return KeyDraws(PiecewiseKeys(breaks, mass));
}

// 31 bits.
std::uint64_t payload_of(std::uint64_t key) {
    return scattered(key + 1) >> 33;
}

std::uint64_t share(std::uint64_t all, std::uint32_t node, std::uint32_t nodes) {
    return (all + nodes - 1 - node) / nodes;
}

}  // namespace

template <class Word>
NodeTables<Word> draw_tables(const JoinSetup& setup, std::uint32_t node) {
    NodeTables<Word> made;
    const auto key = std::span(setup.streams).subspan(std::size_t{node} * 4, 4);
    if (setup.joins()) {
        Stream stream(key[0], key[1]);
        made.inner.resize(share(setup.inner, node, setup.nodes));
        for (std::size_t k = 0; k < made.inner.size(); ++k) {
            const std::uint64_t own = node + k * setup.nodes;
            made.inner[k] = {static_cast<Word>(own), static_cast<Word>(payload_of(own))};
            std::swap(made.inner[k], made.inner[stream.below(k + 1)]);
        }
    }
    Stream stream(key[2], key[3]);
    const KeyDraws keys = key_draws(setup);
    made.outer.resize(share(setup.outer, node, setup.nodes));
    for (auto& tuple : made.outer) {
        const std::uint64_t payload = stream.bits() >> 33;
        auto drawn = static_cast<std::uint64_t>(keys.draw(stream.uniform()));
        if (!setup.joins())
            made.expected += {1, scattered(drawn) * payload};
        else if (stream.uniform() < setup.selectivity)
            made.expected += {1, payload_of(drawn) * payload};
        else
            drawn += setup.inner;
        tuple = {static_cast<Word>(drawn), static_cast<Word>(payload)};
    }
    return made;
}

template NodeTables<std::uint32_t> draw_tables(const JoinSetup&, std::uint32_t);
template NodeTables<std::uint64_t> draw_tables(const JoinSetup&, std::uint32_t);

}  // namespace numatwin::native
