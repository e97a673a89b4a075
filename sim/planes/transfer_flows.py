"""Copies between cores as flows: rows of coefficients for the solver, next to the workload's.

The resources of a machine that flows share, by position.

Bytes on links per cache line, for each pair of nodes; each computed once.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..kernel.arrays import Floats, Ints
from ..kernel.sums import group_sums
from ..machine.costs import LINE_BYTES, CostModel
from ..machine.demands import TransferDemand
from ..machine.hand_over_traffic import HandOverTraffic, hand_over_traffic


class TransferFlows:
    """T copies as sparse rows, of which some entries change with the waits.

    A row: worker, core and miss slots of the source, the same of the target, memory of both, the
    pair; then data and control messages of the links on the way.
    """

    FIXED = 9

    def __init__(
        self, wires: "Wires", core_node: Ints, threads: Floats, demand: TransferDemand
    ) -> None:
        self.costs, self.core_node, self.threads = wires.costs, core_node, threads
        self.demand = demand
        columns, node = wires.resources, core_node
        self.count = len(demand.source)
        self.a, self.b = demand.source_home, demand.target_home
        nodes = len(self.costs.machine.nodes)
        pairs, which = np.unique(self.b * nodes + self.a, return_inverse=True)
        which = which.reshape(-1)
        homes, initiators = pairs % nodes, pairs // nodes
        limits = self.costs.limits
        line_s = np.maximum(limits.initiator_s, limits.pair_s)[initiators, homes]
        self.pair_capacity = LINE_BYTES / np.where(line_s > 0, line_s, np.nan)
        self.pair_capacity[np.isnan(self.pair_capacity)] = np.inf
        ways = [wires.of_line(int(b), int(a)) for b, a in zip(initiators, homes, strict=True)]
        sizes = np.array([len(position) for position, _ in ways], dtype=np.int64)[which]
        self.counts = self.FIXED + sizes
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
        # The target fetches lines for ownership and writes them back.
        each = self.costs.line_times(1.0, 1.0)[self.b]
        fixed[:, 7] = each * demand.written_lines * LINE_BYTES
        fixed[:, 8] = demand.lines * LINE_BYTES
        resource, value = [], []
        for t, k in enumerate(which):
            resource += [ends[t], ways[k][0]]
            value += [fixed[t], ways[k][1] * demand.lines[t]]
        self.resource = np.concatenate(resource).astype(np.int64)
        self.value = np.concatenate(value)
        busy = np.bincount(np.concatenate([demand.source, demand.target]), minlength=len(node))
        self.sharers = np.maximum(busy[demand.source], busy[demand.target])
        self.weight = np.ones(self.count)

    def update(self, latency: "Latency") -> None:
        """Miss slots, and weights: a core's time is shared evenly among what it does."""
        d, threads = self.demand, self.threads
        stream = self.costs.streaming_misses[self.core_node]
        source_s = d.source_lines * latency.pairs_s(self.a, self.a) / stream[d.source]
        across_s = d.lines * latency.pairs_s(self.b, self.a)
        across_s += d.written_lines * latency.pairs_s(self.b, self.b)
        target_s = across_s / stream[d.target]
        at_source = np.maximum(d.source_s, source_s * threads[d.source])
        at_target = np.maximum(d.target_s, target_s * threads[d.target])
        self.value[self.first], self.value[self.first + 3] = at_source, at_target
        self.value[self.first + 2], self.value[self.first + 5] = source_s, target_s
        self.weight = 1.0 / (np.maximum(np.maximum(at_source, at_target), 1e-30) * self.sharers)

    def memory_Bps(self, rates: Floats) -> Floats:
        """(n,) bytes per second that controllers move for ``rates`` (T,) of the copies."""
        d, nodes = self.demand, len(self.costs.machine.nodes)
        lines = group_sums(self.a, rates * d.source_lines, nodes)
        lines += group_sums(self.b, rates * 2.0 * d.written_lines, nodes)
        return lines * LINE_BYTES

    def use_of(self, rates: Floats, resources: int) -> Floats:
        """(R,) what ``rates`` (T,) of the copies use of each of the first ``resources``."""
        amounts = self.value * np.repeat(rates, self.counts)
        most = max(resources, int(self.resource.max()) + 1)
        return group_sums(self.resource, amounts, most)[:resources]


@dataclass(frozen=True)
class Latency:
    """Latency of a line that node i fetches from home j: idle, plus the wait at j's memory, plus
    the waits of data on links from j to i. Requests have a channel of their own and do not wait.

    ``idle_s``, ``idle_handed_s`` (n, n): from memory, and from a core of j that hands it over;
    ``memory_s`` (n,): waits at controllers; ``links_s`` (n, n): waits on the way from i to j, None
    where nobody waits.
    """

    idle_s: Floats
    idle_handed_s: Floats
    memory_s: Floats
    links_s: Floats | None

    def read_s(self, lines: Floats) -> Floats:
        """(n,) latency of all ``lines`` (n, n) that each node reads, one after the other."""
        total = np.einsum("ij,ij->i", lines, self.idle_s) + lines @ self.memory_s
        if self.links_s is not None:
            total += np.einsum("ij,ji->i", lines, self.links_s)
        return np.asarray(total)

    def streamed_s(self, lines: Floats, slots: Floats, line_max_s: Floats) -> Floats:
        """(n,) time that a core of each node needs for all ``lines`` (n, n), with ``slots`` (n,)
        under way, but from no home longer than ``line_max_s`` (n, n) a line.
        """
        each = self.idle_s + self.memory_s[None, :]
        if self.links_s is not None:
            each += self.links_s.T
        each /= slots[:, None]
        return np.asarray(np.einsum("ij,ij->i", lines, np.minimum(each, line_max_s)))

    def handed_s(self, shares: Floats) -> Floats:
        """(n,) mean latency of a line that each node gets from others, in ``shares`` (n,)."""
        total = self.idle_handed_s @ shares
        if self.links_s is not None:
            total += shares @ self.links_s
        return np.asarray(total)

    def pairs_s(self, initiator: Ints, home: Ints) -> Floats:
        """(T,) latency of a line from the memory of each ``home`` (T,)."""
        total = self.idle_s[initiator, home] + self.memory_s[home]
        if self.links_s is not None:
            total += self.links_s[home, initiator]
        return np.asarray(total)


class Resources:
    """The R resources of a machine whose cores at ``core_node`` (C,) are in use, by position.

    Time of the workers of a core (as many seconds per second as it runs ``threads`` (C,)), time
    that the core executes, time of its miss slots; time of memory controllers, in bytes that they
    would read in it per second; bytes per second of data and of control messages on directed links;
    units per second that clients ask for, time of the most contended cache line; pairs of nodes
    that transfers go between follow.
    """

    def __init__(self, costs: CostModel, core_node: Ints, threads: Floats) -> None:
        c, n, links = len(core_node), len(costs.machine.nodes), len(costs.link_Bps)
        self.workers = slice(0, c)
        self.cores = slice(c, 2 * c)
        self.misses = slice(2 * c, 3 * c)
        self.memory = slice(3 * c, 3 * c + n)
        self.links = slice(3 * c + n, 3 * c + n + links)
        self.control = slice(self.links.stop, self.links.stop + links)
        self.clients = self.control.stop
        self.line = self.clients + 1
        self.count = self.line + 1
        memory_Bps = np.where(np.isnan(costs.memory_Bps), np.inf, costs.memory_Bps)
        self.capacity = np.concatenate(
            [threads, np.ones(2 * c), memory_Bps, costs.link_Bps, costs.link_Bps, [np.inf, 1.0]]
        )

    def describe(self, position: int) -> tuple[str, int]:
        """Kind (``workers``, ``cores``, ``misses``, ``memory``, ``links``, ``clients``, ``line``,
        ``pairs``), and position within it.
        """
        if position in (self.clients, self.line):
            return "clients" if position == self.clients else "line", 0
        for kind in ("workers", "cores", "misses", "memory", "links", "control"):
            part = getattr(self, kind)
            if part.start <= position < part.stop:
                return "links" if kind == "control" else kind, position - part.start
        return "pairs", position - self.count


Moved = Literal["read", "taken", "written"]

# The link traffic of hand-overs is worked out again when a node's part in it has changed by this.
SOURCE_TOLERANCE = 1e-5


class Wires:
    """Wire bytes on one machine. ``known`` keeps what others worked out of its links: it does not
    depend on rates, nor on how fast the machine's parts are; no more does ``handed``, what was last
    worked out of hand-overs.
    """

    def __init__(
        self, costs: CostModel, resources: Resources, known: dict[object, Floats] | None = None
    ) -> None:
        self.costs, self.resources = costs, resources
        self._rows = {} if known is None else known
        self._lines: dict[tuple[int, int], tuple[Ints, Floats]] = {}
        self.handed: tuple[Floats, Floats, float, HandOverTraffic] | None = None

    def of_line(self, initiator: int, home: int) -> tuple[Ints, Floats]:
        """Resources of links, and wire bytes on each, of a line that one node reads from another.

        Snoops are left out: what is copied lies in nobody's cache but the owner's.
        """
        key = (initiator, home)
        if key not in self._lines:
            costs, columns = self.costs, self.resources
            routes = costs.machine.routes
            known = bool(costs.machine.links)
            data, requests = (
                np.array(routes.links_of(*ends) if known else [], dtype=np.int64)
                for ends in ((home, initiator), (initiator, home))
            )
            self._lines[key] = (
                np.concatenate([columns.links.start + data, columns.control.start + requests]),
                np.concatenate(
                    [LINE_BYTES + costs.link_header_bytes[data], costs.link_request_bytes[requests]]
                ),
            )
        return self._lines[key]

    def rows(self, lines: Floats, moved: Moved) -> Floats:
        """(2, n, 2L) wire bytes of each row of ``lines``: ``read`` from memory, ``taken`` from
        other caches, ``written`` back.
        """
        key = (moved, lines.tobytes())
        if key not in self._rows:
            costs = self.costs
            rows_of = {
                "read": costs.wire_rows,
                "taken": costs.taken_wire_rows,
                "written": costs.written_wire_rows,
            }
            self._rows[key] = rows_of[moved](lines)
        return self._rows[key]

    def handed_over(
        self, source: Floats, target: Floats, passed_on: float
    ) -> tuple[Floats, HandOverTraffic]:
        """Of lines that issuers ``source`` (n,) fetch from executors ``target`` (n,), who fetch
        them back: ``source`` as used, and the traffic of a line, ``passed_on`` included.

        Those of the last call, if that was about the same.
        """
        if self.handed is not None:
            before, to, passed, traffic = self.handed
            near = np.abs(source - before).max() <= SOURCE_TOLERANCE and passed == passed_on
            if near and np.abs(target - to).max() <= SOURCE_TOLERANCE:
                return before, traffic
        traffic = hand_over_traffic(self.costs, source, target, passed_on)
        self.handed = source, target, passed_on, traffic
        return source, traffic
