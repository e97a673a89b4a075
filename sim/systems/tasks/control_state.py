"""What policies of tasks see and order, whatever the plane: parts of tables, cores, paths."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....inputs import InputError
from ....workloads.workload import PhaseState
from ...kernel.arrays import Floats, Ints
from ...machine.costs import CostModel
from ...planes.plane import Command, Experiment
from .build import Draft, mix_shares
from .commands import (
    AccessPathObservation,
    AllocateCore,
    ChoosePath,
    CoresObservation,
    PartUse,
    PlacerObservation,
    ReleaseCore,
    SwitchNode,
)
from .facts import ENGINE, TasksFacts
from .layout import PAGE_BYTES, Layout
from .parameters import cores_of
from .single_scans import ScanPaths


class ControlState:
    """Of an experiment. ``placed``: the cores of its threads, ``cores`` (n,) of each node, of which
    those are ``allocated`` (node, core of the node) that threads may run on.
    """

    def __init__(self, experiment: Experiment, costs: CostModel) -> None:
        machine, self.workload, self.costs = experiment.machine, experiment.workload, costs
        self.nodes = machine.nodes
        self.draft = Draft(experiment, costs)
        self.program = self.draft.on(costs)
        self.facts = machine.description.facts_of(ENGINE, TasksFacts) or TasksFacts()
        memory = np.array([node.memory_bytes for node in self.nodes], dtype=np.float64)
        self.layout = Layout(
            self.program.tables,
            (np.nan_to_num(memory, nan=2.0**60) // PAGE_BYTES).astype(np.int64),
            self.facts.move_s,
            self.facts.partition_s,
            [node.id for node in self.nodes],
            self.program.spreads,
        )
        self.paths = ScanPaths(
            self.program,
            costs,
            experiment.system.unchanging,
            experiment.policy_names.get("access-path", "none"),
        )
        self.failing = [change.event for change in experiment.system.changes(machine)]
        allocator = experiment.policy_names.get("cores", "none")
        if experiment.system.faults and allocator not in ("none", "all"):
            raise InputError(
                "system.faults, and a policy of cores, which may take cores that have stopped",
                expected="--policy cores=none",
            )
        self.placed = cores_of(machine, self.program.scheduling)
        self.cores = np.bincount(self.placed.core_node, minlength=len(self.nodes))
        self.allocated = {
            (node, core) for node, count in enumerate(self.cores.tolist()) for core in range(count)
        }

    def paths_seen(self, time_s: float, workers: Sequence[int]) -> AccessPathObservation:
        """With ``workers`` (n,) that may run."""
        return self.paths.seen(time_s, tuple(self.layout.parts.items()), workers)

    def parts_seen(
        self,
        time_s: float,
        threads: Ints,
        of_nodes: tuple[Floats, Floats],
        of_parts: dict[tuple[str, int], tuple[Floats, Floats]],
    ) -> PlacerObservation:
        """With ``threads`` (n,) that may run; of nodes (n, S) and of parts (S,) by table and
        position, what ``PartUse`` has: threads, and what they read and write.
        """
        node_cpu, node_Bps = of_nodes
        unused = np.zeros(node_cpu.shape[1])
        return PlacerObservation(
            time_s=time_s,
            parts=tuple(
                PartUse(
                    table,
                    p,
                    part.node,
                    part.rows,
                    part.pages,
                    part.busy,
                    part.targets,
                    *of_parts.get((table, p), (unused, unused)),
                )
                for table, parts in self.layout.parts.items()
                for p, part in enumerate(parts)
            ),
            threads=threads,
            node_cpu=node_cpu,
            node_memory_Bps=node_Bps,
            memory_peak_Bps=self.costs.memory_Bps,
            free_pages=self.layout.free_pages,
            move_s=self.facts.move_s,
            partition_s=self.facts.partition_s,
        )

    def cores_seen(
        self, time_s: float, cpu_load: float, memory_bytes: Floats, links_Bps: float, all_Bps: float
    ) -> CoresObservation:
        """For the other figures see there."""
        allocated = tuple(sorted(self.allocated))
        return CoresObservation(
            time_s, self.cores, allocated, cpu_load, memory_bytes, links_Bps, all_Bps
        )

    def apply(self, command: Command) -> bool:
        """Carries out a command about cores or paths; False for others."""
        if isinstance(command, ChoosePath):
            self.paths.choose(command)
        elif isinstance(command, AllocateCore):
            self.allocated.add((command.node, command.core))
        elif isinstance(command, ReleaseCore):
            self.allocated.remove((command.node, command.core))
        elif isinstance(command, SwitchNode):
            cores = {(command.node, core) for core in range(int(self.cores[command.node]))}
            self.allocated = self.allocated | cores if command.runs else self.allocated - cores
        else:
            return False
        return True

    def shares(self, phase: PhaseState) -> tuple[float, ...]:
        """(K,) of the queries of the mix in a phase."""
        found = mix_shares(phase, self.workload.operations)
        return tuple(found.get(query.name, 0.0) for query in self.program.queries)

    def columns(self) -> dict[str, float]:
        """How many parts and allocated cores there are now, by column of the series."""
        found = {f"parts/{name}": float(len(parts)) for name, parts in self.layout.parts.items()}
        return {**found, "allocated cores": float(len(self.allocated))}

    def described(self) -> dict[str, Any]:
        """Parts as they lie now, and how they came there."""
        return {
            "pages_moved": self.layout.arrived_pages,
            "parts": {
                name: [
                    [part.rows, None if part.node is None else self.nodes[part.node].id]
                    for part in parts
                ]
                for name, parts in self.layout.parts.items()
            },
            "layout": [list(event) for event in self.layout.history],
        }
