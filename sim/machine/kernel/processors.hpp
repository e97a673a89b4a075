// Processors that processes share, as Linux shares them since 6.6: EEVDF.
//
// Each process has its home, a processor with a queue of its own, and may be moved to another one
// at any time: what it does goes on there in its turn. Within a group of processors those that have
// to wait move to idle ones. A process whose home is `none` shares no processor: it is not
// simulated here. The rules stand in machine/reference/processors.py and run_queues.py; events come
// in the same order. What it costs:
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
#include <stdexcept>
#include <vector>

#include "kernel/simulation.hpp"
#include "kernel/statistics.hpp"
#include "machine/kernel/run_queues.hpp"

namespace numatwin {

class Processors : RunQueues {
  public:
    using RunQueues::none;
    // Kinds of the events that their owner hands back to handle().
    struct Kinds {
        std::uint32_t run_over, tick, wake_over;
    };

    Processors(const ProcessorSetup& setup, std::size_t processes, Kinds kinds)
        : RunQueues(setup, processes), kinds_(kinds), parts_(processes) {}

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
        catch_up(clock.now(), from);
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
            catch_up(clock.now(), to);
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

  private:
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

    void wake(Simulation& clock, std::uint32_t process, std::uint32_t sender) {
        Process& p = process_[process];
        if (processor_[p.home].process != none) {
            const std::uint32_t idle = idle_sibling(p.home);
            if (idle != none) move(clock, process, idle);
        }
        Processor& c = processor_[p.home];
        p.debt += setup_.sleep_ps;
        p.woken = true;
        catch_up(clock.now(), c);
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
        catch_up(clock.now(), c);
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
        for (std::uint32_t other = 0; other < processor_.size(); ++other)
            if (setup_.groups[other] == setup_.groups[processor] &&
                processor_[other].process == none)
                return other;
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
        for (std::uint32_t other = 0; other < processor_.size(); ++other) {
            const std::vector<std::uint32_t>& queue = processor_[other].queue;
            if (setup_.groups[other] != setup_.groups[processor]) continue;
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
            catch_up(clock.now(), c);
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
        c.process = none;
        ++c.generation;
    }

    void interrupt(Simulation& clock, std::uint32_t processor) {
        Processor& c = processor_[processor];
        Process& p = process_[c.process];
        catch_up(clock.now(), c);
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
                catch_up(clock.now(), c);
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

    const Kinds kinds_;
    std::vector<std::uint32_t> parts_;  // of messages, by sender; 0 in between
};

}  // namespace numatwin
