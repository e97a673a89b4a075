// Groups by key: open addressing, linear probing, at most three quarters full.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "systems/joins/tuples.hpp"

namespace numatwin::native {

class GroupTable {
  public:
    // Odd. Groups leave a table in the order of their hash: added to another, still smaller one by
    // the same hash they would fill it from one end, with ever longer probes.
    static constexpr std::uint64_t own_share = 0xD2E7470EE14C6C93u, of_all = 0xCA5A826395121157u;

    // Of `slots`, rounded up to a power of two; `multiplier`: of its hash.
    GroupTable(std::uint64_t slots, std::uint64_t multiplier) : multiplier_(multiplier) {
        resize(std::bit_ceil(std::max<std::uint64_t>(slots, 8)));
    }

    // Grows where needed.
    void add(const Group& group) {
        if (is_full()) grow();
        place(group);
    }
    // Adds without growing; the caller checks is_full() before.
    void place(const Group& group) {
        std::uint64_t at = (group.key * multiplier_) >> (64 - bits_);
        while (slots_[at].count != 0 && slots_[at].key != group.key) at = (at + 1) & mask_;
        auto& found = slots_[at];
        used_ += found.count == 0;
        found.key = group.key;
        found.count += group.count;
        found.sum += group.sum;
    }
    bool is_full() const { return used_ * 4 >= slots_.size() * 3; }
    std::uint64_t used() const { return used_; }
    void clear() {
        std::fill(slots_.begin(), slots_.end(), Group{});
        used_ = 0;
    }
    template <class Use>
    void for_each(Use use) const {
        for (const auto& group : slots_)
            if (group.count != 0) use(group);
    }

  private:
    void resize(std::uint64_t slots) {
        slots_.assign(slots, Group{});
        mask_ = slots - 1;
        bits_ = static_cast<unsigned>(std::bit_width(slots)) - 1;
        used_ = 0;
    }
    void grow() {
        std::vector<Group> before;
        before.swap(slots_);
        resize(before.size() * 2);
        for (const auto& group : before)
            if (group.count != 0) place(group);
    }

    std::uint64_t multiplier_;
    unsigned bits_ = 0;
    std::uint64_t mask_ = 0, used_ = 0;
    std::vector<Group> slots_;
};

}  // namespace numatwin::native
