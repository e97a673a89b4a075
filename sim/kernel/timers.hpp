// Timers: scheduled events that can be cancelled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/event_queue.hpp"

namespace numatwin {

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

}  // namespace numatwin
