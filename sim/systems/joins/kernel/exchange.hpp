// A cluster that joins or aggregates, event by event: workers that scan and send rows to the nodes
// to which their partitions belong, and work on what has arrived.
//
// Of each node, step by step: pieces of work, which its workers take in turn. A piece is served by
// SharedService, among all that run on the node. In a step that sends rows:
//
//     ended     the rows of a piece are in the buffers of their partitions; full ones are sent
//     posted    the worker's thread has handed a message to its adapter; it goes on with the next
//     reached   first bits are at the receiver's adapter
//     arrived   the rows are there: one-sided, in memory for good; else in the node's inbox
//     received  a worker has spent the CPU time of receiving, and copies the rows to their place
//
// Sockets and SEND (two-sided): a worker waits until its last message has left (`left`), receives
// what is in the inbox, then takes the next piece. One-sided WRITEs: it goes on at once, but uses a
// buffer again only when it knows that it was sent: the completion of a signaled request vouches
// for all before it to the same node. Every signal_every-th request is signaled, and any that
// takes the last buffer of its partition. A buffer that is not full is sent at the step's end.
//
// A gated step begins on a node when all rows that are meant for it have been taken in. The pieces
// of a central step are in one queue: a worker fetches the next one's number by an atomic verb
// (`ask`, `answer`) and READs its lines where they are (`read`, `data`) while it works on the one
// before; the step begins when all nodes have come to it.
//
// The twin in SimPy: ../reference/exchange.py.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "kernel/described.hpp"
#include "kernel/simulation.hpp"
#include "kernel/trace.hpp"
#include "machine/kernel/adapter.hpp"
#include "machine/kernel/message_path.hpp"
#include "machine/kernel/service_machine.hpp"
#include "machine/kernel/shared_service.hpp"

namespace numatwin {

// What Python says of a cluster that joins: its machine, its operators step by step, its messages.

// n nodes, K pieces of a step, P partitions into which its rows go; lines are of 64 bytes.
struct ExchangeStep {
    FIELDS_OF(ExchangeStep);
    FIELD(bool, central, "workers fetch pieces from one queue; else each node has its own");
    FIELD(bool, gated, "a node begins it when all rows sent to it before have been taken in");
    FIELD(bool, checked, "its pieces contain each row once that steps marked as input sent");
    FIELD(bool, input, "sends rows that a later step checks");
    FIELD(std::vector<std::int64_t>, piece_home, "[K] node where its lines are");
    FIELD(std::vector<double>, piece_lines, "[K] units of work");
    FIELD(std::vector<std::int64_t>, piece_rows, "[K] rows in it, of a checked step");
    FIELD(std::vector<double>, instructions_ps, "[n] of a line, by node of the worker");
    FIELD(double, read, "lines of memory a line");
    FIELD(double, written, "lines of memory a line");
    FIELD(std::vector<std::vector<std::int64_t>>, rows,
          "[n, P] that pieces of a home send to each partition; empty: it sends none");
    FIELD(std::int64_t, rows_of_buffer, "that fill a buffer", 1);
    FIELD(double, row_lines, "lines of a row");
    END_OF_FIELDS;
};

struct ExchangeOperator {
    FIELDS_OF(ExchangeOperator);
    FIELD(bool, one_sided, "rows are written to remote memory; else sent, received, copied");
    FIELD(std::vector<ExchangeStep>, steps, "one after another on each node");
    FIELD(std::vector<MessageCost>, costs, "of a buffer, by how many of so many parts are full");
    END_OF_FIELDS;
};

// W workers.
struct ExchangeSetup {
    FIELDS_OF(ExchangeSetup);
    FIELD(ServiceMachine, machine, "without links: nodes have adapters");
    FIELD(std::vector<double>, slots, "[n] lines that a thread reads at a time");
    FIELD(std::vector<double>, copy_ps, "[n] of a thread that puts a received line in its place");
    FIELD(std::vector<std::int64_t>, worker_core, "[W]");
    FIELD(std::vector<std::int64_t>, slow, "[n] all that workers do takes so many times as long");
    FIELD(std::vector<ExchangeOperator>, operators, "that can be chosen");
    FIELD(std::int64_t, chosen, "of them, at first");
    FIELD(std::vector<MessageCost>, fetch, "to the queue and back, to a chunk's home and back");
    FIELD(std::int64_t, send_buffers, "of each worker and partition, for one-sided verbs", 2);
    FIELD(std::int64_t, signal_every, "requests of a worker to a node, at the latest", 1);
    FIELD(std::int64_t, taken_at_once, "messages that a worker receives in a row", 16);
    FIELD(Time, think_ps, "between two queries");
    END_OF_FIELDS;
};

class Exchange {
  public:
    enum Kind : std::uint32_t {
        ask_query,
        due,
        ended,
        posted,
        left,
        reached,
        arrived,
        completed,
        received,
        begun,
        answered
    };

    // Throws std::invalid_argument where shapes do not fit.
    Exchange(ExchangeSetup setup, std::uint64_t seed, std::uint64_t replication);

    void handle(const Event& event);
    static const char* event_name(std::uint32_t kind);

    // Queries that begin from now on take this operator.
    void choose(std::size_t chosen) {
        if (chosen >= setup_.operators.size()) throw std::invalid_argument("chosen: no operator");
        next_ = chosen;
    }

    Simulation clock;
    Trace trace;
    std::vector<std::int64_t> latencies_ps;         // of queries
    std::vector<std::int64_t> operator_used;        // of queries
    std::vector<std::int64_t> messages, rows_sent;  // by node
    std::vector<std::int64_t> pieces_done;          // by node of the worker
    std::vector<std::int64_t> waited_ps;            // [n] workers for buffers or the adapter

    const SharedService& service() const { return service_; }
    std::size_t cores() const { return setup_.machine.core_node.size(); }
    std::vector<std::int64_t> adapter_busy_ps(bool out) const;
    std::vector<std::int64_t> message_cpu_ps() const;  // [n] of messages' work on threads

  private:
    using Index = std::uint32_t;
    static constexpr std::int64_t none = -1;
    enum class Fetch : std::uint8_t { nothing, under_way, ready, over };
    enum class MessageKind : std::uint8_t { rows, ask, answer, read, data };

    struct Message {
        MessageKind kind = MessageKind::rows;
        Index worker = 0, from = 0, to = 0;
        std::int64_t partition = 0, rows = 0;
        std::int64_t number = 0;  // of the request; of the step that a piece is fetched for
        std::size_t part = 0;     // of the costs of rows
        double lines = 0;
        bool signaled = false;
        Time last_bits = 0;
    };
    struct Sent {
        std::int64_t number, partition;
    };
    struct Buffer {
        std::int64_t partition, rows;
    };
    struct Received {
        std::int64_t rows;
        double lines;
        Time receive_ps;
    };
    struct Worker {
        Index node, core;
        bool idle = false;
        std::int64_t piece = none;  // under way
        std::int64_t taking = 0;    // rows that are being copied to their place
        double taking_lines = 0;
        std::int64_t flushed = none;  // step whose buffers it has sent
        bool flushing = false;        // and it is still sending them
        bool blocked = false;         // no buffer of the next one's partition is free
        Time left_at = 0, waits_since = 0;
        Time spent_at = 0;  // its work on messages is over
        Fetch fetch = Fetch::nothing;
        std::int64_t fetched = none;
        std::vector<std::int64_t> fill;         // [P] rows in the open buffer
        std::vector<std::int64_t> used;         // [P] buffers that may not have been sent
        std::vector<std::int64_t> sent;         // [n] requests to each node
        std::vector<std::deque<Sent>> unknown;  // [n] those that may be under way
        std::deque<Buffer> full;                // to be sent
    };
    struct Node {
        std::size_t step = 0;
        bool open = false;       // the step has begun
        bool waits = false;      // for rows
        std::size_t cursor = 0;  // of its pieces
        std::size_t pieces_left = 0, unflushed = 0;
        std::int64_t here = 0;  // rows taken in
        std::vector<Index> workers;
        std::deque<Received> inbox;
    };

    const ExchangeStep& step(Index node) const { return chosen_->steps[nodes_[node].step]; }
    bool sends(const ExchangeStep& exchange_step) const { return !exchange_step.rows.empty(); }
    Index owner(std::int64_t partition) const {
        return static_cast<Index>(partition % static_cast<std::int64_t>(nodes_.size()));
    }
    const MessageCost& cost(const Message& message) const;
    std::size_t part_of(std::int64_t rows, const ExchangeStep& exchange_step) const;
    Time slowed(Index node, Time ps) const { return ps * setup_.slow[node]; }

    void begin_query();
    void enter(Index node);
    void open(Index node);
    void advance(Index node);
    void rows_here(Index node, std::int64_t rows);
    void end_query();
    void wake(Index node);
    void wake_one(Index node);
    void next(Index worker);
    bool take_inbox(Index worker);
    void start(Index worker, std::uint32_t demand, double lines);
    void spend(Index worker, Time ps, Kind then);
    void begin_piece(Index worker, std::int64_t piece);
    void fetch(Index worker);
    void piece_ended(Index worker);
    void fill_buffers(Index worker, std::int64_t piece);
    void prepare();
    void check_query();
    void flush(Index worker);
    void send_next(Index worker);
    void sent_all(Index worker);
    void hand_over(Index worker);
    void local_rows(Index worker_index, const Buffer& buffer);
    void message_arrived(Index number);
    void complete(Index number);
    Index new_message(const Message& message);
    void carry(Index number, const MessageCost& message_cost);
    const MessageCost& fetch_cost(MessageKind kind) const {
        return setup_.fetch[static_cast<std::size_t>(kind) - 1];
    }
    void close_central();
    std::int64_t take_central();
    void plan();
    void look_for_ends();

    ExchangeSetup setup_;
    SharedService service_;
    Timer timer_ = {};
    const ExchangeOperator* chosen_ = nullptr;
    std::size_t next_ = 0;
    std::vector<Node> nodes_;
    std::vector<Worker> workers_;
    std::vector<Adapter> adapters_;
    std::vector<std::int64_t> cpu_ps_;  // [n] of messages' work that was begun
    std::vector<Message> messages_;
    std::vector<Index> free_messages_;
    // Of the query's operator: pieces by step and home; the rank of each piece at its home.
    std::vector<std::vector<std::vector<std::int64_t>>> pieces_of_;
    std::vector<std::vector<std::int64_t>> rank_;
    std::vector<std::vector<std::int64_t>> expected_;  // [steps, n] rows sent before
    std::vector<std::vector<std::uint32_t>> demand_;   // [steps, n]
    std::vector<std::uint32_t> copying_;               // [n] demands
    std::vector<std::int64_t> arrived_rows_;           // [P] that a step checks
    std::size_t central_cursor_ = 0, central_left_ = 0;
    std::int64_t central_ = none, centrals_ = 0;  // number of the central step that is open
    std::vector<std::size_t> entered_;            // nodes that have come to a step
    std::size_t nodes_done_ = 0;
    Time asked_at_ = 0;
};

extern template bool Simulation::run(Exchange&, Time, Interrupt*);

}  // namespace numatwin
