// Servers that serve in order of arrival: a NIC, a link, a core; and groups of k with one queue.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "kernel/event_queue.hpp"
#include "kernel/statistics.hpp"

namespace numatwin {

// Who arrives first is served first, and how long it takes is known on arrival. So the end of a
// job is known on arrival too (Lindley's recursion):
//
//     start = max(now, end of the job before),  end = start + service
//
// and one event, at its end, is all that a job costs. Nothing is queued here.
class FifoServer {
  public:
    // A job arrives; returns when it ends. Arrivals come in order of time.
    Time admit(Time now, Time service) {
        const Time start = std::max(now, free_at_);
        admitted_ += service;
        return free_at_ = start + service;
    }

    // Busy time up to now: what was admitted, less what still lies ahead.
    Wide busy_ps(Time now) const { return admitted_ - std::max<Time>(free_at_ - now, 0); }

  private:
    Time free_at_ = 0;
    Wide admitted_ = 0;  // service times
};

// k alike servers with one queue: a job goes to the one that is free first.
class FifoServers {
  public:
    explicit FifoServers(std::size_t servers) : free_at_(servers), heap_(servers) {
        if (servers == 0) throw std::invalid_argument("servers: expected at least 1, got 0");
        for (std::size_t s = 0; s < servers; ++s) heap_[s] = static_cast<std::uint32_t>(s);
    }

    // A job arrives; returns when it ends. Arrivals come in order of time.
    Time admit(Time now, Time service) {
        const std::uint32_t server = heap_.front();
        const Time start = std::max(now, free_at_[server]);
        admitted_ += service;
        const Time end = start + service;
        free_at_[server] = end;
        sink();
        return end;
    }

    // What they have not done yet is dropped.
    void drop(Time now) {
        admitted_ = busy_ps(now);
        for (Time& free : free_at_) free = std::min(free, now);
        for (std::size_t s = 0; s < heap_.size(); ++s) heap_[s] = static_cast<std::uint32_t>(s);
        std::ranges::sort(heap_, [this](auto a, auto b) { return before(a, b); });
    }

    Wide busy_ps(Time now) const {
        Wide ahead = 0;
        for (const Time free : free_at_) ahead += std::max<Time>(free - now, 0);
        return admitted_ - ahead;
    }

  private:
    bool before(std::uint32_t a, std::uint32_t b) const {
        return free_at_[a] != free_at_[b] ? free_at_[a] < free_at_[b] : a < b;
    }
    void sink() {
        const std::uint32_t server = heap_.front();
        std::size_t at = 0;
        for (;;) {
            std::size_t child = 2 * at + 1;
            if (child >= heap_.size()) break;
            if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child])) ++child;
            if (!before(heap_[child], server)) break;
            heap_[at] = heap_[child];
            at = child;
        }
        heap_[at] = server;
    }

    std::vector<Time> free_at_;
    std::vector<std::uint32_t> heap_;  // servers, the first to be free on top
    Wide admitted_ = 0;                // service times
};

// A first-come-first-served server without an event of its own.

// Nearest picosecond of a time that is not negative.
inline Time rounded_ps(double time) {
    return static_cast<Time>(time + 0.5);
}

// Users come with small pieces of work, each of which waits for those before it: over many pieces
// all get equal shares, and nobody gets more than the server can do.
class Backlog {
  public:
    // When `work` that comes at `now` is done.
    Time serve(Time now, Time work) {
        free_ = std::max(free_, now) + work;
        taken_ += work;
        return free_;
    }
    Time free() const { return free_; }
    // Work taken on since the count began.
    Time taken() const { return taken_; }
    // Work taken on since the count began that was done by `now`.
    Time done(Time now) const { return taken_ - std::max<Time>(free_ - now, 0) + before_; }
    void start_counting(Time now) {
        taken_ = 0;
        before_ = std::max<Time>(free_ - now, 0);
    }

  private:
    Time free_ = 0;
    Time taken_ = 0;
    Time before_ = 0;  // left of what came before the count began
};

}  // namespace numatwin
