"""``numatwin regress``: a suite of checks, as a gate for CI."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .output import console, latency, number, percent, print_json, table
from .run import progress_bar

if TYPE_CHECKING:
    from ..validate.regress import Result
    from ..validate.suite import Suite

WORSE = 1


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
            help="The baseline; else SUITE.baseline.json beside the suite's file.",
            show_default=False,
        ),
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Write the baseline anew, and show what changed.")
    ] = False,
    check: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this check; may be given again."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, help="Another seed for all scenarios.", show_default=False
        ),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write JUnit XML.", show_default=False),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
) -> None:
    """Check that no figure became worse, as a gate for CI."""
    from ..inputs import InputError
    from ..inputs.atomic import write_text_atomically
    from ..validate.junit import annotation_lines, junit_xml
    from ..validate.regress import baseline_of
    from ..validate.regress import regress as checks
    from ..validate.suite import load_suite

    if update and check:
        raise InputError("--update makes the baseline of the whole suite", expected="no --check")
    loaded = load_suite(suite, seed=seed, only=check or ())
    path = baseline or loaded.baseline_path
    for target in (junit, path if update else None):
        if target is not None and not target.parent.is_dir():
            raise InputError("cannot be written: no such folder", str(target))
    entries = baseline_of(loaded, baseline, needed=not update)
    results: list[Result] = []
    with progress_bar("checking") as progress:
        try:
            for result in checks(loaded, entries, progress=progress):
                results.append(result)  # noqa: PERF402 (one by one: those before Ctrl-C are kept)
        except (KeyboardInterrupt, InputError):
            if results:
                _tell(loaded, results, json)
                if junit is not None:
                    write_text_atomically(junit, junit_xml(loaded, results))
            raise
    _tell(loaded, results, json)
    if junit is not None:
        write_text_atomically(junit, junit_xml(loaded, results))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        for line in annotation_lines(loaded, results):
            print(line, file=sys.stderr)
    if update:
        _update(loaded, results, path, quiet=json)
        results = [one for one in results if one.check.kind != "baseline"]
    if any(result.verdict == "worse" for result in results):
        raise typer.Exit(WORSE)


def _tell(suite: Suite, results: list[Result], json: bool) -> None:
    counts = {
        verdict: sum(result.verdict == verdict for result in results)
        for verdict in ("better", "worse", "no difference", "undecided")
    }
    if json:
        rows = [result.as_json() for result in results]
        print_json({"suite": suite.name, "verdicts": counts, "rows": rows})
        return
    to = console()
    columns = ("check", "value", "against", "better by", "runs", "verdict")
    to.print(table(columns, (_cells(result) for result in results), left=1))
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    to.print(f"\n{len(results)} checks: {told or 'none'}")
    if counts["undecided"]:
        to.print("Undecided: more 'replications' in the suite, or a wider 'tolerance', would tell.")


def _cells(result: Result) -> tuple[str, ...]:
    from ..validate.junit import verdict_in_words

    relative, unit = result.difference.relative, result.check.metric.unit
    better = "–"
    if relative is not None:
        half = max(relative.high - relative.value, relative.value - relative.low)
        better = f"{_percent(relative.value)} ±{100 * half:.2g}%"
    return (
        result.check.name,
        _written(result.value, unit),
        _written(result.reference, unit),
        better,
        str(result.replications or "–"),
        verdict_in_words(result),
    )


def _written(value: float, unit: str) -> str:
    if unit == "ns":
        return latency(value)
    if unit == "s":
        return latency(value * 1e9)
    return percent(value) if unit == "1" else number(value, unit.removeprefix("1"))


def _percent(part: float) -> str:
    return f"{100 * part:+.2f}%"


def _update(suite: Suite, results: list[Result], path: Path, quiet: bool) -> None:
    """Writes the baseline, and says how it differs from the one that stood there."""
    from ..inputs import InputError
    from ..validate.baseline import load_baseline, save_baseline

    kept = {one.check.name: one.entry for one in results if one.check.kind == "baseline"}
    if not kept:
        raise InputError("no check of the suite is held against a baseline", str(suite.path))
    try:
        before = load_baseline(path) if path.exists() else {}
    except InputError as failure:
        before = {}
        print(f"numatwin: the earlier baseline is replaced: {failure}", file=sys.stderr)
    save_baseline(path, suite.name, kept)
    if quiet:
        return
    to = console()
    to.print(f"\nBaseline: {path}", soft_wrap=True)
    for name in sorted({*before, *kept}):
        old, new = before.get(name), kept.get(name)
        if old is None or new is None:
            to.print(f"  {name}: {'gone' if new is None else 'new'}")
            continue
        was, now = (sum(one.values) / len(one.values) for one in (old, new))
        change = f" ({_percent(now / was - 1)})" if was else ""
        to.print(
            f"  {name}: {was:.6g} → {now:.6g}{change}" if was != now else f"  {name}: as before"
        )
