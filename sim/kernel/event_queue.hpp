// The future event list: plain events, earliest first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace numatwin {

using Time = std::int64_t;  // picoseconds

// What is to happen, and to what. Equal times are ordered by priority (lower first), then by the
// sequence in which events were scheduled: one seed gives one trace.
struct Event {
    Time time;
    std::uint64_t order;    // priority in the top 8 bits, sequence below
    std::uint32_t kind;     // what the model makes of it
    std::uint32_t subject;  // whom it is about
    std::uint64_t data;

    friend bool operator<(const Event& a, const Event& b) {
        return a.time != b.time ? a.time < b.time : a.order < b.order;
    }
};

// A 4-ary heap. No allocation once it has grown to the most events that were ever pending.
class EventQueue {
  public:
    bool empty() const { return heap_.empty(); }
    std::size_t size() const { return heap_.size(); }
    const Event& top() const { return heap_.front(); }
    void clear() { heap_.clear(); }

    void push(const Event& event) {
        std::size_t at = heap_.size();
        heap_.push_back(event);
        while (at > 0) {
            const std::size_t parent = (at - 1) / 4;
            if (!(event < heap_[parent])) break;
            heap_[at] = heap_[parent];
            at = parent;
        }
        heap_[at] = event;
    }

    Event pop() {
        const Event first = heap_.front();
        const Event last = heap_.back();
        heap_.pop_back();
        if (!heap_.empty()) sink(last);
        return first;
    }

  private:
    void sink(const Event& event) {
        std::size_t at = 0;
        for (;;) {
            const std::size_t child = 4 * at + 1;
            if (child >= heap_.size()) break;
            const std::size_t end = child + 4 < heap_.size() ? child + 4 : heap_.size();
            std::size_t least = child;
            for (std::size_t k = child + 1; k < end; ++k)
                if (heap_[k] < heap_[least]) least = k;
            if (!(heap_[least] < event)) break;
            heap_[at] = heap_[least];
            at = least;
        }
        heap_[at] = event;
    }

    std::vector<Event> heap_;
};

}  // namespace numatwin
