"""The cost model: machine facts -> what an operation demands of cores, memory and links.

All planes share it; they differ only in how they simulate the demands. It works from low-level
facts alone (latencies, bandwidths, cache sizes, instruction counts) and says which of them were
missing and had to be assumed.

Costs of cache lines that move from core to core.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from ...inputs.shared_work import once
from ...topologies.machine import Machine, Node, kept_machines
from ...topologies.pair_tables import or_nan
from ..kernel.arrays import Floats, Ints
from .assumptions import Assumed, note
from .caches import CacheFacts, cache_facts
from .defaults import (
    ASSUMED_CLOCK_HZ,
    ASSUMED_IPC,
    ASSUMED_LATENCY_NS,
    ASSUMED_OUTSTANDING_MISSES,
    ASSUMED_STREAM_STALL,
    ASSUMED_STREAMING_MISSES,
    ASSUMED_WRITE_TURNAROUND,
    TYPICAL_LOADED_LATENCY,
)
from .disturbances.facts import Disturbances
from .link_traffic import LINE_BYTES as LINE_BYTES
from .link_traffic import LinkTraffic
from .transfer_limits import Held, TransferLimits, held_pairs, transfer_limits

Costs = TypeVar("Costs", bound="CostModel")

# A queue's mean wait grows without bound as its load nears 1; a closed system never lets it.
LINK_LOAD_MAX = 0.95

# Parts of a machine file that no cost here is made from: who uses them says what is uncertain.
USED_ELSEWHERE = ("nics", "processes", "engines", "copy_engines")
UNCERTAIN_NAMED = 7  # an imported machine has more, all for one reason
# Of the time per line at a measured bandwidth, which something else than the cores' slots held.
SLOTS_SPARE = 0.98
# Estimate: instructions per cycle of loops over what lies in order, which wait for nothing else;
# cores dispatch 4 to 8 (counted_instructions.py). The fewer, the more of its lines a core sees.
BEST_IPC = 4.0


@dataclass(frozen=True)
class Scales:
    """Factors on the machine's resources, all 1 by default: the what-ifs of ``why``."""

    cores: float = 1.0
    misses: float = 1.0
    memory: float = 1.0
    links: float = 1.0
    pairs: float = 1.0
    dies: float = 1.0
    cache: float = 1.0
    latency: float = 1.0
    link_kind: str | None = None
    """Only links of this kind are scaled by ``links``; all by default."""

    def more(self, **factors: float) -> "Scales":
        """These scales with some factors replaced."""
        return replace(self, **factors)  # type: ignore[arg-type]


class CostModel(LinkTraffic):
    """Facts of a machine in the form that the planes compute with; arrays are in node order."""

    def __init__(self, machine: Machine, scales: Scales | None = None) -> None:
        super().__init__(machine)
        self.disturbances = Disturbances(machine.description)
        self.scales = scales or Scales()
        self.warnings: list[str] = []
        self._assumed: dict[tuple[str, Assumed], list[int]] = {}
        self._collect()
        self._warn()

    def _collect(self) -> None:
        nodes = self.machine.nodes
        s = self.scales
        self.cores = np.array([float(node.cores) for node in nodes])
        clock_Hz = [self._known(n, "clock", n.clock_Hz, ASSUMED_CLOCK_HZ) for n in nodes]
        self.ipc: Floats = np.array([self._known(n, "ipc", n.ipc, ASSUMED_IPC) for n in nodes])
        self.instructions_per_s = s.cores * (np.array(clock_Hz) * self.ipc)
        latency = self.machine.latency_ns
        if np.isnan(latency).all():
            latency = np.full_like(latency, ASSUMED_LATENCY_NS)
            self.warnings.append(f"no latency is known: {ASSUMED_LATENCY_NS:g} ns assumed")
        self.latency_s: Floats = latency * 1e-9 / s.latency
        local = np.diag(self.machine.bandwidth_Bps)
        own = np.array([or_nan(n.memory_bandwidth_Bps) for n in nodes])
        self.memory_Bps: Floats = np.where(np.isnan(own), local, own) * s.memory
        has_memory = np.array([n.memory_bytes > 0 for n in nodes])
        unlimited = np.flatnonzero(np.isnan(self.memory_Bps) & has_memory)
        if len(unlimited):
            named = _named([nodes[k].id for k in unlimited], nodes)
            self.warnings.append(f"no memory bandwidth is known of {named}: not limited")
        self.misses: Floats = self._outstanding() * s.misses
        uncertain = [path for path in self.machine.doubtful if not path.startswith(USED_ELSEWHERE)]
        if len(uncertain) > UNCERTAIN_NAMED:
            self.warnings.append("uncertain values used: --assumptions lists them by their effect")
        else:
            self.warnings += [f"uncertain value used: {path}" for path in uncertain]

    @property
    def first_node(self) -> int | None:
        """The first node that has cores: what cores do is measured there."""
        return next((k for k, node in enumerate(self.machine.nodes) if node.cores), None)

    def _known(self, node: Node, what: str, value: float | None, assumed: Assumed) -> float:
        if value is not None:
            return value
        if not node.cores:
            return float(assumed)
        self._assumed.setdefault((what, assumed), []).append(node.id)
        return note(self.notes, assumed, self._types[node.id])

    def _warn(self) -> None:
        """Warnings of what was assumed of nodes, and of what is not known between them."""
        nodes, machine = self.machine.nodes, self.machine
        for (what, assumed), ids in self._assumed.items():
            self.warnings.append(f"no {what} is known of {_named(ids, nodes)}: {assumed:g} assumed")
        if bare := [node.id for node in nodes if node.cores and node.memory_bytes <= 0]:
            self.warnings.append(f"no memory on {_named(bare, nodes)}: data lie on other nodes")
        remote = ~np.eye(len(nodes), dtype=bool)
        unknown = np.isnan(machine.latency_ns)[remote]
        if unknown.any():
            some = "some nodes" if not unknown.all() else "nodes"
            near = "a node's own memory" if unknown.all() else "the farthest that is known"
            self.warnings.append(
                f"no latency between {some} is known: assumed as distant as {near}"
            )
        if remote.any() and not machine.links:
            limit = (
                "the bandwidth of pairs limits it" if self.measured_pairs else "nothing limits it"
            )
            self.warnings.append(
                f"no links are known: traffic between nodes is not modelled, {limit}"
            )

    def _outstanding(self) -> Floats:
        """(n,) cache lines that all cores of a node have under way in dependent-free loads."""
        return np.array(
            [
                n.cores
                * self._known(
                    n,
                    "number of outstanding misses",
                    n.outstanding_misses,
                    ASSUMED_OUTSTANDING_MISSES,
                )
                for n in self.machine.nodes
            ]
        )

    @cached_property
    def idle_s(self) -> Floats:
        """(n, n) latency of a line of j's memory to a core of i; the farthest where unknown."""
        return np.where(np.isnan(self.latency_s), np.nanmax(self.latency_s), self.latency_s)

    @cached_property
    def hand_overs(self) -> "HandOvers":
        """What lines that cores hand over to each other cost: within a node they come from the
        shared cache, and as many are under way as from memory.
        """
        handed = self.idle_s.copy()
        cached, diagonal = self.last_cache.latency_s, np.diag_indices_from(handed)
        handed[diagonal] = np.where(cached > 0, cached, handed[diagonal])
        return HandOvers(handed, self.streaming_misses, self.streaming_misses)

    @property
    def misses_name(self) -> str:
        """What limits a core's misses under way."""
        return "outstanding misses"

    def random_misses(self, instructions: Floats | float) -> Floats:
        """(n,) lines that one core has under way of independent loads, one every ``instructions``.

        The core looks ahead no further than its reorder window, and has only so many line-fill
        buffers.
        """
        windows, per_core = self._misses_of_core
        limited = np.fmin(per_core, windows / instructions * self.scales.misses)
        return np.asarray(np.maximum(limited, 1.0))

    @cached_property
    def _misses_of_core(self) -> tuple[Floats, Floats]:
        """(n,) instructions that a core looks ahead, and its line-fill buffers."""
        per_core = np.divide(
            self.misses, self.cores, out=np.ones_like(self.misses), where=self.cores > 0
        )
        return np.array([or_nan(node.reorder_window) for node in self.machine.nodes]), per_core

    def random_misses_of(self, core_node: Ints, instructions: float) -> Floats:
        """(n,) ``random_misses`` of a core where the cores (C,) of these nodes work.

        Cores share what carries their misses: between what one of a node has alone and what each
        has while all work, in proportion to how many others do.
        """
        lost = self._lost_miss_share * self.others_working(core_node)
        return np.asarray(np.maximum(self.random_misses(instructions) * (1.0 - lost), 1.0))

    @cached_property
    def _lost_miss_share(self) -> Floats:
        """(n,) the part of a core's misses under way that it loses where all cores work."""
        nodes = self.machine.nodes
        together = np.array([or_nan(node.outstanding_misses_together) for node in nodes])
        alone = np.array([or_nan(node.outstanding_misses) for node in nodes])
        return np.asarray(1.0 - np.nan_to_num(together / alone, nan=1.0))

    def others_working(self, core_node: Ints) -> Floats:
        """(n,) of a node's other cores, the part that works, where the cores (C,) of these nodes
        do."""
        working = np.bincount(core_node, minlength=len(self.machine.nodes))
        return np.clip((working - 1.0) / np.maximum(self.cores - 1.0, 1.0), 0.0, 1.0)

    @cached_property
    def streaming_misses(self) -> Floats:
        """(n,) lines that one core has under way when it streams, prefetchers included."""
        lines = []
        for node in self.machine.nodes:
            found = node.streaming_misses
            if found is None:
                found = max(float(ASSUMED_STREAMING_MISSES), node.outstanding_misses or 0.0)
                if node.cores:
                    note(self.notes, ASSUMED_STREAMING_MISSES, self._types[node.id], found)
            lines.append(found)
        return np.array(lines) * self.scales.misses

    @cached_property
    def stream_stall(self) -> Floats:
        """(n,) what a core waits for whose instructions take as long as the lines of its stream, in
        parts of that time (``planes.rates.overlapped``).
        """
        return np.array([self._stall(node) for node in self.machine.nodes])

    def _stall(self, node: Node) -> float:
        if node.stream_stall is None and node.cores:
            return note(self.notes, ASSUMED_STREAM_STALL, self._types[node.id])
        return node.stream_stall or 0.0

    @cached_property
    def stream_uncovered(self) -> Floats:
        """(n,) what a core waits for each line of a stream besides, in parts of its latency, if it
        sees no line ahead; 0 where that is not known.
        """
        return np.array([node.stream_uncovered or 0.0 for node in self.machine.nodes])

    def uncovered_s(self, core_s: Floats, latency_s: Floats) -> Floats:
        """(n,) the same in seconds, with so much work (n,) for a line of this latency (n,): as far
        as the core does not see lines ahead.
        """
        return np.asarray(self.stream_uncovered * self.unseen(core_s) * latency_s)

    def unseen(self, core_s: Floats) -> Floats:
        """(n,) of the lines that a core can wait for at a time, the part beyond its reorder window,
        with so much work (n,) for each; at its best, as a loop over a stream is.
        """
        instructions = np.maximum(core_s * self.instructions_per_s / self.ipc * BEST_IPC, 1.0)
        return np.asarray(1.0 - self.random_misses(instructions) / self.random_misses(1.0))

    @cached_property
    def streamed_s(self) -> Floats:
        """(n, n) longest time per line that a core of i streams from j; infinite if unknown.

        What all cores of a node were seen to draw together, their own slots let them draw, whatever
        memory or links hold them at; it tells no more about slots.
        """
        known = self.machine.bandwidth_Bps * self.scales.pairs
        drawn = np.where(np.isnan(known) | (not self.measured_pairs), np.inf, known)
        drawn[np.diag_indices_from(drawn)] = np.nan_to_num(self.memory_Bps, nan=np.inf)
        with np.errstate(divide="ignore"):
            each = LINE_BYTES * self.cores[:, None] / drawn
        return np.where(np.isfinite(drawn) & (each > 0), SLOTS_SPARE * each, np.inf)

    @property
    def _pairs(self) -> Floats:
        """(n, n) measured bandwidths of pairs, NaN where there is none."""
        measured = self.machine.bandwidth_Bps
        return measured if self.measured_pairs else np.full_like(measured, np.nan)

    @cached_property
    def held(self) -> Held | None:
        """What holds the pairs of its nodes; None where none was measured."""
        slots = self.streaming_misses * self.cores / self.scales.misses
        return held_pairs(self, slots, self.memory_Bps / self.scales.memory, self._pairs)

    @cached_property
    def limits(self) -> TransferLimits:
        """What bounds transfers between nodes, apart from their homes."""
        s, stated = self.scales, self.machine.drawn_from
        held = self.held if stated is None else CostModel(stated).held
        found = transfer_limits(self, self.idle_s, self._pairs, held)
        return replace(
            found, initiator_s=found.initiator_s / s.pairs, pair_s=found.pair_s / s.pairs
        )

    def die_s(self, cores_in_use: Floats | Ints) -> Floats:
        """(n,) how long a line takes the links of a node's dies, where so many of its cores (n,)
        are in use, one die after the other; 0 where such links are not known.
        """
        found = np.zeros(len(self.cores))
        for k, node in enumerate(self.machine.nodes):
            if node.die_Bps is not None and cores_in_use[k] > 0:
                sharers = node.caches[-1].shared_by_cores if node.caches else node.cores
                on_die = node.die_cores or max(sharers, 1)
                found[k] = LINE_BYTES / node.die_Bps / np.ceil(cores_in_use[k] / on_die)
        return found / self.scales.dies

    @cached_property
    def link_Bps(self) -> Floats:
        """(2L,) wire bytes per second of each directed link."""
        return np.asarray(self.limits.link_Bps * self._link_scales)

    @cached_property
    def _link_scales(self) -> Floats:
        """(2L,) factor on the bandwidth of each directed link."""
        s = self.scales
        of_kind = [s.link_kind in (None, link.kind) for link in self.machine.links]
        return np.repeat(np.where(of_kind, s.links, 1.0), 2)

    @property
    def measured_pairs(self) -> bool:
        """Whether the pair table was measured, rather than derived from links."""
        description = self.machine.description
        return description.pair_bandwidth is not None or any(
            c.bandwidth is not None for c in description.distance_classes
        )

    @cached_property
    def loaded_latency(self) -> tuple[Floats, Floats]:
        """Load (0..1) and latency over idle latency, both rising."""
        points = self.machine.loaded_latency
        if len(points) >= 3:
            load = np.array([b for b, _ in points]) / max(b for b, _ in points)
            ratio = np.maximum.accumulate(
                [latency / min(ns for _, ns in points) for _, latency in points]
            )
            # Of points of one load, as two measurements in a row may be, the last one counts.
            rises = np.diff(load, append=np.inf) > 0
            return np.concatenate([[0.0], load[rises]]), np.concatenate([[1.0], ratio[rises]])
        load, ratio = np.array(TYPICAL_LOADED_LATENCY).T
        return load, ratio

    def memory_wait_s(self, load: Floats) -> Floats:
        """(…, n) what ``load`` (…, n) of each controller, 0 to 1, adds to its latency."""
        return np.asarray((np.interp(load, *self.loaded_latency) - 1.0) * self._own_latency_s)

    @cached_property
    def _own_latency_s(self) -> Floats:
        """(n,) of a line of a node's own memory."""
        return np.nan_to_num(np.diag(self.latency_s), nan=ASSUMED_LATENCY_NS * 1e-9)

    @cached_property
    def write_turnaround(self) -> Floats:
        """(n,) what a written line costs a controller beyond its transfer, in times of a line."""
        found = []
        for node in self.machine.nodes:
            turn = node.write_turnaround
            if turn is None:
                turn = float(ASSUMED_WRITE_TURNAROUND)
                if node.memory_bytes != 0:
                    note(self.notes, ASSUMED_WRITE_TURNAROUND, self._types[node.id])
            found.append(turn)
        return np.array(found)

    @cached_property
    def home_agent_entries(self) -> Floats:
        """(n,) lines that readers may have under way at a node's home agents; 0: not limited."""
        return np.array([node.home_agent_entries or 0.0 for node in self.machine.nodes])

    def line_times(self, read: Floats | float, written: Floats | float) -> Floats:
        """(…, n) how long lines (…, n) that each controller reads and writes take it, in times of
        a line read.

        It turns its bus round for each batch of writes: with t = ``write_turnaround`` a written
        line takes 1 + t. Who writes a line has read it before, so that reads are never so few that
        they, and not the writes, say how often the bus turns. Where t is negative, reads have a
        path of their own, which holds them alone, and memory delivers more than that path:
        reads and writes together hold it for 1 + t/2 each, so that both definitions agree where
        as many lines are written as are read.
        """
        turn = self.write_turnaround
        times: Floats = read + (1.0 + turn) * written
        if (turn < 0).any():
            shared = (1.0 + turn / 2.0) * (read + written)
            times = np.where(turn < 0, np.maximum(read, shared), times)
        return times

    @property
    def written_line_times(self) -> Floats:
        """(n,) the same of a written line where a controller serves one line after another: what
        it adds to the one that was read before it.
        """
        return 1.0 + self.write_turnaround

    def mixed_memory_Bps(self, written: float) -> Floats:
        """(n,) what each controller delivers at most where this share of its lines are writes."""
        return np.asarray(self.memory_Bps / self.line_times(1.0 - written, written))

    def link_wait_s(self, load: Floats) -> Floats:
        """(2L,) mean wait before each directed link at ``load`` (2L,): M/D/1, a line a service."""
        rho = np.minimum(load, LINK_LOAD_MAX)
        return np.asarray(self.link_line_s * rho / (2.0 * (1.0 - rho)))

    @cached_property
    def link_line_s(self) -> Floats:
        """(2L,) how long a line takes each directed link."""
        return np.asarray((LINE_BYTES + self.link_header_bytes) / self.link_Bps)

    @cached_property
    def last_cache(self) -> CacheFacts:
        """The last-level caches of each node."""
        facts = cache_facts(self.machine.nodes, 0)
        return replace(facts, lines=facts.lines * self.scales.cache)

    @cached_property
    def private_cache(self) -> CacheFacts:
        """The caches of each node one level before the last, that of a core or a few."""
        return cache_facts(self.machine.nodes, 1)

    def tlb_pages(self, page_bytes: float) -> Floats:
        """(n,) pages of that size that a core's translation buffers reach; infinite if unknown.

        Where no buffer is known for this size, that for the next smaller one stands in.
        """
        reach = []
        for node in self.machine.nodes:
            sizes = [tlb.page_bytes for tlb in node.tlbs if tlb.page_bytes <= page_bytes]
            entries = [
                tlb.entries / tlb.shared_by_cores
                for tlb in node.tlbs
                if sizes and tlb.page_bytes == max(sizes)
            ]
            reach.append(max(entries, default=float("inf")))
            if node.cores and not entries:
                unknown = "translation buffers are unknown: no page walks are modelled"
                if unknown not in self.warnings:
                    self.warnings.append(unknown)
        return np.array(reach)

    def core_s(self, instructions: float, ipc: float | None = None) -> Floats:
        """(n,) core time of so many instructions on each node; ``ipc``: of these, per cycle, in
        place of the node's."""
        per_s = self.instructions_per_s
        return np.asarray(instructions / (per_s if ipc is None else per_s / self.ipc * ipc))


def costs_once(make: type[Costs], machine: Machine, scales: Scales) -> Costs:
    """The costs that ``make`` makes of ``machine``; while work is shared, made once for each.

    Then ``warnings`` and ``notes`` are of all runs so far: for figures alone, not for Records.
    """

    def most(costs: Costs) -> int:
        return kept_machines(costs.machine)

    # What is kept has the machine, so that no other one has its id.
    return once("costs", (make, id(machine), scales), lambda: make(machine, scales), most)


def _named(ids: list[int], nodes: Sequence[Node]) -> str:
    if len(ids) == len(nodes):
        return "any node"
    return f"node {ids[0]}" if len(ids) == 1 else f"{len(ids)} nodes, such as {ids[0]}"


# What was measured as nothing is still a time.
TIME_MIN_S = 1e-12


@dataclass(frozen=True)
class HandOvers:
    """Lines between cores; arrays are in node order.

    ``line_s`` (n, n): latency of a line that a core of j hands over to one of i. ``write_slots``,
    ``read_slots`` (n,): lines that one core gets from others at a time when it streams them, to
    write them and to read them. ``additive``: whether what the lines take comes on top of
    instructions; else the two overlap. ``own_cached``: whether what a thread hands over to itself
    stays in its cache and costs nothing.
    """

    line_s: Floats
    write_slots: Floats
    read_slots: Floats
    additive: bool = False
    own_cached: bool = False
