// A mean that outliers do not move, of times that are made up.
#include <gtest/gtest.h>

#include <vector>

#include "systems/commits/measure_windows.hpp"

namespace numatwin::native {
namespace {

std::vector<double> steps(std::size_t count, double ns, std::vector<double> more = {}) {
    more.insert(more.begin() + static_cast<std::ptrdiff_t>(more.size() / 2), count, ns);
    return more;
}

TEST(UsualMean, leaves_out_a_twentieth_and_of_few_the_slowest) {
    EXPECT_EQ(usual_mean(steps(95, 10, {1e6, 1e6, 1e6, 1e6, 1e6})), 10);
    EXPECT_GT(usual_mean(steps(94, 10, {1e6, 1e6, 1e6, 1e6, 1e6, 1e6})), 10);
    for (const std::size_t count : {1, 2, 3, 10, 18, 19, 20})
        EXPECT_EQ(usual_mean(steps(count, 10, {1e6})), 10) << count;
    EXPECT_EQ(usual_mean({7}), 7);
    EXPECT_EQ(usual_mean({1, 2, 6}), 1.5);
}

}  // namespace
}  // namespace numatwin::native
