"""ERIS's routing in plain SimPy, as a plane plays it."""

from __future__ import annotations

import numpy as np

from ....inputs import InputError
from ..._kernel import Stream
from ...costs import CostModel
from ...eris.engine import Eris
from ...eris.event_model import (
    PS_PER_S,
    by_key_first,
    kernel_demands,
    machine_of,
    table_of,
    worker_streams,
)
from ...eris.partitioned import PartitionedDemands
from ...eris.partitions import IndexPartitions
from ...eris.players import Counted
from ...histogram import Histogram, of_kernel
from ...scenario import Scenario
from ...streams import stream_key
from ..eris_events import ErisEvents
from .eris import ErisRoutingReference


class ReferencePlayer:
    """See ``eris.players.Player``. Raises InputError for what the reference does not play."""

    def __init__(self, eris: Eris, costs: CostModel, scenario: Scenario, replication: int) -> None:
        _check(eris, scenario)
        demands = eris.demands(costs)
        assert isinstance(demands, PartitionedDemands)
        self.demands: PartitionedDemands = demands
        self.events = 0
        order, _ = by_key_first(eris.phase, eris.partitions)
        shares = []
        for operation in eris.phase.operations.values():
            part = eris.partitions[operation.object]
            assert isinstance(part, IndexPartitions)
            assert operation.keys is not None
            shares.append(operation.share * part.shares(operation.keys, 0.0))
        names = worker_streams(eris.workers)[: eris.workers.count]
        self.model = ErisRoutingReference(
            machine_of(demands, scenario.workload.description.clients),
            kernel_demands(demands.commands(eris.phase, 0.0, eris.partitions), order),
            table_of(shares, [])[0].tolist(),
            len(order),
            [Stream(*stream_key(scenario.seed, replication, name)) for name in names],
        )
        self._until_ps = 0
        self._before: Counted | None = None
        self._since_ps = 0

    @property
    def now_ps(self) -> int:
        """See Player."""
        return self._until_ps

    def run(self, until_ps: int) -> bool:
        """See Player."""
        env = self.model.env
        while env.peek() < until_ps:
            env.step()
            self.events += 1
        if env.now < until_ps:
            env.run(until=until_ps)
        self._until_ps = until_ps
        return True

    def refresh(self, moved: bool = False) -> None:
        """See Player: nothing changes here."""

    def start_counting(self) -> None:
        """See Player."""
        self._before, self._since_ps = None, 0
        self._before, self._since_ps = self.counted(), self._until_ps

    def counted(self) -> Counted:
        """See Player."""
        model, costs, now = self.model, self.demands.costs, self._until_ps
        asleep = np.array(
            [w.asleep + (now - w.asleep_since if w.wakes is not None else 0) for w in model.workers]
        )
        held_up = np.array(
            [w.held_up + max(min(now, w.over) - w.alone, 0) for w in model.workers]
        )
        memory_ps = np.array([server.done(now) for server in model.memory])
        link_ps = np.array([link.done(now) for link in model.links], dtype=np.int64)
        memory_Bps = np.nan_to_num(costs.memory_Bps, nan=0.0, posinf=0.0)
        found = Counted(
            since_ps=0,
            done=model.executed.sum(axis=1).astype(np.float64),
            executed=model.executed.copy(),
            busy_ps=now - asleep - held_up,
            steps_ps={},
            held_ps=np.array(model.held),
            memory_ps=memory_ps,
            memory_bytes=memory_ps / PS_PER_S * memory_Bps,
            link_ps=link_ps,
            link_bytes=link_ps / PS_PER_S * costs.link_Bps,
            latencies=tuple(of_kernel(one) for one in model.latency),
            facts={"commands_per_flush": model.flushed / max(model.flushes, 1)},
        )
        return found if self._before is None else _since(found, self._before, self._since_ps)

    def check(self) -> None:
        """See Player: every command made was executed, or is somewhere."""
        model = self.model
        somewhere = sum(sum(map(sum, w.out)) + w.to_do for w in model.workers)
        somewhere += sum(
            sum(sum(batch.counts) for batch in buffer.batches)
            for w in model.workers
            for buffer in w.incoming
            if buffer is not w.taken
        )
        if model.drawn != int(model.executed.sum()) + somewhere:
            raise RuntimeError(f"{model.drawn} commands, {somewhere} of them in flight")


def _check(eris: Eris, scenario: Scenario) -> None:
    """Refuses what is not in the reference."""
    clients = scenario.workload.description.clients
    operations = scenario.workload.operations.values()
    system = eris.system
    missing = {
        f"placement {system.placement}": not eris.partitioned,
        "scans": any(operation.kind == "scan" for operation in operations),
        "phases": len(scenario.workload.phases) > 1,
        "balancing": scenario.policy_name != "none",
        "open clients": clients.kind == "open",
        "thinking clients": clients.think_time.value > 0,
        "answers": system.result_size.value > 0,
    }
    for what, asked in missing.items():
        if asked:
            raise InputError(
                f"the reference plane does not play {what}",
                expected="lookups and upserts on partitions, or another plane, such as event",
            )


def _since(now: Counted, before: Counted, since_ps: int) -> Counted:
    """What was counted after ``before``."""
    latencies = []
    for one, other in zip(now.latencies, before.latencies, strict=True):
        counts = one.counts.copy()
        counts[: len(other.counts)] -= other.counts
        latencies.append(Histogram(one.edges, counts, one.total - other.total))
    return Counted(
        since_ps=since_ps,
        done=now.done - before.done,
        executed=now.executed - before.executed,
        busy_ps=now.busy_ps - before.busy_ps,
        steps_ps={},
        held_ps=now.held_ps - before.held_ps,
        memory_ps=now.memory_ps - before.memory_ps,
        memory_bytes=now.memory_bytes - before.memory_bytes,
        link_ps=now.link_ps - before.link_ps,
        link_bytes=now.link_bytes - before.link_bytes,
        latencies=tuple(latencies),
        facts=now.facts,
    )


def eris_reference(scenario: Scenario, replication: int) -> ErisEvents:
    """The reference plane of ERIS, one replication."""
    return ErisEvents(scenario, replication, ReferencePlayer)
