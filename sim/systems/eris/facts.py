"""Measured costs of an engine of ERIS's design: core time of its loops, data in the caches.

The part ``engines: {eris: …}`` of a machine file, and how implementations differ.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field, field_validator

from ....inputs.quantities import Duration
from ....inputs.yaml_file import Strict
from ....topologies.schema_types import Fact

ENGINE = "eris"
Keys = Annotated[int, Field(strict=True, ge=1, le=2**48)]


class WalkPoint(Strict):
    """One key of a batch, looked up or upserted in an index of so many dense keys, by one core."""

    keys: Keys
    lookup: Duration
    upsert: Duration


class RoutePoint(Strict):
    """A command whose target is looked up, and put into one of so many outgoing buffers."""

    targets: Keys
    time: Duration


class ScatterPoint(Strict):
    """A rank scattered over the keys by a permutation that it goes through so often on average."""

    steps: Annotated[float, Field(ge=1.0, le=4.0)]
    time: Duration


class ErisFacts(Strict):
    """Core time per unit of each loop of an engine, on a core of the first node that has any:
    measured with nothing but that loop, or fitted to measurements of it (``numatwin calibrate``).

    ``implementation``: which engine that was (see ``Implementation``); it is the one predicted.
    A machine file without this part, or with no more than lines in flight, or of a step, predicts
    ERIS as published. Fields that ``InstructionCounts`` has too stand in for its counts; what is
    left out is counted instructions ÷ (IPC × clock).
    Beside these:

    ``lines_in_flight``: misses of a batch's keys that one core has under way at a time, no more
    than its slots; where neither it nor ``walk`` is known, the geometric mean of one and these.
    ``walk``: a key by size of the index, which says how well the core hides misses; how many there
    are in a scenario, the cost model works out. ``batch``: of a batch of commands, for who makes
    it; ``batch_executed``: for who executes it; ``round``: of a round of the loop, however many
    batches it has. Where ``batch`` alone is known, it is all of these. ``gather``: a command taken
    into a batch, which is part of ``tree_entry``; those that are only routed take nothing else.
    ``message``: each of a flush's two waits, of who flushes, for a line that another core holds
    (where two cores were not measured, a message between them). ``message_read``: what who receives
    it waits for such lines each time that it takes what others have sent, however many flushes that
    were; left out, nothing. ``handed_line``: a line of many that one core writes and another one
    reads, both together; ``handed_line_read``: the reader's part of it, left out, half.
    ``part_read``: what its reader waits for a header of a part of a batch that another core wrote,
    beside ``part``; left out, nothing. ``scan_handed``: of a scan, for each worker with a part of
    it but the first, until all have the command and their results are put together.
    ``scan_line_cached``: a line of a scan for a sum that comes from the last cache; ``…_together``:
    the same while all cores of the node scan. ``scan_line_positions``: a line of a scan for
    positions that finds none. ``lookup_serial``, ``upsert_serial``: of an operation on data that
    all share, under a lock. ``level_lines``: cache lines that a step of a walk touches, one in
    ERIS's trees; the index is as large in any case.
    """

    implementation: Literal["native", "published"] = "native"
    lines_in_flight: Fact | None = None
    tree_level: Duration | None = None
    tree_entry: Duration | None = None
    upsert_level: Duration | None = None
    upsert_entry: Duration | None = None
    upsert_shared: Duration | None = None
    generate: Duration | None = None
    generate_value: Duration | None = None
    generate_ranked: Duration | None = None
    scatter: tuple[ScatterPoint, ...] = ()
    choose: Duration | None = None
    route: tuple[RoutePoint, ...] = ()
    route_level: Duration | None = None
    route_split: Duration | None = None
    flush_fixed: Duration | None = None
    flush_line: Duration | None = None
    receive: Duration | None = None
    gather: Duration | None = None
    batch: Duration | None = None
    batch_executed: Duration | None = None
    round: Duration | None = None
    group: Duration | None = None
    part: Duration | None = None
    part_read: Duration | None = None
    message: Duration | None = None
    message_read: Duration | None = None
    handed_line: Duration | None = None
    handed_line_read: Duration | None = None
    scan: Duration | None = None
    scan_handed: Duration | None = None
    scan_line_sum: Duration | None = None
    scan_line_sum_32: Duration | None = None
    scan_line_bitmap: Duration | None = None
    scan_line_bitmap_32: Duration | None = None
    scan_line_cached: Duration | None = None
    scan_line_cached_together: Duration | None = None
    scan_line_positions: Duration | None = None
    scan_position: Duration | None = None
    flatten_key: Duration | None = None
    rebuild_key: Duration | None = None
    link_level: Duration | None = None
    lookup_serial: Duration | None = None
    upsert_serial: Duration | None = None
    level_lines: Fact | None = None
    walk: tuple[WalkPoint, ...] = ()

    def _fits(self) -> None:
        if self.model_fields_set and self.model_fields_set <= {"lines_in_flight", "level_lines"}:
            object.__setattr__(self, "implementation", "published")

    @field_validator("walk", "route", "scatter")
    @classmethod
    def _sizes_rise(cls, points: tuple[Strict, ...]) -> tuple[Strict, ...]:
        sizes = [
            next(getattr(p, of) for of in ("keys", "targets", "steps") if hasattr(p, of))
            for p in points
        ]
        for one, next_ in pairwise(sizes):
            if next_ <= one:
                raise ValueError("expected rising sizes")
        return points


@dataclass(frozen=True)
class Implementation:
    """What engines of ERIS's design do each in their own way.

    ``array_tree``: an index is our engine's prefix tree in arrays, not ERIS's with pointers.
    ``held_descriptor``: between a writer's look at a buffer's descriptor and its exchange of it no
    other one can change it; else it may fail, and look again. ``late_flush``: a full buffer is
    flushed when the next command goes there, not at once. ``cached_own``: what a worker sends to
    itself stays in its own cache, at no cost but the loops'. ``cached_results``: results of a scan
    stay in the cache, chunk after chunk in the same lines, and do not go to memory.
    ``additive_lines``: what lines from other cores take comes on top of instructions, where
    it was measured (``handed_line``), as that was done so; else the two overlap.
    """

    array_tree: bool
    held_descriptor: bool
    late_flush: bool
    cached_own: bool
    cached_results: bool
    additive_lines: bool


# No engine that is known does some of it in one way and the rest in the other.
PUBLISHED, NATIVE = (Implementation(*6 * (ours,)) for ours in (False, True))


def implementation_of(facts: ErisFacts | None) -> Implementation:
    """The engine that these ``facts`` are of; ERIS as published where there are none."""
    return NATIVE if facts is not None and facts.implementation == "native" else PUBLISHED
