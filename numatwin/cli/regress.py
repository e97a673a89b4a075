"""``numatwin regress``: a suite of checks, as a gate for CI."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .failures import after_interrupt
from .options import Json
from .output import console, figure, percent, print_json, progress_bar, table

if TYPE_CHECKING:
    from ..validate.regress import Result
    from ..validate.suite import Suite

CLOSED = 1


def regress(
    suite: Annotated[
        str,
        typer.Argument(
            metavar="SUITE", help="A bundled suite, or a suite file (.yaml).", show_default=False
        ),
    ],
    baseline: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The baseline; by default SUITE.baseline.json in the suite's folder.",
            show_default=False,
        ),
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Rewrite the baseline, and show what changed.")
    ] = False,
    check: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this check; may be repeated."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, help="Another seed for all scenarios.", show_default=False
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with status 1 also if a check is undecided.")
    ] = False,
    doubt: Annotated[
        bool,
        typer.Option(
            "--doubt",
            help="Also the probability that a check between two scenarios holds, over uncertain "
            "facts and what the model was wrong by so far.",
        ),
    ] = False,
    junit: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write JUnit XML.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Check that no figure became worse, as a gate for CI.

    Exit status 0: no check is worse; 1: one is; 2: bad input.
    """
    from ..inputs import InputError
    from ..inputs.atomic import check_writable
    from ..validate.baseline import baseline_of, what_fits
    from ..validate.regress import regress as checks
    from ..validate.suite import load_suite

    if update:
        for option, given in (("--check", check), ("--junit", junit), ("--strict", strict)):
            if given:
                raise InputError(f"--update makes a new baseline: expected no {option}")
    loaded = load_suite(suite, seed=seed, only=check or ())
    of_baseline = loaded.of_baseline()
    if not of_baseline.checks and (update or baseline is not None):
        raise InputError("no check uses a baseline", str(loaded.path))
    path = baseline or loaded.baseline_path
    for target in (junit, path if update else None):
        if target is not None:
            check_writable(target)  # now, not after a long run
    if update:
        loaded = of_baseline
        entries, misfits = what_fits(loaded, path) if path.exists() else ({}, [])
    else:
        entries, misfits = baseline_of(loaded, path), []
    results: list[Result] = []
    try:
        with progress_bar("checking") as progress:
            for result in checks(loaded, entries, update=update, doubt=doubt, progress=progress):
                results.append(result)  # noqa: PERF402 (one by one: those before Ctrl-C are kept)
    except (KeyboardInterrupt, InputError) as failure:
        why = str(failure) if isinstance(failure, InputError) else None
        _tell(loaded, results, json, strict)
        _keep_junit(loaded, results, junit, why, strict)
        if results and why is None:
            raise after_interrupt("printed") from None
        raise
    _tell(loaded, results, json, strict)
    _keep_junit(loaded, results, junit, None, strict)
    if update:
        _save(loaded, results, path, misfits, quiet=json)
        return
    closing = ("worse", "undecided") if strict else ("worse",)
    if any(result.verdict in closing for result in results):
        raise typer.Exit(CLOSED)


def _keep_junit(
    suite: Suite, results: list[Result], path: Path | None, failure: str | None, strict: bool
) -> None:
    from ..inputs.atomic import write_text_atomically
    from ..validate.junit import junit_xml

    if path is not None:
        write_text_atomically(path, junit_xml(suite, results, failure, strict))


def _tell(suite: Suite, results: list[Result], json: bool, strict: bool) -> None:
    """The results so far: as a table or as JSON, and in the form of the CI system."""
    from ..validate.annotations import annotation_lines
    from ..validate.verdicts import VERDICTS

    counts = {verdict: sum(r.verdict == verdict for r in results) for verdict in VERDICTS}
    if json:
        rows = [result.as_json() for result in results]
        complete = len(rows) == len(suite.checks)
        print_json({"suite": suite.name, "complete": complete, "verdicts": counts, "rows": rows})
    elif results:
        to = console()
        columns = ["check", "value", "against", "better by", "runs", "verdict"]
        cells = [[*_cells(result)] for result in results]
        if any(result.probability is not None for result in results):
            columns.append("holds with")
            for row, result in zip(cells, results, strict=True):
                row.append("–" if result.probability is None else percent(result.probability))
        to.print(table(columns, cells, left=1))
        new = sum(result.reference is None for result in results)  # counted as undecided
        shown: dict[str, int] = {str(verdict): count for verdict, count in counts.items()}
        shown |= {"undecided": shown["undecided"] - new, "new": new}
        summary = ", ".join(f"{count} {verdict}" for verdict, count in shown.items() if count)
        to.print(f"\n{len(results)} of {len(suite.checks)} checks: {summary}")
        if shown["undecided"]:
            to.print(
                "Undecided: more 'replications' in the suite, or a larger 'tolerance', would help."
            )
    for line in annotation_lines(suite, results, os.environ, strict):
        print(line, file=sys.stderr)


def _cells(result: Result) -> tuple[str, ...]:
    from ..validate.junit import verdict_in_words

    relative, unit = result.difference.relative, result.check.metric.unit
    better = "–"
    if relative is not None:
        half = max(relative.high - relative.value, relative.value - relative.low)
        better = f"{100 * relative.value + 0.0:+.2f}% ±{100 * half:.2g}%"
    return (
        result.check.name,
        figure(result.value, unit),
        "–" if result.reference is None else figure(result.reference, unit),
        better,
        str(result.replications or "–"),
        verdict_in_words(result),
    )


def _save(
    suite: Suite, results: list[Result], path: Path, misfits: Iterable[Exception], quiet: bool
) -> None:
    """Writes the baseline, and names the entries of the previous one that are dropped."""
    from ..inputs import InputError
    from ..validate.baseline import load_baseline, save_baseline

    before: set[str] = set()
    if path.exists():
        with contextlib.suppress(InputError):  # it is among the misfits
            before = {*load_baseline(path)}
    save_baseline(path, suite.name, {result.check.name: result.entry for result in results})
    for misfit in misfits:
        print(f"numatwin: not compared with the former baseline: {misfit}", file=sys.stderr)
    if not quiet:
        dropped = sorted(before - {result.check.name for result in results})
        removed = f" (no longer in it: {', '.join(dropped)})" if dropped else ""
        console().print(f"Baseline: {path}{removed}", soft_wrap=True)
