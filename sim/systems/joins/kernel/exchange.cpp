#include "exchange.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace numatwin {

namespace {

constexpr std::uint32_t queue_node = 0;  // has the central queue

void require(bool holds, const char* expected) {
    if (!holds) throw std::invalid_argument(expected);
}

}  // namespace

Exchange::Exchange(ExchangeSetup setup, std::uint64_t seed, std::uint64_t replication)
    : clock(seed, replication), setup_(std::move(setup)), service_(setup_.machine) {
    const std::size_t n = setup_.machine.read_ps.size();
    require(setup_.slow.size() == n && setup_.slots.size() == n && setup_.copy_ps.size() == n,
            "slow, slots, copy_ps: expected [n]");
    require(setup_.send_buffers > 0 && setup_.signal_every > 0 && setup_.taken_at_once > 0,
            "send_buffers, signal_every, taken_at_once: expected at least 1");
    require(setup_.fetch.size() == 4, "fetch: expected four messages");
    nodes_.resize(n);
    adapters_.resize(n);
    for (auto* counts : {&messages, &rows_sent, &pieces_done, &cpu_ps_, &waited_ps})
        counts->assign(n, 0);
    for (const std::int64_t core : setup_.worker_core) {
        const auto node =
            static_cast<Index>(setup_.machine.core_node.at(static_cast<std::size_t>(core)));
        nodes_[node].workers.push_back(static_cast<Index>(workers_.size()));
        Worker& worker = workers_.emplace_back();
        worker.node = node, worker.core = static_cast<Index>(core), worker.idle = true;
        worker.sent.assign(n, 0);
        worker.unknown.resize(n);
    }
    for (const Node& node : nodes_) require(!node.workers.empty(), "worker_core: a node has none");
    for (Index node = 0; node < n; ++node) {
        const MemoryUse use{node, 0.0, 1.0, 1.0};
        const double ps = setup_.copy_ps[node] * static_cast<double>(setup_.slow[node]);
        copying_.push_back(service_.demand({ps, 0.0, {&use, 1}}));
    }
    choose(static_cast<std::size_t>(setup_.chosen));
    clock.schedule(setup_.think_ps, ask_query);
}

const char* Exchange::event_name(std::uint32_t kind) {
    static constexpr const char* names[] = {"ask query", "due",     "ended",   "posted",
                                            "left",      "reached", "arrived", "completed",
                                            "received",  "begun",   "answered"};
    return kind < std::size(names) ? names[kind] : "unknown";
}

void Exchange::handle(const Event& event) {
    const Index subject = event.subject;
    switch (static_cast<Kind>(event.kind)) {
        case ask_query:
            trace.add(clock.now(), ask_query, 0, 0);
            return begin_query();
        case due:
            return look_for_ends();
        case posted:
            trace.add(clock.now(), posted, subject, 0);
            return hand_over(subject);
        case left:
            waited_ps[workers_[subject].node] += clock.now() - workers_[subject].waits_since;
            return sent_all(subject);
        case reached: {
            Message& m = messages_[subject];
            trace.add(clock.now(), reached, m.to, m.worker);
            return clock.schedule(adapters_[m.to].receive(clock.now(), cost(m).in_ps, m.last_bits),
                                  arrived, subject);
        }
        case arrived:
            trace.add(clock.now(), arrived, messages_[subject].to, messages_[subject].worker);
            return message_arrived(subject);
        case completed:
            return complete(subject);
        case received: {
            Worker& worker = workers_[subject];
            trace.add(clock.now(), received, subject, static_cast<std::uint64_t>(worker.taking));
            return start(subject, copying_[worker.node], worker.taking_lines);
        }
        case begun:
            return begin_piece(subject, workers_[subject].piece);
        case ended:
        case answered:
            throw std::logic_error("no event of its own");
    }
}

void Exchange::begin_query() {
    const ExchangeOperator* const before = chosen_;
    chosen_ = &setup_.operators[next_];
    if (chosen_ != before) prepare();
    asked_at_ = clock.now();
    operator_used.push_back(static_cast<std::int64_t>(next_));
    std::ranges::fill(arrived_rows_, 0);
    std::ranges::fill(entered_, 0);
    nodes_done_ = 0;
    for (Node& node : nodes_) node.step = 0, node.here = 0;
    for (Worker& worker : workers_) worker.flushed = none;
    for (Index node = 0; node < nodes_.size(); ++node) enter(node);
}

// What follows from the operator alone.
void Exchange::prepare() {
    const std::size_t n = nodes_.size(), steps = chosen_->steps.size();
    std::size_t partitions = 0;
    pieces_of_.assign(steps, {});
    rank_.assign(steps, {});
    demand_.assign(steps, {});
    expected_.assign(steps, std::vector<std::int64_t>(n, 0));
    entered_.assign(steps, 0);
    std::vector<std::int64_t> sent(n, 0);
    for (std::size_t s = 0; s < steps; ++s) {
        const ExchangeStep& exchange_step = chosen_->steps[s];
        require(exchange_step.piece_lines.size() == exchange_step.piece_home.size() &&
                    exchange_step.instructions_ps.size() == n,
                "a step: shapes differ");
        expected_[s] = sent;
        pieces_of_[s].resize(n);
        for (std::size_t k = 0; k < exchange_step.piece_home.size(); ++k) {
            auto& at_home = pieces_of_[s].at(static_cast<std::size_t>(exchange_step.piece_home[k]));
            rank_[s].push_back(static_cast<std::int64_t>(at_home.size()));
            at_home.push_back(static_cast<std::int64_t>(k));
        }
        for (std::size_t home = 0; home < exchange_step.rows.size(); ++home) {
            partitions = std::max(partitions, exchange_step.rows[home].size());
            for (std::size_t p = 0; p < exchange_step.rows[home].size(); ++p)
                sent[owner(static_cast<std::int64_t>(p))] += exchange_step.rows[home][p];
        }
        for (Index node = 0; node < n; ++node) {
            const MemoryUse use{node, exchange_step.read, exchange_step.written,
                                setup_.slots[node]};
            const double ps =
                exchange_step.instructions_ps[node] * static_cast<double>(setup_.slow[node]);
            demand_[s].push_back(service_.demand({ps, 0.0, {&use, 1}}));
        }
    }
    arrived_rows_.assign(partitions, 0);
    for (Worker& worker : workers_) {
        worker.fill.assign(partitions, 0);
        worker.used.resize(std::max(worker.used.size(), partitions), 0);
    }
}

// The node has come to a step: it begins, unless rows are missing, or other nodes.
void Exchange::enter(Index node_index) {
    Node& node = nodes_[node_index];
    node.open = node.waits = false;
    if (node.step == chosen_->steps.size()) {
        if (++nodes_done_ == nodes_.size()) end_query();
        return;
    }
    if (step(node_index).gated && node.here < expected_[node.step][node_index]) {
        node.waits = true;
        return;
    }
    if (!step(node_index).central) return open(node_index);
    if (++entered_[node.step] < nodes_.size()) return;
    central_ = centrals_++;
    central_cursor_ = 0;
    central_left_ = step(node_index).piece_home.size();
    for (Worker& worker : workers_) worker.fetch = Fetch::nothing;
    for (Index each = 0; each < nodes_.size(); ++each) open(each);
}

void Exchange::open(Index node_index) {
    Node& node = nodes_[node_index];
    node.open = true;
    node.cursor = 0;
    node.pieces_left = step(node_index).central ? 0 : pieces_of_[node.step][node_index].size();
    node.unflushed = sends(step(node_index)) ? node.workers.size() : 0;
    if (!step(node_index).central && node.pieces_left == 0 && node.unflushed == 0)
        return advance(node_index);
    wake(node_index);
}

// The node goes on where its step is done.
void Exchange::advance(Index node_index) {
    Node& node = nodes_[node_index];
    if (!node.open || node.pieces_left > 0 || node.unflushed > 0) return;
    if (step(node_index).central && central_left_ > 0) return;
    node.open = false;
    trace.add(clock.now(), ended, node_index, node.step);
    ++node.step;
    enter(node_index);
}

void Exchange::close_central() {
    central_ = none;
    for (Index node = 0; node < nodes_.size(); ++node) {
        wake(node);  // to send what is in their buffers
        advance(node);
    }
}

void Exchange::rows_here(Index node_index, std::int64_t rows) {
    Node& node = nodes_[node_index];
    node.here += rows;
    if (node.waits && node.here == expected_[node.step][node_index]) enter(node_index);
}

void Exchange::end_query() {
    trace.add(clock.now(), answered, 0, static_cast<std::uint64_t>(clock.now() - asked_at_));
    check_query();
    latencies_ps.push_back(clock.now() - asked_at_);
    clock.schedule(clock.now() + setup_.think_ps, ask_query);
}

// Every row that was sent has arrived once, in its partition, and is in one piece of the last step.
void Exchange::check_query() {
    std::vector<std::int64_t> sent(arrived_rows_.size(), 0);
    std::int64_t input = 0, checked = 0;
    for (const ExchangeStep& exchange_step : chosen_->steps) {
        for (const auto& of_home : exchange_step.rows)
            for (std::size_t p = 0; p < of_home.size(); ++p) {
                sent[p] += of_home[p];
                if (exchange_step.input) input += of_home[p];
            }
        if (exchange_step.checked)
            for (const std::int64_t rows : exchange_step.piece_rows) checked += rows;
    }
    if (sent != arrived_rows_) throw std::logic_error("rows were lost or doubled on their way");
    if (input != checked) throw std::logic_error("rows were joined more or less than once");
    for (const Worker& worker : workers_)
        if (!std::ranges::all_of(worker.fill, [](std::int64_t rows) { return rows == 0; }))
            throw std::logic_error("rows were left in a buffer");
}

void Exchange::wake(Index node_index) {
    for (const Index worker : nodes_[node_index].workers)
        if (workers_[worker].idle) {
            workers_[worker].idle = false;
            next(worker);
        }
}

void Exchange::wake_one(Index node_index) {
    for (const Index worker : nodes_[node_index].workers)
        if (workers_[worker].idle) {
            workers_[worker].idle = false;
            return next(worker);
        }
}

// What a worker does next that is free: receives, takes a piece, sends its open buffers, or waits.
void Exchange::next(Index worker_index) {
    Worker& worker = workers_[worker_index];
    Node& node = nodes_[worker.node];
    if (take_inbox(worker_index)) return;
    if (node.open) {
        const ExchangeStep& exchange_step = step(worker.node);
        if (!exchange_step.central) {
            const auto& pieces = pieces_of_[node.step][worker.node];
            if (node.cursor < pieces.size())
                return begin_piece(worker_index, pieces[node.cursor++]);
        } else if (worker.fetch == Fetch::ready) {
            worker.piece = worker.fetched;
            worker.fetch = Fetch::nothing;
            return spend(worker_index, setup_.fetch[0].send_ps + setup_.fetch[2].send_ps, begun);
        } else if (worker.fetch == Fetch::nothing && central_ != none) {
            worker.idle = true;  // before: the queue may be here, and answer at once
            return fetch(worker_index);
        } else if (worker.fetch == Fetch::under_way && central_ != none) {
            worker.idle = true;
            return;
        }
        if (sends(exchange_step) && worker.flushed != static_cast<std::int64_t>(node.step))
            return flush(worker_index);
    }
    worker.idle = true;
}

bool Exchange::take_inbox(Index worker_index) {
    Worker& worker = workers_[worker_index];
    std::deque<Received>& inbox = nodes_[worker.node].inbox;
    if (inbox.empty()) return false;
    Time ps = 0;
    worker.taking = 0, worker.taking_lines = 0;
    for (std::int64_t k = 0; k < setup_.taken_at_once && !inbox.empty(); ++k) {
        const Received arrival = inbox.front();
        inbox.pop_front();
        worker.taking += arrival.rows, worker.taking_lines += arrival.lines;
        ps += arrival.receive_ps;
    }
    spend(worker_index, ps, received);
    return true;
}

// The worker's thread is busy with messages for so long.
void Exchange::spend(Index worker_index, Time ps, Kind then) {
    Worker& worker = workers_[worker_index];
    ps = slowed(worker.node, ps);
    cpu_ps_[worker.node] += ps;
    worker.spent_at = clock.now() + ps;
    clock.schedule(worker.spent_at, then, worker_index);
}

void Exchange::start(Index worker_index, std::uint32_t demand, double lines) {
    service_.start(clock.now(), workers_[worker_index].core, demand, lines, worker_index);
    plan();
}

void Exchange::begin_piece(Index worker_index, std::int64_t piece) {
    Worker& worker = workers_[worker_index];
    const std::size_t s = nodes_[worker.node].step;
    worker.piece = piece;
    const double lines = chosen_->steps[s].piece_lines[static_cast<std::size_t>(piece)];
    start(worker_index, demand_[s][worker.node], lines);
    if (chosen_->steps[s].central && worker.fetch == Fetch::nothing && central_ != none)
        fetch(worker_index);
}

// The number of the next piece, from the central queue.
void Exchange::fetch(Index worker_index) {
    Worker& worker = workers_[worker_index];
    worker.fetch = Fetch::under_way;
    Message message;
    message.kind = MessageKind::ask;
    message.worker = worker_index, message.from = worker.node;
    message.to = queue_node;
    message.number = central_;
    const Index number = new_message(message);
    if (message.from == message.to) return message_arrived(number);
    carry(number, fetch_cost(message.kind));
}

std::int64_t Exchange::take_central() {
    const ExchangeStep& exchange_step = chosen_->steps[nodes_[0].step];
    if (central_cursor_ == exchange_step.piece_home.size()) return none;
    return static_cast<std::int64_t>(central_cursor_++);
}

void Exchange::plan() {
    clock.cancel(timer_);
    const Time time = service_.next_change();
    timer_ = time == never ? Timer{} : clock.schedule_timer(time, due);
}

void Exchange::look_for_ends() {
    std::vector<Index> jobs;
    std::uint64_t job = 0;
    while (service_.finish(clock.now(), job)) jobs.push_back(static_cast<Index>(job));
    for (const Index worker : jobs) piece_ended(worker);
    plan();
}

void Exchange::piece_ended(Index worker_index) {
    Worker& worker = workers_[worker_index];
    if (worker.piece == none) {
        const std::int64_t rows = std::exchange(worker.taking, 0);
        trace.add(clock.now(), due, worker_index, static_cast<std::uint64_t>(rows));
        rows_here(worker.node, rows);
        return next(worker_index);
    }
    const std::int64_t piece = std::exchange(worker.piece, none);
    trace.add(clock.now(), begun, worker_index, static_cast<std::uint64_t>(piece));
    Node& node = nodes_[worker.node];
    ++pieces_done[worker.node];
    const bool central = step(worker.node).central;
    if (sends(step(worker.node))) fill_buffers(worker_index, piece);
    if (central) {
        if (--central_left_ == 0) close_central();
    } else {
        --node.pieces_left;
        advance(worker.node);
    }
    send_next(worker_index);
}

std::vector<std::int64_t> Exchange::adapter_busy_ps(bool out) const {
    std::vector<std::int64_t> busy;
    for (const Adapter& adapter : adapters_)
        busy.push_back(static_cast<std::int64_t>(out ? adapter.outgoing_busy_ps(clock.now())
                                                     : adapter.incoming_busy_ps(clock.now())));
    return busy;
}

std::vector<std::int64_t> Exchange::message_cpu_ps() const {
    std::vector<std::int64_t> spent = cpu_ps_;
    for (const Worker& worker : workers_)
        spent[worker.node] -= std::max<Time>(worker.spent_at - clock.now(), 0);
    return spent;
}

template bool Simulation::run(Exchange&, Time, Interrupt*);

}  // namespace numatwin
