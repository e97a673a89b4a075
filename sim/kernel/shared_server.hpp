// Processor-sharing servers: a memory controller, a core with many threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "kernel/event_queue.hpp"

namespace numatwin {

// Egalitarian processor sharing with caps: of n jobs each gets the same rate, but no job more than
// its cap, and what capped jobs leave goes to the others (max-min fair). With classes c of n_c jobs
// with the same cap_c, the rate of a class is min(cap_c, L), where the level L solves
//
//     sum over c of n_c * min(cap_c, L) = capacity
//
// (no limit, if all caps together are below it). Jobs of one class progress alike, so a class has a
// *virtual time* V: the work that a job done now would have got, had it been there for as long as
// the class has not been empty. A job that arrives at V with work w ends when V = V_arrival + w
// (Kleinrock and Muntz, JACM 1972): a step costs O(classes + log jobs), whatever the rates do.
//
// Units: work in the caller's unit, rates in work per picosecond. Doubles, with nothing but
// + - * / and ceil: the same sequence of operations in Python gives the same bits. The end of a job
// is rounded up to a whole picosecond.
class SharedServer {
  public:
    static constexpr double no_cap = std::numeric_limits<double>::infinity();

    explicit SharedServer(double capacity) : capacity_(capacity) {
        if (!(capacity > 0 && capacity < no_cap))
            throw std::invalid_argument("capacity: expected a finite rate above 0");
    }

    std::size_t jobs() const { return jobs_; }
    double capacity() const { return capacity_; }
    // Also 0: then nobody gets on.
    void set_capacity(Time now, double capacity) {
        if (!(capacity >= 0 && capacity < no_cap))
            throw std::invalid_argument("capacity: expected a finite rate of at least 0");
        progress(now);
        capacity_ = capacity;
        share();
    }

    // A job arrives. Times of calls do not fall.
    void admit(Time now, std::uint64_t job, double work, double cap = no_cap) {
        progress(now);
        Class& among = class_of(cap);
        among.heap.push_back({among.virtual_work + work, sequence_++, job});
        std::push_heap(among.heap.begin(), among.heap.end(), later);
        ++jobs_;
        share();
    }

    // When the next job ends if none arrives before; `never` if there is none.
    Time next_end() const { return next_end_; }

    // The job that ends at next_end() leaves. Where several end at one time, each takes a call.
    std::uint64_t finish(Time now) {
        progress(now);
        Class& among = class_[next_class_];
        // Rounding may leave a crumb of its work, or of that of those that follow.
        among.virtual_work = std::max(among.virtual_work, among.heap.front().end);
        std::pop_heap(among.heap.begin(), among.heap.end(), later);
        const std::uint64_t job = among.heap.back().job;
        among.heap.pop_back();
        if (among.heap.empty()) among.virtual_work = 0;
        --jobs_;
        share();
        return job;
    }

    // Work done so far, in all; rate now, over all jobs.
    double work_done(Time now) const {
        return done_ + total_rate_ * static_cast<double>(now - since_);
    }
    double rate() const { return total_rate_; }

  private:
    static constexpr double far = 0x1p62;  // picoseconds, 53 days: so long a wait never ends

    struct Job {
        double end;  // on the clock of virtual_work
        std::uint64_t sequence;
        std::uint64_t job;
    };
    struct Class {
        double cap;
        double rate;
        double virtual_work;
        std::vector<Job> heap;  // the first to end on top
    };

    static bool later(const Job& a, const Job& b) {
        return a.end != b.end ? a.end > b.end : a.sequence > b.sequence;
    }

    // Classes stay, in rising order of their caps: there are few.
    Class& class_of(double cap) {
        auto at = std::lower_bound(class_.begin(), class_.end(), cap,
                                   [](const Class& c, double value) { return c.cap < value; });
        if (at == class_.end() || at->cap != cap) {
            if (!(cap > 0)) throw std::invalid_argument("cap: expected a rate above 0");
            at = class_.insert(at, {cap, 0, 0, {}});
        }
        return *at;
    }

    void progress(Time now) {
        const auto passed = static_cast<double>(now - since_);
        since_ = now;
        if (passed == 0) return;
        done_ += total_rate_ * passed;
        for (Class& among : class_)
            if (!among.heap.empty()) among.virtual_work += among.rate * passed;
    }

    // Rates anew, and who ends first.
    void share() {
        double left = capacity_;
        auto others = static_cast<double>(jobs_);
        next_end_ = never;
        total_rate_ = 0;
        double soonest = std::numeric_limits<double>::infinity();
        for (std::size_t c = 0; c < class_.size(); ++c) {
            Class& among = class_[c];
            if (among.heap.empty()) continue;
            const auto jobs = static_cast<double>(among.heap.size());
            among.rate = std::min(among.cap, left / others);
            left -= among.rate * jobs;
            others -= jobs;
            total_rate_ += among.rate * jobs;
            const double missing = among.heap.front().end - among.virtual_work;
            const double wait = missing > 0 ? std::ceil(missing / among.rate) : 0.0;
            if (wait < soonest) {
                soonest = wait;
                next_class_ = c;
                next_end_ = wait < far ? since_ + static_cast<Time>(wait) : never;
            }
        }
    }

    std::vector<Class> class_;
    double capacity_;
    double done_ = 0;
    double total_rate_ = 0;
    Time since_ = 0;
    Time next_end_ = never;
    std::size_t next_class_ = 0;
    std::size_t jobs_ = 0;
    std::uint64_t sequence_ = 0;
};

}  // namespace numatwin
