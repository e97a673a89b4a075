// Finds the interval of a non-decreasing table that contains a number, in constant time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace numatwin {

// The method of guide tables (Chen and Asau, On generating random variates from an empirical
// distribution, AIIE Transactions 1974): the range of the table is cut into as many even slots as
// it has steps. A slot says where to begin; from there it is less than one step on average.
class GuideTable {
  public:
    GuideTable() = default;

    // sums: n + 1 numbers, not falling, from 0 to one above 0.
    explicit GuideTable(std::span<const double> sums)
        : sums_(sums.begin(), sums.end()), start_(sums.size() - 1) {
        scale_ = static_cast<double>(start_.size()) / sums_.back();
        // Where a slot begins, all sums of slots below are passed for sure, rounded as find()
        // rounds.
        std::size_t k = 0;
        for (std::size_t slot = 0; slot < start_.size(); ++slot) {
            while (k + 1 < sums_.size() && slot_of(sums_[k + 1]) < slot) ++k;
            start_[slot] = static_cast<std::uint32_t>(k);
        }
    }

    double top() const { return sums_.back(); }
    std::size_t steps() const { return start_.size(); }
    double operator[](std::size_t k) const { return sums_[k]; }

    // The largest k < n with sums[k] <= target, for a target from 0 on.
    std::size_t find(double target) const {
        std::size_t k = start_[std::min(slot_of(target), start_.size() - 1)];
        while (k + 1 < start_.size() && sums_[k + 1] <= target) ++k;
        return k;
    }

  private:
    std::size_t slot_of(double target) const { return static_cast<std::size_t>(target * scale_); }

    std::vector<double> sums_;
    std::vector<std::uint32_t> start_;
    double scale_ = 0;
};

}  // namespace numatwin
