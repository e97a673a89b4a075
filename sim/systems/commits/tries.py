"""The rate of tries and how they end, in a steady state: the network and the conflicts together.

What a try meets decides how long it takes, and how many come through decides what it meets: both
are found in turn until they agree.

Conflict rates of transactions, as a model of means.

A try reads records as of a snapshot, and aborts where one was overwritten since (``fresh``), or
is locked or overwritten between its reading and its locking (``undisturbed``). Writers have to
find their records fresh, too: a popular record that was just written is written again only by those
whose snapshot has it.
"""

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import log, nan, pi, prod, sqrt

import numpy as np

from ...kernel.arrays import Floats
from ...machine.processors import SHARES_NONE
from ...planes.closed_network import ClosedNetwork, Solution
from .checked_values import PS
from .parameters import CommitParameters, KeyDraw
from .routes import CLIENT, MANAGER, STORAGE, TIMESTAMPS, Chances, Rest, Routes
from .servers import client_threads

ALL_COMMIT = Chances()
ROUNDS, NEAR = 30, 3e-4
REST_ROUNDS = 8


@dataclass(frozen=True)
class Snapshots:
    """What holds the snapshot back, beside the transactions under way.

    ``since_s``: for how long clients have run, and drifted apart. ``standing``: commits since it
    has stood still; None where it moves. ``customers``: clients that take part.
    """

    customers: float
    since_s: float = 0.0
    standing: float | None = None


@dataclass(frozen=True, eq=False)
class Tries:
    """``rate``: tries per second; ``chances`` of one; ``latency_s``: of a committed transaction,
    with its earlier tries."""

    rate: float
    chances: Chances
    latency_s: float
    solution: Solution

    @property
    def commits_per_s(self) -> float:
        """Throughput."""
        return self.rate * self.chances.commits


class TryModel:
    """Tries of one run's clients."""

    def __init__(self, parameters: CommitParameters, lost: float = 0.0) -> None:
        """``lost``: which part of all records is."""
        self.p, self._lost = parameters, lost
        self.routes = Routes(parameters)
        self._keys = popularity(parameters.keys, parameters.records)
        p = parameters
        self._shared = _hardware_threads(p)
        own_s = p.compute_ps * p.compute_spread / sqrt(3.0) / PS
        think_s = p.think_ps / PS if p.think == "exponential" else 0.0
        self._varies_s = sqrt(own_s**2 + think_s**2)

    @property
    def turns(self) -> bool:
        """Whether threads of servers take turns on their hardware threads."""
        return any(count < len(self.p.managers) for count in self._shared)

    def solve(self, snapshots: Snapshots, start: Chances = ALL_COMMIT) -> Tries:
        """The steady state, from ``start`` on."""
        chances = self._with_retries(start)
        found = self._at(chances, snapshots)
        for _ in range(ROUNDS):
            met = self._success_chances(found, snapshots)
            met = replace(met, reads=met.reads * (1.0 - self._lost) ** self.p.reads)
            nearer = Chances(0.5 * (chances.reads + met.reads), 0.5 * (chances.votes + met.votes))
            off = abs(met.commits - chances.commits)
            if off < NEAR:
                break
            chances = self._with_retries(met if off < 30.0 * NEAR else nearer)
            found = self._at(chances, snapshots)
        return replace(found, latency_s=self._latency_s(found, snapshots.customers))

    def _with_retries(self, chances: Chances) -> Chances:
        """Of all tries, those that are followed by one of the same transaction."""
        failed, tries = 1.0 - chances.commits, self.p.retries + 1.0
        if failed < 1.0:
            tries = float((1.0 - failed ** (self.p.retries + 1)) / (1.0 - failed))
        return replace(chances, retry=1.0 - 1.0 / tries)

    def _active(self, customers: float) -> float:
        """Whose thread waits for a hardware thread waits with it: for far longer than a try takes.
        Each server gives its threads turns of its own."""
        return customers * prod(min(count / customers, 1.0) for count in self._shared)

    def _at(self, chances: Chances, snapshots: Snapshots) -> Tries:
        """Where tries end so; without the latency."""
        often, active = self.routes.often(chances), self._active(snapshots.customers)
        solution = ClosedNetwork(self.routes.cycle, often, active, self._varies_s).solve()
        for _ in range(REST_ROUNDS if self.routes.on_host else 0):
            rate, self.routes = solution.rate, Routes(self.p, self._rest(solution, chances, active))
            solution = ClosedNetwork(self.routes.cycle, often, active, self._varies_s).solve()
            if abs(solution.rate - rate) < NEAR * rate:
                break
        return Tries(solution.rate, chances, nan, solution)

    def _rest(self, solution: Solution, chances: Chances, customers: float) -> Rest:
        """What a message meets on a host: processes that work for other clients are awake."""
        others = solution.rate * (customers - 1.0) / customers
        asleep, idle = {CLIENT: 1.0}, dict[str, float]()
        members = {STORAGE: len(self.p.storage), MANAGER: len(self.p.managers)}
        for role, shares in self.routes.processors.items():
            if role != CLIENT:
                busy_s = self._labelled_s(role, chances) / max(members.get(role, 1), 1)
                asleep[role] = max(1.0 - others * busy_s, 0.0)
            busy = sum(share * float(solution.use[k]) for k, share in shares.items())
            idle[role] = 1.0 - busy * (customers - 1.0) / customers
        return Rest(asleep, idle)

    def _latency_s(self, tries: Tries, customers: float) -> float:
        """Of a commit: its own try, and those of the same transaction that failed before."""
        chances, times = tries.chances, tries.solution.stages_s
        often = self.routes.often(chances)
        fetches, failed = 1.0 / self.p.snapshot_every, 1.0 - chances.commits
        committed_s = failed_s = 0.0
        stages = zip(self.routes.cycle.stages, self.routes.kinds, often, strict=True)
        for stage, kind, of_try in stages:
            each_s = times.get(stage.name, 0.0)
            if kind in ("thinking", "backing off"):
                continue
            of_commit = {"snapshot": fetches, "undoing": 0.0, "bit known": of_try}.get(kind, 1.0)
            committed_s += of_commit * each_s
            failed_s += max(of_try - chances.commits * of_commit, 0.0) * each_s
        # Given that one of the tries allowed commits: how many failed before it.
        shares = [failed**k for k in range(min(self.p.retries, 1000) + 1)]
        before = sum(k * share for k, share in enumerate(shares)) / sum(shares)
        again_s = failed_s / failed + self.p.backoff_ps / PS if failed else 0.0
        return (committed_s + before * again_s) * customers / self._active(customers)

    def own_s(self, chances: Chances) -> float:
        """A client's own time in a try, on average."""
        return self._labelled_s(CLIENT, chances) + chances.reads * self.p.compute_ps / PS

    def use_of_servers(self, tries: Tries) -> Floats:
        """(B,) of adapters outwards, by machine, then inwards, then threads of each node, then of
        the clients, as ``CommitResult.busy_ps``."""
        p, routes, use = self.p, self.routes, tries.solution.use
        machines = np.array(routes.machine_group)
        inwards = len(set(routes.machine_group))
        if routes.on_host or p.machines == 1:
            by_role = {
                role: tries.rate * self._labelled_s(role, tries.chances)
                for role in (CLIENT, STORAGE, TIMESTAMPS, MANAGER)
            }
            nodes = [
                (n in p.storage) * by_role[STORAGE] / len(p.storage)
                + (n == p.timestamps) * by_role[TIMESTAMPS]
                + (n in p.managers) * by_role[MANAGER] / max(len(p.managers), 1)
                for n in range(len(p.nodes))
            ]
            clients = by_role[CLIENT] / len(p.client_machine)
            return np.array([0.0] * 2 * p.machines + nodes + [clients])
        nodes_use = use[2 * inwards + np.array(routes.node_group)]
        if p.own_managers:  # they poll
            threads = len(p.managers)
            runs = np.minimum(np.array(self._shared) / threads, 1.0)
            nodes_use[_own_nodes(p)] = np.repeat(runs, threads)
        clients = tries.rate * self._labelled_s(CLIENT, tries.chances) / client_threads(p)
        return np.concatenate([use[machines], use[inwards + machines], nodes_use, [clients]])

    def _labelled_s(self, label: str, chances: Chances) -> float:
        """Work of a try for visits of that label."""
        return sum(
            often * branch.count * visit.often * visit.service_s
            for stage, often in zip(
                self.routes.cycle.stages, self.routes.often(chances), strict=True
            )
            for branch in stage.branches
            for visit in branch.visits
            if visit.label == label
        )

    def _success_chances(self, tries: Tries, snapshots: Snapshots) -> Chances:
        """How tries end where as many as these come through."""
        p, commits = self.p, tries.commits_per_s
        if not p.updates:
            return Chances()
        lag_s, open_s = self._one_sided(tries, snapshots) if p.one_sided else self._two_phase(tries)
        missing, standing = commits * lag_s, snapshots.standing is not None
        if snapshots.standing is not None:
            missing += snapshots.standing
        known = fresh(self._keys, p.updates, missing, standing=standing)
        votes = undisturbed(self._keys, known, p.updates, commits * open_s)
        if p.versions > 1:  # readers find what they look for; writers see that it is not the newest
            updated = known.mean**p.updates
            return Chances(updated, votes) if p.one_sided else Chances(1.0, updated * votes)
        return Chances(known.mean**p.reads, votes)

    def _one_sided(self, tries: Tries, snapshots: Snapshots) -> tuple[float, float]:
        """How far a snapshot is behind when records are read, and how long records may be taken by
        others: from reading until the lock is there, and for as long as a lock is held before.

        The run of timestamps waits for the client that has had fewest. Clients drift apart: each
        one's number of tries is a renewal process, so that it varies by t σ² / R³ after t.
        """
        p, times, waits = self.p, tries.solution.stages_s, tries.solution.waits_s
        cycle_s = snapshots.customers / tries.rate
        chances = tries.chances
        rest_s = sum(times.get(name, 0.0) for name in ("own work", "locks", "writes"))
        failed = 1.0 - chances.commits
        spread_s2 = failed * (1.0 - failed) * rest_s**2 + self._varies_s**2
        drift = 0.0 if p.in_step else sqrt(snapshots.since_s * spread_s2 / cycle_s**3)
        behind_s = drift * largest_of(round(snapshots.customers)) * cycle_s
        if p.skip_after_ps is not None:
            # What nobody claims is skipped; on average it has stood for half of that time.
            behind_s = min(behind_s, 0.5 * p.skip_after_ps / PS)
        station = self.routes.station
        inwards, outwards = (waits[station(TIMESTAMPS, direction)] for direction in ("in", "out"))
        unloaded_s = max(times["snapshot"] - inwards - outwards, 0.0)
        read_s = outwards + 0.5 * unloaded_s + 0.5 * times["reads"]
        bit_s = 0.5 * times.get("writes", 0.0) + inwards + 0.5 * unloaded_s
        locks_s = times.get("locks", 0.0)
        until_locked_s = 0.5 * times["reads"] + times["own work"] + 0.5 * locks_s
        held_s = 0.5 * locks_s + 0.5 * times.get("writes", 0.0)
        return behind_s + read_s + bit_s, until_locked_s + held_s

    def _two_phase(self, tries: Tries) -> tuple[float, float]:
        """The same: a timestamp is done with once the manager has told so, and snapshots wait for
        the oldest that is not."""
        times = tries.solution.stages_s
        votes_s, install_s = times["votes"], times["votes"]  # there and back, as long
        done_s = 0.5 * install_s + 0.5 * votes_s
        read_s = 0.5 * times["snapshot"] + 0.5 * times["reads"]
        until_locked_s = (
            0.5 * times["reads"] + times["own work"] + times["commit request"] + 0.5 * votes_s
        )
        return done_s + read_s, until_locked_s + 0.5 * votes_s + 0.5 * install_s


def _own_nodes(p: CommitParameters) -> list[int]:
    """The threads of each server in turn, where each client has one."""
    return list(dict.fromkeys((*p.managers, *p.own_storage)))


def _hardware_threads(p: CommitParameters) -> list[float]:
    """Of each server with a thread for each client; a part where it shares them with another."""
    if p.processors is None or not p.own_managers:
        return []
    of_node = p.processors.homes[len(p.client_machine) :]
    homes = (of_node[node] for node in _own_nodes(p))
    groups = [p.processors.groups[home] for home in homes if home != SHARES_NONE]
    clients, all_threads, hardware = len(p.managers), Counter(groups), Counter(p.processors.groups)
    return [clients * hardware[group] / all_threads[group] for group in groups[::clients]]


ALONE, BINS = 100, 150  # most popular records that are looked at alone, and bins of the others
SHARE_ROUNDS, SHARE_NEAR = 60, 1e-6


@dataclass(frozen=True, eq=False)
class Popularity:
    """Bins of records that are asked for alike: how likely each one (B,), and how many (B,)."""

    chance: Floats
    count: Floats

    @cached_property
    def weight(self) -> Floats:
        """(B,) how likely a draw is of that bin."""
        return self.chance * self.count


@lru_cache(maxsize=16)
def popularity(keys: KeyDraw, records: int) -> Popularity:
    """Of ``records`` that are drawn so."""
    if keys.distribution == "hot":
        hot = keys.hot_records
        counts = np.array([hot, records - hot], dtype=np.float64)
        mass = np.array([keys.hot_probability, 1.0 - keys.hot_probability])
        return Popularity(mass / counts, counts)
    if keys.distribution != "zipf" or records <= ALONE:
        ranks = np.arange(1, records + 1.0) if keys.distribution == "zipf" else np.ones(1)
        weights = ranks ** -(keys.exponent if keys.distribution == "zipf" else 0.0)
        counts = np.ones(len(ranks)) if keys.distribution == "zipf" else np.array([float(records)])
        return Popularity(weights / (weights @ counts), counts)
    far = np.unique(np.round(np.geomspace(ALONE + 1, records + 1, BINS)))
    edges = np.concatenate([np.arange(1.0, ALONE + 1.0), far])
    counts = np.diff(edges)
    # The mean weight of a bin: the integral of rank^-exponent over it, by the midpoint rule.
    low, high, s = edges[:-1] - 0.5, edges[1:] - 0.5, keys.exponent
    if abs(s - 1.0) < 1e-9:
        whole = np.log(high / low)
    else:
        whole = (high ** (1.0 - s) - low ** (1.0 - s)) / (1.0 - s)
    weights = np.where(counts == 1.0, edges[:-1] ** -s, whole / counts)
    return Popularity(weights / (weights @ counts), counts)


@dataclass(frozen=True, eq=False)
class Freshness:
    """(B,) how likely a record of each bin was not written since a snapshot; ``mean`` of a draw."""

    of_bin: Floats
    mean: float


def fresh(popularity: Popularity, updates: int, commits: float, *, standing: bool) -> Freshness:
    """Of snapshots that do not have the last so many commits, of ``updates`` records each.

    A snapshot that moves on behind the commits: a record is fresh for 1 / rate on average, then
    stale for as long as the snapshot takes, in turn, at a rate in proportion to its popularity
    among those commits that come through. One that is ``standing``: each record is fresh until it
    is written once; so many records are no more.
    """
    if commits <= 0 or not updates:
        return Freshness(np.ones(len(popularity.chance)), 1.0)
    if standing:
        return _standing(popularity, updates * commits)
    mean, each = 1.0, np.empty(len(popularity.chance))
    if len(each) == 1:  # all are asked for alike
        return _evenly(float(popularity.chance[0]), float(popularity.weight[0]), updates * commits)
    for _ in range(SHARE_ROUNDS):
        np.multiply(popularity.chance, updates * commits / mean, out=each)
        np.add(each, 1.0, out=each)
        np.divide(1.0, each, out=each)
        before, mean = mean, 0.5 * (mean + float(popularity.weight @ each))
        if abs(mean - before) < SHARE_NEAR:
            break
    return Freshness(each, mean)


def _evenly(chance: float, weight: float, written: float) -> Freshness:
    mean = 1.0
    for _ in range(SHARE_ROUNDS):
        each = 1.0 / (1.0 + written / mean * chance)
        before, mean = mean, 0.5 * (mean + weight * each)
        if abs(mean - before) < SHARE_NEAR:
            break
    return Freshness(np.array([each]), mean)


def _standing(popularity: Popularity, written: float) -> Freshness:
    written = min(written, 0.999 * float(popularity.count.sum()))
    low, high = 0.0, 1.0
    while float(popularity.count @ -np.expm1(-popularity.chance * high)) < written:
        high *= 4.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        if float(popularity.count @ -np.expm1(-popularity.chance * middle)) < written:
            low = middle
        else:
            high = middle
    each = np.exp(-popularity.chance * high)
    return Freshness(each, float(popularity.weight @ each))


def undisturbed(popularity: Popularity, known: Freshness, updates: int, commits: float) -> float:
    """How likely none of a transaction's ``updates`` records, which it found fresh, is taken by one
    of so many commits meanwhile."""
    among = popularity.weight * known.of_bin / known.mean
    taken = -np.expm1(-updates * commits * popularity.chance * known.of_bin / known.mean)
    return float(max(1.0 - float(among @ taken), 0.0)) ** updates


def largest_of(customers: int) -> float:
    """The mean of the largest of so many standard normal values (extreme value theory)."""
    if customers < 2:
        return 0.0
    if customers < 6:
        return (0.0, 0.0, 0.564, 0.846, 1.029, 1.163)[customers]
    high = sqrt(2.0 * log(customers))
    return high - (log(log(customers)) + log(4.0 * pi) - 2.0 * 0.5772) / (2.0 * high)
