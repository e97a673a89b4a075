"""``numatwin sweep``: a grid of runs over a few fields, as a table and a curve."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..inputs import InputError, check_folder, write_text_atomically
from .failures import after_interrupt
from .figures import LIKELY as INTERVAL
from .figures import between, curve_of, factor_names, factor_values, heading, written_figure
from .options import Jobs, Json, OtherPlane, Replications, ScenarioName, Seed, flag, grouped, option
from .output import Part, below, present, progress_bar, show, whole_table

if TYPE_CHECKING:
    from ..sim.studies.designs import Design

ROWS_SHOWN = 60
CSV_FILE, PICTURE = "sweep.csv", "sweep"
Metrics = Annotated[
    list[str] | None,
    option(
        "PATH",
        "Another figure to keep, such as utilisation.memory.busiest; may be repeated.",
        "--metric",
    ),
]


@dataclass(frozen=True)
class Grid:
    """The values that a scenario is run with."""

    set_: Annotated[
        list[str] | None,
        option(
            "PATH=VALUES",
            "Values of a field: v1,v2,v3 or from:to:n or from:to:nlog; several make a grid.",
            "--set",
        ),
    ] = None
    machine: Annotated[str | None, option("M,M", "Machines: names or files.")] = None
    workload: Annotated[str | None, option("W,W", "Workloads: names or files.")] = None
    policy: Annotated[list[str] | None, option("P,P", "Policies, as 'run' takes them.")] = None
    load: Annotated[
        str | None,
        option(
            "RATES",
            "Arrival rates of open clients, such as 10M/s:100M/s:10: shows p99 against them, and "
            "its knee.",
        ),
    ] = None
    on: OtherPlane = None
    seed: Seed = None
    replications: Replications = None

    def settings(self) -> list[str]:
        """Values of fields, those of a load among them."""
        if self.load is None:
            return self.set_ or []
        clients = ("workload.clients.kind=open", f"workload.clients.arrival_rate={self.load}")
        return [*(self.set_ or []), *clients]

    def options(self) -> dict[str, Any]:
        """Those that have options of their own."""
        return {
            "machine": self.machine,
            "workload": self.workload,
            "policy": self.policy,
            "plane": self.on.value if self.on else None,
            "seed": self.seed,
            "replications": self.replications,
        }


@dataclass(frozen=True)
class RowsOut:
    """What becomes of the rows."""

    out: Annotated[
        Path | None, option("DIR", "A folder for the rows as CSV and the curve as SVG.")
    ] = None
    csv_: Annotated[bool, flag("--csv", "Print the rows as CSV.")] = False
    exact: Annotated[bool, flag("--exact", "Leave out the 90% intervals of some rows.")] = False
    json: Json = False

    def check(self) -> None:
        """Refuses what does not go together."""
        if self.json and self.csv_:
            raise typer.BadParameter("expected --json or --csv, not both", param_hint="--csv")
        if self.out is not None:
            check_folder(self.out)


@grouped
def sweep(
    scenario: ScenarioName,
    grid: Grid,
    metric: Metrics = None,
    jobs: Jobs = None,
    to: RowsOut = RowsOut(),
) -> None:
    """Run a scenario for a grid of values, and show the curve.

    A latency against the load, with its knee: numatwin sweep eris-fig8-amd --on event --load
    100M/s:500M/s:5
    """
    from ..sim.studies.sweep import planned_sweep

    to.check()
    planned = planned_sweep(scenario, grid.options(), grid.settings(), metric or ())
    design = planned.design
    with progress_bar("simulating") as progress:
        rows, stopped = planned.run(jobs, progress)
    failed = planned.failures(rows)
    drawn = _drawn(rows, grid.load is not None)
    if drawn is not None and not (to.exact or to.csv_ or stopped):
        planned.add_intervals(rows, drawn)
    if to.csv_:
        print(_as_csv(design, rows), end="")
    else:
        present(to.json, lambda: _as_json(scenario, design, rows), _parts(design, rows, drawn))
    if failed is not None:
        print(f"numatwin: {failed}", file=sys.stderr)
    if to.out is not None:
        title = planned.runs.base.document().part(("title",)) or scenario
        _keep(to.out, title, design, rows, drawn, quiet=to.json or to.csv_)
    if stopped:
        raise after_interrupt("printed" if to.out is None else "kept")


def _drawn(rows: Sequence[Mapping[str, Any]], under_load: bool) -> str | None:
    """The figure whose curve is drawn: of the first operation its throughput, or its p99."""
    kind, end = ("latency_ns.", ".p99") if under_load else ("throughput.", "")
    names = (name for row in rows for name in row if name.startswith(kind) and name.endswith(end))
    found = next(names, None)
    if found is None and under_load:
        raise InputError("--load: no run has a p99", expected="--on event")
    return found


def _as_json(scenario: str, design: Design, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    from ..sim.studies.evaluate import ERROR, HASH, PLANE, REPLAY

    found = []
    for row in rows:
        one: dict[str, Any] = {
            "settings": {factor.path: row[factor.path] for factor in design.factors},
            "plane": row.get(PLANE),
            "scenario_hash": row.get(HASH),
            "error": row.get(ERROR),
        }
        if ERROR in row:
            one["replay"] = row[REPLAY]
        for name, value in row.items():
            if name not in one["settings"] and name not in ("point", "wall_s", *one, REPLAY):
                _put(one, name, value)
        found.append(one)
    return {
        "scenario": scenario,
        "factors": [
            {"path": factor.path, "unit": factor.unit, "values": list(factor.levels.values)}
            for factor in design.factors
        ],
        "rows": found,
    }


def _put(one: dict[str, Any], path: str, value: Any) -> None:
    """The figure in the form that 'run --json' has it; its bounds in ``confidence``."""
    names = path.split(".")
    end = names[-1] if names[-1] in ("low", "high") else None
    if end is not None:
        one, names = one.setdefault("confidence", {}), names[:-1]
    for name in names[:-1]:
        one = one.setdefault(name, {})
    if end is None:
        one[names[-1]] = value
    else:
        one.setdefault(names[-1], [None, None])[end == "high"] = value


def _as_csv(design: Design, rows: Sequence[Mapping[str, Any]]) -> str:
    from ..sim.studies.evaluate import OWN, POINT

    paths = [factor.path for factor in design.factors]
    figures = [name for row in rows for name in row if name not in (*paths, *OWN)]
    names = [POINT, *paths, *dict.fromkeys(figures), *(name for name in OWN if name != POINT)]
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _parts(design: Design, rows: Sequence[Mapping[str, Any]], drawn: str | None) -> Iterator[Part]:
    from ..sim.run.replications import unsettled_notes
    from ..sim.studies.evaluate import ERROR, LIKELY, UNSETTLED
    from ..sim.studies.results import NOTES_MAX, spans

    figures = list(
        dict.fromkeys(
            name
            for row in rows
            for name in row
            if name.startswith("throughput.") or name.endswith(".p99")
            if not name.endswith((".low", ".high")) and not name.startswith(LIKELY)
        )
    )
    main = drawn or ""
    known = any(LIKELY + main in row for row in rows[:ROWS_SHOWN])
    columns = [*factor_names(design.factors), *map(heading, figures)]
    columns += [*([INTERVAL] if known else []), "bottleneck"]
    cells = []
    for row in rows[:ROWS_SHOWN]:
        cells.append(factor_values(design.factors, row) + [_figure(name, row) for name in figures])
        if known:
            cells[-1].append(between(main, row.get(LIKELY + main)))
        cells[-1].append(str(row.get(ERROR) or row.get("bottleneck.resource") or "–"))
    yield whole_table(columns, cells, left=len(design.factors))
    if len(rows) > ROWS_SHOWN:
        yield f"… and {len(rows) - ROWS_SHOWN:,} more: --csv prints all"
    if drawn is not None:
        yield from curve_of(design, rows, drawn, knee=drawn.endswith(".p99"))
    warnings = [(number, row.get(UNSETTLED)) for number, row in enumerate(rows, 1)]
    yield from below(unsettled_notes(warnings, lambda found: spans(found, "row"), NOTES_MAX))


def _figure(metric: str, row: Mapping[str, Any]) -> str:
    low, high = row.get(f"{metric}.low"), row.get(f"{metric}.high")
    text = written_figure(metric, row.get(metric))
    if isinstance(low, float) and isinstance(high, float) and row[metric]:
        text += f" ±{100 * (high - low) / 2 / row[metric]:.2g}%"
    return text


def _keep(
    out: Path,
    title: str,
    design: Design,
    rows: Sequence[Mapping[str, Any]],
    drawn: str | None,
    quiet: bool,
) -> None:
    """Writes rows and their curve."""
    from ..reports.curve_svg import curve_svg
    from ..sim.run.record import unit_of
    from ..sim.studies.results import response

    out.mkdir(parents=True, exist_ok=True)
    paths = [factor.path for factor in design.factors]
    files = [write_text_atomically(out / CSV_FILE, _as_csv(design, rows))]
    units = [factor.unit for factor in design.factors]
    found = response(rows, paths, units, drawn) if drawn is not None else None
    if found is not None and drawn is not None:
        svg = curve_svg(found, title, unit_of(drawn), knees=drawn.endswith(".p99"))
        files.append(write_text_atomically(out / f"{PICTURE}.svg", svg))
    if not quiet:
        show(["", *map(str, files)])
