#include "systems/eris/key_draws.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "kernel/key_draws.hpp"  // numatwin::Scatter

namespace numatwin::native {
namespace {

std::vector<double> positive(std::span<const double> mass) {
    std::vector<double> found;
    for (const double one : mass)
        if (!(one == 0)) found.push_back(one);  // what is no number, Choice refuses
    return found;
}

}  // namespace

KeyDraws::KeyDraws(std::span<const std::uint64_t> breaks, std::span<const double> mass,
                   bool scattered)
    : choice_(positive(mass)), scattered_(scattered) {
    if (breaks.size() != mass.size() + 1 || breaks[0] != 0)
        throw std::invalid_argument("breaks: expected one more than mass, from 0");
    for (std::size_t k = 0; k < mass.size(); ++k) {
        if (breaks[k + 1] <= breaks[k]) throw std::invalid_argument("breaks: expected a rise");
        if (!(mass[k] == 0)) pieces_.push_back({breaks[k], breaks[k + 1] - breaks[k]});
    }
    keys_ = breaks.back();
    if (scattered && keys_ > std::uint64_t{1} << 62)
        throw std::invalid_argument("breaks: expected at most 2^62 scattered keys");
}

KeyDraws KeyDraws::zipf(std::uint64_t keys, double exponent, bool scattered) {
    constexpr std::uint64_t table = 1024;
    if (keys < 1 || keys > std::uint64_t{1} << 53)
        throw std::invalid_argument("keys: expected from 1 to 2^53");
    if (!(exponent > 0 && exponent <= 10))
        throw std::invalid_argument("exponent: expected above 0, up to 10");
    std::vector<std::uint64_t> breaks{0};
    std::vector<double> mass;
    const auto power = [exponent](double rank) { return std::pow(rank, -exponent); };
    for (std::uint64_t r = 1; r <= std::min(keys, table); ++r) {
        breaks.push_back(r);
        mass.push_back(power(static_cast<double>(r)));
    }
    // The sum over the ranks a + 1 … b is the integral from a + 1/2 to b + 1/2 within a part of
    // exponent (exponent + 1) / (24 a^2): here 1e-6 of it and less (midpoint rule).
    while (breaks.back() < keys) {
        const std::uint64_t first = breaks.back();
        const std::uint64_t end = std::min(keys, first + std::max<std::uint64_t>(first / 200, 1));
        const double a = static_cast<double>(first) + 0.5, b = static_cast<double>(end) + 0.5;
        const double log_ratio = std::log(b / a), y = (1 - exponent) * log_ratio;
        const double whole = y == 0 ? 1 : std::expm1(y) / y;
        mass.push_back(a * power(a) * log_ratio * whole);
        breaks.push_back(end);
    }
    return {breaks, mass, scattered};
}

std::uint64_t KeyDraws::scatter(std::uint64_t rank) const noexcept {
    return static_cast<std::uint64_t>(
        Scatter(static_cast<std::int64_t>(keys_))(static_cast<std::int64_t>(rank)));
}

void KeyDraws::draw(Random& random, std::span<std::uint64_t> into) const noexcept {
    if (pieces_.size() == 1) {  // no choice to make: a range drawn from evenly
        const auto [first, width] = pieces_[0];
        for (auto& key : into) key = first + random.below(width);
    } else {
        for (auto& key : into) {
            // Also for pieces of one key: a branch that nobody could foresee would cost more.
            const Piece& piece = pieces_[choice_.draw(random)];
            key = piece.first + random.below(piece.width);
        }
    }
    if (scattered_) {
        const Scatter scatter(static_cast<std::int64_t>(keys_));
        scatter.all(into);
    }
}

}  // namespace numatwin::native
