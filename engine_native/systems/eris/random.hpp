// Random numbers for clients: quick, and a stream of its own for each worker.
//
// wyrand (Wang Yi, wyhash, public domain): a 64-bit counter with an odd step, multiplied by itself
// xor a constant to 128 bits and folded. It passes PractRand and BigCrush.
#pragma once

#include <cmath>
#include <cstdint>

namespace numatwin::native {

class Random {
  public:
    /// The stream of a worker: seeds and workers near each other give streams far apart.
    Random(std::uint64_t seed, std::uint64_t worker)
        : state_(mixed(mixed(seed) ^ (worker * 0x9E3779B97F4A7C15 + 1))) {}

    std::uint64_t next() noexcept {
        state_ += 0xA0761D6478BD642F;
        const auto wide = static_cast<unsigned __int128>(state_) * (state_ ^ 0xE7037ED1A0B428DB);
        return static_cast<std::uint64_t>(wide >> 64) ^ static_cast<std::uint64_t>(wide);
    }
    /// From 0 to below `end` (Lemire 2019, without the rejection: off by at most end / 2^64).
    std::uint64_t below(std::uint64_t end) noexcept {
        return static_cast<std::uint64_t>((static_cast<unsigned __int128>(next()) * end) >> 64);
    }
    /// In [0, 1).
    double uniform() noexcept { return static_cast<double>(next() >> 11) * 0x1p-53; }
    double exponential(double mean) noexcept { return -mean * std::log1p(-uniform()); }

  private:
    // Steele et al., SplitMix, OOPSLA 2014.
    static std::uint64_t mixed(std::uint64_t value) noexcept {
        value += 0x9E3779B97F4A7C15;
        value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
        value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
        return value ^ (value >> 31);
    }

    std::uint64_t state_;
};

}  // namespace numatwin::native
