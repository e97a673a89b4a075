// The queues of processors that processes share, by the rules of EEVDF: who runs next, and what
// each is behind. Twin of ../reference/run_queues.py, where the rules stand.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <stdexcept>
#include <vector>

#include "kernel/described.hpp"
#include "kernel/event_queue.hpp"
#include "kernel/statistics.hpp"

namespace numatwin {

struct ProcessorSetup {
    FIELDS_OF(ProcessorSetup);
    FIELD(std::uint32_t, count, "of processors; 0: every process has one of its own");
    FIELD(Time, slice_ps, "that a process has before others that wait have theirs");
    FIELD(Time, tick_ps, "from one look at slices to the next", 4'000'000'000);
    FIELD(Time, switch_ps, "of its time, as a process takes over from another one");
    FIELD(Time, look_ps, "as it finds messages, however many");
    FIELD(std::vector<Time>, connection_ps,
          "[K] for each process that these are from, by their parts, from 1 on; beyond: the last");
    FIELD(Time, spin_ps, "that a process without work looks for more");
    FIELD(Time, sleep_ps, "for falling asleep and being woken");
    FIELD(Time, wake_ps, "from being woken on an idle processor until it runs");
    FIELD(Time, across_ps, "for each part of a message from another processor");
    FIELD(Time, notify_ps, "of the waker's time, for one on another processor");
    FIELD(Time, interrupt_ps, "for being woken from there while others run here");
    FIELD(Time, yield_ps, "for giving way");
    FIELD(bool, gives_way, "whether a process that waits for others lets them run");
    FIELD(Time, awake_ps,
          "the end of a pause, which is not slept through; nor are pauses of up to twice that",
          50'000'000);
    FIELD(std::vector<std::int64_t>, homes,
          "by process; empty: in turn; -1: shares none and is not simulated here");
    FIELD(std::vector<std::uint32_t>, groups,
          "[count] idle processors of a group serve all of it; empty: nobody moves");
    END_OF_FIELDS;

    bool operator==(const ProcessorSetup&) const = default;
};

// Processors and processes, and what happens in the queues; what takes time does processors.hpp.
class RunQueues {
  public:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

  protected:
    RunQueues(const ProcessorSetup& setup, std::size_t processes)
        : setup_(setup),
          lag_max_(std::max(2 * setup.slice_ps, setup.tick_ps)),
          processor_(setup.count),
          process_(processes) {
        if (setup.count == 0) return;
        if (setup.slice_ps <= 0 || setup.tick_ps <= 0)
            throw std::invalid_argument("processors: expected a slice and a tick above 0");
        if (!setup.homes.empty() && setup.homes.size() != processes)
            throw std::invalid_argument("processors: expected a home for each process");
        for (std::uint32_t k = 0; k < processes; ++k) {
            process_[k].home =
                setup.homes.empty() ? k % setup.count : static_cast<std::uint32_t>(setup.homes[k]);
            if (process_[k].home >= setup.count && process_[k].home != none)
                throw std::invalid_argument("processors: expected homes among them");
        }
        if (!setup.groups.empty() && setup.groups.size() != setup.count)
            throw std::invalid_argument("processors: expected a group for each of them");
    }

    // settling: it has no work, but still pays for what it did last.
    enum class State : std::uint8_t { asleep, starting, waiting, running, settling, spinning };
    struct Job {
        Time left;
        std::uint32_t kind, subject, sender, parts;
    };
    struct Process {
        std::deque<Job> own, incoming;
        std::optional<Job> current;
        State state = State::asleep;
        bool gives_way = false, woken = false;
        bool queued = false;  // it runs, waits, or sleeps beyond its share
        std::uint32_t home = 0;
        std::size_t found = 0;  // messages of the last look that are still to be handled
        Time debt = 0;          // added to what it does next
        Time rest = 0;          // of what it paid last, in time
        Time since = 0;
        Time virtual_time = 0, counted = 0;  // as of then, where it runs
        Time deadline = 0, lag = 0;
        Wide busy = 0;
    };
    struct Processor {
        std::uint32_t process = none, last = none;
        std::vector<std::uint32_t> queue;  // in the order in which they came
        Time base = 0;                     // V when it became empty
        std::uint64_t generation = 0;      // of its events: only the latest counts
        bool tick_scheduled = false;
        Time job_end = 0;
    };

    static bool runs(const Process& p) {
        return p.state == State::running || p.state == State::settling ||
               p.state == State::spinning;
    }
    static Time floor_of(Time sum, Time count) { return sum / count - (sum % count < 0 ? 1 : 0); }

    // Who runs has run up to now; ticks since then have moved its deadline on.
    void catch_up(Time now, const Processor& c) {
        if (c.process == none || !runs(process_[c.process])) return;
        Process& p = process_[c.process];
        const auto at_tick = [this](Time at) {
            return (at + setup_.tick_ps - 1) / setup_.tick_ps * setup_.tick_ps;
        };
        Time renewed = at_tick(p.counted + std::max<Time>(p.deadline - p.virtual_time, 0));
        if (renewed < now) {
            const Time each = at_tick(setup_.slice_ps);
            renewed += (now - 1 - renewed) / each * each;
            p.deadline = p.virtual_time + renewed - p.counted + setup_.slice_ps;
        }
        p.virtual_time += now - p.counted;
        p.counted = now;
    }

    Time total(const Processor& c) const {
        Time sum = 0;
        for (const std::uint32_t one : c.queue) sum += process_[one].virtual_time;
        return sum;
    }

    // How far it is behind V, times the length of the queue; below 0: beyond.
    Time behind(const Processor& c, const Process& p) const {
        return total(c) - static_cast<Time>(c.queue.size()) * p.virtual_time;
    }

    void remove(Processor& c, std::uint32_t process) {
        c.queue.erase(std::find(c.queue.begin(), c.queue.end(), process));
        process_[process].queued = false;
        if (c.queue.empty()) c.base = process_[process].virtual_time;
    }

    // So far behind V once it is there: its coming moves V back by a part of that.
    void place(Processor& c, std::uint32_t process, Time lag) {
        Process& p = process_[process];
        p.virtual_time = c.base;
        if (const auto number = static_cast<Time>(c.queue.size()); number > 0)
            p.virtual_time = floor_of(total(c), number) - floor_of(lag * (number + 1), number);
        p.deadline = p.virtual_time + setup_.slice_ps;
        p.queued = true;
        c.queue.push_back(process);
    }

    // Who runs next. Sleepers whose turn it would be leave.
    std::uint32_t pick(Processor& c) {
        while (!c.queue.empty()) {
            const Time sum = total(c), number = static_cast<Time>(c.queue.size());
            // Of equal deadlines another one's than that of who runs, then who came first.
            std::uint32_t best = none;
            const auto comes_before = [&](std::uint32_t one) {
                if (best == none) return true;
                const Time deadline = process_[one].deadline, first = process_[best].deadline;
                return deadline < first || (deadline == first && best == c.process);
            };
            for (const std::uint32_t one : c.queue)
                if (process_[one].virtual_time * number <= sum && comes_before(one)) best = one;
            if (process_[best].state != State::asleep) return best;
            remove(c, best);
            process_[best].lag = 0;
        }
        return none;
    }

    // The deadline, once a slice is used up.
    bool renew(Process& p) const {
        if (p.virtual_time < p.deadline) return false;
        p.deadline = p.virtual_time + setup_.slice_ps;
        return true;
    }

    bool has_waiting(const Processor& c) const {
        return std::ranges::any_of(
            c.queue, [this](std::uint32_t one) { return process_[one].state == State::waiting; });
    }

    const ProcessorSetup setup_;
    const Time lag_max_;
    std::vector<Processor> processor_;
    std::vector<Process> process_;
};

}  // namespace numatwin
