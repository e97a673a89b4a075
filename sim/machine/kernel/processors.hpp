// Processors that processes share, as Linux shares them since 6.6: EEVDF.
//
// Each process has its home, a processor with a queue of its own, and may be moved to another one
// at any time: what it does goes on there in its turn. Within a group of processors those that have
// to wait move to idle ones. A process whose home is `none` shares no processor: it is not played
// here. The rules stand in
// machine/reference/processors.py; events come in the same order. What it costs:
//
//     another process takes over a processor       switch_over of its time
//     messages are found, however many             look of the process's time, and
//                                                  connection for each that they are from
//     falling asleep and being woken               sleep of the sleeper's time
//     a message comes from another processor       across of the receiver's time for each part
//     waking one on another processor              notify of the waker's time, at once
//     being woken from another processor           interrupt of the sleeper's time
//     being woken on an idle processor             wake until it runs, instead
//     giving way, whether or not another waits    yield of the process's time
//
// Messages that came are handled in the order in which they came, after what the process has to do
// on its own (what it answers to the one before).
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "kernel/described.hpp"
#include "kernel/simulation.hpp"
#include "kernel/statistics.hpp"

namespace numatwin {

// machine/processors.py. None: every process has one of its own.
struct ProcessorSetup {
    FIELDS_OF(ProcessorSetup);
    FIELD(std::uint32_t, count, "of processors; 0: every process has one of its own");
    FIELD(Time, slice_ps, "that a process has before others that wait have theirs");
    FIELD(Time, tick_ps, "from one look at slices to the next");
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
    FIELD(Time, awake_ps, "the end of a pause, which is not slept through");
    FIELD(std::vector<std::uint32_t>, homes, "by process; empty: in turn; 2^32 - 1: shares none");
    FIELD(std::vector<std::uint32_t>, groups,
          "[count] processors of one group have its idle ones in common; empty: nobody moves");
    END_OF_FIELDS;
};

class Processors {
  public:
    static constexpr std::uint32_t none = ~std::uint32_t{0};
    // Kinds of the events that their owner hands back to handle().
    struct Kinds {
        std::uint32_t run_over, tick, wake_over;
    };

    Processors(const ProcessorSetup& setup, std::size_t processes, Kinds kinds)
        : setup_(setup),
          kinds_(kinds),
          lag_max_(std::max(2 * setup.slice_ps, setup.tick_ps)),
          processor_(setup.count),
          process_(processes),
          parts_(processes) {
        if (setup.count == 0) return;
        if (setup.slice_ps <= 0 || setup.tick_ps <= 0)
            throw std::invalid_argument("processors: expected a slice and a tick above 0");
        if (!setup.homes.empty() && setup.homes.size() != processes)
            throw std::invalid_argument("processors: expected a home for each process");
        for (std::uint32_t k = 0; k < processes; ++k) {
            process_[k].home = setup.homes.empty() ? k % setup.count : setup.homes[k];
            if (process_[k].home >= setup.count && process_[k].home != none)
                throw std::invalid_argument("processors: expected homes among them");
        }
        if (!setup.groups.empty() && setup.groups.size() != setup.count)
            throw std::invalid_argument("processors: expected a group for each of them");
    }

    // Whether a process shares them with others; else it has one of its own.
    bool shared(std::uint32_t process) const {
        return !processor_.empty() && process_[process].home != none;
    }
    std::size_t count() const { return processor_.size(); }

    // A process has work to do; when that is done, the event comes. `sender`: whose message it is
    // (none: the process's own work), of so many parts.
    void submit(Simulation& clock, std::uint32_t process, Time ps, std::uint32_t kind,
                std::uint32_t subject, std::uint32_t sender = none, std::uint32_t parts = 1) {
        Process& p = process_[process];
        if (sender != none && process_[sender].home != p.home) ps += parts * setup_.across_ps;
        (sender == none ? p.own : p.incoming).push_back({ps, kind, subject, sender, parts});
        take_up(clock, process, sender);
    }

    // Before its next work a process lets those run who wait.
    void give_way(std::uint32_t process) {
        process_[process].gives_way = true;
        process_[process].debt += setup_.yield_ps;
    }

    // The process has another home from now on.
    void move(Simulation& clock, std::uint32_t process, std::uint32_t processor) {
        if (processor >= setup_.count)
            throw std::invalid_argument("processors: expected homes among them");
        Process& p = process_[process];
        if (p.home == processor) return;
        const std::uint32_t before = p.home;
        Processor& from = processor_[before];
        count(clock.now(), from);
        const bool starts = p.state == State::starting, was_on = from.process == process;
        if (starts) {  // it is woken there instead
            from.process = none;
            ++from.generation;
        } else if (was_on) {
            interrupt(clock, before);
        }
        if (p.queued) {
            const Time lag = floor_of(behind(from, p), static_cast<Time>(from.queue.size()));
            p.lag = p.state == State::asleep ? 0 : std::clamp(lag, -lag_max_, lag_max_);
            remove(from, process);
        }
        p.home = processor;
        if (p.state != State::asleep) {
            Processor& to = processor_[processor];
            count(clock.now(), to);
            place(to, process, p.lag);
            if (to.process != none)
                wait_for_turn(clock, process);
            else if (starts)
                begin_waking(clock, process);
            else
                put_on(clock, processor, process);
        }
        if (const std::uint32_t following = was_on ? pick(from) : none; following != none)
            put_on(clock, before, following);
    }

    bool gives_way(std::uint32_t process) const { return process_[process].gives_way; }

    void handle(Simulation& clock, const Event& event) {
        Processor& c = processor_[event.subject];
        if (event.kind == kinds_.tick) return tick(clock, event.subject);
        if (c.generation != event.data) return;  // it was interrupted before
        if (event.kind == kinds_.wake_over) return put_on(clock, event.subject, c.process);
        Process& p = process_[c.process];
        if (p.state == State::spinning) return fall_asleep(clock, event.subject);
        if (p.state == State::settling) return settled(clock, event.subject);
        const Job done = *p.current;
        p.current.reset();
        clock.schedule(clock.now(), done.kind, done.subject);
        begin(clock, event.subject);
    }

    // On a processor, by process.
    std::vector<Wide> busy_ps(Time now) const {
        std::vector<Wide> all;
        for (const Process& p : process_) all.push_back(p.busy + (runs(p) ? now - p.since : 0));
        return all;
    }
    // Of processors, whichever process ran there.
    std::vector<Wide> processors_busy_ps(Time now) const {
        std::vector<Wide> all;
        for (const Processor& c : processor_) {
            const bool is_on = c.process != none && runs(process_[c.process]);
            all.push_back(c.busy + (is_on ? now - process_[c.process].since : 0));
        }
        return all;
    }

  private:
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
        Wide busy = 0;
    };

    void take_up(Simulation& clock, std::uint32_t process, std::uint32_t sender) {
        switch (process_[process].state) {
            case State::spinning:
                return go_on(clock, process);
            case State::asleep:
                return wake(clock, process, sender);
            default:
                return;
        }
    }

    static bool runs(const Process& p) {
        return p.state == State::running || p.state == State::settling ||
               p.state == State::spinning;
    }
    static Time floor_of(Time sum, Time count) { return sum / count - (sum % count < 0 ? 1 : 0); }

    // The queue.

    // Who runs has run up to now; ticks since then have moved its deadline on.
    void count(Time now, const Processor& c) {
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

    void wake(Simulation& clock, std::uint32_t process, std::uint32_t sender) {
        Process& p = process_[process];
        if (processor_[p.home].process != none) {
            const std::uint32_t idle = idle_sibling(p.home);
            if (idle != none) move(clock, process, idle);
        }
        Processor& c = processor_[p.home];
        p.debt += setup_.sleep_ps;
        p.woken = true;
        count(clock.now(), c);
        if (!p.queued) {
            place(c, process, p.lag);
        } else if (behind(c, p) > 0) {
            remove(c, process);
            place(c, process, 0);
        }
        if (sender != none && process_[sender].home != p.home) {
            process_[sender].debt += setup_.notify_ps;
            if (process_[sender].state == State::spinning)
                begin(clock, process_[sender].home);  // at once, before it looks for work
        }
        if (c.process == none) return begin_waking(clock, process);
        if (sender != none && process_[sender].home != p.home) p.debt += setup_.interrupt_ps;
        wait_for_turn(clock, process);
    }

    // On an idle processor.
    void begin_waking(Simulation& clock, std::uint32_t process) {
        Process& p = process_[process];
        Processor& c = processor_[p.home];
        p.state = State::starting;
        c.process = process;
        clock.schedule(clock.now() + setup_.wake_ps, kinds_.wake_over, p.home, ++c.generation);
    }

    // It is in the queue of a processor that another one has: maybe it is its turn.
    void wait_for_turn(Simulation& clock, std::uint32_t process) {
        Process& p = process_[process];
        Processor& c = processor_[p.home];
        p.state = State::waiting;
        Process& runner = process_[c.process];
        if (runner.state == State::starting) return;
        const bool renewed = renew(runner);
        if (renewed || behind(c, runner) < 0) {  // else it is protected
            const std::uint32_t following = pick(c);
            if (following == process || renewed) switch_to(clock, p.home, following);
        }
        schedule_tick(clock, p.home);
    }

    void fall_asleep(Simulation& clock, std::uint32_t processor) {
        Processor& c = processor_[processor];
        Process& p = process_[c.process];
        count(clock.now(), c);
        p.state = State::asleep;
        if (const Time left = behind(c, p); left >= 0) {
            p.lag = std::min(left / static_cast<Time>(c.queue.size()), lag_max_);
            remove(c, c.process);
        }
        leave(clock, processor);
        const std::uint32_t following = pick(c);
        if (following != none) return put_on(clock, processor, following);
        const std::uint32_t waiting = waiting_on_sibling(processor);
        if (waiting != none) move(clock, waiting, processor);
    }

    // Groups.

    // The first idle processor of that one's group.
    std::uint32_t idle_sibling(std::uint32_t processor) const {
        if (setup_.groups.empty()) return none;
        for (std::uint32_t at = 0; at < processor_.size(); ++at)
            if (setup_.groups[at] == setup_.groups[processor] && processor_[at].process == none)
                return at;
        return none;
    }

    // Of the group's processor where most processes wait, the first of these.
    std::uint32_t waiting_on_sibling(std::uint32_t processor) const {
        if (setup_.groups.empty()) return none;
        std::uint32_t found = none;
        std::ptrdiff_t most = 0;
        const auto waits = [this](std::uint32_t one) {
            return process_[one].state == State::waiting;
        };
        for (std::uint32_t at = 0; at < processor_.size(); ++at) {
            const std::vector<std::uint32_t>& queue = processor_[at].queue;
            if (setup_.groups[at] != setup_.groups[processor]) continue;
            if (const auto number = std::ranges::count_if(queue, waits); number > most) {
                most = number;
                found = *std::ranges::find_if(queue, waits);
            }
        }
        return found;
    }

    // Where a process waits.
    void schedule_tick(Simulation& clock, std::uint32_t processor) {
        Processor& c = processor_[processor];
        if (c.tick_scheduled || c.process == none || !has_waiting(c)) return;
        c.tick_scheduled = true;
        clock.schedule(clock.now() + setup_.tick_ps - clock.now() % setup_.tick_ps, kinds_.tick,
                       processor);
    }

    void tick(Simulation& clock, std::uint32_t processor) {
        Processor& c = processor_[processor];
        c.tick_scheduled = false;
        if (c.process != none && process_[c.process].state != State::starting) {
            count(clock.now(), c);
            if (renew(process_[c.process])) switch_to(clock, processor, pick(c));
        }
        schedule_tick(clock, processor);
    }

    // False where that is who runs.
    bool switch_to(Simulation& clock, std::uint32_t processor, std::uint32_t following) {
        if (following == none || following == processor_[processor].process) return false;
        interrupt(clock, processor);
        put_on(clock, processor, following);
        return true;
    }

    // Who runs.

    void put_on(Simulation& clock, std::uint32_t processor, std::uint32_t process) {
        Processor& c = processor_[processor];
        Process& p = process_[process];
        if (c.last != process && !p.woken) p.debt += setup_.switch_ps;
        p.woken = false;
        p.since = p.counted = clock.now();
        renew(p);
        c.process = c.last = process;
        begin(clock, processor);
        schedule_tick(clock, processor);
    }

    void leave(Simulation& clock, std::uint32_t processor) {
        Processor& c = processor_[processor];
        Process& p = process_[c.process];
        p.busy += clock.now() - p.since;
        c.busy += clock.now() - p.since;
        c.process = none;
        ++c.generation;
    }

    void interrupt(Simulation& clock, std::uint32_t processor) {
        Processor& c = processor_[processor];
        Process& p = process_[c.process];
        count(clock.now(), c);
        const Time left = c.job_end - clock.now();
        if (p.current)
            p.current->left = left;
        else if (p.state == State::settling)
            p.rest = left;
        p.state = State::waiting;
        leave(clock, processor);
    }

    // It has paid: messages that have come are found as if it had looked all the time.
    void settled(Simulation& clock, std::uint32_t processor) {
        const std::uint32_t process = processor_[processor].process;
        const Process& p = process_[process];
        if (p.own.empty() && p.incoming.empty()) return begin(clock, processor);
        go_on(clock, process);
    }

    // Work has come while it looked for some.
    void go_on(Simulation& clock, std::uint32_t process) {
        Process& p = process_[process];
        Processor& c = processor_[p.home];
        if (p.gives_way) {
            p.gives_way = false;
            if (c.queue.size() > 1) {
                count(clock.now(), c);
                if (behind(c, p) >= 0) {
                    p.virtual_time = p.deadline;
                    p.deadline += setup_.slice_ps;
                }
                if (switch_to(clock, p.home, pick(c))) return;
            }
        }
        begin(clock, p.home);
    }

    void begin(Simulation& clock, std::uint32_t processor) {
        Processor& c = processor_[processor];
        Process& p = process_[c.process];
        p.gives_way = p.gives_way && !p.current && p.own.empty() && p.incoming.empty();
        const bool has_job = p.current || next_job(p);
        const Time paid = std::exchange(p.debt, 0) + std::exchange(p.rest, 0);
        if (has_job) {
            p.state = State::running;
            p.current->left += paid;
            c.job_end = clock.now() + p.current->left;
        } else {
            p.state = paid > 0 ? State::settling : State::spinning;
            c.job_end = clock.now() + (paid > 0 ? paid : std::max<Time>(setup_.spin_ps, 1));
        }
        clock.schedule(c.job_end, kinds_.run_over, processor, ++c.generation);
    }

    // What the processes cost that all messages at hand are from.
    Time connections(const Process& p) {
        if (setup_.connection_ps.empty()) return 0;
        for (const Job& job : p.incoming) parts_[job.sender] += job.parts;
        Time sum = 0;
        for (const Job& job : p.incoming) {
            const std::size_t parts = std::exchange(parts_[job.sender], 0);
            if (parts > 0)
                sum += setup_.connection_ps[std::min(parts, setup_.connection_ps.size()) - 1];
        }
        return sum;
    }

    bool next_job(Process& p) {
        if (!p.own.empty()) {
            p.current = p.own.front();
            p.own.pop_front();
            return true;
        }
        if (p.incoming.empty()) return false;
        if (p.found == 0) {
            p.found = p.incoming.size();
            p.debt += setup_.look_ps + connections(p);
        }
        --p.found;
        p.current = p.incoming.front();
        p.incoming.pop_front();
        return true;
    }

    const ProcessorSetup setup_;
    const Kinds kinds_;
    const Time lag_max_;
    std::vector<Processor> processor_;
    std::vector<Process> process_;
    std::vector<std::uint32_t> parts_;  // of messages, by sender; 0 in between
};

}  // namespace numatwin
