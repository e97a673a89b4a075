"""How fast running tasks are that share cores, memory controllers and links: a fixed point.

This is the steady state of ``machine/kernel/shared_service``. As there, threads of a core share its
pipeline and its miss slots equally, and shares are max-min fair in lines per second of a task. A
controller's latency is the one that belongs to its load. Lines wait for free entries of home
agents; those that hold one may wait for links too. Updates of directories in memory take their part
of the controllers' time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ....inputs.shared_work import once
from ..._kernel import ServiceSetup, SettledService
from ...kernel.arrays import Flags, Floats, Ints
from ...machine.costs import LINE_BYTES, CostModel
from .batches import Batch
from .parameters import PLACES, CopiedKinds
from .program import MemoryUse, Stage

Where = Callable[[int | None, int], Floats]


class KindLoop(NamedTuple):
    """One of a kind's loops, per entry; ``read`` (n,)."""

    read: Floats
    instructions_s: float
    slots: float


def lines_by_place(memory: Sequence[MemoryUse]) -> Floats:
    """(2, 3) lines that are read and written, by place (``PLACES``)."""
    found = np.zeros((2, len(PLACES)))
    for use in memory:
        found[:, PLACES.index(use.place)] += use.read, use.written
    return found


def lines_by_home(by_place: Floats, part: Floats, own: Floats, all_nodes: Floats) -> Floats:
    """(F, n) lines of each home: those of each place (F, 3) where the part lies (F, n), on the
    thread's own node (F, n), and where lies what is on all nodes (n,).
    """
    of_part, local, spread = by_place.T[:, :, None]
    return np.asarray(of_part * part + local * own + spread * all_nodes)


def loops_of(batch: Batch, stage: Stage, node: int, where: Where) -> tuple[KindLoop, ...]:
    """Of tasks of a batch, of its stage, on a node."""
    part, own = where(batch.home, batch.spread)[None], where(node, 0)[None]
    return tuple(
        KindLoop(
            lines_by_home(lines_by_place(loop.memory)[:1], part, own, where(None, 0))[0],
            float(loop.instructions_s[node]),
            max(float(loop.misses_at_once[node]), 1e-9),
        )
        for loop in stage.cost.loops
    )


ROUNDS_MAX, TOLERANCE = 60, 1e-6
ROUNDS_OF_NEWTON = 10
LOADS = np.linspace(0.0, 1.0, 1_025)


@dataclass(frozen=True)
class Kinds:
    """F kinds of tasks that run: ``node`` (F,) of the worker; per entry ``read`` and ``written``
    (F, n), lines of each home, and times (F,); ``slots`` (F,): lines under way at a time.
    ``on_core`` (F,): whether they share cores with others; copies do not. ``copied``: what copy
    engines do for them; None where nothing. ``loops``: of each kind, where any has several.
    ``held_s`` (F, locks): time of an entry that it holds each lock; None: there are no locks.
    """

    node: Ints
    read: Floats
    written: Floats
    instructions_s: Floats
    separate_s: Floats
    slots: Floats
    on_core: Flags
    copied: CopiedKinds | None = None
    loops: tuple[tuple[KindLoop, ...], ...] = ()
    held_s: Floats | None = None

    @property
    def lines(self) -> tuple[Floats, Floats]:
        """(F, n) read and written, by threads and engines."""
        if self.copied is None:
            return self.read, self.written
        return self.read + self.copied.read, self.written + self.copied.written


@dataclass(frozen=True)
class Served:
    """``entry_s`` (F,): time of an entry. ``memory_use`` (n,), ``link_use`` (2L,): 0 to 1.

    ``memory_Bps`` (n,), ``link_Bps`` (2L,), ``pair_Bps`` (n, n): what each node reads and writes of
    each home. ``entry_wait_s`` (n,): waits for entries of home agents.
    ``held`` (F,): of an entry's time, the part in which its miss slots are in use. ``copy_s``,
    ``work_s`` (F,): of an entry's copy and of the work on it, alone.
    """

    entry_s: Floats
    held: Floats
    memory_use: Floats
    link_use: Floats
    memory_Bps: Floats
    link_Bps: Floats
    pair_Bps: Floats
    entry_wait_s: Floats
    copy_s: Floats
    work_s: Floats


class Sharing:
    """What some kinds of tasks share on a machine; the fixed point is found by the kernel."""

    def __init__(self, kinds: Kinds, capacity: Floats, links: int, service: SettledService) -> None:
        self.kinds, self._capacity, self._service = kinds, capacity, service
        self._links = links

    def solve(self, count: Floats) -> SettledService:
        """When ``count`` (F,) tasks of each kind run; waits are looked for from the last ones."""
        self._service.solve(count)
        return self._service

    def served(self) -> Served:
        """All that holds since the last ``solve``."""
        service, n = self._service, len(self._service.load)
        on_links = slice(n, n + self._links)
        entries, entry_s, used = service.entries_per_s, service.entry_s, service.used
        pair_Bps = np.zeros((n, n))
        np.add.at(
            pair_Bps, self.kinds.node, entries[:, None] * np.add(*self.kinds.lines) * LINE_BYTES
        )
        return Served(
            entry_s=entry_s,
            held=np.minimum(service.held_s / entry_s, 1.0),
            memory_use=service.load,
            link_use=(used / self._capacity)[on_links],
            memory_Bps=pair_Bps.sum(axis=0),
            link_Bps=used[on_links],
            pair_Bps=pair_Bps,
            entry_wait_s=service.entry_wait_s,
            copy_s=service.copy_s,
            work_s=service.work_s,
        )


class ServiceTimes:
    """Of tasks on one machine, with the costs of its parts; ``in_use`` (n,): cores of its nodes
    with workers, by default all; so many ``locks`` are shared besides.
    """

    def __init__(
        self, costs: CostModel, in_use: Floats | Ints | None = None, locks: int = 0
    ) -> None:
        self.costs, self.n = costs, len(costs.machine.nodes)
        die_s = costs.die_s(costs.cores if in_use is None else in_use)
        self.links, limits = len(costs.link_Bps), costs.limits.count(die_s)
        self._columns = costs.limits.columns(die_s)
        # The same however fast parts of the machine are.
        key, make = id(costs.machine), lambda: cache(costs.line_bytes)
        self._way = once("bytes on links", key, make, lambda kept: 1)
        entries = costs.home_agent_entries
        idle = np.diag(costs.idle_s)
        idle_s = np.where(np.isfinite(idle), idle, np.nanmin(costs.idle_s))
        lines = np.where(np.isnan(costs.memory_Bps), np.inf, costs.memory_Bps) / LINE_BYTES
        ratio = np.interp(LOADS, *costs.loaded_latency)
        self._local_too = costs.lines_make_messages
        self.capacity = np.concatenate([lines, costs.link_Bps, np.ones(limits + locks)])
        self._of_machine: dict[str, Any] = {
            "idle_s": idle_s,
            "curve_under_way": LOADS * ratio,
            "curve_ratio": ratio,
            "capacity": self.capacity,
            "cores": costs.cores,
            "stream_slots": costs.streaming_misses,
            "line_max_s": costs.streamed_s,
            "stream_stall": costs.stream_stall,
            "tolerance_s": TOLERANCE * float(idle_s.max()),
            "rounds_max": ROUNDS_MAX,
            "newton_rounds": ROUNDS_OF_NEWTON,
        }
        if self.links:
            routes = costs.machine.routes
            self._of_machine |= {
                "line_s": costs.link_line_s,
                "entering": routes.entering,
                "predecessor": routes.predecessor,
            }
        if costs.directory_in_memory:
            self._of_machine["update_lines"] = costs.written_line_times
        if entries.any() and self.links:
            self._of_machine |= {
                "entries": entries,
                # As long as entries suffice for all that the controller reads.
                "held_most_s": np.divide(
                    entries,
                    lines,
                    out=np.full(self.n, np.inf),
                    where=np.isfinite(lines) & (entries > 0),
                ),
            }

    def of(self, kinds: Kinds) -> Sharing:
        """The search for the times of these kinds."""
        lines = np.add(*kinds.lines).sum(axis=1)
        found = dict(self._of_machine)
        if kinds.copied is not None:
            copied, engines = kinds.copied, kinds.copied.found
            # Shares are counted in copies' own lines.
            own = (copied.read + copied.written).sum(axis=1)
            lines = np.where(own > 0, own, lines)
            found |= {
                "engine": copied.engine,
                "engine_s": copied.engine_s,
                "copied": copied.read,
                "copied_slots": copied.slots,
                "copied_latency_s": engines.latency_s[np.maximum(copied.engine, 0)],
                "contexts": [float(engine.contexts) for engine in engines.engines],
            }
        if kinds.loops:
            read, instructions_s, slots = zip(*chain.from_iterable(kinds.loops), strict=True)
            found |= {
                "loop_first": np.cumsum([0, *map(len, kinds.loops)]),
                "loop_read": np.array(read),
                "loop_instructions_s": instructions_s,
                "loop_slots": slots,
            }
        per_line = np.where(lines > 0, lines, 1.0)
        setup = ServiceSetup(
            node=kinds.node,
            latency_s=self.costs.idle_s,
            read=kinds.read,
            use=self._uses(kinds) / per_line[:, None],
            per_line=per_line,
            instructions_s=kinds.instructions_s,
            separate_s=kinds.separate_s,
            slots=kinds.slots,
            on_core=kinds.on_core.astype(np.int64),
            **found,
        )
        return Sharing(kinds, self.capacity, self.links, SettledService(setup))

    def _uses(self, kinds: Kinds) -> Floats:
        """(F, R) of an entry: times of controllers, in lines that they read in it; bytes on links;
        times of limits of transfers.
        """
        # What-ifs hardly change which lines are read.
        lines = [each.tobytes() for each in (kinds.node, kinds.read, kinds.written)]
        links = once("links", (self._way, *lines), lambda: self._on_links(kinds), lambda kept: 1)
        memory = self.costs.line_times(*kinds.lines)
        if kinds.copied is not None:
            links = links + kinds.copied.link_bytes(self.costs)
        return np.concatenate([memory, links, self._limits(kinds)], axis=1)

    def _on_links(self, kinds: Kinds) -> Floats:
        """(F, 2L) bytes of an entry, but for what engines copy."""
        links = np.zeros((len(kinds.node), self.links))
        for node in np.unique(kinds.node).tolist() if self.links else ():
            here = np.flatnonzero(kinds.node == node)
            of_read, of_written = kinds.read[here], kinds.written[here]
            found = np.zeros((len(here), self.links))
            for home in np.flatnonzero((of_read + of_written).any(axis=0)).tolist():
                if home != node or self._local_too:
                    of_line, written_back = of_read[:, home, None], of_written[:, home, None]
                    read, written = self._way(node, home)
                    on = np.flatnonzero(read + written)
                    found[:, on] += of_line * read[on] + written_back * written[on]
            links[here] = found
        return links

    def _limits(self, kinds: Kinds) -> Floats:
        """(F, limits) times of limits of transfers of an entry, and of locks behind them."""
        found = np.zeros((len(kinds.node), len(self.capacity) - self.n - self.links))
        for node, home, column, each_s in zip(*self._columns, strict=True):
            here = np.flatnonzero(kinds.node == node)
            found[here, column] += kinds.read[here, home] * each_s
        if kinds.held_s is not None:
            found[:, -kinds.held_s.shape[1] :] = kinds.held_s
        return found
