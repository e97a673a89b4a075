// The rules, with Linux's names for them: ../reference/os_scheduler.py.
#include "machine/kernel/os_scheduler.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <tuple>

namespace numatwin {
namespace {

constexpr std::array<std::int64_t, 4> tries{0, 1, 1, 2};
constexpr std::size_t moved_max = 32;
constexpr std::int64_t busy_factor = 16;
constexpr Time ps_per_ms = 1'000'000'000;

void expect(bool fine, const char* what) {
    if (!fine) throw std::invalid_argument(std::string("scheduler: wrong ") + what);
}

std::vector<std::uint32_t> positions(const std::vector<std::int64_t>& of, std::size_t end,
                                     const char* what) {
    std::vector<std::uint32_t> found;
    for (const std::int64_t at : of) {
        expect(at >= 0 && at < static_cast<std::int64_t>(end), what);
        found.push_back(static_cast<std::uint32_t>(at));
    }
    return found;
}

std::vector<std::vector<std::uint32_t>> members(const std::vector<std::int64_t>& of) {
    std::vector<std::vector<std::uint32_t>> found;
    for (std::uint32_t cpu = 0; cpu < of.size(); ++cpu) {
        expect(of[cpu] >= 0 && of[cpu] < static_cast<std::int64_t>(of.size()), "core or cache");
        const auto at = static_cast<std::size_t>(of[cpu]);
        if (found.size() <= at) found.resize(at + 1);
        found[at].push_back(cpu);
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
    for (const OsDomain& of : setup.domains) {
        expect(of.level >= core && of.level <= beyond && !of.groups.empty(), "domain");
        Domain& domain = domain_.emplace_back();
        domain.level = of.level;
        domain.spare = of.spare;
        domain.places_new_threads = of.places_new_threads;
        domain.spreads = of.spreads;
        std::vector<bool> has(cpus);
        for (const auto& group : of.groups) {
            domain.groups.push_back(positions(group, cpus, "group"));
            for (const std::uint32_t cpu : domain.groups.back()) has[cpu] = true;
        }
        domain.weight = std::ranges::count(has, true);
    }
    for (std::uint32_t cpu = 0; cpu < cpus; ++cpu)
        for (const std::uint32_t d :
             positions(setup.domains_of[cpu], domain_.size(), "domains_of")) {
            Attempts& of = attempts_[cpu].emplace_back();
            const auto& groups = domain_[d].groups;
            of.domain = d;
            while (of.local < groups.size() &&
                   std::ranges::find(groups[of.local], cpu) == groups[of.local].end())
                ++of.local;
            expect(of.local < groups.size(), "domain: its processor is in no group");
            of.interval_ms = domain_[d].weight;
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
    Thread& of = thread_.at(thread);
    if (of.runnable) throw std::logic_error("a thread that is awake cannot be woken");
    of.runnable = true;
    ++runnable_;
    std::uint32_t target = of.is_new ? least_loaded(now, thread, waker == none ? of.cpu : waker)
                                     : idle_near(thread, of.cpu, affine(thread, of.cpu, waker));
    if (!may(thread, target)) target = fallback(thread, target);
    if (of.is_new) {  // no migration; half of the use that is left
        Cpu& at = cpu_[target];
        of.cpu = target;
        at.use.pass_time(now, at.running != none);
        of.use = {std::max((1.0 - at.use.part) / 2, 0.0), now};
        at.use.part += of.use.part;
    }
    of.is_new = false;
    enter(now, thread, target);
}

void OsScheduler::sleep(Time now, std::uint32_t thread) {
    Thread& of = thread_.at(thread);
    if (on(thread) == none) throw std::logic_error("a thread that does not run cannot sleep");
    of.runnable = false;
    --runnable_;
    of.ran = now;
    run(now, of.cpu, none);
    touch(thread);
    next(now, of.cpu);
}

void OsScheduler::tick(Time now) {
    for (std::uint32_t cpu = 0; cpu < cpu_.size(); ++cpu) {
        if (cpu_[cpu].allowed) balance(now, cpu);
        const Cpu& of = cpu_[cpu];
        if (of.waiting.empty() || of.running == none || now - of.since < setup_.slice_ps) continue;
        stop(now, cpu);
        next(now, cpu);
    }
}

void OsScheduler::use(Time now, const std::vector<bool>& allowed) {
    if (allowed.size() != cpu_.size() || std::ranges::find(allowed, true) == allowed.end())
        throw std::invalid_argument("allowed: expected a truth value for each processor, one true");
    for (std::size_t cpu = 0; cpu < cpu_.size(); ++cpu) cpu_[cpu].allowed = allowed[cpu];
    for (std::uint32_t thread = 0; thread < thread_.size(); ++thread) {
        Thread& of = thread_[thread];
        if (!of.runnable || may(thread, of.cpu)) continue;
        const std::uint32_t before = of.cpu;
        Cpu& at = cpu_[before];
        if (at.running == thread) {
            of.ran = now;
            run(now, before, none);
            touch(thread);
        } else {
            std::erase(at.waiting, thread);
            --waiting_;
        }
        enter(now, thread, in_turn(thread));
        if (at.running == none && !at.waiting.empty()) next(now, before);
    }
}

// -- on processors

bool OsScheduler::may(std::uint32_t thread, std::uint32_t cpu) const {
    if (!cpu_[cpu].allowed) return false;
    const auto& own = thread_[thread].own;
    if (own[cpu] != 0) return true;
    for (std::size_t at = 0; at < own.size(); ++at)
        if (own[at] != 0 && cpu_[at].allowed) return false;
    return true;
}

bool OsScheduler::idle_core(std::uint32_t cpu) const {
    return std::ranges::all_of(in_core_[static_cast<std::size_t>(setup_.core[cpu])],
                               [this](std::uint32_t at) { return idle(at); });
}

void OsScheduler::enter(Time now, std::uint32_t thread, std::uint32_t cpu) {
    const std::uint32_t before = thread_[thread].cpu;
    if (before != cpu) {
        const auto same = [&](const auto& of) { return of[before] == of[cpu]; };
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
    Thread& of = thread_[thread];
    if (of.cpu == cpu) return;
    of.use.pass_time(now, false);
    for (Cpu* at : {&cpu_[of.cpu], &cpu_[cpu]}) at->use.pass_time(now, at->running != none);
    cpu_[of.cpu].use.part = std::max(cpu_[of.cpu].use.part - of.use.part, 0.0);
    cpu_[cpu].use.part += of.use.part;
}

// From now on this one runs there, or nobody.
void OsScheduler::run(Time now, std::uint32_t cpu, std::uint32_t thread) {
    Cpu& of = cpu_[cpu];
    of.use.pass_time(now, of.running != none);
    if (of.running != none) thread_[of.running].use.pass_time(now, true);
    if (thread != none) thread_[thread].use.pass_time(now, false);
    of.running = thread;
}

void OsScheduler::run_first(Time now, std::uint32_t cpu) {
    Cpu& of = cpu_[cpu];
    run(now, cpu, of.waiting.front());
    of.waiting.pop_front();
    --waiting_;
    of.since = now;
    touch(of.running);
}

void OsScheduler::stop(Time now, std::uint32_t cpu) {
    Cpu& of = cpu_[cpu];
    thread_[of.running].ran = now;
    touch(of.running);
    of.waiting.push_back(of.running);
    ++waiting_;
    run(now, cpu, none);
}

void OsScheduler::next(Time now, std::uint32_t cpu) {
    if (!cpu_[cpu].waiting.empty()) return run_first(now, cpu);
    if (!cpu_[cpu].allowed || waiting_ == 0) return;
    for (Attempts& of : attempts_[cpu])
        if (move_in(now, cpu, of, true)) return;
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
    for (const Attempts& at : attempts_[waker]) {
        const Domain& domain = domain_[at.domain];
        const bool spans = std::ranges::any_of(domain.groups, [previous](const auto& group) {
            return std::ranges::find(group, previous) != group.end();
        });
        if (!spans) continue;
        if (!domain.places_new_threads || idle(previous)) return previous;
        const std::int64_t half = (imbalance_percent[domain.level] - 100) / 2;
        const auto here = static_cast<std::int64_t>(cpu_[waker].threads()) + 1;
        const auto there = static_cast<std::int64_t>(cpu_[previous].threads());
        return here * 100 < there * (100 + half) ? waker : previous;
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
    std::uint32_t cpu = found([&](std::uint32_t at) { return fits(at) && idle_core(at); });
    if (cpu != none) return cpu;
    if (shared)
        for (const std::uint32_t at : in_core_[static_cast<std::size_t>(setup_.core[previous])])
            if (fits(at)) return at;
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
        const Attempts& at = levels[level - 1];
        const Domain& domain = domain_[at.domain];
        bound = domain.weight;
        if (!domain.places_new_threads) continue;
        const std::size_t group = idlest(now, thread, domain, at.local);
        if (group == domain.groups.size()) continue;
        std::uint32_t best = none;
        for (const std::uint32_t one : domain.groups[group])
            if (may(thread, one) && (best == none || cpu_[one].threads() < cpu_[best].threads()))
                best = one;
        cpu = best;
    }
}

// The group to go to; their number: the local one is as good.
std::size_t OsScheduler::idlest(Time now, std::uint32_t thread, const Domain& domain,
                                std::size_t local_at) {
    const std::size_t stay = domain.groups.size();
    sum(now, domain, local_at, thread);
    if (sum_.empty()) return stay;
    const auto room = [](const Sum& of) {
        return of.kind() == 0 ? std::pair<std::int64_t, std::int64_t>(0, -of.idle)
                              : std::pair<std::int64_t, std::int64_t>(of.kind(), of.load());
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
    for (Attempts& of : attempts_[cpu]) {
        const bool is_idle = idle(cpu);
        const std::int64_t ms = of.interval_ms * (is_idle ? 1 : busy_factor);
        const Time wait = (ms * ps_per_ms + setup_.tick_ps - 1) / setup_.tick_ps;
        if (ticks - of.last < std::max<Time>(wait - (is_idle ? 0 : 1), 1)) continue;
        of.last = ticks;
        if (chosen(cpu, of)) move_in(now, cpu, of, false);
    }
}

bool OsScheduler::chosen(std::uint32_t cpu, const Attempts& of) const {
    const Domain& domain = domain_[of.domain];
    std::uint32_t first = none, first_idle = none;
    for (const std::uint32_t at : domain.groups[of.local]) {
        if (!cpu_[at].allowed) continue;
        if (first == none) first = at;
        if (!idle(at)) continue;
        if (domain.level != core && idle_core(at)) return at == cpu;
        if (first_idle == none) first_idle = at;
    }
    return cpu == (first_idle != none ? first_idle : first);
}

// Takes threads from the busiest group, if load is out of balance; whether it has.
bool OsScheduler::move_in(Time now, std::uint32_t cpu, Attempts& of, bool newly_idle) {
    const Domain& domain = domain_[of.domain];
    sum(now, domain, of.local, none);
    Wanted what{};
    std::uint32_t source = none;
    if (wanted(domain, idle(cpu), what) && what.amount > 0) {
        for (const std::uint32_t at : domain.groups[what.group])
            if (cpu_[at].allowed && (source == none || cpu_[at].threads() > cpu_[source].threads()))
                source = at;
        if (cpu_[source].threads() <= (what.what != threads_ ? 1U : 0U) || source == cpu)
            source = none;
    }
    if (source == none) {
        if (newly_idle) return false;
        of.failed = 0;
        of.interval_ms = std::min(2 * of.interval_ms, 2 * domain.weight);
        return false;
    }
    bool moved = take(now, cpu, source, domain, of.failed, what, newly_idle ? 1 : moved_max);
    if (moved) {
        of.failed = 0;
    } else if (!newly_idle) {
        ++of.failed;
        const std::uint32_t runs = cpu_[source].running;
        const bool patient = of.failed > tries[domain.level] + 2;
        if (what.what == threads_ && patient && runs != none && may(runs, cpu)) {
            stop(now, source);
            cpu_[source].waiting.pop_back();
            --waiting_;
            enter(now, runs, cpu);
            next(now, source);
            of.failed = 0;
            moved = true;
        }
    }
    of.interval_ms = domain.weight;
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
