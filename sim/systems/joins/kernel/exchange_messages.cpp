// Buffers that workers fill, and messages between nodes: from a full buffer to its completion.
#include <utility>

#include "exchange.hpp"

namespace numatwin {

// -- buffers and messages -------------------------------------------------------------------------

void Exchange::fill_buffers(Index at, std::int64_t piece) {
    Worker& worker = workers_[at];
    const std::size_t s = nodes_[worker.node].step;
    const ExchangeStep& of = chosen_->steps[s];
    const auto k = static_cast<std::size_t>(piece);
    const auto home = static_cast<std::size_t>(of.piece_home[k]);
    const auto pieces = static_cast<std::int64_t>(pieces_of_[s][home].size());
    const std::int64_t rank = rank_[s][k];
    const std::vector<std::int64_t>& rows = of.rows[home];
    for (std::size_t p = 0; p < rows.size(); ++p) {
        const std::int64_t until =
            rows[p] / pieces * (rank + 1) + rows[p] % pieces * (rank + 1) / pieces;
        const std::int64_t before = rows[p] / pieces * rank + rows[p] % pieces * rank / pieces;
        std::int64_t& fill = worker.fill[p];
        fill += until - before;
        for (; fill >= of.rows_of_buffer; fill -= of.rows_of_buffer)
            worker.full.push_back({static_cast<std::int64_t>(p), of.rows_of_buffer});
    }
}

void Exchange::flush(Index at) {
    Worker& worker = workers_[at];
    worker.flushed = static_cast<std::int64_t>(nodes_[worker.node].step);
    worker.flushing = true;
    for (std::size_t p = 0; p < worker.fill.size(); ++p)
        if (const std::int64_t rows = std::exchange(worker.fill[p], 0); rows > 0)
            worker.full.push_back({static_cast<std::int64_t>(p), rows});
    send_next(at);
}

void Exchange::send_next(Index at) {
    Worker& worker = workers_[at];
    while (!worker.full.empty() && owner(worker.full.front().partition) == worker.node) {
        const Buffer own = worker.full.front();
        worker.full.pop_front();
        local_rows(at, own);
    }
    if (worker.full.empty()) {
        if (worker.left_at <= clock.now()) return sent_all(at);
        worker.waits_since = clock.now();
        return clock.schedule(worker.left_at, left, at);
    }
    const auto p = static_cast<std::size_t>(worker.full.front().partition);
    if (chosen_->one_sided && worker.used[p] == setup_.send_buffers) {
        worker.blocked = true;
        worker.waits_since = clock.now();
        return;
    }
    const std::size_t part = part_of(worker.full.front().rows, step(worker.node));
    spend(at, chosen_->costs[part].send_ps, posted);
}

// Rows for the worker's own node are in its memory.
void Exchange::local_rows(Index at, const Buffer& of) {
    const Index here = workers_[at].node;
    arrived_rows_[static_cast<std::size_t>(of.partition)] += of.rows;
    if (chosen_->one_sided) return rows_here(here, of.rows);
    nodes_[here].inbox.push_back({of.rows, static_cast<double>(of.rows) * step(here).row_lines, 0});
    wake_one(here);
}

// Nothing of the worker's is left to be sent.
void Exchange::sent_all(Index at) {
    Worker& worker = workers_[at];
    if (std::exchange(worker.flushing, false)) {
        --nodes_[worker.node].unflushed;
        advance(worker.node);
    }
    next(at);
}

// Of the costs of a buffer: how many of its equal parts are full, at least in part.
std::size_t Exchange::part_of(std::int64_t rows, const ExchangeStep& of) const {
    const auto parts = static_cast<std::int64_t>(chosen_->costs.size() - 1);
    return static_cast<std::size_t>((rows * parts + of.rows_of_buffer - 1) / of.rows_of_buffer);
}

const MessageCost& Exchange::cost(const Message& of) const {
    return of.kind == MessageKind::rows ? chosen_->costs[of.part] : fetch_cost(of.kind);
}

Exchange::Index Exchange::new_message(const Message& of) {
    if (free_messages_.empty()) {
        messages_.push_back(of);
        return static_cast<Index>(messages_.size() - 1);
    }
    const Index at = free_messages_.back();
    free_messages_.pop_back();
    messages_[at] = of;
    return at;
}

void Exchange::carry(Index at, const MessageCost& of) {
    Message& m = messages_[at];
    const Passage passage = adapters_[m.from].send(clock.now(), of.out_ps, of.wire_ps);
    m.last_bits = passage.last_bits;
    clock.schedule(passage.first_bits, reached, at);
}

// The message has been posted: the adapter takes it.
void Exchange::hand_over(Index at) {
    Worker& worker = workers_[at];
    const Buffer buffer = worker.full.front();
    worker.full.pop_front();
    const ExchangeStep& of = step(worker.node);
    const auto p = static_cast<std::size_t>(buffer.partition);
    Message message;
    message.worker = at, message.from = worker.node, message.to = owner(buffer.partition);
    message.partition = buffer.partition, message.rows = buffer.rows;
    message.lines = static_cast<double>(buffer.rows) * of.row_lines;
    message.part = part_of(buffer.rows, of);
    if (chosen_->one_sided) {
        message.number = ++worker.sent[message.to];
        ++worker.used[p];
        message.signaled =
            message.number % setup_.signal_every == 0 || worker.used[p] == setup_.send_buffers;
        worker.unknown[message.to].push_back({message.number, buffer.partition});
    }
    ++messages[worker.node];
    rows_sent[worker.node] += buffer.rows;
    const MessageCost& costs = cost(message);
    const Index number = new_message(message);
    carry(number, costs);
    if (!chosen_->one_sided) worker.left_at = messages_[number].last_bits - costs.wire_ps;
    send_next(at);
}

void Exchange::message_arrived(Index number) {
    Message& m = messages_[number];
    switch (m.kind) {
        case MessageKind::rows: {
            const Message of = m;
            arrived_rows_[static_cast<std::size_t>(of.partition)] += of.rows;
            if (!chosen_->one_sided) {
                const Time receive = cost(of).receive_ps;
                free_messages_.push_back(number);
                nodes_[of.to].inbox.push_back({of.rows, of.lines, receive});
                return wake_one(of.to);
            }
            if (of.signaled) {
                clock.schedule(clock.now() + cost(of).wire_ps, completed, number);
            } else {
                free_messages_.push_back(number);
            }
            return rows_here(of.to, of.rows);
        }
        case MessageKind::ask: {
            if (m.number != central_) return free_messages_.push_back(number);
            m.partition = take_central();
            m.kind = MessageKind::answer;
            std::swap(m.from, m.to);
            if (m.from == m.to) return message_arrived(number);
            return carry(number, fetch_cost(m.kind));
        }
        case MessageKind::answer: {
            if (m.number != central_ && m.partition == none)
                return free_messages_.push_back(number);
            const auto home =
                m.partition == none
                    ? m.to
                    : static_cast<Index>(
                          step(m.to).piece_home[static_cast<std::size_t>(m.partition)]);
            if (home == m.to) break;
            m.kind = MessageKind::read;
            m.from = m.to, m.to = home;
            return carry(number, fetch_cost(m.kind));
        }
        case MessageKind::read:
            m.kind = MessageKind::data;
            std::swap(m.from, m.to);
            return carry(number, fetch_cost(m.kind));
        case MessageKind::data:
            break;
    }
    // The worker has a piece, or knows that there are no more.
    Worker& worker = workers_[m.worker];
    worker.fetched = m.partition;
    worker.fetch = m.partition == none ? Fetch::over : Fetch::ready;
    const Index at = m.worker;
    free_messages_.push_back(number);
    if (std::exchange(worker.idle, false)) next(at);
}

// A signaled request is known to be done: it vouches for those before it to the same node.
void Exchange::complete(Index number) {
    const Message of = messages_[number];
    trace.add(clock.now(), completed, of.worker, static_cast<std::uint64_t>(of.number));
    free_messages_.push_back(number);
    Worker& worker = workers_[of.worker];
    std::deque<Sent>& unknown = worker.unknown[of.to];
    while (!unknown.empty() && unknown.front().number <= of.number) {
        --worker.used[static_cast<std::size_t>(unknown.front().partition)];
        unknown.pop_front();
    }
    if (!worker.blocked) return;
    const auto p = static_cast<std::size_t>(worker.full.front().partition);
    if (worker.used[p] == setup_.send_buffers) return;
    worker.blocked = false;
    waited_ps[worker.node] += clock.now() - worker.waits_since;
    send_next(of.worker);
}

}  // namespace numatwin
