// Max-min fair sharing of resources among flows by exact progressive filling.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace numatwin {

// What froze a flow: the index of a full resource, or its own cap.
inline constexpr std::int64_t bound_by_cap = -1;

// Flow f uses coefficient[k] * rate[f] of resource[k], for k in row_ptr[f] .. row_ptr[f + 1].
struct MaxMinProblem {
    std::span<const double> capacity;
    std::span<const std::int64_t> row_ptr;
    std::span<const std::int64_t> resource;
    std::span<const double> coefficient;
    std::span<const double> cap;
    std::span<const double> weight;

    std::size_t resources() const { return capacity.size(); }
    std::size_t flows() const { return cap.size(); }

    // Throws std::invalid_argument that names the first value out of range.
    void validate() const;
};

struct MaxMinShares {
    std::span<double> rate;
    std::span<std::int64_t> binding;
    std::span<double> use;
};

// Progressive filling (Bertsekas and Gallager, Data Networks, 2nd ed., section 6.5.2), driven by
// events. The level t = rate / weight of all flows rises together. Resource r is full at
//
//     t_r = (capacity_r - use of frozen flows) / (sum of coefficient * weight of the others)
//
// Freezing flows at a level t <= t_r can only raise t_r, so a heap of levels stays valid when
// stale: the least one is computed again when it comes up. Each flow freezes once, so that the
// cost is O(NNZ log R + F log F). Ties go to caps before resources, then to the lowest index.
//
// Keeps its arrays between calls; one solver serves one thread at a time.
class MaxMinSolver {
  public:
    // The problem has passed validate(). Throws std::invalid_argument if a flow is unbounded.
    void solve(const MaxMinProblem& problem, const MaxMinShares& shares);

  private:
    struct Entry {
        double level;
        std::int64_t index;
        bool operator<(const Entry& other) const {
            return level < other.level || (level == other.level && index < other.index);
        }
        bool operator>(const Entry& other) const { return other < *this; }
    };
    struct Use {
        std::size_t of;  // a resource, or by a flow
        double slope;    // coefficient * weight: use per unit of level
    };
    struct Resource {
        double free;             // capacity that no frozen flow uses
        double slope;            // sum over the flows that still rise
        double slope_summed;     // the same when it was last summed afresh
        std::size_t users_from;  // its users in users_, [from, to); the last ones may be frozen
        std::size_t users_to;
        std::size_t rising;  // how many entries of users_ still rise
    };

    bool caps_fit(const MaxMinProblem& problem, const MaxMinShares& shares);
    void load(const MaxMinProblem& problem);
    void freeze(std::size_t flow, double level, double rate);
    void sum_slope(Resource& resource);
    double level_of(Resource& resource, double floor);

    std::vector<Resource> resource_;
    std::vector<Use> users_;
    std::vector<Entry> filling_;  // heap of resources by level
    std::vector<Entry> caps_;     // flows by the level of their cap
    std::vector<char> may_fill_;  // resources, if all flows had their caps
    std::vector<std::size_t> uses_from_;
    std::vector<Use> uses_;  // of those resources, flow by flow
    std::vector<char> frozen_;
    std::vector<double> rate_;
};

}  // namespace numatwin
