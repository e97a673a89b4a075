"""Fields that systems have in common: counts, nodes by number or by id, threads of a node."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from ...inputs import DescriptionError
from ...topologies import Machine
from ...topologies.nics import MessageCurve, message_curves

COUNT_MAX = 1_000_000


def whole(raw: Any) -> Any:
    """Whole numbers only."""
    if isinstance(raw, bool) or not isinstance(raw, int):
        raise ValueError("expected a whole number")
    return raw


def nodes_or_count(raw: Any) -> Any:
    """How many nodes, or their ids as a tuple."""
    ids = raw if isinstance(raw, (list, tuple)) else [raw]
    if any(isinstance(item, bool) or not isinstance(item, int) for item in ids):
        raise ValueError(
            "expected how many nodes, such as 8, or a list of node ids, such as [0, 2]"
        )
    if isinstance(raw, int):
        if raw < 1:
            raise ValueError("expected at least 1")
        return raw
    if not ids:
        raise ValueError("expected at least one node id")
    if len(set(ids)) < len(ids):
        raise ValueError("a node id is listed twice")
    return tuple(ids)


def threads_or_kind(raw: Any) -> Any:
    """How many threads, or which."""
    if raw in ("hardware-threads", "cores") or (
        isinstance(raw, int) and not isinstance(raw, bool) and raw >= 1
    ):
        return raw
    raise ValueError("expected hardware-threads, cores, or how many per node, such as 8")


Count = Annotated[int, BeforeValidator(whole), Field(ge=1, le=COUNT_MAX)]
Whole = Annotated[int, BeforeValidator(whole), Field(ge=0)]
Nodes = Annotated[int | tuple[int, ...], BeforeValidator(nodes_or_count)]
Threads = Annotated[Literal["hardware-threads", "cores"] | Count, BeforeValidator(threads_or_kind)]


def able_positions(machine: Machine, field: str) -> list[int]:
    """Positions of the nodes with cores. Raises DescriptionError, at ``field``, for none."""
    able = [k for k, node in enumerate(machine.nodes) if node.cores]
    if not able:
        raise DescriptionError((field,), f"no node of machine '{machine.name}' has cores")
    return able


def positions_in_use(machine: Machine, nodes: int | Sequence[int] | None) -> tuple[int, ...]:
    """Positions of the nodes that ``nodes`` says: all with cores, the first so many, or by id.

    Raises DescriptionError, at ``nodes``, where there are none such.
    """
    able = able_positions(machine, "nodes")
    if nodes is None:
        return tuple(able)
    if not isinstance(nodes, int):
        return listed_positions(machine, nodes, "nodes")
    if nodes > len(able):
        raise DescriptionError(
            ("nodes",),
            f"machine '{machine.name}' has {len(able)} "
            f"{'node' if len(able) == 1 else 'nodes'} with cores: expected at most {len(able)}",
        )
    return tuple(able[:nodes])


def listed_positions(machine: Machine, ids: Sequence[int], field: str) -> tuple[int, ...]:
    """Positions of the nodes of these ids, rising. Raises DescriptionError, at ``field``."""
    able, positions = set(able_positions(machine, field)), node_positions(machine)
    for index, node_id in enumerate(ids):
        if positions.get(node_id) not in able:
            what = "has no cores" if node_id in positions else "does not exist"
            raise DescriptionError(
                (field, index), f"node {node_id} of machine '{machine.name}' {what}"
            )
    return tuple(sorted(positions[node_id] for node_id in ids))


def threads_of(machine: Machine, position: int, threads: str | int, field: str) -> int:
    """How many threads of that node are meant. Raises DescriptionError, at ``field``."""
    node = machine.nodes[position]
    if threads == "hardware-threads":
        count = node.threads
    elif threads == "cores":
        count = node.cores
    else:
        count = int(threads)
        if count > node.threads:
            raise DescriptionError(
                (field,),
                f"node {node.id} of machine '{machine.name}' has {node.threads} hardware "
                f"threads: expected at most {node.threads}",
            )
    return count


def common_curve(
    machine: Machine, positions: Sequence[int], transport: str, ports: int | None
) -> MessageCurve:
    """How messages go between these nodes. Raises DescriptionError where their adapters differ."""

    def anywhere(curve: MessageCurve) -> MessageCurve:
        return replace(curve, nic=curve.nic.model_copy(update={"nodes": 0}))

    curves = message_curves(machine, positions, transport, ports)
    for position, other in zip(positions, curves, strict=True):
        if other is not curves[0] and anywhere(other) != anywhere(curves[0]):
            ids = [machine.nodes[k].id for k in (positions[0], position)]
            raise DescriptionError(
                (), f"adapters of nodes {ids[0]} and {ids[1]} differ: expected equal ones"
            )
    return curves[0]


def node_positions(machine: Machine) -> dict[int, int]:
    """The position of each node, by its id."""
    return {node.id: k for k, node in enumerate(machine.nodes)}
