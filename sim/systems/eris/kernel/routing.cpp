#include "systems/eris/kernel/routing.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace numatwin {
using namespace descriptor;

ErisRouting::ErisRouting(ErisMachine machine, std::size_t operations, std::size_t keyed,
                         std::vector<Stream> streams, std::uint64_t seed, std::uint64_t replication)
    : ErisParts(operations, seed, replication),
      machine_(std::move(machine)),
      nodes_(machine_.home.size()),
      operations_(operations),
      keyed_(keyed),
      streams_(streams.begin(), streams.end()) {
    numatwin::check(machine_);
    if (operations_ == 0 || keyed_ > operations_)
        throw std::invalid_argument("keyed: expected at most as many as operations");
    const std::size_t count = workers();
    if (streams_.size() != 2 * count)
        throw std::invalid_argument("keys: expected two streams for each worker");
    add_cores(machine_.core);
    for (std::size_t k = 0; k < nodes_; ++k)
        memory_.emplace_back(machine_.memory_line_ps[k], machine_.memory_write_ps[k],
                             machine_.memory_idle_ps[k]);
    curve_ = {std::move(machine_.load), std::move(machine_.load_ratio)};
    links_ = {machine_.link_data_ps, machine_.link_request_ps, machine_.entering,
              machine_.predecessor, static_cast<std::size_t>(machine_.vertices)};
    paths_ = {std::move(machine_.line_data_ps), std::move(machine_.line_control_ps),
              std::move(machine_.line_bytes)};
    handed_.assign(machine_.handed_ps.begin(), machine_.handed_ps.end());
    // Kept above in another form.
    for (Positions* const of : std::initializer_list<Positions*>{
             &machine_.entering, &machine_.predecessor, &machine_.handed_ps})
        Positions().swap(*of);
    count_.assign(count * count);
    whole_ = machine_.buffer_commands;
    if (machine_.arrival_ps <= 0 &&
        machine_.batch >= batch_per_target_min * static_cast<std::int64_t>(count)) {
        parts_out_.resize(count * count);
        whole_ = std::min<std::int64_t>({whole_, machine_.batch, machine_.round_commands});
    } else {
        first_.assign(count * count, 0);
        if (keyed_ > 1) by_operation_.assign(count * count * keyed_, 0);
    }
    if (machine_.answers) answers_.assign(count * count);
    if (keyed_ < operations_) sent_references_.assign(count * count, 0);
    to_do_.assign(count * operations_, 0);
    running_scans_.assign(operations_, 0);
    scan_waiters_.resize(operations_);
    worker_.resize(count);
    node_.assign(machine_.node.begin(), machine_.node.end());
    for (std::uint32_t i = 0; i < count; ++i) {
        worker_[i].core = static_cast<std::uint32_t>(machine_.core[i]);
        worker_[i].incoming[0].word = active_bit;
        if (machine_.arrival_ps > 0)
            worker_[i].next_arrival = rounded_ps(streams_[i].exponential(machine_.arrival_ps));
    }
    prefetches_ = count >= prefetch_workers_min;
    if (prefetches_ && machine_.think_ps <= 0 && machine_.arrival_ps <= 0)
        drawn_.resize(count * draws_ahead);
    start_counting();
}

void ErisRouting::start() {
    if (version_ == 0 || demand_.empty())
        throw std::invalid_argument("start: expected demands and a table first");
    for (std::uint32_t i = 0; i < workers(); ++i) clock.schedule(clock.now(), round, i);
}

void ErisRouting::update(const ErisDemands& demands) {
    numatwin::check(demands, operations_, workers());
    demand_.resize(operations_ * workers());
    scan_lines_.assign(operations_, 0);
    for (std::size_t k = 0; k < demand_.size(); ++k) {
        demand_[k] = {demands.core_ps[k], demands.hit_ps[k],      demands.lines[k],
                      demands.slots[k],   demands.line_max_ps[k], demands.memory_lines[k],
                      demands.written[k], demands.scan_lines[k]};
        scan_lines_[k / workers()] += demands.scan_lines[k];
    }
}

void ErisRouting::route(ErisTable table, const std::vector<std::vector<ErisMove>>& moves) {
    numatwin::check(table, keyed_ * workers() + operations_ - keyed_);
    for (const auto& of_worker : moves)
        for (const auto& move : of_worker)
            if (move.operation >= keyed_ || move.target >= workers())
                throw std::invalid_argument("moves: expected operations by key and workers");
    draw_anew();
    sum_ = std::move(table.sum);
    guide_.assign(table.guide.begin(), table.guide.end());
    guide_slots_ = static_cast<double>(guide_.size());
    ++version_;
    for (std::size_t i = 0; i < moves.size(); ++i)
        for (auto move : moves[i]) {
            move.version = version_;
            worker_[i].moves.push_back(move);
        }
}

const char* ErisRouting::event_name(std::uint32_t kind) {
    static constexpr const char* names[] = {
        "round",    "swapped", "received",    "executed", "issued",  "attempted", "copied",
        "released", "alarm",   "transferred", "arrived",  "rebuilt", "linked",    "going on"};
    return kind < std::size(names) ? names[kind] : "unknown";
}

void ErisRouting::handle(const Event& event) {
    const std::uint32_t i = event.subject;
    switch (static_cast<Kind>(event.kind)) {
        case round:
            return begin_round(i);
        case swapped:
            return collect(i);
        case received:
            return receive_all(i);
        case executed:
            return done_executing(i);
        case issued:
            return made(i);
        case attempted:
            return attempt(i);
        case copied:
            return arrive(i);
        case released:
            return release(i);
        case alarm:
            return awake(i, 0);
        case transferred:
        case arrived:
        case rebuilt:
            return transfer_event(event);
        case linked:
            return go_on_balancing(i);
        case going_on:
            return work(i);
    }
    throw std::logic_error("unknown kind of event");
}

void ErisRouting::begin_round(std::uint32_t i) {
    Worker& w = worker_[i];
    if (w.stops) return stop(i, round);
    w.round_start = clock.now();
    w.idle = true;
    w.full_targets.clear();
    w.next_flush = 0;
    ++counts.rounds;
    Incoming& old = w.incoming[w.active];
    note(round, i, 0, offset(old.word));
    if (offset(old.word) == 0) {
        const double looped = machine_.round_ps[node(i)];
        if (looped == 0) return begin_work(i);
        return clock.schedule(phase(i, receive, {looped}), received, i);
    }
    w.idle = false;
    w.taken = w.active;
    w.received = false;
    old.word &= ~active_bit;
    w.active ^= 1;
    w.incoming[w.active].word = active_bit;
    w.waits[w.active] = 0;
    for (const auto waiting : w.waiters) awake(waiting, handed(waiting, i));
    w.waiters.clear();
    clock.schedule(clock.now() + paced(i, rounded_ps(machine_.swap_ps[node(i)])), swapped, i);
}

void ErisRouting::collect(std::uint32_t i) {
    Worker& w = worker_[i];
    if (writers(w.incoming[w.taken].word) > 0) {
        w.state = State::waiting_for_writers;
        return;
    }
    w.state = State::working;
    take(i);
}

void ErisRouting::take(std::uint32_t i) {
    Worker& w = worker_[i];
    double held = 0;
    std::uint64_t all = 0, parts = 0;
    // First the core waits for what tells it of the others' flushes.
    Time waits = w.waits[w.taken];
    const ErisBatches& batches = w.incoming[w.taken].batches;
    std::size_t b = 0;
    for (auto* at = batches.begin(); at != batches.end(); at = batches.after(at), ++b) {
        all += at->count + at->answers + at->references;
        const std::uint32_t here = parts_in(i, *at, b);
        parts += here;
        waits += here * lines_awaited(machine_.part_waits, i, at->source);
        held += handed_lines_ps(i, at->source, lines_of(at->count + at->references, at->answers),
                                machine_.read_slots);
    }
    const std::uint64_t forwarded = version_ > 1 ? forward(i) : 0;
    const double core = machine_.round_ps[node(i)] +
                        static_cast<double>(all) * machine_.receive_ps[node(i)] +
                        static_cast<double>(parts) * machine_.part_ps[node(i)] +
                        static_cast<double>(forwarded) * machine_.issue_ps[node(i)];
    waits = paced(i, waits);
    w.step[receive] += waits;
    clock.schedule(handing(i, receive, core, held) + waits, received, i);
}

std::uint32_t ErisRouting::parts_in(std::size_t i, const ErisBatch& batch, std::size_t b) const {
    const Worker& w = worker_[i];
    if (machine_.part_ps[node(i)] == 0 && machine_.part_waits == 0) return 0;
    const auto is_part = [&](std::uint32_t count) { return count > 0 && count < whole_; };
    if (keyed_ < 2) return is_part(batch.count);
    const auto& by_operation = w.mixed[w.taken].by_operation;
    std::uint32_t parts = 0;
    for (std::size_t o = 0; o < keyed_; ++o) parts += is_part(by_operation[b * keyed_ + o]);
    return parts;
}

// Commands whose keys have another owner since they were routed go on to it. They are drawn one by
// one: which keys they ask for was left open when they were made.
std::uint64_t ErisRouting::forward(std::uint32_t i) {
    const Worker& w = worker_[i];
    const ErisBatches& batches = w.incoming[w.taken].batches;
    auto& by_operation = worker_[i].mixed[w.taken].by_operation;
    std::uint64_t all = 0;
    std::size_t b = 0;
    for (auto* at = batches.begin(); at != batches.end(); at = batches.after(at), ++b) {
        ErisBatch& batch = *at;
        if (batch.version == version_) continue;
        std::uint32_t forwarded = 0;
        for (std::uint32_t o = 0; o < keyed_; ++o) {
            std::uint32_t& left = keyed_ > 1 ? by_operation[b * keyed_ + o] : batch.count;
            const std::uint32_t moved = forward(i, batch, o, left);
            if (keyed_ > 1) left -= moved;
            forwarded += moved;
        }
        batch.count -= forwarded;
        all += forwarded;
    }
    counts.forwarded += all;
    return all;
}

std::uint32_t ErisRouting::forward(std::uint32_t i, const ErisBatch& batch, std::uint32_t operation,
                                   std::uint32_t count) {
    std::uint32_t forwarded = 0;
    for (const ErisMove& move : worker_[i].moves) {
        if (move.version <= batch.version || move.operation != operation) continue;
        std::uint32_t moved = 0;
        for (std::uint32_t k = forwarded; k < count; ++k)
            moved += streams_[workers() + i].uniform() < move.part;
        if (!moved) continue;
        append(i, move.target, operation, moved, batch.first);
        forwarded += moved;
    }
    return forwarded;
}

void ErisRouting::receive_all(std::uint32_t i) {
    Worker& w = worker_[i];
    if (w.taken == nothing_taken) return begin_work(i);
    const ErisBatches& batches = w.incoming[w.taken].batches;
    const MixedContent& mixed = w.mixed[w.taken];
    std::size_t b = 0;
    for (auto* at = batches.begin(); at != batches.end(); at = batches.after(at), ++b) {
        if (keyed_ > 1)
            for (std::size_t o = 0; o < keyed_; ++o)
                to_do(i, o) += mixed.by_operation[b * keyed_ + o];
        else if (keyed_ == 1)
            to_do(i, 0) += at->count;
        if (at->answers) answer(i, at->answers);
    }
    for (const auto id : mixed.scans) ++to_do(i, scans_[id].operation);
    w.received = true;
    w.operation = 0;
    w.batch = batches.begin();
    w.batch_number = 0;
    w.of_batch = 0;
    w.scan_left = 0;
    begin_work(i);
}

// What the worker may make in this round.
void ErisRouting::begin_work(std::uint32_t i) {
    Worker& w = worker_[i];
    w.stuck = false;
    w.to_make = static_cast<std::uint64_t>(machine_.round_commands);
    if (w.first_round) {  // workers that begin together do not stay in step
        w.first_round = false;
        w.to_make =
            static_cast<std::uint64_t>(static_cast<double>(w.to_make) * streams_[i].uniform()) + 1;
    }
    if (machine_.think_ps > 0) {
        const bool ready = w.outstanding == 0 && clock.now() >= w.think_until;
        w.to_make = ready ? static_cast<std::uint64_t>(machine_.batch) : 0;
    }
    // What was routed by an older table goes first.
    if (w.in_row == 0) w.version = version_;
    w.stuck = w.version != version_;
    w.makes = false;
    work(i);
}

// A batch is executed, a batch is made, in turn, until there is neither.
void ErisRouting::work(std::uint32_t i) {
    Worker& w = worker_[i];
    if (w.stops) return stop(i, going_on);
    w.makes = !w.makes;
    const bool may_make = w.to_make > 0 && !w.stuck;
    if (w.taken != nothing_taken && (!w.makes || !may_make)) return execute(i);
    if (may_make) return begin_batch(i);
    balance(i);
}

void ErisRouting::execute(std::uint32_t i) {
    Worker& w = worker_[i];
    ErisBatches& batches = w.incoming[w.taken].batches;
    while (w.operation < operations_ && to_do(i, w.operation) == 0) {
        ++w.operation;
        w.batch = batches.begin();
        w.batch_number = 0;
        w.of_batch = 0;
    }
    if (w.operation == operations_) {
        batches.clear(blocks_);
        w.mixed[w.taken].by_operation.clear();
        w.mixed[w.taken].scans.clear();
        w.taken = nothing_taken;
        w.makes = false;
        return work(i);
    }
    const Demand& each = demand(i, w.operation);
    double units, shared = 1, separate = 0, stall = 0;
    if (w.operation < keyed_) {
        separate = machine_.batch_ps[node(i)];
        w.executing = static_cast<std::uint32_t>(std::min<std::uint64_t>(
            to_do(i, w.operation), static_cast<std::uint64_t>(machine_.batch)));
        units = w.executing;
    } else {  // one pass over the lines, for all scans that wait
        if (w.scan_left == 0) w.scan_left = each.scan_lines;
        shared = static_cast<double>(to_do(i, w.operation));
        units = w.scan_now = std::min(w.scan_left, static_cast<double>(machine_.scan_chunk_lines));
        if (each.lines > 0) stall = machine_.stream_stall[node(i)];
    }
    // Of what a core can have under way, a batch of few commands leaves some unused.
    const double slots = std::min(each.slots, units * threads(i));
    double waits = 0;
    if (each.lines > 0) {
        double line = memory_latency(i) / slots;
        if (each.line_max_ps > 0) line = std::min(line, each.line_max_ps);
        waits = each.lines * line;
    }
    const Time done =
        phase(i, w.operation < keyed_ ? walk : scan,
              {units * shared * each.core_ps, units * (each.hit_ps + waits), separate, stall},
              {units * each.memory_lines, units * each.written});
    clock.schedule(done, executed, i);
}

void ErisRouting::done_executing(std::uint32_t i) {
    Worker& w = worker_[i];
    if (w.operation < keyed_) {
        to_do(i, w.operation) -= w.executing;
        counts.executed[w.operation * workers() + i] += w.executing;
        counts.done[w.operation] += w.executing;
        executed_ += w.executing;
        note(executed, i, static_cast<std::uint32_t>(w.operation), w.executing);
        complete(i, w.executing);
    } else {
        w.scan_left -= w.scan_now;
        counts.progress[w.operation] +=
            static_cast<double>(to_do(i, w.operation)) * w.scan_now / scan_lines_[w.operation];
        if (w.scan_left <= 0) finish_scans(i);
    }
    work(i);
}

// The next `count` commands of the operation at hand are done, in the order of their batches.
void ErisRouting::complete(std::uint32_t i, std::uint32_t count) {
    Worker& w = worker_[i];
    const Time now = clock.now();
    const ErisBatches& batches = w.incoming[w.taken].batches;
    while (count > 0) {
        const ErisBatch& batch = *w.batch;
        const std::uint32_t all =
            keyed_ > 1 ? w.mixed[w.taken].by_operation[w.batch_number * keyed_ + w.operation]
                       : batch.count;
        const std::uint32_t part = std::min(count, all - w.of_batch);
        if (part > 0) {
            spread(latency[w.operation], now - batch.last, now - batch.first, part);
            if (machine_.answers) {
                answers_.add(pair(i, batch.source), part);
                w.in_row += part;
            } else {
                answer(batch.source, part);
            }
        }
        count -= part;
        w.of_batch += part;
        if (w.of_batch == all) {
            w.batch = batches.after(w.batch);
            ++w.batch_number;
            w.of_batch = 0;
        }
    }
}

// Commands that were handed over one after the other: their latencies lie evenly in a range, here
// at eight points.
void ErisRouting::spread(Histogram& into, Time least, Time most, std::uint32_t count) const {
    constexpr Time points = 8;
    if (least == most) return into.add(least, count);
    std::uint32_t left = count;
    for (Time k = 0; k < points && left > 0; ++k) {
        const auto part = static_cast<std::uint32_t>(left / static_cast<std::uint32_t>(points - k));
        into.add(least + (most - least) * (2 * k + 1) / (2 * points), part);
        left -= part;
    }
}

// The client of a worker has `count` answers more.
void ErisRouting::answer(std::uint32_t source, std::uint32_t count) {
    if (machine_.think_ps <= 0) return;
    Worker& w = worker_[source];
    w.outstanding -= std::min<std::uint64_t>(w.outstanding, count);
    if (w.outstanding > 0) return;
    w.think_until = clock.now() + rounded_ps(streams_[source].exponential(machine_.think_ps));
    clock.schedule(w.think_until, alarm, source);
}

void ErisRouting::finish_scans(std::uint32_t i) {
    Worker& w = worker_[i];
    const auto operation = static_cast<std::uint32_t>(w.operation);
    counts.executed[operation * workers() + i] += to_do(i, operation);
    to_do(i, operation) = 0;
    for (const auto id : w.mixed[w.taken].scans) {
        Scan& one = scans_[id];
        if (one.operation != operation || --one.left > 0) continue;
        ++counts.done[operation];
        latency[operation].add(clock.now() - one.since, 1);
        free_scans_.push_back(id);
        --running_scans_[operation];
        if (auto& waiting = scan_waiters_[operation]; !waiting.empty()) {
            const std::uint32_t next = waiting.front();
            waiting.erase(waiting.begin());
            awake(next, handed(next, i));
        }
    }
}

void ErisRouting::end_round(std::uint32_t i) {
    Worker& w = worker_[i];
    const Incoming& incoming = w.incoming[w.active];
    bool again = !w.idle || offset(incoming.word) > 0 || w.called || !w.rebuilds.empty();
    for (const auto k : w.outgoing) again = again || transfers_[k].under_way < chunks_under_way;
    // More waits for a worker than one flush may hold.
    again = again || (w.in_row > 0 && w.full_targets.empty());
    for (const auto to : w.full_targets) again = again || has_room(to, portion(i, to).all());
    if (w.pending != none && !again) {  // a scan's turn may have come meanwhile
        const auto by_key = static_cast<std::uint32_t>(keyed_ * workers());
        again =
            w.pending >= by_key && running_scans_[keyed_ + w.pending - by_key] < machine_.scans_max;
    }
    if (machine_.think_ps > 0 && w.outstanding == 0 && clock.now() >= w.think_until) again = true;
    if (machine_.arrival_ps > 0 && w.next_arrival <= clock.now() && w.pending == none) again = true;
    if (again) return clock.schedule(clock.now(), round, i);
    sleep(i);
}

void ErisRouting::sleep(std::uint32_t i) {
    Worker& w = worker_[i];
    w.state = State::asleep;
    w.asleep_since = clock.now();
    for (const auto to : w.full_targets) {
        auto& waiters = worker_[to].waiters;
        if (std::find(waiters.begin(), waiters.end(), i) == waiters.end()) waiters.push_back(i);
    }
    const auto by_key = static_cast<std::uint32_t>(keyed_ * workers());
    if (w.pending != none && w.pending >= by_key) {
        auto& waiting = scan_waiters_[keyed_ + w.pending - by_key];
        if (std::find(waiting.begin(), waiting.end(), i) == waiting.end()) waiting.push_back(i);
    }
    if (machine_.arrival_ps > 0 && w.next_arrival > clock.now())
        clock.schedule(w.next_arrival, alarm, i);
}

void ErisRouting::awake(std::uint32_t i, Time delay) {
    if (worker_[i].state == State::asleep) go_on(i, round, delay);
}

void ErisRouting::go_on(std::uint32_t i, std::uint32_t with, Time delay) {
    Worker& w = worker_[i];
    w.state = State::working;
    w.asleep += clock.now() - w.asleep_since;
    clock.schedule(clock.now() + delay, with, i);
}

void ErisRouting::pace(const std::vector<std::uint32_t>& who, double factor) {
    pace_.resize(workers(), 1.0);
    for (const auto i : who) {
        Worker& w = worker_.at(i);
        w.stops = std::isinf(factor);
        if (w.stops) continue;
        pace_[i] = factor;
        if (w.state == State::stopped) go_on(i, w.goes_on_with, 0);
    }
}

// Whoever comes for it meanwhile does not wake it.
void ErisRouting::stop(std::uint32_t i, Kind before) {
    Worker& w = worker_[i];
    w.state = State::stopped;
    w.goes_on_with = static_cast<std::uint8_t>(before);
    w.asleep_since = clock.now();
}

template bool Simulation::run(ErisRouting&, Time, Interrupt*);

}  // namespace numatwin
