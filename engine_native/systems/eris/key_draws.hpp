// Which keys clients ask for: a density in pieces, drawn from in constant time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "systems/eris/choice.hpp"
#include "systems/eris/random.hpp"

namespace numatwin::native {

/// mass[i] lies evenly on the keys breaks[i] … breaks[i + 1] - 1. Where `scattered`, these are
/// ranks of popularity, which a fixed permutation (that of workloads/zipf.py) spreads over all
/// keys.
class KeyDraws {
  public:
    /// Throws std::invalid_argument where the breaks do not rise from 0 or the mass is none.
    KeyDraws(std::span<const std::uint64_t> breaks, std::span<const double> mass, bool scattered);

    /// Zipf: the r-th most popular of n keys, counted from 1, in proportion to r^-exponent. Up to
    /// rank 1024 each for itself; beyond, in pieces within which the chance of a rank falls by at
    /// most 0.5% times the exponent, and which are drawn from evenly.
    static KeyDraws zipf(std::uint64_t keys, double exponent, bool scattered);

    std::uint64_t keys() const noexcept { return keys_; }
    void draw(Random& random, std::span<std::uint64_t> into) const noexcept;

  private:
    struct Piece {
        std::uint64_t first, width;
    };
    std::uint64_t scatter(std::uint64_t rank) const noexcept;

    std::uint64_t keys_ = 0;
    std::vector<Piece> pieces_;
    Choice choice_;
    bool scattered_ = false;
};

}  // namespace numatwin::native
