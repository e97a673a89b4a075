"""Counted against predicted traffic: what an operation moves, whatever time it takes.

Counted is what the emulator counts of the native engine in a guest; predicted, what a plane says of
the same scenario on the guest's machine, per operation: bytes a second over operations a second.
Both count a line and its header on each link that it crosses, and messages without data.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from ...engine_native.emulated import on_machine_of, run_emulated
from ...inputs import InputError
from ...inputs.progress import StepProgress, silent
from ...sim.run.record import Record
from ...sim.run.runner import bare_record
from ...sim.run.scenario import Scenario, scenario_from_settings
from ...sim.run.statistics import Interval
from ...topologies.emulator import guest_machine
from .rows import Row
from .session import Failure, Keep

PLANES = ("flow", "event")
PLAYED: dict[str, Any] = {"statistics": {"replications": 1}}
MEDIAN_MAX, WORST_MAX = 0.05, 0.20
# Figures of which both sides say less per operation are left out.
NEGLIGIBLE_B = 0.5


@dataclass(frozen=True)
class TrafficCase:
    """A scenario whose traffic is counted in a guest, and predicted.

    ``machine_scale``, ``nodes``: of the guest, see ``run_emulated``. ``horizons``: of the
    planes that predict it, the flow and the event plane.
    """

    name: str
    scenario: Scenario
    machine_scale: float
    nodes: int | None
    horizons: tuple[str, str] = ("100 ms", "5 ms")


Count = Callable[[TrafficCase], Record]


@dataclass(frozen=True)
class TrafficResult:
    """``rows``: by case, figure and plane; ``failures``: cases without any."""

    rows: tuple[Row, ...]
    failures: tuple[Failure, ...]

    @property
    def median_error(self) -> float:
        """Of all rows."""
        return median(row.error for row in self.rows)

    @property
    def worst_error(self) -> float:
        """Of all rows."""
        return max(row.error for row in self.rows)

    @property
    def within(self) -> float:
        """The part of the rows that the aim's bound for each holds for."""
        return sum(row.error <= WORST_MAX for row in self.rows) / len(self.rows)

    @property
    def holds(self) -> bool:
        """Whether all cases ran and the aim is reached."""
        return (
            not self.failures
            and bool(self.rows)
            and self.median_error <= MEDIAN_MAX
            and self.worst_error <= WORST_MAX
        )

    def as_json(self) -> dict[str, Any]:
        """The stable form of ``--json``."""
        found = self.rows
        return {
            "aim": {"median_error": MEDIAN_MAX, "worst_error": WORST_MAX},
            "median_error": self.median_error if found else None,
            "worst_error": self.worst_error if found else None,
            "within_20_percent": self.within if found else None,
            "holds": self.holds,
            "rows": [row.as_json() for row in found],
            "failures": [asdict(failure) for failure in self.failures],
        }


def counted_in_guest(case: TrafficCase) -> Record:
    """The Record of the case's engine in a guest, without the guest's kernel."""
    return run_emulated(case.scenario, case.machine_scale, nodes=case.nodes, user_only=True)


def traffic_crossvalidated(
    cases: Sequence[TrafficCase],
    progress: StepProgress = silent,
    keep: Keep | None = None,
    store: Callable[[TrafficResult], None] | None = None,
    count: Count = counted_in_guest,
) -> TrafficResult:
    """Counts all cases, one after the other, and predicts them.

    ``keep`` is given each record, with its case and its plane; ``store`` after each case all rows.
    """
    rows: list[Row] = []
    failures: list[Failure] = []
    for at, case in enumerate(cases):
        progress(at / len(cases), case.name)
        try:
            counted = count(case)
            if keep is not None:
                keep(case.name, counted.plane, counted)
            for plane in PLANES:
                predicted = bare_record(predicting(case, plane))
                if keep is not None:
                    keep(case.name, plane, predicted)
                rows += traffic_rows(case.name, counted, predicted)
        except InputError as failure:
            failures.append(Failure(case.name, case.scenario.plane, 1, str(failure)))
        if store is not None:
            with suppress(InputError):  # a full disk does not cost the other cases
                store(TrafficResult(tuple(rows), tuple(failures)))
    progress(1.0, "done")
    return TrafficResult(tuple(rows), tuple(failures))


def predicting(case: TrafficCase, plane: str) -> Scenario:
    """The case's scenario on its guest's machine, for a plane that predicts it."""
    guest = guest_machine(case.scenario.machine, nodes=case.nodes, scale=case.machine_scale)
    settings = dict(on_machine_of(guest, case.scenario).settings) | PLAYED
    settings |= dict(zip(("horizon", "event_horizon"), case.horizons, strict=True))
    settings["plane"] = plane
    settings.pop("native_horizon", None)
    return scenario_from_settings(settings, case.name)


def traffic_rows(case: str, counted: Record, predicted: Record) -> Iterator[Row]:
    """A row of each figure, but of what is next to nothing on both sides."""
    expected = predicted_figures(predicted)
    for name, value in counted_figures(counted).items():
        other = expected.get(name)
        if other is None or max(value, other) < NEGLIGIBLE_B:
            continue
        yield Row(
            scenario=case,
            group=case.partition(" ")[2],
            plane=predicted.plane,
            metric=name,
            kind="memory traffic",
            unit="B",
            measured=Interval(value, value, value),
            predicted=Interval(other, other, other),
            set="test",
            values=(value,),
        )


def counted_figures(record: Record) -> dict[str, float]:
    """Bytes per operation, as counted; raises InputError where none was done."""
    done = sum(record.operations.values())
    if not done:
        raise InputError("no operation was done while traffic was counted")
    traffic = record.traffic
    memory = [part["read_bytes"] + part["written_bytes"] for part in traffic["memory"]]
    links = [part["data_bytes"] + part["message_bytes"] for part in traffic["links"]]
    return {
        "memory": sum(memory) / done,
        "busiest controller": max(memory) / done,
        "links": sum(links) / done,
        "busiest link": max(links, default=0.0) / done,
    }


def predicted_figures(record: Record) -> dict[str, float]:
    """The same, as a plane predicts it; without what it does not know. Raises InputError where
    none was done until its horizon."""
    rate = sum(record.throughput.values())
    if not rate:
        raise InputError(f"no operation was done on the {record.plane} plane, which predicts it")

    def busiest(kind: str) -> float | None:
        found = [use.Bps for use in record.resources if use.kind == kind and use.Bps is not None]
        return max(found, default=None)

    found = {
        "memory": record.bandwidth_Bps.get("memory"),
        "busiest controller": busiest("memory"),
        "links": record.bandwidth_Bps.get("links"),
        "busiest link": busiest("link"),
    }
    return {name: value / rate for name, value in found.items() if value is not None}
