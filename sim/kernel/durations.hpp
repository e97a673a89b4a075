// Distributions of times: between arrivals, of service, of thinking.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "kernel/elementary.hpp"
#include "kernel/event_queue.hpp"
#include "kernel/guide_table.hpp"
#include "kernel/philox.hpp"

namespace numatwin {

// A time from a stream, by inverse transform: one word of the stream a draw (none where it is
// always the same), a larger word giving no shorter time. So two alternatives that draw from
// streams of the same name stay in step, and vary together.
class Durations {
  public:
    // Longer times are refused, so that no sum of a few leaves the clock's range.
    static constexpr double longest_ps = 0x1p55;  // ten hours

    static Durations deterministic(Time ps) {
        Durations made(Kind::deterministic, static_cast<double>(ps));
        made.low_ = ps;
        return made;
    }
    // Rounded to the nearest picosecond.
    static Durations exponential(double mean_ps) { return {Kind::exponential, mean_ps}; }
    // All whole picoseconds from low to high, both included.
    static Durations uniform(Time low_ps, Time high_ps) {
        if (high_ps < low_ps) throw std::invalid_argument("high_ps: expected at least low_ps");
        Durations made(Kind::uniform,
                       (static_cast<double>(low_ps) + static_cast<double>(high_ps)) / 2);
        check(static_cast<double>(low_ps));
        check(static_cast<double>(high_ps));
        made.low_ = low_ps;
        made.count_ = static_cast<std::uint64_t>(high_ps - low_ps) + 1;
        return made;
    }
    // Recorded times, each in proportion to its weight.
    static Durations empirical(std::span<const std::int64_t> ps, std::span<const double> weight) {
        if (ps.empty() || ps.size() != weight.size())
            throw std::invalid_argument("weight: expected as many entries as times, at least 1");
        std::vector<std::size_t> order(ps.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return ps[a] < ps[b]; });
        std::vector<double> sums{0.0};
        std::vector<Time> values;
        double moment = 0;
        for (const std::size_t k : order) {
            if (!(weight[k] >= 0 && weight[k] < 1e300))
                throw std::invalid_argument("weight: expected finite values of at least 0");
            if (weight[k] == 0) continue;
            check(static_cast<double>(ps[k]));
            sums.push_back(sums.back() + weight[k]);
            values.push_back(ps[k]);
            moment += weight[k] * static_cast<double>(ps[k]);
        }
        if (values.empty() || !(sums.back() < 1e300))
            throw std::invalid_argument("weight: expected a finite sum above 0");
        Durations made(Kind::empirical, moment / sums.back());
        made.guide_ = GuideTable(sums);
        made.value_ = std::move(values);
        return made;
    }

    double mean_ps() const { return mean_; }

    Time draw(Stream& stream) const {
        switch (kind_) {
            case Kind::deterministic:
                return low_;
            case Kind::exponential:
                return static_cast<Time>(stream.exponential(mean_) + 0.5);
            case Kind::uniform:
                return low_ + static_cast<Time>(stream.below(count_));
            case Kind::empirical:
                return value_[guide_.find(stream.uniform() * guide_.top())];
        }
        return 0;
    }

  private:
    enum class Kind : std::uint8_t { deterministic, exponential, uniform, empirical };

    Durations(Kind kind, double mean_ps) : kind_(kind), mean_(mean_ps) { check(mean_ps); }
    static void check(double ps) {
        if (!(ps >= 0 && ps <= longest_ps))
            throw std::invalid_argument("a time: expected from 0 to 2^55 ps (ten hours)");
    }

    Kind kind_;
    double mean_;
    Time low_ = 0;
    std::uint64_t count_ = 0;
    GuideTable guide_;
    std::vector<Time> value_;
};

// A distribution with a stream of its own. Draws a few ahead: a processor works on all of them at
// once, and an event need not wait for a logarithm.
class DurationDraws {
  public:
    DurationDraws(Durations durations, Stream stream)
        : durations_(std::move(durations)), stream_(stream) {}

    const Durations& durations() const { return durations_; }
    Time next() {
        if (used_ == ahead_.size()) {
            for (Time& time : ahead_) time = durations_.draw(stream_);
            used_ = 0;
        }
        return ahead_[used_++];
    }

  private:
    Durations durations_;
    Stream stream_;
    std::array<Time, 4> ahead_{};
    std::size_t used_ = 4;
};

}  // namespace numatwin
