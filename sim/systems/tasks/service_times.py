"""How fast running tasks are that share cores, memory controllers and links: a fixed point.

Shares are max-min fair in lines per second of a task, as in ``machine/kernel/shared_service``, of
which this is the steady state: a controller's latency is the one that belongs to its load.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..._kernel import solve_max_min
from ...kernel.sums import group_sums
from ...machine.costs import LINE_BYTES, CostModel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ROUNDS_MAX, TOLERANCE = 60, 1e-6
LOADS = np.linspace(0.0, 1.0, 1_025)


@dataclass(frozen=True)
class Kinds:
    """F kinds of tasks that run: ``node`` (F,) of the worker; per entry ``read`` and ``written``
    (F, n), lines of each home, and times (F,); ``slots`` (F,): lines under way at a time.
    ``on_core`` (F,): whether they share cores with others; copies do not.
    """

    node: Ints
    read: Floats
    written: Floats
    instructions_s: Floats
    separate_s: Floats
    slots: Floats
    on_core: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Served:
    """``entry_s`` (F,): time of an entry. ``memory_use`` (n,), ``link_use`` (2L,): 0 to 1.

    ``memory_Bps`` (n,), ``link_Bps`` (2L,), ``pair_Bps`` (n, n): what each node reads and writes of
    each home. ``wait_s`` (n,): of controllers. ``held`` (F,): of an entry's time, the part in which
    its miss slots are in use.
    """

    entry_s: Floats
    held: Floats
    memory_use: Floats
    link_use: Floats
    memory_Bps: Floats
    link_Bps: Floats
    pair_Bps: Floats
    wait_s: Floats


class ServiceTimes:
    """Of tasks on one machine, with the costs of its parts."""

    def __init__(self, costs: CostModel) -> None:
        self.costs, self.n = costs, len(costs.machine.nodes)
        self.links = len(costs.link_Bps)
        self._ways: dict[tuple[int, int], tuple[Floats, Floats]] = {}
        self._last: tuple[Kinds, Floats] | None = None
        ratio = np.interp(LOADS, *costs.loaded_latency)
        self._under_way, self._ratio = LOADS * ratio, ratio
        idle = np.diag(costs.idle_s)
        self._idle_s = np.where(np.isfinite(idle), idle, np.nanmin(costs.idle_s))
        lines = np.where(np.isnan(costs.memory_Bps), np.inf, costs.memory_Bps) / LINE_BYTES
        self._capacity = np.concatenate([lines, costs.link_Bps])

    def solve(self, kinds: Kinds, count: Floats, wait_s: Floats | None = None) -> Served:
        """When ``count`` (F,) tasks of each kind run; waits are looked for from ``wait_s`` (n,)."""
        costs, n = self.costs, self.n
        lines = (kinds.read + kinds.written).sum(axis=1)
        per_line = np.where(lines > 0, lines, 1.0)
        if self._last is None or self._last[0] is not kinds:  # asked for often, in a search
            self._last = kinds, self._uses(kinds) / per_line[:, None]
        use = self._last[1]
        running = np.flatnonzero(count > 0)
        rows, columns = np.nonzero(use[running])
        row_ptr = np.searchsorted(rows, np.arange(len(running) + 1)).astype(np.int64)
        coefficient = use[running][rows, columns]
        pipeline = self._pipeline(kinds, count)
        idle = costs.idle_s[kinds.node]
        wait = np.zeros(n) if wait_s is None else wait_s
        for _ in range(ROUNDS_MAX):
            held = (kinds.read * (idle + wait[None, :])).sum(axis=1) / kinds.slots
            alone_s = kinds.separate_s + np.maximum(kinds.instructions_s * pipeline, held)
            alone_s = np.maximum(alone_s, 1e-15)
            rate, used = np.zeros(0), np.zeros(len(self._capacity))
            if len(running):
                rate, _, used = solve_max_min(
                    self._capacity,
                    row_ptr,
                    columns.astype(np.int64),
                    coefficient,
                    count[running] * per_line[running] / alone_s[running],
                    count[running],
                )
            load = np.minimum(np.nan_to_num(used[:n] / self._capacity[:n]), 1.0)
            found = self._waits(load, wait)
            settled = np.abs(found - wait).max(initial=0.0) <= TOLERANCE * self._idle_s.max()
            wait = found
            if settled:
                break
        entry_s = alone_s.copy()
        entry_s[running] = count[running] * per_line[running] / np.maximum(rate, 1e-300)
        entries = np.zeros(len(count))
        entries[running] = rate / per_line[running]
        pair_Bps = np.zeros((n, n))
        np.add.at(
            pair_Bps, kinds.node, entries[:, None] * (kinds.read + kinds.written) * LINE_BYTES
        )
        return Served(
            entry_s,
            np.minimum(held / entry_s, 1.0),
            load,
            used[n:] / self._capacity[n:],
            pair_Bps.sum(axis=0),
            used[n:],
            pair_Bps,
            wait,
        )

    def _waits(self, load: Floats, wait_s: Floats) -> Floats:
        """(n,) waits at which as many lines under way make the load that waits so long."""
        under_way = load * (1.0 + wait_s / self._idle_s)
        ratio = np.interp(under_way, self._under_way, self._ratio)
        return np.asarray((ratio - 1.0) * self._idle_s)

    def _pipeline(self, kinds: Kinds, count: Floats) -> Floats:
        """(F,) how much longer instructions take where threads share cores."""
        on = group_sums(kinds.node, count * kinds.on_core, self.n)
        cores = np.maximum(self.costs.cores, 1.0)
        return np.where(kinds.on_core, np.maximum(on / cores, 1.0)[kinds.node], 1.0)

    def _uses(self, kinds: Kinds) -> Floats:
        """(F, n + 2L) of an entry: times of controllers, in lines that they read in it; bytes."""
        links = np.zeros((len(kinds.node), self.links))
        for f, node in enumerate(kinds.node.tolist()):
            for home in np.flatnonzero(kinds.read[f] + kinds.written[f]).tolist():
                if home != node and self.links:
                    read, written = self._way(node, home)
                    links[f] += kinds.read[f, home] * read + kinds.written[f, home] * written
        memory = self.costs.line_times(kinds.read, kinds.written)
        return np.concatenate([memory, links], axis=1)

    def _way(self, node: int, home: int) -> tuple[Floats, Floats]:
        """(2L,) bytes on each link of a line that ``node`` reads from ``home``, and writes back."""
        if (node, home) not in self._ways:
            costs, routes = self.costs, self.costs.machine.routes
            read, written = np.zeros(self.links), np.zeros(self.links)
            to_node = np.array(routes.links_of(home, node), dtype=np.int64)
            to_home = np.array(routes.links_of(node, home), dtype=np.int64)
            read[to_node] += LINE_BYTES + costs.link_header_bytes[to_node]
            read[to_home] += costs.link_request_bytes[to_home]
            written[to_home] += LINE_BYTES + costs.link_header_bytes[to_home]
            written[to_node] += costs.link_request_bytes[to_node]
            self._ways[node, home] = read, written
        return self._ways[node, home]
