// Traffic of links, where a node's traffic between others is a product of two rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

namespace numatwin {

// That links are used by routes: use k is of the directed link[k], on the route from the node
// from[k] to the node to[k].
struct LinkUses {
    std::span<const std::int64_t> link;
    std::span<const std::int64_t> from;
    std::span<const std::int64_t> to;
};

// For each row r of n what each link carries where factor[i][r] * value[j][r] goes from i to j:
// total [links][n], added to in the order of the uses. Rows stand beside each other, so that a
// compiler makes several at a time. Throws std::invalid_argument for arrays that do not fit
// together, and for indices out of range. Takes O(n * uses).
inline void link_rows(const LinkUses& uses, std::size_t nodes, std::size_t links,
                      std::span<const double> factor, std::span<const double> value,
                      std::span<double> total) {
    const std::size_t count = uses.link.size();
    if (uses.from.size() != count || uses.to.size() != count) {
        throw std::invalid_argument("link, from and to: expected as many of each");
    }
    if (factor.size() != nodes * nodes || value.size() != nodes * nodes ||
        total.size() != nodes * links) {
        throw std::invalid_argument("factor and value: expected a row for each node");
    }
    const auto below = [](std::int64_t index, std::size_t end) {
        return index >= 0 && static_cast<std::size_t>(index) < end;
    };
    for (std::size_t k = 0; k < count; ++k) {
        if (!below(uses.link[k], links) || !below(uses.from[k], nodes) ||
            !below(uses.to[k], nodes)) {
            throw std::invalid_argument("link, from and to: expected indices");
        }
    }
    for (std::size_t k = 0; k < count; ++k) {
        const double* factors = factor.data() + static_cast<std::size_t>(uses.from[k]) * nodes;
        const double* values = value.data() + static_cast<std::size_t>(uses.to[k]) * nodes;
        double* sums = total.data() + static_cast<std::size_t>(uses.link[k]) * nodes;
        for (std::size_t r = 0; r < nodes; ++r) sums[r] += factors[r] * values[r];
    }
}

}  // namespace numatwin
