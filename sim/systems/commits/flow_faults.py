"""Faults on the flow plane: who is blocked when, and what messages take meanwhile."""

import math
from dataclasses import dataclass, replace
from itertools import product

from ..._kernel import PathFault
from ...machine.reference.message_path import PathFaults
from .checked_values import PS
from .parameters import CommitParameters, Stop


@dataclass(frozen=True)
class Standing:
    """Between two changes: whether nobody goes on, how many clients do not, what it costs, and
    which part of all records is lost."""

    blocked: bool
    cut_off: int
    parameters: CommitParameters
    lost: float


class FlowFaults:
    """Of a run: each time between two changes is a steady state.

    While a server that transactions need is stopped or cut off nobody goes on, until who asked asks
    again. Clients that are cut off hold all others up under RSI, but where both remedies are on.
    """

    def __init__(self, parameters: CommitParameters, commits_per_s: float) -> None:
        self.p = p = parameters
        self._commits_per_s = commits_per_s
        self._servers = sorted({node.machine for node in p.nodes})
        out_ps = [
            stop.fails_over_ps(p.failover_ps or 0)
            if p.replicas and p.storage_on(stop.machine)
            else None
            for stop in p.stops
        ]
        self._away = [
            (stop, out, self._rejoins_ps(stop, out))
            for stop, out in zip(p.stops, out_ps, strict=True)
        ]
        self._stops = [
            (stop.at_ps, self._resumes_ps(stop.at_ps, out or stop.returns_ps))
            for stop, out, _ in self._away
        ]
        self._paths = [
            (f, self._resumes_ps(f.from_ps, f.until_ps) if f.loss >= 1 else f.until_ps)
            for f in p.path_faults
        ]
        times = {t for span in self._stops for t in span} | {
            t for f, until in self._paths for t in (f.from_ps, until)
        }
        times |= {back for _, _, back in self._away}
        self.changes_s = sorted(t / PS for t in times if t is not None)

    def at(self, time_s: float) -> Standing:
        """From that time to the next change."""
        now_ps = time_s * PS * (1 + 1e-12)
        stopped = any(a <= now_ps and (b is None or now_ps < b) for a, b in self._stops)
        active = [
            f
            for f, until in self._paths
            if f.from_ps <= now_ps and (until is None or now_ps < until)
        ]
        down = [f for f in active if f.loss >= 1]
        cut = {
            client
            for client, machine in enumerate(self.p.client_machine)
            if any(_between(f, machine, server) for f in down for server in self._servers)
        }
        servers_cut = not self.p.one_sided and any(
            _between(f, a, b) for f in down for a, b in product(self._servers, repeat=2)
        )
        remedied = self.p.lease_ps is not None and self.p.skip_after_ps is not None
        all_wait = bool(cut) and self.p.one_sided and not remedied
        blocked = stopped or servers_cut or all_wait
        return Standing(blocked, len(cut), self._slower(active, now_ps), self._lost(now_ps))

    def _lost(self, now_ps: float) -> float:
        """Of servers that came back without them."""
        lost = {
            server
            for stop in self.p.stops
            if stop.empty and not self.p.replicas and (stop.returns_ps or now_ps) < now_ps
            for server in self.p.storage_on(stop.machine)
        }
        return len(lost) / len(self.p.storage)

    def _left(self, now_ps: float) -> CommitParameters:
        """The servers that did not fail over have all records, with replicas where there is more
        than one."""
        out = {
            stop.machine
            for stop, out_ps, back_ps in self._away
            if out_ps is not None and out_ps <= now_ps and (back_ps is None or now_ps < back_ps)
        }
        if not out:
            return self.p
        storage = tuple(n for n in self.p.storage if self.p.nodes[n].machine not in out)
        return replace(self.p, storage=storage, replicas=min(self.p.replicas, len(storage) - 1))

    def _rejoins_ps(self, stop: Stop, out_ps: int | None) -> int | None:
        """When a server that was out has what it missed: all, or what was written meanwhile."""
        if out_ps is None or stop.returns_ps is None:
            return None
        back_ps, servers = max(out_ps, stop.returns_ps), len(self.p.storage)
        held = self.p.records * (1 + self.p.replicas) / servers
        away_s = (back_ps - stop.at_ps) / PS
        writes = self._commits_per_s * self.p.updates * away_s * (1 + self.p.replicas) / servers
        missed = held if stop.empty else held * -math.expm1(-writes / held)
        return back_ps + round(missed * self.p.copy_ps)

    def rejoins(self) -> list[tuple[int, int]]:
        """When, and on which machine."""
        return [(back_ps, stop.machine) for stop, _, back_ps in self._away if back_ps is not None]

    def degraded_s(self, until_s: float) -> float:
        """For how long a storage server was stopped or out; one at a time."""
        ends = [
            (stop.at_ps, back_ps if out_ps is not None else stop.returns_ps)
            for stop, out_ps, back_ps in self._away
            if self.p.storage_on(stop.machine)
        ]
        return sum(
            max(0.0, min(until_s, until_s if b is None else b / PS) - a / PS) for a, b in ends
        )

    def _slower(self, active: list[PathFault], now_ps: float) -> CommitParameters:
        """Paths that lose or are slow make messages take longer, averaged over all paths."""
        left = self._left(now_ps)
        pairs = [*product({*self.p.client_machine}, self._servers)]
        delay, factor = 0.0, 1.0
        for fault in active:
            share = sum(_between(fault, *pair) for pair in pairs) / len(pairs)
            assert self.p.transport is not None
            if 0 < fault.loss < 1:
                delay += share * fault.loss / (1 - fault.loss) * self.p.transport.timeout_ps
            delay += share * fault.late * min(fault.late_ps, self.p.transport.timeout_ps)
            factor += share * (fault.factor - 1)
        if not delay and factor == 1.0:
            return left
        costs = {
            name: tuple(
                cost.replaced(
                    wire_ps=round(cost.wire_ps * factor + cost.out_ps * (factor - 1) + delay)
                )
                for cost in entries
            )
            for name, entries in self.p.costs.items()
        }
        return replace(left, costs=costs)

    def _resumes_ps(self, from_ps: int, until_ps: int | None) -> int | None:
        """When who asked in vain from the beginning on asks again after the end."""
        if until_ps is None:
            return None
        now_ps, tries, waits = from_ps, 0, PathFaults(self.p.transport)
        while now_ps < until_ps:
            now_ps += waits.wait_ps(tries)
            tries += 1
        return now_ps


def _between(fault: PathFault, first: int, second: int) -> bool:
    return fault.side[first] + fault.side[second] == 3
