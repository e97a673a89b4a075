"""``numatwin crossvalidate --traffic``: predicted bytes against those counted in the emulator."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..inputs import InputError, check_folder, write_json
from .failures import keeping
from .output import Part, number, percent, present, progress_bar, table

if TYPE_CHECKING:
    from ..sim.run.record import Record
    from ..validate.crossvalidate.traffic import TrafficCase, TrafficResult

MISSED = 1
ROWS_FILE = "rows.json"
COLUMNS = ("case", "bytes per operation", "plane", "counted", "predicted", "error")


def crossvalidate_traffic(
    begin: str, *, quick: bool, list_: bool, out: Path | None, json: bool
) -> None:
    """Runs the cases whose names ``begin`` so, prints rows and summary, keeps them in ``out``."""
    from ..validate.crossvalidate.calibration_set import slug
    from ..validate.crossvalidate.traffic import traffic_crossvalidated

    cases = _cases(begin, quick)
    if list_:
        names = [case.name for case in cases]
        present(json, lambda: {"cases": names}, names)
        return
    if out is not None:
        check_folder(out)

    def keep(case: str, plane: str, record: "Record") -> None:
        if out is not None:
            record.save(out / "records" / slug(case) / plane)

    def store(found: "TrafficResult") -> None:
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            write_json(out / ROWS_FILE, found.as_json())

    with keeping(out is not None), progress_bar("measuring") as progress:
        result = traffic_crossvalidated(cases, progress, keep, store)
    present(json, result.as_json, _traffic_parts(result))
    store(result)
    if not result.holds:
        raise typer.Exit(MISSED)


def _cases(begin: str, quick: bool) -> "list[TrafficCase]":
    from ..validate.systems.registry import validations

    found = [one.traffic_cases.load() for one in validations() if one.traffic_cases is not None]
    known = [case for cases_of in found for case in cases_of(quick=quick)]
    cases = [case for case in known if case.name.startswith(begin)]
    if not cases:
        raise InputError(
            "no such case", token=begin, expected="the beginning of one that --traffic --list tells"
        )
    return cases


def _traffic_parts(result: "TrafficResult") -> Iterator[Part]:
    from ..validate.crossvalidate.traffic import MEDIAN_MAX, WORST_MAX

    cells = (
        (
            row.scenario,
            row.metric,
            row.plane,
            number(row.measured.value, "B"),
            number(row.predicted.value, "B"),
            f"{100 * row.relative_error:+.1f}%",
        )
        for row in result.rows
    )
    yield table(COLUMNS, cells, left=3)
    yield from (f"failed: {one.scenario}: {one.reason}" for one in result.failures)
    if not result.rows:
        return
    for what, found, most in (
        ("median error", result.median_error, MEDIAN_MAX),
        ("worst error", result.worst_error, WORST_MAX),
    ):
        verdict = "reached" if found <= most else "missed"
        yield f"aim {what} ≤ {most:.0%}: {percent(found)}, {verdict}"
    yield f"rows within {WORST_MAX:.0%}: {percent(result.within)}"
