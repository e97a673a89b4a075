"""``numatwin infer``: what measured runs say of what is unknown in a scenario."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ..inputs import InputError, write_text_atomically
from .files import check_file
from .options import Json, OtherMachine, Settings, argument, bundled_scenarios, flag, option
from .output import Part, number, percent, present, progress_bar, table, written_to

if TYPE_CHECKING:
    from ..validate.inference import Inference
    from ..validate.inferred import Remaining

NEXT_SHOWN = 3
COLUMNS = (
    "What was measured, a run a row, in columns: operation, throughput; also memory_traffic and "
    "link_traffic (with their unit: 17.8 GB/s), spread, threads, nodes, keys, scenario, machine, "
    "source, and any field by its path, such as system.page_size."
)


def infer(
    scenarios: Annotated[
        list[str],
        argument(
            "SCENARIO…",
            "Scenarios that ran: names or files, whose 'unknown' says what nobody knows.",
            autocompletion=bundled_scenarios,
        ),
    ],
    source: Annotated[Path, option("RUNS.csv", COLUMNS, "--from")],
    machine: OtherMachine = None,
    set_: Settings = None,
    exact: Annotated[bool, flag("--exact", "Take the model to be right to a percent.")] = False,
    out: Annotated[
        Path | None, option("FILE.yaml", "Write the scenario with what remains unknown.")
    ] = None,
    json: Json = False,
) -> None:
    """Weigh what is unknown in a scenario by measured runs."""
    from ..validate.inference import infer as inferred
    from ..validate.inferred import as_json

    if out is not None and len(scenarios) > 1:
        raise InputError("--out", token=str(out), expected="one scenario")
    check_file(out)
    with progress_bar("weighing") as progress:
        found = inferred(
            scenarios, source, machine=machine, settings=set_ or [], exact=exact, progress=progress
        )
    if out is not None:
        _write(found, scenarios[0], out)
    present(json, lambda: as_json(found), chain(_parts(found), written_to({"Scenario": out})))


def _parts(found: "Inference") -> Iterator[Part]:
    from ..validate.inferred import explained, hypotheses, next_runs, warnings

    yield (
        f"{len(found.weights):,} draws of {len(found.doubts)} unknown conditions and facts, "
        f"of which {found.effective:.0f} count\n"
    )
    if rows := [_known(row) for row in hypotheses(found)]:
        yield table(("unknown", "before", "now, 90%"), rows, left=3)
    else:
        yield "no condition is left unknown, and what was measured narrows no fact"
    yield ""
    shown = []
    for row in explained(found):
        low, middle, high = (number(value, row.unit) for value in row.predicted)
        shown.append((row.figure, number(row.measured, row.unit), middle, f"{low} to {high}"))
    yield table(("figure", "measured", "explained as", "90% interval"), shown)
    if best := [row for row in next_runs(found)[:NEXT_SHOWN] if row.bits >= 0.01]:
        next_ones = "; ".join(f"{row.figure} ({row.bits:.2f} bits)" for row in best)
        yield f"\nmeasure next: {next_ones}"
    yield from (f"\nwarning: {text}" for text in warnings(found))


def _known(one: "Remaining") -> tuple[str, str, str]:
    """What it may be, before and given what was measured."""
    if one.choices:
        order = sorted(one.choices.items(), key=lambda item: -item[1])
        now = ", ".join(
            f"{value} ({'cannot be run' if value in one.impossible else percent(share)})"
            for value, share in order
        )
        before = zip(one.values, one.before, strict=True)
        even = len(set(one.before)) == 1
        words = [value if even else f"{value} ({percent(share)})" for value, share in before]
        return one.name, " or ".join(words), now
    low, middle, high = one.interval
    return one.name, " to ".join(one.values), f"{middle}, from {low} to {high}"


def _write(found: "Inference", scenario: str, out: Path) -> None:
    import yaml

    from ..validate.inferred import narrowed

    path = Path(scenario)
    base = str(path.resolve()) if path.suffix else scenario
    plain = {"extends": base, "name": out.stem, "unknown": narrowed(found)}
    text = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)
    write_text_atomically(out, text)
