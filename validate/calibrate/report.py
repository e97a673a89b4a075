"""The report of a calibration: its texts and tables; ``reports`` lays it out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..._version import __version__
from ...inputs.quantities import time_text
from ...reports.predicted_measured import Row, in_unit
from ...reports.validation import Cell, Table, Validation
from ...reports.words import count, percent, signed_percent
from .calibration import FITTED, HELD_OUT, Calibration, Residual, error_summary
from .fit import INSENSITIVE

DOUBTS_MAX, NAMES_MAX = 4, 6


def validation_of(found: Calibration) -> Validation:
    """What the page of a calibration says."""
    return Validation(
        title=f"{found.description.title or found.description.name}: calibrated",
        path=f"machine {found.description.name} · {found.date} · "
        f"{', '.join(source.origin.label for source in found.sources)}",
        answer=" ".join(_answer(found)),
        version=__version__,
        rows=[_drawn(residual) for residual in found.residuals],
        summaries=[errors_table(found), _estimates(found)],
        tables=[_left(found), *row_tables(found), _unused(found)],
        doubts=_doubts(found),
        facts=[
            ("seed of what is held out", str(found.seed)),
            *((source.origin.file, source.origin.date) for source in found.sources),
        ],
    )


def tables_of(found: Calibration) -> list[Table]:
    """Its tables as a terminal has them: those that are read first come last."""
    return [
        _unused(found),
        _left(found),
        _estimates(found),
        *row_tables(found),
        errors_table(found),
    ]


def _answer(found: Calibration) -> Iterator[str]:
    open_ones = sum(left_out.reason != INSENSITIVE for left_out in found.fit.left)
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


def _drawn(residual: Residual) -> Row:
    observation = residual.observation
    return Row(
        observation.label,
        observation.kind,
        residual.set,
        observation.unit,
        observation.value,
        residual.predicted,
        observation.interval,
        (residual.low, residual.high),
        observation.size_bytes,
    )


def errors_table(found: Calibration) -> Table:
    """By set and kind."""
    rows = []
    for which in (FITTED, HELD_OUT):
        for kind in dict.fromkeys(residual.observation.kind for residual in found.of(which)):
            ones = [residual for residual in found.of(which) if residual.observation.kind == kind]
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
                    Cell(str(sum(residual.agrees for residual in ones))),
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
    for estimate in found.fit.estimates.values():
        unit = estimate.parameter.unit
        rows.append(
            [
                Cell(estimate.parameter.name),
                Cell(", ".join(name.rsplit(" (", 1)[0] for name in estimate.sources)),
                Cell(value_text(estimate.parameter.start, unit)),
                Cell(value_text(estimate.value, unit), "at its bound" if estimate.at_bound else ""),
                Cell(f"{value_text(estimate.low, unit)} to {value_text(estimate.high, unit)}"),
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
    names: dict[str, list[str]] = {}
    for left_out in found.fit.left:
        names.setdefault(left_out.reason, []).append(left_out.parameter.name)
    return Table(
        "Not determined, and unchanged",
        ("parameter", "why"),
        [[Cell(_listed(ones)), Cell(reason)] for reason, ones in names.items()],
        texts=2,
    )


def _listed(names: Sequence[str]) -> str:
    if len(names) <= NAMES_MAX:
        return ", ".join(names)
    return f"{', '.join(names[:NAMES_MAX])} … ({len(names)})"


def row_tables(found: Calibration) -> Iterator[Table]:
    """Each figure, the largest errors first."""
    for which, title in ((HELD_OUT, "Held out"), (FITTED, "Fitted to")):
        yield Table(
            title,
            ("measurement", "from", "measured", "predicted", "error"),
            [
                [
                    Cell(residual.observation.label),
                    Cell(_place(residual)),
                    Cell(value_text(residual.observation.value, residual.observation.unit)),
                    Cell(
                        value_text(residual.predicted, residual.observation.unit),
                        f"{value_text(residual.low, residual.observation.unit)} to "
                        f"{value_text(residual.high, residual.observation.unit)}",
                    ),
                    Cell(signed_percent(residual.error), bad=not residual.agrees),
                ]
                for residual in sorted(found.of(which), key=lambda one: -abs(one.error))
            ],
            texts=2,
        )


def _place(residual: Residual) -> str:
    observation = residual.observation
    return (
        f"{observation.origin.label}:{observation.line}"
        if observation.line
        else observation.origin.label
    )


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
