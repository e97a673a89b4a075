"""``numatwin infer``: what measured runs say of what is unknown in a scenario."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import Json, OtherMachine, Settings, bundled_scenarios
from .output import console, number, percent, print_json, progress_bar, table

if TYPE_CHECKING:
    from rich.console import Console

    from ..validate.inference import Inference

NEXT_SHOWN = 3


def infer(
    scenarios: Annotated[
        list[str],
        typer.Argument(
            metavar="SCENARIO…",
            help="Scenarios that ran: names or files, whose 'unknown' says what nobody knows.",
            autocompletion=bundled_scenarios,
            show_default=False,
        ),
    ],
    source: Annotated[
        Path,
        typer.Option("--from", metavar="RUNS.csv", help="What was measured, a run a row."),
    ],
    machine: OtherMachine = None,
    set_: Settings = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Take the model to be right to a percent.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.yaml",
            help="Write the scenario with what remains unknown.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Weigh what is unknown in a scenario by measured runs."""
    from ..inputs import InputError
    from ..inputs.atomic import check_writable
    from ..validate.inference import infer as inferred
    from ..validate.inferred import as_json

    if out is not None:
        if len(scenarios) > 1:
            raise InputError("--out", token=str(out), expected="one scenario")
        check_writable(out)
    with progress_bar("weighing") as progress:
        found = inferred(
            scenarios, source, machine=machine, settings=set_ or [], exact=exact, progress=progress
        )
    if out is not None:
        _write(found, scenarios[0], out)
    if json:
        print_json(as_json(found))
        return
    _print(found, console())
    if out is not None:
        console().print(f"\nScenario: {out}", soft_wrap=True)


def _print(found: Inference, to: Console) -> None:
    from ..validate.inferred import explained, hypotheses, next_runs, warnings

    to.print(
        f"{len(found.weights):,} draws of {len(found.doubts)} unknown conditions and facts, "
        f"of which {found.effective:.0f} count\n",
        soft_wrap=True,
    )
    rows = []
    for one in hypotheses(found):
        if one.choices:
            order = sorted(one.choices.items(), key=lambda item: -item[1])
            now = ", ".join(f"{value} ({percent(share)})" for value, share in order)
        else:
            low, middle, high = one.interval
            now = f"{middle}, from {low} to {high}"
        rows.append((one.name, " or ".join(one.values) if one.choices else " to ".join(one.values),
                     now))  # fmt: skip
    to.print(table(("unknown", "before", "now, 90%"), rows, left=3))
    to.print()
    shown = []
    for row in explained(found):
        low, middle, high = (number(value, row.unit) for value in row.predicted)
        shown.append((row.figure, number(row.measured, row.unit), middle, f"{low} to {high}"))
    to.print(table(("figure", "measured", "explained as", "90% interval"), shown, left=1))
    if best := [row for row in next_runs(found)[:NEXT_SHOWN] if row.bits >= 0.01]:
        next_ones = "; ".join(f"{row.figure} ({row.bits:.2f} bits)" for row in best)
        to.print(f"\nmeasure next: {next_ones}", soft_wrap=True)
    for text in warnings(found):
        to.print(f"\nwarning: {text}", soft_wrap=True)


def _write(found: Inference, scenario: str, out: Path) -> None:
    import yaml

    from ..inputs import write_text_atomically
    from ..validate.inferred import narrowed

    path = Path(scenario)
    base = str(path.resolve()) if path.suffix else scenario
    plain: dict[str, Any] = {"extends": base, "name": out.stem}
    unknown: dict[str, Any] = {}
    for name, left in narrowed(found).items():
        if isinstance(left, list) and len(left) == 1:
            _state(plain, name, left[0])
        else:
            unknown[name] = left
    text = yaml.safe_dump(plain | {"unknown": unknown}, sort_keys=False, allow_unicode=True)
    write_text_atomically(out, text)


def _state(plain: dict[str, Any], name: str, value: Any) -> None:
    *folders, last = name.split(".")
    for folder in folders:
        plain = plain.setdefault(folder, {})
    plain[last] = value
