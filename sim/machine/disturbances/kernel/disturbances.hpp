// What others do to the cores of a machine, behind the one hook that models call: it stretches busy
// time.
//
// The operating system and a hypervisor interrupt a core now and then: all stands still there for a
// timer's handler, for exits to the hypervisor. The same in SimPy: ../reference/disturbances.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "kernel/event_queue.hpp"
#include "kernel/fifo_server.hpp"
#include "kernel/philox.hpp"

namespace numatwin {

// ../facts.py: interruptions of a core.
struct Interruptions {
    Interruptions(double every, std::vector<double> length, std::vector<double> shares)
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

// Each core draws from a stream of its own; its next interruption is drawn when the one before is
// over for the model.
class Disturbances {
  public:
    Disturbances() = default;  // nobody disturbs
    Disturbances(Interruptions interruptions, const std::vector<Stream>& streams)
        : interruptions_(std::move(interruptions)) {
        core_.reserve(streams.size());
        for (Stream stream : streams) {
            const Time first = rounded_ps(stream.exponential(interruptions_->every_ps));
            core_.push_back({stream, first});
        }
    }

    // Whether there are any on so many cores, or none at all.
    bool fits(std::size_t cores) const { return core_.empty() || core_.size() == cores; }

    // When work of a core does end that begins now and would end at `end`: after the interruption
    // under way, and as much later as others come before its end. Asked as time goes on.
    Time stretched(std::size_t core, Time now, Time end) {
        if (core_.empty()) return end;
        Core& c = core_[core];
        while (c.next < now) interrupt(c);
        end += std::max<Time>(c.until - now, 0);
        while (c.next < end) end += interrupt(c);
        return end;
    }

  private:
    struct Core {
        Stream stream;
        Time next, until = 0;  // when the next begins, and the one before ended
    };

    // How long the next one lasts.
    Time interrupt(Core& c) {
        const double u = c.stream.uniform();
        std::size_t kind = 0;
        while (u >= interruptions_->share[kind]) ++kind;
        const Time lasts = rounded_ps(interruptions_->length_ps[kind]);
        c.until = c.next + lasts;
        c.next = c.until + rounded_ps(c.stream.exponential(interruptions_->every_ps));
        return lasts;
    }

    std::optional<Interruptions> interruptions_;
    std::vector<Core> core_;
};

}  // namespace numatwin
