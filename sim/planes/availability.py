"""What a run's faults cost: throughput before, during and after them, and the time to recover."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ..kernel.histogram import Histogram
from .outcome import ControlEvent

BINS = 200  # of a run
RECOVERED = 0.9  # of the throughput before the first fault
ROUNDING = 1e-9  # of times: a look may come that much before what it was meant for


@dataclass(frozen=True)
class Look:
    """What had been counted by then."""

    time_s: float
    done: float
    latencies_ns: Histogram | None = None


def looks_at(events: Sequence[ControlEvent], horizon_s: float) -> list[float]:
    """The times at which a run with faults is looked at: evenly, and as something changes."""
    even = [horizon_s * k / BINS for k in range(1, BINS)]
    changes = [e.time_s for e in events if 0 < e.time_s < horizon_s]
    return sorted({*even, *changes})


class Looks:
    """At a run with faults; ``look`` tells what was counted up to a time, the present one."""

    def __init__(
        self, failing: Sequence[ControlEvent], horizon_s: float, look: Callable[[float], Look]
    ) -> None:
        self._failing, self._look = failing, look
        self._due = looks_at(failing, horizon_s) if failing else []
        self._seen = [look(0.0)] if failing else []

    def advance(self, until_s: float, advance: Callable[[float], None]) -> None:
        """Advances to that time, and looks on the way."""
        while self._due and self._due[0] < until_s:
            at_s = self._due.pop(0)
            advance(at_s)
            self._seen.append(self._look(at_s))
        advance(until_s)

    def cost(self, now_s: float) -> dict[str, Any]:
        """See ``cost_of_faults``."""
        return cost_of_faults(lambda: [*self._seen, self._look(now_s)], self._failing, now_s)


def cost_of_faults(
    looks: Callable[[], Sequence[Look]], failing: Sequence[ControlEvent], now_s: float
) -> dict[str, Any]:
    """For the record: ``availability``, of what was ``failing`` up to now; nothing without."""
    failed = [event for event in failing if event.time_s < now_s]
    return {"availability": availability(looks(), failed)} if failed else {}


def availability(looks: Sequence[Look], events: Sequence[ControlEvent]) -> dict[str, Any]:
    """Figures of a run that was looked at; None where something did not come about.

    It has recovered at the first look after the last change from which on the throughput, over a
    bin, is RECOVERED of that before the first fault; to the end, too, where that change is a fault,
    as it may act late.
    """
    last_s = max(event.time_s for event in events)
    first_s = min(event.time_s for event in events) * (1.0 - ROUNDING)
    changed_s = last_s * (1.0 - ROUNDING)
    back_at_last = max(events, key=lambda event: event.time_s).kind != "fault"
    last = looks[-1]
    begun = next((look for look in looks if look.time_s >= first_s), last)
    before = _rate(looks[0], begun)
    back = (
        next(
            (
                earlier
                for earlier, later in pairwise(looks)
                if earlier.time_s >= changed_s
                and _rate(earlier, later) >= RECOVERED * before
                and (back_at_last or _rate(earlier, last) >= RECOVERED * before)
            ),
            None,
        )
        if before > 0
        else None
    )
    ends = back or last
    kept = min(
        (
            _rate(earlier, later)
            for earlier, later in pairwise(looks)
            if first_s <= earlier.time_s and later.time_s <= max(ends.time_s, last_s)
        ),
        default=before,
    )
    during = _rate(begun, ends)
    return {
        "before_per_s": before,
        "during_per_s": during if ends.time_s > begun.time_s else before,
        "lowest_per_s": kept,
        "after_per_s": _rate(ends, last) if back and last.time_s > ends.time_s else None,
        "kept": during / before if before and ends.time_s > begun.time_s else None,
        "recovery_s": max(back.time_s - last_s, 0.0) if back else None,
        "p99_degraded_ns": _p99_ns(begun, ends),
    }


def _rate(earlier: Look, later: Look) -> float:
    time_s = later.time_s - earlier.time_s
    return (later.done - earlier.done) / time_s if time_s > 0 else 0.0


def _p99_ns(earlier: Look, later: Look) -> float | None:
    if earlier.latencies_ns is None or later.latencies_ns is None:
        return None
    between = later.latencies_ns.since(earlier.latencies_ns)
    return between.quantile(0.99) if between.count else None
