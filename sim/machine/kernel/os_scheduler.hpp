// Threads of the operating system on processors, by Linux's rules: turns, wake-ups, balancing,
// affinity. The rules are written out in ../reference/os_scheduler.py; the same calls leave the
// same threads on the same processors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "kernel/described.hpp"
#include "kernel/event_queue.hpp"

namespace numatwin {

// Processors among which load is balanced, between its groups: ../os_scheduler.py makes them.
struct OsDomain {
    using Groups = std::vector<std::vector<std::int64_t>>;
    FIELDS_OF(OsDomain);
    FIELD(std::int64_t, level, "0 a core, 1 a cache, 2 a node, 3 beyond");
    FIELD(Groups, groups, "processors");
    FIELD(bool, places_new_threads,
          "new threads are placed over it, and woken ones near who wakes them");
    FIELD(bool, spreads,
          "a group with room takes from one that has more (SD_PREFER_SIBLING of the level below)");
    FIELD(std::int64_t, spare,
          "threads that may stay together in a group beyond a node (imb_numa_nr)");
    END_OF_FIELDS;

    bool operator==(const OsDomain&) const = default;
};

// C processors and T threads.
struct OsSetup {
    using Integers = std::vector<std::int64_t>;
    using Lists = std::vector<std::vector<std::int64_t>>;
    FIELDS_OF(OsSetup);
    FIELD(Integers, core, "[C] of each processor");
    FIELD(Integers, cache, "[C]");
    FIELD(Integers, node, "[C]");
    FIELD(std::vector<OsDomain>, domains, "in which load is balanced");
    FIELD(Lists, domains_of, "[C] positions, from the inside out");
    FIELD(Time, tick_ps, "from tick to tick");
    FIELD(Time, slice_ps, "of a thread, where others wait");
    FIELD(Time, hot_ps, "a thread that ran so recently is not moved");
    FIELD(Integers, begin, "[T] processor of each thread before it first runs");
    FIELD(Lists, own, "[T] affinity masks, as processors");
    END_OF_FIELDS;

    bool operator==(const OsSetup&) const = default;
};

class OsScheduler {
  public:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    // Throws std::invalid_argument where something does not fit together. Without processors there
    // is nothing to schedule.
    explicit OsScheduler(const OsSetup& setup);

    std::size_t cpus() const { return cpu_.size(); }
    std::size_t threads() const { return thread_.size(); }
    // The processor on which a thread runs, or none; and that which it belongs to.
    std::uint32_t on(std::uint32_t thread) const {
        const std::uint32_t cpu = thread_[thread].cpu;
        return cpu_[cpu].running == thread ? cpu : none;
    }
    // Threads that may run elsewhere than when this was last asked, each once.
    std::vector<std::uint32_t> changed();
    // The first tick after now; never while all threads sleep.
    Time next_tick(Time now) const {
        return runnable_ == 0 ? never : (now / setup_.tick_ps + 1) * setup_.tick_ps;
    }

    void wake(Time now, std::uint32_t thread, std::uint32_t waker = none);
    void sleep(Time now, std::uint32_t thread);
    void tick(Time now);
    void use(Time now, const std::vector<bool>& allowed);

    // By level of what both processors have in common.
    const std::array<std::int64_t, 4>& migrations() const { return migrations_; }

  private:
    enum Level : std::int64_t { core, cache, node, beyond };
    enum MigrationType : std::uint8_t { threads_, load_, use_ };
    // The average of the time in use, at a time in ps.
    struct Use {
        double part = 0.0;
        Time updated = 0;
        void pass_time(Time now, bool runs);
    };
    struct Cpu {
        std::uint32_t running = none;
        bool allowed = true;
        Time since = 0;
        std::deque<std::uint32_t> waiting;
        Use use;
        std::size_t threads() const { return waiting.size() + (running != none ? 1 : 0); }
        void pass_time(Time now) { use.pass_time(now, running != none); }
    };
    struct Attempts {
        std::size_t domain = 0, local = 0;
        Time last = 0;
        std::int64_t interval_ms = 1, failed = 0;
    };
    struct Thread {
        std::uint32_t cpu = 0;
        bool runnable = false, is_new = true, touched = false;
        Time ran = 0;
        Use use;
        std::vector<std::uint8_t> own;
    };
    struct Domain {
        std::int64_t level = 0, weight = 0, spare = 0;
        bool places_new_threads = false, spreads = false;
        std::vector<std::vector<std::uint32_t>> groups;
    };
    struct Sum {
        std::size_t group = 0;
        std::int64_t weight = 0, threads = 0, idle = 0;
        double use = 0.0;
        std::int64_t percent = 0;
        std::int64_t load() const { return one * threads / weight; }
        int kind() const {
            if (threads == weight &&
                use * static_cast<double>(percent) < static_cast<double>(weight * 100))
                return 0;
            return (threads >= weight) + (threads > weight);
        }
        std::int64_t room() const;
    };
    struct Wanted {
        std::size_t group;
        MigrationType what;
        std::int64_t amount;
    };
    static constexpr std::int64_t one = 1024;
    // By level: sd_init of kernel/sched/topology.c, as in ../os_scheduler.py.
    static constexpr std::array<std::int64_t, 4> imbalance_percent{110, 117, 117, 117};

    bool may(std::uint32_t thread, std::uint32_t cpu) const;
    bool idle(std::uint32_t cpu) const { return cpu_[cpu].threads() == 0; }
    bool idle_core(std::uint32_t cpu) const;
    void touch(std::uint32_t thread);
    void enter(Time now, std::uint32_t thread, std::uint32_t cpu);
    void move_use(Time now, std::uint32_t thread, std::uint32_t cpu);
    void run(Time now, std::uint32_t cpu, std::uint32_t thread);
    void run_first(Time now, std::uint32_t cpu);
    void stop(Time now, std::uint32_t cpu);
    void next(Time now, std::uint32_t cpu);
    std::uint32_t in_turn(std::uint32_t thread);
    std::uint32_t affine(std::uint32_t thread, std::uint32_t previous, std::uint32_t waker) const;
    std::uint32_t idle_near(std::uint32_t thread, std::uint32_t previous,
                            std::uint32_t target) const;
    std::uint32_t fallback(std::uint32_t thread, std::uint32_t target) const;
    std::uint32_t least_loaded(Time now, std::uint32_t thread, std::uint32_t cpu);
    std::size_t idlest(Time now, std::uint32_t thread, const Domain& domain, std::size_t local);
    void sum(Time now, const Domain& domain, std::size_t local, std::uint32_t thread);
    void balance(Time now, std::uint32_t cpu);
    bool chosen(std::uint32_t cpu, const Attempts& attempts) const;
    bool wanted(const Domain& domain, bool is_idle, Wanted& found) const;
    bool wanted_for_room(const Domain& domain, const Sum& busiest, bool is_idle,
                         Wanted& found) const;
    bool move_in(Time now, std::uint32_t cpu, Attempts& attempts, bool newly_idle);
    bool take(Time now, std::uint32_t cpu, std::uint32_t source, const Domain& domain,
              std::int64_t failed, const Wanted& wanted, std::size_t most);

    const OsSetup setup_;
    std::vector<Domain> domain_;
    std::vector<Cpu> cpu_;
    std::vector<std::vector<Attempts>> attempts_;  // by processor, from the inside out
    std::vector<std::vector<std::uint32_t>> in_core_, in_cache_;  // processors, by core and cache
    std::vector<Thread> thread_;
    std::vector<std::uint32_t> touched_;
    std::array<std::int64_t, 4> migrations_{};
    std::size_t runnable_ = 0, waiting_ = 0;
    std::uint32_t next_in_turn_ = 0;
    std::vector<Sum> sum_;  // scratch
};

}  // namespace numatwin
