// Philox4x64-10 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, SC 2011), the same
// numbers as numpy.random.Philox(key=…), counter from 0.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernel/elementary.hpp"

namespace numatwin {

// One stream of random numbers; its key says which. It lies in one line of the caches: models hold
// two for each of thousands of workers.
class alignas(64) Stream {
  public:
    Stream() : Stream(0, 0) {}
    Stream(std::uint64_t key0, std::uint64_t key1) : key_{key0, key1} {}

    std::uint64_t bits() {
        if (used_ == 4) refill();
        return buffer_[used_++];
    }

    // Words drawn so far.
    std::uint64_t taken() const { return 4 * counter_ + used_ - 4; }
    // Takes back the last `count` words, at most all that were drawn: they come again.
    void take_back(std::uint64_t count) {
        const std::uint64_t left = taken() - count;
        counter_ = left / 4;
        used_ = 4;
        if (left % 4 == 0) return;
        refill();
        used_ = static_cast<unsigned>(left % 4);
    }

    // In [0, 1), 53 bits: as numpy.random.Generator.random().
    double uniform() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }

    // Exponential by inverse transform: -mean log(1 - u).
    double exponential(double mean) { return -mean * elementary::log(1.0 - uniform()); }

    // From 0 to n - 1, n > 0: floor(n * word / 2^64). No number is more probable than another by
    // more than n * 2^-64, and every draw takes one word.
    std::uint64_t below(std::uint64_t n) {
        return static_cast<std::uint64_t>(static_cast<unsigned __int128>(n) * bits() >> 64);
    }

  private:
    void refill() {
        // NumPy counts first, then encrypts. Of its counter's 256 bits no run gets to the 65th.
        std::array<std::uint64_t, 4> c{++counter_, 0, 0, 0};
        auto k = key_;
        for (int round = 0; round < 10; ++round) {
            const auto p0 = static_cast<unsigned __int128>(0xD2E7470EE14C6C93u) * c[0];
            const auto p1 = static_cast<unsigned __int128>(0xCA5A826395121157u) * c[2];
            c = {static_cast<std::uint64_t>(p1 >> 64) ^ c[1] ^ k[0], static_cast<std::uint64_t>(p1),
                 static_cast<std::uint64_t>(p0 >> 64) ^ c[3] ^ k[1],
                 static_cast<std::uint64_t>(p0)};
            k[0] += 0x9E3779B97F4A7C15u;
            k[1] += 0xBB67AE8584CAA73Bu;
        }
        buffer_ = c;
        used_ = 0;
    }

    std::array<std::uint64_t, 2> key_;
    std::uint64_t counter_ = 0;
    std::array<std::uint64_t, 4> buffer_{};
    unsigned used_ = 4;
};

using StreamKeys = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

inline std::vector<Stream> streams_of(const StreamKeys& keys) {
    std::vector<Stream> streams;
    streams.reserve(keys.size());
    for (const auto& [a, b] : keys) streams.emplace_back(a, b);
    return streams;
}

}  // namespace numatwin
