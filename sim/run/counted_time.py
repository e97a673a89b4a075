"""How long a command would take whose instructions and misses were counted in the emulator.

Each interval of the counts is a demand in the cost model's language, run on the machine's flow
plane: a flow for each node, whose processors execute what they executed, and miss what they missed.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...topologies.emulator.traffic import Counts, Traffic
from ...topologies.machine import Machine, Node
from ..kernel.arrays import Floats, Ints
from ..kernel.sums import group_sums
from ..machine.costs import CostModel
from ..machine.counted_instructions import (
    IPC_LEAST,
    IPC_MIDDLE,
    IPC_MOST,
    MISPREDICTION_CYCLES,
    MISPREDICTION_CYCLES_LEAST,
    MISPREDICTION_CYCLES_MOST,
    SYSTEM_CALL_NS,
    SYSTEM_CALL_NS_LEAST,
    SYSTEM_CALL_NS_MOST,
)
from ..machine.demands import Demand, Reads, Step
from ..planes.rate_solver import RateSolver
from ..planes.rates import Rates
from ..planes.why import BETWEEN_NODES
from .doubts import drawn_machines
from .uncertainty import DRAWS, LEVEL

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
CALL_NS = {COUNTED: SYSTEM_CALL_NS, MOST: SYSTEM_CALL_NS_LEAST, ONE: SYSTEM_CALL_NS_MOST}
INSTRUCTIONS, CALLS = "instructions", "calls"
PLACEMENTS = {
    "all local": "each node's misses go to its own memory: no placement does better",
    "interleaved": "misses spread over all memory",
    "where used most": "all pages of a node's memory move to the node that misses there most",
}


@dataclass(frozen=True)
class CountedTime:
    """``time_s`` of the command there, between ``least_s`` (as many misses overlap as a core holds,
    and as many instructions as it dispatches) and ``most_s`` (one at a time, but for misses that a
    prefetcher fetches, each after a walk of the page table, while nothing is executed); with 90%,
    over draws of the machine's facts.

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
    time_s = sum(played.middle_s(part, binding=binding) for part in parts)
    machines = drawn_machines(traffic.machine, DRAWS)
    drawn = [_Played(replace(traffic, machine=machine)) for machine in machines] or [played]
    least_s, most_s = _bounds_s(drawn, parts)
    # The bounds hold what is between them, also where a queue is met in another order.
    least_s, most_s = min(least_s, time_s), max(most_s, time_s)
    placements = {}
    for name in PLACEMENTS if len(traffic.machine.nodes) > 1 and parts else ():
        homes = _homes(name, sum(parts[1:], parts[0]), traffic.machine)
        placements[name] = sum(played.middle_s(part, homes=homes) for part in parts)
    by_part = sorted(binding.items(), key=lambda bound: -bound[1])
    whole_s = sum(binding.values())
    held = {name: part / whole_s for name, part in by_part}
    return CountedTime(time_s, least_s, most_s, held, placements)


@dataclass(frozen=True)
class _Part:
    """Counts that the model needs. (P,): instructions, in all and of the kernel for system calls;
    these calls; operations outside of them, where what is executed as one is one; mispredicted
    branches; operations between misses, as far as a core looks ahead. (P, L): mispredicted branches
    that waited for a hit, by level. (n, L - 1): hits by level, the first left out. (n, n): lines
    read, by home, and by the cache that hands them over; streamed and serial ones of these, and of
    the latter, those that a mispredicted branch waited for; written ones.
    """

    instructions: Floats
    call_instructions: Floats
    calls: Floats
    operations: Floats
    mispredictions: Floats
    looked_ahead: Floats
    waits: Floats
    hits: Floats
    read: Floats
    handed: Floats
    streamed: Floats
    serial: Floats
    branched: Floats
    written: Floats

    @staticmethod
    def of(counts: Counts) -> "_Part":
        pairs = {name: pair.astype(np.float64) for name, pair in counts.pairs.items()}
        executed = {name: count.astype(np.float64) for name, count in counts.executed.items()}
        in_calls = executed["call_instructions"]
        return _Part(
            executed["instructions"],
            in_calls,
            executed["calls"],
            executed["instructions"] - in_calls - executed["fused"],
            executed["mispredictions"],
            executed["looked_ahead"],
            counts.waits.astype(np.float64),
            counts.found[:, 1:-1].astype(np.float64),
            pairs["memory_reads"],
            pairs["transfers"],
            pairs["streamed_misses"],
            pairs["serial_misses"],
            pairs["branch_misses"],
            pairs["write_backs"] + pairs["downgrades"],
        )

    def __add__(self, other: "_Part") -> "_Part":
        mine, others = vars(self), vars(other)
        return _Part(**{name: mine[name] + others[name] for name in mine})

    def placed(self, homes: Floats | None) -> "_Part":
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
        self.cycles_per_s = self.costs.instructions_per_s / self.costs.ipc
        self.latency_s = np.array([_latencies(n, len(traffic.levels)) for n in self.machine.nodes])
        self.tried_call = traffic.whole.tried_call

    def middle_s(
        self, part: _Part, *, homes: Floats | None = None, binding: dict[str, float] | None = None
    ) -> float:
        """Counts do not show how much of what comes next processors fetch on the wrong path of a
        branch (much: Mutlu et al., IEEE Transactions on Computers 54, 2005): the geometric mean of
        the times with nothing and with all of it.
        """
        waits_s = self.interval_s(part, COUNTED, homes=homes, binding=binding)
        if not part.branched.any():
            return waits_s
        # Where the wrong path meets the right one, it has fetched all that comes next.
        meets = replace(part, serial=part.serial - part.branched, branched=0.0 * part.branched)
        meets_s = self.interval_s(meets, COUNTED, homes=homes)
        return float((waits_s * meets_s) ** 0.5)

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
        operations, mispredictions = map(self._on_nodes, (part.operations, part.mispredictions))
        cycles = operations / self._ipc(overlap) + BRANCH_CYCLES[overlap] * mispredictions
        waits = np.zeros_like(self.latency_s)
        if overlap != MOST:
            waits = np.stack([self._on_nodes(level) for level in part.waits.T], axis=1)
        executes_s = cycles / self.cycles_per_s + (waits * self.latency_s).sum(axis=1)
        core_s = share * executes_s[self.core_node]
        calls_s = share * self._calls_s(part, overlap)[self.core_node]
        hits = np.maximum(part.hits - waits[:, 1:], 0.0)
        misses = np.maximum((part.read + part.handed).sum(axis=1), 1.0)
        lines = part.read + part.handed
        streamed, serial = (
            lines * (np.minimum(one.sum(axis=1) / misses, 1.0))[:, None]
            for one in (part.streamed, part.serial)
        )
        others = np.maximum(lines - streamed - serial, 0.0)
        between = float(part.looked_ahead.sum() / max((others + serial).sum(), 1.0))
        between = max(between, 1.0)
        instructions = 1.0 / ALWAYS_ENOUGH if overlap == MOST else between
        slots = self._slots(instructions)[self.core_node]
        # A hit is over before the window is full.
        hit_slots = self._slots(1.0 / ALWAYS_ENOUGH)[self.core_node]
        hits_s = share * (hits * self.latency_s[:, 1:]).sum(axis=1)[self.core_node]
        none = np.zeros_like(share)
        flowing = Reads(share, streamed, stream=True)
        steps: tuple[Step, ...]
        if overlap == MOST:
            reads = flowing, Reads(share, others + serial)
            steps = (Step(MOST, core_s, hits_s / hit_slots, reads),)
        elif overlap == ONE:
            # Each after a walk of the page table, whose entry the last level has.
            walks_s = (others + serial).sum(axis=1) * self.latency_s[:, -1]
            waits_s = hits_s + share * walks_s[self.core_node]
            # Nor does a core look so far ahead that it executes while it waits.
            steps = (
                Step(INSTRUCTIONS, core_s, none, ()),
                Step(MOST, none, none, (flowing,)),
                Step(ONE, none, waits_s, (Reads(share, others + serial),), slots),
            )
        else:
            # While one miss is waited for, others are under way: as many as there are slots.
            waited = serial.sum(axis=1)
            with_it = np.minimum(others.sum(axis=1), waited * (self._slots(instructions) - 1.0))
            along = others * (with_it / np.maximum(others.sum(axis=1), 1.0))[:, None]
            held = slots * (waited / np.maximum(waited + with_it, 1.0))[self.core_node]
            steps = (
                Step(MOST, core_s, hits_s / hit_slots, (flowing, Reads(share, others - along))),
                Step(ONE, none, none, (Reads(share, serial + along),), np.maximum(held, 1.0)),
            )
        demand = Demand(
            flow_of=flow_of,
            steps=(*steps, Step(CALLS, calls_s, none, ())),
            writes=(Reads(share, part.written),),
            batch=ALWAYS_ENOUGH,
            miss_instructions=instructions,
        )
        return self.solver.solve(demand, tolerance=TOLERANCE)

    def _on_nodes(self, of: Floats) -> Floats:
        """(n,) sums of what is counted by processor (P,)."""
        of_core = group_sums(self.core, of, len(self.core_node))
        return group_sums(self.core_node, of_core, len(self.machine.nodes))

    def _calls_s(self, part: _Part, overlap: str) -> Floats:
        """(n,) time of system calls. All of the kernel's instructions take as long as those of a
        call that does nothing; at least, this one takes its time, and the others are executed as
        fast as any.
        """
        calls, instructions = map(self._on_nodes, (part.calls, part.call_instructions))
        own_ns = [node.system_call_ns or CALL_NS[overlap] for node in self.machine.nodes]
        own_s = np.array(own_ns) * 1e-9
        rate = self._ipc(overlap) * self.cycles_per_s
        if not self.tried_call:
            return np.asarray(instructions / rate)
        if overlap == MOST:
            beyond = np.maximum(instructions - calls * self.tried_call, 0.0)
            return np.asarray(calls * own_s + beyond / rate)
        return np.asarray(instructions * own_s / self.tried_call)

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
            return BETWEEN_NODES
        node = self.machine.nodes[int(self.core_node[part])].id
        what = {"cores": "instructions", "misses": "waiting for lines"}.get(kind)
        if what is None:
            columns, core = self.solver.resources, part
            busy = rates.use[columns.cores][core] >= rates.use[columns.misses][core]
            what = "instructions" if busy else "waiting for lines"
        return f"{what} on node {node}"


def _bounds_s(drawn: Sequence[_Played], parts: Sequence[_Part]) -> tuple[float, float]:
    """Between what the time lies over draws of the machine: as short as any overlap of misses makes
    it, and as long.
    """
    # None of the machine's interruptions may have come.
    least_s = [
        sum(one.interval_s(part, MOST) for part in parts) * one.costs.disturbances.left
        for one in drawn
    ]
    most_s = [sum(one.interval_s(part, ONE) for part in parts) for one in drawn]
    tail = 0.5 - 0.5 * LEVEL
    low_s = np.quantile(least_s, tail, method="hazen")
    return float(low_s), float(np.quantile(most_s, 1.0 - tail, method="hazen"))


def _latencies(node: Node, levels: int) -> list[float]:
    """Of a hit in each played level, in s; 0 where a node's caches are not those, or not known."""
    if len(node.caches) < levels - 1:
        return [0.0] * levels
    known = [(cache.latency_ns or 0.0) * 1e-9 for cache in node.caches[-levels:]]
    return [0.0] * (levels - len(known)) + known


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
