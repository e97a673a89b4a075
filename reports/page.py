"""What the page of a report shows, made of records; ``report.html`` says how it is laid out.

What a run assumed, as rows of words: for reports and for the command line.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml
from markupsafe import Markup

from ..inputs.grouping import by_key
from ..sim.planes.outcome import ControlEvent, ResourceUse
from ..sim.run.limit import limits, together
from ..sim.run.real_planes import NATIVE
from ..sim.run.record import Record, plain_values
from ..sim.run.recovery import Recovery, sample_step_s, share_levels
from .answer import answer, comparing_answer
from .bars import depths, gains, parts_of_time, rates, recovery_times
from .charts import throughput_over_time, use_over_time
from .facts import fact_rows
from .figure import Figure
from .intervals import statistics_of, statistics_of_all
from .machine_picture import machine_in_use
from .runs import Run, moved_bytes, operations_of, recoveries_of, runs_of, smoothed
from .system_pictures import system_pictures
from .traffic import LinkRow, link_rows, matrices, traffic_tiles
from .words import listing, plain, plural, seconds, some

NOTHING = 5e-4  # a smaller change is none


@dataclass(frozen=True)
class AssumptionRow:
    """``low`` and ``high``: another value and what throughput (else power) then does, empty where
    nothing else can be stated. ``effect``: by how much throughput differs between both, or to what
    it is; ``ranged``: whether they are the ends of a range.
    """

    name: str
    value: str
    low: str
    high: str
    source: str
    effect: float
    ranged: bool


def assumption_rows(assumptions: Sequence[Mapping[str, Any]]) -> list[AssumptionRow]:
    """A row for each, what decides most first."""
    rows = [
        AssumptionRow(
            str(one["name"]),
            _with_unit(one["value"], one["unit"]),
            _end(one.get("low"), one["unit"], one["value"]),
            _end(one.get("high"), one["unit"], one["value"]),
            str(one["source"]),
            _spread([_change(one.get(end), "throughput") or 0.0 for end in ("low", "high")]),
            bool(one.get("ranged")),
        )
        for one in assumptions
    ]
    return sorted(rows, key=lambda row: -row.effect)


def _spread(changes: Sequence[float]) -> float:
    return max(0.0, *changes) - min(0.0, *changes)


def _end(end: Mapping[str, Any] | None, unit: str, assumed: Any) -> str:
    if end is None or end["value"] == assumed:
        return ""
    text = _with_unit(end["value"], unit)
    change = _change(end, "throughput")
    power = _change(end, "power")
    if change is None:
        return text
    if abs(change) < NOTHING and power is not None and abs(power) >= NOTHING:
        return f"{text}: {100 * power:+.1f}% power"
    return f"{text}: {100 * change:+.1f}%" if abs(change) >= NOTHING else f"{text}: no change"


def _change(end: Mapping[str, Any] | None, what: str) -> float | None:
    found = None if end is None else end.get(what)
    return found if isinstance(found, (int, float)) else None


def _with_unit(value: Any, unit: str) -> str:
    if not isinstance(value, (int, float)):
        return str(value)
    if unit == "ns":
        return seconds(value * 1e-9, 4)
    if unit in ("Hz", "B/s") and value >= 1e6:
        return f"{value / 1e9:.4g} G{unit}"
    return f"{plain(value, 4)} {unit}".strip()


WIDE_PX = 900  # a machine that is wider than this has a row of its own
RESOURCES_FIRST, RESOURCES_MAX = 12, 400
EVENTS_MAX = 500
# By whether the runs share their levels.
LEVELS = {
    True: "the best that any of these runs settles at before the next change, so that the figures "
    "of a run depend on the runs that it is compared with",
    False: "the one that each run settles at itself before the next change",
}


@dataclass(frozen=True)
class Plot:
    """A picture with its caption; ``json`` is safe inside a script element."""

    id: str
    json: Markup
    height_px: int
    width_min_px: int
    caption: str


@dataclass(frozen=True)
class MachinePicture:
    """A machine's picture as SVG, with its caption."""

    svg: Markup
    caption: str

    @property
    def wide(self) -> bool:
        """Whether it needs a row of its own."""
        found = re.search(r'width="(\d+)"', self.svg)
        return found is not None and int(found[1]) > WIDE_PX


def _machine(record: Record) -> MachinePicture | None:
    found = machine_in_use(record)
    return None if found is None else MachinePicture(Markup(found[0]), found[1])


class Plots:
    """Numbers the pictures of a page in the order in which they are made."""

    def __init__(self) -> None:
        self._count = 0

    def plot(self, figure: Figure | None, caption: str) -> Plot | None:
        """The figure as a Plot, None for None."""
        if figure is None:
            return None
        self._count += 1
        height = int(figure.layout["height"])
        least = int(figure.layout.get("meta", {}).get("width_min_px", 0))
        return Plot(f"plot-{self._count}", Markup(figure.to_json()), height, least, caption)

    def all_of(self, pictures: Iterable[tuple[Figure | None, str]]) -> list[Plot]:
        """Those that there are, with their captions."""
        made = (self.plot(figure, caption) for figure, caption in pictures)
        return [plot for plot in made if plot is not None]


@dataclass(frozen=True)
class RunView:
    """All that is shown of one run."""

    run: Run
    answer: Markup
    statistics: str
    """How often a random run was played; empty of another."""
    machine: MachinePicture | None
    over_time: Plot | None
    use: Plot | None
    of_system: list[Plot]
    """What its system shows besides."""
    gains: list[tuple[str, str, Plot | None, bool]]
    """(operations, what limits them, picture) each."""
    parts: Plot | None
    traffic: list[Plot]
    """Matrices of counted traffic, and below, the links by their load."""
    traffic_tiles: list[tuple[str, str, str]]
    links: list[LinkRow]
    resources: list[ResourceUse]
    resources_left_out: int
    events: list[ControlEvent]
    events_left_out: int
    assumptions: list[AssumptionRow]
    model: list[tuple[str, str]]
    settings: str
    provenance: list[tuple[str, str]]

    @property
    def record(self) -> Record:
        """The run's record."""
        return self.run.record


@dataclass(frozen=True)
class Comparison:
    """Several runs of one scenario side by side."""

    answer: Markup
    statistics: str
    rows: "list[ComparisonRow]"
    operations: list[str]
    rates: Plot | None
    throughput: Plot | None
    depths: Plot | None
    recoveries: Plot | None
    level: str
    """What throughput is held against in those two."""
    sampled: str
    """Over which time it is averaged there."""
    machines: list[tuple[Run, MachinePicture]]

    @property
    def limits_known(self) -> bool:
        """Whether any run tells what limits it."""
        return any(row.limits for row in self.rows)


@dataclass(frozen=True)
class ComparisonRow:
    """Key figures of one run; None and empty where it does not tell."""

    run: Run
    throughput: list[float | None]
    relative: float | None
    """Throughput of the first operation over that of the best run."""
    changes: int
    deepest: float | None
    """The deepest of its drops."""
    recovery_mean_s: float | None
    """The mean over the changes that it recovers from."""
    recovered: int
    settled: bool
    """Whether the levels that it is held against no longer change."""
    moved_bytes: float | None
    limits: list[str]


@dataclass(frozen=True)
class Chapter:
    """The runs of one scenario."""

    id: str
    title: str
    scenario: str
    runs: list[RunView] = field(default_factory=list)
    comparison: Comparison | None = None


def chapters_of(records: Sequence[Record]) -> list[Chapter]:
    """A chapter per scenario, in the order of the records."""
    plots = Plots()
    by_scenario = by_key((record.scenario, record) for record in records)
    return [
        _chapter(f"scenario-{k}", scenario, runs_of(together), plots)
        for k, (scenario, together) in enumerate(by_scenario.items(), 1)
    ]


def _chapter(id_: str, scenario: str, runs: Sequence[Run], plots: Plots) -> Chapter:
    comparison = _comparison(runs, plots) if len(runs) > 1 else None
    return Chapter(
        id=id_,
        title=runs[0].record.title or scenario,
        scenario=scenario,
        runs=[_run_view(run, plots) for run in runs],
        comparison=comparison,
    )


def _run_view(run: Run, plots: Plots) -> RunView:
    record = run.record
    resources = sorted(record.resources, key=lambda use: (-use.utilisation, use.name))
    events = sorted(record.control_events, key=lambda event: event.time_s)
    changing = len(record.series.get("time_s", ())) > 1
    shown = smoothed(run)
    why = limits(record.why, record.throughput)
    limited, timed = together(why), together(why, by_parts=True)
    over_time = throughput_over_time([shown], some(record.throughput)) if changing else None
    return RunView(
        run=run,
        answer=answer(record),
        statistics=statistics_of(record),
        machine=_machine(record),
        over_time=plots.plot(over_time, _over_time_caption(record)),
        use=plots.plot(
            use_over_time(shown.record) if changing else None,
            "Use of the resources that are busiest at some time.",
        ),
        of_system=plots.all_of(system_pictures(shown.record)),
        gains=[
            (
                listing(some(names)),
                why.resource,
                plots.plot(gains(why), f"{_more(names)} gained by 10% more of each."),
                bool(why.gains),
            )
            for names, why in limited
        ],
        parts=plots.plot(
            parts_of_time({listing(names): why for names, why in timed}),
            "Where the time of one operation goes.",
        ),
        traffic=plots.all_of(matrices(record)),
        traffic_tiles=traffic_tiles(record),
        links=link_rows(record)[:RESOURCES_MAX],
        resources=resources[:RESOURCES_MAX],
        resources_left_out=max(0, len(resources) - RESOURCES_MAX),
        events=events[:EVENTS_MAX],
        events_left_out=max(0, len(events) - EVENTS_MAX),
        assumptions=assumption_rows(record.assumptions),
        model=fact_rows(record.model),
        settings=_as_yaml(record.settings),
        provenance=_provenance(record),
    )


def _more(operations: Sequence[str]) -> str:
    """What a gain is a gain of, named where that is short."""
    names = listing(map(plural, operations))
    return f"{names[:1].upper()}{names[1:]} per second" if len(operations) <= 3 else "Throughput"


def _over_time_caption(record: Record) -> str:
    sentences = []
    if any(e.kind == "phase" and e.time_s > 0 for e in record.control_events):
        sentences.append("Shades distinguish the phases of the workload.")
    if record.replications > 1:
        noun = "runs" if record.plane == NATIVE else "replications"
        sentences.append(f"Means over the {noun}.")
    if record.warm_up_s:
        sentences.append(f"No figure counts the first {seconds(record.warm_up_s)}.")
    return " ".join(sentences)


def _comparison(runs: Sequence[Run], plots: Plots) -> Comparison:
    operations = operations_of(runs)
    changing = [smoothed(run) for run in runs if len(run.record.series.get("time_s", ())) > 1]
    if changing:  # beside them, what stays as it is has a line too
        changing = [smoothed(run) for run in runs if len(run.record.series.get("time_s", ()))]
    found = recoveries_of(runs, operations[0]) if operations else {}
    machines = [(run, _machine(run.record)) for run in runs]
    return Comparison(
        answer=comparing_answer(runs),
        statistics=statistics_of_all([run.record for run in runs]),
        rows=list(_rows(runs, operations, found)),
        operations=operations,
        rates=plots.plot(
            rates(runs, operations[0]) if operations else None,
            f"{_more(operations[:1])}; whiskers: intervals, as in the table." if operations else "",
        ),
        throughput=plots.plot(
            throughput_over_time(changing, operations) if changing and operations else None,
            "Click a name to hide its run, double-click to show only that run.",
        ),
        depths=plots.plot(depths(runs, found), "How deep throughput falls."),
        recoveries=plots.plot(
            recovery_times(runs, found),
            "How long until it is back; hatched: not before the next change.",
        ),
        level=LEVELS[share_levels(list(found.values()))],
        sampled=seconds(max((sample_step_s(run.record) or 0.0 for run in runs), default=0.0)),
        machines=[(run, picture) for run, picture in machines if picture is not None],
    )


def _rows(
    runs: Sequence[Run], operations: Sequence[str], found: Mapping[str, Sequence[Recovery]]
) -> Iterator[ComparisonRow]:
    figures = [[run.record.throughput.get(name) for name in operations] for run in runs]
    best = max((row[0] or 0.0 for row in figures if row), default=0.0)
    for run, row in zip(runs, figures, strict=True):
        ones = found.get(run.label, ())
        depths = [one.depth for one in ones if one.depth is not None]
        times = [one.recovery_s for one in ones if one.recovery_s is not None]
        yield ComparisonRow(
            run=run,
            throughput=row,
            relative=row[0] / best if best > 0 and row and row[0] is not None else None,
            changes=len(ones),
            deepest=max(depths, default=None),
            recovery_mean_s=sum(times) / len(times) if times else None,
            recovered=len(times),
            settled=all(one.settled for one in ones),
            moved_bytes=moved_bytes(run.record),
            limits=list(dict.fromkeys(why.resource for why in run.record.why.values())),
        )


def _provenance(record: Record) -> list[tuple[str, str]]:
    identity: dict[str, Any] = {
        "scenario": record.scenario,
        "scenario hash": record.scenario_hash,
        "machine": record.machine.get("name"),
        "policy": record.policy,
        "plane": record.plane,
        "seed": str(record.seed),
        "replications": str(record.replications) if record.replications else None,
        "warm-up_s": record.warm_up_s if record.replications else None,
        "horizon_s": record.horizon_s,
    }
    known = {name: value for name, value in identity.items() if value is not None}
    return fact_rows(known | dict(record.provenance))


def _as_yaml(settings: Mapping[str, Any]) -> str:
    text: str = yaml.safe_dump(
        plain_values(settings),
        sort_keys=False,
        allow_unicode=True,
        width=100,
        default_flow_style=None,
    )
    return text
