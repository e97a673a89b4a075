"""Fields of a scenario of tasks: placement of tables, workers, queues, hints.

Tables worked out: bits of index vectors, bytes of dictionaries, parts and where they lie.

A column of d distinct values has an index vector of ceil(log2 d) bits a row, and a sorted
dictionary of its values. Each part of a table has an index vector and a dictionary of its own. A
column with few values has nearly all of them in each part; a key's values are divided with the
rows. So the dictionary of a column with more than a sixteenth as many values as rows counts by row,
any other by part. A column that is not encoded has its values in place of ids.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from ....inputs import DescriptionError, Quantity
from ....inputs.names import Name
from ....inputs.quantities import DurationOrZero, Size
from ....inputs.shared_work import once
from ....inputs.yaml_file import Place
from ....topologies import Machine
from ....workloads import Workload
from ....workloads.operators import Intermediates
from ....workloads.schema import PARTS_MAX, Column, DataObject
from ...kernel.arrays import Floats, Ints
from ...machine.assumptions import Assumption
from ...machine.memory_policy import MemoryField, Room, described_at, memory_nodes
from ...machine.os_memory import Pages
from ...planes.plane import Change
from ..descriptor import Default, SystemSpec
from ..fields import (
    Count,
    Nodes,
    Threads,
    listed_positions,
    node_positions,
    positions_in_use,
    threads_of,
)
from .facts import ENGINE, OperatorInstructions, TasksFacts
from .faults import NodeFault, changes_of, check_faults
from .paths import BackgroundSpec, background_of, check_paths
from .program import Part, Table

UNMAPPED = "of memory that operators map, and none does: intermediates: materialised would"
CHUNK_BYTES = float(512 * 1024)
CHUNKS = ("64 KiB", "2 MiB")
PLACED_KEPT = 4  # with their machines, which may be large
RULES = ("round-robin", "interleaved", "first-touch")


def _placement(raw: Any) -> Any:
    ids = raw if isinstance(raw, (list, tuple)) else [raw]
    if raw in RULES or (
        ids and all(isinstance(k, int) and not isinstance(k, bool) and k >= 0 for k in ids)
    ):
        return raw if isinstance(raw, str) else tuple(ids)
    raise ValueError(
        f"expected {', '.join(RULES)}, or the node ids of its parts in turn, such as [0, 2]"
    )


Placement = Annotated[
    str | tuple[int, ...],
    BeforeValidator(_placement, json_schema_input_type=str | int | tuple[int, ...]),
]


class TasksSystem(SystemSpec):
    """Queries as tasks on workers that are pinned to nodes.

    ``placement``: where parts lie at the start, of tables that ``tables`` does not name:
    ``round-robin`` over the nodes with memory, part after part and table after table;
    ``interleaved``, each over all nodes with memory, page by page; ``first-touch``, each part on
    the node of the thread that loads it: threads on the nodes ``loaders`` (all with workers by
    default) load the parts of each table in turn. Or node ids, for the parts in turn.
    ``memory``: a policy of Linux for tables in place of ``placement``; what operators allocate on
    the way follows the policy of the process.
    ``parts``: of each table at the start, in place of what the workload says; at most one a row.
    ``nodes`` have workers: how many (the first with cores), or which ids; all with cores by
    default. ``threads``: workers per node, more than it has hardware threads where they are not
    pinned. ``concurrency``: tasks of a stage at most; by default as
    many as workers are free. ``queue``: of tasks, one a ``node``, one a ``worker``, or one of the
    whole ``machine``, as of an engine that knows nothing of nodes.
    ``affinity``: each worker has its ``core``; or the operating system moves it (Linux's rules,
    ``machine/os_scheduler.py``) within its ``node``, or over all nodes with workers (``none``).
    ``switch``: what it costs that another thread takes over a processor, beyond cold caches.
    ``look``: how long a worker without work looks for some before it sleeps; by default it never
    sleeps, as in the SAP HANA prototype. ``wake``: how long it takes to run once it is woken: a
    futex's wake-up, with the processor out of a shallow idle state, is a few microseconds.
    ``task``: time of a worker per task beyond its entries: off a queue, and its end. (For
    comparison: morsels of 100,000 rows hide it; Leis et al., SIGMOD 2014.)
    ``intermediates``: where results of operators lie. ``pooled``: in memory that the engine keeps;
    ``pipelined``: in caches; ``materialised``: in memory that each task maps, touches first and
    that is unmapped again, and so do the values of each column that an operator works on, once rows
    have been filtered. ``pages``: of this memory, ``small`` (4 KiB) or ``huge`` (2 MiB) ones;
    ``mapped_from``: what is smaller comes from memory that the C library keeps (glibc: 128 KiB, or
    the largest of up to 32 MiB that a program has given back).
    ``instructions``: of the operators' loops, where they are not the usual ones.
    ``chunk``: what a copy engine copies at a time for a scan, into one of two buffers of its
    thread. ``unchanging``: tables whose rows cannot change any more, so that copies need not be
    coherent. ``background``: workers besides the queries'. ``faults``: nodes whose cores stop.
    """

    kind: Literal["tasks"]
    placement: Placement = "round-robin"
    tables: dict[Name, Placement] = Field(default_factory=dict)
    loaders: Nodes | None = None
    parts: Annotated[Count, Field(le=PARTS_MAX)] | None = None
    nodes: Nodes | None = None
    threads: Threads = "cores"
    concurrency: Count | None = None
    queue: Literal["node", "worker", "machine"] = "node"
    affinity: Literal["core", "node", "none"] = "core"
    switch: Annotated[
        DurationOrZero,
        Default(
            "Estimate, not verified: some microseconds without caches (Li, Ding and Shen, "
            "Quantifying the cost of context switch, 2007)"
        ),
    ] = Quantity(2e-6, 2e-6, 2e-6)
    look: DurationOrZero | None = None
    wake: Annotated[DurationOrZero, Default("Estimate: a worker that sleeps is woken")] = Quantity(
        5e-6, 5e-6, 5e-6
    )
    task: Annotated[DurationOrZero, Default("Estimate: a task is made, taken and ended")] = (
        Quantity(2e-6, 2e-6, 2e-6)
    )
    intermediates: Intermediates = "pooled"
    pages: Pages = "small"
    mapped_from: Size = Quantity.exact(128 << 10)
    instructions: Annotated[
        OperatorInstructions, Default("Counted by hand from the loops (see OperatorInstructions)")
    ] = OperatorInstructions()
    chunk: Annotated[
        Size, Default("Estimate: two buffers fit in a core's share of the last cache", CHUNKS)
    ] = Quantity.exact(CHUNK_BYTES)
    unchanging: tuple[Name, ...] = ()
    background: Annotated[tuple[BackgroundSpec, ...], Field(max_length=64)] = ()
    faults: Annotated[tuple[NodeFault, ...], Field(max_length=1_000)] = ()

    PAUSE_MAX_S: ClassVar[float] = 50_000.0

    def assumptions(self, machine: Machine) -> Iterator[Assumption]:
        facts = machine.description.facts_of(ENGINE, TasksFacts)
        loops = dict(facts.loops or ()) if facts is not None else {}
        known = {f"instructions of {name}" for name, time in loops.items() if time is not None}
        return (one for one in super().assumptions(machine) if one.name not in known)

    def misfit(self, workload: Workload) -> str | None:
        """Why this cannot run ``workload``; None where it can."""
        for name, stored in workload.objects.items():
            if stored.columns is None:
                return f"object '{name}' is not a table with rows and columns"
        return None

    def changes(self, machine: Machine) -> tuple[Change, ...]:
        return changes_of(self.faults, machine)

    def check(self, machine: Machine, workload: Workload) -> None:
        """Raises DescriptionError where the machine does not have what this says."""
        workers = self.workers(machine)
        self._check_engines(machine, workload)
        check_faults(self.faults, machine, self.worker_positions(machine))
        tables = self.placed(machine, workload)
        used = bytes_on_nodes(tables, np.array(self.laid_out(machine, workload).spreads))
        for node, needed in zip(machine.nodes, used, strict=True):
            if needed > node.memory_bytes * (1 + 1e-9):
                raise DescriptionError(
                    ("placement",),
                    f"node {node.id} of machine '{machine.name}' has "
                    f"{node.memory_bytes / 1e9:.4g} GB of memory, and parts of {needed / 1e9:.4g} "
                    "GB lie there: expected a smaller workload, or another placement",
                )
        if machine.copy_engines:
            self._check_buffers(machine, workers, used)

    def _check_engines(self, machine: Machine, workload: Workload) -> None:
        for index, name in enumerate(self.unchanging):
            if name not in workload.objects:
                raise DescriptionError(
                    ("unchanging", index),
                    f"no such table: expected one of {', '.join(workload.objects)}",
                )
        background_of(machine, self.background)
        check_paths(machine, workload, self.unchanging)
        for engine in machine.copy_engines:
            if self.chunk.value > engine.largest_bytes:
                raise DescriptionError(
                    ("chunk",),
                    f"copy engines of machine '{machine.name}' copy at most "
                    f"{engine.largest_bytes / 2**20:g} MiB at a time",
                )

    def _check_buffers(self, machine: Machine, workers: Ints, used: Floats) -> None:
        """Two chunks for each thread have room on its node; of one without memory nobody knows."""
        for node, threads, taken in zip(machine.nodes, workers, used, strict=True):
            room = node.memory_bytes - taken
            if node.memory_bytes > 0 and 2.0 * self.chunk.value * threads > room:
                raise DescriptionError(
                    ("chunk",),
                    f"node {node.id} of machine '{machine.name}' has {room / 1e9:.4g} GB left "
                    f"for two buffers of each of its threads ({threads}): expected a smaller chunk",
                )

    def worker_positions(self, machine: Machine) -> tuple[int, ...]:
        """Positions of the nodes with workers, rising."""
        return positions_in_use(machine, self.nodes)

    def workers(self, machine: Machine) -> Ints:
        """(n,) workers of each node."""
        found = np.zeros(len(machine.nodes), dtype=np.int64)
        for position in self.worker_positions(machine):
            if self.affinity != "core" and isinstance(self.threads, int):
                found[position] = self.threads
            else:
                found[position] = threads_of(machine, position, self.threads, "threads")
        return found

    def stored(self, workload: Workload) -> dict[str, DataObject]:
        """The tables by name, each in as many parts as this says, or the workload."""
        found = dict(workload.objects)
        for name, table in workload.objects.items():
            if self.parts is not None and table.rows is not None:
                found[name] = table.model_copy(update={"parts": min(self.parts, table.rows)})
        return found

    def notes(self, machine: Machine, workload: Workload) -> list[str]:
        stated = [name for name in ("pages", "mapped_from") if name in self.model_fields_set]
        where = {
            getattr(node.spec, "intermediates", None) or self.intermediates
            for nodes in workload.graphs.values()
            for node in nodes
        }
        unused = (
            [] if "materialised" in where else [f"system.{name}: {UNMAPPED}" for name in stated]
        )
        return [*self.laid_out(machine, workload).notes, *unused]

    def placed(self, machine: Machine, workload: Workload) -> tuple[Table, ...]:
        """The tables with their parts where they lie at the start."""
        return self.laid_out(machine, workload).tables

    def laid_out(self, machine: Machine, workload: Workload) -> "Placed":
        """The same, with the spreads of what lies on several nodes."""
        # As what they are made from is kept beside them, nothing else has its id.
        *_, placed = once(
            "placed tables",
            (id(self), id(machine), id(workload)),
            lambda: (self, machine, workload, self._placed(machine, workload)),
            lambda kept: PLACED_KEPT,
        )
        return placed

    def _placed(self, machine: Machine, workload: Workload) -> "Placed":
        stored = self.stored(workload)
        for name in self.tables:
            if name not in stored:
                raise DescriptionError(
                    ("tables", name), f"no such table: expected one of {', '.join(stored)}"
                )
        with described_at(("placement",)):
            with_memory = memory_nodes(machine)
        loaders = self._loaders(machine, with_memory)
        found, turn, laid = [], 0, _Laid(machine, self.memory, stored)
        for name, table in stored.items():
            if self.memory is not None and self.memory.of(name):
                found.append(laid.table(name, table, self.memory, loaders))
                continue
            rule = self.tables.get(name, self.placement)
            nodes: list[int | None]
            if rule == "interleaved":
                nodes = [None] * table.parts
            elif rule == "round-robin":
                nodes = [with_memory[(turn + k) % len(with_memory)] for k in range(table.parts)]
                turn += table.parts
            elif rule == "first-touch":
                nodes = [loaders[k % len(loaders)] for k in range(table.parts)]
            else:
                assert isinstance(rule, tuple)
                place: Place = ("tables", name) if name in self.tables else ("placement",)
                listed = _with_memory(machine, rule, place)
                nodes = [listed[k % len(listed)] for k in range(table.parts)]
            found.append(laid.taken(table_of(name, table, nodes)))
        return Placed(tuple(found), tuple(laid.spreads), laid.room.notes())

    def _loaders(self, machine: Machine, with_memory: list[int]) -> list[int]:
        """Where what the loading threads touch first lies: on their nodes, or on the nearest ones
        with memory."""
        if isinstance(self.loaders, tuple):
            on = listed_positions(machine, self.loaders, "loaders")
        else:
            on = self.worker_positions(machine)
            if self.loaders is not None and self.loaders > len(on):
                raise DescriptionError(
                    ("loaders",), f"{len(on)} nodes have workers: expected at most {len(on)}"
                )
            on = on[: self.loaders]
        return [nearest(machine, position, with_memory) for position in on]


@dataclass(frozen=True)
class Placed:
    """``spreads``: see Program. ``notes``: what did not fit where it was meant to go."""

    tables: tuple[Table, ...]
    spreads: tuple[tuple[float, ...], ...]
    notes: list[str]


class _Laid:
    """Tables put into the nodes' memory one after the other, as their policies say."""

    def __init__(
        self, machine: Machine, memory: MemoryField | None, stored: Mapping[str, DataObject]
    ) -> None:
        self.room, shares = Room(machine), np.zeros(len(machine.nodes))
        if memory is not None:
            memory.check_objects(stored)
        if memory is not None and memory.policy is not None:
            with described_at(("memory",)):
                shares = memory.shares(machine)
        else:
            able = memory_nodes(machine)
            shares[able] = 1.0 / len(able)
        self.spreads = [tuple(shares.tolist())]

    def table(
        self, name: str, stored: DataObject, memory: MemoryField, loaders: list[int]
    ) -> Table:
        """A table whose parts are touched first by the ``loaders`` in turn."""
        policy = memory.of(name)
        assert policy is not None
        nodes: list[int | None] = []
        spreads: list[int] = []
        plain = table_of(name, stored, [0] * stored.parts)
        whole = sum(part_bytes(plain, part) for part in plain.parts)
        for k, part in enumerate(plain.parts):
            with described_at(memory.place(name)):
                size = part_bytes(plain, part)
                shares = self.room.put(name, size, policy, loaders[k % len(loaders)], whole)
            row = tuple(shares.tolist())
            on_one = max(row) > 1 - 1e-12
            nodes.append(int(shares.argmax()) if on_one else None)
            if not on_one and row not in self.spreads:
                self.spreads.append(row)
            spreads.append(0 if on_one else self.spreads.index(row))
        return table_of(name, stored, nodes, spreads)

    def taken(self, table: Table) -> Table:
        """The same table, whose room others do not have any more."""
        used = bytes_on_nodes([table], np.array(self.spreads))
        self.room.left = np.maximum(self.room.left - used, 0.0)
        return table


def nearest(machine: Machine, position: int, among: list[int]) -> int:
    """Of the nodes ``among``, the one with the lowest latency from there, then position."""
    if position in among:
        return position
    latency = np.nan_to_num(machine.latency_ns[position], nan=np.inf)
    return min(among, key=lambda k: (latency[k], k))


def _with_memory(machine: Machine, ids: tuple[int, ...], place: Place) -> list[int]:
    positions = node_positions(machine)
    found = []
    for index, node_id in enumerate(ids):
        where: Place = (*place, index) if len(ids) > 1 else place
        if node_id not in positions:
            raise DescriptionError(
                where, f"node {node_id} of machine '{machine.name}' does not exist"
            )
        if machine.nodes[positions[node_id]].memory_bytes <= 0:
            raise DescriptionError(
                where, f"node {node_id} of machine '{machine.name}' has no memory for a part"
            )
        found.append(positions[node_id])
    return found


BY_ROW_ABOVE = 1 / 16  # of the rows


def id_bits(distinct: int) -> int:
    """Bits of an id in an index vector."""
    return max((distinct - 1).bit_length(), 1)


def column_bits(column: Column) -> int:
    """Of a row: an id, or a value where the column is not encoded."""
    return id_bits(column.distinct) if column.encoded else round(8 * column.value_size.value)


def dictionary_bytes(column: Column) -> float:
    """Of the whole column."""
    return column.distinct * column.value_size.value if column.encoded else 0.0


def counts_by_row(column: Column, rows: int) -> bool:
    """Whether its dictionary is divided with the rows of the table."""
    return column.distinct > BY_ROW_ABOVE * rows


def bytes_per_row(stored: DataObject) -> float:
    """Index vectors, and the dictionaries that are divided with the rows."""
    assert stored.rows is not None
    assert stored.columns is not None
    return sum(
        column_bits(column) / 8
        + (dictionary_bytes(column) / stored.rows if counts_by_row(column, stored.rows) else 0.0)
        for column in stored.columns.values()
    )


def fixed_bytes(stored: DataObject) -> float:
    """Dictionaries that each part has of its own."""
    assert stored.rows is not None
    assert stored.columns is not None
    return sum(
        dictionary_bytes(column)
        for column in stored.columns.values()
        if not counts_by_row(column, stored.rows)
    )


def part_dictionary_bytes(stored: DataObject, name: str) -> float:
    """Of one column's dictionary in one part, as parts are when a run begins."""
    assert stored.rows is not None
    assert stored.columns is not None
    column = stored.columns[name]
    parts = stored.parts if counts_by_row(column, stored.rows) else 1
    return dictionary_bytes(column) / parts


def part_rows(rows: int, parts: int) -> tuple[int, ...]:
    """Rows of each part, which differ by one at most."""
    return tuple(rows * (k + 1) // parts - rows * k // parts for k in range(parts))


def part_bytes(table: Table, part: Part) -> float:
    """What a part takes of its node's memory."""
    return part.rows * table.bytes_per_row + table.fixed_bytes


def table_of(
    name: str, stored: DataObject, nodes: Sequence[int | None], spreads: Sequence[int] = ()
) -> Table:
    """The table with its parts on ``nodes``, one a part; on ``spreads`` where none."""
    assert stored.rows is not None
    rows = part_rows(stored.rows, stored.parts)
    return Table(
        name=name,
        parts=tuple(
            Part(count, node, spreads[k] if spreads else 0)
            for k, (count, node) in enumerate(zip(rows, nodes, strict=True))
        ),
        bytes_per_row=bytes_per_row(stored),
        fixed_bytes=fixed_bytes(stored),
        group=stored.group,
    )


def bytes_on_nodes(tables: Sequence[Table], spreads: Floats) -> Floats:
    """(n,) bytes of all parts; ``spreads`` (S, n): shares of those on several nodes."""
    found = np.zeros(spreads.shape[1])
    for table in tables:
        for part in table.parts:
            size = part_bytes(table, part)
            if part.node is None:
                found += size * spreads[part.spread]
            else:
                found[part.node] += size
    return found
