"""The report of a calibration: its texts and tables; ``reports`` lays it out."""

from collections.abc import Iterator

from ..._version import __version__
from ...inputs.grouping import by_key
from ...inputs.quantities import time_text
from ...reports.predicted_measured import Cell, Row, Table, Validation, in_unit
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
    rows = row_tables(found)
    return [_unused(found), _left(found), _estimates(found), *rows, errors_table(found)]


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


def _drawn(one: Residual) -> Row:
    o, ends = one.observation, (one.low, one.high)
    return Row(
        o.label, o.kind, one.set, o.unit, o.value, one.predicted, o.interval, ends, o.size_bytes
    )


def errors_table(found: Calibration) -> Table:
    """By set and kind."""
    residuals = (*found.of(FITTED), *found.of(HELD_OUT))
    groups = by_key(((one.set, one.observation.kind), one) for one in residuals)
    rows = []
    for (which, kind), ones in groups.items():
        middle, worst = error_summary(ones) or (0.0, ones[0])
        figures = Cell(which), Cell(kind), Cell(str(len(ones))), Cell(percent(middle, 1))
        far = Cell(percent(abs(worst.error), 1), worst.observation.label)
        rows.append([*figures, far, Cell(str(sum(one.agrees for one in ones)))])
    columns = ("set", "of", "figures", "median", "worst", "intervals overlap")
    note = "What is held out was never used in the fit."
    return Table("Errors", columns, rows, texts=2, note=note)


def _estimates(found: Calibration) -> Table:
    rows = []
    for one in found.fit.estimates.values():
        start, value, low, high = (
            value_text(x, one.parameter.unit)
            for x in (one.parameter.start, one.value, one.low, one.high)
        )
        sources = ", ".join(name.rsplit(" (", 1)[0] for name in one.sources)
        now = Cell(value, "at its bound" if one.at_bound else "")
        name = Cell(one.parameter.name)
        rows.append([name, Cell(sources), Cell(start), now, Cell(f"{low} to {high}")])
    columns = ("parameter", "fitted to", "before", "now", "95% interval")
    note = "A factor (×) is on what the machine file says, or on what instructions take."
    return Table("Fitted parameters", columns, rows, texts=2, note=note)


def _left(found: Calibration) -> Table:
    rows = []
    for reason, ones in by_key((one.reason, one.parameter.name) for one in found.fit.left).items():
        more = f" … ({len(ones)})" if len(ones) > NAMES_MAX else ""
        rows.append([Cell(", ".join(ones[:NAMES_MAX]) + more), Cell(reason)])
    return Table("Not determined, and unchanged", ("parameter", "why"), rows, texts=2)


def row_tables(found: Calibration) -> Iterator[Table]:
    """Each figure, the largest errors first."""
    columns = ("measurement", "from", "measured", "predicted", "error")
    for which, title in ((HELD_OUT, "Held out"), (FITTED, "Fitted to")):
        rows = []
        for one in sorted(found.of(which), key=lambda one: -abs(one.error)):
            o = one.observation
            place = f"{o.origin.label}:{o.line}" if o.line else o.origin.label
            measured, predicted, low, high = (
                value_text(x, o.unit) for x in (o.value, one.predicted, one.low, one.high)
            )
            figures = Cell(measured), Cell(predicted, f"{low} to {high}")
            error = Cell(signed_percent(one.error), bad=not one.agrees)
            rows.append([Cell(o.label), Cell(place), *figures, error])
        yield Table(title, columns, rows, texts=2)


def _unused(found: Calibration) -> Table:
    rows = [
        [Cell(source.origin.label), Cell(reason), Cell(str(number))]
        for source in found.sources
        for reason, number in source.unused.items()
    ]
    return Table("Not used", ("file", "why", "figures"), rows, texts=2)


def value_text(value: float, unit: str) -> str:
    """``129 ns``, ``26.7 GB/s``, ``×1.53``."""
    if unit == "s":
        return time_text(value) if value >= 1e-9 else f"{value * 1e12:.4g} ps"
    return f"×{value:.4g}" if unit == "×" else in_unit(value, unit)
