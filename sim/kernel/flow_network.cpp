// Flows with volumes over time: the stateful network.
#include "kernel/flow_network.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace numatwin {
namespace {

constexpr int generation_shift = 32;

void require(bool holds, const char* what, const char* expected) {
    if (!holds) {
        throw std::invalid_argument(std::string(what) + ": expected " + expected);
    }
}

}  // namespace

void FlowNetwork::require_resource(std::int64_t resource) const {
    require(resource >= 0 && static_cast<std::size_t>(resource) < resources(), "resource",
            "the index of a resource of this network");
}

std::int64_t FlowNetwork::add_resource(double capacity) {
    require(capacity >= 0 && capacity < infinity, "capacity", "a finite value of at least 0");
    return sharing_.add_resource(capacity);
}

void FlowNetwork::set_capacity(std::int64_t resource, double capacity) {
    require_resource(resource);
    require(capacity >= 0 && capacity < infinity, "capacity", "a finite value of at least 0");
    sharing_.set_capacity(static_cast<Index>(resource), capacity);
}

void FlowNetwork::check(const FlowStart& flow) const {
    const FlowDemand& demand = flow.demand;
    bool bounded = demand.cap < infinity;
    require(demand.resource.size() == demand.coefficient.size(), "coefficient",
            "as many entries as resources");
    for (std::size_t k = 0; k < demand.resource.size(); ++k) {
        require_resource(demand.resource[k]);
        const double coefficient = demand.coefficient[k];
        require(coefficient >= 0 && coefficient < infinity, "coefficient",
                "a finite value of at least 0");
        bounded = bounded || coefficient > 0;
    }
    require(demand.cap >= 0, "cap", "a rate of at least 0 (infinity for none)");
    require(demand.weight > 0 && demand.weight < infinity, "weight", "a finite weight above 0");
    for (const double coefficient : demand.coefficient) {
        const double slope = coefficient * demand.weight;
        require(slope < infinity && (slope > 0 || coefficient == 0), "coefficient",
                "one that does not take coefficient * weight out of range");
    }
    require(demand.cap == infinity || demand.cap / demand.weight < infinity, "weight",
            "one that does not take cap / weight out of range");
    require(flow.volume >= 0 && flow.volume < infinity, "volume", "a finite value of at least 0");
    require(flow.latency >= 0 && flow.latency < infinity, "latency",
            "a finite value of at least 0");
    require(bounded, "flow", "a finite cap or a resource with a coefficient above 0");
}

std::int64_t FlowNetwork::start(const FlowStart& start) {
    check(start);
    if (unused_.empty()) {
        unused_.push_back(static_cast<Index>(flow_.size()));
        flow_.push_back({});
        waiting_.emplace_back();
        events_.reserve(flow_.size());
    }
    const Index slot = unused_.back();
    unused_.pop_back();
    ++active_;
    Flow& flow = flow_[slot];
    flow.remaining = start.volume;
    flow.rate = 0;
    flow.since = now_ + start.latency;
    if (start.latency > 0) {
        Waiting& waiting = waiting_[slot];
        waiting.resource.assign(start.demand.resource.begin(), start.demand.resource.end());
        waiting.coefficient.assign(start.demand.coefficient.begin(),
                                   start.demand.coefficient.end());
        waiting.cap = start.demand.cap;
        waiting.weight = start.demand.weight;
        flow.state = State::waiting;
        events_.set(slot, flow.since);
    } else {
        flow.state = State::running;
        sharing_.add_flow(slot, start.demand);
        if (start.volume == 0) events_.set(slot, now_);
    }
    return id_of(slot);
}

std::int64_t FlowNetwork::id_of(Index slot) const {
    return static_cast<std::int64_t>(flow_[slot].generation) << generation_shift | slot;
}

FlowNetwork::Index FlowNetwork::slot_of(std::int64_t flow) const {
    const auto slot = static_cast<Index>(flow);
    if (flow < 0 || slot >= flow_.size() || flow_[slot].state == State::ended ||
        id_of(slot) != flow) {
        throw std::out_of_range("no flow " + std::to_string(flow) + " is active");
    }
    return slot;
}

// Shares again and notes when the flows whose rate has changed will end.
void FlowNetwork::share() {
    if (sharing_.is_shared()) return;
    for (const Index slot : sharing_.share()) {
        Flow& flow = flow_[slot];
        const double rate = sharing_.rate(slot);
        if (rate == flow.rate) continue;
        flow.remaining = std::max(0.0, flow.remaining - flow.rate * (now_ - flow.since));
        flow.since = now_;
        flow.rate = rate;
        if (rate > 0) {
            events_.set(slot, now_ + flow.remaining / rate);
        } else if (flow.remaining > 0) {
            events_.erase(slot);
        }
    }
}

void FlowNetwork::activate(Index slot) {
    const Waiting& waiting = waiting_[slot];
    Flow& flow = flow_[slot];
    flow.state = State::running;
    flow.since = now_;
    sharing_.add_flow(slot, {waiting.resource, waiting.coefficient, waiting.cap, waiting.weight});
    if (flow.remaining == 0) {
        events_.set(slot, now_);
    } else {
        events_.erase(slot);
    }
}

void FlowNetwork::end(Index slot) {
    Flow& flow = flow_[slot];
    if (flow.state == State::running) sharing_.remove_flow(slot);
    events_.erase(slot);
    flow.state = State::ended;
    flow.generation = (flow.generation + 1) & std::numeric_limits<std::int32_t>::max();
    unused_.push_back(slot);
    --active_;
}

double FlowNetwork::cancel(std::int64_t flow) {
    const double left = remaining(flow);
    end(slot_of(flow));
    return left;
}

double FlowNetwork::rate(std::int64_t flow) {
    const Index slot = slot_of(flow);
    share();
    return flow_[slot].rate;
}

double FlowNetwork::remaining(std::int64_t flow) {
    const Flow& state = flow_[slot_of(flow)];
    return std::max(0.0, state.remaining - state.rate * (now_ - state.since));
}

std::int64_t FlowNetwork::binding(std::int64_t flow) {
    const Index slot = slot_of(flow);
    share();
    return flow_[slot].state == State::running ? sharing_.binding(slot) : -1;
}

double FlowNetwork::use(std::size_t resource) {
    share();
    return sharing_.use(static_cast<Index>(resource));
}

// Deals with the events of this time, the earliest of the heap, in the order of their slots.
void FlowNetwork::advance_to(double time, std::vector<Completion>& completions) {
    now_ = time;
    while (!events_.empty() && events_.top().key <= time) {
        const Index slot = events_.top().index;
        if (flow_[slot].state == State::waiting) {
            activate(slot);
        } else {
            completions.push_back({time, id_of(slot)});
            end(slot);
        }
    }
}

double FlowNetwork::next_event() {
    share();
    return events_.empty() ? infinity : events_.top().key;
}

void FlowNetwork::advance(std::vector<Completion>& completions) {
    const std::size_t before = completions.size();
    for (share(); !events_.empty() && completions.size() == before; share()) {
        advance_to(events_.top().key, completions);
    }
}

void FlowNetwork::advance(double until, std::vector<Completion>& completions) {
    require(until >= now_ && until < infinity, "until", "a finite time, not before now");
    for (share(); !events_.empty() && events_.top().key <= until; share()) {
        advance_to(events_.top().key, completions);
    }
    now_ = until;
}

void FlowNetwork::advance_tick(double until, std::vector<Completion>& completions) {
    require(until >= now_ && until < infinity, "until", "a finite time, not before now");
    share();
    advance_to(until, completions);
}

void FlowNetwork::replay(std::span<const FlowStart> flows, std::size_t window,
                         std::span<double> end) {
    require(active_ == 0, "replay", "a network without active flows");
    require(window > 0, "window", "at least 1");
    for (const FlowStart& flow : flows) check(flow);
    std::fill(end.begin(), end.end(), infinity);
    std::vector<std::size_t> listed;  // by slot
    std::size_t next = 0;
    const auto start_next = [&] {
        const auto slot = static_cast<Index>(start(flows[next]));
        if (slot >= listed.size()) listed.resize(slot + 1);
        listed[slot] = next++;
    };
    while (next < std::min(window, flows.size())) start_next();
    for (share(); !events_.empty(); share()) {
        replayed_.clear();
        advance_to(events_.top().key, replayed_);
        for (const Completion& completion : replayed_) {
            end[listed[static_cast<Index>(completion.flow)]] = completion.time;
            if (next < flows.size()) start_next();
        }
    }
}

}  // namespace numatwin
