"""The state of ERIS: partitions and owners, the monitor, transfers in progress."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal

import numpy as np

from ....inputs import InputError
from ....workloads.workload import PhaseState
from ...kernel.arrays import Floats, Ints
from ...kernel.sums import group_sums
from ...machine.costs import Scales, costs_once
from ...machine.demands import Demand, TransferDemand
from ...machine.threads import place_workers
from ...planes.flow_system import Piece
from ...planes.outcome import ControlEvent
from ...planes.plane import Experiment
from .commands import BalancingObservation, ObjectObservation, Rebalance, SetPace
from .costs import ErisCosts
from .faults import STOPPED
from .partitioned import PartitionedDemands
from .partitions import ColumnPartitions, IndexPartitions, Transfers
from .parts import RECEIVE, SCAN, WALK, ErisDemands
from .shared import SharedDemands
from .spec import ErisSystem

# Steps that a worker spends on what it owns, by kind of object.
OWN_STEPS: dict[Literal["index", "column"], tuple[str, ...]] = {
    "index": (WALK, RECEIVE),
    "column": (SCAN,),
}


class Eris:
    """The state of a scenario's ERIS; a plane says what was done, and how long it took.

    ``events``: transfers begun, done and refused.
    """

    def __init__(self, scenario: Experiment) -> None:
        assert isinstance(scenario.system, ErisSystem)
        self.machine, self.workload = scenario.machine, scenario.workload
        self.system: ErisSystem = scenario.system
        self.workers = place_workers(self.machine, self.system.aeu_nodes(self.machine))
        self.phase: PhaseState = self.workload.at(0.0)
        self.partitions = {name: self._initial(name) for name in self.workload.objects}
        self.events: list[ControlEvent] = []
        self._pace = np.ones(self.workers.count)  # (A,) times that each takes as long
        self._accesses: dict[str, Floats] = {}
        self._cycles: dict[str, tuple[float, float]] = {}
        self._refused: dict[str, str] = {}
        self.refused_count = 0
        self._reset_monitor()

    @property
    def partitioned(self) -> bool:
        """Whether workers own partitions, which can be balanced."""
        return self.system.placement == "partitioned"

    def _initial(self, name: str) -> IndexPartitions | ColumnPartitions:
        stored, workers = self.workload.objects[name], self.workers.count
        amount = stored.keys if stored.kind == "index" else stored.entries
        assert amount is not None
        edges = (np.arange(workers + 1, dtype=object) * amount // workers).astype(np.int64)
        if stored.kind == "index":
            return IndexPartitions(edges)
        return ColumnPartitions(np.diff(edges).astype(np.float64))

    def demands(self, scales: Scales) -> ErisDemands:
        return self.demands_of(costs_once(ErisCosts, self.machine, scales))

    def demands_of(self, costs: ErisCosts) -> ErisDemands:
        """What makes demands of this ERIS on a machine of these costs.

        Raises InputError where the data do not fit into the memory that they are placed in.
        """
        if not any(node.memory_bytes != 0 for node in self.machine.nodes):
            raise InputError(
                f"no node of machine '{self.machine.name}' has memory for the data",
                place=("workload",),
            )
        kind = PartitionedDemands if self.partitioned else SharedDemands
        found = kind(costs, self.workers, self.system, self.workload.objects)
        full = self._full_node(
            found, {name: part.sizes() for name, part in self.partitions.items()}
        )
        if full is not None:
            raise InputError(
                f"the data do not fit into machine '{self.machine.name}': {full}",
                expected="a smaller workload, more nodes or another placement",
                place=("workload",),
            )
        return found

    def demand(self, demands: ErisDemands, time_s: float) -> Demand:
        """The flows of the workload in its present phase, on present partitions."""
        found = demands.demand(self.phase, time_s - self.phase.start_s, self.partitions)
        return found if (self._pace == 1.0).all() else self._paced(found, demands, time_s)

    def _paced(self, demand: Demand, demands: ErisDemands, time_s: float) -> Demand:
        """The same where some workers are slow, or have stopped. A key waits for its worker; what
        all share is done by those of a flow that have time.
        """
        workers, speed = self.workers, 1.0 / self._pace
        asking = float(speed.astype(bool).mean())
        if self.partitioned:
            owned = self.accesses(demands, time_s).values()
            if any(each[speed == 0.0].any() for each in owned):
                asking = 0.0
            left = np.ones(workers.cores)
            np.minimum.at(left, workers.core, speed)
        else:
            flow = demand.flow_of[workers.node]
            left = group_sums(flow, speed, demand.flows) / np.bincount(flow)
            left = left[demand.flow_of[workers.core_node]]
        return replace(demand, asking=asking, pace=1.0 / np.maximum(left, 1.0 / STOPPED))

    def transfers(self, demands: ErisDemands) -> TransferDemand | None:
        """The copies under way."""
        if not isinstance(demands, PartitionedDemands):
            return None
        parts = [
            demands.transfer(name, t.source[on], t.target[on]) for name, t, on in self._under_way()
        ]
        return TransferDemand.joined(parts) if parts else None

    def left(self) -> Floats:
        """(T,) keys or entries that the copies under way have still to move."""
        left = [t.volume[on] - t.moved[on] for _, t, on in self._under_way()]
        return np.concatenate(left) if left else np.zeros(0)

    def moved(self, amounts: Floats, time_s: float) -> None:
        """``amounts`` (T,) more were moved by the copies under way, by ``time_s``."""
        at, running = 0, list(self._under_way())
        for name, transfers, on in running:
            more = np.zeros(len(transfers.volume))
            more[on] = amounts[at : at + len(on)]
            at += len(on)
            transfers.advance(more)
            if not self.partitions[name].balancing:
                self._end_cycle(name, time_s)

    def _under_way(self) -> Iterator[tuple[str, Transfers, Ints]]:
        """Objects with running transfers: name, all its transfers, positions of the running."""
        for name, part in self.partitions.items():
            if part.balancing:
                yield name, part.transfers, np.flatnonzero(part.transfers.under_way)

    def settled(self, demands: ErisDemands, time_s: float) -> None:
        self._accesses = self.accesses(demands, time_s)

    def accesses(self, demands: ErisDemands, time_s: float) -> dict[str, Floats]:
        """(A,) commands per unit of work that each worker executes, by object."""
        if not isinstance(demands, PartitionedDemands):
            return {}
        return demands.accesses(self.phase, time_s - self.phase.start_s, self.partitions)

    def watch(
        self, commands: Mapping[str, Floats], steps_s: Mapping[str, Floats], length_s: float
    ) -> None:
        """In ``length_s`` workers executed ``commands`` (A,), by object; the workers of each core
        spent ``steps_s`` (C,) on the steps of their loop.
        """
        for name, executed in commands.items():
            self._seen[name] += executed
        for kind, steps in OWN_STEPS.items():
            for step in steps:
                self._own_s[kind] += steps_s.get(step, 0.0)
        self._watched_s += length_s

    def played(self, piece: Piece) -> None:
        commands = {
            name: each * piece.units_per_s * piece.length_s for name, each in self._accesses.items()
        }
        self.watch(commands, piece.steps_s, piece.length_s)

    def observe(self, family: str, time_s: float) -> BalancingObservation:
        """What the monitor saw since the last observation, or since partitions last changed."""
        objects = {}
        if self.partitioned:
            objects = {name: self._observed(name, part) for name, part in self.partitions.items()}
        period_s = self._watched_s
        self._reset_monitor()
        return BalancingObservation(time_s, period_s, objects)

    def _observed(self, name: str, part: IndexPartitions | ColumnPartitions) -> ObjectObservation:
        seen, kind = self._seen[name], _kind(part)
        # The time of a core's workers is shared by all their commands on objects of a kind.
        same_kind = (
            self._seen[other] for other, of in self.partitions.items() if _kind(of) == kind
        )
        all_seen = sum(same_kind, start=np.zeros(self.workers.count))
        per_core = group_sums(self.workers.core, all_seen, self.workers.cores)
        own_s = self._own_s[kind]
        each = np.divide(own_s, per_core, out=np.zeros_like(per_core), where=per_core > 0)
        return ObjectObservation(
            kind=kind,
            bounds=part.bounds.copy() if isinstance(part, IndexPartitions) else None,
            sizes=part.sizes(),
            accesses_per_s=seen / self._watched_s if self._watched_s else np.zeros_like(seen),
            execution_s=np.where(seen > 0, each[self.workers.core], 0.0),
            nodes=self.workers.node.copy(),
            balancing=part.balancing,
        )

    def _reset_monitor(self) -> None:
        self._seen = {name: np.zeros(self.workers.count) for name in self.partitions}
        self._own_s = {kind: np.zeros(self.workers.cores) for kind in OWN_STEPS}
        self._watched_s = 0.0

    def columns(self) -> dict[str, float]:
        """The imbalance of each object: standard deviation over mean of what the monitor looks at,
        commands of an index, the size of a column's partitions.
        """
        found = {}
        for name, part in self.partitions.items() if self.partitioned else ():
            index = isinstance(part, IndexPartitions)
            load = self._accesses.get(name) if index else part.sizes()
            if load is not None and load.mean() > 0:
                found[f"imbalance/{name}"] = float(load.std() / load.mean())
        return found

    def apply(self, command: Rebalance | SetPace, demands: ErisDemands, time_s: float) -> None:
        """Starts a balancing cycle, or what a fault does to workers. Data that all share cannot be
        balanced.
        """
        if isinstance(command, SetPace):
            self._pace[list(command.workers)] = command.factor
        elif self.partitioned:
            self._rebalance(command, demands, time_s)

    def _rebalance(self, command: Rebalance, demands: ErisDemands, time_s: float) -> None:
        """Links are done at once, copies as the plane moves them. A command that would overfill a
        node's memory is refused, with an event.
        """
        name = command.object
        part = self.partitions[name]
        full = self._too_full(command, demands)
        if full is not None:
            if self._refused.get(name) != full:  # a policy may ask again each period
                self._event(time_s, "refused", f"{name}: {full}", object=name)
            self._refused[name] = full
            self.refused_count += 1
            return
        self._refused.pop(name, None)
        if isinstance(part, IndexPartitions):
            assert command.bounds is not None
            transfers = part.rebalance(command.bounds)
        else:
            assert command.sizes is not None
            # A policy's sizes add up within rounding, which must not pile up.
            sizes = command.sizes * (part.sizes().sum() / command.sizes.sum())
            transfers = part.rebalance(sizes, self.workers.node)
        if not len(transfers.volume):
            return
        node = self.workers.node
        linked = demands.home[node[transfers.source]] == demands.home[node[transfers.target]]
        # Linking moves no data: microseconds, against milliseconds to seconds of copying.
        transfers.advance(np.where(linked, transfers.volume, 0.0))
        assert isinstance(demands, PartitionedDemands)
        moved_bytes = float(transfers.volume[~linked].sum()) * demands.transfer_bytes(name)
        self._cycles[name] = (time_s, moved_bytes)
        self._event(
            time_s,
            "transfer",
            f"{name}: {int(linked.sum())} links, {int((~linked).sum())} copies",
            object=name,
            links=int(linked.sum()),
            copies=int((~linked).sum()),
            copied_bytes=moved_bytes,
        )
        if not part.balancing:
            self._end_cycle(name, time_s)

    def _end_cycle(self, name: str, time_s: float) -> None:
        began_s, moved_bytes = self._cycles.pop(name)
        lasted_s = time_s - began_s
        self._event(
            time_s,
            "done",
            f"balancing of {name} done after {lasted_s:.3g} s",
            object=name,
            duration_s=lasted_s,
            copied_bytes=moved_bytes,
        )
        self._reset_monitor()  # partitions are others now

    def _too_full(self, command: Rebalance, demands: ErisDemands) -> str | None:
        sizes = {name: part.sizes() for name, part in self.partitions.items()}
        if command.bounds is not None:
            sizes[command.object] = np.diff(command.bounds).astype(np.float64)
        elif command.sizes is not None:
            sizes[command.object] = command.sizes
        return self._full_node(demands, sizes)

    def _full_node(self, demands: ErisDemands, sizes: dict[str, Floats]) -> str | None:
        nodes = self.machine.nodes
        need = sum(
            (demands.bytes_on_nodes(name, part) for name, part in sizes.items()),
            start=np.zeros(len(nodes)),
        )
        has = np.array([node.memory_bytes for node in nodes])
        over = np.flatnonzero(need > has)  # false where the size is unknown
        if not len(over):
            return None
        k = int(over[0])
        return f"node {nodes[k].id} would hold {need[k] / 1e9:.3g} GB of {has[k] / 1e9:.3g} GB"

    def warnings(self) -> list[str]:
        """What a user should know of this run."""
        times = self.refused_count
        if not times:
            return []
        what = "balancing command was" if times == 1 else "balancing commands were"
        return [f"{times} {what} refused, as a memory would have been overfilled"]

    def check_conservation(self) -> None:
        """Every key and entry has one owner; raises AssertionError where that is not so."""
        for name, part in self.partitions.items():
            stored, sizes = self.workload.objects[name], part.sizes()
            amount = float(stored.keys or stored.entries or 0)
            assert (sizes >= -1e-6 * amount).all(), f"{name}: a partition of negative size"
            assert abs(sizes.sum() - amount) <= 1e-6 * amount, f"{name}: {sizes.sum()} of {amount}"

    def _event(self, time_s: float, kind: str, text: str, **details: object) -> None:
        self.events.append(ControlEvent(time_s, kind, text, details))


def _kind(part: IndexPartitions | ColumnPartitions) -> Literal["index", "column"]:
    return "index" if isinstance(part, IndexPartitions) else "column"
