"""Checks of commands of policies of tasks: one clear line for what cannot be done."""

from __future__ import annotations

from typing import Any

from ...control.command_check import CommandCheck
from ...control.user_policy import Origin
from .commands import (
    AccessPathObservation,
    AllocateCore,
    AllowStealing,
    ChoosePath,
    CoresCommand,
    CoresObservation,
    MergeTable,
    MovePart,
    PartitionTable,
    PlacerCommand,
    PlacerObservation,
    ReleaseCore,
    StealingObservation,
)


def check_placement(
    commands: Any, seen: PlacerObservation, policy_name: str, origin: Origin | None = None
) -> tuple[PlacerCommand, ...]:
    """The commands of a placer. Raises InputError for an unknown table, part or node, a table that
    is busy or has two commands, and parts with fewer than two rows that are to be split.
    """
    check = CommandCheck(policy_name, origin)
    tables: dict[str, list[Any]] = {}
    for use in seen.parts:
        tables.setdefault(use.table, []).append(use)
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
