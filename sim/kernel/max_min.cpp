// Max-min fair sharing: the stateless solver.
#include "kernel/max_min.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>

namespace numatwin {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// A slope is summed afresh once subtractions have left less than this part of it: so its relative
// error stays within a few roundings per user, however widely the weights are spread.
constexpr double slope_part_kept = 0.25;

[[noreturn]] void refuse(const char* name, std::size_t index, const char* expected) {
    throw std::invalid_argument(std::string(name) + "[" + std::to_string(index) + "]: expected " +
                                expected);
}

void require_size(const char* name, std::size_t size, std::size_t expected) {
    if (size != expected) {
        throw std::invalid_argument(std::string(name) + ": expected " + std::to_string(expected) +
                                    " entries, got " + std::to_string(size));
    }
}

// What each resource carries at these rates.
void sum_use(const MaxMinProblem& problem, const MaxMinShares& shares) {
    std::fill(shares.use.begin(), shares.use.end(), 0.0);
    for (std::size_t f = 0; f < problem.flows(); ++f) {
        const auto to = static_cast<std::size_t>(problem.row_ptr[f + 1]);
        for (auto k = static_cast<std::size_t>(problem.row_ptr[f]); k < to; ++k) {
            shares.use[static_cast<std::size_t>(problem.resource[k])] +=
                problem.coefficient[k] * shares.rate[f];
        }
    }
}

}  // namespace

// Whether nothing gets full where all flows have their caps; then these are their shares. A
// resource that does not get full even so never does.
bool MaxMinSolver::caps_fit(const MaxMinProblem& problem, const MaxMinShares& shares) {
    std::ranges::copy(problem.cap, shares.rate.begin());
    std::ranges::fill(shares.binding, bound_by_cap);
    sum_use(problem, shares);
    may_fill_.resize(problem.resources());
    for (std::size_t r = 0; r < problem.resources(); ++r)
        // Nearer to it, rounding might make it full.
        may_fill_[r] = !(shares.use[r] <= (1.0 - 1e-9) * problem.capacity[r]);
    return std::ranges::find(may_fill_, 1) == may_fill_.end() &&
           std::ranges::find(problem.cap, infinity) == problem.cap.end();
}

void MaxMinProblem::validate() const {
    require_size("row_ptr", row_ptr.size(), flows() + 1);
    require_size("weight", weight.size(), flows());
    require_size("coefficient", coefficient.size(), resource.size());
    const auto entries = static_cast<std::int64_t>(resource.size());
    const auto resource_count = static_cast<std::int64_t>(resources());
    if (row_ptr.front() != 0) refuse("row_ptr", 0, "0");
    for (std::size_t f = 0; f < flows(); ++f) {
        if (row_ptr[f + 1] < row_ptr[f]) refuse("row_ptr", f + 1, "an ascending index");
        if (!(cap[f] >= 0)) refuse("cap", f, "a rate of at least 0 (infinity for none)");
        if (!(weight[f] > 0 && weight[f] < infinity)) {
            refuse("weight", f, "a finite weight above 0");
        }
        if (cap[f] < infinity && cap[f] / weight[f] == infinity) {
            refuse("weight", f, "one that does not take cap / weight out of range");
        }
    }
    if (row_ptr.back() != entries) refuse("row_ptr", flows(), "the number of entries of resource");
    for (std::size_t f = 0; f < flows(); ++f) {
        const auto to = static_cast<std::size_t>(row_ptr[f + 1]);
        for (auto k = static_cast<std::size_t>(row_ptr[f]); k < to; ++k) {
            if (resource[k] < 0 || resource[k] >= resource_count) {
                refuse("resource", k, "an index into capacity");
            }
            if (!(coefficient[k] >= 0 && coefficient[k] < infinity)) {
                refuse("coefficient", k, "a finite value of at least 0");
            }
            const double slope = coefficient[k] * weight[f];
            if (!(slope < infinity && (slope > 0 || coefficient[k] == 0))) {
                refuse("coefficient", k,
                       "one that does not take coefficient * weight out of range");
            }
        }
    }
    for (std::size_t r = 0; r < resources(); ++r) {
        if (!(capacity[r] >= 0)) refuse("capacity", r, "at least 0 (infinity for no limit)");
    }
}

void MaxMinSolver::load(const MaxMinProblem& problem) {
    const std::size_t flows = problem.flows();
    frozen_.assign(flows, 0);
    rate_.assign(flows, 0.0);
    resource_.assign(problem.resources(), Resource{});
    uses_.clear();
    uses_from_.assign(1, 0);
    for (std::size_t f = 0; f < flows; ++f) {
        const auto to = static_cast<std::size_t>(problem.row_ptr[f + 1]);
        for (auto k = static_cast<std::size_t>(problem.row_ptr[f]); k < to; ++k) {
            const auto r = static_cast<std::size_t>(problem.resource[k]);
            if (!may_fill_[r] || !(problem.coefficient[k] > 0)) continue;
            uses_.push_back({r, problem.coefficient[k] * problem.weight[f]});
            ++resource_[r].users_to;
        }
        uses_from_.push_back(uses_.size());
    }
    std::size_t total = 0;
    for (std::size_t r = 0; r < resource_.size(); ++r) {
        Resource& resource = resource_[r];
        resource.free = problem.capacity[r];
        resource.rising = resource.users_to;
        resource.users_from = total;
        total += resource.rising;
        resource.users_to = resource.users_from;
    }
    users_.resize(total);
    for (std::size_t f = 0; f < flows; ++f) {
        for (std::size_t k = uses_from_[f]; k < uses_from_[f + 1]; ++k) {
            const auto [r, slope] = uses_[k];
            users_[resource_[r].users_to++] = {f, slope};
            resource_[r].slope += slope;
        }
    }
    // From the order of the last time, which is nearly that of now where problems are alike.
    if (caps_.size() != flows) caps_.assign(flows, {0.0, -1});
    for (std::int64_t f = 0; Entry& cap : caps_) {
        if (cap.index < 0) cap.index = f++;
        const auto flow = static_cast<std::size_t>(cap.index);
        cap.level = problem.cap[flow] / problem.weight[flow];
    }
    std::sort(caps_.begin(), caps_.end());
    filling_.clear();
    for (std::size_t r = 0; r < resource_.size(); ++r) {
        if (resource_[r].rising == 0) continue;
        resource_[r].slope_summed = resource_[r].slope;
        filling_.push_back({level_of(resource_[r], 0), static_cast<std::int64_t>(r)});
    }
    std::make_heap(filling_.begin(), filling_.end(), std::greater{});
}

// Sums the slope of the users that still rise, and forgets the others.
void MaxMinSolver::sum_slope(Resource& resource) {
    double slope = 0;
    std::size_t kept = resource.users_from;
    for (std::size_t k = resource.users_from; k < resource.users_to; ++k) {
        const Use user = users_[k];
        if (frozen_[user.of]) continue;
        users_[kept++] = user;
        slope += user.slope;
    }
    resource.users_to = kept;
    resource.slope = resource.slope_summed = slope;
}

// The level at which the resource is full: never below floor, the level reached so far.
double MaxMinSolver::level_of(Resource& resource, double floor) {
    if (resource.slope < slope_part_kept * resource.slope_summed) sum_slope(resource);
    return std::max(floor, resource.free / resource.slope);
}

void MaxMinSolver::freeze(std::size_t flow, double level, double rate) {
    frozen_[flow] = 1;
    rate_[flow] = rate;
    for (std::size_t k = uses_from_[flow]; k < uses_from_[flow + 1]; ++k) {
        Resource& resource = resource_[uses_[k].of];
        resource.free -= uses_[k].slope * level;
        resource.slope -= uses_[k].slope;
        --resource.rising;
    }
}

void MaxMinSolver::solve(const MaxMinProblem& problem, const MaxMinShares& shares) {
    if (caps_fit(problem, shares)) return;
    load(problem);
    double level = 0;
    std::size_t rising = problem.flows();
    auto next_cap = caps_.cbegin();
    while (rising > 0) {
        while (next_cap != caps_.cend() && frozen_[static_cast<std::size_t>(next_cap->index)]) {
            ++next_cap;
        }
        const double cap_level = next_cap == caps_.cend() ? infinity : next_cap->level;
        const double full_level = filling_.empty() ? infinity : filling_.front().level;
        if (cap_level <= full_level) {
            if (cap_level == infinity) break;
            const auto flow = static_cast<std::size_t>(next_cap->index);
            level = std::max(level, cap_level);
            freeze(flow, cap_level, problem.cap[flow]);
            shares.binding[flow] = bound_by_cap;
            --rising;
            continue;
        }
        std::pop_heap(filling_.begin(), filling_.end(), std::greater{});
        const std::int64_t index = filling_.back().index;
        Resource& resource = resource_[static_cast<std::size_t>(index)];
        if (resource.rising == 0) {
            filling_.pop_back();
            continue;
        }
        const double now = level_of(resource, full_level);
        if (now > full_level) {  // flows froze since: it fills later than it was thought to
            filling_.back().level = now;
            std::push_heap(filling_.begin(), filling_.end(), std::greater{});
            continue;
        }
        filling_.pop_back();
        level = std::max(level, full_level);
        for (std::size_t k = resource.users_from; k < resource.users_to; ++k) {
            const std::size_t flow = users_[k].of;
            if (frozen_[flow]) continue;
            freeze(flow, level, level * problem.weight[flow]);
            shares.binding[flow] = index;
            --rising;
        }
    }
    if (rising > 0) {
        const auto flow = std::find(frozen_.cbegin(), frozen_.cend(), 0) - frozen_.cbegin();
        throw std::invalid_argument("flow " + std::to_string(flow) +
                                    " is unbounded: expected a finite cap or a resource with a "
                                    "finite capacity and a coefficient above 0");
    }
    std::copy(rate_.begin(), rate_.end(), shares.rate.begin());
    sum_use(problem, shares);
}

}  // namespace numatwin
