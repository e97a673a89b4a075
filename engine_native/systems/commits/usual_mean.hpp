// The mean of times that a few outliers do not move: for measurements.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace numatwin::native {

// Of one or more times without the slowest twentieth, and of few without the slowest: one of them
// may take longer than all others together. Clocks that tick in tens of nanoseconds do it no harm,
// as they would a median.
inline double usual_mean(std::vector<double> all) {
    const std::size_t slow = all.size() > 1 ? (all.size() + 19) / 20 : 0;
    std::ranges::sort(all);
    all.resize(all.size() - slow);
    return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}

}  // namespace numatwin::native
