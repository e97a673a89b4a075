"""``numatwin emulate --count``: what the command did to memory, as a Record and as text."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..sim.run.record import Record
    from ..topologies.emulator import GuestMachine, GuestRun


class Detail(StrEnum):
    """What is counted; each takes longer than the one before."""

    accesses = "accesses"
    caches = "caches"
    coherence = "coherence"


def run_and_count(
    guest: GuestMachine,
    command: Sequence[str],
    detail: Detail,
    interval: int = 0,
    region: tuple[float | None, float | None] = (None, None),
    **options: Any,
) -> tuple[GuestRun, Record]:
    """Runs the command with its traffic counted, also where it is stopped before it ends.

    ``interval``: instructions of an interval, where the command's time is to be predicted; else 0.
    ``region``: the seconds from which on, and for which, it is counted. ``options`` are those of
    ``run_in_guest``.
    """
    from ..sim.run.counted import counted_record
    from ..topologies.emulator.counting import Counting, run_counted

    began = time.perf_counter()
    from_s, for_s = region
    counting = Counting(
        detail is not Detail.accesses,
        detail is Detail.coherence,
        interval,
        from_s=from_s,
        for_s=for_s,
    )
    done = run_counted(guest, command, counting, keep_stopped=True, **options)
    wall_s = time.perf_counter() - began
    return done.run, counted_record(done.traffic, command, wall_s, done.run)


def print_counted(record: Record) -> None:
    """To standard error: standard output is the command's."""
    from .output import console, show
    from .record_facts import record_parts

    sys.stdout.flush()
    show(record_parts(record), console(stderr=True))
