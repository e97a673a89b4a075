// Buffers that workers fill, and messages between nodes: from a full buffer to its completion.
#include <utility>

#include "exchange.hpp"

namespace numatwin {

void Exchange::fill_buffers(Index worker_index, std::int64_t piece) {
    Worker& worker = workers_[worker_index];
    const std::size_t s = nodes_[worker.node].step;
    const ExchangeStep& exchange_step = chosen_->steps[s];
    const auto k = static_cast<std::size_t>(piece);
    const auto home = static_cast<std::size_t>(exchange_step.piece_home[k]);
    const auto pieces = static_cast<std::int64_t>(pieces_of_[s][home].size());
    const std::int64_t rank = rank_[s][k];
    const std::vector<std::int64_t>& rows = exchange_step.rows[home];
    for (std::size_t p = 0; p < rows.size(); ++p) {
        const std::int64_t until =
            rows[p] / pieces * (rank + 1) + rows[p] % pieces * (rank + 1) / pieces;
        const std::int64_t before = rows[p] / pieces * rank + rows[p] % pieces * rank / pieces;
        std::int64_t& fill = worker.fill[p];
        fill += until - before;
        for (; fill >= exchange_step.rows_of_buffer; fill -= exchange_step.rows_of_buffer)
            worker.full.push_back({static_cast<std::int64_t>(p), exchange_step.rows_of_buffer});
    }
}

void Exchange::flush(Index worker_index) {
    Worker& worker = workers_[worker_index];
    worker.flushed = static_cast<std::int64_t>(nodes_[worker.node].step);
    worker.flushing = true;
    for (std::size_t p = 0; p < worker.fill.size(); ++p)
        if (const std::int64_t rows = std::exchange(worker.fill[p], 0); rows > 0)
            worker.full.push_back({static_cast<std::int64_t>(p), rows});
    send_next(worker_index);
}

void Exchange::send_next(Index worker_index) {
    Worker& worker = workers_[worker_index];
    while (!worker.full.empty() && owner(worker.full.front().partition) == worker.node) {
        const Buffer own = worker.full.front();
        worker.full.pop_front();
        local_rows(worker_index, own);
    }
    if (worker.full.empty()) {
        if (worker.left_at <= clock.now()) return sent_all(worker_index);
        worker.waits_since = clock.now();
        return clock.schedule(worker.left_at, left, worker_index);
    }
    const auto p = static_cast<std::size_t>(worker.full.front().partition);
    if (chosen_->one_sided && worker.used[p] == setup_.send_buffers) {
        worker.blocked = true;
        worker.waits_since = clock.now();
        return;
    }
    const std::size_t part = part_of(worker.full.front().rows, step(worker.node));
    spend(worker_index, chosen_->costs[part].send_ps, posted);
}

// Rows for the worker's own node are in its memory.
void Exchange::local_rows(Index worker_index, const Buffer& buffer) {
    const Index here = workers_[worker_index].node;
    arrived_rows_[static_cast<std::size_t>(buffer.partition)] += buffer.rows;
    if (chosen_->one_sided) return rows_here(here, buffer.rows);
    nodes_[here].inbox.push_back(
        {buffer.rows, static_cast<double>(buffer.rows) * step(here).row_lines, 0});
    wake_one(here);
}

// Nothing of the worker's is left to be sent.
void Exchange::sent_all(Index worker_index) {
    Worker& worker = workers_[worker_index];
    if (std::exchange(worker.flushing, false)) {
        --nodes_[worker.node].unflushed;
        advance(worker.node);
    }
    next(worker_index);
}

// Of the costs of a buffer: how many of its equal parts are full, at least in part.
std::size_t Exchange::part_of(std::int64_t rows, const ExchangeStep& exchange_step) const {
    const auto parts = static_cast<std::int64_t>(chosen_->costs.size() - 1);
    return static_cast<std::size_t>((rows * parts + exchange_step.rows_of_buffer - 1) /
                                    exchange_step.rows_of_buffer);
}

const MessageCost& Exchange::cost(const Message& message) const {
    return message.kind == MessageKind::rows ? chosen_->costs[message.part]
                                             : fetch_cost(message.kind);
}

Exchange::Index Exchange::new_message(const Message& message) {
    if (free_messages_.empty()) {
        messages_.push_back(message);
        return static_cast<Index>(messages_.size() - 1);
    }
    const Index number = free_messages_.back();
    free_messages_.pop_back();
    messages_[number] = message;
    return number;
}

void Exchange::carry(Index number, const MessageCost& message_cost) {
    Message& m = messages_[number];
    const Passage passage =
        adapters_[m.from].send(clock.now(), message_cost.out_ps, message_cost.wire_ps);
    m.last_bits = passage.last_bits;
    clock.schedule(passage.first_bits, reached, number);
}

// The message has been posted: the adapter takes it.
void Exchange::hand_over(Index worker_index) {
    Worker& worker = workers_[worker_index];
    const Buffer buffer = worker.full.front();
    worker.full.pop_front();
    const ExchangeStep& exchange_step = step(worker.node);
    const auto p = static_cast<std::size_t>(buffer.partition);
    Message message;
    message.worker = worker_index, message.from = worker.node, message.to = owner(buffer.partition);
    message.partition = buffer.partition, message.rows = buffer.rows;
    message.lines = static_cast<double>(buffer.rows) * exchange_step.row_lines;
    message.part = part_of(buffer.rows, exchange_step);
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
    send_next(worker_index);
}

void Exchange::message_arrived(Index number) {
    Message& m = messages_[number];
    switch (m.kind) {
        case MessageKind::rows: {
            const Message message = m;
            arrived_rows_[static_cast<std::size_t>(message.partition)] += message.rows;
            if (!chosen_->one_sided) {
                const Time receive = cost(message).receive_ps;
                free_messages_.push_back(number);
                nodes_[message.to].inbox.push_back({message.rows, message.lines, receive});
                return wake_one(message.to);
            }
            if (message.signaled) {
                clock.schedule(clock.now() + cost(message).wire_ps, completed, number);
            } else {
                free_messages_.push_back(number);
            }
            return rows_here(message.to, message.rows);
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
    const Index worker_index = m.worker;
    free_messages_.push_back(number);
    if (std::exchange(worker.idle, false)) next(worker_index);
}

// A signaled request is known to be done: it vouches for those before it to the same node.
void Exchange::complete(Index number) {
    const Message message = messages_[number];
    trace.add(clock.now(), completed, message.worker, static_cast<std::uint64_t>(message.number));
    free_messages_.push_back(number);
    Worker& worker = workers_[message.worker];
    std::deque<Sent>& unknown = worker.unknown[message.to];
    while (!unknown.empty() && unknown.front().number <= message.number) {
        --worker.used[static_cast<std::size_t>(unknown.front().partition)];
        unknown.pop_front();
    }
    if (!worker.blocked) return;
    const auto p = static_cast<std::size_t>(worker.full.front().partition);
    if (worker.used[p] == setup_.send_buffers) return;
    worker.blocked = false;
    waited_ps[worker.node] += clock.now() - worker.waits_since;
    send_next(message.worker);
}

}  // namespace numatwin
