"""ERIS's part of a scenario: its layout on the machine, and its buffers."""

import math
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from ....inputs import DescriptionError, Quantity, Strict
from ....inputs.quantities import Size, SizeOrZero
from ....topologies import Machine
from ....workloads import Workload
from ...kernel.arrays import Ints
from ...machine.memory_policy import described_at
from ...planes.plane import Change
from ..descriptor import Default, SystemSpec
from ..faults import changes_of, check_faults
from ..fields import Count, Nodes, Threads, Whole, node_positions, positions_in_use, threads_of
from .faults import WorkerFault

SOCKETS = ("socket", "package")  # how the name of a group of nodes begins that is one
SIBLINGS_BELOW = 20.0  # SLIT: nodes of one socket are nearer than ACPI's usual remote distance


class Shards(Strict):
    """A shard of the data per ``worker`` or ``core`` (this is ``partitioned``), ``node`` or
    ``socket``, or so many of as many nodes each. Inside, all workers share one structure.
    """

    shards: Literal["worker", "core", "node", "socket"] | Count

    def groups(self, machine: Machine, nodes: Sequence[int]) -> Ints:
        """(n,) shard of each node in use, -1 of others. Raises DescriptionError."""
        found, place = np.full(len(machine.nodes), -1), ("placement", "shards")
        groups = [machine.nodes[k].group for k in nodes]
        if isinstance(self.shards, int):
            if len(nodes) % self.shards:
                raise DescriptionError(
                    place, f"{len(nodes)} nodes run AEUs: expected a number that divides them"
                )
            found[list(nodes)] = np.arange(len(nodes)) * self.shards // len(nodes)
        elif self.shards == "node" or len(nodes) == 1:
            found[list(nodes)] = np.arange(len(nodes))
        elif all((group or "").startswith(SOCKETS) for group in groups):
            found[list(nodes)] = [list(dict.fromkeys(groups)).index(group) for group in groups]
        elif machine.slit is None:
            raise DescriptionError(
                place,
                f"machine '{machine.name}' has neither groups of nodes named 'socket…' or "
                "'package…' nor a SLIT, which tell its sockets: expected node, or how many shards, "
                "such as 2",
            )
        else:
            for k in nodes:
                first = next(j for j in nodes if j == k or machine.slit[k, j] < SIBLINGS_BELOW)
                found[k] = found[first] if found[first] >= 0 else found.max() + 1
        return found


class ErisSystem(SystemSpec):
    """ERIS: AEUs (autonomous execution units), each a thread pinned for life with its partitions.

    ``placement``: ``partitioned`` is ERIS itself; ``interleaved`` are its baselines, the shared
    index and the shared scan (one structure, any thread, its memory over all nodes in turn);
    ``single-ram``, all data on the node ``home`` (the first of ``nodes`` by default), any thread.
    ``{shards: node}`` or ``socket``: an index (or column) for each, which all its workers share, in
    its own memory; clients ask the right one.
    ``memory``: a policy of Linux for the data, in place of where ``placement`` puts them.
    ``nodes`` run the AEUs: how many (the first with cores), or which ids; all with cores by
    default. ``threads``: AEUs per node. ``buffer_commands``: commands in an outgoing buffer; 128 is
    where ERIS peaks with index lookups (figure 5). ``round_commands``: commands that an AEU makes
    in a round of its loop, at most; by default as many as its outgoing buffers hold.
    ``incoming_size``: of each of an AEU's two incoming buffers; by default four times what all
    send it in a round. ``command_size``: bytes of a command on its way, a key and as much again
    for operation, object and callback. ``result_size``: bytes sent back;
    0 B where the answer is handed on by callback. ``batch``: commands of one group at most, whose
    memory latencies overlap; a full buffer by default. ``inline_values``: values of up to this
    size stand in the entries of their index; larger ones lie elsewhere, and the entry points to
    them. A word of 8 B by default, as in trees whose slots hold either (ART: Leis et al., ICDE
    2013, section III.C), and in the native engine. ``page_size``: of the memory that holds the
    data; huge pages by default, as Linux gives to large allocations since 2011. ``faults``: workers
    that stop, or that are slow.
    """

    kind: Literal["eris"] = "eris"
    placement: Literal["partitioned", "interleaved", "single-ram"] | Shards = "partitioned"
    nodes: Nodes | None = None
    home: Whole | None = None
    threads: Threads = "hardware-threads"
    buffer_commands: Annotated[Count, Default("Where ERIS peaks with index lookups (figure 5)")] = (
        128
    )
    round_commands: Count | None = None
    incoming_size: Size | None = None
    command_size: Annotated[
        Size, Default("A key, and as much again for operation, object and callback")
    ] = Quantity.exact(16.0)
    result_size: Annotated[
        SizeOrZero, Default("Answers are handed on by callback", ("0 B", "16 B"))
    ] = Quantity.exact(0.0)
    batch: Annotated[Count, Default("A full buffer of buffer_commands")] = 128
    inline_values: Annotated[
        Size, Default("A word, as in trees whose slots hold a value or a pointer", ("8 B", "16 B"))
    ] = Quantity.exact(8.0)
    page_size: Annotated[
        Size,
        Default("Huge pages, as Linux gives to large allocations since 2011", ("4 KiB", "1 GiB")),
    ] = Quantity.exact(2.0**21)
    faults: Annotated[tuple[WorkerFault, ...], Field(max_length=1_000)] = ()

    # Drawn at random a pause may last 44 times as long; the kernel counts 53 days in picoseconds.
    PAUSE_MAX_S: ClassVar[float] = 50_000.0

    def _fits(self) -> None:
        size = self.page_size.value
        if not 4096 <= size <= 2**40 or math.log2(size) % 1:
            raise DescriptionError(
                ("page_size",), "expected a power of two from 4 KiB on, such as 2 MiB"
            )
        self._check_buffers()
        if isinstance(self.placement, Shards) and self.placement.shards in ("worker", "core"):
            if self.placement.shards == "core" and self.threads != "cores":
                raise DescriptionError(
                    ("placement", "shards"), "core: expected threads: cores, one worker on each"
                )
            object.__setattr__(self, "placement", "partitioned")
        if self.home is not None and self.placement != "single-ram":
            raise ValueError(f"placement {self.placement} has no home: expected single-ram")

    def _check_buffers(self) -> None:
        command = self.command_size.value
        outgoing = command * self.buffer_commands
        if self.incoming_size is None:
            if outgoing >= 2**32:
                raise DescriptionError(
                    ("command_size",),
                    f"{self.buffer_commands} commands fill an outgoing buffer: expected less than "
                    "4 GiB together",
                )
            return
        size = self.incoming_size.value
        for wrong, expected in (
            (size < command, f"a buffer smaller than a command: expected at least {command:g} B"),
            (size < outgoing, f"smaller than an outgoing buffer: expected at least {outgoing:g} B"),
            (size >= 2**32, "expected less than 4 GiB"),
        ):
            if wrong:
                raise DescriptionError(("incoming_size",), expected)

    def commands_per_round(self, workers: int) -> int:
        """What each of so many AEUs makes in a round of its loop, at most."""
        return self.round_commands or workers * self.buffer_commands

    def incoming_commands(self, workers: int) -> int:
        """Commands that an incoming buffer holds; its offset has 32 bits."""
        command = self.command_size.value
        if self.incoming_size is not None:
            return int(self.incoming_size.value // command)
        wanted = 4 * max(self.commands_per_round(workers), workers * self.buffer_commands)
        return min(wanted, int((2**32 - 1) // command))

    def check(self, machine: Machine, workload: Workload) -> None:
        """Raises DescriptionError where the machine does not have what this says."""
        nodes = self._node_ids(machine)
        for index, fault in enumerate(self.faults):
            with described_at(("faults", index)):
                fault.check(len(nodes))
        check_faults(self.faults, nodes, lambda fault: fault.workers(nodes))
        if self.placement == "single-ram":
            self.home_position(machine)
        if isinstance(self.placement, Shards):
            self.placement.groups(machine, self.node_positions(machine))
        self._check_memory(machine)

    def changes(self, machine: Machine) -> tuple[Change, ...]:
        nodes = self._node_ids(machine) if self.faults else []
        return changes_of(self.faults, lambda fault, begins: fault.command(nodes, begins))

    def notes(self, machine: Machine, workload: Workload) -> list[str]:
        stops = any(fault.kind == "stop" for fault in self.faults)
        if self.placement != "partitioned" or not stops:
            return []
        return [
            "nobody but its worker may touch a key: while one is stopped, clients wait for it one "
            "after the other, and nothing is done until it is back"
        ]

    def _check_memory(self, machine: Machine) -> None:
        """Raises DescriptionError where the machine does not have such memory."""
        if self.memory is None:
            return
        if self.memory.objects or self.memory.policy is None:
            raise DescriptionError(
                ("memory", "objects"), "eris: one policy for all objects, expected none by object"
            )
        with described_at(("memory",)):
            shares = self.memory.shares(machine)
        if self.placement == "partitioned" and self.memory.policy != "local" and shares.max() < 1:
            raise DescriptionError(
                ("memory", "policy"),
                f"{self.memory.policy}: each worker's partitions lie on one node: expected local, "
                "one node, or placement interleaved (structures that all workers share)",
            )

    def misfit(self, workload: Workload) -> str | None:
        """Why this cannot run ``workload``, in words; None where it can."""
        for name, stored in workload.objects.items():
            if stored.kind == "table":
                return f"object '{name}' is a table, which ERIS does not store"
        return None

    def node_positions(self, machine: Machine) -> tuple[int, ...]:
        """Positions, in the machine's order, of the nodes that run AEUs.

        Raises DescriptionError where the machine has no such nodes.
        """
        return positions_in_use(machine, self.nodes)

    def aeu_nodes(self, machine: Machine) -> Ints:
        """(A,) position of the node of each AEU, in rising order. Raises DescriptionError."""
        chosen = self.node_positions(machine)
        per_node = [threads_of(machine, k, self.threads, "threads") for k in chosen]
        return np.repeat(np.array(chosen, dtype=np.int64), per_node)

    def arrival_streams(self, machine: Machine) -> int:
        """Each AEU has arrivals of its own."""
        return len(self.aeu_nodes(machine))

    def _node_ids(self, machine: Machine) -> list[int]:
        return [machine.nodes[position].id for position in self.aeu_nodes(machine)]

    def home_position(self, machine: Machine) -> int:
        """Position of the one node with data under ``single-ram``. Raises DescriptionError."""
        if self.home is None:
            holding = [
                k for k in self.node_positions(machine) if machine.nodes[k].memory_bytes != 0
            ]
            if not holding:
                raise DescriptionError(("home",), "none of the nodes has memory: expected a home")
            return holding[0]
        position = node_positions(machine).get(self.home)
        if position is None or machine.nodes[position].memory_bytes == 0:
            what = "does not exist" if position is None else "has no memory"
            raise DescriptionError(
                ("home",), f"node {self.home} of machine '{machine.name}' {what}"
            )
        return position
