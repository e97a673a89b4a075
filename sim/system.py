"""Which database engine runs on the machine, and how it is laid out there.

One more engine is one more model here, told apart by its ``kind``.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BeforeValidator, Field, model_validator

from ..inputs import DescriptionError, Quantity, Strict
from ..inputs.quantities import Size, SizeOrZero
from ..topologies import Machine

Ints = npt.NDArray[np.int64]

COUNT_MAX = 1_000_000


def _whole(raw: Any) -> Any:
    if isinstance(raw, bool) or not isinstance(raw, int):
        raise ValueError("expected a whole number")
    return raw


def _nodes(raw: Any) -> Any:
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
        raise ValueError("a node id stands twice")
    return tuple(ids)


def _threads(raw: Any) -> Any:
    if raw in ("hardware-threads", "cores") or (
        isinstance(raw, int) and not isinstance(raw, bool) and raw >= 1
    ):
        return raw
    raise ValueError("expected hardware-threads, cores, or how many per node, such as 8")


Count = Annotated[int, BeforeValidator(_whole), Field(ge=1, le=COUNT_MAX)]


class ErisSystem(Strict):
    """ERIS: AEUs (autonomous execution units), each a thread pinned for life with its partitions.

    ``placement``: ``partitioned`` is ERIS itself; ``interleaved`` are its baselines, the shared
    index and the shared scan (one structure, any thread, its memory over all nodes in turn);
    ``single-ram``, all data on the node ``home`` (the first of ``nodes`` by default), any thread.
    ``nodes`` run the AEUs: how many (the first with cores), or which ids; all with cores by
    default. ``threads``: AEUs per node. ``buffer_commands``: commands in an outgoing buffer; 128 is
    where ERIS peaks with index lookups (figure 5). ``round_commands``: commands that an AEU makes in
    a round of its loop, at most; by default as many as its outgoing buffers hold.
    ``incoming_size``: of each of an AEU's two incoming buffers; by default four times what all send
    it in a round. ``command_size``: bytes of a command on its way,
    a key and as much again for operation, object and callback. ``result_size``: bytes sent back;
    0 B where the answer is handed on by callback. ``batch``: commands of one group at most, whose
    memory latencies overlap; a full buffer by default. ``page_size``: of the memory that holds the
    data; huge pages by default, as Linux gives to large allocations since 2011.
    """

    kind: Literal["eris"] = "eris"
    placement: Literal["partitioned", "interleaved", "single-ram"] = "partitioned"
    nodes: Annotated[int | tuple[int, ...], BeforeValidator(_nodes)] | None = None
    home: Annotated[int, BeforeValidator(_whole), Field(ge=0)] | None = None
    threads: Annotated[Literal["hardware-threads", "cores"] | Count, BeforeValidator(_threads)] = (
        "hardware-threads"
    )
    buffer_commands: Count = 128
    round_commands: Count | None = None
    incoming_size: Size | None = None
    command_size: Size = Quantity(16.0, 16.0, 16.0)
    result_size: SizeOrZero = Quantity(0.0, 0.0, 0.0)
    batch: Count = 128
    page_size: Size = Quantity(2.0**21, 2.0**21, 2.0**21)

    @model_validator(mode="after")
    def _page_is_one(self) -> ErisSystem:
        size = self.page_size.value
        if not 4096 <= size <= 2**40 or math.log2(size) % 1:
            raise DescriptionError(
                ("page_size",), "expected a power of two from 4 KiB on, such as 2 MiB"
            )
        return self

    @model_validator(mode="after")
    def _buffers_hold_commands(self) -> ErisSystem:
        if self.incoming_size is None:
            return self
        size, command = self.incoming_size.value, self.command_size.value
        if size < command:
            raise DescriptionError(
                ("incoming_size",),
                f"a buffer smaller than a command: expected at least {command:g} B",
            )
        if size < command * self.buffer_commands:
            raise DescriptionError(
                ("incoming_size",),
                "smaller than an outgoing buffer: expected at least "
                f"{command * self.buffer_commands:g} B",
            )
        if size >= 2**32:
            raise DescriptionError(("incoming_size",), "expected less than 4 GiB")
        return self

    def commands_per_round(self, workers: int) -> int:
        """What each of so many AEUs makes in a round of its loop, at most."""
        return self.round_commands or workers * self.buffer_commands

    def incoming_commands(self, workers: int) -> int:
        """Commands that an incoming buffer holds; its offset is told in 32 bits."""
        command = self.command_size.value
        if self.incoming_size is not None:
            return int(self.incoming_size.value // command)
        wanted = 4 * max(self.commands_per_round(workers), workers * self.buffer_commands)
        return min(wanted, int((2**32 - 1) // command))

    @model_validator(mode="after")
    def _home_of_single_ram(self) -> ErisSystem:
        if self.home is not None and self.placement != "single-ram":
            raise ValueError(f"placement {self.placement} has no home: expected single-ram")
        return self

    def node_positions(self, machine: Machine) -> tuple[int, ...]:
        """Positions, in the machine's order, of the nodes that run AEUs.

        Raises DescriptionError where the machine has no such nodes.
        """
        able = [k for k, node in enumerate(machine.nodes) if node.cores]
        if not able:
            raise DescriptionError(("nodes",), f"no node of machine '{machine.name}' has cores")
        if self.nodes is None:
            return tuple(able)
        if isinstance(self.nodes, int):
            if self.nodes > len(able):
                raise DescriptionError(
                    ("nodes",),
                    f"machine '{machine.name}' has {len(able)} nodes with cores: "
                    f"expected at most {len(able)}",
                )
            return tuple(able[: self.nodes])
        positions = _positions(machine)
        for at, node_id in enumerate(self.nodes):
            if positions.get(node_id) not in able:
                what = "has no cores" if node_id in positions else "does not exist"
                raise DescriptionError(
                    ("nodes", at), f"node {node_id} of machine '{machine.name}' {what}"
                )
        return tuple(sorted(positions[node_id] for node_id in self.nodes))

    def aeu_nodes(self, machine: Machine) -> Ints:
        """(A,) position of the node of each AEU, in rising order. Raises DescriptionError."""
        per_node: list[int] = []
        chosen = self.node_positions(machine)
        for position in chosen:
            node = machine.nodes[position]
            count = {"hardware-threads": node.threads, "cores": node.cores}.get(str(self.threads))
            if count is None:
                count = int(self.threads)
                if count > node.threads:
                    raise DescriptionError(
                        ("threads",),
                        f"node {node.id} of machine '{machine.name}' has {node.threads} hardware "
                        f"threads: expected at most {node.threads}",
                    )
            per_node.append(count)
        return np.repeat(np.array(chosen, dtype=np.int64), per_node)

    def home_position(self, machine: Machine) -> int:
        """Position of the one node with data under ``single-ram``. Raises DescriptionError."""
        if self.home is None:
            holding = [
                k for k in self.node_positions(machine) if machine.nodes[k].memory_bytes != 0
            ]
            if not holding:
                raise DescriptionError(("home",), "none of the nodes has memory: expected a home")
            return holding[0]
        position = _positions(machine).get(self.home)
        if position is None or machine.nodes[position].memory_bytes == 0:
            what = "does not exist" if position is None else "has no memory"
            raise DescriptionError(
                ("home",), f"node {self.home} of machine '{machine.name}' {what}"
            )
        return position


# With a second engine: Annotated[ErisSystem | …, Field(discriminator="kind")].
AnySystem = ErisSystem


def _positions(machine: Machine) -> dict[int, int]:
    return {node.id: k for k, node in enumerate(machine.nodes)}
