"""``numatwin calibrate``: a machine's low-level parameters, fitted to measurements."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .calibrate_engine import calibrate_own, check_own
from .files import check_ending
from .machine import MachineArgument
from .option_groups import grouped
from .options import Json
from .output import console, latency, number, print_json, print_whole, progress_bar, table

if TYPE_CHECKING:
    from rich.console import Console

    from ..validate.calibrate import Calibration
    from ..validate.calibrate.calibration import Residual

ROWS_MAX = 40


@dataclass(frozen=True)
class FitOptions:
    """How it is fitted, and where the result goes."""

    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the calibrated machine, or the engine's profile (.yaml), here.",
            show_default=False,
        ),
    ] = None
    held_out: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Share of each kind of measurement that is held out; by default 0.2. From MLC's "
            "output: every other point of the loaded-latency curve, and all mixes. From an "
            "engine's throughputs: every third configuration.",
            show_default=False,
        ),
    ] = None
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, help="Seed that selects the held-out measurements.")
    ] = 0
    force: Annotated[
        bool,
        typer.Option("--force", help="Accept measurements of another machine."),
    ] = False
    scenario: Annotated[
        str | None,
        typer.Option(
            metavar="SCENARIO",
            help="What your engine ran, with a .csv file; by default lookups and upserts of an "
            "index.",
            show_default=False,
        ),
    ] = None
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PATH=VALUE",
            help="Another value for any field of that scenario; may be repeated.",
            show_default=False,
        ),
    ] = None
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a report (.html) on the fit.", show_default=False),
    ] = None
    json: Json = False

    def check(self, source: list[Path]) -> None:
        """Refuses files that cannot be written; raises InputError."""
        from ..inputs import InputError, check_writable

        for path, option, endings in (
            (self.out, "--out", (".yaml", ".yml")),
            (self.report, "--report", (".html", ".htm")),
        ):
            if path is not None:
                check_ending(path, *endings, option=option)
                check_writable(path)
        if self.out is not None and realpath(self.out) in map(realpath, source):
            raise InputError(
                "--out: it is a file of --from", token=str(self.out), expected="another file"
            )


@grouped
def calibrate(
    machine: MachineArgument,
    source: Annotated[
        list[Path],
        typer.Option(
            "--from",
            metavar="FILE",
            help="A file of 'numatwin machine measure', the output of Intel MLC, or the folder of "
            "a Record of 'numatwin run --on native'; may be repeated. Or one .csv file with the "
            "throughputs of your own engine.",
            show_default=False,
        ),
    ],
    fit: FitOptions = FitOptions(),
) -> None:
    """Fit a machine, or your own engine, to measurements.

    For a machine it fits the low-level parameters. For an engine, given as a .csv file of
    throughputs, it fits the cost of each step: 'numatwin calibrate amd-8n-ht --from store.csv --out
    store.yaml', then 'numatwin run SCENARIO --set engine=store.yaml'.
    """
    from ..sim.systems.registry import check_engines
    from ..topologies import load_machine
    from ..validate.calibrate import calibrate as fitted

    fit.check(source)
    if check_own(source, fit.scenario, fit.set_ or []):
        calibrate_own(
            machine,
            source,
            scenario=fit.scenario,
            settings=fit.set_ or [],
            held_out=fit.held_out,
            out=fit.out,
            report=fit.report,
            json=fit.json,
            print_rows=_print_residuals,
        )
        return
    loaded = load_machine(machine)
    check_engines(loaded)
    with progress_bar("fitting") as progress:
        found = fitted(
            loaded, source, share=fit.held_out, seed=fit.seed, force=fit.force, progress=progress
        )
    _keep(found, fit)


def _keep(found: Calibration, fit: FitOptions) -> None:
    """Writes machine and report, and prints what was found."""
    from ..inputs import write_text_atomically
    from ..topologies.export import machine_yaml
    from ..validate.calibrate import as_json

    if fit.out is not None:
        write_text_atomically(fit.out, machine_yaml(found.description))
    if fit.report is not None:
        from ..reports.validation import write_validation
        from ..validate.calibrate.report import validation_of

        write_validation(validation_of(found), fit.report)
    if fit.json:
        print_json(as_json(found))
        return
    to = console()
    _print(found, to)
    for what, path in (("Machine file", fit.out), ("Report", fit.report)):
        if path is not None:
            to.print(f"\n{what}: {path}", soft_wrap=True)


def _print(found: Calibration, to: Console) -> None:
    from ..validate.calibrate.identify import INSENSITIVE

    print_whole(
        to,
        table(
            ("fitted", "before", "now", "95% interval", "by"),
            (_estimate(found, key) for key in found.fit.estimates),
            left=1,
        ),
    )
    open_ones = [one for one in found.fit.left if one.reason != INSENSITIVE]
    for one in open_ones:
        to.print(
            f"\nnot determined, left as it is: {one.parameter.name}: {one.reason}",
            soft_wrap=True,
        )
    insensitive = [one.parameter.name for one in found.fit.left if one.reason == INSENSITIVE]
    if insensitive:
        shown = ", ".join(insensitive[:6]) + (" …" if len(insensitive) > 6 else "")
        to.print(
            f"\nnot determined, as no measurement depends on them: {shown} ({len(insensitive)})",
            soft_wrap=True,
        )
    unused: Counter[str] = Counter()
    for source in found.sources:
        unused.update(source.unused)
    for reason, count in unused.items():
        to.print(f"\nnot used: {count} figures: {reason}", soft_wrap=True)
    for text in found.warnings:
        to.print(f"\nwarning: {text}", soft_wrap=True)
    to.print()
    _print_residuals(found, to)


def _print_residuals(found: Calibration, to: Console) -> None:
    _print_rows(found, to)
    _print_errors(found, to)


def _estimate(found: Calibration, key: tuple[str, ...]) -> tuple[str, ...]:
    one = found.fit.estimates[key]
    unit = one.parameter.unit
    bound = " at its bound" if one.at_bound else ""
    return (
        one.parameter.name,
        _value(one.parameter.start, unit),
        f"{_value(one.value, unit)}{bound}",
        f"{_value(one.low, unit)} – {_value(one.high, unit)}",
        ", ".join(name.rsplit(" (", 1)[0] for name in found.fitted_to[key]),
    )


def _print_rows(found: Calibration, to: Console) -> None:
    """The largest errors of fitted measurements, all errors of held-out ones."""
    held, fitted = found.of("held out"), found.of("fitted")
    fitted = sorted(fitted, key=lambda one: -abs(one.error))[: max(ROWS_MAX - len(held), 5)]
    print_whole(
        to,
        table(
            ("measurement", "set", "measured", "predicted", "95% interval", "error"),
            (_residual(one) for one in [*fitted, *held[:ROWS_MAX]]),
            left=2,
        ),
    )
    left_out = len(found.residuals) - len(fitted) - len(held[:ROWS_MAX])
    if left_out:
        to.print(f"… and {left_out} with smaller errors: --json or --report has them all")


def _residual(one: Residual) -> tuple[str, ...]:
    of = one.observation
    return (
        of.label,
        one.set,
        _value(of.value, of.unit),
        _value(one.predicted, of.unit),
        f"{_value(one.low, of.unit)} – {_value(one.high, of.unit)}",
        f"{100 * one.error:+.1f}%{'' if one.agrees else ' *'}",
    )


def _print_errors(found: Calibration, to: Console) -> None:
    from ..validate.calibrate.calibration import FITTED, HELD_OUT, error_percent, error_summary

    to.print()
    for which in (FITTED, HELD_OUT):
        ones = found.of(which)
        if (summary := error_summary(ones)) is None:
            to.print(f"{which}: none")
            continue
        middle, worst = summary
        to.print(
            f"{which}: {len(ones)}, error {error_percent(middle)} in the median, "
            f"{error_percent(worst.error)} at worst ({worst.observation.label})",
            soft_wrap=True,
        )
    disjoint = sum(not one.agrees for one in found.residuals)
    if disjoint:
        to.print(f"* {disjoint} where measured and predicted intervals do not overlap")


def _value(value: float, unit: str) -> str:
    if unit == "s":
        return latency(value * 1e9) if value >= 1e-9 else f"{value * 1e12:.4g} ps"
    return f"×{value:.4g}" if unit == "×" else number(value, "" if unit == "1" else unit)
