"""Rows of a user's own engine as runs of ERIS: threads, nodes and sizes as a scenario says them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....sim.run.scenario import Scenario
from ...calibrate.engine_rows import EngineRow


def row_settings(scenario: Scenario, row: EngineRow) -> Sequence[str]:
    """The settings of a row's run; raises InputError with the row's place."""
    return [*_layout(scenario, row), *_size(scenario, row)]


def _layout(scenario: Scenario, row: EngineRow) -> Iterator[str]:
    """Threads are spread evenly over the nodes; where a row does not say over how many, over as few
    of the first ones as have the hardware threads."""
    able = [node for node in scenario.machine.nodes if node.cores]
    nodes = row.nodes
    if nodes is not None and nodes > len(able):
        raise row.error(
            "nodes",
            f"nodes: {scenario.machine.name} has {len(able)} with cores",
            str(nodes),
            f"at most {len(able)}",
        )
    if row.threads is not None:
        room = [node.cores * node.threads_per_core for node in able]
        if nodes is None:
            nodes = next(
                (k for k in range(1, len(able)) if sum(room[:k]) >= row.threads), len(able)
            )
        if row.threads > sum(room[:nodes]):
            raise row.error(
                "threads",
                f"threads: {nodes} of {scenario.machine.name}'s nodes have {sum(room[:nodes])}",
                str(row.threads),
                f"at most {sum(room[:nodes])}",
            )
        if row.threads % nodes:
            raise row.error(
                "threads",
                f"threads: not the same number on each of {nodes} nodes",
                str(row.threads),
                f"a multiple of {nodes}",
            )
        yield f"system.threads={row.threads // nodes}"
    if nodes is not None:
        yield f"system.nodes={nodes}"


def _size(scenario: Scenario, row: EngineRow) -> Iterator[str]:
    if row.size is not None:
        name = scenario.workload.operations[row.operation].object
        field = "entries" if scenario.workload.objects[name].kind == "column" else "keys"
        yield f"workload.objects.{name}.{field}={row.size}"
