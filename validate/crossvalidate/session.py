"""A session of cross-validation: real runs in rounds, their predictions, and rows.

Rounds go A B C, A B C …, so that whatever drifts on the host hits all cases alike; predictions are
made in the first round, each after its real run. Where the host is not known but measured, that is
done again before each round, since real runs meet it in other states than the first minute's; and
the predictions are made once more in the end, with all of it. What is finished when an interrupt
comes, or when a real run fails, stays.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from ...inputs import InputError
from ...inputs.errors import is_interrupt
from ...inputs.progress import StepProgress, silent
from ...sim.run.real_planes import NATIVE
from ...sim.run.record import Record, part_at
from ...sim.run.runner import run_scenario
from ...sim.run.scenario import Scenario
from ...sim.run.statistics import Interval
from ...sim.run.uncertainty import bounds, shift_of, with_uncertainty
from ..measure.noise import Ticks, taken, taken_warnings, ticks
from ..metrics import Metric
from .rows import Kind, Row, measured_interval
from .suite import Case, LeftOut

Play = Callable[[Scenario], Record]
Keep = Callable[[str, str, Record], None]
Store = Callable[["Found"], None]

# A pass over the host takes about as long as so many real runs.
PASS_STEPS = 40.0

# What can go wrong in a run without being a mistake of this program.
FAILURES = (InputError, OSError, MemoryError, RuntimeError)
KINDS: Mapping[str, Kind] = {
    "throughput": "throughput",
    "bandwidth_Bps": "memory traffic",
    "latency_ns": "latency",
    "recovery": "recovery",
}
NO_FIGURE = "real runs have no such figure: it is not measured, or too little was done"


@dataclass(frozen=True)
class Failure:
    """A run that did not come to its end; ``round`` is counted from 1."""

    scenario: str
    plane: str
    round: int
    reason: str


@dataclass
class Found:
    """What a session has found so far. ``not_kept``: why some records were not, in words.

    ``measured``: the records of each case's real runs; ``predicted``: of each case, by plane;
    ``predicted_again``: whether with all that was measured of the host;
    ``interrupted``: until the session has come to its end.
    ``seconds``: that real runs took, and of the CPUs' time meanwhile ``stolen_s`` (taken by the
    hypervisor) and ``others_s`` (used by other programs).
    """

    cases: Sequence[Case]
    measured: dict[str, list[Record]] = field(default_factory=dict)
    predicted: dict[str, dict[str, Record]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    not_kept: str | None = None
    rounds: int = 0
    predicted_again: bool = False
    interrupted: bool = True
    seconds: float = 0.0
    stolen_s: float = 0.0
    others_s: float = 0.0

    def rows(self) -> list[Row]:
        """One of each figure that was both measured and predicted, in the order of the cases."""
        return [row for case in self.cases for row in self._rows_of(case)]

    def _rows_of(self, case: Case) -> Iterator[Row]:
        measured = self.measured.get(case.name, [])
        for metric in case.metrics if measured else ():
            values = [value for record in measured if (value := figure(metric, record)) is not None]
            if not values:
                continue
            for plane, record in self.predicted.get(case.name, {}).items():
                value = figure(metric, record)
                if value is None:
                    continue
                yield Row(
                    scenario=case.name,
                    group=case.run,
                    plane=plane,
                    metric=str(metric),
                    kind=kind_of(metric),
                    unit=metric.unit,
                    measured=measured_interval(values),
                    predicted=_interval(metric, record, value),
                    set="test",
                    values=tuple(values),
                    size_bytes=case.size_bytes,
                )

    def left_out(self) -> list[LeftOut]:
        """Figures without a row: predicted ones that no real run has, and planes that cannot run
        a case."""
        runs: dict[tuple[str, str], dict[str, None]] = {}
        for case in self.cases:
            for plane, why in case.unable.items():
                runs.setdefault((f"plane {plane}", why), {})[case.run] = None
            records = self.measured.get(case.name, [])
            predicted = self.predicted.get(case.name, {}).values()
            for metric in case.metrics if records else ():
                has_figure = any(figure(metric, record) is not None for record in predicted)
                if has_figure and all(figure(metric, record) is None for record in records):
                    what, why = _without(metric, records[-1])
                    runs.setdefault((what, why), {})[case.run] = None
        return [LeftOut(what, why, tuple(names)) for (what, why), names in runs.items()]

    @property
    def stolen(self) -> float:
        """Share of all CPUs' time that the hypervisor took while real runs were under way."""
        return self._share(self.stolen_s)

    @property
    def others(self) -> float:
        """The same of other programs."""
        return self._share(self.others_s)

    def _share(self, cpu_s: float) -> float:
        return cpu_s / max(self.seconds * (os.cpu_count() or 1), 1e-9)

    def noise(self) -> Iterator[str]:
        """A line for each reason to distrust what was measured."""
        return taken_warnings(self.stolen, self.others, " during real runs")


def kind_of(metric: Metric) -> Kind:
    """What the aim knows a metric as."""
    if metric.path[0] == "latency_ns" and metric.path[2] == "p99":
        return "p99 latency"
    return KINDS.get(metric.path[0], "other")


def figure(metric: Metric, record: Record) -> float | None:
    """The metric of a record; None where it has none."""
    try:
        return metric.of_record(record)
    except InputError:
        return None


def _without(metric: Metric, record: Record) -> tuple[str, str]:
    """What a real run has no figure of, and why."""
    if kind_of(metric) != "memory traffic":
        return str(metric), NO_FIGURE
    reason = part_at(record.model, ("native", "memory_traffic"))
    return "memory traffic", str(reason) if reason else NO_FIGURE


class Host(Protocol):
    """A host that is measured once more before each round but the first."""

    def measure(self, progress: StepProgress) -> None:
        """One more pass over the host; KeyboardInterrupt where it was interrupted."""

    def cases(self) -> Sequence[Case]:
        """On the machine as all passes together found it."""


class Session:
    """Runs cases in rounds. ``host``: measured between rounds, and so predicted once more at the
    end, and only then with an interval; by default the machine is known. ``play`` runs a scenario
    on its plane, ``doubt`` gives a record its uncertainty; ``keep`` is given each record with its
    case and a name of its own; ``store``, after each real run, all that was found so far;
    ``progress`` the part that is done, and what comes next.
    """

    def __init__(
        self,
        cases: Sequence[Case],
        rounds: int,
        *,
        host: Host | None = None,
        play: Play = run_scenario,
        doubt: Callable[[Record, Scenario], Record] = with_uncertainty,
        ticks: Callable[[], Ticks] = ticks,
        progress: StepProgress = silent,
        keep: Keep | None = None,
        store: Store | None = None,
    ) -> None:
        self.rounds = rounds
        self.found = Found(cases)
        self._host, self._ticks, self._doubt = host, ticks, doubt
        self._play, self._progress = play, progress
        self._keep, self._store = keep, store
        predictions = sum(len(case.predicted) for case in cases)
        self._steps = float(rounds * len(cases) + predictions)
        if host is not None:
            self._steps += (rounds - 1) * PASS_STEPS + predictions
        self._done = 0.0

    def run(self) -> Found:
        """All rounds, or what comes before an interrupt."""
        found = self.found
        try:
            for number in range(1, self.rounds + 1):
                if number > 1:
                    self._measure_host()
                for case in found.cases:
                    self._measure(case, number)
                    if number == 1:
                        self._predict(case, found, doubt=self._host is None)
                    self._stored()
                found.rounds = number
            self._predict_again()
            found.interrupted = False
        except BaseException as failure:
            if not is_interrupt(failure):
                raise
        self._progress(1.0, "done")
        return found

    def _measure_host(self) -> None:
        if self._host is None:
            return
        first = self._done

        def report(share: float, what: str) -> None:
            self._done = first + share * PASS_STEPS
            self._tell(f"the host once more: {what}")

        self._host.measure(report)
        self._done = first + PASS_STEPS

    def _predict_again(self) -> None:
        """With all that was measured of the host: all predictions, or those before it stay."""
        if self._host is None or self.rounds < 2:
            return
        cases = self._host.cases()
        again = Found(cases)
        again.failures = self.found.failures
        for case in cases:
            self._predict(case, again)
        found = self.found
        found.predicted, found.predicted_again = again.predicted, True
        for case in cases:
            for plane, record in found.predicted.get(case.name, {}).items():
                self._kept(case, plane, record)

    def _measure(self, case: Case, number: int) -> None:
        self._tell(f"{case.name}, for real")
        if not self._failed(case, NATIVE):
            # Each round is a run of its own, so that host and engine start afresh.
            plan = case.native.statistics.model_copy(update={"replications": 1, "half_width": None})
            try:
                before = self._ticks()
                record = self._play(replace(case.native, statistics=plan))
                self._watched(before, self._ticks())
            except FAILURES as failure:
                self._fail(case, NATIVE, number, failure)
            else:
                self.found.measured.setdefault(case.name, []).append(record)
                self._kept(case, f"{NATIVE}-{number}", record)
        self._done += 1

    def _predict(self, case: Case, into: Found, *, doubt: bool = True) -> None:
        for plane, scenario in case.predicted.items():
            self._tell(f"{case.name}, on plane {plane}")
            if not self._failed(case, plane):
                try:
                    record = self._play(scenario)
                    record = self._doubt(record, scenario) if doubt else record
                except FAILURES as failure:
                    self._fail(case, plane, 1, failure)
                else:
                    into.predicted.setdefault(case.name, {})[plane] = record
                    if into is self.found:
                        self._kept(case, plane, record)
            self._done += 1

    def _watched(self, before: Ticks, after: Ticks) -> None:
        """Adds up what others did during a real run."""
        stolen_s, others_s = taken(before, after)
        self.found.seconds += after.wall - before.wall
        self.found.others_s += others_s
        self.found.stolen_s += stolen_s

    def _failed(self, case: Case, plane: str) -> bool:
        return any(
            (failure.scenario, failure.plane) == (case.name, plane)
            for failure in self.found.failures
        )

    def _fail(self, case: Case, plane: str, number: int, failure: BaseException) -> None:
        reason = " ".join(str(failure).split()) or type(failure).__name__
        self.found.failures.append(Failure(case.name, plane, number, reason))

    def _kept(self, case: Case, name: str, record: Record) -> None:
        if self._keep is None or self.found.not_kept is not None:
            return
        try:
            self._keep(case.name, name, record)
        except InputError as failure:  # the disk is full: rows are made all the same
            self.found.not_kept = f"records are not kept from '{case.name}' on: {failure}"

    def _stored(self) -> None:
        if self._store is None or self.found.not_kept is not None:
            return
        try:
            self._store(self.found)
        except InputError as failure:
            self.found.not_kept = f"rows are not kept meanwhile: {failure}"

    def _tell(self, text: str) -> None:
        self._progress(self._done / max(self._steps, 1), text)


def _interval(metric: Metric, record: Record, value: float) -> Interval:
    """Between what it lies at 90% over draws of the facts, and, relative to these, as far as the
    confidence interval of the plane's own draws."""
    least, most = bounds(value * shift_of(record, metric.path))
    low, high = metric.interval(record) or (value, value)
    least, most = min(least, value), max(most, value)
    if not value:
        return Interval(value, min(least, low), max(most, high))
    return Interval(value, least * min(max(low / value, 0.0), 1.0), most * max(high / value, 1.0))
