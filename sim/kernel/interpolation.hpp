// Piecewise linear functions.
#pragma once

#include <cstddef>
#include <vector>

namespace numatwin {

// y at `at`, of points with rising x; at most the last segment beyond the ends. At least two
// points.
inline double interpolated(double at, const std::vector<double>& x, const std::vector<double>& y) {
    std::size_t k = 1;
    while (k + 1 < x.size() && x[k] < at) ++k;
    return y[k - 1] + (y[k] - y[k - 1]) * (at - x[k - 1]) / (x[k] - x[k - 1]);
}

}  // namespace numatwin
