// Flows with volumes that share resources max-min fair while time passes.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "kernel/flow_sharing.hpp"
#include "kernel/indexed_heap.hpp"

namespace numatwin {

// A flow as the caller starts it; latency passes before it takes its share.
struct FlowStart {
    FlowDemand demand;
    double volume;
    double latency;
};

struct Completion {
    double time;
    std::int64_t flow;
};

// Rates are constant between changes, so a flow's end is known when its rate is. A flow's volume
// is brought up to date only when its own rate changes. Changes at one moment are shared at once,
// when time next passes or a rate is asked for.
//
// An id names a flow for good: its slot, which later flows reuse, and how often it was reused.
// Times are in the caller's unit; volumes in the unit of rate times that of time.
class FlowNetwork {
  public:
    using Index = FlowSharing::Index;

    // A small number for a flow: no other active one has the same.
    static std::size_t slot(std::int64_t flow) { return static_cast<std::uint32_t>(flow); }

    double now() const { return now_; }
    std::size_t resources() const { return sharing_.resources(); }
    std::size_t active() const { return active_; }

    // All throw std::invalid_argument for a value out of range, with nothing changed.
    std::int64_t add_resource(double capacity);
    void set_capacity(std::int64_t resource, double capacity);
    std::int64_t start(const FlowStart& flow);
    void check(const FlowStart& flow) const;

    // What was left of the flow's volume. Throws std::out_of_range if the flow has ended.
    double cancel(std::int64_t flow);

    double rate(std::int64_t flow);
    double remaining(std::int64_t flow);
    std::int64_t binding(std::int64_t flow);
    double use(std::size_t resource);

    // When the next flow ends, or takes its share after its latency; infinity if none does.
    double next_event();
    // Goes on to the next completion, with all others of the same time; to nowhere if none comes.
    void advance(std::vector<Completion>& completions);
    // Goes on to this time and appends all completions up to and at it.
    void advance(double until, std::vector<Completion>& completions);
    // The same for a caller with a clock of whole ticks, to whom a tick's changes come at one
    // moment, its end: `until` is at most a tick after next_event(), and all that ends by then ends
    // then, at the rates that hold now. Shared once for all of them and what the caller starts
    // next.
    void advance_tick(double until, std::vector<Completion>& completions);

    // Closed loop: keeps window flows of the list running, in order; each that ends is followed
    // by the next at once. Writes when each ended (infinity if it cannot). No flow may be active.
    void replay(std::span<const FlowStart> flows, std::size_t window, std::span<double> end);

  private:
    static constexpr double infinity = std::numeric_limits<double>::infinity();
    enum class State : std::uint8_t { ended, waiting, running };

    struct Flow {
        double remaining;  // at time since
        double since;
        double rate;
        std::uint32_t generation;
        State state;
    };
    struct Waiting {  // what a flow asks for once its latency has passed
        std::vector<std::int64_t> resource;
        std::vector<double> coefficient;
        double cap;
        double weight;
    };

    Index slot_of(std::int64_t flow) const;
    std::int64_t id_of(Index slot) const;
    void share();
    void activate(Index slot);
    void end(Index slot);
    void advance_to(double time, std::vector<Completion>& completions);
    void require_resource(std::int64_t resource) const;

    FlowSharing sharing_;
    IndexedHeap events_;  // slots by the time of their start or end
    std::vector<Flow> flow_;
    std::vector<Waiting> waiting_;
    std::vector<Index> unused_;
    std::vector<Completion> replayed_;
    double now_ = 0;
    std::size_t active_ = 0;
};

}  // namespace numatwin
