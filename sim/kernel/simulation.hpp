// The clock and the event loop that all models share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernel/event_queue.hpp"

namespace numatwin {

// Timers: scheduled events that can be cancelled.

// Names one timer for good: the place of its record, and how often that place was used before. So
// an old name never cancels a later timer.
using Timer = std::uint64_t;
constexpr Timer no_timer = ~Timer{0};

// A timer's event waits in the queue under a kind of its own and names a record here, which says
// what is to happen. Cancelling empties the record and leaves the event where it is; it is dropped
// when it comes up, or with all others of its like once they are more than half of the queue. So
// cancelling costs O(1), and the queue is never more than about twice as long as what is pending.
class TimerTable {
  public:
    static constexpr std::uint32_t kind = ~std::uint32_t{0};  // of events that are timers

    // The event as it goes into the queue; writes the timer's name.
    Event enter(const Event& event, Timer& name) {
        if (unused_.empty()) {
            unused_.push_back(static_cast<std::uint32_t>(record_.size()));
            record_.push_back({0, 0, 0, 0});
            unused_.reserve(record_.capacity());
        }
        const std::uint32_t place = unused_.back();
        unused_.pop_back();
        Record& record = record_[place];
        record = {event.order, event.kind, event.subject, record.generation};
        name = static_cast<Timer>(record.generation) << 32 | place;
        return {event.time, event.order, kind, place, event.data};
    }

    bool is_pending(Timer name) const {
        const std::size_t place = place_of(name);
        return place < record_.size() && record_[place].generation == name >> 32 &&
               record_[place].order != none;
    }

    // False if it went off, or was cancelled, before.
    bool cancel(Timer name) {
        if (!is_pending(name)) return false;
        release(place_of(name));
        ++cancelled_;
        return true;
    }

    // A timer's event came up. False if it was cancelled; else it is what was scheduled.
    bool resolve(Event& event) {
        if (is_cancelled(event)) {
            --cancelled_;
            return false;
        }
        const std::uint32_t place = event.subject;
        event.kind = record_[place].kind;
        event.subject = record_[place].subject;
        release(place);
        return true;
    }

    std::size_t cancelled() const { return cancelled_; }  // and still in the queue

    void purge(EventQueue& queue) {
        queue.remove_if([this](const Event& e) { return e.kind == kind && is_cancelled(e); });
        cancelled_ = 0;
    }
    bool purge_is_due(const EventQueue& queue) const {
        return cancelled_ > few && 2 * cancelled_ > queue.size();
    }

  private:
    static constexpr std::size_t few = 32;
    static constexpr std::uint64_t none = ~std::uint64_t{0};  // no event has this order

    struct Record {
        std::uint64_t order;  // of its event: no two events have the same
        std::uint32_t kind;
        std::uint32_t subject;
        std::uint32_t generation;
    };

    static std::size_t place_of(Timer name) { return name & 0xFFFFFFFF; }
    bool is_cancelled(const Event& event) const {
        return record_[event.subject].order != event.order;
    }
    void release(std::size_t place) {
        record_[place].order = none;
        ++record_[place].generation;
        unused_.push_back(static_cast<std::uint32_t>(place));
    }

    std::vector<Record> record_;
    std::vector<std::uint32_t> unused_;
    std::size_t cancelled_ = 0;
};

// A model that threw, with the seed, the time and the event: what is needed to see it again.
class ModelError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Asked now and then while a simulation advances; true stops it between two events, and it can be
// continued.
class Interrupt {
  public:
    virtual ~Interrupt() = default;
    virtual bool requested() = 0;
};

// A model is a state machine: `void handle(const Event&)`, which may schedule more events. It is
// known at compile time, so that handling an event is no virtual call.
//
//     class Model {
//         void handle(const Event& event);
//         static const char* event_name(std::uint32_t kind);  // optional, for error messages
//         bool prefetches() const;                              // optional, both: whether to
//         void prefetch(const EventQueue::Rising& soon) const;  // prefetch for events soon due
//         Simulation clock;
//     };
//     model.clock.run(model, until, interrupt);  // best as an extern template beside handle()
//
// Where it is stopped, and how often, makes no difference to what happens.
class Simulation {
  public:
    static constexpr std::uint8_t ordinary = 128;  // the priority of most events; lower is earlier

    // Seed and replication are only told in error messages: streams are handed to the model.
    explicit Simulation(std::uint64_t seed = 0, std::uint64_t replication = 0)
        : seed_(seed), replication_(replication) {}

    Time now() const { return now_; }
    std::uint64_t events() const { return events_; }  // handled so far
    bool idle() const { return pending() == 0; }
    std::size_t pending() const { return queue_.size() - timers_.cancelled(); }

    // At now or later; kinds are below 2^32 - 1.
    void schedule(Time at, std::uint32_t kind, std::uint32_t subject = 0, std::uint64_t data = 0,
                  std::uint8_t priority = ordinary) {
        queue_.push(next_event(at, kind, subject, data, priority));
    }

    // A model asks for the control plane: `run` returns once the event at hand is handled.
    void halt() { halted_ = true; }

    Timer schedule_timer(Time at, std::uint32_t kind, std::uint32_t subject = 0,
                         std::uint64_t data = 0, std::uint8_t priority = ordinary) {
        Timer name;
        queue_.push(timers_.enter(next_event(at, kind, subject, data, priority), name));
        return name;
    }

    // False if the timer went off, or was cancelled, before (and for no_timer). A cancelled timer
    // is no event: it is not counted, and nothing is pending where nothing else is.
    bool cancel(Timer timer) {
        if (!timers_.cancel(timer)) return false;
        if (timers_.purge_is_due(queue_)) timers_.purge(queue_);
        return true;
    }
    bool is_pending(Timer timer) const { return timers_.is_pending(timer); }

    // Handles all events before `until`, then stands at `until`: what is due then comes after what
    // the control plane does at that time. Until `never`: handles all there are, and stands at the
    // last. False where it was interrupted or halted before; now() is then the time of the last
    // event. Throws ModelError where the model throws; the model cannot be run after that.
    template <class Model>
    bool run(Model& model, Time until, Interrupt* interrupt = nullptr) {
        if (failed_) throw ModelError("the model has failed before" + where());
        if (until < now_) {
            throw std::invalid_argument("until: expected a time from " + std::to_string(now_) +
                                        " ps on, got " + std::to_string(until));
        }
        std::uint64_t ask = events_ + interval;
        while (queue_.top().time < until) {
            if (interrupt && events_ >= ask) {
                if (interrupt->requested()) return false;
                ask = events_ + interval;
            }
            if constexpr (requires { model.prefetches(); })
                if (model.prefetches()) model.prefetch(queue_.rising());
            Event event = queue_.pop();
            if (event.kind == TimerTable::kind && !timers_.resolve(event)) continue;
            now_ = event.time;
            ++events_;
            try {
                model.handle(event);
            } catch (const std::exception& failure) {
                failed_ = true;
                std::string name = "kind " + std::to_string(event.kind);
                if constexpr (requires { Model::event_name(event.kind); })
                    name = std::string(Model::event_name(event.kind));
                throw ModelError(std::string(failure.what()) + " in event " + name +
                                 " of subject " + std::to_string(event.subject) + where());
            }
            if (halted_) {
                halted_ = false;
                return false;
            }
        }
        if (until != never) now_ = until;
        return true;
    }

  private:
    static constexpr Time latest = Time{1} << 62;  // so that sums of times stay in range
    static constexpr std::uint64_t interval = 64;  // events between two looks at the interrupt

    Event next_event(Time at, std::uint32_t kind, std::uint32_t subject, std::uint64_t data,
                     std::uint8_t priority) {
        if (at < now_ || at > latest) [[unlikely]] {
            throw std::logic_error(at < now_ ? "an event is scheduled for the past"
                                             : "an event is scheduled beyond 2^62 ps (53 days)");
        }
        return {at, static_cast<std::uint64_t>(priority) << 56 | sequence_++, kind, subject, data};
    }

    std::string where() const {
        return " (seed " + std::to_string(seed_) + ", replication " + std::to_string(replication_) +
               ", at " + std::to_string(now_) + " ps, event number " + std::to_string(events_) +
               ")";
    }

    EventQueue queue_;
    TimerTable timers_;
    Time now_ = 0;
    std::uint64_t sequence_ = 0;
    std::uint64_t events_ = 0;
    std::uint64_t seed_;
    std::uint64_t replication_;
    bool failed_ = false;
    bool halted_ = false;
};

}  // namespace numatwin
