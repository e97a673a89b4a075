// Means of a binomially distributed number that is divided into parts of a size.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

namespace numatwin {

// Of N successes in `trials` of a chance, put into parts of `size` one after another:
// parts: E ceil(N / size). squares: mean sum of the squares of what parts hold. begun: how likely
// the last part is not full.
//
// Relative to the mode, the probability of each number is its neighbour's times the ratio
// (trials - k) p / (k + 1) / (1 - p): no logarithms of huge factorials lose digits. Each side ends
// where a number is 1e-20 times as likely as the mode; beyond it ratios only fall, and less than
// 1e-20 is left out in all.
class BinomialParts {
  public:
    static constexpr double negligible = 1e-20;

    // Throws std::invalid_argument for trials or a size below 1.
    BinomialParts(std::int64_t trials, std::int64_t size)
        : trials_(static_cast<double>(trials)), size_(static_cast<double>(size)) {
        if (trials < 1) throw std::invalid_argument("trials: expected 1 or more");
        if (size < 1) throw std::invalid_argument("size: expected 1 or more");
    }

    struct Means {
        double parts, squares, begun;
    };

    // Throws std::invalid_argument unless 0 <= chance <= 1.
    Means operator()(double chance) const {
        if (!(chance >= 0 && chance <= 1)) {
            throw std::invalid_argument("chance: expected 0 to 1");
        }
        const double mode = std::min(std::floor((trials_ + 1) * chance), trials_);
        Sums sums;
        Filled filled{std::floor(mode / size_), std::fmod(mode, size_)};
        add(sums, filled, 1.0);
        double likely = 1.0;
        const double odds = chance / (1 - chance);  // unused where the chance is 1
        for (double k = mode; k < trials_ && likely > negligible; ++k) {
            likely *= (trials_ - k) * odds / (k + 1);
            if (++filled.rest == size_) filled = {filled.full + 1, 0};
            add(sums, filled, likely);
        }
        likely = 1.0;
        filled = {std::floor(mode / size_), std::fmod(mode, size_)};
        const double against = (1 - chance) / chance;  // unused where the chance is 0
        for (double k = mode; k > 0 && likely > negligible; --k) {
            likely *= k * against / (trials_ - k + 1);
            if (--filled.rest < 0) filled = {filled.full - 1, size_ - 1};
            add(sums, filled, likely);
        }
        return {sums.parts / sums.likely, sums.squares / sums.likely, sums.begun / sums.likely};
    }

  private:
    struct Sums {
        double likely = 0, parts = 0, squares = 0, begun = 0;
    };
    // A number of successes: full parts, and what the last one holds. Whole numbers, as doubles.
    struct Filled {
        double full, rest;
    };

    void add(Sums& sums, const Filled& filled, double likely) const {
        const double begun = filled.rest > 0 ? 1.0 : 0.0;
        sums.likely += likely;
        sums.parts += likely * (filled.full + begun);
        sums.squares += likely * (filled.full * size_ * size_ + filled.rest * filled.rest);
        sums.begun += likely * begun;
    }

    double trials_, size_;
};

}  // namespace numatwin
