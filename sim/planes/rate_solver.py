"""Finds rates: max-min fair shares in balance with the waits that they cause.

Every flow asks for the time of workers, for slots of outstanding misses, for memory controllers,
links and pairs of nodes. How long a miss holds its slot depends on the load of controllers and
links, and these on the rates: a fixed point, found by damped iteration.
"""

from dataclasses import replace

import numpy as np

from .._kernel import solve_max_min
from ..kernel.arrays import Floats, Ints
from ..kernel.sums import group_sums
from ..machine.costs import LINE_BYTES, CostModel
from ..machine.demands import Demand, Reads, TransferDemand
from .rates import DATA_PART_MIN, ExchangeStep, Loads, Rates, overlapped
from .transfer_flows import SOURCE_TOLERANCE, Latency, Moved, Resources, TransferFlows, Wires

TOLERANCE = 1e-6
ITERATIONS_MAX = 80


class RateSolver:
    """Finds the Rates of flows on one machine; for ``wires`` see ``Wires``."""

    def __init__(
        self,
        costs: CostModel,
        core_node: Ints,
        threads: Floats,
        wires: dict[object, Floats] | None = None,
    ) -> None:
        self.costs, self.core_node, self.threads = costs, core_node, threads
        self.resources = Resources(costs, core_node, threads)
        self.wires = Wires(costs, self.resources, wires)
        self.die_s = costs.die_s(np.bincount(core_node, minlength=len(costs.cores)))
        self.idle_s, self.idle_handed_s = costs.idle_s, costs.hand_overs.line_s

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
        self.exchange: ExchangeStep | None = None
        if demand.exchange is not None:
            self.exchange = ExchangeStep(demand.exchange, self.costs, self.node, solver.threads)
        # No more misses overlap than a batch has independent ones.
        in_batch = demand.batch * solver.threads
        misses = self.costs.random_misses_of(self.node, demand.miss_instructions)
        self.random_misses = np.minimum(misses[self.node], in_batch)
        self.made = np.zeros(0)  # (n,) shares of makers of messages in the link traffic in use
        # Lines (n, n) that i draws from j: from memory; and with what cores hand over.
        self.read_lines = self._lines(self._reads())
        self.memory_reads = self._lines(self._reads(cached=False))
        self.all_lines = self.read_lines if demand.sent is None else self.read_lines + demand.sent.T
        self.written_lines = self._lines(self._written())
        # Flows are taken to be about as fast as each other here.
        self.directory_writes = self.costs.directory_writes(self.memory_reads)
        self.traffic, self.memory = self._of_memory(self.memory_reads, self.written_lines)
        self.read_wires = self._read_wires()
        self.data, self.control = self.read_wires  # (F, 2L) each
        self.cap = self._capped_by_limits()
        self._flow_of_core = demand.flow_of[self.node]
        self._present = np.zeros(0, dtype=bool)
        # Of hand-overs, what is sent either way at once, and of that, fetched before.
        self.together, self.fetched = 1.0, 1.0
        self.held_up: Floats = np.zeros(len(self.node))  # (C,) times of workers who wait for links
        self._place()
        self.transfers: TransferFlows | None = None
        remote = self.read_lines[~np.eye(self.n, dtype=bool)].any()
        self._lines_cross = bool(remote) or demand.contended > 0 or transfers is not None
        if transfers is not None:
            self.transfers = TransferFlows(solver.wires, self.node, solver.threads, transfers)

    def _by_flow(self, rows: Floats) -> Floats:
        """(F, …) sums of ``rows`` (n, …) over the nodes of each flow."""
        sums = np.zeros((self.flows, *rows.shape[1:]))
        # One by one: np.add.at goes through all numbers of rows singly.
        for flow, row in zip(self.demand.flow_of.tolist(), rows, strict=True):
            sums[flow] += row
        return sums

    def _of_memory(self, read: Floats, written: Floats) -> tuple[Floats, Floats]:
        """(F, n) bytes of controllers, and in how long they move them: in bytes read in that time,
        of lines (n, n) between nodes and homes.
        """
        all_written = written
        if self.directory_writes.any():
            all_written = written + self.memory_reads * self.directory_writes
        times = self.costs.line_times(read, all_written)
        return self._by_flow(read + written) * LINE_BYTES, self._by_flow(times) * LINE_BYTES

    def _reads(self, *, cached: bool | None = None) -> list[tuple[Floats, Floats]]:
        """Of the reads of all steps, all or those that are (not) ``cached``: (n,) weight on each
        node, and their lines.
        """
        every = (reads for step in self.demand.steps for reads in step.reads)
        return [self._on_nodes(reads) for reads in every if cached in (None, reads.cached)]

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
        written, taken = self._written(), self._reads(cached=True)
        if self.flows == 1:
            wire = self.costs.wire_Bps(self.memory_reads)
            if taken:
                wire = wire + self.costs.taken_wire_rows(self._lines(taken)).sum(axis=1)
            lines = self._lines(written)
            if written and lines[~np.eye(self.n, dtype=bool)].any():
                wire = wire + self.costs.written_wire_rows(lines).sum(axis=1)
            if self.demand.sent is not None:
                # As if read by who gets them.
                wire = wire + self.costs.wire_Bps(self.demand.sent.T, snooped=False)
            return wire[:, None, :]
        # Many flows read with the same pattern: its rows are worked out once.
        wires = np.zeros((2, self.flows, len(self.costs.link_Bps)))
        moved: dict[Moved, list[tuple[Floats, Floats]]] = {
            "read": self._reads(cached=False),
            "taken": taken,
            "written": written,
        }
        for how, parts in moved.items():
            for weight, lines in parts:
                rows = self.solver.wires.rows(lines, how)
                for total, of_node in zip(wires, rows, strict=True):
                    total += self._by_flow(weight[:, None] * of_node)
        return wires

    def _capped_by_limits(self) -> Floats:
        """(F,) caps by dies, initiators and pairs. Only one flow uses those of a node, but for
        transfers, whose part is small.
        """
        die_s = self.solver.die_s
        if not self.costs.limits.limited and not die_s.any():
            return np.full(self.flows, np.inf)
        taken_s = self.costs.limits.taken_s(self.all_lines)
        with np.errstate(divide="ignore"):
            allowed = 1.0 / np.maximum(taken_s, self.all_lines.sum(axis=1) * die_s)
        cap = np.full(self.flows, np.inf)
        np.minimum.at(cap, self.demand.flow_of, allowed)
        return cap

    def _place(self) -> None:
        """Where coefficients stand: flows in rows, first those that waits do not change."""
        parts = self.memory, self.data, self.control
        every_fixed = np.concatenate([part.ravel() for part in parts])
        present = every_fixed != 0
        self._fixed = np.concatenate([every_fixed[present], np.ones(self.flows)])
        self._control_part = np.where(self.data.any(axis=0), 1.0 - DATA_PART_MIN, 1.0)
        if np.array_equal(present, self._present):
            return
        self._present = present
        rows, (memory, link, control) = zip(*map(np.nonzero, parts), strict=True)
        columns, flow_of_core = self.columns, self._flow_of_core
        cores, every = np.arange(len(self.node)), np.arange(self.flows)
        row = np.concatenate([*rows, every, *[flow_of_core] * 3, every])
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
        self._order = np.argsort(row, kind="stable")
        self._resource = resource[self._order].astype(np.int64)
        self._counts = np.bincount(row, minlength=self.flows)
        self._row_ptr = _row_ptr(self._counts)

    def _core_times(self, loads: Loads) -> tuple[Floats, Floats, Floats]:
        """(C,) times per unit of workers, of executing and of miss slots."""
        latency = self._latency(loads)
        self._line_s = np.full(self.flows, self.demand.serial_s)
        if self.demand.contended:
            # From any node in use the line may come, and goes on from there.
            nodes = np.unique(self.node)
            evenly = np.zeros(self.n)
            evenly[nodes] = 1.0 / len(nodes)
            passed_s = self.demand.contended * latency.handed_s(evenly)[nodes]
            passed_s += self.demand.serial_s
            np.maximum.at(self._line_s, self.demand.flow_of[nodes], passed_s)
        worker_s, core_s, miss_s = np.zeros((3, len(self.node)))
        # Others take a part of each core's time.
        left = self.costs.disturbances.left / self.demand.pace
        for step in self.demand.steps:
            needs_s, held_s = step.core_s / left, step.hit_s / left
            stall: Floats | float = 0.0
            if step.reads and all(reads.stream for reads in step.reads):
                stall = self.costs.stream_stall[self.node]
            for reads in step.reads:
                if reads.stream:
                    slots, line_max_s = self.costs.streaming_misses, self.costs.streamed_s
                    each_s = latency.streamed_s(reads.lines, slots, line_max_s)[self.node]
                else:
                    each_s = latency.read_s(reads.lines)[self.node] / self.random_misses
                    each_s = each_s * step.slot_factor
                held_s = held_s + reads.weight * each_s / left
            takes_s = overlapped(needs_s, held_s, self.solver.threads, stall)
            self.steps[step.name] = takes_s
            core_s, miss_s, worker_s = core_s + needs_s, miss_s + held_s, worker_s + takes_s
        if self.exchange is not None:
            worker_s, core_s, miss_s = self._exchanged((worker_s, core_s, miss_s), left, loads)
        if self.transfers is not None:
            self.transfers.update(latency)
        return worker_s, core_s, miss_s

    def _exchanged(
        self, times: tuple[Floats, Floats, Floats], left: Floats | float, loads: Loads
    ) -> tuple[Floats, ...]:
        """``times`` (C,) of workers, of executing and of miss slots, with those of messages."""
        assert self.exchange is not None
        took = self.exchange.times(
            times[0] * left, loads, self.together, self.fetched, self.demand.pace
        )
        self._exchange_traffic(took.source)
        steps = took.making, took.receiving
        for name, each in zip(self.exchange.exchange.names, steps, strict=True):
            self.steps[name] = each / left
        self.held_up = took.held_up / left
        routed = took.worker_s, took.core_s, took.miss_s
        return tuple(a + b / left for a, b in zip(times, routed, strict=True))

    def _latency(self, loads: Loads) -> Latency:
        """Latencies under load, of what is waited for line by line."""
        costs, solver = self.costs, self.solver
        links = None
        if self._lines_cross and loads.links.any():
            links = costs.machine.routes.route_sums(costs.link_wait_s(loads.links))
        return Latency(
            solver.idle_s, solver.idle_handed_s, costs.memory_wait_s(loads.memory), links
        )

    def _exchange_traffic(self, source: Floats) -> None:
        """Link traffic of messages, made again when their makers ``source`` (n,) have changed."""
        assert self.exchange is not None
        exchange, target = self.exchange.exchange, self.exchange.target
        if len(self.made) and np.abs(source - self.made).max() <= SOURCE_TOLERANCE:
            return
        # The maker fetches the line for ownership, the receiver fetches it back, filled.
        lines = exchange.lines + exchange.answer_lines
        self.made, handed = self.solver.wires.handed_over(source, target, exchange.passed_on)
        sent, back = 1.0 + handed.back, handed.fetched + handed.passed
        self.together = (sent**2 + back**2) / (sent + back)
        self.fetched = handed.fetched
        self.data, self.control = self.read_wires + lines * handed.wire[:, None, :]
        self.all_lines = self.read_lines + lines * handed.moved
        read, written, at_home = self.memory_reads.copy(), self.written_lines.copy(), exchange.home
        read[np.arange(self.n), at_home] += handed.read * lines
        written[np.arange(self.n), at_home] += handed.written * lines
        self.traffic, self.memory = self._of_memory(read, written)
        self.cap = self._capped_by_limits()
        self._place()

    def run(self, start: Loads | None, tolerance: float) -> Rates:
        """Iterates until loads and rates agree."""
        if start is not None and self.exchange is not None:
            # How long bursts wait depends on who makes messages. Without loads nobody waits yet.
            makers = start.makers
            if makers is None:
                makers = group_sums(self.node, self.exchange.shares, self.n)
            self._exchange_traffic(makers)
        links = np.zeros(len(self.costs.link_Bps))
        loads = start or Loads(np.zeros(self.n), links, links)
        rates = self._solve(loads)
        damping, last_gap = np.ones(1), np.zeros(1)
        for _ in range(ITERATIONS_MAX - 1):
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
        of_node = rates.flows[self.demand.flow_of]
        drawn = np.zeros(0)
        if self.costs.limits.limited:
            drawn = of_node[:, None] * self.all_lines * LINE_BYTES
        return replace(
            rates,
            loads=replace(rates.loads, makers=self.made if len(self.made) else None),
            steps=self.steps,
            of_core=of_node[self.node],
            pair_Bps=drawn,
            residual=residual,
            transfer_flows=self.transfers,
            columns=self.columns,
        )

    def _solve(self, loads: Loads) -> Rates:
        times = self._core_times(loads)
        resource, row_ptr, cap = self._resource, self._row_ptr, self.cap
        value = np.concatenate([self._fixed, *times, self._line_s])[self._order]
        capacity = self.columns.capacity.copy()
        capacity[self.columns.links] *= np.maximum(1.0 - loads.control, DATA_PART_MIN)
        capacity[self.columns.control] *= self._control_part
        capacity[self.columns.clients] = self.demand.offered_per_s
        # The worker that has most to do of a flow sets its weight.
        heaviest = np.full(self.flows, 1e-30)
        np.maximum.at(heaviest, self._flow_of_core, times[0])
        weight = 1.0 / heaviest
        if self.transfers is not None:
            t = self.transfers
            capacity = np.concatenate([capacity, t.pair_capacity])
            resource, value = (
                np.concatenate([resource, t.resource]),
                np.concatenate([value, t.value]),
            )
            weight = np.concatenate([weight, t.weight])
            row_ptr = _row_ptr(np.concatenate([self._counts, t.counts]))
            cap = np.concatenate([cap, np.full(t.count, np.inf)])
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


def _row_ptr(counts: Ints) -> Ints:
    """(F + 1,) where the coefficients of each flow begin, of flows with so many each."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
