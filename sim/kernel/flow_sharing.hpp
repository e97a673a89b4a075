// Max-min fair shares kept up to date while flows and capacities come, change and go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "kernel/indexed_heap.hpp"

namespace numatwin {

// What one flow asks for. coefficient[k] * rate is used of resource[k]; repeated ones add up.
struct FlowDemand {
    std::span<const std::int64_t> resource;
    std::span<const double> coefficient;
    double cap;
    double weight;
};

// The level of a flow is rate / weight; the level of a resource is the one at which it is full.
// In a max-min fair share a change spreads upwards only: a resource that is full at level T
// depends on flows of levels <= T. So share() fills again in ascending order of level, as
// MaxMinSolver does, but visits only what a change has reached, along the constraint precedence
// graph of Ros and Tsai ("A theory of convergence order of maxmin rate allocation"):
//
// - A flow is *resting* (its old level is taken to hold), *rising* (new, or its bottleneck is no
//   longer full where it was) or *settled* (its new level is known).
// - A resource is visited at the earliest level at which it may be full. There its users' needs
//   are summed afresh. If it is full, all its users that rise or rest higher settle at this level.
// - When the level reaches the old level of a full resource that now has room, its flows rise on
//   (it is *opened*), and with them the needs on their other resources.
// - When a resting flow settles lower, full resources that it uses are visited at their old level.
//
// A visit at level t uses only facts about levels <= t, and every consequence lies at or above t:
// nothing is undone, and the result is exact. If the change reaches so far that filling afresh is
// cheaper, that is done instead.
class FlowSharing {
  public:
    using Index = std::uint32_t;

    std::size_t resources() const { return resource_.size(); }
    double capacity(Index resource) const { return resource_[resource].capacity; }
    double use(Index resource) const { return resource_[resource].use; }

    Index add_resource(double capacity);
    void set_capacity(Index resource, double capacity);

    // Values are checked by the caller: finite, not negative, weight > 0, indices known, and a
    // finite cap or a coefficient > 0. The slot is the caller's name of the flow; it must be free.
    void add_flow(Index slot, const FlowDemand& demand);
    void remove_flow(Index slot);

    // Shares again. The slots of flows whose rate may have changed are valid until the next call.
    std::span<const Index> share();
    bool is_shared() const { return visits_.empty() && caps_.empty(); }

    double rate(Index slot) const {
        const Flow& flow = flow_[slot];
        return flow.binding == by_cap ? facts_[slot].cap : flow.level * facts_[slot].weight;
    }
    // The full resource, or bound_by_cap.
    std::int64_t binding(Index slot) const { return flow_[slot].binding; }

  private:
    static constexpr double infinity = std::numeric_limits<double>::infinity();
    static constexpr std::int32_t by_cap = -1;

    enum class Phase : std::uint8_t { absent, resting, rising, settled };

    struct Flow {
        double level;
        std::int32_t binding;
        Phase phase;
    };
    struct Need {
        double slope;    // coefficient * weight: use per unit of level
        Index resource;  // whose users[user] is this need
        Index user;
    };
    struct FlowFacts {
        double cap;
        double cap_level;
        double weight;
        std::vector<Need> needs;
    };
    struct User {
        double slope;
        Index flow;
        Index need;  // index into the flow's needs
    };
    struct Resource {
        double capacity;
        double use;    // by all users; sums of changes, summed afresh now and then
        double level;  // where it is full; infinity if it is not
        std::vector<User> users;
        // The rest holds while a change is worked in.
        double free;        // what resting and settled flows leave, less a margin for rounding
        double slope;       // sum over rising flows
        double slope_peak;  // the largest value of slope since it was summed afresh
        Index rising;       // how many users rise
        bool touched;
        bool resized;  // its capacity has changed since the last share
        bool summed;   // its planned visit is where it is full, unless something changes
        bool filled;   // it is full at level, whatever comes later
    };
    void touch(Index index);
    void plan_visit(Index index, double level);
    void plan_cap(Index slot);
    double earliest_full(const Resource& resource) const;
    double sum_up(Index index, double level);
    void visit(Index index, double level);
    void open(Index index);
    void fill(Index index, double level);
    void settle(Index slot, double level, std::int32_t binding);
    void fill_all_afresh();
    void sum_use(Resource& resource) const;
    void sum_uses_afresh();

    std::vector<Flow> flow_;
    std::vector<FlowFacts> facts_;
    std::vector<Resource> resource_;
    IndexedHeap visits_;  // resources by the level to visit them at
    IndexedHeap caps_;    // rising flows by the level of their cap
    std::vector<Index> touched_;
    std::vector<Index> settled_;
    std::vector<User> higher_;  // scratch of sum_up: users that rest above the level
    double level_ = 0;          // that filling has reached
    std::size_t needs_ = 0;     // of all flows
    std::size_t work_ = 0;      // needs looked at by this share
    std::size_t changes_ = 0;   // of uses since they were summed afresh
};

}  // namespace numatwin
