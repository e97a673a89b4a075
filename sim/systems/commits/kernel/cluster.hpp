// Machines on a network: threads, network adapters, and messages from one place to another.
//
// A message, from left to right; each part is a FIFO server or a pure delay:
//
//     sender's thread -> outgoing side of its adapter -> wire -> incoming side -> receiver's thread
//     send               out                             wire    in               receive
//
// The two sides are those of machine/kernel/adapter.hpp. A part of 0 ps of a thread takes no
// thread; within one machine there is no network. The same, in plain SimPy, row for row:
// systems/commits/reference/cluster.py.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "kernel/fifo_server.hpp"
#include "kernel/simulation.hpp"
#include "machine/kernel/adapter.hpp"
#include "machine/kernel/processors.hpp"

namespace numatwin {

struct MessageCost {
    FIELDS_OF(MessageCost);
    FIELD(Time, send_ps, "of the sender's thread; 0: none takes part");
    FIELD(Time, receive_ps, "of the receiver's thread, likewise");
    FIELD(Time, out_ps, "of the outgoing side of the sender's adapter");
    FIELD(Time, wire_ps, "on its way");
    FIELD(Time, in_ps, "of the incoming side of the receiver's adapter");
    FIELD(std::uint32_t, parts, "messages of a transport that it is made of", 1);
    END_OF_FIELDS;
};

// A client has one thread; a node k of them. Clients come first, then nodes.
struct Place {
    std::uint32_t machine;
    std::uint32_t threads = 1;
    std::int64_t factor = 1;  // a straggler's own time is so much longer
};

// A message in message. An answer reuses the message that it answers. From `client` on, what the
// protocols put into it; each type uses some of these fields.
struct Message {
    std::uint32_t type;
    std::uint32_t sender;
    std::uint32_t receiver;
    std::uint32_t records;  // in it: they choose among the type's costs
    Time work;              // of the receiver's thread, in addition to the cost of receiving
    Time last_bits;         // when they can be at the receiver's adapter
    std::uint32_t client;
    std::uint32_t slot;
    std::uint32_t context;
    bool refused;
    bool signaled;        // whether an answer is wanted
    std::int8_t status;   // granted, or the cause of an abort
    std::uint8_t row;     // that a timestamp is traced as
    std::int64_t number;  // of the transaction
    std::int64_t key;     // of the record
    std::int64_t cid;     // a commit timestamp, or the version of a record
    std::int64_t newest;  // version of the record, or timestamp used
    std::int64_t cid_end;
    std::int64_t owner;  // of a lock
    Time since;          // when the lock was taken
};

using Row = std::array<std::int64_t, 6>;  // see systems/commits/history.py

// The model on top says what a message does once it is received.
class Cluster {
  public:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    Simulation clock;

    // costs: by type, then by records aboard, `entries` of them.
    Cluster(std::uint64_t seed, std::uint64_t replication, std::uint32_t machines,
            std::vector<Place> places, std::uint32_t clients, std::vector<MessageCost> costs,
            std::uint32_t entries, const ProcessorSetup& processors, bool traced)
        : clock(seed, replication),
          places_(std::move(places)),
          processors_(processors, places_.size(), {run_over, tick, wake_over}),
          adapters_(machines),
          stopped_(clients, 0),
          costs_(std::move(costs)),
          entries_(entries),
          sent_(costs_.size() / entries, 0),
          traced_(traced) {
        for (const Place& place : places_) threads_.emplace_back(place.threads);
    }
    virtual ~Cluster() = default;

    void handle(const Event& event) {
        switch (event.kind) {
            case posted:
                if (!has_stopped(messages_[event.subject].sender)) return carry(event.subject);
                return drop(event.subject);
            case reached: {
                Message& f = messages_[event.subject];
                Adapter& adapter = adapters_[places_[f.receiver].machine];
                return clock.schedule(adapter.receive(clock.now(), cost(f).in_ps, f.last_bits),
                                      arrived, event.subject);
            }
            case arrived:
                return take(event.subject);
            case received:
                if (!has_stopped(messages_[event.subject].receiver)) return deliver(event.subject);
                return drop(event.subject);
            case worked:
                return delivered(event.subject);
            case run_over:
            case tick:
            case wake_over:
                return processors_.handle(clock, event);
            default:
                return happened(event);
        }
    }

    static const char* event_name(std::uint32_t kind) {
        constexpr std::array names{"posted",        "reached",         "arrived", "received",
                                   "worked",        "a run ends",      "a tick",  "a sleeper wakes",
                                   "a client dies", "a client goes on"};
        return kind < names.size() ? names[kind] : "the protocol's own";
    }

    const std::vector<Row>& trace() const { return trace_; }
    const std::vector<std::uint64_t>& sent() const { return sent_; }
    std::vector<Wide> outgoing_busy_ps() const {
        const auto busy = [&](const Adapter& of) { return of.outgoing_busy_ps(clock.now()); };
        return of_each(adapters_, busy);
    }
    std::vector<Wide> incoming_busy_ps() const {
        const auto busy = [&](const Adapter& of) { return of.incoming_busy_ps(clock.now()); };
        return of_each(adapters_, busy);
    }
    std::vector<Wide> threads_busy_ps() const {
        std::vector<Wide> busy =
            of_each(threads_, [&](const FifoServers& of) { return of.busy_ps(clock.now()); });
        const std::vector<Wide> on_shared = processors_.busy_ps(clock.now());
        for (std::uint32_t place = 0; place < busy.size(); ++place) busy[place] += on_shared[place];
        return busy;
    }

  protected:
    enum EventKind : std::uint32_t {
        posted,
        reached,
        arrived,
        received,
        worked,
        run_over,
        tick,
        wake_over,
        first_own
    };

    // What the model does: with a message that was received (and it then reuses the message or ends
    // it), with one that is lost on a client that has stopped (then it ends it), with its own
    // events.
    virtual void delivered(std::uint32_t message) = 0;
    virtual void lost(std::uint32_t message) = 0;
    virtual void happened(const Event& event) = 0;

    std::uint32_t new_message(std::uint32_t type, std::uint32_t sender, std::uint32_t receiver) {
        if (free_messages_.empty()) {
            free_messages_.push_back(static_cast<std::uint32_t>(messages_.size()));
            messages_.emplace_back();
        }
        const std::uint32_t at = free_messages_.back();
        free_messages_.pop_back();
        messages_[at] = {};
        messages_[at].context = none;
        return direct(at, type, sender, receiver);
    }
    std::uint32_t direct(std::uint32_t at, std::uint32_t type, std::uint32_t sender,
                         std::uint32_t receiver, std::uint32_t records = 0, Time work = 0) {
        Message& f = messages_[at];
        f.type = type;
        f.sender = sender;
        f.receiver = receiver;
        f.records = records;
        f.work = work;
        return at;
    }
    std::uint32_t answer(std::uint32_t at, std::uint32_t type) {
        return direct(at, type, messages_[at].receiver, messages_[at].sender);
    }
    void free_message(std::uint32_t at) { free_messages_.push_back(at); }

    // Posted and carried; to itself, the receiver's work only.
    void send_message(std::uint32_t at) {
        const Message& f = messages_[at];
        if (f.sender == f.receiver) {
            if (f.work == 0) return delivered(at);
            return work(f.receiver, f.work, worked, at);
        }
        const Time send = cost(f).send_ps;
        if (send == 0) return has_stopped(f.sender) ? drop(at) : carry(at);
        work(f.sender, send, posted, at);
    }

    // Handed to the sender's adapter.
    void carry(std::uint32_t at) {
        Message& f = messages_[at];
        ++sent_[f.type];
        const std::uint32_t from = places_[f.sender].machine;
        if (from == places_[f.receiver].machine) return take(at);
        const MessageCost& c = cost(f);
        const Passage passage = adapters_[from].send(clock.now(), c.out_ps, c.wire_ps);
        f.last_bits = passage.last_bits;
        clock.schedule(passage.first_bits, reached, at);
    }

    // A thread of the place takes up work, its own or a sender's message; when that is done, the
    // event comes.
    void work(std::uint32_t place, Time ps, std::uint32_t kind, std::uint32_t subject,
              std::uint32_t sender = Processors::none, std::uint32_t parts = 1) {
        ps *= places_[place].factor;
        if (processors_.shared(place))
            return processors_.submit(clock, place, ps, kind, subject, sender, parts);
        clock.schedule(threads_[place].admit(clock.now(), ps), kind, subject);
    }
    Time send_ps(std::uint32_t type) const { return costs_[type * entries_].send_ps; }

    bool has_stopped(std::uint32_t place) const {
        return place < stopped_.size() && stopped_[place];
    }
    void stop(std::uint32_t client) { stopped_[client] = 1; }

    void log(std::int64_t kind, std::int64_t client, std::int64_t number, std::int64_t a,
             std::int64_t b = 0) {
        if (traced_) trace_.push_back({clock.now(), kind, client, number, a, b});
    }

    std::vector<Place> places_;
    std::vector<Message> messages_;

  private:
    static constexpr std::int64_t message_row = 12;  // history.MESSAGE

    const MessageCost& cost(const Message& f) const {
        return costs_[f.type * entries_ + std::min(f.records, entries_ - 1)];
    }

    void take(std::uint32_t at) {
        const Message& f = messages_[at];
        if (has_stopped(f.receiver)) return drop(at);
        const MessageCost& c = cost(f);
        const Time ps = f.work + c.receive_ps;
        if (ps == 0) return deliver(at);
        work(f.receiver, ps, received, at, f.sender, c.parts);
    }
    void deliver(std::uint32_t at) {
        const Message& f = messages_[at];
        log(message_row, f.sender, f.receiver, f.type);
        delivered(at);
    }
    void drop(std::uint32_t at) { lost(at); }

    template <class Parts, class Busy>
    static std::vector<Wide> of_each(const Parts& parts, Busy busy) {
        std::vector<Wide> all;
        for (const auto& part : parts) all.push_back(busy(part));
        return all;
    }

  protected:
    Processors processors_;

  private:
    std::vector<Adapter> adapters_;      // by machine
    std::vector<FifoServers> threads_;   // by place
    std::vector<std::uint8_t> stopped_;  // by client
    std::vector<MessageCost> costs_;
    std::uint32_t entries_;
    std::vector<std::uint64_t> sent_;
    std::vector<std::uint32_t> free_messages_;
    std::vector<Row> trace_;
    bool traced_;
};

}  // namespace numatwin
