"""How much load one group of processors takes from another, by Linux's rules (6 of os_scheduler).

After find_busiest_group and calculate_imbalance of kernel/sched/fair.c, with the number of threads
that run or wait in the place of averages of load over time. That of use over time decides whether a
group with a thread for each processor has room (group_has_capacity).

The average of the time in which a processor or a thread was in use, as Linux has it (PELT).
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from math import exp2
from typing import NamedTuple

from ..._kernel import OsDomain
from ..os_scheduler import IMBALANCE_PERCENT, Level

HALF_LIFE_PS = 32_000_000_000  # y^32 = 0.5, in periods of 1,024 us (kernel/sched/pelt.c)


@dataclass
class UseAverage:
    """``part`` of the time, 0 to 1 of a thread, as of ``updated_ps``."""

    part: float = 0.0
    updated_ps: int = 0

    def pass_time(self, now: int, runs: bool) -> None:
        """It was in use all the time since, or not at all."""
        left = exp2(-(now - self.updated_ps) / HALF_LIFE_PS)
        self.part = 1.0 - (1.0 - self.part) * left if runs else self.part * left
        self.updated_ps = now


NONE = -1
ONE = 1024  # a thread's load


@dataclass
class Cpu:
    """A processor: who runs on it, and who waits there."""

    running: int = NONE
    since: int = 0
    waiting: deque[int] = field(default_factory=deque)
    use: UseAverage = field(default_factory=UseAverage)

    @property
    def threads(self) -> int:
        """Those that run or wait."""
        return len(self.waiting) + (self.running != NONE)

    def pass_time(self, now: int) -> None:
        """Its use up to now, by whether a thread runs."""
        self.use.pass_time(now, self.running != NONE)


class Sum(NamedTuple):
    """Of a group's allowed processors; ``group``: its position in the domain; ``use``: of their
    time, averaged."""

    group: int
    weight: int
    threads: int
    idle: int
    use: float
    percent: int

    @property
    def load(self) -> int:
        """Of a processor, on average."""
        return ONE * self.threads // self.weight

    @property
    def kind(self) -> int:
        """0: it has room, 1: a thread each, 2: too many."""
        if self.threads == self.weight and self.use * self.percent < self.weight * 100:
            return 0
        return (self.threads >= self.weight) + (self.threads > self.weight)

    @property
    def room(self) -> int:
        """Of its processors' time, in ``ONE``."""
        if self.threads < self.weight:
            return (self.weight - self.threads) * ONE
        return int(max(self.weight - self.use, 0.0) * ONE)


class MigrationType(IntEnum):
    """What is counted of threads that are moved: each as one, its load, its use of a processor."""

    THREADS = 0
    LOAD = 1
    USE = 2


class Wanted(NamedTuple):
    """So much (in ``ONE``) from a group."""

    group: int
    what: MigrationType
    amount: int


def weight(domain: OsDomain) -> int:
    """How many processors it has."""
    return len(set().union(*domain.groups))


def local_group(domain: OsDomain, cpu: int) -> int:
    """The position of the first group that has the processor."""
    return next(g for g, group in enumerate(domain.groups) if cpu in group)


def sums_of(
    cpus: Sequence[Cpu], now: int, domain: OsDomain, cpu: int, counts: Callable[[int], bool]
) -> list[Sum]:
    """Of groups with processors that count, that of ``cpu`` first if it has any."""
    local, found = local_group(domain, cpu), []
    for group in [local, *(g for g in range(len(domain.groups)) if g != local)]:
        members = [cpus[member] for member in domain.groups[group] if counts(member)]
        threads, use = [member.threads for member in members], 0.0
        for member in members:
            member.pass_time(now)
            use += member.use.part
        percent = IMBALANCE_PERCENT[domain.level]
        if members:
            found.append(Sum(group, len(members), sum(threads), threads.count(0), use, percent))
    return found


def least_room(group_sum: Sum) -> tuple[int, int]:
    """The less, the more room for a new thread."""
    return (0, -group_sum.idle) if group_sum.kind == 0 else (group_sum.kind, group_sum.load)


def imbalance(domain: OsDomain, sums: Sequence[Sum], is_idle: bool) -> Wanted | None:
    """What the first group, the local one, takes for a processor that ``is_idle`` or not."""
    local, others = sums[0], [group_sum for group_sum in sums[1:] if group_sum.threads]
    if not others:
        return None
    busiest = max(others, key=_busy)
    if local.kind > busiest.kind:
        return None
    if local.kind == 0:
        return _for_room(domain, local, busiest, is_idle)
    if busiest.kind < 2:
        return None
    # Both have no room: what equals out.
    mean = (
        ONE
        * sum(group_sum.threads for group_sum in sums)
        // sum(group_sum.weight for group_sum in sums)
    )
    percent = IMBALANCE_PERCENT[domain.level]
    if local.load >= mean or 100 * busiest.load <= percent * local.load:
        return None
    amount = min((busiest.load - mean) * busiest.weight, (mean - local.load) * local.weight)
    return Wanted(busiest.group, MigrationType.LOAD, amount)


def _busy(group_sum: Sum) -> tuple[int, int, int]:
    return (
        (0, -group_sum.idle, group_sum.threads)
        if group_sum.kind == 0
        else (group_sum.kind, group_sum.load, 0)
    )


def _for_room(domain: OsDomain, local: Sum, busiest: Sum, is_idle: bool) -> Wanted | None:
    more = busiest.threads - local.threads
    if more == 1 and local.threads == 0 and busiest.threads > 1:
        more = 2
    if not (domain.spreads and more > 1) and busiest.kind < 2:
        if not is_idle or busiest.threads == 1:
            return None
        if busiest.weight > 1 and local.idle <= busiest.idle + 1:
            return None
    if busiest.kind == 2 and domain.level > Level.CACHE:
        return Wanted(busiest.group, MigrationType.USE, local.room)
    by_threads = busiest.weight == 1 or domain.spreads
    amount = max(more if by_threads else local.idle - busiest.idle, 0)
    if domain.level == Level.BEYOND and local.threads + 1 <= domain.spare and amount <= 2:
        amount = 0
    return Wanted(busiest.group, MigrationType.THREADS, (amount >> 1) * ONE)
