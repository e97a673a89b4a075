"""Rates of flows at one moment: max-min fair shares in balance with the waits that they cause.

Every flow asks for core time, for slots of outstanding misses, for memory controllers, links and
pairs of nodes. How long a miss holds its slot depends on the load of controllers and links, and
these on the rates: a fixed point, found by damped iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from .._kernel import solve_max_min
from ..costs import LINE_BYTES, CostModel
from ..demands import Demand, Routing, TransferDemand

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

TOLERANCE = 1e-6
ITERATIONS_MAX = 60


@dataclass(frozen=True)
class Loads:
    """Load, 0 to 1, of memory controllers (n,) and directed links (2L,); where to start from."""

    memory: Floats
    links: Floats


@dataclass(frozen=True)
class Rates:
    """What goes on while nothing changes.

    ``flows`` (F,), ``transfers`` (T,): units per second. ``use`` (R,): of each resource, 0 to 1.
    ``binding`` (F,): the resource that holds each flow, -1 for its cap. ``steps``: for each flow,
    by step of the workers' loop, the time in s that a unit takes in the workers of each core (C,).
    ``pair_Bps`` (n, n): bytes per second that each node draws from each home, transfers left out.
    """

    flows: Floats
    transfers: Floats
    use: Floats
    binding: Ints
    loads: Loads
    steps: tuple[dict[str, Floats], ...]
    pair_Bps: Floats
    iterations: int


ISSUE, RECEIVE = "making and routing commands", "receiving commands"


class Resources:
    """The R resources of a machine whose cores at ``core_node`` (C,) are in use, by position.

    Time of the workers of a core (as many seconds per second as it runs ``threads`` (C,)), time
    that the core executes, time of its miss slots, then bytes per second of memory controllers and
    directed links; pairs of nodes that transfers go between follow.
    """

    def __init__(self, costs: CostModel, core_node: Ints, threads: Floats) -> None:
        c, n, links = len(core_node), len(costs.machine.nodes), len(costs.link_Bps)
        self.workers = slice(0, c)
        self.cores = slice(c, 2 * c)
        self.misses = slice(2 * c, 3 * c)
        self.memory = slice(3 * c, 3 * c + n)
        self.links = slice(3 * c + n, 3 * c + n + links)
        self.count = self.links.stop
        memory_Bps = np.where(np.isnan(costs.memory_Bps), np.inf, costs.memory_Bps)
        self.capacity = np.concatenate([threads, np.ones(2 * c), memory_Bps, costs.link_Bps])

    def describe(self, position: int) -> tuple[str, int]:
        """Kind (``workers``, ``cores``, ``misses``, ``memory``, ``link``, ``pair``), and position
        within it.
        """
        for kind in ("workers", "cores", "misses", "memory", "links"):
            part = getattr(self, kind)
            if part.start <= position < part.stop:
                return kind, position - part.start
        return "pairs", position - self.count


class RateSolver:
    """Finds the Rates of flows on one machine. Keeps what does not change between calls."""

    def __init__(self, costs: CostModel, core_node: Ints, threads: Floats) -> None:
        self.costs, self.core_node, self.threads = costs, core_node, threads
        self.resources = Resources(costs, core_node, threads)
        self._wires: dict[tuple[int, int], tuple[Ints, Floats]] = {}
        self._rows: dict[bytes, Floats] = {}
        n = len(costs.machine.nodes)
        self._idle_s = _known(costs.latency_s)
        # A line from another core of the same node comes from the shared cache.
        self._handed_s = self._idle_s.copy()
        cached = costs.last_cache.latency_s
        diagonal = np.arange(n)
        self._handed_s[diagonal, diagonal] = np.where(
            cached > 0, cached, self._idle_s[diagonal, diagonal]
        )
        self.pair_Bps = costs.pair_Bps

    def wire_of_line(self, initiator: int, home: int) -> tuple[Ints, Floats]:
        """Links, and wire bytes on each, of a line that ``initiator`` reads from ``home``."""
        if (initiator, home) not in self._wires:
            lines = np.zeros((len(self.costs.machine.nodes),) * 2)
            lines[initiator, home] = 1.0
            wire = self.costs.wire_Bps(lines)
            used = np.flatnonzero(wire)
            self._wires[initiator, home] = used, wire[used]
        return self._wires[initiator, home]

    def wire_rows(self, lines: Floats) -> Floats:
        """(n, 2L) wire bytes of each row of ``lines``; kept, as waits do not change them."""
        key = lines.tobytes()
        if key not in self._rows:
            self._rows[key] = self.costs.wire_rows(lines)
        return self._rows[key]

    def solve(
        self,
        demands: Sequence[Demand],
        transfers: TransferDemand | None = None,
        start: Loads | None = None,
        tolerance: float = TOLERANCE,
    ) -> Rates:
        """The Rates of ``demands`` and ``transfers``, looked for from ``start``."""
        return _Iteration(self, demands, transfers).run(start, tolerance)


class _Iteration:
    """One search for the fixed point: coefficients of all flows, updated as waits change."""

    def __init__(
        self, solver: RateSolver, demands: Sequence[Demand], transfers: TransferDemand | None
    ) -> None:
        self.solver, self.costs = solver, solver.costs
        self.demands = demands
        self.node = solver.core_node
        self.n = len(self.costs.machine.nodes)
        self.columns = solver.resources
        flows, resources = len(demands), solver.resources.count
        self.coefficient = np.zeros((flows, resources))
        self.cap = np.array([demand.cap for demand in demands])
        self.issued = [np.zeros(0)] * flows
        self.steps: list[dict[str, Floats]] = [{} for _ in demands]
        self.routed = [np.zeros(0)] * flows  # (n,) issue shares of the link traffic in use
        self.base_lines: list[Floats] = []  # (n, n) that cores on i read from home j
        self.all_lines: list[Floats] = []  # and with what routing hands over
        for f, demand in enumerate(demands):
            self.base_lines.append(self._read_lines(demand))
            self.all_lines.append(self.base_lines[f])
            self._place(f, demand)
        self.transfers = _Transfers(solver, transfers) if transfers is not None else None

    def _read_lines(self, demand: Demand) -> Floats:
        """(n, n) lines per unit that cores on i read from home j."""
        lines = np.zeros((self.n, self.n))
        for reads in (reads for step in demand.steps for reads in step.reads):
            on_node = np.bincount(self.node, weights=reads.weight, minlength=self.n)
            lines += on_node[:, None] * reads.lines
        return lines

    def _place(self, f: int, demand: Demand) -> None:
        """What does not depend on waits: memory, and links but for routing."""
        lines = self.base_lines[f]
        memory = lines.sum(axis=0) * LINE_BYTES + demand.written_bytes
        self.coefficient[f, self.columns.memory] = memory
        if demand.routing is None:
            self.coefficient[f, self.columns.links] = self._wire(demand, lines)
        self._cap_by_pairs(f, lines)

    def _wire(self, demand: Demand, lines: Floats) -> Floats:
        """(2L,) wire bytes per unit."""
        if len(self.demands) == 1:
            return self.costs.wire_Bps(lines)
        # Many flows read with the same pattern: its rows are worked out once.
        wire = np.zeros(len(self.costs.link_Bps))
        for reads in (reads for step in demand.steps for reads in step.reads):
            on_node = np.bincount(self.node, weights=reads.weight, minlength=self.n)
            wire += on_node @ self.solver.wire_rows(reads.lines)
        return wire

    def _cap_by_pairs(self, f: int, lines: Floats) -> None:
        # One flow alone uses a pair, but for transfers, whose part is small.
        with np.errstate(divide="ignore"):
            allowed = self.solver.pair_Bps / (lines * LINE_BYTES)
        self.cap[f] = min(self.demands[f].cap, float(allowed.min()))

    # -- what depends on waits --------------------------------------------------------------------

    def _update(self, loads: Loads) -> None:
        latency_s, handed_s = self._latencies(loads)
        costs = self.costs
        for f, demand in enumerate(self.demands):
            core_s, miss_s, worker_s = np.zeros((3, len(self.node)))
            for step in demand.steps:
                held_s = step.hit_s.copy()
                for reads in step.reads:
                    mlp = costs.streaming_misses if reads.stream else costs.random_misses
                    stall = (reads.lines * latency_s).sum(axis=1) / mlp
                    held_s += reads.weight * stall[self.node]
                takes_s = self._overlap(step.core_s, held_s)
                self.steps[f][step.name] = takes_s
                core_s, miss_s, worker_s = core_s + step.core_s, miss_s + held_s, worker_s + takes_s
            if demand.routing is not None:
                routed = self._route(f, demand.routing, worker_s, handed_s)
                core_s, miss_s = core_s + routed[0], miss_s + routed[1]
                worker_s = worker_s + routed[2]
            row = self.coefficient[f]
            row[self.columns.workers], row[self.columns.cores] = worker_s, core_s
            row[self.columns.misses] = miss_s
        if self.transfers is not None:
            self.transfers.update(latency_s)

    def _overlap(self, core_s: Floats, held_s: Floats) -> Floats:
        """(C,) time that a step takes in one worker: instructions and misses overlap.

        The threads of a core divide its reorder window and its line-fill buffers among them.
        """
        return np.maximum(core_s, held_s * self.solver.threads)

    def _latencies(self, loads: Loads) -> tuple[Floats, Floats]:
        """(n, n) latency of a line from memory, and of one handed over by a core, under load."""
        costs, machine = self.costs, self.costs.machine
        at_memory = costs.memory_wait_s(loads.memory)
        if len(loads.links) and loads.links.any():
            waits = machine.routes.route_sums(costs.link_wait_s(loads.links))
            on_links = waits + waits.T
        else:
            on_links = np.zeros((self.n, self.n))
        idle, handed = self.solver._idle_s, self.solver._handed_s
        return idle + at_memory[None, :] + on_links, handed + on_links

    def _route(
        self, f: int, routing: Routing, worker_s: Floats, handed_s: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Times of cores, miss slots and workers for issuing and receiving; who has time issues."""
        stream, node = self.costs.streaming_misses, self.node
        target = np.bincount(node, weights=routing.executed, minlength=self.n)
        to_target = handed_s @ target
        lines = routing.lines + routing.answer_lines
        issue_core = (routing.issue_s + routing.atomics * to_target)[node]
        issue_miss = (lines * to_target / stream)[node]
        issue_worker = self._overlap(issue_core, issue_miss)
        receive_core = routing.executed * routing.receive_s[node]
        if not len(self.issued[f]):
            self.issued[f] = np.full(len(node), 1.0 / len(node))
        for _ in range(2):  # who executes reads from who issues: once more settles it
            source = np.bincount(node, weights=self.issued[f], minlength=self.n)
            receive_miss = routing.executed * (lines * (handed_s @ source) / stream)[node]
            receive_worker = self._overlap(receive_core, receive_miss)
            self.issued[f] = spare_time_shares(worker_s + receive_worker, issue_worker)
        issued = self.issued[f]
        self._route_traffic(f, routing.lines, routing.answer_lines, source, target)
        self.steps[f][ISSUE] = issued * issue_worker
        self.steps[f][RECEIVE] = receive_worker
        return (
            issued * issue_core + receive_core,
            issued * issue_miss + receive_miss,
            issued * issue_worker + receive_worker,
        )

    def _route_traffic(
        self, f: int, lines: float, answers: float, source: Floats, target: Floats
    ) -> None:
        """Link traffic of routing, made anew when the issuers have changed."""
        before = self.routed[f]
        if len(before) and np.abs(source - before).max() <= 1e-3 * source.max():
            return
        self.routed[f] = source
        # The issuer fetches the line for ownership, the executor fetches it back, filled.
        sent = lines * np.outer(source, target)
        answered = answers * np.outer(target, source)
        moved = sent + sent.T + answered + answered.T
        wire = self.costs.wire_Bps(self.base_lines[f]) + self.costs.wire_Bps(moved, snooped=False)
        self.coefficient[f, self.columns.links] = wire
        self.all_lines[f] = self.base_lines[f] + moved * (1.0 - np.eye(self.n))
        self._cap_by_pairs(f, self.all_lines[f])

    # -- the search -------------------------------------------------------------------------------

    def run(self, start: Loads | None, tolerance: float) -> Rates:
        """Iterates until loads and rates agree."""
        links = len(self.costs.link_Bps)
        loads = start or Loads(np.zeros(self.n), np.zeros(links))
        damping, last_change = 1.0, 0.0
        rates = self._solve(loads)
        iteration = 1
        while iteration < ITERATIONS_MAX:
            found = rates.loads
            ahead = np.concatenate([found.memory - loads.memory, found.links - loads.links])
            error = float(np.abs(ahead).max(initial=0.0))
            if error <= tolerance:
                break
            change = float(ahead[np.abs(ahead).argmax()])
            # Overshooting shows as a change of sign: smaller steps from there on.
            if change * last_change < 0:
                damping *= 0.5
            elif last_change:
                damping = min(1.0, damping * 1.2)
            last_change = change
            loads = Loads(
                loads.memory + damping * (found.memory - loads.memory),
                loads.links + damping * (found.links - loads.links),
            )
            rates = self._solve(loads)
            iteration += 1
        lines = sum((x * of for x, of in zip(rates.flows, self.all_lines, strict=True)), start=0.0)
        return replace(
            rates,
            steps=tuple(self.steps),
            pair_Bps=np.asarray(lines * LINE_BYTES),
            iterations=iteration,
        )

    def _solve(self, loads: Loads) -> Rates:
        self._update(loads)
        capacity = self.columns.capacity
        flows = len(self.demands)
        if flows == 1 and self.transfers is None:
            return self._solve_one(capacity)
        row, resource = np.nonzero(self.coefficient)
        value = self.coefficient[row, resource]
        counts = np.bincount(row, minlength=flows)
        cap = self.cap
        heaviest = self.coefficient[:, : self.columns.misses.stop].max(axis=1)
        weight = 1.0 / np.maximum(heaviest, 1e-30)
        if self.transfers is not None:
            t = self.transfers
            capacity = np.concatenate([capacity, t.pair_capacity])
            resource = np.concatenate([resource, t.resource])
            value = np.concatenate([value, t.value])
            counts = np.concatenate([counts, t.counts])
            cap = np.concatenate([cap, np.full(t.count, np.inf)])
            weight = np.concatenate([weight, t.weight])
        row_ptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        rate, binding, use = solve_max_min(
            capacity, row_ptr, resource.astype(np.int64), value, cap, weight
        )
        return self._rates(rate[:flows], rate[flows:], binding[:flows], use, capacity)

    def _solve_one(self, capacity: Floats) -> Rates:
        """A flow alone: the tightest resource decides."""
        with np.errstate(divide="ignore"):
            limit = capacity / self.coefficient[0]
        tightest = int(limit.argmin())
        rate = float(min(limit[tightest], self.cap[0]))
        binding = tightest if limit[tightest] <= self.cap[0] else -1
        use = self.coefficient[0] * rate
        return self._rates(np.array([rate]), np.zeros(0), np.array([binding]), use, capacity)

    def _rates(
        self, flows: Floats, transfers: Floats, binding: Ints, use: Floats, capacity: Floats
    ) -> Rates:
        share = np.minimum(use / capacity, 1.0)
        loads = Loads(share[self.columns.memory], share[self.columns.links])
        return Rates(flows, transfers, share, binding, loads, (), np.zeros(0), 0)


class _Transfers:
    """Copies as flows: sparse rows of coefficients, of which some change with the waits.

    A row: worker, core and miss slots of the source, the same of the target, memory of both, the
    pair; then the links.
    """

    FIXED = 9

    def __init__(self, solver: RateSolver, demand: TransferDemand) -> None:
        self.solver, self.demand = solver, demand
        columns, node = solver.resources, solver.core_node
        self.count = len(demand.source)
        self.a, self.b = node[demand.source], node[demand.target]
        pairs, which = np.unique(np.stack([self.b, self.a], axis=1), axis=0, return_inverse=True)
        which = which.reshape(-1)
        self.pair_capacity = solver.pair_Bps[pairs[:, 0], pairs[:, 1]]
        wires = [solver.wire_of_line(int(b), int(a)) for b, a in pairs]
        self.counts = np.array([self.FIXED + len(wires[k][0]) for k in which], dtype=np.int64)
        self.first = np.concatenate([[0], np.cumsum(self.counts)[:-1]])
        ends = np.stack([demand.source] * 3 + [demand.target] * 3 + [self.a, self.b, which], axis=1)
        ends += [
            *(part.start for part in (columns.workers, columns.cores, columns.misses) * 2),
            columns.memory.start,
            columns.memory.start,
            columns.count,
        ]
        fixed = np.zeros((self.count, self.FIXED))
        fixed[:, 1], fixed[:, 4] = demand.source_s, demand.target_s
        fixed[:, 6] = demand.source_lines * LINE_BYTES
        fixed[:, 7] = 2 * demand.written_lines * LINE_BYTES
        fixed[:, 8] = demand.lines * LINE_BYTES
        resource, value = [], []
        for t, k in enumerate(which):
            links, wire = wires[k]
            resource += [ends[t], links + columns.links.start]
            value += [fixed[t], wire * demand.lines[t]]
        self.resource = np.concatenate(resource).astype(np.int64)
        self.value = np.concatenate(value)
        busy = np.bincount(np.concatenate([demand.source, demand.target]), minlength=len(node))
        self.sharers = np.maximum(busy[demand.source], busy[demand.target])
        self.weight = np.ones(self.count)

    def update(self, latency_s: Floats) -> None:
        """Miss slots, and weights: a core's time is shared evenly among what it does."""
        stream, d, threads = self.solver.costs.streaming_misses, self.demand, self.solver.threads
        local = np.diag(latency_s)
        source_s = d.source_lines * local[self.a] / stream[self.a]
        across_s = d.lines * latency_s[self.b, self.a] + d.written_lines * local[self.b]
        target_s = across_s / stream[self.b]
        at_source = np.maximum(d.source_s, source_s * threads[d.source])
        at_target = np.maximum(d.target_s, target_s * threads[d.target])
        self.value[self.first], self.value[self.first + 3] = at_source, at_target
        self.value[self.first + 2], self.value[self.first + 5] = source_s, target_s
        self.weight = 1.0 / (np.maximum(np.maximum(at_source, at_target), 1e-30) * self.sharers)


def spare_time_shares(own_s: Floats, issue_s: Floats) -> Floats:
    """(C,) shares of the work that any core can do, for all cores to finish as early as possible.

    ``own_s`` (C,): time each core spends on its own part of a unit, ``issue_s`` (C,): on the whole
    of the shared part. Cores up to a common level of time fill up: water-filling.
    """
    order = np.argsort(own_s, kind="stable")
    own, cost = own_s[order], np.maximum(issue_s[order], 1e-30)
    # With the first k cores taking part, the level is (1 + sum own/cost) / (sum 1/cost).
    level = (1.0 + np.cumsum(own / cost)) / np.cumsum(1.0 / cost)
    # The last k for which every core that takes part is below the level.
    taking = int(np.flatnonzero(level >= own)[-1])
    share = np.maximum(level[taking] - own_s, 0.0) / np.maximum(issue_s, 1e-30)
    return np.asarray(share / share.sum())


def _known(latency_s: Floats) -> Floats:
    """Latencies with the unknown ones taken as the largest that is known."""
    return np.where(np.isnan(latency_s), np.nanmax(latency_s), latency_s)
