// Distributions of times: between arrivals, of service, of thinking.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "kernel/elementary.hpp"
#include "kernel/event_queue.hpp"
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
    double mean_ps() const { return mean_; }

    Time draw(Stream& stream) const {
        switch (kind_) {
            case Kind::deterministic:
                return low_;
            case Kind::exponential:
                return static_cast<Time>(stream.exponential(mean_) + 0.5);
            case Kind::uniform:
                return low_ + static_cast<Time>(stream.below(count_));
        }
        return 0;
    }

  private:
    enum class Kind : std::uint8_t { deterministic, exponential, uniform };

    Durations(Kind kind, double mean_ps) : kind_(kind), mean_(mean_ps) { check(mean_ps); }
    static void check(double ps) {
        if (!(ps >= 0 && ps <= longest_ps))
            throw std::invalid_argument("a time: expected from 0 to 2^55 ps (ten hours)");
    }

    Kind kind_;
    double mean_;
    Time low_ = 0;
    std::uint64_t count_ = 0;
};

}  // namespace numatwin
