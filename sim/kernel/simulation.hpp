// The clock and the event loop that all models share.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "event_queue.hpp"

namespace numatwin {

// A model that threw, with where and when: what is needed to see it happen again.
class ModelError : public std::runtime_error {
  public:
    ModelError(Time time, const Event& event, const std::string& what)
        : std::runtime_error(what + " (at " + std::to_string(time) + " ps, event kind " +
                             std::to_string(event.kind) + " of subject " +
                             std::to_string(event.subject) + ")") {}
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
//         Simulation clock;
//     };
//     model.clock.run(model, until, interrupt);
class Simulation {
  public:
    static constexpr std::uint8_t ordinary = 128;  // the priority of most events; lower is earlier

    Time now() const { return now_; }
    std::uint64_t events() const { return events_; }  // handled so far
    bool idle() const { return queue_.empty(); }
    std::size_t pending() const { return queue_.size(); }

    void schedule(Time at, std::uint32_t kind, std::uint32_t subject = 0, std::uint64_t data = 0,
                  std::uint8_t priority = ordinary) {
        queue_.push(
            {at, (static_cast<std::uint64_t>(priority) << 56) | sequence_++, kind, subject, data});
    }

    // A model asks for the control plane: `run` returns once the event at hand is handled.
    void halt() { halted_ = true; }

    // Handles all events before `until`, then stands at `until`: what is due then comes after what
    // the control plane does at that time. False where it was interrupted or halted before; now()
    // is then the time of the last event.
    template <class Model>
    bool run(Model& model, Time until, Interrupt* interrupt = nullptr) {
        std::uint64_t ask = events_ + interval;
        while (!queue_.empty() && queue_.top().time < until) {
            if (interrupt && events_ >= ask) {
                if (interrupt->requested()) return false;
                ask = events_ + interval;
            }
            const Event event = queue_.pop();
            now_ = event.time;
            ++events_;
            try {
                model.handle(event);
            } catch (const ModelError&) {
                throw;
            } catch (const std::exception& failure) {
                throw ModelError(now_, event, failure.what());
            }
            if (halted_) {
                halted_ = false;
                return false;
            }
        }
        now_ = until;
        return true;
    }

  private:
    static constexpr std::uint64_t interval = 4096;  // events between two looks at the interrupt

    EventQueue queue_;
    Time now_ = 0;
    std::uint64_t sequence_ = 0;
    std::uint64_t events_ = 0;
    bool halted_ = false;
};

}  // namespace numatwin
