"""Where the parts of tables lie, and operations in progress: moves, partitioning, merges.

Planes ask it what to copy, say when a copy has arrived, and read the parts from it; that nothing
is lost or doubled on the way is checked here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import ceil
from typing import Any

import numpy as np

from ...kernel.arrays import Ints
from ...planes.outcome import ControlEvent
from .commands import MergeTable, MovePart, PartitionTable, PlacerCommand
from .program import Table

PAGE_BYTES = 4096


@dataclass(frozen=True)
class PartState:
    """A part of a table now. ``node``: a position; None: on those of ``spread`` in turn.

    ``busy``: no command may touch it. ``blocked``: its tasks wait until it has been moved.
    ``targets``: nodes that rows of it are copied to, now or later.
    """

    rows: int
    node: int | None
    pages: int
    busy: bool = False
    blocked: bool = False
    targets: tuple[int, ...] = ()
    spread: int = 0


@dataclass(frozen=True)
class Copy:
    """``pages`` of part ``part`` of a table to be read on one node and written on another, or on
    the same one, each ``page_s`` long at least. ``source`` None: pages lie on all nodes in turn.
    """

    number: int
    table: str
    part: int
    source: int | None
    target: int
    pages: int
    page_s: float
    spread: int = 0


class _Change:
    """A command under way: the copies that it still waits for."""

    def __init__(self, command: PlacerCommand, copies: Sequence[Copy], began_s: float) -> None:
        self.command, self.began_s = command, began_s
        self.waiting = {copy.number for copy in copies}
        self.targets = {copy.part: copy.target for copy in copies}


class Layout:
    """The parts of all ``tables``; ``capacity_pages`` (n,) of each node's memory.

    ``move_s``, ``partition_s``: time per page. ``node_ids``: what the record calls the nodes.
    ``events``: what the control plane's record shall show, in order of time. ``history``: (time,
    table, its parts from then on), a part as [rows, id of its node or None, whether it is busy].
    ``arrived_pages``, ``sent_pages``: of all copies so far.
    """

    def __init__(
        self,
        tables: Sequence[Table],
        capacity_pages: Ints,
        move_s: float,
        partition_s: float,
        node_ids: Sequence[int],
        spreads: Sequence[Sequence[float]] = (),
    ) -> None:
        self.tables = {table.name: table for table in tables}
        self.move_s, self.partition_s = move_s, partition_s
        self.node_ids = node_ids
        self.capacity_pages, self.spreads = capacity_pages, spreads
        self.parts: dict[str, tuple[PartState, ...]] = {
            table.name: tuple(
                PartState(part.rows, part.node, self._pages(table, part.rows), spread=part.spread)
                for part in table.parts
            )
            for table in tables
        }
        self.events: list[ControlEvent] = []
        self.history: list[tuple[float, str, list[list[Any]]]] = []
        self.sent_pages = self.arrived_pages = 0
        self._rows = {name: sum(p.rows for p in parts) for name, parts in self.parts.items()}
        self._changes: list[_Change] = []
        self._under_way: dict[int, Copy] = {}
        self._copies = 0
        for name in self.parts:
            self._note(0.0, name)

    @property
    def copies(self) -> tuple[Copy, ...]:
        """Those under way, in the order in which they began."""
        return tuple(self._under_way.values())

    def used_pages(self) -> Ints:
        """(n,) pages on each node, those included that copies under way are to fill."""
        nodes = len(self.capacity_pages)
        used = np.zeros(nodes)
        for part in chain.from_iterable(self.parts.values()):
            if part.node is None:
                share = np.array(self.spreads[part.spread]) if self.spreads else 1.0 / nodes
                used += part.pages * share
            else:
                used[part.node] += part.pages
        for copy in self.copies:
            if copy.source != copy.target:
                used[copy.target] += copy.pages
        return np.ceil(used).astype(np.int64)

    @property
    def free_pages(self) -> Ints:
        """(n,) pages that could still be put on each node."""
        return np.asarray(np.maximum(self.capacity_pages - self.used_pages(), 0))

    def order(self, command: PlacerCommand, time_s: float) -> tuple[Copy, ...]:
        """The copies that begin now for a command that was checked (``check.py``).

        None where a memory would overflow: then the record says so.
        """
        parts = self.parts[command.table]
        if isinstance(command, MovePart):
            copies = [self._copy(command.table, command.part, command.node, self.move_s)]
        elif isinstance(command, PartitionTable):
            # Those that are interleaved are split where there is most room.
            most = int(np.argmax(self.free_pages))
            homes = [most if part.node is None else part.node for part in parts]
            copies = [
                self._copy(command.table, p, home, self.partition_s) for p, home in enumerate(homes)
            ]
        else:
            copies = [
                self._copy(command.table, p, command.node, self.partition_s)
                for p in range(len(parts))
            ]
        wanted = np.zeros(len(self.capacity_pages), dtype=np.int64)
        for copy in copies:
            wanted[copy.target] += copy.pages  # the old pages are free when all has arrived
        if (short := np.flatnonzero(wanted > self.free_pages)).size:
            node = self.node_ids[int(short[0])]
            self._log(time_s, "refused", f"{_words(command, self)}: node {node} has no room")
            return ()
        self._begin(_Change(command, copies, time_s), copies, time_s)
        return tuple(copies)

    def arrived(self, number: int, time_s: float) -> tuple[Copy, ...]:
        """That copy has ended; returns those that begin now (halves that are to lie elsewhere)."""
        copy = self._under_way.pop(number)
        self.arrived_pages += copy.pages
        change = next(c for c in self._changes if number in c.waiting)
        change.waiting.remove(number)
        if change.waiting:
            return ()
        self._changes.remove(change)
        more = self._finish(change, time_s)
        self.check()
        return more

    def command_of(self, number: int) -> PlacerCommand:
        """What that copy under way is made for."""
        return next(c.command for c in self._changes if number in c.waiting)

    def check(self) -> None:
        """Raises AssertionError where a row, or a copied page, was lost or doubled."""
        for name, parts in self.parts.items():
            if sum(part.rows for part in parts) != self._rows[name]:
                raise AssertionError(f"rows of table '{name}' were lost or doubled")
        on_the_way = sum(copy.pages for copy in self.copies)
        if self.sent_pages != self.arrived_pages + on_the_way:
            raise AssertionError("pages that were copied did not arrive")

    def _pages(self, table: Table, rows: int) -> int:
        return ceil((rows * table.bytes_per_row + table.fixed_bytes) / PAGE_BYTES)

    def _copy(self, table: str, part: int, target: int, page_s: float) -> Copy:
        self._copies += 1
        state = self.parts[table][part]
        return Copy(
            self._copies, table, part, state.node, target, state.pages, page_s, state.spread
        )

    def _begin(self, change: _Change, copies: Sequence[Copy], time_s: float) -> None:
        command = change.command
        waits = isinstance(command, MovePart) and command.queries_wait
        for copy in copies:
            p = copy.part
            targets: tuple[int, ...] = (copy.target,)
            if isinstance(command, PartitionTable):
                targets = command.nodes[2 * p : 2 * p + 2] or targets
            self._replace(command.table, p, busy=True, blocked=waits, targets=targets)
        for copy in copies:
            self._under_way[copy.number] = copy
            self.sent_pages += copy.pages
        self._changes.append(change)
        self._note(time_s, command.table)
        details = {"table": command.table, "pages": sum(copy.pages for copy in copies)}
        self._log(time_s, "transfer", f"{_words(command, self)} begins", details)

    def _finish(self, change: _Change, time_s: float) -> tuple[Copy, ...]:
        command, table = change.command, self.tables[change.command.table]
        parts = self.parts[table.name]
        took = {"table": table.name, "took_s": time_s - change.began_s}
        self._log(time_s, "done", _words(command, self), took)
        if isinstance(command, MovePart):
            self._replace(
                table.name, command.part, node=command.node, busy=False, blocked=False, targets=()
            )
            self._note(time_s, table.name)
            return ()
        if isinstance(command, MergeTable):
            rows = sum(part.rows for part in parts)
            self.parts[table.name] = (PartState(rows, command.node, self._pages(table, rows)),)
            self._note(time_s, table.name)
            return ()
        halves = tuple(
            PartState(rows, change.targets[p], self._pages(table, rows))
            for p, part in enumerate(parts)
            for rows in halved(part.rows)
        )
        self.parts[table.name] = halves
        self._note(time_s, table.name)
        copies: list[Copy] = []
        for p, node in enumerate(command.nodes):
            if node != halves[p].node:
                move = MovePart(table.name, p, node, command.queries_wait)
                copies += self.order(move, time_s)
        return tuple(copies)

    def _replace(self, table: str, part: int, **fields: Any) -> None:
        """Other ``fields`` of one part."""
        parts = self.parts[table]
        changed = replace(parts[part], **fields)
        self.parts[table] = (*parts[:part], changed, *parts[part + 1 :])

    def _note(self, time_s: float, table: str) -> None:
        """Parts of the table are others from now on."""
        parts = [
            [part.rows, None if part.node is None else self.node_ids[part.node], part.busy]
            for part in self.parts[table]
        ]
        self.history.append((time_s, table, parts))

    def _log(
        self, time_s: float, kind: str, text: str, details: dict[str, Any] | None = None
    ) -> None:
        self.events.append(ControlEvent(time_s, kind, text, details or {}))


def halved(rows: int) -> tuple[int, int]:
    """Of a part's rows, those of the two that it is split into."""
    return rows - rows // 2, rows // 2


def _words(command: PlacerCommand, layout: Layout) -> str:
    """What a command does, as the record tells it."""
    table, count = command.table, len(layout.parts[command.table])
    if isinstance(command, PartitionTable):
        return f"partition {table} into {2 * count} parts"
    node = layout.node_ids[command.node]
    if isinstance(command, MergeTable):
        return f"merge the {count} parts of {table} on node {node}"
    part = f"part {command.part} of {table}" if count > 1 else table
    return f"move {part} to node {node}"
