"""The report of a cross-validation: its texts and tables; ``reports`` lays it out."""

from collections.abc import Iterator, Sequence
from dataclasses import astuple

from ..._version import __version__
from ...inputs.quantities import time_text
from ...reports.facts import fact_rows
from ...reports.predicted_measured import Cell, Table, Validation
from ...reports.predicted_measured import Interval as Bounds
from ...reports.predicted_measured import Row as Drawn
from ...reports.words import count, listing, percent, seconds, si, signed_percent
from ...sim.run.statistics import Interval
from .result import Check, Errors, Result
from .rows import Row
from .suite import LeftOut

NANO = 1e-9
ERROR_COLUMNS = (
    "set",
    "of",
    "plane",
    "rows",
    "median",
    "worst",
    "within 10%",
    "± predicted",
    "± measured",
    "interval holds",
)


def validation_of(result: Result) -> Validation:
    """What the page of ``result`` says."""
    host = result.machine.description.host
    day = "" if host is None else f" · {host.date[:10]}"
    found = result.found
    return Validation(
        title=result.suite.title or f"Suite {result.suite.name}",
        path=f"suite {result.suite.name} · {result.machine.name}{day} · "
        f"{count(found.rounds, 'round')}",
        answer=" ".join(_answer(result)),
        version=__version__,
        rows=[_drawn(row) for row in sorted(result.rows, key=lambda row: row.set != "test")],
        summaries=[_aims(result.checks), errors_table(result.errors)],
        tables=[*row_tables(result.rows), _failures(result), left_out_table(result.left_out)],
        doubts=result.warnings,
        facts=_facts(result),
        figures_by_set=True,
    )


def tables_of(result: Result) -> list[Table]:
    """Its tables as a terminal has them: those that are read first come last."""
    return [
        *reversed([*row_tables(result.rows)]),
        left_out_table(result.left_out),
        _failures(result),
        errors_table(result.errors),
        _aims(result.checks),
    ]


def _answer(result: Result) -> Iterator[str]:
    missed = [check for check in result.checks if not check.holds]
    throughput = [
        e for e in result.errors if (e.set, e.kind, e.plane) == ("test", "throughput", None)
    ]
    if throughput:
        errors = throughput[0]
        yield (
            f"Of {count(errors.rows, 'predicted throughput')} of real runs, "
            f"{percent(errors.within_10_percent)} are within 10%; the median error is "
            f"{percent(errors.median_error, 1)}, the worst {percent(errors.worst_error, 1)}."
        )
    if not result.checks:
        yield "Nothing was both measured and predicted."
    elif missed:
        names = listing(f"{check.name} of {check.kind}" for check in missed)
        yield f"The aim is missed: {names}."
    else:
        yield "The aim is reached."
    if result.noise:
        yield "The host was noisy: see what to distrust."
    if result.found.failures:
        yield f"{count(len(result.found.failures), 'run')} failed."
    if result.found.interrupted:
        yield "The session was interrupted: rows are of what was finished."


def _aims(checks: Sequence[Check]) -> Table:
    return Table(
        "The aim, on the test set",
        ("of", "what", "", "aim", "found"),
        [
            [
                *map(Cell, (check.kind, check.name)),
                Cell("reached" if check.holds else "missed", bad=not check.holds),
                Cell(f"{'≥' if check.at_least else '≤'} {percent(check.aim)}"),
                Cell(percent(check.found, 1)),
            ]
            for check in checks
        ],
        texts=3,
    )


def errors_table(errors: Sequence[Errors]) -> Table:
    """What the errors are, and what the intervals say beside them."""

    def texts(one: Errors) -> tuple[str, ...]:
        of_set, kind, plane, count, *shares = astuple(one)
        return (of_set, kind, plane or "all", str(count), *(percent(share, 1) for share in shares))

    return Table(
        "Errors",
        ERROR_COLUMNS,
        [[*map(Cell, texts(one))] for one in errors],
        texts=3,
        note="Calibration set: primitives that the machine file was made of. Test set: real runs, "
        "to which nothing was fitted. ±: the median half width of the intervals; interval holds: "
        "the share of measured values that lie in the predicted interval.",
    )


def row_tables(rows: Sequence[Row]) -> Iterator[Table]:
    """Each figure, as it was measured and as it is predicted."""
    for of_set, title in (("test", "Test set"), ("calibration", "Calibration set")):
        yield Table(
            title,
            ("scenario", "figure", "plane", "measured", "predicted", "error"),
            [_row(row) for row in rows if row.set == of_set],
            texts=3,
        )


def _row(row: Row) -> list[Cell]:
    rounds = count(len(row.values), "round") if row.values else ""
    notes = filter(None, (_bounds(row.measured, row.unit), rounds))
    error = row.relative_error
    return [
        *map(Cell, (row.scenario, row.metric, row.plane)),
        Cell(_written(row.measured.value, row.unit), ", ".join(notes)),
        Cell(_written(row.predicted.value, row.unit), _bounds(row.predicted, row.unit)),
        Cell(signed_percent(error), bad=abs(error) > 0.25),
    ]


def _failures(result: Result) -> Table:
    return Table(
        "Runs that failed",
        ("scenario", "plane", "round", "why"),
        [
            [*map(Cell, (one.scenario, one.plane, str(one.round), one.reason))]
            for one in result.found.failures
        ],
        texts=4,
    )


def left_out_table(left_out: Sequence[LeftOut]) -> Table:
    """What is not compared, and why."""
    return Table(
        "Without a row",
        ("what", "of", "why"),
        [[*map(Cell, (left.what, ", ".join(left.runs), left.reason))] for left in left_out],
        texts=3,
    )


def _facts(result: Result) -> list[tuple[str, str]]:
    description, found = result.machine.description, result.found
    host = description.host
    facts = [
        ("machine", f"{description.name}: {description.title}"),
        ("source", description.source or "–"),
        ("rounds", f"{found.rounds} of {result.suite.rounds}"),
        ("real runs", time_text(max(found.seconds, NANO))),
        ("taken by the hypervisor", percent(found.stolen, 1)),
        ("used by other programs", percent(found.others, 1)),
    ]
    if host is not None:
        facts += fact_rows(host.model_dump(mode="json", exclude_none=True))
    return facts


def _drawn(row: Row) -> Drawn:
    """The row as pictures want it, in SI units."""
    scale, unit = (NANO, "s") if row.unit == "ns" else (1.0, row.unit)

    def bounds(interval: Interval) -> Bounds:
        return interval.low * scale, interval.high * scale

    return Drawn(
        label=f"{row.scenario}, {row.metric}, {row.plane}",
        group=row.group,
        set=row.set,
        unit="/s" if unit == "1/s" else unit,
        measured=row.measured.value * scale,
        predicted=row.predicted.value * scale,
        measured_interval=bounds(row.measured),
        predicted_interval=bounds(row.predicted),
        size=row.size_bytes,
    )


def _written(value: float, unit: str) -> str:
    if unit in ("ns", "s"):
        return seconds(value * (NANO if unit == "ns" else 1.0))
    return percent(value, 1) if unit == "1" else si(value, unit.removeprefix("1"))


def _bounds(interval: Interval, unit: str) -> str:
    if interval.low == interval.high:
        return ""
    return f"{_written(interval.low, unit)} to {_written(interval.high, unit)}"
