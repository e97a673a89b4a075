"""How long a command would take whose instructions and misses were counted in the emulator.

Each interval of the counts is a demand in the cost model's language, run on the machine's flow
plane: a flow for each node, whose processors execute what they executed, and miss what they missed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...topologies.emulator.traffic import Counts, Traffic
from ...topologies.machine import Machine
from ..kernel.sums import group_sums
from ..machine.costs import CostModel, Floats, Ints
from ..machine.counted_instructions import (
    IPC_LEAST,
    IPC_MIDDLE,
    IPC_MOST,
    MISPREDICTION_CYCLES,
    MISPREDICTION_CYCLES_LEAST,
    MISPREDICTION_CYCLES_MOST,
)
from ..machine.defaults import ASSUMED_IPC
from ..machine.demands import Demand, Reads, Step
from ..planes.rate_solver import RateSolver
from ..planes.rates import Rates

TOLERANCE = 1e-4
TOGETHER = 1.02  # flows whose ends are so near to each other end together
INTERVALS_MAX = 50
ALWAYS_ENOUGH = 1e12  # of independent misses to look ahead to
# How misses overlap that no prefetcher fetches: as the instructions tell; as many as a core holds;
# one after the other. With each, instructions per cycle (a machine file's own IPC takes the place
# of the middle one) and the cycles of a mispredicted branch.
COUNTED, MOST, ONE = "counted", "most", "one"
IPC = {COUNTED: IPC_MIDDLE, MOST: IPC_MOST, ONE: IPC_LEAST}
BRANCH_CYCLES = {
    COUNTED: MISPREDICTION_CYCLES,
    MOST: MISPREDICTION_CYCLES_LEAST,
    ONE: MISPREDICTION_CYCLES_MOST,
}
PLACEMENTS = {
    "all local": "each node's misses go to its own memory: no placement does better",
    "interleaved": "misses spread over all memory",
    "where used most": "all pages of a node's memory move to the node that misses there most",
}


@dataclass(frozen=True)
class CountedTime:
    """``time_s`` of the command there, between ``least_s`` (as many misses overlap as a core holds,
    and as many instructions as it dispatches) and ``most_s`` (one at a time, but for misses that a
    prefetcher fetches, each after a walk of the page table).

    ``binding``: what holds the busiest node, by its part of the time; ``placements``: the time
    with data placed otherwise, by the names of ``PLACEMENTS``.
    """

    time_s: float
    least_s: float
    most_s: float
    binding: dict[str, float]
    placements: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        """Stable names."""
        return {
            "time_s": self.time_s,
            "interval_s": [self.least_s, self.most_s],
            "binding": self.binding,
            "placements_s": self.placements,
        }


def counted_time(traffic: Traffic) -> CountedTime:
    """The time of what was counted; ``traffic`` has intervals, and caches were simulated."""
    played = _Played(traffic)
    parts = _merged(traffic.intervals)
    binding: dict[str, float] = {}
    time_s = sum(played.interval_s(part, COUNTED, binding=binding) for part in parts)
    least_s, most_s = (sum(played.interval_s(part, how) for part in parts) for how in (MOST, ONE))
    # The bounds hold what is between them, also where a queue is met in another order.
    least_s, most_s = min(least_s, time_s), max(most_s, time_s)
    placements = {}
    for name in PLACEMENTS if len(traffic.machine.nodes) > 1 and parts else ():
        homes = _homes(name, sum(parts[1:], parts[0]), traffic.machine)
        placements[name] = sum(played.interval_s(part, COUNTED, homes=homes) for part in parts)
    by_part = sorted(binding.items(), key=lambda bound: -bound[1])
    held = {name: part / time_s for name, part in by_part}
    return CountedTime(time_s, least_s, most_s, held, placements)


@dataclass(frozen=True)
class _Part:
    """Counts that the model needs: (P,) instructions and mispredicted branches; (n, L) hits by
    level, the first left out;
    (n, n) lines read, by home, and by the cache that hands them over; streamed and serial ones of
    these; written ones.
    """

    instructions: Floats
    mispredictions: Floats
    hits: Floats
    read: Floats
    handed: Floats
    streamed: Floats
    serial: Floats
    written: Floats

    @staticmethod
    def of(counts: Counts) -> _Part:
        pairs = {name: pair.astype(np.float64) for name, pair in counts.pairs.items()}
        return _Part(
            counts.instructions.astype(np.float64),
            counts.mispredictions.astype(np.float64),
            counts.found[:, 1:-1].astype(np.float64),
            pairs["memory_reads"],
            pairs["transfers"],
            pairs["streamed_misses"],
            pairs["serial_misses"],
            pairs["write_backs"] + pairs["downgrades"],
        )

    def __add__(self, other: _Part) -> _Part:
        mine, others = vars(self), vars(other)
        return _Part(**{name: mine[name] + others[name] for name in mine})

    def placed(self, homes: Floats | None) -> _Part:
        """The same with lines of home h on each node in parts ``homes`` (n, n, n): [i, h]."""
        if homes is None:
            return self
        read, written = (
            np.einsum("ih,ihj->ij", lines, homes) for lines in (self.read, self.written)
        )
        return replace(self, read=read, written=written)


def _merged(intervals: Sequence[Counts]) -> list[_Part]:
    """Neighbours together, so that there are not too many."""
    parts = [_Part.of(counts) for counts in intervals]
    size = -(-len(parts) // INTERVALS_MAX) or 1
    groups = [parts[k : k + size] for k in range(0, len(parts), size)]
    return [sum(group[1:], group[0]) for group in groups]


def _homes(name: str, total: _Part, machine: Machine) -> Floats:
    """(n, n, n) of lines that node i has at home h, the part that then lies on each node."""
    n = len(machine.nodes)
    able = np.array([float(node.memory_bytes != 0) for node in machine.nodes])
    eye = np.eye(n)
    distance = np.where(able > 0, np.nan_to_num(machine.latency_ns, nan=np.inf), np.inf)
    nearest = eye[np.argmin(distance, axis=1)]
    if name == "all local":
        return np.asarray(np.repeat(nearest[:, None, :], n, axis=1))
    if name == "interleaved":
        return np.asarray(np.broadcast_to(able / able.sum(), (n, n, n)))
    users = np.where(total.read.any(axis=0), total.read.argmax(axis=0), np.arange(n))
    return np.asarray(np.repeat(nearest[users][None, :, :], n, axis=0))


class _Played:
    """The machine as the processors of the guest use it; hardware threads of a core are one."""

    def __init__(self, traffic: Traffic) -> None:
        self.machine = traffic.machine
        self.costs = CostModel(self.machine)
        node = np.array(traffic.cpu_node, dtype=np.int64)
        self.core, self.core_node = _cores(node, self.machine)
        self.solver = RateSolver(self.costs, self.core_node, np.ones(len(self.core_node)))
        # (n,) of the machine file, nan where it has none; and cycles.
        self.ipc = np.array([node.ipc or np.nan for node in self.machine.nodes])
        self.cycles_per_s = self.costs.instructions_per_s / np.where(
            np.isnan(self.ipc), float(ASSUMED_IPC), self.ipc
        )
        # Of the levels after the first; 0 where a node's caches are not those that were simulated.
        self.hit_latency_s = np.array(
            [
                [
                    (cache.latency_ns or 0.0) * 1e-9
                    for cache in node.caches[-len(traffic.levels) + 1 :]
                ]
                if len(node.caches) >= len(traffic.levels) - 1
                else [0.0] * (len(traffic.levels) - 1)
                for node in self.machine.nodes
            ]
        )

    def interval_s(
        self,
        part: _Part,
        overlap: str,
        *,
        homes: Floats | None = None,
        binding: dict[str, float] | None = None,
    ) -> float:
        """Until the last node has done its work of an interval; those that end leave the rest."""
        n, part = len(self.machine.nodes), part.placed(homes)
        executed = group_sums(self.core, part.instructions, len(self.core_node))
        left = (group_sums(self.core_node, executed, n) > 0).astype(np.float64)
        total_s = 0.0
        while left.any():
            active = np.flatnonzero(left)
            rates = self._rates(part, executed, active, overlap)
            until_s = left[active] / rates.flows
            step_s = float(until_s.min())
            ends = until_s <= TOGETHER * step_s
            step_s = float(until_s[ends].max())
            if binding is not None:
                name = self._name(rates, int(until_s.argmax()))
                binding[name] = binding.get(name, 0.0) + step_s
            left[active] = np.where(ends, 0.0, left[active] - step_s * rates.flows)
            left = np.maximum(left, 0.0)
            total_s += step_s
        return total_s

    def _rates(self, part: _Part, executed: Floats, active: Ints, overlap: str) -> Rates:
        n = len(self.machine.nodes)
        flow_of = np.zeros(n, dtype=np.int64)
        flow_of[active] = np.arange(len(active))
        works = np.isin(np.arange(n), active)
        of_node = group_sums(self.core_node, executed, n)
        # (C,) the part of its node's work that a core does.
        share = np.where(
            works[self.core_node], executed / np.maximum(of_node[self.core_node], 1.0), 0.0
        )
        cycles = of_node / self._ipc(overlap) + BRANCH_CYCLES[overlap] * group_sums(
            self.core_node, group_sums(self.core, part.mispredictions, len(self.core_node)), n
        )
        core_s = share * (cycles / self.cycles_per_s)[self.core_node]
        misses = np.maximum((part.read + part.handed).sum(axis=1), 1.0)
        lines = part.read + part.handed
        streamed, serial = (
            lines * (np.minimum(one.sum(axis=1) / misses, 1.0))[:, None]
            for one in (part.streamed, part.serial)
        )
        others = np.maximum(lines - streamed - serial, 0.0)
        between = float(part.instructions.sum() / max((others + serial).sum(), 1.0))
        instructions = 1.0 / ALWAYS_ENOUGH if overlap == MOST else between
        slots = self._slots(instructions)[self.core_node]
        hits_s = share * (part.hits * self.hit_latency_s).sum(axis=1)[self.core_node]
        none = np.zeros_like(share)
        flowing = Reads(share, streamed, stream=True)
        steps: tuple[Step, ...]
        if overlap == MOST:
            steps = (Step(MOST, core_s, hits_s / slots, (flowing, Reads(share, others + serial))),)
        elif overlap == ONE:
            # Each after a walk of the page table, whose entry the last level has.
            walks_s = (others + serial).sum(axis=1) * self.hit_latency_s[:, -1]
            waits_s = hits_s + share * walks_s[self.core_node]
            steps = (
                Step(MOST, core_s, none, (flowing,)),
                Step(ONE, none, waits_s, (Reads(share, others + serial),), slots),
            )
        else:
            # While one miss is waited for, others are under way: as many as there are slots.
            waited = serial.sum(axis=1)
            with_it = np.minimum(others.sum(axis=1), waited * (self._slots(instructions) - 1.0))
            along = others * (with_it / np.maximum(others.sum(axis=1), 1.0))[:, None]
            held = slots * (waited / np.maximum(waited + with_it, 1.0))[self.core_node]
            steps = (
                Step(MOST, core_s, hits_s / slots, (flowing, Reads(share, others - along))),
                Step(ONE, none, none, (Reads(share, serial + along),), np.maximum(held, 1.0)),
            )
        demand = Demand(
            flow_of=flow_of,
            steps=steps,
            writes=(Reads(share, part.written),),
            batch=ALWAYS_ENOUGH,
            miss_instructions=instructions,
        )
        return self.solver.solve(demand, tolerance=TOLERANCE)

    def _slots(self, instructions: float) -> Floats:
        """(n,) misses that a core has under way, one for so many instructions."""
        return self.costs.random_misses_of(self.core_node, instructions)

    def _ipc(self, overlap: str) -> Floats:
        """(n,) instructions per cycle; bounds hold what the machine file tells."""
        known, other = self.ipc, IPC[overlap]
        bounds = {MOST: np.fmax, ONE: np.fmin}
        if overlap in bounds:
            return np.asarray(bounds[overlap](known, other))
        return np.where(np.isnan(known), other, known)

    def _name(self, rates: Rates, flow: int) -> str:
        """What holds a flow, in words."""
        kind, part = self.solver.resources.describe(int(rates.binding[flow]))
        if kind == "memory":
            return f"memory of node {self.machine.nodes[part].id}"
        if kind == "links":
            return f"link {self.machine.link_name(part)}"
        if kind == "pairs":
            return "bandwidth between two nodes"
        node = self.machine.nodes[int(self.core_node[part])].id
        what = {"cores": "instructions", "misses": "waiting for lines"}.get(kind)
        if what is None:
            columns, core = self.solver.resources, part
            busy = rates.use[columns.cores][core] >= rates.use[columns.misses][core]
            what = "instructions" if busy else "waiting for lines"
        return f"{what} on node {node}"


def _cores(cpu_node: Ints, machine: Machine) -> tuple[Ints, Ints]:
    """(P,) the core of each processor, by position, and (C,) the node of each core."""
    core, core_node = [], []
    within: Counter[int] = Counter()
    for node in cpu_node.tolist():
        if within[node] % max(machine.nodes[node].threads_per_core, 1) == 0:
            core_node.append(node)
        within[node] += 1
        core.append(len(core_node) - 1)
    return np.array(core, dtype=np.int64), np.array(core_node, dtype=np.int64)
