// The way of a message: threads of the operating system, processors, network adapters and wires.
//
// From left to right; each part is a FIFO server or a pure delay:
//
//     sender's thread -> outgoing side of its adapter -> wire -> incoming side -> receiver's thread
//     send               out                             wire    in               receive
//
// The two sides are those of adapter.hpp; the threads are a place's own, or those that places share
// (processors.hpp). A part of 0 ps of a thread takes no thread; within one machine there is no
// network. The same in SimPy: ../reference/message_path.py.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernel/described.hpp"
#include "kernel/event_queue.hpp"
#include "kernel/fifo_server.hpp"
#include "kernel/philox.hpp"
#include "kernel/simulation.hpp"
#include "machine/kernel/adapter.hpp"
#include "machine/kernel/processors.hpp"

namespace numatwin {

// Paths between machines that are down, lossy, slow or late for a time, and transports that send
// again.
//
//     path:     well -> faulty (from_ps) -> well (until_ps); each message that is handed over in
//               between may be lost, or takes `factor` times as long
//     message:  handed over -> lost -> handed over again after wait_ps(0), wait_ps(1), ...
//               handed over -> late, by more than wait_ps(0) -> handed over again meanwhile, on
//               another connection; what comes late is received and dropped
//
// A link is a path between two machines, a port one between a machine and all others, a partition
// one between two groups. Transports are reliable: each message comes in the end, once. The same in
// SimPy: ../reference/path_faults.py.

struct PathFault {
    using Sides = std::vector<std::uint32_t>;
    FIELDS_OF(PathFault);
    FIELD(Time, from_ps, "when it begins");
    FIELD(Time, until_ps, "when it ends");
    FIELD(Sides, side, "of each machine: 1 or 2, between which paths fail, or 0");
    FIELD(double, loss, "part of the messages that are lost; 1: the path is down");
    FIELD(std::int64_t, factor, "how many times as long a message takes", 1);
    FIELD(double, late, "part of the messages that are late");
    FIELD(Time, late_ps, "by how much");
    END_OF_FIELDS;
};

struct Transport {
    FIELDS_OF(Transport);
    FIELD(Time, timeout_ps, "until a lost message is sent again", 1);
    FIELD(std::int64_t, growth, "of that time with each further loss", 1);
    FIELD(Time, longest_ps, "that it grows to", 1'000'000'000'000);
    FIELD(std::uint32_t, retries, "before the connection counts as broken", 7);
    FIELD(Time, reconnect_ps, "to set up another connection");
    END_OF_FIELDS;

    // Until the next try, after so many that failed.
    Time wait_ps(std::uint32_t tries) const {
        const std::uint32_t round = tries % (retries + 1);
        Time wait = timeout_ps;
        for (std::uint32_t k = 0; k < round && wait < longest_ps; ++k) wait *= growth;
        return std::min(wait, longest_ps) + (round == retries ? reconnect_ps : 0);
    }
};

class PathFaults {
  public:
    PathFaults() = default;
    PathFaults(std::vector<PathFault> faults, Stream losses)
        : faults_(std::move(faults)), losses_(losses) {}

    // A fault begins or ends.
    void change(std::uint32_t fault, bool begins) {
        if (begins)
            active_.push_back(fault);
        else
            std::erase(active_, fault);
        any_ = !active_.empty();
    }
    bool any() const { return any_; }

    // Whether a message between two machines is lost; draws where a path is lossy.
    bool loses(std::uint32_t from, std::uint32_t to) {
        bool lost = false;
        for (const std::uint32_t f : active_)
            if (concerns(faults_[f], from, to) && faults_[f].loss > 0)
                lost = faults_[f].loss >= 1 || losses_.uniform() < faults_[f].loss || lost;
        return lost;
    }
    std::int64_t factor(std::uint32_t from, std::uint32_t to) const {
        std::int64_t product = 1;
        for (const std::uint32_t f : active_)
            if (concerns(faults_[f], from, to)) product *= faults_[f].factor;
        return product;
    }
    // By how much a message is late; draws where some are.
    Time late_ps(std::uint32_t from, std::uint32_t to) {
        Time late = 0;
        for (const std::uint32_t f : active_)
            if (concerns(faults_[f], from, to) && faults_[f].late > 0 &&
                losses_.uniform() < faults_[f].late)
                late = std::max(late, faults_[f].late_ps);
        return late;
    }

  private:
    static bool concerns(const PathFault& fault, std::uint32_t from, std::uint32_t to) {
        return fault.side[from] + fault.side[to] == 3;
    }

    std::vector<PathFault> faults_;
    std::vector<std::uint32_t> active_;
    Stream losses_;
    bool any_ = false;
};

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

// Where messages are sent and received: a process, with threads of its own or on shared processors.
struct Place {
    std::uint32_t machine;
    std::uint32_t threads = 1;
    std::int64_t factor = 1;  // its threads take so many times as long
};

// What the way of a message depends on. A model derives its own messages, with their contents.
struct MessageHead {
    std::uint32_t type;
    std::uint32_t sender;
    std::uint32_t receiver;
    std::uint32_t items;  // in it: they choose among the type's costs
    Time work;            // of the receiver's thread, in addition to the cost of receiving
    Time last_bits;       // when they can be at the receiver's adapter
    std::uint32_t life;   // of the place whose thread has it
    std::uint16_t tries;  // lost on its way so often
    std::uint16_t again;  // asked again so often, as a place had stopped
};

// Places on machines, and the messages between them; a model derives from it, and says what a
// message does once it is received. A place that has stopped sends nothing that was not handed to
// its adapter before, and takes nothing; what its threads were at is lost. What a path loses, the
// sender's adapter sends again after a time (PathFaults).
template <class Message>
class MessagePath {
  public:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    Simulation clock;

    // costs: by type, then by items, `entries` of them.
    MessagePath(std::uint64_t seed, std::uint64_t replication, std::uint32_t machines,
                std::vector<Place> places, std::vector<MessageCost> costs, std::uint32_t entries,
                const ProcessorSetup& processors)
        : clock(seed, replication),
          places_(std::move(places)),
          processors_(processors, places_.size(), {run_over, tick, wake_over}),
          adapters_(machines),
          life_(places_.size(), 0),
          costs_(std::move(costs)),
          entries_(entries),
          sent_(costs_.size() / entries, 0) {
        for (const Place& place : places_) threads_.emplace_back(place.threads);
    }
    virtual ~MessagePath() = default;

    [[gnu::always_inline]] void handle(const Event& event) {
        switch (event.kind) {
            case posted:
                if (lives_on(messages_[event.subject].sender, event.subject))
                    return carry(event.subject);
                return lost(event.subject);
            case reached: {
                Message& m = messages_[event.subject];
                Adapter& adapter = adapters_[places_[m.receiver].machine];
                return schedule(adapter.receive(clock.now(), cost(m).in_ps, m.last_bits), arrived,
                                event.subject);
            }
            case arrived:
                return take(event.subject);
            case received:
                if (lives_on(messages_[event.subject].receiver, event.subject))
                    return deliver(event.subject);
                return lost(event.subject);
            case worked:
                if (lives_on(messages_[event.subject].receiver, event.subject))
                    return delivered(event.subject);
                return lost(event.subject);
            case sent_again:
            case late_reached:
            case late_arrived:
            case late_received:
            case path_changes:
                return happened_to_path(event);
            case run_over:
            case tick:
            case wake_over:
                return processors_.handle(clock, event);
            default:
                return happened(event);
        }
    }

    const std::vector<std::uint64_t>& sent() const { return sent_; }
    std::vector<Wide> outgoing_busy_ps() const {
        const auto busy = [&](const Adapter& part) { return part.outgoing_busy_ps(clock.now()); };
        return of_each(adapters_, busy);
    }
    std::vector<Wide> incoming_busy_ps() const {
        const auto busy = [&](const Adapter& part) { return part.incoming_busy_ps(clock.now()); };
        return of_each(adapters_, busy);
    }
    std::vector<Wide> threads_busy_ps() const {
        std::vector<Wide> busy =
            of_each(threads_, [&](const FifoServers& part) { return part.busy_ps(clock.now()); });
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
        sent_again,
        late_reached,
        late_arrived,
        late_received,
        path_changes,
        run_over,
        tick,
        wake_over,
        first_own
    };

    static constexpr std::array event_names{
        "posted",     "reached",      "arrived",      "received",      "worked",
        "sent again", "late reached", "late arrived", "late received", "path changes",
        "run over",   "tick",         "wake over"};

    // What the model does: with a message of another place's that was received, before all else;
    // with a message that was received (and it then reuses the message or frees it); with one that
    // is lost on a place that has stopped (likewise); with its own events. What was sent again
    // before it came is of no use.
    virtual void note(const Message& received) = 0;
    virtual void delivered(std::uint32_t message) = 0;
    virtual void lost(std::uint32_t message) = 0;
    virtual void happened(const Event& event) = 0;
    virtual void came_late(std::uint32_t message) { free_message(message); }

    std::uint32_t new_message(std::uint32_t type, std::uint32_t sender, std::uint32_t receiver) {
        if (free_messages_.empty()) {
            free_messages_.push_back(static_cast<std::uint32_t>(messages_.size()));
            messages_.emplace_back();
        }
        const std::uint32_t message = free_messages_.back();
        free_messages_.pop_back();
        messages_[message] = {};
        return direct(message, type, sender, receiver);
    }
    std::uint32_t direct(std::uint32_t message, std::uint32_t type, std::uint32_t sender,
                         std::uint32_t receiver, std::uint32_t items = 0, Time work = 0) {
        Message& m = messages_[message];
        m.type = type;
        m.sender = sender;
        m.receiver = receiver;
        m.items = items;
        m.work = work;
        m.tries = 0;
        return message;
    }
    std::uint32_t answer(std::uint32_t message, std::uint32_t type) {
        return direct(message, type, messages_[message].receiver, messages_[message].sender);
    }
    void free_message(std::uint32_t message) { free_messages_.push_back(message); }

    // Posted and carried; to itself, the receiver's work only.
    void send_message(std::uint32_t message) {
        Message& m = messages_[message];
        if (stops_) [[unlikely]]
            m.life = live(m.sender);
        if (m.sender == m.receiver) {
            if (m.work == 0) return delivered(message);
            return work(m.receiver, m.work, worked, message);
        }
        const Time send = cost(m).send_ps;
        if (send == 0) return has_stopped(m.sender) ? lost(message) : carry(message);
        work(m.sender, send, posted, message);
    }

    // Handed to the sender's adapter. All that it calls is inlined: each message passes here.
    [[gnu::flatten]] void carry(std::uint32_t message) {
        Message& m = messages_[message];
        ++sent_[m.type];
        const std::uint32_t from = places_[m.sender].machine;
        if (from == places_[m.receiver].machine) return take(message);
        const MessageCost& c = cost(m);
        if (paths_.any()) [[unlikely]]
            return carry_on_faulty_path(message);
        const Passage passage = adapters_[from].send(clock.now(), c.out_ps, c.wire_ps);
        m.last_bits = passage.last_bits;
        clock.schedule(passage.first_bits, reached, message);
    }

    // A thread of the place takes up work, its own or a sender's message; when that is done, the
    // event comes.
    void work(std::uint32_t place, Time ps, std::uint32_t kind, std::uint32_t subject,
              std::uint32_t sender = Processors::none, std::uint32_t parts = 1) {
        ps *= places_[place].factor;
        if (processors_.shared(place))
            return processors_.submit(clock, place, ps, kind, subject, sender, parts);
        schedule(threads_[place].admit(clock.now(), ps), kind, subject);
    }
    // With the queue's part inlined: nearly all events are those of messages.
    [[gnu::flatten]] void schedule(Time at, std::uint32_t kind, std::uint32_t subject) {
        clock.schedule(at, kind, subject);
    }
    Time send_ps(std::uint32_t type) const { return costs_[type * entries_].send_ps; }

    bool has_stopped(std::uint32_t place) const { return stops_ && life_[place] % 2 == 1; }
    // Even while it runs; a place that comes back has another one.
    std::uint32_t life(std::uint32_t place) const { return life_[place]; }
    void stop(std::uint32_t place) {
        stops_ = true;
        ++life_[place];
    }
    void start(std::uint32_t place) { ++life_[place]; }
    // What the place's threads have not done yet is not done.
    void drop_work(std::uint32_t place) { threads_[place].drop(clock.now()); }

    void set_transport(const Transport& transport) { transport_ = transport; }
    void set_path_faults(const std::vector<PathFault>& faults, Stream losses) {
        paths_ = PathFaults(faults, losses);
        for (std::uint32_t f = 0; f < faults.size(); ++f) {
            clock.schedule(faults[f].from_ps, path_changes, f, 1);
            clock.schedule(faults[f].until_ps, path_changes, f, 0);
        }
    }
    // Until the next try; counts it.
    Time wait_ps(std::uint16_t& tries) const {
        const Time wait = transport_.wait_ps(tries);
        tries = static_cast<std::uint16_t>((tries + 1) % (transport_.retries + 1));
        return wait;
    }

    std::vector<Place> places_;
    std::vector<Message> messages_;

  private:
    const MessageCost& cost(const Message& m) const {
        return costs_[m.type * entries_ + std::min(m.items, entries_ - 1)];
    }

    bool lives_on(std::uint32_t place, std::uint32_t message) const {
        return !stops_ || life_[place] == messages_[message].life;
    }
    // Its life, or the one before where it has stopped.
    std::uint32_t live(std::uint32_t place) const { return life_[place] & ~std::uint32_t{1}; }

    // Out of the way of runs without faults.
    [[gnu::noinline, gnu::cold]] void happened_to_path(const Event& event) {
        if (event.kind == path_changes) return paths_.change(event.subject, event.data != 0);
        Message& m = messages_[event.subject];
        if (event.kind == sent_again)
            return lives_on(m.sender, event.subject) ? carry(event.subject) : lost(event.subject);
        if (event.kind == late_reached) {
            Adapter& adapter = adapters_[places_[m.receiver].machine];
            return clock.schedule(adapter.receive(clock.now(), cost(m).in_ps, m.last_bits),
                                  late_arrived, event.subject);
        }
        if (event.kind == late_arrived && !has_stopped(m.receiver)) {
            m.life = life_[m.receiver];
            if (const Time ps = cost(m).receive_ps; ps > 0)
                return work(m.receiver, ps, late_received, event.subject, m.sender, cost(m).parts);
        }
        if (has_stopped(m.receiver) || life_[m.receiver] != m.life)
            return free_message(event.subject);
        note(m);
        came_late(event.subject);
    }
    [[gnu::noinline, gnu::cold]] void carry_on_faulty_path(std::uint32_t message) {
        Message& m = messages_[message];
        const std::uint32_t from = places_[m.sender].machine, to = places_[m.receiver].machine;
        const MessageCost& c = cost(m);
        const std::int64_t factor = paths_.factor(from, to);
        const Passage passage =
            adapters_[from].send(clock.now(), factor * c.out_ps, factor * c.wire_ps);
        m.last_bits = passage.last_bits;
        m.life = live(m.sender);
        if (paths_.loses(from, to))
            return clock.schedule(passage.first_bits + wait_ps(m.tries), sent_again, message);
        const Time late = paths_.late_ps(from, to);
        m.last_bits += late;
        if (late > transport_.wait_ps(m.tries)) {
            const std::uint32_t first = new_message(m.type, m.sender, m.receiver);
            messages_[first] = messages_[message];
            clock.schedule(passage.first_bits + late, late_reached, first);
            return clock.schedule(passage.first_bits + wait_ps(messages_[message].tries),
                                  sent_again, message);
        }
        m.tries = 0;
        clock.schedule(passage.first_bits + late, reached, message);
    }

    [[gnu::noinline]] void take(std::uint32_t message) {
        Message& m = messages_[message];
        if (has_stopped(m.receiver)) return lost(message);
        if (stops_) [[unlikely]]
            m.life = life_[m.receiver];
        const MessageCost& c = cost(m);
        const Time ps = m.work + c.receive_ps;
        if (ps == 0) return deliver(message);
        work(m.receiver, ps, received, message, m.sender, c.parts);
    }
    void deliver(std::uint32_t message) {
        note(messages_[message]);
        delivered(message);
    }

    template <class Parts, class Busy>
    static std::vector<Wide> of_each(const Parts& parts, Busy busy) {
        std::vector<Wide> all;
        for (const auto& part : parts) all.push_back(busy(part));
        return all;
    }

  protected:
    Processors processors_;

  private:
    std::vector<Adapter> adapters_;     // by machine
    std::vector<FifoServers> threads_;  // by place
    std::vector<std::uint32_t> life_;   // by place: how often it stopped or came back
    bool stops_ = false;                // until a place does, all lives are 0, as in new messages
    PathFaults paths_;
    Transport transport_;
    std::vector<MessageCost> costs_;
    std::uint32_t entries_;
    std::vector<std::uint64_t> sent_;
    std::vector<std::uint32_t> free_messages_;
};

}  // namespace numatwin
