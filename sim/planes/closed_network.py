"""Closed networks of queues by approximate mean value analysis: customers who fork and join.

N customers go round a cycle of stages. A stage forks into branches, all of which have to end before
the customer goes on; a branch goes through visits of stations (servers in order of arrival) and
takes a time of its own beside them. At a rate of X cycles a second, who arrives at a station finds
what the other N - 1 customers have brought (Bard and Schweitzer), so that it waits

    W = f U r / (c (1 - f U)) · (f U)^(sqrt(2 (c + 1)) - 2),   f = (N - 1) / N,

with U the use of its c servers, r what is left of the work that is being served when it comes
(E[B²] / 2 E[B], where B is the work that one fork brings at once), and the last factor, which is 1
for one server, Sakasegawa's for several (An approximation formula L_q ≈ α ρ^β / (1 - ρ), Annals of
the Institute of Statistical Mathematics 29, 1977). Then X (the sum of all stages) = N.

Customers that all take the same time come in convoys, which no mean value knows; see ``Convoy``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np

from ..kernel.arrays import Floats

# Of the largest of n normal values, in standard deviations above the mean.
LARGEST = (0.0, 0.0, 0.564, 0.846, 1.029, 1.163, 1.267, 1.352, 1.424, 1.485, 1.539)

# How fast convoys dissolve as customers vary: read off an event plane with 5 to 70 customers that
# vary by nothing up to ten times a cycle, of which most are met within a tenth.
DISSOLVES = 10.0

NOTHING = 1e-3  # of a convoy's time: customers that vary by less take all the same time
ROUNDS = 8  # of customers in step, until their cycle is the same each time


@dataclass(frozen=True)
class Station:
    """``members`` alike stations, each of ``servers``; a visit is to one of them, evenly spread.

    ``drawn``: at random, again each time; else each customer has its own one.
    """

    name: str
    servers: int = 1
    members: int = 1
    drawn: bool = False


@dataclass(frozen=True)
class Visit:
    """Of ``station`` by position, or of the customer's own server where that is None: how often,
    and the mean of its service time and of the square of it. ``label``: for who adds visits up.
    ``without_queueing``: served together with another visit, without a wait of its own."""

    station: int | None
    often: float
    service_s: float
    square_s2: float
    label: str = ""
    without_queueing: bool = False


@dataclass(frozen=True)
class Branch:
    """``count`` alike ones at once; each through ``visits`` in turn, and ``delay_s`` more."""

    visits: tuple[Visit, ...]
    delay_s: float = 0.0
    count: int = 1


@dataclass(frozen=True)
class Stage:
    """``asynchronous``: customers do not wait for it."""

    name: str
    branches: tuple[Branch, ...]
    asynchronous: bool = False


@dataclass(frozen=True, eq=False)
class Solution:
    """``rate``: cycles per second. ``stages_s``: by stage that is waited for, how long one takes;
    ``waits_s`` (K,) of a visit, ``use`` (K,) of each server. ``in_step``: the rate of customers in
    convoys; ``at_random``: of such as come at random."""

    rate: float
    stages_s: dict[str, float]
    waits_s: Floats
    use: Floats
    at_random: float
    in_step: float


class _Brought:
    """What a stage brings to each of ``stations``, and to the customer's own server; see Cycle."""

    def __init__(self, stations: int) -> None:
        self.work_s, self.squares_s2 = [0.0] * stations, [0.0] * stations
        self.visits, self.visits_s2 = [0.0] * stations, [0.0] * stations
        self.own_s = 0.0


class Cycle:
    """S stages over K stations, in numbers: those of its branches, of which B are waited for.

    ``work_s`` (S, K), ``squares_s2`` (S, K), ``own_s`` (S,): what a stage brings to a station and
    to the customer's own server; ``visits`` (S, K), ``visits_s2`` (S, K): how many visits, and the
    squares of their service times, each by itself. ``base_s`` (B,): of a branch, without waits;
    ``in_all``, ``power`` (K,): servers of all members, and the exponent of Sakasegawa's factor.
    ``weight`` (B, K): how often it waits; ``spread`` (B, K): as much of that as varies among
    branches of a fork.
    """

    def __init__(self, stations: Sequence[Station], stages: Sequence[Stage]) -> None:
        self.stations, self.stages = tuple(stations), tuple(stages)
        self.servers = np.array([s.servers for s in stations], dtype=np.float64)
        self.members = np.array([s.members for s in stations], dtype=np.float64)
        self.in_all = self.members * self.servers
        self.power = np.sqrt(2.0 * (self.servers + 1.0)) - 1.0
        rows, brought = [], [_Brought(len(stations)) for _ in stages]
        for of_stage, stage in zip(brought, stages, strict=True):
            added = [self._added(of_stage, branch) for branch in stage.branches]
            rows += [] if stage.asynchronous else added
        shape = (len(stages), len(stations))
        self.work_s = np.array([branch.work_s for branch in brought]).reshape(shape)
        self.squares_s2 = np.array([branch.squares_s2 for branch in brought]).reshape(shape)
        self.visits = np.array([branch.visits for branch in brought]).reshape(shape)
        self.visits_s2 = np.array([branch.visits_s2 for branch in brought]).reshape(shape)
        self.own_s = np.array([branch.own_s for branch in brought])
        waited = [(index, s) for index, s in enumerate(stages) if not s.asynchronous and s.branches]
        self.waited = [index for index, _ in waited]
        self.firsts = np.cumsum([0, *(len(stage.branches) for _, stage in waited)])[:-1]
        self.base_s = np.array([row[0] for row in rows])
        self.weight = np.array([row[1] for row in rows]).reshape(len(rows), len(stations))
        self.spread = np.array([row[2] for row in rows]).reshape(len(rows), len(stations))
        counts = [branch.count for _, stage in waited for branch in stage.branches]
        self.largest = np.array([LARGEST[min(count, len(LARGEST) - 1)] for count in counts])

    def _added(self, of_stage: _Brought, branch: Branch) -> tuple[float, list[float], list[float]]:
        """Its row; its work is added to that of its stage."""
        count, own_s, last_s = branch.count, 0.0, 0.0
        weight, spread = [0.0] * len(self.stations), [0.0] * len(self.stations)
        paced_s = 0.0  # the time between branches of a fork, after earlier visits
        for visit in branch.visits:
            each_s = visit.often * visit.service_s
            own_s += each_s
            if visit.station is None:
                paced_s = max(paced_s, each_s)
                last_s = max(last_s, (count - 1) * each_s)
                of_stage.own_s += count * each_s
                continue
            k, station = visit.station, self.stations[visit.station]
            # Others of the fork that come to the same member; several servers take some at once.
            ahead = (count - 1) * min(visit.often, 1.0) / station.members
            at_once_s = max(visit.service_s - paced_s, 0.0)
            squares_s2 = visit.square_s2 + ahead * visit.service_s * at_once_s
            of_stage.work_s[k] += count * each_s
            of_stage.visits[k] += count * visit.often
            of_stage.visits_s2[k] += count * visit.often * visit.square_s2
            of_stage.squares_s2[k] += count * visit.often * squares_s2
            if station.members == station.servers == 1:
                paced_s = max(paced_s, each_s)
            last_s = max(last_s, max(ahead + 1.0 - station.servers, 0.0) / station.servers * each_s)
            if visit.without_queueing:
                continue
            weight[k] += visit.often
            shared = min(visit.often, 1.0) / station.members if count > 1 else 0.0
            spread[k] += visit.often * (1.0 - shared)
        return branch.delay_s + own_s + last_s, weight, spread


class ClosedNetwork:
    """``customers``, each with a server of its own, go round a cycle over and over; stage k comes
    ``often[k]`` times in it, on average.

    ``varies_s``: how much a cycle's own time (standard deviation, without waits) varies; below 0:
    at random, so that there are no convoys.
    """

    def __init__(
        self, cycle: Cycle, often: Sequence[float], customers: float, varies_s: float = -1.0
    ) -> None:
        self.cycle, self.customers, self.varies_s = cycle, customers, varies_s
        self.often = np.array(often, dtype=np.float64)
        work_s, squares_s2 = self.often @ cycle.work_s, self.often @ cycle.squares_s2
        self.own_s = float(self.often @ cycle.own_s)
        self.demand_s = work_s / cycle.in_all
        """(K,) work of a cycle for each server of each member."""
        self._residual_s = np.divide(
            squares_s2, 2.0 * work_s, out=np.zeros_like(work_s), where=work_s > 0
        )
        self._residual_s /= cycle.servers
        self._waited_often = self.often[cycle.waited]

    @property
    def bound(self) -> float:
        """Cycles per second that no order of service can exceed."""
        most_s = max(float(self.demand_s.max(initial=0.0)), self.own_s / self.customers)
        return inf if most_s == 0 else 1.0 / most_s

    def waits_s(self, rate: float) -> Floats:
        """(K,) wait of a visit at so many cycles per second, below the bound."""
        others = max(self.customers - 1.0, 0.0) / self.customers
        use = np.minimum(rate * others * self.demand_s, 1.0 - 1e-15)
        return np.asarray(self._residual_s * use**self.cycle.power / (1.0 - use))

    def stages_s(self, waits_s: Floats) -> Floats:
        """(S,) time of each stage that is waited for."""
        cycle = self.cycle
        varies = np.sqrt(cycle.spread @ waits_s**2)
        times = cycle.base_s + cycle.weight @ waits_s + cycle.largest * varies
        return np.asarray(np.maximum.reduceat(times, cycle.firsts))

    def cycle_s(self, rate: float) -> float:
        """How long a cycle takes at so many per second."""
        return float(self._waited_often @ self.stages_s(self.waits_s(rate)))

    def solve(self) -> Solution:
        """The rate at which all customers are somewhere."""
        idle_s = self.cycle_s(0.0)
        at_random = _root(
            lambda rate: rate * self.cycle_s(rate) - self.customers,
            min(self.bound, self.customers / idle_s),
        )
        convoy = Convoy(self, idle_s)
        in_step = min(convoy.rate, at_random)
        rate = at_random - convoy.part * (at_random - in_step)
        # Where convoys make a cycle longer, its waits are longer by as much.
        waits = self.waits_s(at_random)
        stages = self.stages_s(waits)
        longer = self.customers / (rate * float(self._waited_often @ stages))
        names = [self.cycle.stages[index].name for index in self.cycle.waited]
        found = dict(zip(names, (stages * max(longer, 1.0)).tolist(), strict=True))
        return Solution(rate, found, waits, rate * self.demand_s, at_random, in_step)


class Convoy:
    """Customers that do not vary come in convoys: in a queue that is visited more than once in a
    cycle, those on a short visit wait behind all that are on a long one, and go on together. Where
    all visits are about as long nobody is held up more than others.

    Where nothing is left to chance all go as one, from their start together:
    ``_all_as_one`` simulates the first and the last of them. Else the longest queue stands empty
    once in a cycle, from the last one of a convoy until the first comes again: N / (R + (N - 1)
    D), R without waits, D of the fullest such server (the lower balanced job bound; Zahorjan et
    al., Balanced job bound analysis of queueing networks, CACM 25, 1982). ``part``: how far
    customers are from coming at random: all of it where they do not vary, less the more they do
    compared with what a convoy takes.
    """

    def __init__(self, network: ClosedNetwork, idle_s: float) -> None:
        self.network, self.part, self.rate = network, 0.0, inf
        returned = [k for k in range(len(network.demand_s)) if self._returns(k)]
        if network.varies_s < 0 or network.customers <= 1 or not returned:
            return
        # A server that is nearly as full as the fullest holds convoys nearly as well.
        drain_s = (network.customers - 1.0) * float(network.demand_s[returned].max())
        width_s = sqrt(12.0) * network.varies_s
        self.part = 1.0 / (1.0 + DISSOLVES * width_s / max(idle_s, drain_s))
        chance = any(s.drawn and s.members > 1 for s in network.cycle.stations)
        if width_s <= NOTHING * drain_s and not chance:
            self.rate = network.customers / self._all_as_one()
        else:
            self.rate = network.customers / (idle_s + drain_s)

    def _returns(self, station: int) -> bool:
        """Whether this station has one server and is come back to within a cycle, for visits of
        which some are far longer than others."""
        network, cycle = self.network, self.network.cycle
        own_s = network.own_s / network.customers
        if cycle.stations[station].servers > 1 or own_s > network.demand_s[station]:
            return False
        visits, squares_s2, work_s = (
            float(network.often @ of_stages[:, station])
            for of_stages in (cycle.visits, cycle.visits_s2, cycle.work_s)
        )
        # By the squared coefficient of variation; a long visit for each short one has 1.
        if squares_s2 * visits < 1.5 * work_s**2:
            return False
        stages = [
            index
            for index in cycle.waited
            if network.often[index] * cycle.work_s[index, station] > 0
        ]
        return len(stages) > 1

    def _all_as_one(self) -> float:
        """The cycle of customers that began together."""
        free = [0.0] * len(self.network.cycle.stations)
        first = last = began = cycle_s = 0.0
        for _ in range(ROUNDS):
            for stage, often in zip(self.network.cycle.stages, self.network.often, strict=True):
                ends = [self._through(b, float(often), first, last, free) for b in stage.branches]
                if ends and not stage.asynchronous:
                    first, last = (max(times) for times in zip(*ends, strict=True))
            cycle_s, began = first - began, first
        return cycle_s

    def _through(
        self, branch: Branch, often: float, first: float, last: float, free: list[float]
    ) -> tuple[float, float]:
        """When the first and the last customer are through; ``free``: when stations are."""
        customers = self.network.customers
        for visit in branch.visits:
            one_s = often * visit.often * visit.service_s
            if visit.station is None:
                first, last = first + branch.count * one_s, last + branch.count * one_s
                continue
            station = self.network.cycle.stations[visit.station]
            each_s = branch.count * one_s / (station.members * station.servers)
            begins = max(first, free[visit.station])
            first, last = begins + one_s, max(last + one_s, begins + customers * each_s)
            free[visit.station] = last
        return first + often * branch.delay_s, last + often * branch.delay_s


def _root(over: Callable[[float], float], high: float) -> float:
    """Where a rising function, below 0 at 0, is 0, up to ``high`` (Illinois)."""
    low, at_low, at_high = 0.0, over(0.0), over(high)
    if at_high <= 0:
        return high
    near, side = 1e-7 * abs(at_low), 0
    for _ in range(100):
        # Near a server's limit waits grow without end: there halves get nearer than lines.
        steep = at_high > 4.0 * abs(at_low)
        middle = (
            0.5 * (low + high) if steep else (low * at_high - high * at_low) / (at_high - at_low)
        )
        excess = over(middle)
        if abs(excess) <= near or high - low <= 1e-12 * high:
            return middle
        if excess < 0:
            low, at_low = middle, excess
            at_high *= 0.5 if side < 0 and not steep else 1.0
            side = -1
        else:
            high, at_high = middle, excess
            at_low *= 0.5 if side > 0 and not steep else 1.0
            side = 1
    return low
