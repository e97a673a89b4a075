"""Uncertainty of figures of random runs, in words: their intervals, and how they were computed."""

from collections.abc import Iterable, Sequence

from ..sim.run.comparison import difference, has_intervals, level_of
from ..sim.run.real_planes import NATIVE
from ..sim.run.record import Record, part_at
from .words import count, figure_text, percent, seconds


def between(record: Record, unit: str, *path: str) -> str:
    """``498 k/s to 510 k/s``, the interval of a figure: of all that it leans on, with how sure that
    is, where that was drawn, else of its replications; nothing where it has none, or is 0.
    """
    likely = part_at(record.uncertainty, path)
    bounds = likely or record.interval(*path)
    if bounds is None or not any(bounds):  # from 0 to 0 says no more than the figure
        return ""
    sure = f"{percent(record.uncertainty['level'])}: " if likely else ""
    return sure + " to ".join(figure_text(bound, unit, digits=1) for bound in bounds)


def ways(record: Record) -> dict[str, str]:
    """What traffic a record tells of, its keys by their titles; of links where there are any."""
    ways = {"network traffic": "network", "memory traffic": "memory"}
    ways |= {"link traffic": "links"} if record.machine.get("links") else {}
    return {t: way for t, way in ways.items() if record.bandwidth_Bps.get(way) is not None}


def listed(parts: Iterable[str]) -> str:
    """The parts that say something, by commas."""
    return ", ".join(part for part in parts if part)


def statistics_of(record: Record) -> str:
    """What the figures of a random run are; nothing of another one."""
    if not record.replications:
        return ""
    real = record.plane == NATIVE  # more than what is drawn differs there
    noun = "run" if real else "replication"
    runs = f"One {noun}"
    if record.replications > 1:
        drawn = "" if real else " with independent draws"
        runs = f"Means of {count(record.replications, noun)}{drawn}"
    left_out = (
        f"the first {seconds(record.warm_up_s)} (warm-up) left out"
        if record.warm_up_s
        else "counted from the beginning"
    )
    return f"{runs}, {left_out}.{_confidence_text([record])}"


def _confidence_text(records: Sequence[Record]) -> str:
    """What intervals mean, where a figure has one."""
    if not any(has_intervals(record) for record in records):
        return " The random error of the figures is unknown."
    level = percent(level_of(records)).rstrip("%")
    return f" An interval that says nothing else holds the truth with {level}% confidence."


def differs_by_chance(first: Record, second: Record, operation: str) -> bool:
    """Whether chance explains the difference of two runs in an operation's throughput."""
    path = ("throughput", operation)
    values = [record.throughput[operation] for record in (first, second)]
    found = difference(path, values, (first, second), level_of((first, second)))
    return found is not None and found["interval"][0] <= 0 <= found["interval"][1]


def statistics_of_all(records: Sequence[Record]) -> str:
    """The same of several runs: what all random ones share, or how often each ran."""
    random = [record for record in records if record.replications]
    lines = dict.fromkeys(statistics_of(record) for record in random)
    if len(lines) == 1:
        return next(iter(lines))
    if not random:
        return ""
    runs = ", ".join(str(record.replications) for record in random)
    return f"Means of {runs} replications.{_confidence_text(random)}"
