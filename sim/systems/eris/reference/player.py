"""ERIS's routing in plain SimPy, as a plane plays it."""

import numpy as np

from .....inputs import InputError
from ...._kernel import Stream
from ....kernel.picoseconds import PS_PER_S
from ....kernel.streams import stream_key
from ....machine.disturbances.reference.disturbances import disturbances_of
from ....planes.model_plane import memory_bytes
from ....planes.plane import Experiment
from ..costs import ErisCosts
from ..engine import Eris
from ..event_model import (
    by_key_first,
    kernel_demands,
    machine_of,
    table_of,
    worker_names,
    worker_streams,
)
from ..event_plane import ErisEvents
from ..partitioned import PartitionedDemands
from ..partitions import IndexPartitions
from ..players import Counted, routing_facts, steps_of
from .routing import ErisRoutingReference
from .worker import Counts


class ReferencePlayer:
    """See ``eris.players.Player``. Raises InputError for what the reference does not play."""

    def __init__(
        self, eris: Eris, costs: ErisCosts, scenario: Experiment, replication: int
    ) -> None:
        _check(eris, scenario)
        demands = eris.demands_of(costs)
        assert isinstance(demands, PartitionedDemands)
        self.demands: PartitionedDemands = demands
        order, _ = by_key_first(eris.phase, eris.partitions)
        shares = []
        for operation in eris.phase.operations.values():
            part = eris.partitions[operation.object]
            assert isinstance(part, IndexPartitions)
            assert operation.keys is not None
            shares.append(operation.share * part.shares(operation.keys, 0.0))
        draws = scenario.seed, replication
        names = worker_streams(eris.workers)[: eris.workers.count]  # nothing is forwarded
        self.model = ErisRoutingReference(
            machine_of(demands, scenario.workload.description.clients, scenario.workload.at(0.0)),
            kernel_demands(demands.commands(eris.phase, 0.0, eris.partitions), order),
            table_of(shares, [])[0].tolist(),
            len(order),
            [Stream(*stream_key(*draws, name)) for name in names],
            disturbances_of(costs.disturbances, worker_names(eris.workers), *draws),
        )
        self._since_ps = 0

    def refresh(self) -> None:
        """Nothing changes here."""

    def start_counting(self) -> None:
        self.model.start_counting()
        self._since_ps = self.model.now_ps

    def counted(self) -> Counted:
        model, costs, now = self.model, self.demands.costs, self.model.now_ps
        counts = model.counts
        asleep = [w.asleep_until(now) for w in model.workers]
        held_up = [w.time.held_up(now) for w in model.workers]
        held_ps = np.array([core.held for core in model.cores])
        for w in model.workers:
            held_ps[model.m.core[w.index]] -= w.time.held_left(now)
        memory_ps = np.array([controller.done(now) for controller in model.memory])
        link_ps = np.array(model.links.done(now), dtype=np.int64)
        found = {**vars(Counts), **vars(counts), "forwarded": 0, "in_flight": self._in_flight()}
        return Counted(
            since_ps=self._since_ps,
            done=counts.executed.sum(axis=1),
            executed=counts.executed.copy(),
            core_executed_ps=np.array([core.executed(now) for core in model.cores]),
            busy_ps=now - self._since_ps - np.array(asleep) - np.array(held_up),
            steps_ps=steps_of({step: np.array(ps) for step, ps in counts.steps_ps.items()}),
            held_ps=held_ps,
            memory_ps=memory_ps,
            memory_bytes=memory_bytes(
                {
                    "memory_lines": np.array([controller.lines for controller in model.memory]),
                    "memory_arrived": np.array([controller.arrived for controller in model.memory]),
                    "memory_done": memory_ps,
                }
            ),
            link_ps=link_ps,
            link_bytes=link_ps / PS_PER_S * costs.link_Bps,
            latencies=tuple(one.histogram() for one in counts.latency),
            facts=routing_facts(found),
        )

    def _in_flight(self) -> int:
        """Commands that were made and not yet executed."""
        waiting = sum(sum(map(sum, w.out)) + w.to_do for w in self.model.workers)
        return waiting + sum(
            sum(sum(batch.counts) for batch in buffer.batches)
            for w in self.model.workers
            for buffer in w.incoming
            if buffer is not w.taken
        )

    def check(self) -> None:
        """Every command made was executed, or is somewhere."""
        made, done, in_flight = self.model.drawn, self.model.done, self._in_flight()
        if made != done + in_flight:
            raise RuntimeError(f"{made} commands made, {done} executed, {in_flight} in flight")


def _check(eris: Eris, scenario: Experiment) -> None:
    """Refuses what is not in the reference."""
    clients = scenario.workload.description.clients
    operations = scenario.workload.operations.values()
    system = eris.system
    missing = {
        f"placement {system.placement}": not eris.partitioned,
        "scans": any(operation.kind == "scan" for operation in operations),
        "phases": len(scenario.workload.phases) > 1,
        "balancing": set(scenario.policy_names.values()) != {"none"},
        "open clients": clients.kind == "open",
        "thinking clients": clients.think_time.value > 0,
        "answers": system.result_size.value > 0,
    }
    for what, present in missing.items():
        if present:
            raise InputError(
                f"the reference plane does not play {what}",
                expected="lookups and upserts on partitions, or another plane, such as event",
            )


def eris_reference(scenario: Experiment, replication: int) -> ErisEvents:
    """The reference plane of ERIS, one replication."""
    return ErisEvents(scenario, replication, ReferencePlayer)
