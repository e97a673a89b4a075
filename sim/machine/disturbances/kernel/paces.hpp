// How processors go now slower, now faster, as others use what they share with them.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "kernel/backlog.hpp"
#include "kernel/event_queue.hpp"
#include "kernel/interpolation.hpp"
#include "kernel/philox.hpp"

namespace numatwin {

// sim/machine/disturbances/facts.py.
struct PaceSetup {
    PaceSetup(double lasts, std::vector<double> shares, std::vector<double> slowdowns)
        : lasts_ps(lasts), share(std::move(shares)), slowdown(std::move(slowdowns)) {
        if (!(lasts_ps > 0 && std::isfinite(lasts_ps)))
            throw std::invalid_argument("lasts_ps: expected a time above 0");
        const auto is_slowdown = [](double times) { return times > 0 && std::isfinite(times); };
        if (share.size() < 2 || share.size() != slowdown.size() || !std::ranges::is_sorted(share) ||
            !std::ranges::all_of(slowdown, is_slowdown))
            throw std::invalid_argument("slowdown: expected one above 0 for each share, rising");
    }

    double lasts_ps;               // on average, exponentially distributed
    std::vector<double> share;     // [K] of the time, from 0 to 1
    std::vector<double> slowdown;  // [K] how many times as long work takes at least in that share
};

// Of several processors, each with a stream of its own.
class Paces {
  public:
    Paces() = default;  // always the usual one
    Paces(PaceSetup setup, const std::vector<Stream>& streams) : setup_(std::move(setup)) {
        for (const Stream& stream : streams) processor_.push_back({stream});
    }

    // What work takes that begins now; its pace is that of its beginning. Asked as time goes on.
    Time taken(std::size_t processor, Time now, Time work) {
        if (processor_.empty()) return work;
        Processor& p = processor_[processor];
        while (p.ends <= now) {
            p.slowdown = interpolated(p.stream.uniform(), setup_->share, setup_->slowdown);
            p.ends += std::max<Time>(rounded_ps(p.stream.exponential(setup_->lasts_ps)), 1);
        }
        return rounded_ps(static_cast<double>(work) * p.slowdown);
    }

  private:
    struct Processor {
        Stream stream;
        double slowdown = 1.0;
        Time ends = 0;
    };

    std::optional<PaceSetup> setup_;
    std::vector<Processor> processor_;
};

}  // namespace numatwin
