// Water-filling: a shared amount poured over columns that stand at different heights.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace numatwin {

// What each column gets of an amount of 1 that raises it by its cost a unit, from its height, until
// all that get any stand at one level; the others stand higher. The sum is 1 but for rounding.
// Takes O(n log n) for n columns. Costs must be above 0, heights numbers; throws
// std::invalid_argument.
inline void water_filling(std::span<const double> height, std::span<const double> cost,
                          std::span<double> share) {
    const std::size_t count = height.size();
    if (count == 0 || cost.size() != count || share.size() != count) {
        throw std::invalid_argument("cost: expected as many as heights, " + std::to_string(count) +
                                    ", and at least one");
    }
    for (std::size_t k = 0; k < count; ++k) {
        if (!(cost[k] > 0)) throw std::invalid_argument("cost: expected above 0");
        if (std::isnan(height[k])) throw std::invalid_argument("height: expected a number");
    }
    thread_local std::vector<std::size_t> order;
    order.resize(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return height[a] < height[b]; });
    // Only differences count, and only in proportion to the cost. With the first k columns taking
    // part, the level is (1 + sum height/cost) / (sum 1/cost).
    const double lowest = height[order.front()];
    for (std::size_t k = 0; k < count; ++k) share[k] = (height[k] - lowest) / cost[k];
    double weighted = 0.0;
    double rate = 0.0;
    double level = 0.0;
    for (std::size_t k = 0; k < count; ++k) {
        weighted += share[order[k]];
        rate += 1.0 / cost[order[k]];
        const double here = (1.0 + weighted) / rate;
        // It falls as long as the next column is below it, and rises from there on.
        if (k == 0 || here < level) level = here;
    }
    for (std::size_t k = 0; k < count; ++k) {
        share[k] = std::max(level / cost[k] - share[k], 0.0);
    }
}

}  // namespace numatwin
