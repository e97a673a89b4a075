// Keys as workloads/ describes them, from uniform numbers: piecewise constant densities, and Zipf.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

#include "kernel/elementary.hpp"

namespace numatwin {

// Finds the interval of a non-decreasing table that contains a number, in constant time.

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

// mass[i] lies evenly on the keys breaks[i]:breaks[i + 1]; breaks rise from 0. The keys are those
// of PiecewiseKeys.draw in workloads/keys.py, to the bit.
class PiecewiseKeys {
  public:
    PiecewiseKeys(std::span<const std::int64_t> breaks, std::span<const double> mass)
        : breaks_(breaks.begin(), breaks.end()), mass_(mass.begin(), mass.end()) {
        bool good = !mass_.empty() && breaks_.size() == mass_.size() + 1 && breaks_[0] == 0;
        for (std::size_t i = 0; good && i < mass_.size(); ++i)
            good = breaks_[i] < breaks_[i + 1] && mass_[i] >= 0 && mass_[i] <= 1e300;
        if (!good) {
            throw std::invalid_argument(
                "breaks, mass: expected m + 1 rising keys from 0, and m finite values of at least "
                "0");
        }
        sums_.push_back(0.0);
        for (const double m : mass_) sums_.push_back(sums_.back() + m);
        if (!(sums_.back() > 0)) throw std::invalid_argument("mass: expected a sum above 0");
        const double total = sums_.back();
        for (double& sum : sums_) sum /= total;
        last_ = mass_.size() - 1;
        while (mass_[last_] == 0) --last_;
    }

    std::int64_t keys() const { return breaks_.back(); }

    std::int64_t draw(double uniform) const {
        // The first part that ends above it: a part without mass is never drawn.
        const auto above = std::upper_bound(sums_.begin() + 1, sums_.end(), uniform);
        const std::size_t part =
            std::min(static_cast<std::size_t>(above - sums_.begin()) - 1, last_);
        const auto width = static_cast<double>(breaks_[part + 1] - breaks_[part]);
        const double inside = (uniform - sums_[part]) / mass_[part] * width;
        return breaks_[part] + static_cast<std::int64_t>(std::clamp(inside, 0.0, width - 1));
    }

  private:
    std::vector<std::int64_t> breaks_;
    std::vector<double> mass_;
    std::vector<double> sums_;
    std::size_t last_ = 0;  // the last part with mass
};

// A fixed permutation of 0 … keys - 1 that looks random: workloads/zipf.py scatter(), to the bit.
class Scatter {
  public:
    explicit Scatter(std::int64_t keys)
        : keys_(static_cast<std::uint64_t>(keys)),
          half_(std::max(1, (static_cast<int>(std::bit_width(keys_ - 1)) + 1) / 2)),
          mask_((std::uint64_t{1} << half_) - 1) {}

    std::int64_t operator()(std::int64_t rank) const {
        auto place = feistel(static_cast<std::uint64_t>(rank));
        while (place >= keys_) place = feistel(place);
        return static_cast<std::int64_t>(place);
    }

    /// Each rank in place. All take a step before those that fell outside take another: no branch
    /// depends on where one falls.
    void all(std::span<std::uint64_t> ranks) const {
        std::uint32_t outside[PIECE];
        for (std::size_t first = 0; first < ranks.size(); first += PIECE) {
            const auto piece = ranks.subspan(first, std::min(PIECE, ranks.size() - first));
            std::size_t left = 0;
            for (std::size_t k = 0; k < piece.size(); ++k) {
                piece[k] = feistel(piece[k]);
                outside[left] = static_cast<std::uint32_t>(k);
                left += piece[k] >= keys_;
            }
            while (left > 0) {
                const std::size_t before = std::exchange(left, 0);
                for (std::size_t j = 0; j < before; ++j) {
                    const std::uint32_t k = outside[j];
                    piece[k] = feistel(piece[k]);
                    outside[left] = k;
                    left += piece[k] >= keys_;
                }
            }
        }
    }

  private:
    static constexpr std::size_t PIECE = 128;

    std::uint64_t feistel(std::uint64_t value) const {
        std::uint64_t left = value >> half_, right = value & mask_;
        for (std::uint64_t turn = 1; turn <= 4; ++turn) {
            std::uint64_t mixed = right + turn * 0x9E3779B97F4A7C15;
            mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
            mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
            left = std::exchange(right, left ^ ((mixed ^ (mixed >> 31)) & mask_));
        }
        return left << half_ | right;
    }

    std::uint64_t keys_;
    int half_;
    std::uint64_t mask_;
};

// Zipf keys by inverse transform, as workloads/zipf.py Zipf: of n keys the r-th most popular, from
// 1, is asked for in proportion to r^-s; with S(k) = sum of r^-s over r = 1 … k, a uniform number u
// gives the largest k with S(k) <= u S(n), which is rank - 1.
//
// The first `table_size` sums are in a guide table. Beyond, with f(x) = x^-s and T = table_size,
// the Euler-Maclaurin formula (DLMF 2.10.1) gives, to below 1e-12,
//
//     S(k) = S(T) + integral of f over T … k + (f(k) - f(T)) / 2 + (f'(k) - f'(T)) / 12
//
// and, as (f(k) / 2 + f'(k) / 12) is the integral from k to k + 1/2 less f'(k) / 24 and smaller,
//
//     S(k) = C + integral of f over T … k + 1/2  + s f(k) / (24 k) + …,   C = S(T) - f(T)/2 -
//     f'(T)/12
//
// which is inverted in closed form. Its k is a fraction; only where that lies so near to a whole
// number that the terms left out or rounding might decide, S itself is asked.
//
// With elementary.hpp instead of NumPy's power: the sums are the same within 1e-13, relative. So
// the rank is that of workloads/zipf.py but where u lies that close to a step: of 10^9 keys at
// exponent 1, in about one draw in 10^5, then by one rank.
class ZipfKeys {
  public:
    ZipfKeys(std::int64_t keys, double exponent, bool scattered)
        : keys_(keys), s_(exponent), scattered_(scattered), scatter_(keys) {
        // Ranks are worked with in doubles.
        if (keys < 1 || keys > std::int64_t{1} << 53)
            throw std::invalid_argument("keys: expected from 1 to 2^53");
        if (!(exponent > 0 && exponent <= 10))
            throw std::invalid_argument("exponent: expected above 0, up to 10");
        std::vector<double> sums{0.0};
        const std::int64_t near = std::min(keys, table_size);
        for (std::int64_t r = 1; r <= near; ++r)
            sums.push_back(sums.back() + power(static_cast<double>(r)));
        guide_ = GuideTable(sums);
        const double f = power(start);
        unit_ = start * f;
        c_ = guide_.top() - f / 2 + s_ * f / (12 * start);
        total_ = keys <= table_size ? guide_.top() : sum(static_cast<double>(keys));
    }

    std::int64_t keys() const { return keys_; }

    std::int64_t draw(double uniform) const {
        const std::int64_t k = rank(uniform);
        return scattered_ ? scatter_(k) : k;
    }

    // From 0, whether the keys are scattered or not.
    std::int64_t rank(double uniform) const {
        const double target = uniform * total_;
        if (keys_ <= table_size || target < guide_.top())
            return static_cast<std::int64_t>(guide_.find(target));
        return far_rank(target);
    }

  private:
    static constexpr std::int64_t table_size = 1024;
    static constexpr double start = static_cast<double>(table_size);

    double power(double x) const { return elementary::exp(-s_ * elementary::log(x)); }

    // S(k) for k >= table_size.
    double sum(double k) const {
        const double gap = (k - start) / start;
        const double log_ratio = gap * elementary::log1p_ratio(gap);
        const double integral = unit_ * log_ratio * elementary::exprel((1 - s_) * log_ratio);
        const double f = power(k);
        return c_ + (integral + (f / 2 - s_ * f / (12 * k)));
    }

    std::int64_t far_rank(double target) const {
        const double top = static_cast<double>(keys_ - 1);
        const double reach = (target - c_) / unit_;
        const double y = std::max((1 - s_) * reach, -1.0 + 1e-15);
        const double log_ratio = std::min(reach * elementary::log1p_ratio(y), 50.0);
        const double k = std::clamp(start * elementary::exp(log_ratio) - 0.5, start, top);
        const double whole = static_cast<double>(static_cast<std::int64_t>(k));
        const double doubt = s_ / (12 * k) + 1e-14 * k * (4 + total_ / (unit_ * (1 + y)));
        if (k - whole > doubt && whole + 1 - k > doubt) return static_cast<std::int64_t>(whole);
        return settled(whole, target);
    }

    // k moved to S(k) <= target < S(k + 1): a bracket around it, then halving.
    std::int64_t settled(double k, double target) const {
        const auto keys = static_cast<double>(keys_);
        double low = k, high = std::min(k + 1, keys);
        for (double width = 1; low > start && sum(low) > target; width *= 2) {
            high = low;
            low = std::max(low - width, start);
        }
        for (double width = 1; high < keys && sum(high) <= target; width *= 2) {
            low = high;
            high = std::min(high + width, keys);
        }
        while (high - low > 1) {
            const auto middle = static_cast<double>(static_cast<std::int64_t>((low + high) / 2));
            (sum(middle) > target ? high : low) = middle;
        }
        return static_cast<std::int64_t>(low);
    }

    std::int64_t keys_;
    double s_;
    bool scattered_;
    Scatter scatter_;
    GuideTable guide_;
    double unit_ = 0;   // T^(1 - s)
    double c_ = 0;      // C above
    double total_ = 0;  // S(n)
};

// One of the two.
class KeyDraws {
  public:
    explicit KeyDraws(PiecewiseKeys keys) : keys_(std::move(keys)) {}
    explicit KeyDraws(ZipfKeys keys) : keys_(std::move(keys)) {}

    std::int64_t keys() const {
        return std::visit([](const auto& kind) { return kind.keys(); }, keys_);
    }
    // The key of a number in [0, 1).
    std::int64_t draw(double uniform) const {
        return std::visit([uniform](const auto& kind) { return kind.draw(uniform); }, keys_);
    }

  private:
    std::variant<PiecewiseKeys, ZipfKeys> keys_;
};

}  // namespace numatwin
