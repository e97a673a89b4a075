// Counts, time averages and quantiles, gathered while a simulation runs; all in exact integers.
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

// The average over time of a whole number that changes now and then, such as a queue's length. A
// level that rises by d_i at time t_i has the integral
//
//     level * now - sum of d_i * t_i
//
// so a change costs a product and a sum, and needs not know when the last one was.
class TimeAverage {
  public:
    std::int64_t level() const { return level_; }
    std::int64_t highest() const { return highest_; }

    void change(Time now, std::int64_t by) {
        moment_ += static_cast<Wide>(by) * now;
        level_ += by;
        highest_ = std::max(highest_, level_);
    }
    void set(Time now, std::int64_t level) { change(now, level - level_); }

    // Forgets the past, not the level.
    void reset(Time now) {
        start_ = now;
        moment_ = static_cast<Wide>(level_) * now;
        highest_ = level_;
    }

    // Level times picoseconds, since the start or the last reset.
    Wide integral(Time now) const { return static_cast<Wide>(level_) * now - moment_; }

    // 0 where no time has passed.
    double mean(Time now) const {
        if (now == start_) return 0;
        return static_cast<double>(integral(now)) / static_cast<double>(now - start_);
    }

  private:
    Wide moment_ = 0;
    Time start_ = 0;
    std::int64_t level_ = 0;
    std::int64_t highest_ = 0;
};

// Streaming quantiles of values from 0 to 2^63 - 1, such as latencies in picoseconds.
//
// Buckets are 2^-7 of their power of two wide: values below 256 have a bucket each; above, a value
// v lies in a bucket of width 2^(floor(log2 v) - 7), which its middle stands for. So a quantile is
// off by at most 2^-8 = 0.39% of the value of that rank; count, mean, least and greatest are exact.
// (The layout of HdrHistogram, Tene 2012.) Merging adds counts: no further error. It grows to the
// greatest value seen, to at most 57 KiB.
class Histogram {
  public:
    static constexpr double relative_error = 0x1p-8;

    std::uint64_t count() const { return count_; }
    std::int64_t least() const { return count_ > 0 ? least_ : 0; }
    std::int64_t greatest() const { return greatest_; }
    double mean() const {
        return count_ > 0 ? static_cast<double>(twice_sum_) / static_cast<double>(count_) / 2 : 0;
    }

    void add(std::int64_t value, std::uint64_t count = 1) {
        if (count == 0) return;
        put(bucket_of(value), count);
        count_ += count;
        twice_sum_ += 2 * static_cast<Wide>(value) * static_cast<Wide>(count);
        least_ = std::min(least_, value);
        greatest_ = std::max(greatest_, value);
    }

    // Spreads the count evenly over the values from a to b, both included: of the n = b - a + 1
    // values, the first k get floor(count * k / n) together. Mean, least and greatest are those of
    // the range.
    void add_even(std::int64_t a, std::int64_t b, std::uint64_t count) {
        if (count == 0) return;
        const auto n = static_cast<unsigned __int128>(b - a) + 1;
        std::uint64_t below = 0;
        const std::size_t last = bucket_of(b);
        for (std::size_t bucket = bucket_of(a); bucket <= last; ++bucket) {
            const std::int64_t end = bucket == last ? b : first_of(bucket + 1) - 1;
            const auto k = static_cast<unsigned __int128>(end - a) + 1;
            const auto upto = static_cast<std::uint64_t>(count * k / n);
            if (upto > below) put(bucket, upto - below);
            below = upto;
        }
        count_ += count;
        twice_sum_ += (static_cast<Wide>(a) + b) * static_cast<Wide>(count);
        least_ = std::min(least_, a);
        greatest_ = std::max(greatest_, b);
    }

    void merge(const Histogram& other) {
        if (bucket_.size() < other.bucket_.size()) bucket_.resize(other.bucket_.size(), 0);
        for (std::size_t b = 0; b < other.bucket_.size(); ++b) bucket_[b] += other.bucket_[b];
        count_ += other.count_;
        twice_sum_ += other.twice_sum_;
        least_ = std::min(least_, other.least_);
        greatest_ = std::max(greatest_, other.greatest_);
    }

    void reset() {
        std::fill(bucket_.begin(), bucket_.end(), 0);
        count_ = 0;
        twice_sum_ = 0;
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

    // Counts by bucket, and where buckets begin: for records and pictures.
    const std::vector<std::uint64_t>& buckets() const { return bucket_; }
    static std::int64_t first_of(std::size_t bucket) {
        if (bucket < 2 * parts) return static_cast<std::int64_t>(bucket);
        const std::size_t shift = bucket / parts - 1;
        if (shift >= 56) return never;
        return static_cast<std::int64_t>((bucket % parts + parts) << shift);
    }

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
    Wide twice_sum_ = 0;
    std::int64_t least_ = never;
    std::int64_t greatest_ = 0;
};

}  // namespace numatwin
