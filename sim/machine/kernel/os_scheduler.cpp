// The rules, with Linux's names for them: ../reference/os_scheduler.py.
#include "machine/kernel/os_scheduler.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace numatwin {
namespace {

constexpr std::array<std::int64_t, 4> tries{0, 1, 1, 2};
constexpr std::size_t moved_max = 32;
constexpr std::int64_t busy_factor = 16;
constexpr Time ps_per_ms = 1'000'000'000;

void expect(bool fine, const char* what) {
    if (!fine) throw std::invalid_argument(std::string("scheduler: wrong ") + what);
}

std::vector<std::uint32_t> positions(const std::vector<std::int64_t>& values, std::size_t end,
                                     const char* what) {
    std::vector<std::uint32_t> found;
    for (const std::int64_t value : values) {
        expect(value >= 0 && value < static_cast<std::int64_t>(end), what);
        found.push_back(static_cast<std::uint32_t>(value));
    }
    return found;
}

std::vector<std::vector<std::uint32_t>> members(const std::vector<std::int64_t>& group_of) {
    std::vector<std::vector<std::uint32_t>> found;
    for (std::uint32_t cpu = 0; cpu < group_of.size(); ++cpu) {
        expect(group_of[cpu] >= 0 && group_of[cpu] < static_cast<std::int64_t>(group_of.size()),
               "core or cache");
        const auto group = static_cast<std::size_t>(group_of[cpu]);
        if (found.size() <= group) found.resize(group + 1);
        found[group].push_back(cpu);
    }
    return found;
}

}  // namespace

OsScheduler::OsScheduler(const OsSetup& setup)
    : setup_(setup),
      cpu_(setup.core.size()),
      attempts_(setup.core.size()),
      in_core_(members(setup.core)),
      in_cache_(members(setup.cache)) {
    const std::size_t cpus = cpu_.size();
    if (cpus == 0) return;
    expect(setup.cache.size() == cpus && setup.node.size() == cpus, "cache or node");
    expect(setup.tick_ps > 0 && setup.slice_ps > 0 && setup.hot_ps >= 0, "time");
    expect(setup.domains_of.size() == cpus, "domains_of");
    expect(setup.own.size() == setup.begin.size(), "own");
    for (const OsDomain& from : setup.domains) {
        expect(from.level >= core && from.level <= beyond && !from.groups.empty(), "domain");
        Domain& domain = domain_.emplace_back();
        domain.level = from.level;
        domain.spare = from.spare;
        domain.places_new_threads = from.places_new_threads;
        domain.spreads = from.spreads;
        std::vector<bool> has(cpus);
        for (const auto& group : from.groups) {
            domain.groups.push_back(positions(group, cpus, "group"));
            for (const std::uint32_t cpu : domain.groups.back()) has[cpu] = true;
        }
        domain.weight = std::ranges::count(has, true);
    }
    for (std::uint32_t cpu = 0; cpu < cpus; ++cpu)
        for (const std::uint32_t d :
             positions(setup.domains_of[cpu], domain_.size(), "domains_of")) {
            Attempts& attempts = attempts_[cpu].emplace_back();
            const auto& groups = domain_[d].groups;
            attempts.domain = d;
            while (attempts.local < groups.size() &&
                   std::ranges::find(groups[attempts.local], cpu) == groups[attempts.local].end())
                ++attempts.local;
            expect(attempts.local < groups.size(), "domain: its processor is in no group");
            attempts.interval_ms = domain_[d].weight;
        }
    const auto begin = positions(setup.begin, cpus, "begin");
    for (std::size_t t = 0; t < begin.size(); ++t) {
        Thread& thread = thread_.emplace_back();
        thread.cpu = begin[t];
        thread.own.assign(cpus, 0);
        for (const std::uint32_t cpu : positions(setup.own[t], cpus, "own")) thread.own[cpu] = 1;
    }
}

std::vector<std::uint32_t> OsScheduler::changed() {
    std::vector<std::uint32_t> found;
    found.swap(touched_);
    for (const std::uint32_t thread : found) thread_[thread].touched = false;
    return found;
}

void OsScheduler::touch(std::uint32_t thread) {
    if (thread_[thread].touched) return;
    thread_[thread].touched = true;
    touched_.push_back(thread);
}

void OsScheduler::wake(Time now, std::uint32_t thread, std::uint32_t waker) {
    Thread& state = thread_.at(thread);
    if (state.runnable) throw std::logic_error("a thread that is awake cannot be woken");
    state.runnable = true;
    ++runnable_;
    std::uint32_t target = state.is_new
                               ? least_loaded(now, thread, waker == none ? state.cpu : waker)
                               : idle_near(thread, state.cpu, affine(thread, state.cpu, waker));
    if (!may(thread, target)) target = fallback(thread, target);
    if (state.is_new) {  // no migration; half of the use that is left
        Cpu& processor = cpu_[target];
        state.cpu = target;
        processor.pass_time(now);
        state.use = {std::max((1.0 - processor.use.part) / 2, 0.0), now};
        processor.use.part += state.use.part;
    }
    state.is_new = false;
    enter(now, thread, target);
}

void OsScheduler::sleep(Time now, std::uint32_t thread) {
    Thread& state = thread_.at(thread);
    if (on(thread) == none) throw std::logic_error("a thread that does not run cannot sleep");
    state.runnable = false;
    --runnable_;
    state.ran = now;
    run(now, state.cpu, none);
    touch(thread);
    next(now, state.cpu);
}

void OsScheduler::tick(Time now) {
    for (std::uint32_t cpu = 0; cpu < cpu_.size(); ++cpu) {
        if (cpu_[cpu].allowed) balance(now, cpu);
        const Cpu& queue = cpu_[cpu];
        if (queue.waiting.empty() || queue.running == none || now - queue.since < setup_.slice_ps)
            continue;
        stop(now, cpu);
        next(now, cpu);
    }
}

void OsScheduler::use(Time now, const std::vector<bool>& allowed) {
    if (allowed.size() != cpu_.size() || std::ranges::find(allowed, true) == allowed.end())
        throw std::invalid_argument("allowed: expected a truth value for each processor, one true");
    for (std::size_t cpu = 0; cpu < cpu_.size(); ++cpu) cpu_[cpu].allowed = allowed[cpu];
    for (std::uint32_t thread = 0; thread < thread_.size(); ++thread) {
        Thread& state = thread_[thread];
        if (!state.runnable || may(thread, state.cpu)) continue;
        const std::uint32_t before = state.cpu;
        Cpu& processor = cpu_[before];
        if (processor.running == thread) {
            state.ran = now;
            run(now, before, none);
            touch(thread);
        } else {
            std::erase(processor.waiting, thread);
            --waiting_;
        }
        enter(now, thread, in_turn(thread));
        if (processor.running == none && !processor.waiting.empty()) next(now, before);
    }
}

// -- on processors

bool OsScheduler::may(std::uint32_t thread, std::uint32_t cpu) const {
    if (!cpu_[cpu].allowed) return false;
    const auto& own = thread_[thread].own;
    if (own[cpu] != 0) return true;
    for (std::size_t other = 0; other < own.size(); ++other)
        if (own[other] != 0 && cpu_[other].allowed) return false;
    return true;
}

bool OsScheduler::idle_core(std::uint32_t cpu) const {
    return std::ranges::all_of(in_core_[static_cast<std::size_t>(setup_.core[cpu])],
                               [this](std::uint32_t other) { return idle(other); });
}

void OsScheduler::enter(Time now, std::uint32_t thread, std::uint32_t cpu) {
    const std::uint32_t before = thread_[thread].cpu;
    if (before != cpu) {
        const auto same = [&](const auto& group_of) { return group_of[before] == group_of[cpu]; };
        ++migrations_[same(setup_.core)    ? core
                      : same(setup_.cache) ? cache
                      : same(setup_.node)  ? node
                                           : beyond];
    }
    move_use(now, thread, cpu);
    thread_[thread].cpu = cpu;
    cpu_[cpu].waiting.push_back(thread);
    ++waiting_;
    if (cpu_[cpu].running == none) run_first(now, cpu);
}

// A thread that does not run brings its use to another processor.
void OsScheduler::move_use(Time now, std::uint32_t thread, std::uint32_t cpu) {
    Thread& state = thread_[thread];
    if (state.cpu == cpu) return;
    state.use.pass_time(now, false);
    for (Cpu* each : {&cpu_[state.cpu], &cpu_[cpu]}) each->pass_time(now);
    cpu_[state.cpu].use.part = std::max(cpu_[state.cpu].use.part - state.use.part, 0.0);
    cpu_[cpu].use.part += state.use.part;
}

// From now on this one runs there, or nobody.
void OsScheduler::run(Time now, std::uint32_t cpu, std::uint32_t thread) {
    Cpu& processor = cpu_[cpu];
    processor.pass_time(now);
    if (processor.running != none) thread_[processor.running].use.pass_time(now, true);
    if (thread != none) thread_[thread].use.pass_time(now, false);
    processor.running = thread;
}

void OsScheduler::run_first(Time now, std::uint32_t cpu) {
    Cpu& processor = cpu_[cpu];
    run(now, cpu, processor.waiting.front());
    processor.waiting.pop_front();
    --waiting_;
    processor.since = now;
    touch(processor.running);
}

void OsScheduler::stop(Time now, std::uint32_t cpu) {
    Cpu& processor = cpu_[cpu];
    thread_[processor.running].ran = now;
    touch(processor.running);
    processor.waiting.push_back(processor.running);
    ++waiting_;
    run(now, cpu, none);
}

void OsScheduler::next(Time now, std::uint32_t cpu) {
    if (!cpu_[cpu].waiting.empty()) return run_first(now, cpu);
    if (!cpu_[cpu].allowed || waiting_ == 0) return;
    for (Attempts& attempts : attempts_[cpu])
        if (move_in(now, cpu, attempts, true)) return;
}

std::uint32_t OsScheduler::in_turn(std::uint32_t thread) {
    const auto cpus = static_cast<std::uint32_t>(cpu_.size());
    for (std::uint32_t k = 0; k < cpus; ++k) {
        const std::uint32_t cpu = (next_in_turn_ + k) % cpus;
        if (!may(thread, cpu)) continue;
        next_in_turn_ = cpu + 1;
        return cpu;
    }
    throw std::logic_error("no processor is allowed");
}

// -- where threads are placed

std::uint32_t OsScheduler::affine(std::uint32_t thread, std::uint32_t previous,
                                  std::uint32_t waker) const {
    if (waker == none || waker == previous || !may(thread, waker)) return previous;
    for (const Attempts& attempts : attempts_[waker]) {
        const Domain& domain = domain_[attempts.domain];
        const bool spans = std::ranges::any_of(domain.groups, [previous](const auto& group) {
            return std::ranges::find(group, previous) != group.end();
        });
        if (!spans) continue;
        if (!domain.places_new_threads || idle(previous)) return previous;
        const std::int64_t half = (imbalance_percent[domain.level] - 100) / 2;
        const auto here = static_cast<std::int64_t>(cpu_[waker].threads()) + 1;
        const auto previous_threads = static_cast<std::int64_t>(cpu_[previous].threads());
        return here * 100 < previous_threads * (100 + half) ? waker : previous;
    }
    return previous;
}

std::uint32_t OsScheduler::idle_near(std::uint32_t thread, std::uint32_t previous,
                                     std::uint32_t target) const {
    const auto fits = [&](std::uint32_t cpu) { return idle(cpu) && may(thread, cpu); };
    if (fits(target)) return target;
    const bool shared = setup_.cache[previous] == setup_.cache[target];
    if (previous != target && shared && fits(previous)) return previous;
    const auto& near = in_cache_[static_cast<std::size_t>(setup_.cache[target])];
    const auto first = std::ranges::lower_bound(near, target) - near.begin();
    const auto found = [&](auto good) {
        for (std::size_t k = 0; k < near.size(); ++k) {
            const std::uint32_t cpu = near[(static_cast<std::size_t>(first) + k) % near.size()];
            if (good(cpu)) return cpu;
        }
        return none;
    };
    std::uint32_t cpu = found([&](std::uint32_t other) { return fits(other) && idle_core(other); });
    if (cpu != none) return cpu;
    if (shared)
        for (const std::uint32_t other : in_core_[static_cast<std::size_t>(setup_.core[previous])])
            if (fits(other)) return other;
    cpu = found(fits);
    return cpu != none ? cpu : target;
}

std::uint32_t OsScheduler::fallback(std::uint32_t thread, std::uint32_t target) const {
    std::uint32_t first = none;
    for (std::uint32_t cpu = 0; cpu < cpu_.size(); ++cpu) {
        if (!may(thread, cpu)) continue;
        if (setup_.node[cpu] == setup_.node[target]) return cpu;
        if (first == none) first = cpu;
    }
    return first;
}

std::uint32_t OsScheduler::least_loaded(Time now, std::uint32_t thread, std::uint32_t cpu) {
    auto bound = static_cast<std::int64_t>(cpu_.size()) + 1;
    while (true) {
        const auto& levels = attempts_[cpu];
        std::size_t level = levels.size();
        while (level > 0 && domain_[levels[level - 1].domain].weight >= bound) --level;
        if (level == 0) return cpu;
        const Attempts& attempts = levels[level - 1];
        const Domain& domain = domain_[attempts.domain];
        bound = domain.weight;
        if (!domain.places_new_threads) continue;
        const std::size_t group = idlest(now, thread, domain, attempts.local);
        if (group == domain.groups.size()) continue;
        std::uint32_t best = none;
        for (const std::uint32_t each : domain.groups[group])
            if (may(thread, each) && (best == none || cpu_[each].threads() < cpu_[best].threads()))
                best = each;
        cpu = best;
    }
}

// The group to go to; their number: the local one is as good.
std::size_t OsScheduler::idlest(Time now, std::uint32_t thread, const Domain& domain,
                                std::size_t local_at) {
    const std::size_t stay = domain.groups.size();
    sum(now, domain, local_at, thread);
    if (sum_.empty()) return stay;
    const auto room = [](const Sum& group) {
        return std::pair(group.kind(), group.kind() == 0 ? -group.idle : group.load());
    };
    if (sum_.front().group != local_at) return std::ranges::min_element(sum_, {}, room)->group;
    if (sum_.size() == 1) return stay;
    const Sum& local = sum_.front();
    const Sum& best = *std::ranges::min_element(sum_.begin() + 1, sum_.end(), {}, room);
    if (local.kind() != best.kind()) return local.kind() > best.kind() ? best.group : stay;
    if (local.kind() > 0) {
        const std::int64_t more = one * (imbalance_percent[domain.level] - 100) / 100;
        return best.load() + more < local.load() ? best.group : stay;
    }
    if (local.idle >= best.idle) return stay;
    if (domain.level == beyond && local.threads + 1 <= domain.spare && best.idle - local.idle <= 2)
        return stay;
    return best.group;
}

// -- balancing

void OsScheduler::balance(Time now, std::uint32_t cpu) {
    const Time ticks = now / setup_.tick_ps;
    for (Attempts& attempts : attempts_[cpu]) {
        const bool is_idle = idle(cpu);
        const std::int64_t ms = attempts.interval_ms * (is_idle ? 1 : busy_factor);
        const Time wait = (ms * ps_per_ms + setup_.tick_ps - 1) / setup_.tick_ps;
        if (ticks - attempts.last < std::max<Time>(wait - (is_idle ? 0 : 1), 1)) continue;
        attempts.last = ticks;
        if (chosen(cpu, attempts)) move_in(now, cpu, attempts, false);
    }
}

bool OsScheduler::chosen(std::uint32_t cpu, const Attempts& attempts) const {
    const Domain& domain = domain_[attempts.domain];
    std::uint32_t first = none, first_idle = none;
    for (const std::uint32_t other : domain.groups[attempts.local]) {
        if (!cpu_[other].allowed) continue;
        if (first == none) first = other;
        if (!idle(other)) continue;
        if (domain.level != core && idle_core(other)) return other == cpu;
        if (first_idle == none) first_idle = other;
    }
    return cpu == (first_idle != none ? first_idle : first);
}

// Takes threads from the busiest group, if load is out of balance; whether it has.
bool OsScheduler::move_in(Time now, std::uint32_t cpu, Attempts& attempts, bool newly_idle) {
    const Domain& domain = domain_[attempts.domain];
    sum(now, domain, attempts.local, none);
    Wanted what{};
    std::uint32_t source = none;
    if (wanted(domain, idle(cpu), what) && what.amount > 0) {
        for (const std::uint32_t each : domain.groups[what.group])
            if (cpu_[each].allowed &&
                (source == none || cpu_[each].threads() > cpu_[source].threads()))
                source = each;
        if (cpu_[source].threads() <= (what.what != threads_ ? 1U : 0U) || source == cpu)
            source = none;
    }
    if (source == none) {
        if (newly_idle) return false;
        attempts.failed = 0;
        attempts.interval_ms = std::min(2 * attempts.interval_ms, 2 * domain.weight);
        return false;
    }
    bool moved = take(now, cpu, source, domain, attempts.failed, what, newly_idle ? 1 : moved_max);
    if (moved) {
        attempts.failed = 0;
    } else if (!newly_idle) {
        ++attempts.failed;
        const std::uint32_t runs = cpu_[source].running;
        const bool patient = attempts.failed > tries[domain.level] + 2;
        if (what.what == threads_ && patient && runs != none && may(runs, cpu)) {
            stop(now, source);
            cpu_[source].waiting.pop_back();
            --waiting_;
            enter(now, runs, cpu);
            next(now, source);
            attempts.failed = 0;
            moved = true;
        }
    }
    attempts.interval_ms = domain.weight;
    return moved;
}

// Of those that wait there, who has waited longest first.
bool OsScheduler::take(Time now, std::uint32_t cpu, std::uint32_t source, const Domain& domain,
                       std::int64_t failed, const Wanted& wanted, std::size_t most) {
    const std::int64_t use =
        wanted.what == use_ ? one / static_cast<std::int64_t>(cpu_[source].threads()) : one;
    std::int64_t amount = wanted.amount;
    std::vector<std::uint32_t> taken;
    for (const std::uint32_t thread : cpu_[source].waiting) {
        if (taken.size() == most || amount <= 0) break;
        const bool hot = domain.level != core && now - thread_[thread].ran < setup_.hot_ps;
        if (hot && failed <= tries[domain.level]) continue;
        if (!may(thread, cpu)) continue;
        if (wanted.what != threads_ && (use >> std::min<std::int64_t>(failed, 62)) > amount)
            continue;
        amount -= use;
        taken.push_back(thread);
    }
    for (const std::uint32_t thread : taken) {
        std::erase(cpu_[source].waiting, thread);
        --waiting_;
        enter(now, thread, cpu);
    }
    return !taken.empty();
}

}  // namespace numatwin
