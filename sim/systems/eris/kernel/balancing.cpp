// Balancing cycles of ErisRouting: the barrier of the workers, and transfers between them.
//
// A worker spends as much time on transfers as it spent on its commands in the same round, but at
// least one message: queries keep running. A source flattens a part and sends it; the target
// rebuilds it; two messages of a transfer may be under way.
#include <algorithm>

#include "systems/eris/kernel/routing.hpp"

namespace numatwin {

void ErisRouting::call(const std::vector<std::uint32_t>& called) {
    called_ = called.size();
    at_barrier_.clear();
    for (const auto i : called) {
        worker_[i].called = true;
        awake(i, 0);
    }
}

void ErisRouting::balance(std::uint32_t i) {
    Worker& w = worker_[i];
    w.transfers_until = 2 * clock.now() - w.round_start;
    if (w.called) {
        w.called = false;
        w.state = State::at_barrier;
        at_barrier_.push_back(i);
        if (at_barrier_.size() == called_) clock.halt();
        return;
    }
    if (!work_at_transfers(i)) flush_rest(i);
}

void ErisRouting::dismiss(const std::vector<Time>& link_ps) {
    for (std::size_t k = 0; k < at_barrier_.size(); ++k) {
        const std::uint32_t i = at_barrier_[k];
        worker_[i].state = State::working;
        worker_[i].step[transfer] += link_ps[i];
        clock.schedule(clock.now() + link_ps[i], linked, i);
    }
    at_barrier_.clear();
    called_ = 0;
}

// More transfers; none, once all are done, forgets them.
void ErisRouting::begin(const std::vector<ErisTransfer>& more) {
    if (more.empty()) transfers_.clear();
    for (const auto& one : more) {
        worker_[one.source].outgoing.push_back(static_cast<std::uint32_t>(transfers_.size()));
        transfers_.push_back(one);
        awake(one.source, 0);
    }
}

// Starts a piece of work on a transfer; false where there is none, or no time for it.
bool ErisRouting::work_at_transfers(std::uint32_t i) {
    Worker& w = worker_[i];
    if (!w.rebuilds.empty()) {
        const std::uint32_t k = w.rebuilds.front();
        const ErisTransfer& t = transfers_[k];
        const double units = std::min(t.chunk, t.volume - t.rebuilt);
        const std::size_t home_of_source = static_cast<std::size_t>(machine_.home[node(t.source)]);
        const double across = t.across_ps + memory_[home_of_source].last_wait_ps();
        const double held =
            units * (t.lines * across + t.written_lines * memory_latency(i)) / t.target_slots;
        w.rebuilds.erase(w.rebuilds.begin());
        w.idle = false;
        const double written = units * t.written_lines;
        clock.schedule(phase(i, transfer, {units * t.target_ps, held}, {2 * written, written}),
                       rebuilt, i, k);
        return true;
    }
    for (std::size_t at = 0; at < w.outgoing.size(); ++at) {
        const std::uint32_t k = w.outgoing[at];
        ErisTransfer& t = transfers_[k];
        if (t.under_way >= chunks_under_way) continue;
        const double units = std::min(t.chunk, t.volume - t.sent);
        t.sent += units;
        ++t.under_way;
        t.messages += 1;
        // Transfers of a worker take turns.
        w.outgoing.erase(w.outgoing.begin() + static_cast<std::ptrdiff_t>(at));
        if (t.sent < t.volume) w.outgoing.push_back(k);
        const double held = units * t.source_lines * memory_latency(i) / t.source_slots;
        w.idle = false;
        clock.schedule(phase(i, transfer, {units * t.source_ps, held}, {units * t.source_lines, 0}),
                       transferred, i, k);
        return true;
    }
    return false;
}

void ErisRouting::go_on_balancing(std::uint32_t i) {
    if (clock.now() < worker_[i].transfers_until && work_at_transfers(i)) return;
    flush_rest(i);
}

void ErisRouting::transfer_event(const Event& event) {
    const std::uint32_t i = event.subject;
    const auto k = static_cast<std::uint32_t>(event.data);
    ErisTransfer& t = transfers_[k];
    if (event.kind == transferred) {
        // What was flattened goes over the links; the last message may be a short one.
        const double units = t.sent < t.volume ? t.chunk : t.volume - t.chunk * (t.messages - 1);
        const Time done = links_.send_lines(clock.now(), node(t.source), node(t.target),
                                            units * t.lines, clock.now() + rounded_ps(t.across_ps));
        clock.schedule(done, arrived, t.target, k);
        return go_on_balancing(i);
    }
    if (event.kind == arrived) {
        worker_[i].rebuilds.push_back(k);
        return awake(i, 0);
    }
    const double units = std::min(t.chunk, t.volume - t.rebuilt);
    t.rebuilt += units;
    --t.under_way;
    progressed_ += units;
    note(rebuilt, i, t.source, static_cast<std::uint64_t>(units));
    if (t.sent < t.volume) awake(t.source, 0);
    if (grain_ > 0 && (progressed_ >= grain_ || t.rebuilt >= t.volume)) {
        progressed_ = 0;
        clock.halt();
    }
    go_on_balancing(i);
}

}  // namespace numatwin
