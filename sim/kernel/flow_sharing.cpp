// Max-min fair shares, kept up to date incrementally.
#include "kernel/flow_sharing.hpp"

#include <algorithm>

namespace numatwin {
namespace {

// Two levels this close (relative) are one: a resource that is full again where it was full before
// stops the change there, instead of spreading a rounding error.
constexpr double same_level = 1e-13;

// The cheap estimate of when a resource is full works on sums of changes. This part of its
// capacity is held back from the estimate, many times the rounding that changes_limit changes can
// leave, so that it can only be early; what counts is then summed afresh.
constexpr double use_margin = 1e-9;
constexpr std::size_t changes_limit = std::size_t{1} << 20;

// The estimate is not trusted when subtraction has left less than this part of a sum of slopes.
constexpr double slope_part_kept = 1e-3;

// A change that has looked at this many times all needs is worked in by filling afresh.
constexpr std::size_t work_limit = 3;

}  // namespace

FlowSharing::Index FlowSharing::add_resource(double capacity) {
    Resource resource{};
    resource.capacity = capacity;
    resource.level = infinity;
    resource_.push_back(std::move(resource));
    visits_.reserve(resource_.size());
    return static_cast<Index>(resource_.size() - 1);
}

void FlowSharing::set_capacity(Index index, double capacity) {
    Resource& resource = resource_[index];
    touch(index);
    resource.free += (capacity - resource.capacity) * (1 - use_margin);
    resource.capacity = capacity;
    resource.summed = false;
    // Until the next share the use carries rounding relative to the old capacity, which may have
    // been far larger.
    resource.resized = true;
    plan_visit(index, 0);
}

void FlowSharing::add_flow(Index slot, const FlowDemand& demand) {
    if (slot >= flow_.size()) {
        flow_.resize(slot + 1);
        facts_.resize(slot + 1);
        caps_.reserve(slot + 1);
    }
    flow_[slot] = {0, by_cap, Phase::rising};
    FlowFacts& facts = facts_[slot];
    facts.cap = demand.cap;
    facts.cap_level = demand.cap / demand.weight;
    facts.weight = demand.weight;
    facts.needs.clear();
    for (std::size_t k = 0; k < demand.resource.size(); ++k) {
        if (!(demand.coefficient[k] > 0)) continue;
        const auto index = static_cast<Index>(demand.resource[k]);
        const double slope = demand.coefficient[k] * demand.weight;
        touch(index);
        Resource& resource = resource_[index];
        resource.slope += slope;
        resource.slope_peak = std::max(resource.slope_peak, resource.slope);
        resource.summed = false;
        if (!resource.users.empty() && resource.users.back().flow == slot) {
            resource.users.back().slope += slope;
            facts.needs[resource.users.back().need].slope += slope;
        } else {
            const auto need = static_cast<Index>(facts.needs.size());
            facts.needs.push_back({slope, index, static_cast<Index>(resource.users.size())});
            resource.users.push_back({slope, slot, need});
            ++resource.rising;
        }
        plan_visit(index, earliest_full(resource));
    }
    needs_ += facts.needs.size();
    plan_cap(slot);
}

void FlowSharing::remove_flow(Index slot) {
    Flow& flow = flow_[slot];
    for (const Need& need : facts_[slot].needs) {
        Resource& resource = resource_[need.resource];
        const User last = resource.users.back();
        resource.users[need.user] = last;
        facts_[last.flow].needs[last.need].user = need.user;
        resource.users.pop_back();
        const double used = need.slope * flow.level;
        resource.use = resource.users.empty() ? 0 : resource.use - used;
        resource.summed = false;
        if (flow.phase == Phase::rising) {  // added since the last share
            resource.slope -= need.slope;
            --resource.rising;
        } else if (resource.touched) {
            resource.free += used;
        }
        if (resource.level < infinity) {
            touch(need.resource);
            plan_visit(need.resource, resource.level);
        }
    }
    needs_ -= facts_[slot].needs.size();
    changes_ += facts_[slot].needs.size();
    caps_.erase(slot);
    flow.phase = Phase::absent;
}

std::span<const FlowSharing::Index> FlowSharing::share() {
    settled_.clear();
    level_ = 0;
    work_ = 0;
    bool afresh = false;
    while (!visits_.empty() || !caps_.empty()) {
        if (!afresh && work_ > work_limit * (needs_ + 16)) {
            fill_all_afresh();
            afresh = true;
        }
        const double full = visits_.empty() ? infinity : visits_.top().key;
        if (!caps_.empty() && caps_.top().key <= full) {
            const Index slot = caps_.top().index;
            level_ = caps_.top().key;
            settle(slot, level_, by_cap);
        } else {
            const Index index = visits_.top().index;
            level_ = full;
            visits_.erase(index);
            visit(index, full);
        }
    }
    for (const Index slot : settled_) flow_[slot].phase = Phase::resting;
    for (const Index index : touched_) {
        Resource& resource = resource_[index];
        if (resource.resized) sum_use(resource);
        resource.touched = resource.resized = false;
    }
    touched_.clear();
    level_ = 0;
    if (changes_ > changes_limit) sum_uses_afresh();
    return settled_;
}

void FlowSharing::touch(Index index) {
    Resource& resource = resource_[index];
    if (resource.touched) return;
    resource.touched = true;
    resource.free = resource.capacity * (1 - use_margin) - resource.use;
    resource.slope = resource.slope_peak = 0;
    resource.rising = 0;
    resource.summed = resource.filled = false;
    touched_.push_back(index);
}

void FlowSharing::plan_visit(Index index, double level) {
    const double earliest = std::max(level_, std::min(level, resource_[index].level));
    if (earliest < infinity) visits_.lower(index, earliest);
}

void FlowSharing::plan_cap(Index slot) {
    if (facts_[slot].cap_level < infinity) caps_.set(slot, facts_[slot].cap_level);
}

// A level at or below the one where the resource is full: takes resting flows to use what they
// used, though they stop earlier if the resource is full below their level.
double FlowSharing::earliest_full(const Resource& resource) const {
    if (resource.resized) return level_;
    if (resource.rising == 0) return resource.free < 0 ? level_ : infinity;
    if (resource.slope < slope_part_kept * resource.slope_peak) return level_;
    return resource.free / resource.slope;
}

// The level at which the resource is full, from the levels of all its users: each uses
// slope * min(own level, this level), rising ones and those bound here slope * this level.
double FlowSharing::sum_up(Index index, double level) {
    Resource& resource = resource_[index];
    double free = resource.capacity, rising = 0, own = 0, used_above = 0;
    higher_.clear();
    for (const User& user : resource.users) {
        const Flow& flow = flow_[user.flow];
        if (flow.phase == Phase::rising) {
            rising += user.slope;
        } else if (flow.phase == Phase::resting &&
                   flow.binding == static_cast<std::int32_t>(index)) {
            own += user.slope;
            used_above += user.slope * flow.level;
        } else if (flow.phase == Phase::settled || flow.level <= level) {
            free -= user.slope * flow.level;
        } else {
            higher_.push_back(user);
            used_above += user.slope * flow.level;
        }
    }
    work_ += resource.users.size();
    resource.slope = resource.slope_peak = rising;
    resource.free = free - used_above - use_margin * resource.capacity;
    // Flows that rest higher rise with the others until the level passes theirs, lowest first.
    std::sort(higher_.begin(), higher_.end(), [this](const User& one, const User& other) {
        return flow_[one.flow].level < flow_[other.flow].level;
    });
    double slope = rising + own;
    for (const User& user : higher_) slope += user.slope;
    auto above = higher_.cbegin();
    for (; above != higher_.cend(); ++above) {
        const double own_level = flow_[above->flow].level;
        if (free <= slope * own_level) break;
        free -= above->slope * own_level;
        slope -= above->slope;
    }
    slope = rising + own;
    for (; above != higher_.cend(); ++above) slope += above->slope;
    return slope > 0 ? free / slope : infinity;
}

void FlowSharing::visit(Index index, double level) {
    Resource& resource = resource_[index];
    if (resource.filled) return fill(index, resource.level);
    const bool was_full = resource.level < infinity;
    if (!was_full && !resource.summed) {
        const double earliest = earliest_full(resource);
        if (earliest > level) return plan_visit(index, earliest);
    }
    const double full = resource.summed ? level : std::max(level, sum_up(index, level));
    if (was_full && full >= resource.level * (1 - same_level)) {
        if (level < resource.level) return plan_visit(index, resource.level);
        if (full <= resource.level * (1 + same_level)) return fill(index, resource.level);
        open(index);
    } else if (full <= level * (1 + same_level)) {
        return fill(index, full);
    }
    resource.summed = true;
    plan_visit(index, full);
}

// The resource has room at its old level: its flows rise on.
void FlowSharing::open(Index index) {
    resource_[index].level = infinity;
    for (const User& user : resource_[index].users) {
        Flow& flow = flow_[user.flow];
        if (flow.phase != Phase::resting || flow.binding != static_cast<std::int32_t>(index)) {
            continue;
        }
        flow.phase = Phase::rising;
        plan_cap(user.flow);
        for (const Need& need : facts_[user.flow].needs) {
            touch(need.resource);
            Resource& other = resource_[need.resource];
            other.free += need.slope * flow.level;
            other.slope += need.slope;
            other.slope_peak = std::max(other.slope_peak, other.slope);
            other.summed = false;
            ++other.rising;
            if (need.resource != index) plan_visit(need.resource, earliest_full(other));
        }
        work_ += facts_[user.flow].needs.size();
    }
}

// The resource is full at this level: whoever rises, or rests higher, settles here.
void FlowSharing::fill(Index index, double level) {
    Resource& resource = resource_[index];
    resource.level = infinity;
    for (const User& user : resource.users) {
        const Flow& flow = flow_[user.flow];
        if (flow.phase == Phase::rising || (flow.phase == Phase::resting && flow.level > level)) {
            settle(user.flow, level, static_cast<std::int32_t>(index));
        }
        if (flow.binding == static_cast<std::int32_t>(index)) resource.level = level;
    }
    work_ += resource.users.size();
    resource.filled = resource.level < infinity;
    if (resource.filled) resource.use = resource.capacity;
}

void FlowSharing::settle(Index slot, double level, std::int32_t binding) {
    Flow& flow = flow_[slot];
    const FlowFacts& facts = facts_[slot];
    if (level >= facts.cap_level) {
        level = facts.cap_level;
        binding = by_cap;
    }
    for (const Need& need : facts.needs) {
        Resource& resource = resource_[need.resource];
        resource.use += need.slope * (level - flow.level);
        if (flow.phase == Phase::rising) {
            resource.free -= need.slope * level;
            resource.slope -= need.slope;
            --resource.rising;
        } else if (resource.touched) {
            resource.free += need.slope * (flow.level - level);
        } else if (resource.level < infinity) {
            touch(need.resource);
            plan_visit(need.resource, resource.level);
        }
        resource.summed = false;
    }
    caps_.erase(slot);
    work_ += facts.needs.size();
    changes_ += facts.needs.size();
    flow = {level, binding, Phase::settled};
    settled_.push_back(slot);
}

void FlowSharing::fill_all_afresh() {
    visits_.clear();
    caps_.clear();
    settled_.clear();
    touched_.clear();
    level_ = 0;
    for (Index index = 0; index < resource_.size(); ++index) {
        Resource& resource = resource_[index];
        resource.use = 0;
        resource.level = infinity;
        resource.touched = false;
        touch(index);
    }
    for (Index slot = 0; slot < flow_.size(); ++slot) {
        if (flow_[slot].phase == Phase::absent) continue;
        flow_[slot] = {0, by_cap, Phase::rising};
        plan_cap(slot);
        for (const Need& need : facts_[slot].needs) {
            Resource& resource = resource_[need.resource];
            resource.slope += need.slope;
            ++resource.rising;
        }
    }
    for (Index index = 0; index < resource_.size(); ++index) {
        Resource& resource = resource_[index];
        resource.slope_peak = resource.slope;
        plan_visit(index, earliest_full(resource));
    }
}

void FlowSharing::sum_use(Resource& resource) const {
    resource.use = 0;
    for (const User& user : resource.users) resource.use += user.slope * flow_[user.flow].level;
}

void FlowSharing::sum_uses_afresh() {
    for (Resource& resource : resource_) sum_use(resource);
    changes_ = 0;
}

}  // namespace numatwin
