// Processors that processes share, as an operating system shares them.
//
// Processes with something to do take turns on fewer processors: who waits stands in one queue, and
// whoever has run for a slice while others wait goes to its end. A process that has run out of work
// looks for more (spins) for a while, then sleeps; a message wakes it. What that costs:
//
//     another process takes over a processor       switch_over of its time
//     messages are found, however many             look of the process's time
//     falling asleep and being woken               sleep of the sleeper's time
//     waking one for whom a processor is idle      notify of the waker's time, and wake until it
//     runs giving way, whether or not somebody waits    yield of the process's time
//
// Messages that came are handled in the order in which they came, after what the process has to do
// on its own (what it answers to the one before). The same, in plain SimPy:
// planes/reference/processors.py; events come in the same order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <stdexcept>
#include <vector>

#include "simulation.hpp"
#include "statistics.hpp"

namespace numatwin {

// commits/parameters.py, Processors. None: every process has one of its own.
struct ProcessorSetup {
    std::uint32_t count = 0;
    Time slice = 0, switch_over = 0, look = 0, spin = 0, sleep = 0, wake = 0, notify = 0, yield = 0;
    bool wakes_first = false;  // who is woken runs at once, where it ran last
};

class Processors {
  public:
    static constexpr std::uint32_t none = ~std::uint32_t{0};
    // Kinds of the events that their owner hands back to handle().
    struct Kinds {
        std::uint32_t run_over, slice_over, wake_over;
    };

    Processors(const ProcessorSetup& setup, std::size_t processes, Kinds kinds)
        : setup_(setup), kinds_(kinds), processor_(setup.count), process_(processes) {
        if (setup.count > 0 && setup.slice <= 0)
            throw std::invalid_argument("processors: expected a slice above 0");
    }

    bool shared() const { return !processor_.empty(); }

    // A process has work to do; when that is done, the event comes. `sender`: whose message it is
    // (none: the process's own work).
    void submit(Simulation& clock, std::uint32_t process, Time ps, std::uint32_t kind,
                std::uint32_t subject, std::uint32_t sender = none) {
        Process& p = process_[process];
        (sender == none ? p.own : p.incoming).push_back({ps, kind, subject});
        switch (p.state) {
            case State::spinning:
                return go_on(clock, p.processor);
            case State::asleep:
                return wake(clock, process, sender);
            default:
                return;
        }
    }

    // Before its next work a process lets those run who wait.
    void give_way(std::uint32_t process) {
        process_[process].gives_way = true;
        process_[process].debt += setup_.yield;
    }

    void handle(Simulation& clock, const Event& event) {
        Processor& c = processor_[event.subject];
        if (event.kind == kinds_.slice_over) {
            if (c.turn != event.data) return;
            c.slice_asked = false;
            if (!waiting_.empty()) preempt(clock, event.subject);
            return;
        }
        if (c.generation != event.data) return;  // it was interrupted before
        if (event.kind == kinds_.wake_over) return put_on(clock, event.subject, c.process);
        Process& p = process_[c.process];
        if (p.state == State::spinning) {
            p.state = State::asleep;
            leave(clock, event.subject);
            return take_next(clock, event.subject);
        }
        const Job done = *p.current;
        p.current.reset();
        clock.schedule(clock.now(), done.kind, done.subject);
        begin(clock, event.subject);
    }

    // On a processor, by process.
    std::vector<Wide> busy_ps(Time now) const {
        std::vector<Wide> all;
        for (const Process& p : process_) {
            const bool on = p.state == State::running || p.state == State::spinning;
            all.push_back(p.busy + (on ? now - p.since : 0));
        }
        return all;
    }

  private:
    enum class State : std::uint8_t { asleep, starting, waiting, running, spinning };
    struct Job {
        Time left;
        std::uint32_t kind, subject;
    };
    struct Process {
        std::deque<Job> own, incoming;
        std::optional<Job> current;
        State state = State::asleep;
        bool gives_way = false, woken = false;
        std::uint32_t processor = none, home = none;  // now, and last
        std::size_t found = 0;  // messages of the last look that are still to be handled
        Time debt = 0;          // added to what it does next
        Time since = 0;
        Wide busy = 0;
    };
    struct Processor {
        std::uint32_t process = none, last = none;
        std::uint64_t generation = 0;  // of its events: only the latest counts
        std::uint64_t turn = 0;
        bool slice_asked = false;
        Time began = 0, job_end = 0;
    };

    void wake(Simulation& clock, std::uint32_t process, std::uint32_t sender) {
        Process& p = process_[process];
        p.debt += setup_.sleep;
        p.woken = true;
        const std::uint32_t idle = idle_for(process);
        if (idle == none) {
            const std::uint32_t taken = setup_.wakes_first ? taken_for(process) : none;
            if (taken == none) return join(clock, process);
            const std::uint32_t before = processor_[taken].process;
            if (sender != none && before != sender) process_[sender].debt += setup_.notify;
            interrupt(clock, taken);
            waiting_.push_front(before);
            return put_on(clock, taken, process);
        }
        if (sender != none) process_[sender].debt += setup_.notify;
        p.state = State::starting;
        Processor& c = processor_[idle];
        c.process = process;
        clock.schedule(clock.now() + setup_.wake, kinds_.wake_over, idle, ++c.generation);
    }

    // One that it ran on last, or the first.
    std::uint32_t idle_for(std::uint32_t process) const {
        std::uint32_t found = none;
        for (std::uint32_t k = 0; k < processor_.size(); ++k) {
            if (processor_[k].process != none) continue;
            if (processor_[k].last == process) return k;
            if (found == none) found = k;
        }
        return found;
    }

    // One that it ran on last, or the first; none where all are about to start someone.
    std::uint32_t taken_for(std::uint32_t process) const {
        const auto runs = [this](std::uint32_t k) {
            return process_[processor_[k].process].state != State::starting;
        };
        const std::uint32_t home = process_[process].home;
        if (home != none && runs(home)) return home;
        for (std::uint32_t k = 0; k < processor_.size(); ++k)
            if (runs(k)) return k;
        return none;
    }

    void join(Simulation& clock, std::uint32_t process) {
        process_[process].state = State::waiting;
        waiting_.push_back(process);
        for (std::uint32_t k = 0; k < processor_.size(); ++k) ask_slice(clock, k);
    }

    void ask_slice(Simulation& clock, std::uint32_t processor) {
        Processor& c = processor_[processor];
        if (c.slice_asked || c.process == none || process_[c.process].state == State::starting)
            return;
        c.slice_asked = true;
        clock.schedule(std::max(clock.now(), c.began + setup_.slice), kinds_.slice_over, processor,
                       c.turn);
    }

    void put_on(Simulation& clock, std::uint32_t processor, std::uint32_t process) {
        Processor& c = processor_[processor];
        Process& p = process_[process];
        if (c.last != process && !p.woken) p.debt += setup_.switch_over;
        p.woken = false;
        p.processor = p.home = processor;
        p.since = c.began = clock.now();
        c.process = c.last = process;
        ++c.turn;
        c.slice_asked = false;
        begin(clock, processor);
        if (!waiting_.empty()) ask_slice(clock, processor);
    }

    void take_next(Simulation& clock, std::uint32_t processor) {
        if (waiting_.empty()) return;
        const std::uint32_t process = waiting_.front();
        waiting_.pop_front();
        put_on(clock, processor, process);
    }

    void leave(Simulation& clock, std::uint32_t processor) {
        Processor& c = processor_[processor];
        Process& p = process_[c.process];
        p.busy += clock.now() - p.since;
        p.processor = none;
        c.process = none;
        ++c.generation;
    }

    void preempt(Simulation& clock, std::uint32_t processor) {
        const std::uint32_t process = processor_[processor].process;
        interrupt(clock, processor);
        waiting_.push_back(process);
        take_next(clock, processor);
    }

    void interrupt(Simulation& clock, std::uint32_t processor) {
        Process& p = process_[processor_[processor].process];
        if (p.current) p.current->left = processor_[processor].job_end - clock.now();
        p.state = State::waiting;
        leave(clock, processor);
    }

    // Work has come while it looked for some.
    void go_on(Simulation& clock, std::uint32_t processor) {
        Process& p = process_[processor_[processor].process];
        if (p.gives_way && !waiting_.empty()) {
            p.gives_way = false;
            return preempt(clock, processor);
        }
        begin(clock, processor);
    }

    void begin(Simulation& clock, std::uint32_t processor) {
        Processor& c = processor_[processor];
        Process& p = process_[c.process];
        p.gives_way = p.gives_way && !p.current && p.own.empty() && p.incoming.empty();
        if (!p.current && !next_job(p)) {
            p.state = State::spinning;
            c.job_end = clock.now() + std::max<Time>(setup_.spin, 1);
        } else {
            p.state = State::running;
            p.current->left += p.debt;
            p.debt = 0;
            c.job_end = clock.now() + p.current->left;
        }
        clock.schedule(c.job_end, kinds_.run_over, processor, ++c.generation);
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
            p.debt += setup_.look;
        }
        --p.found;
        p.current = p.incoming.front();
        p.incoming.pop_front();
        return true;
    }

    const ProcessorSetup setup_;
    const Kinds kinds_;
    std::vector<Processor> processor_;
    std::vector<Process> process_;
    std::deque<std::uint32_t> waiting_;
};

}  // namespace numatwin
