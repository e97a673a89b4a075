"""Access paths of scans, and background work that competes with them."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from ....inputs import DescriptionError, Strict
from ....inputs.yaml_file import Place
from ....topologies import Machine
from ....workloads import Workload
from ....workloads.operators import ScanSpec
from ...machine.copy_engines import NONE, nearest_engines
from ..fields import node_positions
from .program import Background, Path

PATHS: tuple[Path, ...] = ("cpu", "copy-engine", "copy-engine-noncoherent")
BACKGROUND_MAX = 64


class BackgroundSpec(Strict):
    """Workers besides the queries' that never end, as ``workers`` many of a ``kind``.

    ``interconnect``: each copies data of node ``home`` to its ``node`` and scans them there, on a
    core of its own. ``copy-engine``: each keeps one copy there and back under way at the engine
    that threads of ``node`` use.
    """

    kind: Literal["interconnect", "copy-engine"]
    node: Annotated[int, Field(strict=True, ge=0)]
    home: Annotated[int, Field(strict=True, ge=0)]
    workers: Annotated[int, Field(strict=True, ge=0, le=BACKGROUND_MAX)] = 1


def background_of(machine: Machine, listed: tuple[BackgroundSpec, ...]) -> tuple[Background, ...]:
    """With positions of nodes; raises DescriptionError for what the machine has not."""
    positions, engines, found = node_positions(machine), nearest_engines(machine), []
    held = [0] * len(machine.copy_engines)
    for k, spec in enumerate(listed):
        for field, node in (("node", spec.node), ("home", spec.home)):
            if node not in positions:
                raise DescriptionError(
                    ("background", k, field),
                    f"node {node} of machine '{machine.name}' does not exist",
                )
        position = positions[spec.node]
        if spec.kind == "copy-engine":
            engine = engine_of(machine, position, engines, ("background", k))
            held[engine] += spec.workers
            contexts = machine.copy_engines[engine].contexts
            if held[engine] >= contexts:
                raise DescriptionError(
                    ("background", k, "workers"),
                    f"the copy engine makes {contexts} copies at a time, and {held[engine]} would "
                    f"never end: expected at most {contexts - 1}",
                )
        found.append(Background(spec.kind, position, positions[spec.home], spec.workers))
    return tuple(found)


def engine_of(
    machine: Machine, node: int, engines: tuple[int, ...], place: Place, what: str = ""
) -> int:
    """Of the threads of a node (a position). Raises DescriptionError where there is none."""
    if engines[node] == NONE:
        raise DescriptionError(
            place,
            f"{what}machine '{machine.name}' has no copy engine: expected one with copy_engines",
        )
    return engines[node]


def check_paths(machine: Machine, workload: Workload, unchanging: tuple[str, ...]) -> None:
    """Raises DescriptionError for a path that the machine has not, and for one whose copies may be
    stale."""
    for name, operator, spec in scans_with_paths(workload):
        scan = f"scan '{operator}' of query '{name}' by {spec.path}: "
        engine_of(machine, 0, nearest_engines(machine), ("kind",), scan)
        if spec.path == "copy-engine-noncoherent":
            check_noncoherent(machine, spec.table, unchanging, scan)


def check_noncoherent(machine: Machine, table: str, unchanging: tuple[str, ...], what: str) -> None:
    """The same of one scan by copies that ask no other cache."""
    place = ("unchanging",)
    if any(engine.non_coherent_Bps is None for engine in machine.copy_engines):
        raise DescriptionError(
            place, f"{what}copy engines of machine '{machine.name}' make coherent copies only"
        )
    if table not in unchanging:
        raise DescriptionError(
            place,
            f"{what}these copies may be stale, and table '{table}' may change: expected it in "
            "system.unchanging",
        )


def scans_with_paths(workload: Workload) -> Iterator[tuple[str, str, ScanSpec]]:
    """Scans that say to go by a copy engine: query, operator, what it says."""
    for name, operation in workload.operations.items():
        for operator, spec in (operation.operators or {}).items():
            if isinstance(spec, ScanSpec) and spec.path not in (None, "cpu"):
                yield name, operator, spec
