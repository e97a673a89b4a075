#include "systems/eris/kernel/shared.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace numatwin {

ErisShared::ErisShared(SharedSetup setup, std::vector<Stream> streams, std::uint64_t seed,
                       std::uint64_t replication)
    : ErisParts(setup.shares.size(), seed, replication), streams_(std::move(streams)) {
    numatwin::check(setup);
    if (streams_.size() != setup.node.size())
        throw std::invalid_argument("keys: expected a stream for each worker");
    add_cores(setup.core);
    for (const double idle_ps : setup.memory_idle_ps) memory_.emplace_back(0, 0, idle_ps);
    links_ = Interconnect(setup.link_line_ps.size());
    limit_.resize(memory_.size());
    link_before_.assign(links_.links(), 0);
    memory_wait_.assign(memory_.size(), 0);
    link_wait_.assign(links_.links(), 0);
    worker_.resize(setup.node.size());
    update(std::move(setup));
    for (std::size_t i = 0; i < workers(); ++i)
        if (setup_.arrival_ps > 0)
            worker_[i].next_arrival = rounded_ps(streams_[i].exponential(setup_.arrival_ps));
    start_counting();
}

void ErisShared::update(SharedSetup setup) {
    if (!worker_.empty() &&
        (setup.node.size() != worker_.size() || setup.memory_idle_ps.size() != memory_.size() ||
         setup.link_line_ps.size() != links_.links() || setup.shares.size() != latency.size()))
        throw std::invalid_argument("node: expected the same workers, nodes, links and operations");
    numatwin::check(setup);
    setup_ = std::move(setup);
    curve_ = {std::move(setup_.load), std::move(setup_.load_ratio)};
    paths_ = {std::move(setup_.link_data_ps), std::move(setup_.link_control_ps),
              std::move(setup_.link_bytes)};
    held_of_.assign(setup_.steps.size(), {});
    for (std::size_t s = 0; s < setup_.steps.size(); ++s) {
        held_of_[s].resize(memory_.size());
        for (std::size_t n = 0; n < memory_.size(); ++n)
            held_of_[s][n] = held_ps(setup_.steps[s], n);
    }
    step.resize(setup_.steps.size());
    for (auto& of_step : step) of_step.resize(workers(), 0);
}

void ErisShared::start() {
    chunks_left_ = setup_.chunks;
    if (setup_.chunks > 0) scan_operation_ = operation(0);
    for (std::uint32_t i = 0; i < workers(); ++i) clock.schedule(clock.now(), begin, i);
}

void ErisShared::pace(const std::vector<std::uint32_t>& who, double factor) {
    for (const auto i : who) {
        Worker& w = worker_.at(i);
        w.stops = std::isinf(factor);
        if (w.stops) continue;
        w.pace = factor;
        if (w.asleep && w.stopped) wake(i);
    }
}

void ErisShared::start_counting() {
    ErisParts::start_counting();
    done.assign(setup_.shares.size(), 0);
    for (auto& of_step : step) std::fill(of_step.begin(), of_step.end(), 0);
    asleep_.assign(workers(), 0);
    std::fill(link_before_.begin(), link_before_.end(), 0);
    for (auto& controller : memory_) controller.forget_load();
    for (std::size_t i = 0; i < workers(); ++i) {
        Worker& w = worker_[i];
        w.time.start_counting(since_);
        core_[core_of(i)].withdraw(-w.time.held_left(since_));
        if (w.asleep) w.asleep_since = since_;
    }
}

const char* ErisShared::event_name(std::uint32_t kind) {
    static constexpr const char* names[] = {"begin", "step done", "alarm"};
    return kind < std::size(names) ? names[kind] : "unknown";
}

void ErisShared::handle(const Event& event) {
    switch (static_cast<Kind>(event.kind)) {
        case begin:
            return begin_batch(event.subject);
        case step_done:
            ++worker_[event.subject].step;
            return next_step(event.subject);
        case alarm:
            return wake(event.subject);
    }
    throw std::logic_error("unknown kind of event");
}

void ErisShared::begin_batch(std::uint32_t i) {
    Worker& w = worker_[i];
    w.stopped = w.stops;
    if (w.stops) return sleep(i);
    const Time now = clock.now();
    w.step = 0;
    w.begun = w.arrived = now;
    w.units = static_cast<std::uint32_t>(setup_.batch);
    if (setup_.chunks > 0) {
        if (chunks_left_ == 0) return sleep(i);
        --chunks_left_;
        ++chunks_under_way_;
    }
    if (setup_.arrival_ps > 0) {
        if (w.next_arrival > now) {
            sleep(i);
            return clock.schedule(w.next_arrival, alarm, i);
        }
        w.arrived = w.next_arrival;
        std::uint32_t waiting = 0;
        while (waiting < w.units && w.next_arrival <= now) {
            ++waiting;
            w.next_arrival += rounded_ps(streams_[i].exponential(setup_.arrival_ps));
        }
        w.units = waiting;
    }
    next_step(i);
}

void ErisShared::next_step(std::uint32_t i) {
    Worker& w = worker_[i];
    if (w.step == setup_.steps.size()) return end_batch(i);
    look_at_loads();
    const Time now = clock.now();
    const auto node = static_cast<std::size_t>(setup_.node[i]);
    Core& core = core_[static_cast<std::size_t>(setup_.core[i])];
    const double units =
        setup_.chunks > 0 ? 1.0 / static_cast<double>(setup_.chunks) : static_cast<double>(w.units);
    const SharedStep& of = setup_.steps[w.step];
    const CoreWork work =
        CoreWork{units * of.core_ps[node], units * held_of_[w.step][node], 0.0, of.stall[node]}
            .times(w.pace);
    auto [alone, end] = core.begin(now, work);
    w.time.begin(now, alone, work.held);
    if (w.step + 1 == setup_.steps.size()) {  // the last step is where data are read
        Time served = end;
        setup_.memory_ps.each(node, [&](std::size_t at, double work, std::size_t) {
            served = std::max(served, memory_[at].serve_work(now, rounded_ps(units * work)));
        });
        setup_.memory_lines.each(node, [&](std::size_t at, double lines, std::size_t) {
            memory_[at].count_lines(units * lines);
        });
        end = links_.use_memory(now, paths_, node, units, served);
        if (setup_.limit_ps[node] > 0)
            end = std::max(end, limit_[node].serve(now, rounded_ps(units * setup_.limit_ps[node])));
        if (setup_.line_ps[node] > 0)
            end = std::max(end, line_.serve(now, rounded_ps(units * setup_.line_ps[node])));
    }
    step[w.step][i] += end - now;
    w.time.end(end);
    clock.schedule(end, step_done, i);
}

std::size_t ErisShared::operation(std::uint32_t i) {
    double u = setup_.shares.size() > 1 ? streams_[i].uniform() : 0;
    std::size_t o = 0;
    while (o + 1 < setup_.shares.size() && u >= setup_.shares[o]) u -= setup_.shares[o++];
    return o;
}

void ErisShared::end_batch(std::uint32_t i) {
    Worker& w = worker_[i];
    const Time now = clock.now();
    if (setup_.chunks > 0) {
        --chunks_under_way_;
        done[scan_operation_] += 1.0 / static_cast<double>(setup_.chunks);
        if (chunks_left_ > 0) return clock.schedule(now, begin, i);
        sleep(i);
        if (chunks_under_way_ > 0) return;
        latency[scan_operation_].add(now - scan_began_);
        scan_operation_ = operation(i);
        scan_began_ = now;
        chunks_left_ = setup_.chunks;
        for (std::uint32_t k = 0; k < workers(); ++k)
            if (worker_[k].asleep) wake(k);
        return;
    }
    for (std::uint32_t k = 0; k < w.units; ++k) {
        const std::size_t o = operation(i);
        done[o] += 1;
        latency[o].add(now - w.arrived);
    }
    if (setup_.think_ps > 0) {
        sleep(i);
        return clock.schedule(now + rounded_ps(streams_[i].exponential(setup_.think_ps)), alarm, i);
    }
    clock.schedule(now, begin, i);
}

void ErisShared::sleep(std::uint32_t i) {
    worker_[i].asleep = true;
    worker_[i].asleep_since = clock.now();
}

void ErisShared::wake(std::uint32_t i) {
    Worker& w = worker_[i];
    w.asleep = false;
    asleep_[i] += clock.now() - w.asleep_since;
    clock.schedule(clock.now(), begin, i);
}

Time ErisShared::busy(std::size_t worker) const {
    const Worker& w = worker_[worker];
    return clock.now() - since_ - asleep_[worker] - (w.asleep ? clock.now() - w.asleep_since : 0) -
           w.time.held_up(clock.now());
}

// Waits at the loads of the last window, and what they make of each step.
void ErisShared::look_at_loads() {
    const Time elapsed = clock.now() - looked_;
    if (elapsed < LoadWindow::window) return;
    looked_ = clock.now();
    for (std::size_t k = 0; k < memory_.size(); ++k)
        memory_wait_[k] = memory_[k].wait_ps(looked_, curve_);
    for (std::size_t k = 0; k < links_.links(); ++k) {
        const Time arrived = links_.arrived(k);
        const double load =
            static_cast<double>(arrived - link_before_[k]) / static_cast<double>(elapsed);
        link_before_[k] = arrived;
        link_wait_[k] = line_wait_ps(setup_.link_line_ps[k], std::min(load, setup_.link_load_max));
    }
    for (std::size_t s = 0; s < held_of_.size(); ++s)
        for (std::size_t n = 0; n < memory_.size(); ++n)
            held_of_[s][n] = held_ps(setup_.steps[s], n);
}

double ErisShared::held_ps(const SharedStep& of, std::size_t node) const {
    double sum = of.held_ps[node];
    of.memory.each(
        node, [&](std::size_t at, double part, std::size_t) { sum += part * memory_wait_[at]; });
    of.links.each(node,
                  [&](std::size_t at, double part, std::size_t) { sum += part * link_wait_[at]; });
    of.streamed.each(node, [&](std::size_t at, double lines, std::size_t entry) {
        double each = of.idle_ps[entry] + memory_wait_[at];
        of.ways.each(entry, [&](std::size_t link, double times, std::size_t) {
            each += times * link_wait_[link];
        });
        each /= of.slots[node];
        if (of.line_max_ps[entry] > 0) each = std::min(each, of.line_max_ps[entry]);
        sum += lines * each;
    });
    return sum;
}

template bool Simulation::run(ErisShared&, Time, Interrupt*);

}  // namespace numatwin
