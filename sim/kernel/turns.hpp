// Turns of others on a processor: a hypervisor lets another machine run there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "backlog.hpp"
#include "event_queue.hpp"
#include "philox.hpp"

namespace numatwin {

// commits/processors.py. None where `every` is 0.
struct TurnSetup {
    double every = 0;                    // from the end of one to the next, on average
    std::vector<double> length;          // of each kind
    std::vector<double> share;           // which of all are of this kind or one before it
    std::vector<std::uint64_t> streams;  // two words a processor
};

// Of one processor. The next one is drawn when the one before has been met.
class Turns {
  public:
    Turns() = default;
    Turns(const TurnSetup& setup, std::size_t processor) {
        if (setup.every <= 0) return;
        if (setup.share.empty() || setup.share.size() != setup.length.size() ||
            setup.share.back() != 1.0)
            throw std::invalid_argument("turns: expected a share for each length, up to 1");
        if (setup.streams.size() < 2 * processor + 2)
            throw std::invalid_argument("turns: expected a stream for each processor");
        every_ = setup.every;
        length_ = setup.length;
        share_ = setup.share;
        stream_ = Stream(setup.streams[2 * processor], setup.streams[2 * processor + 1]);
        next_ = rounded_ps(stream_.exponential(every_));
    }

    // When the processor is there: now, or at the end of the turn that is under way.
    Time there(Time now) {
        while (next_ < now) take();
        return std::max(now, taken_until_);
    }

    // The end of work that began when the processor was there, moved by the turns that begin before
    // it and `by`.
    Time moved(Time end, Time by = std::numeric_limits<Time>::max()) {
        while (next_ < std::min(end, by)) end += take();
        return end;
    }

  private:
    // How long the next one lasts.
    Time take() {
        const double u = stream_.uniform();
        std::size_t k = 0;
        while (u >= share_[k]) ++k;
        const Time lasts = rounded_ps(length_[k]);
        taken_until_ = next_ + lasts;
        next_ = taken_until_ + rounded_ps(stream_.exponential(every_));
        return lasts;
    }

    double every_ = 0;
    std::vector<double> length_, share_;
    Stream stream_{0, 0};
    Time next_ = std::numeric_limits<Time>::max(), taken_until_ = 0;
};

}  // namespace numatwin
