// The clock and the event loop that all models share.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "kernel/event_queue.hpp"
#include "kernel/timers.hpp"

namespace numatwin {

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
//     model.clock.run(model, until, interrupt);
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
