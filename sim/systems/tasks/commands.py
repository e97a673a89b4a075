"""Observations and commands of policies of tasks, independent of the plane.

Checks of commands of policies of tasks: one clear line for what cannot be done.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ....inputs.grouping import by_key
from ...control.user_policy import CommandCheck, Origin
from ...kernel.arrays import Floats, Ints
from .program import Path

SAMPLE_S = 0.1
"""How often the use of table parts and nodes is sampled (the source's 100 ms)."""


@dataclass(frozen=True)
class PartUse:
    """A part of a table, and its use in the S samples since the placer was last asked.

    ``node``: a position; None: on all nodes in turn. ``pages`` of 4 KB. ``busy``: it is being
    moved, or its table partitioned or merged; ``targets``: nodes that rows of it are copied to, now
    or later. ``cpu`` (S,): threads of its own node that work on it, on average; ``memory_Bps``
    (S,): what these read and write. Stolen tasks are left out.
    """

    table: str
    part: int
    node: int | None
    rows: int
    pages: int
    busy: bool
    targets: tuple[int, ...]
    cpu: Floats
    memory_Bps: Floats


@dataclass(frozen=True)
class PlacerObservation:
    """What a placer sees: parts, and nodes likewise ((n,) or (n, S), in the machine's order).

    ``threads`` (n,): workers of each node; ``memory_peak_Bps`` (n,); ``free_pages`` (n,).
    ``move_s``, ``partition_s``: time per page, as the machine file says.
    """

    time_s: float
    parts: tuple[PartUse, ...]
    threads: Ints
    node_cpu: Floats
    node_memory_Bps: Floats
    memory_peak_Bps: Floats
    free_pages: Ints
    move_s: float
    partition_s: float


@dataclass(frozen=True)
class MovePart:
    """Move part ``part`` of a table to a node (a position). ``queries_wait``: its queries do,
    meanwhile; else they go on where it was, as while pages are moved (``move_pages``).
    """

    table: str
    part: int
    node: int
    queries_wait: bool = True


@dataclass(frozen=True)
class PartitionTable:
    """Double the parts of a table: part p becomes parts 2p and 2p + 1. Queries go on meanwhile.

    ``nodes``: a position for each of the new parts; those that are not to stay on the node of the
    part that they are made from are moved there once all is split, as ``queries_wait`` says (see
    ``MovePart``). Empty: all stay.
    """

    table: str
    nodes: tuple[int, ...] = ()
    queries_wait: bool = True


@dataclass(frozen=True)
class MergeTable:
    """Merge the parts of a table into one, on that node (a position)."""

    table: str
    node: int


PlacerCommand = MovePart | PartitionTable | MergeTable


@dataclass(frozen=True)
class StealingObservation:
    """What a stealing policy sees, by class of tasks.

    ``memory_Bps``: exponential average of the memory throughput of a task; NaN before the first
    one has ended. ``waiting`` (n,): tasks in the queues of each node; ``idle`` (n,): workers
    without work. ``threshold_Bps``: the machine's; None where its file has none.
    """

    time_s: float
    memory_Bps: Mapping[str, float]
    waiting: Ints
    idle: Ints
    threshold_Bps: float | None


@dataclass(frozen=True)
class AllowStealing:
    """From now on tasks of these classes may be stolen by workers of other nodes; no others.

    ``within_node``: whether a worker may take from the queue of another one of its node, where each
    worker has a queue.
    """

    classes: frozenset[str]
    within_node: bool = True


@dataclass(frozen=True)
class CoresObservation:
    """What an allocator of cores sees: averages since it was last asked.

    ``allocated``: cores in use, as (node position, core of the node). ``cpu_load``: of their time,
    what tasks take, 0 to 1; workers that poll for tasks do not count. ``memory_bytes`` (n,): how
    much of the data that is worked on lies on each node. ``interconnect_Bps``,
    ``controllers_Bps``: traffic over all links, and of all controllers.
    """

    time_s: float
    cores: Ints
    allocated: tuple[tuple[int, int], ...]
    cpu_load: float
    memory_bytes: Floats
    interconnect_Bps: float
    controllers_Bps: float


@dataclass(frozen=True)
class AllocateCore:
    """Threads may run on this core from now on, too."""

    node: int
    core: int


@dataclass(frozen=True)
class ReleaseCore:
    """Threads leave this core."""

    node: int
    core: int


CoresCommand = AllocateCore | ReleaseCore


@dataclass(frozen=True)
class SwitchNode:
    """Threads may run on a node's cores from now on, or on none of them: a fault, or its end."""

    node: int
    runs: bool


@dataclass(frozen=True)
class ScanSeen:
    """A kind of scan: ``scan`` is its query and operator, ``home`` the node of the table parts that
    it reads (a position; None: all in turn), ``node`` that of the thread.

    Of one task: ``data_bytes`` and ``result_bytes``. ``latency_ns`` of a line from there to the
    thread. ``interconnect_Bps``, ``engine_copies``: background traffic from and to the thread's
    node, and copies under way at its copy engine. ``path`` now, ``paths`` that it may take;
    ``seconds``: what a task would take by a path, as it is simulated alone.
    """

    scan: str
    home: int | None
    node: int
    data_bytes: float
    latency_ns: float
    result_bytes: float
    interconnect_Bps: float
    engine_copies: float
    path: Path
    paths: tuple[Path, ...]
    seconds: Callable[[Path], float]


@dataclass(frozen=True)
class AccessPathObservation:
    """What a chooser of access paths sees: kinds of scans that do not say theirs."""

    time_s: float
    scans: tuple[ScanSeen, ...]


@dataclass(frozen=True)
class ChoosePath:
    """Scans of this kind that begin from now on take that path."""

    scan: str
    home: int | None
    path: Path


def check_placement(
    commands: Any, seen: PlacerObservation, policy_name: str, origin: Origin | None = None
) -> tuple[PlacerCommand, ...]:
    """The commands of a placer. Raises InputError for an unknown table, part or node, a table that
    is busy or has two commands, and parts with fewer than two rows that are to be split.
    """
    check = CommandCheck(policy_name, origin)
    tables = by_key((use.table, use) for use in seen.parts)
    nodes = len(seen.threads)
    touched: set[tuple[str, int]] = set()
    found = check.listed(commands, MovePart, PartitionTable, MergeTable)
    for command in found:
        parts = tables.get(command.table) if isinstance(command.table, str) else None
        if parts is None:
            check.refuse(f"unknown table {command.table!r}", f"one of {', '.join(tables)}")
        what = f"table '{command.table}': "
        if isinstance(command, MovePart):
            check.position(f"{what}part", command.part, len(parts))
            check.position(f"{what}node", command.node, nodes)
            used = [parts[command.part]]
        else:
            used = parts
        if isinstance(command, MergeTable):
            check.position(f"{what}node", command.node, nodes)
            if len(parts) < 2:
                check.refuse(f"{what}a single part cannot be merged", "a table of several parts")
        if not isinstance(getattr(command, "queries_wait", True), bool):
            check.refuse(f"{what}queries_wait {command.queries_wait!r}", "True or False")
        if isinstance(command, PartitionTable):
            if len(command.nodes) not in (0, 2 * len(parts)):
                check.refuse(
                    f"{what}{len(command.nodes)} nodes for {2 * len(parts)} new parts",
                    "none, or a node for each",
                )
            for node in command.nodes:
                check.position(f"{what}node", node, nodes)
            if min(part.rows for part in parts) < 2:
                check.refuse(f"{what}a part with one row cannot be split", "more rows")
        for part in used:
            if part.busy:
                check.refuse(f"{what}part {part.part} is busy", "no command until it is not")
            if (command.table, part.part) in touched:
                check.refuse(f"{what}two commands", "at most one for a part")
            touched.add((command.table, part.part))
    return tuple(found)


def check_stealing(
    commands: Any, seen: StealingObservation, policy_name: str, origin: Origin | None = None
) -> tuple[AllowStealing, ...]:
    """The commands of a stealing policy. Raises InputError for an unknown class of tasks."""
    check = CommandCheck(policy_name, origin)
    found = check.listed(commands, AllowStealing)
    if len(found) > 1:
        check.refuse(f"{len(found)} commands", "at most one AllowStealing")
    for command in found:
        try:
            unknown = sorted(set(command.classes) - set(seen.memory_Bps))
        except TypeError:
            check.refuse("classes that are no set of names", "a frozenset of classes")
        if unknown:
            check.refuse(f"unknown class {unknown[0]!r}", f"one of {', '.join(seen.memory_Bps)}")
    return tuple(
        AllowStealing(frozenset(command.classes), bool(command.within_node)) for command in found
    )


def check_cores(
    commands: Any, seen: CoresObservation, policy_name: str, origin: Origin | None = None
) -> tuple[CoresCommand, ...]:
    """The commands of an allocator of cores. Raises InputError for a core that the machine has not,
    one that is allocated or released twice, and for a release of the last one.
    """
    check = CommandCheck(policy_name, origin)
    found = check.listed(commands, AllocateCore, ReleaseCore)
    allocated = set(seen.allocated)
    for command in found:
        check.position("node", command.node, len(seen.cores))
        cores = int(seen.cores[command.node])
        check.position(f"core of node {command.node}", command.core, cores)
        core = (command.node, command.core)
        taken = core in allocated
        if isinstance(command, AllocateCore):
            if taken:
                check.refuse(f"core {core} is allocated already", "one that is not")
            allocated.add(core)
        else:
            if not taken:
                check.refuse(f"core {core} is not allocated", "one that is")
            allocated.remove(core)
    if not allocated:
        check.refuse("no core is left", "at least one")
    return tuple(found)


def check_access_paths(
    commands: Any, seen: AccessPathObservation, policy_name: str, origin: Origin | None = None
) -> tuple[ChoosePath, ...]:
    """The commands of a chooser of access paths. Raises InputError for an unknown kind of scan, and
    for a path that it cannot take, such as copies that may be stale.
    """
    check = CommandCheck(policy_name, origin)
    scans = {(scan.scan, scan.home): scan for scan in seen.scans}
    found = check.listed(commands, ChoosePath)
    for command in found:
        scan = scans.get((command.scan, command.home))
        if scan is None:
            listed = ", ".join(f"{name} of node {home}" for name, home in scans)
            check.refuse(f"unknown scan {command.scan!r} of node {command.home!r}", listed)
        if command.path == "copy-engine-noncoherent" and command.path not in scan.paths:
            check.refuse(
                f"scan '{command.scan}' by copies that are not coherent, which may be stale",
                "a copy engine that makes them, and the table in system.unchanging",
            )
        if command.path not in scan.paths:
            check.refuse(
                f"scan '{command.scan}' by {command.path!r}", f"one of {', '.join(scan.paths)}"
            )
    return tuple(found)
