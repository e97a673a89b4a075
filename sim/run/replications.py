"""Runs a scenario on a plane with random draws: a pilot run, then replications.

The warm-up. With ``auto`` a pilot run, replication 0, is made and thrown away; MSER-5 tells from
its series when it has settled. All replications leave out twice that time, as some settle later
than the pilot, but at most half of the horizon. So replications are alike in what they count, which
intervals rely on, and no run is judged by a time that its own draws chose. Where the workload
changes, the time before the first change must settle: what comes later is meant to be seen.

Replications are numbered from 1. Which numbers are run, and what they draw, depends on the
scenario alone, neither on how many workers there are nor on who is faster.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import joblib
import numpy as np
from joblib.externals.loky.process_executor import BrokenProcessPool

from ...inputs import InputError
from ...inputs.grouping import by_key
from ...inputs.progress import Progress, part_of, silent
from ...inputs.quantities import time_text
from ..control.control_plane import ControlPlane
from ..control.sampling import Sampling
from ..planes.outcome import ControlEvent, Outcome, Series
from ..planes.plane import Maker, is_real_time
from .scenario import Scenario, scenario_from_settings
from .statistics import mean_interval, mser5, trends
from .workers import local_workers, stop_without, without_interrupts

Name = TypeVar("Name")

PILOT = 0
UNSETTLED = "warm-up: "  # so warnings begin of runs that were too short to settle
LONGER_TIMES = 10  # a run that did not settle
SETTLED_TIMES = 2  # what the pilot took to settle
# Below this much work left, starting workers takes longer than they save.
PARALLEL_MIN_S = 3.0
# Services take whole picoseconds: so much of a sample, or in all, comes of rounding.
ROUNDED_PART, ROUNDED_S = 1e-6, 1e-11


@dataclass(frozen=True)
class Replication:
    """What one replication left behind. ``wall_s``: how long it took."""

    number: int
    outcome: Outcome
    events: tuple[ControlEvent, ...]
    series: Series
    wall_s: float


@dataclass(frozen=True)
class WarmUp:
    """When counting starts, and what a reader should know of it.

    ``notes``: that the pilot run did not settle; intervals would then say little. ``wall_s``,
    ``steps``: of the pilot run, 0 without one.
    """

    warm_up_s: float
    notes: tuple[str, ...] = ()
    wall_s: float = 0.0
    steps: int = 0


def play(
    make: Maker, scenario: Scenario, number: int, warm_up_s: float, progress: Progress = silent
) -> Replication:
    """One replication, from time 0 to the horizon."""
    began = time.perf_counter()
    plane = make(scenario, number)
    control = ControlPlane(scenario, plane)
    sampling = Sampling(plane, scenario.horizon_s, warm_up_s)
    control.clock.process(sampling.process(control.clock))
    control.run(progress)
    # The last look first: in real time workers go on, and share their CPUs with what comes here.
    series = sampling.series(scenario.horizon_s)
    if not is_real_time(plane):
        _check_uses(series)
    outcome = plane.outcome()
    events = sorted([*control.events, *outcome.events], key=lambda event: event.time_s)
    return Replication(number, outcome, tuple(events), series, time.perf_counter() - began)


def _check_uses(series: Series) -> None:
    """No resource was in use for longer than a sample lasted, nor for less than no time."""
    duration_s = series["duration_s"]
    rounded_s = ROUNDED_PART * duration_s + ROUNDED_S
    for name, use in series.items():
        past_s = np.maximum(use - 1.0, -use) * duration_s
        if name.startswith("utilisation/") and (past_s > rounded_s).any():
            worst = use[np.argmax(past_s)]
            raise AssertionError(f"{name}: {worst:.4%} of a sample, expected 0 to 100%")


def warm_up_of(make: Maker, scenario: Scenario, progress: Progress = silent) -> WarmUp:
    """The warm-up that the scenario states, or that a pilot run shows."""
    stated_s = scenario.statistics.warm_up_s
    if stated_s is not None:
        return WarmUp(stated_s)
    changes_s = [change.event.time_s for change in scenario.changes]
    changes_s += scenario.workload.change_times(scenario.horizon_s)
    until_s = min(changes_s, default=scenario.horizon_s)
    pilot = play(make, replace(scenario, horizon_s=until_s), PILOT, 0.0, progress)
    columns = _watched(pilot.series)
    found = [mser5(column) for column in columns]
    first = max((warm_up.first for warm_up in found), default=0)
    notes: tuple[str, ...] = ()
    settled = all(warm_up.settled for warm_up in found) and not (
        columns and _uneven(columns[0][first:])
    )
    if not settled or any(trends(column[first:]) for column in columns):
        first = max(first, len(pilot.series["time_s"]) // 2)
        longer = f"--set '{longer_horizon(scenario.horizon_s)}' runs it for longer"
        if until_s < scenario.horizon_s:
            longer = "it needs more time before the workload changes"
        notes = (
            f"{UNSETTLED}a pilot run of {time_text(until_s)} does not settle; half of it is "
            f"discarded, and figures have no intervals: {longer}",
        )
    settled_s = float(pilot.series["time_s"][first]) if columns else 0.0
    warm_up_s = min(SETTLED_TIMES * settled_s, until_s / 2)
    return WarmUp(warm_up_s, notes, pilot.wall_s, pilot.outcome.steps)


def longer_horizon(horizon_s: float) -> str:
    """The setting by which a run that did not settle in that time may."""
    return f"horizon={time_text(LONGER_TIMES * horizon_s)}"


def _uneven(throughput: Any) -> bool:
    """Whether one half of a series has more than twice what the other has, or nothing is done."""
    halves = [float(half.sum()) for half in np.array_split(throughput, 2)]
    return max(halves) > 2.0 * min(halves) or not any(halves)


def _watched(series: Series) -> list[Any]:
    """What must have settled: all throughput together, then how much is under way."""
    found = []
    for kind in ("throughput/", "under_way/"):
        columns = [column for name, column in series.items() if name.startswith(kind)]
        if columns:
            found.append(np.sum(columns, axis=0))
    return found


def unsettled(warnings: Iterable[str]) -> str | None:
    """The one of a run's ``warnings`` that says that it was too short to settle; None without."""
    return next((warning for warning in warnings if warning.startswith(UNSETTLED)), None)


def unsettled_notes(
    warnings: Iterable[tuple[Name, str | None]],
    written: Callable[[list[Name]], str],
    most: int | None = None,
) -> list[str]:
    """A note for each warning of ``unsettled``, with the names of the runs that have it: what beats
    what may change in longer runs. Of ``most`` at most, and how many more there are.
    """
    named = by_key((warning, name) for name, warning in warnings if warning is not None)
    notes = [f"Note ({written(names)}): {warning}" for warning, names in named.items()]
    if most is None or len(notes) <= most:
        return notes
    return [*notes[:most], f"Note: {len(notes) - most:,} more such notes, of runs of other lengths"]


def replicate(
    make: Maker,
    scenario: Scenario,
    warm_up: WarmUp,
    workers: int | None = None,
    progress: Progress = silent,
) -> Iterator[Replication]:
    """Replications 1, 2 … in their order, as many as the scenario asks for.

    ``workers``: processes at most; by default as many as there are processors to use. Each makes
    the scenario again from its settings.
    """
    most = workers or joblib.effective_n_jobs(-1)
    wall_s = warm_up.wall_s
    done: list[Replication] = []
    while not enough(done, scenario):
        numbers = _next(len(done), scenario, wall_s, most)
        if len(numbers) == 1:
            expected = _expected(done, scenario)
            first, last = (min((len(done) + k) / expected, 1.0) for k in (0, 1))
            report = part_of(progress, first, last)
            played = iter([play(make, scenario, numbers[0], warm_up.warm_up_s, report)])
        else:
            played = _in_parallel(make, scenario, numbers, warm_up.warm_up_s, most)
        for replication in played:
            wall_s = replication.wall_s
            done.append(replication)
            yield replication
            progress(min(len(done) / _expected(done, scenario), 1.0))
            if enough(done, scenario):
                break


def play_numbers(
    make: Maker,
    scenario: Scenario,
    numbers: range,
    warm_up_s: float,
    workers: int | None = None,
    wall_s: float = 0.0,
) -> Iterator[Replication]:
    """Those replications, in their order; together where that is quicker.

    ``wall_s``: how long one takes, 0 where nobody knows yet. ``workers``: as ``replicate`` has it.
    """
    most = workers or joblib.effective_n_jobs(-1)
    if most == 1 or len(numbers) < 2 or wall_s * len(numbers) < PARALLEL_MIN_S:
        for number in numbers:
            yield play(make, scenario, number, warm_up_s)
    else:
        yield from _in_parallel(make, scenario, numbers, warm_up_s, most)


def _next(done: int, scenario: Scenario, wall_s: float, most: int) -> range:
    """The numbers to run next, together: one where others would not be quicker.

    ``wall_s``: how long one takes, 0 where nobody knows yet.
    """
    plan = scenario.statistics
    sure = plan.replications - done  # to be run whatever comes
    count = sure if sure > 0 else min(most, plan.replications_max - done)
    if most == 1 or wall_s * count < PARALLEL_MIN_S:
        count = 1
    return range(done + 1, done + count + 1)


class WorkerLost(InputError):
    """A process that ran replications has gone; those that were finished are not lost."""


def _in_parallel(
    make: Maker, scenario: Scenario, numbers: range, warm_up_s: float, workers: int
) -> Iterator[Replication]:
    """Those replications, in their order, each as soon as it and those before it are there.

    Workers go on while the marker is there: where this ends before its time (Ctrl-C, a failure,
    enough replications), it is gone, and so are they back at rest, ready for the next run.
    """
    to_play, due = deque(numbers), numbers[0]
    playing: dict[Future[Replication], int] = {}
    ready: dict[int, Replication] = {}
    with local_workers(min(workers, len(numbers))) as processes:
        while due in numbers:
            # Ctrl-C is for this process alone: workers are born deaf to it.
            with without_interrupts():
                while to_play and len(playing) < workers:
                    number = to_play.popleft()
                    task = (make, scenario.settings, number, warm_up_s, processes.marker)
                    playing[processes.submit(_play_again, *task)] = number
            for played in wait(playing, return_when=FIRST_COMPLETED).done:
                try:
                    ready[playing.pop(played)] = played.result()
                except BrokenProcessPool:
                    raise WorkerLost(
                        "a worker process was ended from outside: killed, or out of memory"
                    ) from None
            while due in ready:
                yield ready.pop(due)
                due += 1


def _play_again(
    make: Maker, settings: Mapping[str, Any], number: int, warm_up_s: float, folder: str
) -> Replication:
    """In a worker: policies may be functions that no other process knows, so settings travel."""

    return play(make, scenario_from_settings(settings), number, warm_up_s, stop_without(folder))


def enough(done: Sequence[Replication], scenario: Scenario) -> bool:
    """Whether replications may end: asked after each, in their order.

    The sequential procedure of Law (Simulation Modeling and Analysis, section 9.4.1): it stops
    where the interval happens to be narrow, so that it covers the truth a little less often than
    its confidence says, the less so the more replications it begins with (Chow and Robbins: exactly
    as often in the limit of a small half-width).
    """
    plan = scenario.statistics
    if len(done) < plan.replications:
        return False
    if plan.half_width is None or len(done) >= plan.replications_max:
        return True
    return relative_half_width(done, plan.confidence) <= plan.half_width


def relative_half_width(done: Sequence[Replication], confidence: float) -> float:
    """The widest of all throughputs' intervals, relative to its mean."""
    widest = 0.0
    for name in done[0].outcome.throughput:
        interval = mean_interval(
            [replication.outcome.throughput[name] for replication in done], confidence
        )
        widest = max(widest, float("inf") if interval is None else interval.relative)
    return widest


def _expected(done: Sequence[Replication], scenario: Scenario) -> int:
    """How many replications there may be in the end: widths fall with the root of their number."""
    plan = scenario.statistics
    if plan.half_width is None or len(done) < plan.replications:
        return plan.replications
    factor = (relative_half_width(done, plan.confidence) / plan.half_width) ** 2
    return min(plan.replications_max, int(min(len(done) * factor, 1e9)) + 1)
