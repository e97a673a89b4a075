"""Threads of the operating system on processors, by Linux's rules, as ``kernel/os_scheduler.hpp``.

All threads have one weight, so the load of a processor is how many threads run or wait there.

1. **Turns.** The threads of a processor run in turn, first come first served. At a tick the one
   that has run for a slice goes to the end, if others wait (EEVDF: equal weights and slices have
   deadlines in this order; a woken thread waits for the end of the slice, RUN_TO_PARITY).
2. **A new thread** is placed where there is most room (sched_balance_find_dst_cpu): from the
   outermost domain that takes new threads inwards, the group with most idle processors, if it has
   more than the local one (beyond a node: if the local one has run out of ``spare``); where none
   is idle, the one with the lowest load, if this is clearly lower.
3. **A woken thread** goes to its previous processor or to the waker's (wake_affine: to its own, if
   that is idle, or unless the waker's has less load); if that is not idle, to an idle core that
   shares its last-level cache, to an idle sibling of the previous one, to an idle processor there
   (select_idle_sibling); else it waits there. It is not taken beyond that cache.
4. **A processor that becomes idle** while another one has threads waiting looks for one in its
   domains, from the inside out, until it has found one (newidle).
5. **At ticks** each processor looks at its domains: each every ``weight`` ms, up to twice as
   rarely while nothing is found; 16 times as rarely less a tick where it is busy. In each group
   only one does: the first idle one, on an idle core if there is one, else the first.
6. **What is moved** (find_busiest_group, calculate_imbalance, detach_tasks). With w processors and
   k threads, a group has room where k < w, and too many where k > w. From the group with too many
   to one with room: as many as it has room for; between groups with too many: what equals out, if
   the difference is more than a few percent, and a thread is moved for half of one after the first
   attempt; from one with room: half of the difference of idle processors (of threads, where groups
   are cores, caches or nodes), if that is more than 1. The processor with most threads gives those
   that have waited longest. One that ran just now (``hot_ps``) stays for the first attempts; one
   that runs is moved only where idle processors differ, after some attempts more.
7. **Affinity.** A thread runs on its own processors among the allowed ones, or on all allowed ones
   where none of its own is. Those that may no longer run where they are go to the next allowed
   processor in turn. Balancing counts allowed processors only.

Left out: averages of load over time, the cost of newidle balancing, and automatic NUMA balancing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..._kernel import OsDomain, OsSetup
from ...kernel.plain_fields import plain
from ..os_scheduler import IMBALANCE_PERCENT, TRIES, Level
from .os_balancing import (
    NONE,
    ONE,
    Cpu,
    MigrationType,
    UseAverage,
    imbalance,
    least_room,
    local_group,
    sums_of,
    weight,
)

MOVED_MAX = 32  # sysctl_sched_nr_migrate
BUSY_FACTOR = 16
PS_PER_MS = 1_000_000_000


@dataclass
class _Attempts:
    """Of one processor in one of its domains; times in ticks and ms."""

    last: int = 0
    interval_ms: int = 1
    failed: int = 0


@dataclass
class _Thread:
    cpu: int
    runnable: bool = False
    is_new: bool = True
    ran: int = 0
    own: frozenset[int] = frozenset()
    use: UseAverage = field(default_factory=UseAverage)


class OsScheduler:
    """All threads sleep at first. Each call may change where threads run: ``changed`` tells which,
    and ``on`` where (``NONE``: not on a processor). ``migrations``: by ``Level`` of what both
    processors have in common. At ``next_tick``, ``tick`` is due.
    """

    def __init__(self, setup: OsSetup) -> None:
        self.setup = setup = plain(setup)
        self.cpus = [Cpu() for _ in setup.core]
        self.attempts = [
            [_Attempts(interval_ms=weight(setup.domains[d])) for d in domains]
            for domains in setup.domains_of
        ]
        self.threads = [
            _Thread(cpu, own=frozenset(mask))
            for cpu, mask in zip(setup.begin, setup.own, strict=True)
        ]
        self.allowed = set(range(len(setup.core)))
        self.migrations = [0, 0, 0, 0]
        self.touched: list[int] = []
        self.next_in_turn = 0

    def on(self, thread: int) -> int:
        """The processor on which it runs."""
        state = self.threads[thread]
        return state.cpu if self.cpus[state.cpu].running == thread else NONE

    def changed(self) -> list[int]:
        """Threads that may run elsewhere than when this was last asked, each once."""
        found, self.touched = list(dict.fromkeys(self.touched)), []
        return found

    def next_tick(self, now: int) -> int | None:
        """The first tick after now; None while all threads sleep."""
        if not any(thread.runnable for thread in self.threads):
            return None
        return (now // self.setup.tick_ps + 1) * self.setup.tick_ps

    def wake(self, now: int, thread: int, waker: int = NONE) -> None:
        """A thread that sleeps is runnable; ``waker``: the processor from which it was woken."""
        state = self.threads[thread]
        state.runnable = True
        if state.is_new:
            target = self._least_loaded(now, thread, state.cpu if waker == NONE else waker)
        else:
            target = self._idle_near(thread, state.cpu, self._affine(thread, state.cpu, waker))
        if not self._may(thread, target):
            target = self._fallback(thread, target)
        if state.is_new:  # no migration; half of the use that is left (post_init_entity_util_avg)
            state.cpu, state.is_new = target, False
            cpu = self.cpus[target]
            cpu.pass_time(now)
            state.use = UseAverage(max((1.0 - cpu.use.part) / 2, 0.0), now)
            cpu.use.part += state.use.part
        self._enter(now, thread, target)

    def sleep(self, now: int, thread: int) -> None:
        """A thread that runs falls asleep."""
        state = self.threads[thread]
        state.runnable, state.ran = False, now
        cpu = state.cpu
        self._run(now, cpu, NONE)
        self.touched.append(thread)
        self._next(now, cpu)

    def tick(self, now: int) -> None:
        """One processor after another: balancing that is due, then its slice, if that is over
        (softirqs come before the switch)."""
        for cpu, queue in enumerate(self.cpus):
            if cpu in self.allowed:
                self._balance(now, cpu)
            if queue.waiting and queue.running != NONE and now - queue.since >= self.setup.slice_ps:
                self._stop(now, cpu)
                self._next(now, cpu)

    def use(self, now: int, allowed: Sequence[int]) -> None:
        """Threads may run on these processors from now on."""
        self.allowed = set(allowed)
        for thread, state in enumerate(self.threads):
            if state.runnable and not self._may(thread, state.cpu):
                cpu = self.cpus[state.cpu]
                before = state.cpu
                if cpu.running == thread:
                    state.ran = now
                    self._run(now, before, NONE)
                    self.touched.append(thread)
                else:
                    cpu.waiting.remove(thread)
                self._enter(now, thread, self._in_turn(thread))
                if cpu.running == NONE and cpu.waiting:
                    self._next(now, before)

    def _may(self, thread: int, cpu: int) -> bool:
        if cpu not in self.allowed:
            return False
        own = self.threads[thread].own
        return cpu in own or not any(allowed in self.allowed for allowed in own)

    def _idle(self, cpu: int) -> bool:
        return self.cpus[cpu].threads == 0

    def _enter(self, now: int, thread: int, cpu: int) -> None:
        """It runs or waits there."""
        self._count(thread, cpu)
        self._move_use(now, thread, cpu)
        self.threads[thread].cpu = cpu
        self.cpus[cpu].waiting.append(thread)
        if self.cpus[cpu].running == NONE:
            self._run_first(now, cpu)

    def _count(self, thread: int, cpu: int) -> None:
        before, s = self.threads[thread].cpu, self.setup
        if before == cpu:
            return
        same = [group_of[before] == group_of[cpu] for group_of in (s.core, s.cache, s.node)]
        self.migrations[same.index(True) if True in same else Level.BEYOND] += 1

    def _move_use(self, now: int, thread: int, cpu: int) -> None:
        """A thread that does not run brings its use to another processor."""
        state = self.threads[thread]
        if state.cpu == cpu:
            return
        state.use.pass_time(now, runs=False)
        for processor in (self.cpus[state.cpu], self.cpus[cpu]):
            processor.pass_time(now)
        self.cpus[state.cpu].use.part = max(self.cpus[state.cpu].use.part - state.use.part, 0.0)
        self.cpus[cpu].use.part += state.use.part

    def _run(self, now: int, cpu: int, thread: int) -> None:
        """From now on this one runs there, or nobody."""
        processor = self.cpus[cpu]
        processor.pass_time(now)
        if processor.running != NONE:
            self.threads[processor.running].use.pass_time(now, runs=True)
        if thread != NONE:
            self.threads[thread].use.pass_time(now, runs=False)
        processor.running = thread

    def _run_first(self, now: int, cpu: int) -> None:
        processor = self.cpus[cpu]
        self._run(now, cpu, processor.waiting.popleft())
        processor.since = now
        self.touched.append(processor.running)

    def _stop(self, now: int, cpu: int) -> None:
        """Who runs goes to the end of those who wait."""
        processor = self.cpus[cpu]
        self.threads[processor.running].ran = now
        self.touched.append(processor.running)
        processor.waiting.append(processor.running)
        self._run(now, cpu, NONE)

    def _next(self, now: int, cpu: int) -> None:
        """Nobody runs there: the first who waits, or one of another processor (4)."""
        if self.cpus[cpu].waiting:
            self._run_first(now, cpu)
            return
        if cpu not in self.allowed or all(len(queue.waiting) == 0 for queue in self.cpus):
            return
        for level in range(len(self.setup.domains_of[cpu])):
            if self._move_in(now, cpu, level, newly_idle=True):
                return

    def _in_turn(self, thread: int) -> int:
        """The next processor in turn that it may use."""
        cpus = len(self.cpus)
        for k in range(cpus):
            cpu = (self.next_in_turn + k) % cpus
            if self._may(thread, cpu):
                self.next_in_turn = cpu + 1
                return cpu
        raise AssertionError("no processor is allowed")

    def _affine(self, thread: int, previous: int, waker: int) -> int:
        if waker in (NONE, previous) or not self._may(thread, waker):
            return previous
        for d in self.setup.domains_of[waker]:
            domain = self.setup.domains[d]
            if any(previous in group for group in domain.groups):
                if not domain.places_new_threads or self._idle(previous):
                    return previous
                half = (IMBALANCE_PERCENT[domain.level] - 100) // 2
                here, there = self.cpus[waker].threads + 1, self.cpus[previous].threads
                return waker if here * 100 < there * (100 + half) else previous
        return previous

    def _idle_near(self, thread: int, previous: int, target: int) -> int:
        s = self.setup

        def fits(cpu: int) -> bool:
            return self._idle(cpu) and self._may(thread, cpu)

        if fits(target):
            return target
        shared = s.cache[previous] == s.cache[target]
        if previous != target and shared and fits(previous):
            return previous
        cpus = len(s.core)
        near = [(target + k) % cpus for k in range(cpus)]
        near = [cpu for cpu in near if s.cache[cpu] == s.cache[target]]
        for cpu in near:
            if fits(cpu) and self._is_idle_core(cpu):
                return cpu
        if shared:
            for cpu in range(cpus):
                if s.core[cpu] == s.core[previous] and fits(cpu):
                    return cpu
        return next((cpu for cpu in near if fits(cpu)), target)

    def _is_idle_core(self, cpu: int) -> bool:
        core = self.setup.core
        return all(self._idle(other) for other in range(len(core)) if core[other] == core[cpu])

    def _fallback(self, thread: int, target: int) -> int:
        """The first one of the node that it may use, else of all."""
        node = self.setup.node
        cpus = [cpu for cpu in range(len(self.cpus)) if self._may(thread, cpu)]
        return next((cpu for cpu in cpus if node[cpu] == node[target]), cpus[0])

    def _least_loaded(self, now: int, thread: int, cpu: int) -> int:
        """For a new thread (2), seen from a processor."""
        bound = len(self.cpus) + 1
        while True:
            domains = [self.setup.domains[d] for d in self.setup.domains_of[cpu]]
            inside = [domain for domain in domains if weight(domain) < bound]
            if not inside:
                return cpu
            domain = inside[-1]
            bound = weight(domain)
            if domain.places_new_threads:
                group = self._idlest(now, thread, domain, cpu)
                if group is not None:
                    able = (other for other in group if self._may(thread, other))
                    cpu = min(able, key=lambda other: self.cpus[other].threads)

    def _idlest(self, now: int, thread: int, domain: OsDomain, cpu: int) -> list[int] | None:
        """The group to go to; None: the local one is as good."""
        sums = sums_of(self.cpus, now, domain, cpu, lambda other: self._may(thread, other))
        if not sums:
            return None
        if sums[0].group != local_group(domain, cpu):
            return domain.groups[min(sums, key=least_room).group]
        local, others = sums[0], sums[1:]
        if not others:
            return None
        best = min(others, key=least_room)
        group = domain.groups[best.group]
        if local.kind != best.kind:
            return group if local.kind > best.kind else None
        if local.kind > 0:
            more = ONE * (IMBALANCE_PERCENT[domain.level] - 100) // 100
            return group if best.load + more < local.load else None
        if local.idle >= best.idle:
            return None
        is_far = domain.level == Level.BEYOND
        if is_far and local.threads + 1 <= domain.spare and best.idle - local.idle <= 2:
            return None
        return group

    def _balance(self, now: int, cpu: int) -> None:
        """What is due at this tick (5)."""
        ticks = now // self.setup.tick_ps
        for level, attempts in enumerate(self.attempts[cpu]):
            is_idle = self._idle(cpu)
            ms = attempts.interval_ms * (1 if is_idle else BUSY_FACTOR)
            wait = -(-ms * PS_PER_MS // self.setup.tick_ps)
            if ticks - attempts.last >= max(wait - (not is_idle), 1):
                attempts.last = ticks
                if self._is_chosen(cpu, level):
                    self._move_in(now, cpu, level, newly_idle=False)

    def _is_chosen(self, cpu: int, level: int) -> bool:
        """Whether this one balances for its group."""
        domain = self._domain(cpu, level)
        cpus = [other for other in domain.groups[local_group(domain, cpu)] if other in self.allowed]
        idle = [cpu for cpu in cpus if self._idle(cpu)]
        if domain.level != Level.CORE:
            idle = [other for other in idle if self._is_idle_core(other)] or idle
        return cpu == (idle or cpus)[0]

    def _domain(self, cpu: int, level: int) -> OsDomain:
        return self.setup.domains[self.setup.domains_of[cpu][level]]

    def _move_in(self, now: int, cpu: int, level: int, newly_idle: bool) -> bool:
        """Takes threads from the busiest group, if load is out of balance (6); whether it has."""
        domain, attempts = self._domain(cpu, level), self.attempts[cpu][level]
        sums = sums_of(self.cpus, now, domain, cpu, self.allowed.__contains__)
        wanted = imbalance(domain, sums, self._idle(cpu))
        source = NONE
        if wanted is not None and wanted.amount > 0:
            among = [other for other in domain.groups[wanted.group] if other in self.allowed]
            source = max(among, key=lambda other: self.cpus[other].threads)
            if (
                self.cpus[source].threads <= (wanted.what is not MigrationType.THREADS)
                or source == cpu
            ):
                source = NONE
        if wanted is None or source == NONE:
            if not newly_idle:
                attempts.failed = 0
                attempts.interval_ms = min(2 * attempts.interval_ms, 2 * weight(domain))
            return False
        most = 1 if newly_idle else MOVED_MAX
        moved = self._take(
            now, cpu, source, domain, attempts.failed, wanted.what, wanted.amount, most
        )
        if moved:
            attempts.failed = 0
        elif not newly_idle:
            attempts.failed += 1
            runs = self.cpus[source].running
            patient = attempts.failed > TRIES[domain.level] + 2
            if (
                wanted.what is MigrationType.THREADS
                and patient
                and runs != NONE
                and self._may(runs, cpu)
            ):
                self._stop(now, source)
                self.cpus[source].waiting.pop()
                self._enter(now, runs, cpu)
                self._next(now, source)
                attempts.failed = 0
                moved = True
        attempts.interval_ms = weight(domain)
        return moved

    def _take(
        self,
        now: int,
        cpu: int,
        source: int,
        domain: OsDomain,
        failed: int,
        what: MigrationType,
        amount: int,
        most: int,
    ) -> bool:
        """Of those that wait there, who has waited longest first."""
        is_core = domain.level == Level.CORE
        use = ONE // self.cpus[source].threads if what is MigrationType.USE else ONE
        taken: list[int] = []
        for thread in list(self.cpus[source].waiting):
            if len(taken) == most or amount <= 0:
                break
            is_hot = not is_core and now - self.threads[thread].ran < self.setup.hot_ps
            if is_hot and failed <= TRIES[domain.level]:
                continue
            if not self._may(thread, cpu):
                continue
            if what is not MigrationType.THREADS and use >> failed > amount:
                continue
            amount -= use
            taken.append(thread)
        for thread in taken:
            self.cpus[source].waiting.remove(thread)
            self._enter(now, thread, cpu)
        return bool(taken)
