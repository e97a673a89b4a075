"""Finds rates: max-min fair shares in balance with the waits that they cause.

Every flow asks for the time of workers, for slots of outstanding misses, for memory controllers,
links and pairs of nodes. How long a miss holds its slot depends on the load of controllers and
links, and these on the rates: a fixed point, found by damped iteration.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from .._kernel import solve_max_min
from ..kernel.sums import group_sums
from ..machine.costs import LINE_BYTES, CostModel
from ..machine.demands import ISSUE, RECEIVE, Demand, Reads, Routing, TransferDemand
from ..machine.hand_overs import TIME_MIN_S
from .latency import Latency
from .rates import Loads, Rates, Resources
from .transfer_flows import TransferFlows

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

TOLERANCE = 1e-6
ITERATIONS_MAX = 80

# Control messages have a channel of their own on every link and go first; what is left is for data,
# at least this part where there are any.
DATA_PART_MIN = 0.05

# Routing's link traffic is worked out again when a node's part in it has changed by this much.
SOURCE_TOLERANCE = 1e-5


class RateSolver:
    """Finds the Rates of flows on one machine. ``wires`` keeps what other solvers worked out of
    links: it does not depend on rates, nor on how fast the machine's parts are.
    """

    def __init__(
        self,
        costs: CostModel,
        core_node: Ints,
        threads: Floats,
        wires: dict[object, Floats] | None = None,
    ) -> None:
        self.costs, self.core_node, self.threads = costs, core_node, threads
        self.resources = Resources(costs, core_node, threads)
        self._wires = {} if wires is None else wires
        self._ways: dict[tuple[int, int], tuple[Ints, Floats]] = {}
        self._handed: tuple[Floats, Floats, Floats, Floats] | None = None
        self.idle_s, self.idle_handed_s = costs.idle_s, costs.hand_overs.line_s

    def wire_of_line(self, initiator: int, home: int) -> tuple[Ints, Floats]:
        """Resources of links, and wire bytes on each, of a line that one node reads from another.

        Snoops are left out: what is copied lies in nobody's cache but the owner's.
        """
        key = (initiator, home)
        if key not in self._ways:
            costs, columns = self.costs, self.resources
            routes = costs.machine.routes
            known = bool(costs.machine.links)
            data, asked = (
                np.array(routes.links_of(*ends) if known else [], dtype=np.int64)
                for ends in ((home, initiator), (initiator, home))
            )
            self._ways[key] = (
                np.concatenate([columns.links.start + data, columns.control.start + asked]),
                np.concatenate(
                    [LINE_BYTES + costs.link_header_bytes[data], costs.link_request_bytes[asked]]
                ),
            )
        return self._ways[key]

    def wire_rows(self, lines: Floats, *, written: bool) -> Floats:
        """(2, n, 2L) wire bytes of each row of ``lines``, read or ``written`` back."""
        key = (written, lines.tobytes())
        if key not in self._wires:
            costs = self.costs
            self._wires[key] = (costs.written_wire_rows if written else costs.wire_rows)(lines)
        return self._wires[key]

    def handed_over(self, source: Floats, target: Floats) -> tuple[Floats, Floats, Floats]:
        """Of lines that issuers ``source`` (n,) fetch from executors ``target`` (n,), who fetch
        them back: ``source`` as used, lines (n, n) between nodes, (2, 2L) wire bytes.

        Those of the last call, if that was about the same.
        """
        if self._handed is not None:
            before, to, *_ = self._handed
            near = np.abs(source - before).max() <= SOURCE_TOLERANCE
            if near and np.abs(target - to).max() <= SOURCE_TOLERANCE:
                return before, *self._handed[2:]
        moved = np.outer(source, target)
        moved = moved + moved.T
        np.fill_diagonal(moved, 0.0)
        wire = self.costs.wire_Bps(moved, snooped=False)
        self._handed = source, target, moved, wire
        return source, moved, wire

    def solve(
        self,
        demand: Demand,
        transfers: TransferDemand | None = None,
        start: Loads | None = None,
        tolerance: float = TOLERANCE,
    ) -> Rates:
        """The Rates of ``demand`` and ``transfers``, looked for from ``start``."""
        return _Search(self, demand, transfers).run(start, tolerance)


class _Search:
    """One search for the fixed point: coefficients of all flows, updated as waits change."""

    def __init__(
        self, solver: RateSolver, demand: Demand, transfers: TransferDemand | None
    ) -> None:
        self.solver, self.costs, self.demand = solver, solver.costs, demand
        self.node, self.columns = solver.core_node, solver.resources
        self.n, self.flows = len(self.costs.machine.nodes), demand.flows
        self.steps: dict[str, Floats] = {}
        self.issued = np.full(len(self.node), 1.0 / len(self.node))
        # No more misses overlap than a batch has independent ones.
        in_batch = demand.batch * solver.threads
        misses = self.costs.random_misses_of(self.node, demand.miss_instructions)
        self.random_misses = np.minimum(misses[self.node], in_batch)
        self.routed = np.zeros(0)  # (n,) shares of the issuers in the link traffic in use
        # Lines (n, n) that i draws from j: from memory; and with what routing hands over.
        self.read_lines = self._lines(self._reads())
        self.all_lines = self.read_lines
        written = self._lines(self._written())
        # (F, n) bytes of controllers, and in how long they move them: in bytes read in that time.
        self.traffic = self._by_flow(self.read_lines + written) * LINE_BYTES
        self.memory = self._by_flow(self.costs.line_times(self.read_lines, written)) * LINE_BYTES
        self.read_wires = self._read_wires()
        self.data, self.control = self.read_wires  # (F, 2L) each
        self.cap = self._capped_by_pairs()
        self._place()
        self.transfers = TransferFlows(solver, transfers) if transfers is not None else None

    # -- what does not depend on waits ------------------------------------------------------------

    def _by_flow(self, rows: Floats) -> Floats:
        """(F, …) sums of ``rows`` (n, …) over the nodes of each flow."""
        sums = np.zeros((self.flows, *rows.shape[1:]))
        np.add.at(sums, self.demand.flow_of, rows)
        return sums

    def _reads(self) -> list[tuple[Floats, Floats]]:
        """Of all reads of all steps: (n,) weight on each node, and their lines."""
        return [self._on_nodes(reads) for step in self.demand.steps for reads in step.reads]

    def _written(self) -> list[tuple[Floats, Floats]]:
        """The same of all writes."""
        return [self._on_nodes(writes) for writes in self.demand.writes]

    def _on_nodes(self, reads: Reads) -> tuple[Floats, Floats]:
        return group_sums(self.node, reads.weight, self.n), reads.lines

    def _lines(self, parts: list[tuple[Floats, Floats]]) -> Floats:
        """(n, n) lines of all ``parts`` between nodes and homes."""
        total = np.zeros((self.n, self.n))
        for weight, lines in parts:
            total += weight[:, None] * lines
        return total

    def _read_wires(self) -> Floats:
        """(2, F, 2L) wire bytes of what is read from memory and written back."""
        written = self._written()
        if self.flows == 1:
            wire = self.costs.wire_Bps(self.read_lines)
            lines = self._lines(written)
            if written and lines[~np.eye(self.n, dtype=bool)].any():
                wire = wire + self.costs.written_wire_rows(lines).sum(axis=1)
            return wire[:, None, :]
        # Many flows read with the same pattern: its rows are worked out once.
        wires = np.zeros((2, self.flows, len(self.costs.link_Bps)))
        for parts, back in ((self._reads(), False), (written, True)):
            for weight, lines in parts:
                rows = self.solver.wire_rows(lines, written=back)
                for total, of_node in zip(wires, rows, strict=True):
                    total += self._by_flow(weight[:, None] * of_node)
        return wires

    def _capped_by_pairs(self) -> Floats:
        """(F,) caps. Only one flow uses a pair, but for transfers, whose part is small."""
        pairs = self.costs.pair_Bps
        if not np.isfinite(pairs).any():
            return np.full(self.flows, np.inf)
        with np.errstate(divide="ignore"):
            allowed = (pairs / LINE_BYTES / self.all_lines).min(axis=1)
        cap = np.full(self.flows, np.inf)
        np.minimum.at(cap, self.demand.flow_of, allowed)
        return cap

    def _place(self) -> None:
        """Where coefficients stand: flows in rows, first those that waits do not change."""
        columns, flow_of_core = self.columns, self.demand.flow_of[self.node]
        cores = np.arange(len(self.node))
        memory_row, memory = np.nonzero(self.memory)
        link_row, link = np.nonzero(self.data)
        control_row, control = np.nonzero(self.control)
        every = np.arange(self.flows)
        row = np.concatenate([memory_row, link_row, control_row, every, *[flow_of_core] * 3, every])
        resource = np.concatenate(
            [
                columns.memory.start + memory,
                columns.links.start + link,
                columns.control.start + control,
                np.full(self.flows, columns.clients),
                *(part.start + cores for part in (columns.workers, columns.cores, columns.misses)),
                np.full(self.flows, columns.line),
            ]
        )
        self._fixed = np.concatenate(
            [
                self.memory[memory_row, memory],
                self.data[link_row, link],
                self.control[control_row, control],
                np.ones(self.flows),
            ]
        )
        self._control_part = np.where(self.data.any(axis=0), 1.0 - DATA_PART_MIN, 1.0)
        self._order = np.argsort(row, kind="stable")
        self._resource = resource[self._order].astype(np.int64)
        self._counts = np.bincount(row, minlength=self.flows)

    # -- what depends on waits --------------------------------------------------------------------

    def _core_times(self, loads: Loads) -> tuple[Floats, Floats, Floats]:
        """(C,) times per unit of workers, of executing and of miss slots."""
        latency = self._latency(loads)
        self._line_s = np.zeros(self.flows)
        if self.demand.contended:
            # From any node in use the line may come, and goes on from there.
            nodes = np.unique(self.node)
            evenly = np.zeros(self.n)
            evenly[nodes] = 1.0 / len(nodes)
            passed_s = self.demand.contended * latency.handed_s(evenly)[nodes]
            np.maximum.at(self._line_s, self.demand.flow_of[nodes], passed_s)
        worker_s, core_s, miss_s = np.zeros((3, len(self.node)))
        # Others take a part of each core's time, and of what it does in the time.
        left, left_memory = self.costs.disturbances.left, self.costs.disturbances.left_memory
        for step in self.demand.steps:
            needs_s, held_s = step.core_s / left, step.hit_s / left
            for reads in step.reads:
                if reads.stream:
                    slots, surely_s = self.costs.streaming_misses, self.costs.streamed_s
                    each_s = latency.streamed_s(reads.lines, slots, surely_s)[self.node]
                else:
                    each_s = latency.read_s(reads.lines)[self.node] / self.random_misses
                    each_s = each_s * step.pace
                held_s = held_s + reads.weight * each_s / left_memory
            takes_s = self._overlap(needs_s, held_s)
            self.steps[step.name] = takes_s
            core_s, miss_s, worker_s = core_s + needs_s, miss_s + held_s, worker_s + takes_s
        if self.demand.routing is not None:
            worker_s, core_s, miss_s = self._routed(
                self.demand.routing, (worker_s, core_s, miss_s), left, latency
            )
        if self.transfers is not None:
            self.transfers.update(latency)
        return worker_s, core_s, miss_s

    def _routed(
        self, routing: Routing, times: tuple[Floats, Floats, Floats], left: float, latency: Latency
    ) -> tuple[Floats, ...]:
        """``times`` (C,) of workers, of executing and of miss slots, with those of routing: means
        of units, of which more are done in times in which cores are near each other."""
        found: list[tuple[Floats, ...]] = []
        units: list[Floats] = []
        for share, farther in self.costs.disturbances.distances:
            lines = latency if farther == 1.0 else latency.farther(farther)
            routed = self._route(routing, times[0] * left, lines)
            steps = (self.steps[ISSUE], self.steps[RECEIVE])
            found.append((*routed, *steps))
            units.append(share / np.maximum(times[0] + routed[0] / left, TIME_MIN_S))
        means = found[0]
        if len(found) > 1:
            parts = np.array(units) / np.sum(units, axis=0)
            means = tuple(
                np.sum(parts * np.array(each), axis=0) for each in zip(*found, strict=True)
            )
        self.steps[ISSUE], self.steps[RECEIVE] = (each / left for each in means[3:])
        return tuple(a + b / left for a, b in zip(times, means[:3], strict=True))

    def _overlap(self, core_s: Floats, held_s: Floats) -> Floats:
        """Time that a step takes in one worker: instructions and misses overlap.

        The threads of a core divide its reorder window and its line-fill buffers among them.
        """
        return np.maximum(core_s, held_s * self.solver.threads)

    def _handing(self, core_s: Floats, held_s: Floats) -> Floats:
        """The same of a step whose lines come from another core, or go to it."""
        if not self.costs.hand_overs.additive:
            return self._overlap(core_s, held_s)
        return core_s + held_s * self.solver.threads

    def _latency(self, loads: Loads) -> Latency:
        """Latencies under load."""
        costs, solver = self.costs, self.solver
        links = None
        if loads.links.any():
            links = costs.machine.routes.route_sums(costs.link_wait_s(loads.links))
        return Latency(
            solver.idle_s, solver.idle_handed_s, costs.memory_wait_s(loads.memory), links
        )

    def _route(
        self, routing: Routing, worker_s: Floats, latency: Latency
    ) -> tuple[Floats, Floats, Floats]:
        """(C,) times of workers, of executing and of miss slots for issuing and receiving; who has
        time issues.
        """
        node = self.node
        handed = self.costs.hand_overs
        write_slots, read_slots = handed.write_slots[node], handed.read_slots[node]
        # What a worker sends to itself stays where it is.
        apart = 1.0 - routing.executed if handed.own_cached else np.ones(len(node))
        target = group_sums(node, routing.executed, self.n)
        to_target = latency.handed_s(target)
        lines = routing.lines + routing.answer_lines
        flush_core = routing.flush_s[node]
        issue_core = routing.issue_s[node] + flush_core
        issue_miss = apart * lines * to_target[node] / write_slots
        # A worker waits for each of its atomic operations; the last of a flush lets no later
        # instruction pass before what it copied has arrived.
        issue_worker = routing.issue_s[node] + self._handing(flush_core, issue_miss)
        issue_worker = issue_worker + apart * routing.atomics * to_target[node]
        receive_core = routing.executed * routing.receive_s[node]
        receive_core = receive_core + routing.parts * routing.part_s[node]
        for _ in range(2):  # who executes reads from who issues: once more settles it
            source = group_sums(node, self.issued, self.n)
            if handed.own_cached:
                apart = 1.0 - self.issued
            from_source = latency.handed_s(source)[node]
            receive_miss = apart * routing.executed * lines * from_source / read_slots
            rounds = routing.rounds(self.issued, self.solver.threads)
            waits = routing.read_waits * rounds + routing.part_waits * apart * routing.parts
            receive_worker = self._handing(receive_core, receive_miss) + waits * from_source
            self.issued = spare_time_shares(worker_s + receive_worker, issue_worker)
        self._route_traffic(routing, source, target)
        self.steps[ISSUE] = self.issued * issue_worker
        self.steps[RECEIVE] = receive_worker
        return (
            self.issued * issue_worker + receive_worker,
            self.issued * issue_core + receive_core,
            self.issued * issue_miss + receive_miss,
        )

    def _route_traffic(self, routing: Routing, source: Floats, target: Floats) -> None:
        """Link traffic of routing, made anew when the issuers have changed."""
        if len(self.routed) and np.abs(source - self.routed).max() <= SOURCE_TOLERANCE:
            return
        # The issuer fetches the line for ownership, the executor fetches it back, filled.
        lines = routing.lines + routing.answer_lines
        self.routed, moved, wire = self.solver.handed_over(source, target)
        self.data, self.control = self.read_wires + lines * wire[:, None, :]
        self.all_lines = self.read_lines + lines * moved
        self.cap = self._capped_by_pairs()
        self._place()

    # -- the search -------------------------------------------------------------------------------

    def run(self, start: Loads | None, tolerance: float) -> Rates:
        """Iterates until loads and rates agree."""
        links = np.zeros(len(self.costs.link_Bps))
        loads = start or Loads(np.zeros(self.n), links, links)
        rates = self._solve(loads)
        iteration, damping, last_gap = 1, np.ones(1), np.zeros(1)
        while iteration < ITERATIONS_MAX:
            gap = rates.loads.joined() - loads.joined()
            residual = float(np.abs(gap).max())
            if residual <= tolerance:
                break
            # Overshooting shows as a change of sign: smaller steps of this load from there on.
            turned = gap * last_gap < 0
            damping = np.where(turned, 0.5 * damping, np.minimum(1.0, 1.2 * damping))
            last_gap = gap
            loads = loads.split(loads.joined() + damping * gap)
            rates = self._solve(loads)
            iteration += 1
        of_node = rates.flows[self.demand.flow_of]
        drawn = np.zeros(0)
        if np.isfinite(self.costs.pair_Bps).any():
            drawn = of_node[:, None] * self.all_lines * LINE_BYTES
        return replace(
            rates,
            steps=self.steps,
            of_core=of_node[self.node],
            pair_Bps=drawn,
            residual=residual,
            transfer_flows=self.transfers,
            columns=self.columns,
            iterations=iteration,
        )

    def _solve(self, loads: Loads) -> Rates:
        times = self._core_times(loads)
        resource, counts, cap = self._resource, self._counts, self.cap
        value = np.concatenate([self._fixed, *times, self._line_s])[self._order]
        capacity = self.columns.capacity.copy()
        capacity[self.columns.links] *= np.maximum(1.0 - loads.control, DATA_PART_MIN)
        capacity[self.columns.control] *= self._control_part
        capacity[self.columns.clients] = self.demand.asked_per_s
        # The worker that has most to do of a flow sets its weight.
        heaviest = np.full(self.flows, 1e-30)
        np.maximum.at(heaviest, self.demand.flow_of[self.node], times[0])
        weight = 1.0 / heaviest
        if self.transfers is not None:
            t = self.transfers
            capacity = np.concatenate([capacity, t.pair_capacity])
            resource, value = (
                np.concatenate([resource, t.resource]),
                np.concatenate([value, t.value]),
            )
            counts, weight = np.concatenate([counts, t.counts]), np.concatenate([weight, t.weight])
            cap = np.concatenate([cap, np.full(t.count, np.inf)])
        row_ptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        rate, binding, use = solve_max_min(capacity, row_ptr, resource, value, cap, weight)
        return self._rates(rate[: self.flows], rate[self.flows :], binding[: self.flows], use)

    def _rates(self, flows: Floats, transfers: Floats, binding: Ints, use: Floats) -> Rates:
        columns, capacity = self.columns, self.columns.capacity
        use = use[: columns.count].copy()
        link_Bps = use[columns.links] + use[columns.control]
        control = use[columns.control] / capacity[columns.control]
        use[columns.links] = link_Bps
        share = np.minimum(use / capacity, 1.0)
        share[columns.control] = np.minimum(control / self._control_part, 1.0)
        loads = Loads(share[columns.memory], share[columns.links], control)
        memory_Bps = flows @ self.traffic
        if self.transfers is not None:
            memory_Bps = memory_Bps + self.transfers.memory_Bps(transfers)
        return Rates(flows, transfers, share, binding, loads, memory_Bps, link_Bps)


def spare_time_shares(own_s: Floats, issue_s: Floats) -> Floats:
    """(C,) shares of the work that any core can do, for all cores to finish as early as possible.

    ``own_s`` (C,): time each core spends on its own part of a unit, ``issue_s`` (C,): on the whole
    of the shared part. Cores up to a common level of time fill up: water-filling.
    """
    # Only differences in time count, and only in proportion to the shared part.
    cost_s = np.maximum(issue_s, 1e-30)
    head = (own_s - own_s.min()) / cost_s
    order = np.argsort(own_s, kind="stable")
    rate, weighted = 1.0 / cost_s[order], head[order]
    # With the first k cores taking part, the level is (1 + sum own/cost) / (sum 1/cost).
    level = (1.0 + np.cumsum(weighted)) / np.cumsum(rate)
    # It falls as long as the next core is below it, and rises from there on.
    share = np.maximum(level.min() / cost_s - head, 0.0)
    return np.asarray(share / share.sum())
