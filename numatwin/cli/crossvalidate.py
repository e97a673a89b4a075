"""``numatwin crossvalidate``: real runs on this host compared with predictions, a row each."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..inputs import InputError
from .failures import after_interrupt, keeping
from .options import Json, argument, flag, grouped, option
from .output import (
    Part,
    binary_size,
    console,
    latency,
    percent,
    present,
    progress_bar,
    report_parts,
    show,
    table,
    written_to,
)

if TYPE_CHECKING:
    from ..validate.crossvalidate.result import Result
    from ..validate.crossvalidate.suite import Suite
    from ..validate.trust import Coverage

HOST = "host"
MISSED = 1
REPORT_FILE = "report.html"


@dataclass(frozen=True)
class Checks:
    """What is checked, and where rows go."""

    machine: Annotated[
        str | None, option("M", "A machine file of this host, instead of measuring it now.")
    ] = None
    quick: Annotated[
        bool, flag("--quick", "Two rounds, and only the first and last value of each axis.")
    ] = False
    out: Annotated[
        Path | None, option("DIR", "Keep machine file, records, rows.json and report.html here.")
    ] = None
    only: Annotated[
        list[str] | None,
        option(
            "PART",
            "Compare only this part of 'machine measure', such as buffering, with the model; no "
            "runs. May be repeated.",
        ),
    ] = None
    list_: Annotated[bool, flag("--list", "Only list what would run on this host.")] = False
    traffic: Annotated[
        bool,
        flag(
            "--traffic",
            "Check traffic instead: bytes per operation, counted in the emulator on parts "
            "of machines; with --quick, one case of each system.",
        ),
    ] = False
    json: Json = False

    def check_only(self) -> None:
        """Refuses what does not go with ``--only``."""
        others = {"--machine": self.machine is not None, "--list": self.list_}
        others["--traffic"] = self.traffic
        if found := [name for name, given in others.items() if given]:
            raise InputError(
                f"--only measures parts of this host and runs nothing: found {found[0]}",
                expected="one of them",
            )


@grouped
def crossvalidate(
    suite: Annotated[
        str,
        argument(
            "SUITE",
            "A bundled suite, or a suite file (.yaml); with --traffic: the cases whose names begin "
            "so, by default all.",
        ),
    ] = HOST,
    of: Checks = Checks(),
) -> None:
    """Check predictions against real runs, or counted traffic."""
    if of.traffic and not of.only:
        from .crossvalidate_traffic import crossvalidate_traffic

        begin = "" if suite == HOST else suite
        crossvalidate_traffic(begin, quick=of.quick, list_=of.list_, out=of.out, json=of.json)
    elif of.only:
        of.check_only()
        _calibration_set(of.only, quick=of.quick, out=of.out, json=of.json)
    else:
        with tempfile.TemporaryDirectory(prefix="numatwin-") as scratch:
            _whole(suite, of, Path(scratch))


def _whole(suite: str, of: Checks, scratch: Path) -> None:
    """Real runs of a suite, and their predictions."""
    from ..validate.crossvalidate.calibration_set import (
        MeasuringInterrupted,
        crossvalidated,
        planned,
    )

    if of.list_:
        _list(planned(suite, of.machine, scratch, quick=of.quick), of.json)
        return
    folder = of.out if of.out is not None else scratch
    try:
        with progress_bar("measuring") as progress:
            result = crossvalidated(suite, of.machine, folder, quick=of.quick, progress=progress)
    except MeasuringInterrupted as stopped:
        if of.out is not None and stopped.parts:
            until_then = f"What was measured of this host until then: {stopped.path}"
            show([until_then], console(stderr=True))
        raise
    present(of.json, result.as_json, _parts(result))
    if of.out is not None:  # after the rows: a full disk does not cost them
        _keep(result, of.out, of.json)
    if result.found.interrupted:
        if not result.rows and of.out is None:
            raise KeyboardInterrupt
        raise after_interrupt("printed" if of.out is None else "kept")
    if not result.holds:
        raise typer.Exit(MISSED)


def _keep(result: "Result", out: Path, quiet: bool) -> None:
    from ..reports.predicted_measured import write_validation
    from ..validate.crossvalidate.report import validation_of
    from ..validate.crossvalidate.result import ROWS_FILE

    result.save(out)
    write_validation(validation_of(result), out / REPORT_FILE)
    if not quiet:
        show([f"\nRows: {out / ROWS_FILE}", f"Report: {out / REPORT_FILE}"])


def _calibration_set(parts: Sequence[str], *, quick: bool, out: Path | None, json: bool) -> None:
    """Rows of some parts of the measurements, without any run."""
    from ..validate.crossvalidate.calibration_set import calibration_set
    from ..validate.crossvalidate.report import errors_table, row_tables
    from ..validate.crossvalidate.result import ROWS_FILE

    with tempfile.TemporaryDirectory(prefix="numatwin-") as scratch:
        folder = out if out is not None else Path(scratch)
        with keeping(out is not None), progress_bar("measuring") as progress:
            found = calibration_set(parts, folder, quick=quick, progress=progress)
    shown = chain(
        report_parts([*row_tables(found.rows), errors_table(found.errors)], most=None),
        (f"\nwarning: {text}" for text in found.warnings),
        written_to({"Rows": out and out / ROWS_FILE}),
    )
    present(json, found.as_json, shown)


def _list(suite: "Suite", json: bool) -> None:
    """The cases of a suite, without running them."""
    present(
        json,
        lambda: {
            "suite": suite.name,
            "rounds": suite.rounds,
            "cases": suite.as_json(),
            "left_out": [asdict(left) for left in suite.left_out],
        },
        _case_parts(suite),
    )


def _case_parts(suite: "Suite") -> Iterator[Part]:
    from ..validate.crossvalidate.report import left_out_table

    rows = (
        (
            case.name,
            case.native.name,
            ", ".join(case.predicted) or "none",
            binary_size(case.size_bytes),
            latency(case.native.horizon_s * 1e9),
        )
        for case in suite.cases
    )
    yield table(("case", "scenario", "predicted by", "data", "horizon"), rows, left=3)
    yield f"\n{len(suite.cases)} cases, each {suite.rounds} times for real"
    yield from report_parts([left_out_table(suite.left_out)])


def _parts(result: "Result") -> Iterator[Part]:
    from ..validate.crossvalidate.report import tables_of

    yield from report_parts(tables_of(result), most=None)
    yield from (f"\nwarning: {text}" for text in result.warnings)
    yield from (f"\n90% intervals of {one.group}{_covered(one)}" for one in result.coverage)


def _covered(one: "Coverage") -> str:
    width = f"the upper end {one.width:.2g} times the lower"
    if one.judgeable:
        held = f"hold {percent(one.held)} of {one.rows} measured (aim 85% to 95%)"
        return f" by the errors of the other runs: {held}, {width}"
    return f": not judgeable on this host now: to hold nine of ten they would have {width}"
