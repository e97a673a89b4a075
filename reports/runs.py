"""The runs of a report: records with a label that tells each from the others, and a colour."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from ..sim.run.record import Record
from ..sim.run.recovery import Recovery, recoveries_together
from .facts import fact_rows

# Okabe and Ito's colours, distinguishable with any colour vision, in an order that contrasts
# neighbours; yellow is left out: too light for a line on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("solid", "dash", "dot", "dashdot")

# What distinguishes runs, the most distinctive first; where that is not enough, their settings.
_TRAITS: tuple[Callable[[Record], str], ...] = (
    lambda r: r.policy,
    lambda r: str(r.machine.get("name", "")),
    lambda r: r.plane,
    lambda r: f"seed {r.seed}",
)
SETTINGS_IN_LABEL = 3
PIECES_MAX = 200  # more pieces of a random run are noise that hides its course


@dataclass(frozen=True)
class Run:
    """A record, its label, its colour and the dash of its lines."""

    record: Record
    label: str
    colour: str
    dash: str


def runs_of(records: Sequence[Record]) -> list[Run]:
    """The records as runs, labelled by the traits in which they differ, by policy if in none."""
    distinguishing = [t for t in _TRAITS if len({t(record) for record in records}) > 1] or _TRAITS[
        :1
    ]
    names = [" · ".join(trait(record) for trait in distinguishing) for record in records]
    for name in [name for name, count in Counter(names).items() if count > 1]:
        same_name = [k for k, other in enumerate(names) if other == name]
        for k, differing in zip(
            same_name, _differing_settings([records[k] for k in same_name]), strict=True
        ):
            names[k] = " · ".join([name, *differing])
    total, seen = Counter(names), Counter[str]()
    runs = []
    for k, (record, name) in enumerate(zip(records, names, strict=True)):
        seen[name] += 1
        text = f"{name} ({seen[name]})" if total[name] > 1 else name
        dash = DASHES[k // len(COLOURS) % len(DASHES)]
        runs.append(Run(record, text, COLOURS[k % len(COLOURS)], dash))
    return runs


def _differing_settings(records: Sequence[Record]) -> list[list[str]]:
    """Per record, the first settings in which not all agree, as ``horizon 60 s``."""
    settings = [dict(fact_rows(record.settings, inf)) for record in records]
    names = dict.fromkeys(name for one in settings for name in one)
    differing = [name for name in names if len({one.get(name) for one in settings}) > 1]
    return [
        [
            f"{name.split(' · ')[-1]} {one[name]}"
            for name in differing[:SETTINGS_IN_LABEL]
            if name in one
        ]
        for one in settings
    ]


def smoothed(run: Run) -> Run:
    """A random run with the means over as many of its pieces of time as make ``PIECES_MAX``."""
    series = run.record.series
    count = len(series.get("time_s", ()))
    size = -(-count // PIECES_MAX)
    if not run.record.replications or size <= 1:
        return run
    starts = np.arange(0, count, size)
    length_s = np.asarray(series["duration_s"], dtype=np.float64)
    total_s = np.add.reduceat(length_s, starts)
    mean = {
        name: np.add.reduceat(column * length_s, starts) / total_s
        for name, column in series.items()
    }
    times = {"time_s": series["time_s"][starts], "duration_s": total_s}
    return replace(run, record=replace(run.record, series=mean | times))


def operations_of(runs: Sequence[Run]) -> list[str]:
    """The operations of all runs, in the order of first appearance."""
    return list(dict.fromkeys(name for run in runs for name in run.record.throughput))


def recoveries_of(runs: Sequence[Run], operation: str) -> dict[str, list[Recovery]]:
    """Per run (by label), what each change did to the operation; runs without changes are left out.

    Where all runs change at the same times, all are held against the best level that any of them
    reaches before the next change; else each against its own.
    """
    found = recoveries_together([run.record for run in runs], operation)
    return {run.label: ones for run, ones in zip(runs, found, strict=True) if ones}


def moved_bytes(record: Record) -> float | None:
    """Bytes that transfers copied; None where no transfer tells."""
    amounts = [
        event.details["copied_bytes"]
        for event in record.control_events
        if event.kind == "transfer" and isinstance(event.details.get("copied_bytes"), (int, float))
    ]
    return float(sum(amounts)) if amounts else None
