"""The report of a calibration: its texts and tables; ``reports`` lays it out."""

from __future__ import annotations

from collections.abc import Iterator

from ..._version import __version__
from ...inputs.quantities import time_text
from ...reports.predicted_measured import Row, in_unit
from ...reports.validation import Cell, Table, Validation
from ...reports.words import count, percent, signed_percent
from .calibration import FITTED, HELD_OUT, Calibration, Residual, error_summary
from .identify import INSENSITIVE

DOUBTS_MAX = 4


def validation_of(found: Calibration) -> Validation:
    """What the page of a calibration says."""
    return Validation(
        title=f"{found.description.title or found.description.name}: calibrated",
        path=f"machine {found.description.name} · {found.date} · "
        f"{', '.join(source.origin.label for source in found.sources)}",
        answer=" ".join(_answer(found)),
        version=__version__,
        rows=[_drawn(one) for one in found.residuals],
        summaries=[_errors(found), _estimates(found)],
        tables=[_left(found), *_rows(found), _unused(found)],
        doubts=_doubts(found),
        facts=[
            ("seed of what is held out", str(found.seed)),
            *((source.origin.file, source.origin.date) for source in found.sources),
        ],
    )


def _answer(found: Calibration) -> Iterator[str]:
    open_ones = sum(one.reason != INSENSITIVE for one in found.fit.left)
    yield (
        f"{count(len(found.fit.estimates), 'parameter')} fitted to "
        f"{count(len(found.of(FITTED)), 'measurement')}"
        + (f", {open_ones} left alone, as these determine too little." if open_ones else ".")
    )
    summary = error_summary(found.of(HELD_OUT))
    if summary is None:
        yield "Nothing was held out, so that nothing checks the fit."
        return
    middle, worst = summary
    yield (
        f"Of {count(len(found.of(HELD_OUT)), 'measurement')} that the fit never saw, the median "
        f"error is {percent(middle, 1)}, the worst {percent(abs(worst.error), 1)} "
        f"({worst.observation.label})."
    )


def _doubts(found: Calibration) -> list[str]:
    paths = found.before.doubtful
    if len(paths) > DOUBTS_MAX:
        return [f"{len(paths)} uncertain values in the machine file, such as {paths[0]}"]
    return [f"uncertain value in the machine file: {path}" for path in paths]


def _drawn(one: Residual) -> Row:
    of = one.observation
    return Row(
        of.label,
        of.kind,
        one.set,
        of.unit,
        of.value,
        one.predicted,
        of.interval,
        (one.low, one.high),
        of.size_bytes,
    )


def _errors(found: Calibration) -> Table:
    rows = []
    for which in (FITTED, HELD_OUT):
        for kind in dict.fromkeys(one.observation.kind for one in found.of(which)):
            ones = [one for one in found.of(which) if one.observation.kind == kind]
            summary = error_summary(ones)
            if summary is None:
                continue
            middle, worst = summary
            rows.append(
                [
                    Cell(which),
                    Cell(kind),
                    Cell(str(len(ones))),
                    Cell(percent(middle, 1)),
                    Cell(percent(abs(worst.error), 1), worst.observation.label),
                    Cell(str(sum(one.agrees for one in ones))),
                ]
            )
    return Table(
        "Errors",
        ("set", "of", "figures", "median", "worst", "intervals overlap"),
        rows,
        texts=2,
        note="What is held out was never used in the fit.",
    )


def _estimates(found: Calibration) -> Table:
    rows = []
    for key, one in found.fit.estimates.items():
        unit = one.parameter.unit
        rows.append(
            [
                Cell(one.parameter.name),
                Cell(", ".join(found.fitted_to[key])),
                Cell(value_text(one.parameter.start, unit)),
                Cell(value_text(one.value, unit), "at its bound" if one.at_bound else ""),
                Cell(f"{value_text(one.low, unit)} to {value_text(one.high, unit)}"),
            ]
        )
    return Table(
        "Fitted parameters",
        ("parameter", "fitted to", "before", "now", "95% interval"),
        rows,
        texts=2,
        note="A factor (×) is on what the machine file says, or on what instructions take.",
    )


def _left(found: Calibration) -> Table:
    return Table(
        "Not determined, and unchanged",
        ("parameter", "why"),
        [[Cell(one.parameter.name), Cell(one.reason)] for one in found.fit.left],
        texts=2,
    )


def _rows(found: Calibration) -> Iterator[Table]:
    for which, title in ((HELD_OUT, "Held out"), (FITTED, "Fitted to")):
        yield Table(
            title,
            ("measurement", "from", "measured", "predicted", "error"),
            [
                [
                    Cell(one.observation.label),
                    Cell(_place(one)),
                    Cell(value_text(one.observation.value, one.observation.unit)),
                    Cell(
                        value_text(one.predicted, one.observation.unit),
                        f"{value_text(one.low, one.observation.unit)} to "
                        f"{value_text(one.high, one.observation.unit)}",
                    ),
                    Cell(signed_percent(one.error), bad=not one.agrees),
                ]
                for one in found.of(which)
            ],
            texts=2,
        )


def _place(one: Residual) -> str:
    of = one.observation
    return f"{of.origin.label}:{of.line}" if of.line else of.origin.label


def _unused(found: Calibration) -> Table:
    return Table(
        "Not used",
        ("file", "why", "figures"),
        [
            [Cell(source.origin.label), Cell(reason), Cell(str(number))]
            for source in found.sources
            for reason, number in source.unused.items()
        ],
        texts=2,
    )


def value_text(value: float, unit: str) -> str:
    """``129 ns``, ``26.7 GB/s``, ``×1.53``."""
    if unit == "s":
        return time_text(value) if value >= 1e-9 else f"{value * 1e12:.4g} ps"
    return f"×{value:.4g}" if unit == "×" else in_unit(value, unit)
