// Threads of the operating system on cores: pinned, or moved from core to core while they run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "machine/kernel/core.hpp"

namespace numatwin {

// Which core each thread has now, and what it does there: one phase after the other. All that
// depends on a core or its node is asked for when a phase begins. A thread may be moved at any
// time: the part of its phase that is left goes on there, as a phase of the new core. Use is
// counted where it was made.
class OsThreads {
  public:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    // core_node [C]: the node of each core. core [A]: where each thread begins.
    OsThreads(std::vector<std::uint32_t> core_node, const std::vector<std::uint32_t>& core)
        : core_node_(std::move(core_node)), core_(core_node_.size()), busy_(core_node_.size()) {
        for (const std::uint32_t at : core) {
            require_core(at);
            thread_.emplace_back().core = at;
            core_[at].add_thread();
        }
    }

    std::size_t threads() const { return thread_.size(); }
    std::size_t cores() const { return core_.size(); }
    std::uint32_t core_of(std::size_t thread) const { return thread_[thread].core; }
    std::uint32_t node_of(std::size_t thread) const { return core_node_[core_of(thread)]; }
    const Core& core(std::size_t at) const { return core_[at]; }

    // A pinned thread cannot be moved.
    void pin(std::size_t thread) { thread_.at(thread).pinned = true; }

    // The thread does so much on its core; its phase before this one is over. Returns when this one
    // is. What else bounds it (memory, links) the caller adds by `extend`.
    Time begin(Time now, std::size_t thread, const CoreWork& work) {
        Thread& t = thread_[thread];
        const PhaseEnd end = core_[t.core].begin(now, work);
        t.work = work;
        t.over = end.done;
        t.time.begin(now, end.alone, work.held);
        t.time.end(end.done);
        busy_[t.core] += end.done - now;
        return end.done;
    }
    // The phase under way ends no earlier than that.
    Time extend(std::size_t thread, Time done) {
        Thread& t = thread_[thread];
        if (done > t.over) {
            busy_[t.core] += done - t.over;
            t.over = done;
            t.time.end(done);
        }
        return t.over;
    }

    // The thread has another core from now on. Returns when its phase ends (now, if none is under
    // way). The old core keeps what it was given: threads that share it are not hurried. Throws
    // std::logic_error for a pinned thread.
    Time move(Time now, std::size_t thread, std::uint32_t core) {
        Thread& t = thread_.at(thread);
        require_core(core);
        if (t.pinned)
            throw std::logic_error("thread " + std::to_string(thread) + " is pinned to its core");
        if (core == t.core) return std::max(t.over, now);
        core_[t.core].remove_thread();
        core_[core].add_thread();
        const std::uint32_t before = t.core;
        t.core = core;
        if (t.over <= now) return now;
        const double left = t.time.left(now);
        busy_[before] -= t.over - now;
        t.time.cut(now);
        core_[before].withdraw(left * t.work.held);
        t.work.instructions *= left;
        t.work.held *= left;
        t.work.separate *= left;
        return begin(now, thread, t.work);
    }

    // -- counted since start_counting()
    // How long threads ran on a core, all together.
    Time busy(std::size_t core, Time now) const {
        Time found = busy_[core];
        for (const Thread& t : thread_)
            if (t.core == core) found -= std::max<Time>(t.over - now, 0);
        return found;
    }
    // Slot time of misses on a core.
    double held(std::size_t core, Time now) const {
        double found = core_[core].held();
        for (const Thread& t : thread_)
            if (t.core == core) found -= t.time.held_left(now);
        return found;
    }
    Time held_up(std::size_t thread, Time now) const { return thread_[thread].time.held_up(now); }
    void start_counting(Time now) {
        for (Core& core : core_) core.start_counting(now);
        for (Time& of_core : busy_) of_core = 0;
        for (Thread& t : thread_) {
            t.time.start_counting(now);
            busy_[t.core] += std::max<Time>(t.over - now, 0);
            core_[t.core].withdraw(-t.time.held_left(now));
        }
    }

  private:
    struct Thread {
        std::uint32_t core = 0;
        bool pinned = false;
        CoreWork work;  // of the phase under way
        Time over = 0;
        ThreadTime time;
    };

    void require_core(std::uint32_t core) const {
        if (core >= core_.size())
            throw std::invalid_argument("core: expected one of " + std::to_string(core_.size()) +
                                        ", got " + std::to_string(core));
    }

    std::vector<std::uint32_t> core_node_;  // [C]
    std::vector<Core> core_;                // [C]
    std::vector<Time> busy_;                // [C]
    std::vector<Thread> thread_;            // [A]
};

}  // namespace numatwin
