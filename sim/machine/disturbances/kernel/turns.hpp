// Turns of others on a processor: a timer's handler, another program, or another machine that a
// hypervisor lets run there. All stands still meanwhile.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "kernel/backlog.hpp"
#include "kernel/event_queue.hpp"
#include "kernel/philox.hpp"

namespace numatwin {

// sim/machine/disturbances/facts.py.
struct TurnSetup {
    TurnSetup(double every, std::vector<double> length, std::vector<double> shares)
        : every_ps(every), length_ps(std::move(length)), share(std::move(shares)) {
        const auto is_time = [](double ps) { return ps >= 0 && std::isfinite(ps); };
        if (!is_time(every_ps) || every_ps == 0)
            throw std::invalid_argument("every_ps: expected a time above 0");
        if (!std::ranges::all_of(length_ps, is_time))
            throw std::invalid_argument("length_ps: expected times from 0 on");
        if (share.empty() || share.size() != length_ps.size() || share.back() != 1.0)
            throw std::invalid_argument("share: expected one for each length, up to 1");
    }

    double every_ps;                // from the end of one to the next, on average
    std::vector<double> length_ps;  // [K] of each kind
    std::vector<double> share;      // [K] which of all are of this kind or one before it
};

// Of several processors, each with a stream of its own. The next turn is drawn when the one before
// has been met.
class Turns {
  public:
    Turns() = default;  // nobody else ever has a processor
    Turns(TurnSetup setup, const std::vector<Stream>& streams) : setup_(std::move(setup)) {
        processor_.reserve(streams.size());
        for (Stream stream : streams) {
            const Time first = rounded_ps(stream.exponential(setup_->every_ps));
            processor_.push_back({stream, first});
        }
    }

    // When the processor is there: now, or at the end of the turn that is under way.
    Time there(std::size_t processor, Time now) {
        if (processor_.empty()) return now;
        Processor& p = processor_[processor];
        while (p.next < now) take(p);
        return std::max(now, p.taken_until);
    }

    // The end of work that began when the processor was there, moved by the turns that begin before
    // it and `by`.
    Time moved(std::size_t processor, Time end, Time by = std::numeric_limits<Time>::max()) {
        if (processor_.empty()) return end;
        Processor& p = processor_[processor];
        while (p.next < std::min(end, by)) end += take(p);
        return end;
    }

  private:
    struct Processor {
        Stream stream;
        Time next, taken_until = 0;
    };

    // How long the next one lasts.
    Time take(Processor& p) {
        const double u = p.stream.uniform();
        std::size_t k = 0;
        while (u >= setup_->share[k]) ++k;
        const Time lasts = rounded_ps(setup_->length_ps[k]);
        p.taken_until = p.next + lasts;
        p.next = p.taken_until + rounded_ps(p.stream.exponential(setup_->every_ps));
        return lasts;
    }

    std::optional<TurnSetup> setup_;
    std::vector<Processor> processor_;
};

}  // namespace numatwin
