"""``numatwin calibrate --from FILE.csv``: the costs of a user's own engine, and its profile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .output import console, print_json, print_whole, progress_bar, table

if TYPE_CHECKING:
    from rich.console import Console

    from ..validate.calibrate import Calibration
    from ..validate.calibrate.engine_fit import EngineFit

PrintRows = Callable[["Calibration", "Console"], None]


def calibrate_own(
    machine: str,
    source: list[Path],
    *,
    scenario: str | None,
    settings: list[str],
    held_out: float | None,
    out: Path | None,
    report: Path | None,
    json: bool,
    print_rows: PrintRows,
) -> None:
    """Fits, writes what was asked for, and prints; ``out`` and ``report`` can be written."""
    from ..inputs import InputError, write_text_atomically
    from ..validate.calibrate.engine_fit import calibrate_engine, profile_yaml

    if len(source) > 1:
        raise InputError(
            "--from: an engine's throughputs cannot be combined with other files",
            token=str(source[1]),
            expected="only one .csv file",
        )
    with progress_bar("fitting") as progress:
        found = calibrate_engine(
            machine,
            source[0],
            scenario=scenario,
            settings=settings,
            share=held_out,
            progress=progress,
        )
    if out is not None:
        write_text_atomically(out, profile_yaml(found, out.stem))
    if report is not None:
        from ..reports.validation import write_validation
        from ..validate.calibrate.report import validation_of

        write_validation(validation_of(found.calibration), report)
    if json:
        from ..validate.calibrate import as_json

        plain: dict[str, Any] = as_json(found.calibration)
        print_json(
            plain
            | {"system": found.system, "scenario": found.scenario, "facts": dict(found.facts)}
            | {"warning": found.warning(), "misfit": found.misfit}
        )
        return
    to = console()
    _print_facts(found, to)
    to.print()
    print_rows(found.calibration, to)
    if (warning := found.warning()) is not None:
        to.print(f"\nwarning: {warning}", soft_wrap=True)
    for what, path in (("Engine profile", out), ("Report", report)):
        if path is not None:
            to.print(f"\n{what}: {path}", soft_wrap=True)


def _print_facts(found: EngineFit, to: Console) -> None:
    from ..validate.calibrate.engine_fit import LOCK

    fit = found.calibration.fit
    to.print(f"engine of kind {found.system}, as in {found.scenario}\n", soft_wrap=True)
    rows = [
        (
            one.parameter.name,
            "none" if one.parameter.unit == LOCK else f"{one.parameter.start:.4g}",
            f"{one.value:.4g}{' at its bound' if one.at_bound else ''}",
            f"{one.low:.4g} – {one.high:.4g}",
        )
        for one in fit.estimates.values()
    ]
    print_whole(to, table(("fitted", "default", "now", "95% interval"), rows, left=1))
    for left in fit.left:
        low, high = found.facts[left.parameter.name]["range"]
        to.print(
            f"\nnot determined, {left.parameter.start:g} by default, assumed between {low:g} and "
            f"{high:g}: {left.parameter.name}: {left.reason}",
            soft_wrap=True,
        )
    if found.layouts:
        ran = "; ".join(f"{threads}: {layout}" for threads, layout in found.layouts.items())
        to.print(f"\nrows ran with (system.threads: of each node) {ran}", soft_wrap=True)


def check_own(source: list[Path], scenario: str | None, settings: list[str]) -> bool:
    """Whether ``source`` has throughputs of an engine; raises InputError for options of the other
    kind of fit.
    """
    from ..inputs import InputError
    from ..validate.calibrate.engine_rows import SUFFIX

    if any(path.suffix.lower() == SUFFIX for path in source):
        return True
    for option, value in (("--scenario", scenario), ("--set", settings[0] if settings else None)):
        if value is not None:
            raise InputError(
                f"{option}: only for the throughputs of an engine",
                token=value,
                expected=f"a {SUFFIX} file after --from",
            )
    return False
