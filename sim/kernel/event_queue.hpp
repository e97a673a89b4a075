// The future event list: plain events, earliest first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace numatwin {

using Time = std::int64_t;  // picoseconds
constexpr Time never = std::numeric_limits<Time>::max();

// What is to happen, and to what. Equal times are ordered by priority (lower first), then by the
// sequence in which events were scheduled: one seed gives one trace.
struct Event {
    Time time;
    std::uint64_t order;    // priority in the top 8 bits, sequence below
    std::uint32_t kind;     // what the model makes of it
    std::uint32_t subject;  // whom it is about
    std::uint64_t data;

    // Times and orders as one number, so that comparing two events takes no branch: which one is
    // earlier cannot be predicted.
    unsigned __int128 key() const {
        return static_cast<unsigned __int128>(static_cast<std::uint64_t>(time)) << 64 | order;
    }
    friend bool operator<(const Event& a, const Event& b) { return a.key() < b.key(); }
};

// A 4-ary heap of events (LaMarca and Ladner, The influence of caches on the performance of heaps,
// JEA 1996) with two changes:
//
// - pop() leaves a hole at the root. The next push() fills it from above, as most events schedule
//   one other: this *hold* costs one way down the heap, instead of one down and one up.
// - The places behind the last event hold events that never happen, so that every parent has four
//   children, and the least of four is found without a branch.
//
// Times are not negative. No allocation once it has grown to the most events ever pending.
class EventQueue {
  public:
    EventQueue() { heap_.resize(children + 1, nothing()); }

    bool empty() const { return size() == 0; }
    std::size_t size() const { return used_ - hole_; }
    void clear() {
        heap_.assign(heap_.size(), nothing());
        used_ = hole_ = 0;
    }

    // The earliest event; one that never happens if there is none.
    const Event& top() {
        if (hole_) fill_hole();
        return heap_.front();
    }

    void push(const Event& event) {
        if (hole_) {
            hole_ = 0;
            sink(event);
            return;
        }
        std::size_t at = used_++;
        if (used_ + children > heap_.size()) heap_.resize(2 * heap_.size(), nothing());
        while (at > 0) {
            const std::size_t parent = (at - 1) / children;
            if (!(event < heap_[parent])) break;
            heap_[at] = heap_[parent];
            at = parent;
        }
        heap_[at] = event;
    }

    // The earliest event, which leaves; the queue must not be empty.
    Event pop() {
        if (hole_) fill_hole();
        hole_ = 1;
        return heap_.front();
    }

    // Events that moved towards the root when the last one left: ones that are among the first 5
    // or so, 20 and 80; maybe again, and maybe one that never happens. To be called after top().
    struct Rising {
        const Event &near, &halfway, &far;
    };
    Rising rising() const {
        constexpr std::size_t one = children, two = children * (one + 1),
                              three = children * (two + 1);
        std::size_t far = sunk_;
        while (far > three) far = (far - 1) / children;
        const std::size_t halfway = far > two ? (far - 1) / children : far;
        const std::size_t near = halfway > one ? (halfway - 1) / children : halfway;
        return {heap_[near], heap_[halfway], heap_[far]};
    }

    // Takes out all events for which this holds. Costs as much as a look at each event.
    template <class Predicate>
    void remove_if(Predicate holds) {
        if (hole_) fill_hole();
        std::size_t kept = 0;
        for (std::size_t at = 0; at < used_; ++at)
            if (!holds(heap_[at])) heap_[kept++] = heap_[at];
        for (std::size_t at = kept; at < used_; ++at) heap_[at] = nothing();
        used_ = kept;
        for (std::size_t at = used_ / children + 1; at-- > 0;) sink(Event(heap_[at]), at);
    }

  private:
    static constexpr std::size_t children = 4;
    static constexpr Event nothing() {
        return {never, std::numeric_limits<std::uint64_t>::max(), 0, 0, 0};
    }

    void fill_hole() {
        hole_ = 0;
        const Event last = heap_[--used_];
        heap_[used_] = nothing();
        if (used_ > 0) sink(last);
    }

    // Moves least children up until the event has its place, from `at` down.
    void sink(const Event event, std::size_t at = 0) {
        Event* const heap = heap_.data();
        for (;;) {
            const std::size_t child = children * at + 1;
            if (child >= used_) break;
            const std::size_t least = child + least_of(heap + child);
            if (!(heap[least] < event)) break;
            heap[at] = heap[least];
            at = least;
        }
        heap[at] = event;
        sunk_ = at;
    }

    // Which of four comes first. Which one that is cannot be predicted, so this takes no branch but
    // one for equal times, and few steps that wait for each other.
    static std::size_t least_of(const Event* four) {
        const Time t0 = four[0].time, t1 = four[1].time, t2 = four[2].time, t3 = four[3].time;
        const Time a = std::min(t0, t1), b = std::min(t2, t3);
        if ((t0 == t1) | (t2 == t3) | (a == b)) [[unlikely]] {
            const std::size_t one = four[1] < four[0], other = 2 + (four[3] < four[2]);
            return four[other] < four[one] ? other : one;
        }
        const std::size_t one = t1 < t0, other = 2 + static_cast<std::size_t>(t3 < t2);
        const std::size_t second = -static_cast<std::size_t>(b < a);
        return one ^ ((one ^ other) & second);
    }

    std::vector<Event> heap_;
    std::size_t used_ = 0;  // places, of which the first is empty where there is a hole
    std::size_t hole_ = 0;  // 0 or 1
    std::size_t sunk_ = 0;  // where the last sink ended: what lies above it has moved up
};

}  // namespace numatwin
