// How single steps vary, of times that are made up.
#include <gtest/gtest.h>

#include <vector>

#include "systems/commits/single_steps.hpp"

namespace numatwin::native {
namespace {

constexpr double turn_ns = 100'000;

std::vector<double> steps(std::size_t count, double ns, std::vector<double> more = {}) {
    more.insert(more.begin() + static_cast<std::ptrdiff_t>(more.size() / 2), count, ns);
    return more;
}

void window(SingleSteps& of, const std::vector<double>& all_ns) {
    for (const double ns : all_ns) of.add(ns);
    of.end_window();
}

StepSpread spread(const std::vector<double>& all_ns, double turn = turn_ns) {
    SingleSteps found(turn);
    window(found, all_ns);
    return found.spread("step", 8, 0);
}

TEST(UsualMean, leaves_out_a_twentieth_and_of_few_the_slowest) {
    EXPECT_EQ(usual_mean(steps(95, 10, {1e6, 1e6, 1e6, 1e6, 1e6})), 10);
    EXPECT_GT(usual_mean(steps(94, 10, {1e6, 1e6, 1e6, 1e6, 1e6, 1e6})), 10);
    for (const std::size_t count : {1, 2, 3, 10, 18, 19, 20})
        EXPECT_EQ(usual_mean(steps(count, 10, {1e6})), 10) << count;
    EXPECT_EQ(usual_mean({7}), 7);
    EXPECT_EQ(usual_mean({1, 2, 6}), 1.5);
}

// A turn of 10 ms ends a window of 5: the steps before it may be few.
TEST(SingleSteps, others_turns_are_left_out_of_short_and_long_windows) {
    for (const std::size_t count : {1, 2, 3, 10, 19, 20, 30, 5000}) {
        const StepSpread found = spread(steps(count, 1'000, {1e7}));
        EXPECT_EQ(found.steps, count);
        EXPECT_EQ(found.factors, std::vector<double>(spread_quantiles.size() + 1, 1.0)) << count;
    }
}

TEST(SingleSteps, several_turns_in_a_window_are_left_out) {
    const StepSpread found = spread(steps(5, 1'000, {1e7, 3e5, 2e6, 1.5e5}));
    EXPECT_EQ(found.steps, 5);
    EXPECT_EQ(found.factors.back(), 1.0);
}

// The edge: so much longer than the median, or more.
TEST(SingleSteps, what_is_slow_but_no_turn_stays) {
    const StepSpread found = spread(steps(40, 1'000, {100'999, 101'000}));
    EXPECT_EQ(found.steps, 41);
    EXPECT_DOUBLE_EQ(found.factors.back(), (1 + 100.999) / 2);  // of the two slowest
}

TEST(SingleSteps, who_sleeps_keeps_turns) {
    SingleSteps found;
    window(found, steps(10, 1'000, {1e6}));
    const StepSpread of = found.spread("sleeper", 8, 0);
    EXPECT_EQ(of.steps, 11);
    EXPECT_EQ(of.factors.front(), 1.0);
    EXPECT_EQ(of.factors.back(), (1 + 1'000.0) / 2);  // of the two slowest
}

TEST(SingleSteps, a_window_in_which_all_is_slower_varies_no_more) {
    SingleSteps found(turn_ns);
    window(found, steps(100, 1'000));
    window(found, steps(100, 3'000));
    found.add(77'000);
    found.drop_window();
    found.end_window();  // with nothing in it
    const StepSpread of = found.spread("step", 8, 4096);
    EXPECT_EQ(of.steps, 200);
    EXPECT_EQ(of.region, 4096);
    EXPECT_EQ(of.factors, std::vector<double>(spread_quantiles.size() + 1, 1.0));
}

// A thousand and one steps of 1 to 1,001 ns: without the slowest 51 their mean is 475.5 ns.
TEST(SingleSteps, quantiles_and_the_mean_of_the_slowest) {
    std::vector<double> all;
    for (int ns = 1; ns <= 1'001; ++ns) all.push_back(ns);
    const StepSpread found = spread(all);
    ASSERT_EQ(found.factors.size(), spread_quantiles.size() + 1);
    for (std::size_t k = 0; k < spread_quantiles.size(); ++k)
        EXPECT_NEAR(found.factors[k] * 475.5, 1 + 1'000 * spread_quantiles[k], 1) << k;
    EXPECT_DOUBLE_EQ(found.factors.back() * 475.5, 1'000.5);
}

TEST(SingleSteps, steps_of_several_kinds_come_together) {
    SingleSteps quick(turn_ns), slow(turn_ns);
    window(quick, steps(30, 100));
    window(slow, steps(10, 5'000));
    quick.add(slow);
    EXPECT_EQ(quick.spread("end", 8, 0).steps, 40);
}

TEST(SingleSteps, what_takes_no_time_is_refused) {
    EXPECT_THROW(spread({0, 0, -5}), std::runtime_error);
    EXPECT_THROW(spread({}), std::runtime_error);
}

}  // namespace
}  // namespace numatwin::native
