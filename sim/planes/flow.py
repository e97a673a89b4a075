"""The flow plane: rates that are constant between events, from max-min fair sharing.

Time advances in pieces. At the start of each the rates of all flows are found (``rates.py``); a
piece ends when a transfer is done, when the control plane acts, or when a running transfer has
shifted enough load for the rates to be found anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ...inputs import InputError
from ...workloads.workload import PhaseState
from ..control.policy import ObjectObservation, Observation, Rebalance
from ..costs import CostModel, Scales
from ..demands import Demand, TransferDemand
from ..eris.demands import ErisDemands
from ..eris.partitions import ColumnPartitions, IndexPartitions, Transfers
from ..eris.workers import pin_workers
from ..record import ControlEvent
from ..scenario import Scenario
from ..sums import group_sums
from .flow_log import FlowLog
from .plane import Command, Outcome, StartPhase
from .rates import ISSUE, TOLERANCE, Loads, Rates, RateSolver
from .why import explain

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Transfers of one balancing cycle end at as many times as there are of them. Ends that lie closer
# together than this part of the cycle, or of the balancing period, share a piece of time.
CYCLE_PART, PERIOD_PART = 1 / 12, 1 / 10

# Rates between control events start from those before: this is near enough for a transient.
TRANSIENT_TOLERANCE = 1e-3

# Gains are told to a tenth of a per cent.
WHAT_IF_TOLERANCE = 5e-5


class FlowPlane:
    """Plays a scenario of ERIS as flows; see ``plane.Plane`` for what its methods promise."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.machine, self.workload, self.system = (
            scenario.machine, scenario.workload, scenario.system
        )  # fmt: skip
        self.workers = pin_workers(self.machine, self.system.aeu_nodes(self.machine))
        self.threads = np.bincount(self.workers.core).astype(np.float64)
        self._wires: dict[object, Floats] = {}
        self.demands, self.solver = self._model(Scales())
        self.costs = self.demands.costs
        self.partitions = {
            name: self._initial(name) for name in self.workload.objects
        }  # of shared data, too: then nobody asks for them
        self._check_memory()
        self.phase: PhaseState = self.workload.at(0.0)
        self._time_s = 0.0
        self.rates: Rates | None = None
        self._grain_s = 0.0
        self._last_loads: Loads | None = None
        self._cycles: dict[str, tuple[float, float]] = {}
        self._accesses: dict[str, Floats] = {}
        self.log = FlowLog(self.machine, self.solver.resources, self.workers, self.costs)
        self._reset_monitor()

    @property
    def time_s(self) -> float:
        """The time reached."""
        return self._time_s

    @property
    def partitioned(self) -> bool:
        """Whether workers own partitions, which can be balanced."""
        return self.system.placement == "partitioned"

    # -- time -------------------------------------------------------------------------------------

    def advance(self, until_s: float) -> None:
        """See Plane."""
        while self._time_s < until_s:
            rates = self._current()
            left = until_s - self._time_s
            step = min(left, self._next_end(rates))
            if left - step < 1e-9 * max(until_s, 1.0):
                step = left
            self._play(rates, step)
            self._time_s = until_s if step == left else self._time_s + step

    def _next_end(self, rates: Rates) -> float:
        """Time until transfers have ended, or moved enough to look at the rates again."""
        if not len(rates.transfers):
            return float("inf")
        left = np.concatenate([t.volume[on] - t.moved[on] for _, t, on in self._under_way()])
        ends = left / np.maximum(rates.transfers, 1e-30)
        if not self._grain_s:
            self._grain_s = max(
                float(ends.max()) * CYCLE_PART, self.scenario.period_s * PERIOD_PART
            )
        return max(float(ends.min()), min(self._grain_s, float(ends.max())))

    def _play(self, rates: Rates, step: float) -> None:
        work = float(rates.flows.sum())
        self.log.add(self._time_s, step, self._per_operation(rates), rates, self._imbalance())
        for name, per_unit in self._accesses.items():
            self._seen[name] += per_unit * work * step
        self._own_s += self._execution(rates) * work * step
        self._watched_s += step
        at = 0
        finished = []
        for name, transfers, on in self._under_way():
            amount = np.zeros(len(transfers.volume))
            amount[on] = rates.transfers[at : at + len(on)] * step
            at += len(on)
            transfers.advance(amount)
            self.rates = None
            if not self.partitions[name].balancing:
                finished.append(name)
        for name in finished:
            self._end_cycle(name, self._time_s + step)

    def _end_cycle(self, name: str, time_s: float) -> None:
        began_s, copied = self._cycles.pop(name)
        self._event(
            time_s,
            "done",
            f"balancing of {name} done after {time_s - began_s:.3g} s",
            object=name,
            duration_s=time_s - began_s,
            copied_bytes=copied,
        )
        self._reset_monitor()  # partitions are others now

    # -- rates ------------------------------------------------------------------------------------

    def _current(self) -> Rates:
        if self.rates is None:
            flow = self._demand(self.demands)
            copies = self._transfers()
            tolerance = TOLERANCE if copies is None else TRANSIENT_TOLERANCE
            self.rates = self.solver.solve(flow, copies, self._last_loads, tolerance)
            self._last_loads = self.rates.loads
            self._accesses = (
                self.demands.accesses(self.phase, self._phase_time(), self.partitions)
                if self.partitioned
                else {}
            )
        return self.rates

    def _phase_time(self) -> float:
        return self._time_s - self.phase.start_s

    def _demand(self, demands: ErisDemands) -> Demand:
        """The flows of the workload in its present phase, on present partitions."""
        if self.partitioned:
            flow = demands.partitioned(self.phase, self._phase_time(), self.partitions)
        else:
            flow = demands.shared(self.phase, self._phase_time())
        clients = self.workload.description.clients
        if clients.kind == "open":
            assert clients.arrival_rate is not None
            asked = clients.arrival_rate.value
        elif clients.think_time.value > 0:
            # Each worker is a client with a batch of commands under way, then thinks.
            asked = self.workers.count * self.system.batch / clients.think_time.value
        else:
            return flow
        return replace(flow, cap=np.full(flow.flows, asked / flow.flows))

    def _transfers(self) -> TransferDemand | None:
        """The copies under way."""
        parts = [
            self.demands.transfer(name, t.source[on], t.target[on])
            for name, t, on in self._under_way()
        ]
        return TransferDemand.joined(parts) if parts else None

    def _under_way(self) -> Iterator[tuple[str, Transfers, Ints]]:
        """Objects with running transfers: name, all its transfers, positions of the running."""
        for name, part in self.partitions.items():
            if part.balancing:
                yield name, part.transfers, np.flatnonzero(part.transfers.under_way)

    def _model(self, scales: Scales) -> tuple[ErisDemands, RateSolver]:
        costs = CostModel(self.machine, scales)
        demands = ErisDemands(costs, self.workers, self.system, self.workload.objects)
        return demands, RateSolver(costs, self.workers.core_node, self.threads, self._wires)

    def steady(self) -> Rates:
        """Rates on present partitions, transfers left out."""
        rates = self.solver.solve(self._demand(self.demands), None, self._last_loads)
        self._last_loads = rates.loads
        return rates

    def throughput(self, scales: Scales) -> float:
        """Units of work per second on present partitions, transfers left out, under ``scales``."""
        demands, solver = self._model(scales)
        rates = solver.solve(self._demand(demands), None, self._last_loads, WHAT_IF_TOLERANCE)
        return float(rates.flows.sum())

    # -- control ----------------------------------------------------------------------------------

    def observe(self) -> Observation:
        """See Plane."""
        objects = {}
        if self.partitioned:
            self._current()
            for name, part in self.partitions.items():
                objects[name] = self._observed(name, part)
        period = self._watched_s
        self._reset_monitor()
        return Observation(self._time_s, period, objects)

    def _observed(self, name: str, part: IndexPartitions | ColumnPartitions) -> ObjectObservation:
        seen = self._seen[name]
        # Workers of a core cannot be told apart by their time: it is shared by commands.
        all_seen = sum(self._seen.values(), start=np.zeros(self.workers.count))
        per_core = group_sums(self.workers.core, all_seen, self.workers.cores)
        each = np.divide(self._own_s, per_core, out=np.zeros_like(per_core), where=per_core > 0)[
            self.workers.core
        ]
        return ObjectObservation(
            kind="index" if isinstance(part, IndexPartitions) else "column",
            bounds=part.bounds if isinstance(part, IndexPartitions) else None,
            sizes=part.sizes(),
            accesses_per_s=seen / self._watched_s if self._watched_s else np.zeros_like(seen),
            execution_s=np.where(seen > 0, each, 0.0),
            nodes=self.workers.node,
            balancing=part.balancing,
        )

    def _reset_monitor(self) -> None:
        self._seen = {name: np.zeros(self.workers.count) for name in self.partitions}
        self._own_s = np.zeros(self.workers.cores)
        self._watched_s = 0.0

    def _execution(self, rates: Rates) -> Floats:
        """(C,) time per unit of work that workers spend on what they own."""
        total = max(float(rates.flows.sum()), 1e-300)
        own = [takes for name, takes in rates.steps.items() if name != ISSUE]
        return np.asarray(rates.flows @ np.sum(own, axis=0) / total)

    def apply(self, commands: Sequence[Command]) -> None:
        """See Plane."""
        for command in commands:
            if isinstance(command, StartPhase):
                self.phase = command.phase
            elif self.partitioned:
                self._rebalance(command)
            self.rates = None

    def _rebalance(self, command: Rebalance) -> None:
        name = command.object
        part = self.partitions[name]
        if part.balancing:
            raise InputError(f"{name} is still being balanced", token="Rebalance")
        full = self._too_full(name, command)
        if full is not None:
            self._event(self._time_s, "refused", f"{name}: {full}", object=name)
            return
        if isinstance(part, IndexPartitions):
            assert command.bounds is not None
            transfers = part.rebalance(command.bounds)
        else:
            assert command.sizes is not None
            transfers = part.rebalance(command.sizes, self.workers.node)
        node = self.workers.node
        linked = node[transfers.source] == node[transfers.target]
        # Linking moves no data: microseconds, against seconds of copying.
        transfers.advance(np.where(linked, transfers.volume, 0.0))
        copied = float(transfers.volume[~linked].sum())
        moved_bytes = copied * self.demands.transfer_bytes(name)
        self._grain_s = 0.0
        self._cycles[name] = (self._time_s, moved_bytes)
        self._event(
            self._time_s,
            "transfer",
            f"{name}: {int(linked.sum())} links, {int((~linked).sum())} copies",
            object=name,
            links=int(linked.sum()),
            copies=int((~linked).sum()),
            copied_bytes=moved_bytes,
        )
        if not part.balancing:
            self._end_cycle(name, self._time_s)

    # -- data in memory ---------------------------------------------------------------------------

    def _initial(self, name: str) -> IndexPartitions | ColumnPartitions:
        stored, workers = self.workload.objects[name], self.workers.count
        if stored.kind == "index":
            assert stored.keys is not None
            steps = np.arange(workers + 1, dtype=object) * stored.keys // workers
            return IndexPartitions(steps.astype(np.int64))
        assert stored.entries is not None
        edges = np.arange(workers + 1, dtype=object) * stored.entries // workers
        return ColumnPartitions(np.diff(edges.astype(np.float64)))

    def _check_memory(self) -> None:
        """Raises InputError where the data do not fit into the memory that they are placed in."""
        need = np.zeros(len(self.machine.nodes))
        for name, part in self.partitions.items():
            stored = self.demands.stored_bytes(name)
            if self.partitioned:
                np.add.at(need, self.demands.home[self.workers.node], part.sizes() * stored)
            else:
                need += part.sizes().sum() * stored * self.demands.shared_homes
        full = self._full_node(need)
        if full is not None:
            raise InputError(
                f"the data do not fit: {full}",
                token=self.machine.name,
                expected="a smaller workload, more nodes or another placement",
            )

    def _too_full(self, name: str, command: Rebalance) -> str | None:
        need = np.zeros(len(self.machine.nodes))
        for other, part in self.partitions.items():
            sizes = part.sizes()
            if other == name and command.bounds is not None:
                sizes = np.diff(command.bounds).astype(np.float64)
            elif other == name and command.sizes is not None:
                sizes = command.sizes
            per = self.demands.stored_bytes(other)
            np.add.at(need, self.demands.home[self.workers.node], sizes * per)
        return self._full_node(need)

    def _full_node(self, need: Floats) -> str | None:
        has = np.array([node.memory_bytes for node in self.machine.nodes])
        over = np.flatnonzero(need > has)  # false where the size is unknown
        if not len(over):
            return None
        k = int(over[0])
        return (
            f"node {self.machine.nodes[k].id} would hold {need[k] / 1e9:.3g} GB "
            f"of {has[k] / 1e9:.3g} GB"
        )

    # -- results ----------------------------------------------------------------------------------

    def _per_operation(self, rates: Rates) -> dict[str, float]:
        units = float(rates.flows.sum())
        shares = {name: o.share for name, o in self.phase.operations.items()}
        return {name: units * share for name, share in shares.items()}

    def _imbalance(self) -> dict[str, float]:
        """Standard deviation over mean of what the monitor looks at, by object."""
        found = {}
        for name, part in self.partitions.items() if self.partitioned else ():
            is_index = isinstance(part, IndexPartitions)
            load = self._accesses.get(name) if is_index else part.sizes()
            if load is not None and load.mean() > 0:
                found[name] = float(load.std() / load.mean())
        return found

    def _event(self, time_s: float, kind: str, text: str, **details: object) -> None:
        self.log.events.append(ControlEvent(time_s, kind, text, details))

    def outcome(self) -> Outcome:
        """See Plane. ``why`` holds at the end of the run."""
        return self.log.outcome(
            why=explain(self),
            model=self.demands.facts,
            warnings=tuple(dict.fromkeys(self.costs.warnings)),
        )
