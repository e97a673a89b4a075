"""``numatwin regress``: a suite of checks, as a gate for CI."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..inputs import InputError, write_text_atomically
from .failures import after_interrupt
from .files import check_file
from .options import Json, argument, flag, grouped, option
from .output import Part, figure, percent, present, progress_bar, show, table

if TYPE_CHECKING:
    from ..validate.regress import Result
    from ..validate.suite import Suite

CLOSED = 1


@dataclass(frozen=True)
class Gate:
    """What is checked, what closes the gate, and where that is told."""

    baseline: Annotated[
        Path | None,
        option("FILE", "The baseline; by default SUITE.baseline.json in the suite's folder."),
    ] = None
    update: Annotated[bool, flag("--update", "Rewrite the baseline, and show what changed.")] = (
        False
    )
    check: Annotated[list[str] | None, option("NAME", "Only this check; may be repeated.")] = None
    seed: Annotated[int | None, option("N", "Another seed for all scenarios.", min=0)] = None
    strict: Annotated[
        bool, flag("--strict", "Exit with status 1 also if a check is undecided.")
    ] = False
    doubt: Annotated[
        bool,
        flag(
            "--doubt",
            "Also the probability that a bound, or a check between two scenarios, holds, over "
            "uncertain facts and what the model was wrong by so far.",
        ),
    ] = False
    junit: Annotated[Path | None, option("FILE", "Also write JUnit XML.")] = None
    json: Json = False

    def load(self, name: str) -> tuple[Suite, Path]:
        """The suite, and the file of its baseline; raises InputError for what cannot be done."""
        from ..validate.suite import load_suite

        refused = {"--check": self.check, "--junit": self.junit, "--strict": self.strict}
        for name in (name for name, given in refused.items() if given and self.update):
            raise InputError(f"--update makes a new baseline: expected no {name}")
        suite = load_suite(name, seed=self.seed, only=self.check or ())
        of_baseline = suite.of_baseline()
        if not of_baseline.checks and (self.update or self.baseline is not None):
            raise InputError("no check uses a baseline", str(suite.path))
        path = self.baseline or suite.baseline_path
        check_file(self.junit)
        check_file(path if self.update else None)
        return of_baseline if self.update else suite, path

    def tell(self, suite: Suite, results: list[Result], failure: str | None = None) -> None:
        """The results so far: as a table or as JSON, in the form of the CI system, as JUnit XML."""
        from ..validate.annotations import annotation_lines, junit_xml
        from ..validate.regress import VERDICTS

        counts = {verdict: sum(r.verdict == verdict for r in results) for verdict in VERDICTS}
        plain = {"suite": suite.name, "complete": len(results) == len(suite.checks)}
        plain |= {"verdicts": counts, "rows": [result.as_json() for result in results]}
        present(self.json, lambda: plain, _parts(suite, results, counts) if results else ())
        for line in annotation_lines(suite, results, os.environ, self.strict):
            print(line, file=sys.stderr)
        if self.junit is not None:
            text = junit_xml(suite, results, failure, self.strict)
            write_text_atomically(self.junit, text)


@grouped
def regress(
    suite: Annotated[str, argument("SUITE", "A bundled suite, or a suite file (.yaml).")],
    gate: Gate = Gate(),
) -> None:
    """Check that no figure became worse, as a gate for CI.

    Exit status 0: no check is worse; 1: one is; 2: bad input.
    """
    from ..validate.baseline import baseline_of, what_fits
    from ..validate.regress import regress as checks

    loaded, path = gate.load(suite)
    if gate.update:
        entries, misfits = what_fits(loaded, path) if path.exists() else ({}, [])
    else:
        entries, misfits = baseline_of(loaded, path), []
    results: list[Result] = []
    try:
        with progress_bar("checking") as progress:
            made = checks(loaded, entries, update=gate.update, doubt=gate.doubt, progress=progress)
            for result in made:
                results.append(result)  # noqa: PERF402 (one by one: those before Ctrl-C are kept)
    except (KeyboardInterrupt, InputError) as failure:
        why = str(failure) if isinstance(failure, InputError) else None
        gate.tell(loaded, results, why)
        if results and why is None:
            raise after_interrupt("printed") from None
        raise
    gate.tell(loaded, results)
    if gate.update:
        _save(loaded, results, path, misfits, quiet=gate.json)
        return
    closing = ("worse", "undecided") if gate.strict else ("worse",)
    if any(result.verdict in closing for result in results):
        raise typer.Exit(CLOSED)


def _parts(suite: Suite, results: list[Result], counts: Mapping[Any, int]) -> Iterator[Part]:
    columns = ["check", "value", "against", "better by", "runs", "verdict"]
    cells = [[*_cells(result)] for result in results]
    if any(result.probability is not None for result in results):
        columns.append("holds with")
        for row, result in zip(cells, results, strict=True):
            row.append("–" if result.probability is None else percent(result.probability))
    yield table(columns, cells)
    new = sum(result.reference is None for result in results)  # counted as undecided
    shown: dict[str, int] = {str(verdict): count for verdict, count in counts.items()}
    shown |= {"undecided": shown["undecided"] - new, "new": new}
    summary = ", ".join(f"{count} {verdict}" for verdict, count in shown.items() if count)
    yield f"\n{len(results)} of {len(suite.checks)} checks: {summary}"
    if shown["undecided"]:
        yield "Undecided: more 'replications' in the suite, or a larger 'tolerance', would help."


def _cells(result: Result) -> tuple[str, ...]:
    from ..validate.annotations import verdict_in_words

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
        show([f"Baseline: {path}{removed}"])
