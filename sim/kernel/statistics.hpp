// Streaming quantiles, gathered while a simulation runs; all in exact integers.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "kernel/event_queue.hpp"

namespace numatwin {

// Sums of 64-bit numbers times 64-bit times do not fit 64 bits.
using Wide = __int128;

// Streaming quantiles of values from 0 to 2^63 - 1, such as latencies in picoseconds.
//
// Buckets are 2^-7 of their power of two wide: values below 256 have a bucket each; above, a value
// v lies in a bucket of width 2^(floor(log2 v) - 7), which its middle stands for. So a quantile is
// off by at most 2^-8 = 0.39% of the value of that rank; count, total, least and greatest are
// exact. (The layout of HdrHistogram, Tene 2012.) It grows to the greatest value seen, to at most
// 57 KiB.
class Histogram {
  public:
    static constexpr double relative_error = 0x1p-8;

    std::uint64_t count() const { return count_; }
    std::int64_t least() const { return count_ > 0 ? least_ : 0; }
    std::int64_t greatest() const { return greatest_; }
    double total() const { return static_cast<double>(sum_); }

    void add(std::int64_t value, std::uint64_t count = 1) {
        if (count == 0) return;
        put(bucket_of(value), count);
        count_ += count;
        sum_ += static_cast<Wide>(value) * static_cast<Wide>(count);
        least_ = std::min(least_, value);
        greatest_ = std::max(greatest_, value);
    }

    void reset() {
        std::fill(bucket_.begin(), bucket_.end(), 0);
        count_ = 0;
        sum_ = 0;
        least_ = never;
        greatest_ = 0;
    }

    // The value of rank ceil(q * count), counted from 1, within relative_error; q from 0 (the
    // least) to 1 (the greatest). 0 where nothing was added.
    std::int64_t quantile(double q) const {
        if (count_ == 0) return 0;
        const double rank_exact = std::ceil(q * static_cast<double>(count_));
        if (rank_exact >= static_cast<double>(count_)) return greatest_;
        if (rank_exact <= 1) return least_;
        const auto rank = static_cast<std::uint64_t>(rank_exact);
        std::uint64_t seen = 0;
        for (std::size_t b = 0; b < bucket_.size(); ++b) {
            seen += bucket_[b];
            if (seen >= rank) return std::clamp(middle_of(b), least_, greatest_);
        }
        return greatest_;
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
    static std::int64_t first_of(std::size_t bucket) {
        if (bucket < 2 * parts) return static_cast<std::int64_t>(bucket);
        const std::size_t shift = bucket / parts - 1;
        if (shift >= 56) return never;
        return static_cast<std::int64_t>((bucket % parts + parts) << shift);
    }
    static std::int64_t middle_of(std::size_t bucket) {
        const std::int64_t first = first_of(bucket);
        return first + (first_of(bucket + 1) - 1 - first) / 2;
    }

    void put(std::size_t bucket, std::uint64_t count) {
        if (bucket >= bucket_.size()) bucket_.resize(bucket + 1, 0);
        bucket_[bucket] += count;
    }

    std::vector<std::uint64_t> bucket_;
    std::uint64_t count_ = 0;
    Wide sum_ = 0;
    std::int64_t least_ = never;
    std::int64_t greatest_ = 0;
};

}  // namespace numatwin
