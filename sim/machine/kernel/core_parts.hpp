// What each thread of a core has at most of its pipeline and miss slots, while several run there.
//
// Where all together need more of either than there is (each as it would run alone, memory
// answering without load), each has an equal part at most, and who needs less leaves the rest to
// the others. Where slots suffice without load, each has the part that it needs of what all need:
// under load, when all need more, they share them so.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "machine/kernel/overlap.hpp"

namespace numatwin {

struct CorePart {
    double pipeline = 1, slots = 1;
    bool operator==(const CorePart&) const = default;
};

// Call add() for each thread of a core, then share().
class CoreParts {
  public:
    void clear() { need_.clear(); }
    // A unit of its work takes the pipeline so long, of which `separate_ps` overlap with nothing,
    // and its misses take all slots for `held_ps`; `stall`: of a stream.
    void add(double instructions_ps, double separate_ps, double held_ps, double stall) {
        const double alone_ps = separate_ps + overlapped(instructions_ps, held_ps, stall);
        need_.push_back(
            alone_ps > 0 ? CorePart{(instructions_ps + separate_ps) / alone_ps, held_ps / alone_ps}
                         : CorePart{0, 0});
    }
    void share() {
        part_.assign(need_.size(), CorePart{});
        double all_slots = 0;
        for (const CorePart& need : need_) all_slots += need.slots;
        CorePart most;
        if (need_.size() > 1) {
            most.pipeline = equal_part(&CorePart::pipeline);
            most.slots = equal_part(&CorePart::slots);
        }
        for (std::size_t k = 0; k < need_.size(); ++k) {
            const CorePart& need = need_[k];
            if (need.pipeline > most.pipeline) part_[k].pipeline = most.pipeline;
            if (all_slots <= 1)
                part_[k].slots = need.slots > 0 ? need.slots / all_slots : 1;
            else if (need.slots > most.slots)
                part_[k].slots = most.slots;
        }
    }
    const CorePart& operator[](std::size_t thread) const { return part_[thread]; }

  private:
    // Who needs more than this part of what threads share is limited to it; 1 if all is enough.
    double equal_part(double CorePart::* share) {
        double available = 1;
        sorted_.clear();
        for (const CorePart& need : need_) sorted_.push_back(need.*share);
        std::ranges::sort(sorted_);
        auto others = static_cast<double>(sorted_.size());
        for (const double need : sorted_) {
            if (need > available / others) return available / others;
            available -= need;
            others -= 1;
        }
        return 1;
    }

    std::vector<CorePart> need_, part_;
    std::vector<double> sorted_;
};

}  // namespace numatwin
