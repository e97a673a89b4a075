// Links shared max-min fair by the transfers that cross them, on the clock of events.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernel/event_queue.hpp"
#include "kernel/flow_network.hpp"

namespace numatwin {

// A FlowNetwork whose unit of time is the picosecond: capacities and rates in bytes (or any other
// unit) per picosecond, latencies in picoseconds. Ends of transfers are rounded up to a whole
// picosecond. The same calls of Python's FlowNetwork give the same bits.
//
// A model keeps one timer, at next_change(), which it sets anew after each call that changes
// something; when it goes off, it calls finish() until that returns false.
class SharedLinks {
  public:
    std::size_t links() const { return network_.resources(); }
    std::size_t active() const { return network_.active(); }

    std::int64_t add_link(double capacity) { return network_.add_resource(capacity); }
    void set_capacity(Time now, std::int64_t link, double capacity) {
        progress(now);
        network_.set_capacity(link, capacity);
    }

    // A transfer starts; job is what finish() will tell. Returns the flow's name, for cancel().
    std::int64_t start(Time now, const FlowStart& flow, std::uint64_t job) {
        progress(now);
        const std::int64_t id = network_.start(flow);
        const std::size_t slot = FlowNetwork::slot(id);
        if (job_.size() <= slot) job_.resize(slot + 1);
        job_[slot] = job;
        return id;
    }
    // What was left of its volume.
    double cancel(Time now, std::int64_t flow) {
        progress(now);
        return network_.cancel(flow);
    }

    // When the next transfer ends, or takes its share after its latency; `never` if none does.
    Time next_change() {
        if (next_ < ended_.size()) return now_;
        const double time = network_.next_event();
        return time < far ? std::max(now_, static_cast<Time>(std::ceil(time))) : never;
    }

    // The first transfer to end up to now leaves. False if there is none (left).
    bool finish(Time now, std::uint64_t& job) {
        advance(now);
        if (next_ == ended_.size()) return false;
        job = ended_[next_++];
        return true;
    }

    double rate(std::int64_t flow) { return network_.rate(flow); }
    double use(std::size_t link) { return network_.use(link); }

  private:
    // Whole picoseconds are exact in doubles up to 2^53, two and a half hours.
    static constexpr double far = 0x1p53;

    // Changes at one time are shared at once, when time passes.
    void progress(Time now) {
        if (now != now_) advance(now);
    }
    void advance(Time now) {
        now_ = now;
        completions_.clear();
        network_.advance(static_cast<double>(now), completions_);
        if (next_ == ended_.size()) {
            ended_.clear();
            next_ = 0;
        }
        for (const Completion& completion : completions_)
            ended_.push_back(job_[FlowNetwork::slot(completion.flow)]);
    }

    FlowNetwork network_;
    std::vector<Completion> completions_;  // scratch
    std::vector<std::uint64_t> ended_;     // jobs; those from next_ on have not been told yet
    std::size_t next_ = 0;
    std::vector<std::uint64_t> job_;  // by slot
    Time now_ = 0;
};

}  // namespace numatwin
