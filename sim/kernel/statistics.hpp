// Streaming histograms, gathered while a simulation runs; all in exact integers.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "kernel/event_queue.hpp"

namespace numatwin {

// Sums of 64-bit numbers times 64-bit times do not fit 64 bits.
using Wide = __int128;

// A histogram of values from 0 to 2^63 - 1, such as latencies in picoseconds.
//
// Buckets are 2^-7 of their power of two wide: values below 256 have a bucket each; above, a value
// v lies in a bucket of width 2^(floor(log2 v) - 7), which its middle stands for. So a quantile
// (kernel/histogram.py) is off by at most 2^-8 = 0.39% of the value of that rank; count and total
// are exact. (The layout of HdrHistogram, Tene 2012.) It grows to the greatest value seen, to at
// most 57 KiB.
class Histogram {
  public:
    std::uint64_t count() const { return count_; }
    double total() const { return static_cast<double>(sum_); }

    void add(std::int64_t value, std::uint64_t count = 1) {
        if (count == 0) return;
        put(bucket_of(value), count);
        count_ += count;
        sum_ += static_cast<Wide>(value) * static_cast<Wide>(count);
    }

    void reset() {
        std::fill(bucket_.begin(), bucket_.end(), 0);
        count_ = 0;
        sum_ = 0;
    }

    // Counts by bucket: for records and pictures.
    const std::vector<std::uint64_t>& buckets() const { return bucket_; }

  private:
    static constexpr int part_bits = 7;
    static constexpr std::size_t parts = std::size_t{1} << part_bits;

    // Values with the same floor(log2) and the same next part_bits bits share a bucket.
    static std::size_t bucket_of(std::int64_t value) {
        if (value < 0) throw std::logic_error("a histogram takes no value below 0");
        const auto v = static_cast<std::uint64_t>(value);
        const int shift = static_cast<int>(std::bit_width(v | parts)) - 1 - part_bits;
        return (static_cast<std::size_t>(shift) << part_bits) + (v >> shift);
    }

    void put(std::size_t bucket, std::uint64_t count) {
        if (bucket >= bucket_.size()) bucket_.resize(bucket + 1, 0);
        bucket_[bucket] += count;
    }

    std::vector<std::uint64_t> bucket_;
    std::uint64_t count_ = 0;
    Wide sum_ = 0;
};

}  // namespace numatwin
