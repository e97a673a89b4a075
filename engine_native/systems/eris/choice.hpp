// Draws one of n alternatives by weight, in constant time.
//
// Walker's alias method in the form of Vose (A linear algorithm for generating random numbers with
// a given distribution, IEEE TSE 1991): n slots of equal chance; of each, a part belongs to its own
// alternative and the rest to one other.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "systems/eris/random.hpp"

namespace numatwin::native {

class Choice {
  public:
    Choice() = default;
    /// Throws std::invalid_argument where a weight is not finite or below 0, or none is above 0.
    explicit Choice(std::span<const double> weights);

    std::size_t draw(Random& random) const noexcept {
        const auto wide = static_cast<unsigned __int128>(random.next()) * slots_.size();
        const auto at = static_cast<std::size_t>(wide >> 64);
        const Slot& slot = slots_[at];
        // Without a branch: nobody could foresee which way it goes.
        const std::size_t own = -std::size_t{static_cast<std::uint64_t>(wide) < slot.own};
        return (at & own) | (slot.other & ~own);
    }

  private:
    struct Slot {
        std::uint64_t own;  // of 2^64: what belongs to its own alternative
        std::size_t other;
    };
    std::vector<Slot> slots_;
};

}  // namespace numatwin::native
