"""From a scenario to the Program that all planes execute."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ....inputs import InputError
from ....workloads.schema import Operation
from ....workloads.workload import PhaseState
from ...machine.costs import CostModel, Scales
from ...planes.plane import Experiment
from .entry_costs import EntryCosts
from .facts import ENGINE, TasksFacts, instructions_of
from .operators import QueryStages
from .paths import background_of
from .program import MemoryUse, Program, Query, Scheduling
from .spec import TasksSystem


def program_of(scenario: Experiment, scales: Scales | None = None) -> Program:
    """What the scenario asks for, worked out with its machine's costs, ``scales`` applied."""
    costs = CostModel(scenario.machine, scales)
    return Draft(scenario, costs).on(costs)


class Draft:
    """What a scenario asks for, but for what entries cost: that depends on the machine's speeds."""

    def __init__(self, scenario: Experiment, costs: CostModel) -> None:
        system, machine, workload = scenario.system, scenario.machine, scenario.workload
        assert isinstance(system, TasksSystem)
        workers, stored = system.workers(machine), system.stored(workload)
        tables, clients = system.placed(machine, workload), workload.description.clients
        shares = mix_shares(workload.at(0.0), workload.operations)
        table_at = {table.name: index for index, table in enumerate(tables)}
        at_start = workload.at(0.0).operations

        self._entry_costs, self._stages, queries = EntryCosts(costs, workers), [], []
        facts = machine.description.facts_of(ENGINE, TasksFacts)
        per_s = 1.0 / costs.core_s(1.0)[int(np.argmax(workers))]
        counts = instructions_of(system.instructions, facts, float(per_s))
        for name, operation in workload.operations.items():
            asking = operation.clients or shares.get(name, 0.0) * (clients.count or 1)
            traces = at_start[name].traces
            of_query = QueryStages(
                name, asking, stored, tables, table_at, self._entry_costs, system, counts, traces
            )
            for node in workload.graphs[name]:
                of_query.add(node)
            self._stages.append(of_query)
            clients_of, share = operation.clients or 0, shares.get(name, 0.0)
            queries.append(Query(name, tuple(of_query.stages), clients_of, share))
        background = background_of(machine, system.background)
        by_process = system.memory is not None and system.memory.policy not in (None, "local")
        # A thread on a node without memory has nothing local.
        self._by_process = by_process or any(
            machine.nodes[k].memory_bytes <= 0 for k in system.worker_positions(machine)
        )
        copied = any(s.path not in (None, "cpu") for query in queries for s in query.stages)
        copied |= any(piece.kind == "copy-engine" for piece in background)
        if system.affinity != "core" and copied:
            raise InputError(
                f"system.affinity: {system.affinity}, and work of a copy engine",
                expected="core: engines serve threads that stay on their nodes",
            )
        self._program = Program(
            tables=tables,
            queries=tuple(queries),
            scheduling=Scheduling(
                workers=workers,
                concurrency=system.concurrency,
                task_s=system.task.value,
                look_s=np.inf if system.look is None else system.look.value,
                wake_s=system.wake.value,
                queue=system.queue,
                affinity=system.affinity,
                switch_s=system.switch.value,
            ),
            mix_clients=clients.count or 0,
            think_s=clients.think_time.value if clients.kind == "closed" else 0.0,
            arrivals_per_s=clients.arrival_rate.value if clients.arrival_rate is not None else 0.0,
            background=background,
            spreads=() if system.memory is None else system.laid_out(machine, workload).spreads,
        )

    def on(self, costs: CostModel) -> Program:
        """Worked out with these costs. All stages are there by now, which share the caches."""
        entry_costs = EntryCosts(costs, self._entry_costs.workers, self._entry_costs.survey)
        queries = [
            replace(query, stages=of_query.costed(entry_costs))
            for query, of_query in zip(self._program.queries, self._stages, strict=True)
        ]
        if self._by_process:
            queries = [_of_process(query) for query in queries]
        return replace(self._program, queries=tuple(queries))


def _of_process(query: Query) -> Query:
    """The same where the policy of the process says where a thread's own memory lies, too."""
    stages = []
    for stage in query.stages:
        loops = tuple(replace(loop, memory=_spread(loop.memory)) for loop in stage.cost.loops)
        cost = replace(stage.cost, memory=_spread(stage.cost.memory), loops=loops)
        stages.append(replace(stage, cost=cost))
    return replace(query, stages=tuple(stages))


def _spread(memory: tuple[MemoryUse, ...]) -> tuple[MemoryUse, ...]:
    return tuple(
        replace(use, place="interleaved") if use.place == "local" else use for use in memory
    )


def mix_shares(phase: PhaseState, operations: Mapping[str, Operation]) -> dict[str, float]:
    """The share of each query of the mix in a phase; those with clients of their own have none."""
    mixed = {
        name: operation.share
        for name, operation in phase.operations.items()
        if operations[name].clients is None
    }
    total = sum(mixed.values())
    return {name: share / total for name, share in mixed.items()}
