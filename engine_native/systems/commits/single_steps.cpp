#include "systems/commits/single_steps.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace numatwin::native {

double usual_mean(std::vector<double> all) {
    const std::size_t slow = all.size() > 1 ? (all.size() + 19) / 20 : 0;
    std::ranges::sort(all);
    all.resize(all.size() - slow);
    return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}

// Turns go first: in a window of few steps the slowest twentieth would not hold them all.
void SingleSteps::end_window() {
    if (window_.empty()) return;
    const auto middle = window_.begin() + static_cast<std::ptrdiff_t>((window_.size() - 1) / 2);
    std::ranges::nth_element(window_, middle);
    std::erase_if(window_, [turn = *middle + turn_ns_](double ns) { return ns >= turn; });
    if (const double mean = usual_mean(window_); mean > 0)
        for (const double ns : window_) factors_.push_back(ns / mean);
    window_.clear();
}

StepSpread SingleSteps::spread(std::string name, std::uint64_t bytes, std::uint64_t region) const {
    StepSpread found{std::move(name), bytes, region, factors_.size(), {}};
    if (factors_.empty()) throw std::runtime_error("a step that takes no time");
    std::vector<double> sorted = factors_;
    std::ranges::sort(sorted);
    const auto last = static_cast<double>(sorted.size() - 1);
    for (const double share : spread_quantiles)
        found.factors.push_back(sorted[static_cast<std::size_t>(share * last)]);
    const auto rest = sorted.begin() + static_cast<std::ptrdiff_t>(spread_quantiles.back() * last);
    found.factors.push_back(std::accumulate(rest, sorted.end(), 0.0) /
                            static_cast<double>(sorted.end() - rest));
    return found;
}

}  // namespace numatwin::native
