"""The gate: runs the checks of a suite and says which figures became better or worse.

Each side of a check runs replications until the verdict is clear (below). Both have
the same random numbers, replication by replication, so that what is left is mostly the difference.

Verdicts of comparisons: better, worse, no difference, or undecided, by confidence interval.

The relative difference to what a figure is held against, counted so that more is better, has an
interval [low, high]. With a tolerance T:

- *worse*: high < -T, *better*: low > T;
- *no difference* within T: -T <= low and high <= T;
- else *undecided*: more replications may tell, up to the last look.

A suite has several checks, and each of them looks several times; so each interval has the
confidence 1 - ALPHA / (looks * checks) (Bonferroni). The chance that any interval of the whole
suite misses the truth, and so that any of its verdicts is wrong, is at most ALPHA. All checks of
the file count, so that a verdict does not depend on which of them are run.

The sides of a suite's checks: scenarios whose replications run on demand.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import fsum
from typing import Any, Literal

from ..inputs.progress import Progress, part_of, silent
from ..sim.planes.outcome import Outcome
from ..sim.run.decision import decision
from ..sim.run.real_planes import DRAWING_PLANES, REAL
from ..sim.run.record import Record, part_at
from ..sim.run.replications import play_numbers, warm_up_of
from ..sim.run.runner import maker_of, run_scenario
from ..sim.run.scenario import Scenario
from ..sim.run.statistics import Interval, Sample, difference, ratio
from ..sim.run.uncertainty import error_of, shift_of, values_of, with_uncertainty
from .baseline import Entry, digests
from .emulated import EmulatedRun
from .metrics import Metric
from .suite import LoadedCheck, Suite

ALPHA = 0.01
# Replications at each look, as far as they go: each time about half as many again.
LOOKS = (2, 3, 5, 8, 12, 18, 27, 40, 60, 90, 135, 200, 300, 450, 675, 1_000)
# Of two independent samples the first look is later: Welch's interval of two or three values, at
# such a confidence, misses the truth several times as often as it says.
WELCH_MIN = 5

Verdict = Literal["better", "worse", "no difference", "undecided"]
VERDICTS: tuple[Verdict, ...] = ("better", "worse", "no difference", "undecided")


@dataclass(frozen=True)
class Difference:
    """A verdict with what it rests on. ``relative``: more than 0 is better, None if unknown."""

    verdict: Verdict
    relative: Interval | None
    paired: bool = False


UNKNOWN = Difference("undecided", None)


def looks_up_to(most: int, least: int = LOOKS[0]) -> list[int]:
    """After how many replications to look: from ``least`` on, the last time after ``most``."""
    return [*(n for n in LOOKS if least <= n < most), most]


def confidence_of(looks: int, checks: int = 1) -> float:
    """The confidence of each interval where so many ``checks`` look so often."""
    return 1.0 - ALPHA / (looks * checks)


def judged(
    reference: Sample,
    value: Sample,
    *,
    higher_is_better: bool,
    tolerance: float,
    confidence: float,
    paired: bool,
    grain: float = 0.0,
) -> Difference:
    """``value`` against ``reference``.

    ``grain``: by how much the difference of the two may be off, in their unit, because figures are
    counted in steps; replications that happen to fall on one step would look certain.
    """
    if reference.value == value.value == 0.0:
        return Difference(verdict_of(0.0, 0.0, tolerance), Interval(0.0, 0.0, 0.0), paired)
    counts = [len(entry.replicates) for entry in (reference, value)]
    if not paired and all(counts) and min(counts) < WELCH_MIN:
        return UNKNOWN
    if reference.value == 0.0:
        return _against_nothing(reference, value, higher_is_better, confidence, paired, grain)
    found = ratio(reference, value, confidence, paired)
    if found is None or not all(map(math.isfinite, (found.low, found.high))):
        return UNKNOWN
    sign = 1.0 if higher_is_better else -1.0
    step = grain / abs(reference.value)
    low, high = sorted((sign * (found.low - step - 1.0), sign * (found.high + step - 1.0)))
    relative = Interval(sign * (found.value - 1.0), low, high)
    return Difference(verdict_of(low, high, tolerance), relative, paired)


def _against_nothing(
    reference: Sample,
    value: Sample,
    higher_is_better: bool,
    confidence: float,
    paired: bool,
    grain: float,
) -> Difference:
    """Of 0 there is no part: whatever is surely not 0 is beyond every tolerance."""
    found = difference(reference, value, confidence, paired)
    if found is None or found.low - grain <= 0.0 <= found.high + grain:
        return UNKNOWN
    higher = found.value > 0.0
    return Difference("better" if higher == higher_is_better else "worse", None, paired)


def verdict_of(low: float, high: float, tolerance: float) -> Verdict:
    """The verdict of an interval of the relative difference."""
    if high < -tolerance:
        return "worse"
    if low > tolerance:
        return "better"
    return "no difference" if -tolerance <= low and high <= tolerance else "undecided"


def sample(values: Sequence[float], exact: bool) -> Sample:
    """A figure's replications; an ``exact`` one has one value and no error."""
    mean = math.fsum(values) / len(values)
    return Sample(mean) if exact else Sample(mean, tuple(values))


@dataclass(frozen=True)
class Result:
    """What came of one check.

    ``reference``: what ``value`` is held against, None where a baseline is made for the first time.
    ``replications``: 0 where nothing is drawn. ``entry``: what a baseline keeps of it.
    """

    check: LoadedCheck
    reference: float | None
    value: float
    difference: Difference
    replications: int
    wall_s: float
    entry: Entry
    probability: float | None = None
    """That the check holds over all facts, assumptions and the model's error; None where that was
    not asked for, or nothing was predicted of two scenarios."""

    @property
    def verdict(self) -> Verdict:
        """The verdict."""
        return self.difference.verdict

    def as_json(self) -> dict[str, Any]:
        """A row of ``numatwin regress --json``."""
        relative = self.difference.relative
        return {
            "name": self.check.name,
            "scenario": self.check.scenario.name,
            "plane": self.check.scenario.plane,
            "policy": self.check.scenario.policy_name,
            "metric": str(self.check.metric),
            "unit": self.check.metric.unit,
            "against": self.check.kind,
            "factor": self.check.factor,
            "reference": self.reference,
            "value": self.value,
            "better_by": relative.value if relative is not None else None,
            "interval": [relative.low, relative.high] if relative is not None else None,
            "tolerance": self.check.tolerance,
            "replications": self.replications,
            "paired": self.difference.paired,
            "verdict": self.verdict,
            "probability": self.probability,
        }


def regress(
    suite: Suite,
    entries: Mapping[str, Entry],
    *,
    update: bool = False,
    doubt: bool = False,
    sides: "Sides | None" = None,
    progress: Progress = silent,
) -> Iterator[Result]:
    """Runs the checks in their order, each until its verdict is clear.

    ``entries``: the baseline of those that want one. ``update``: for a new baseline; each check
    runs all replications of the suite, and is held against its former entry, where there is one.
    ``doubt``: also with what probability bounds and checks between two scenarios hold.
    ``sides``: what was run before, by which these checks may go too.
    """
    sides = Sides() if sides is None else sides
    for done, check in enumerate(suite.checks):
        count = len(suite.checks)
        report = part_of(progress, done / count, (done + 1) / count)
        began = time.perf_counter()
        run = _Run(check, entries.get(check.name), suite.replications, update, sides)
        for look in run.looks:
            difference, reference = run.judged(look, confidence_of(len(run.looks), suite.size))
            report(look / run.looks[-1])
            if difference.verdict != "undecided":
                break
        report(1.0)
        wall_s = time.perf_counter() - began
        result = run.result(look, difference, reference, wall_s)
        yield replace(result, probability=probability_of(check)) if doubt else result


def probability_of(check: LoadedCheck) -> float | None:
    """That the throughput which a check is about is more than so many times its rival's, as
    ``compare`` has it: both with the same draws of all that they lean on; or that a figure is on
    the right side of a bound.
    """
    first, other, path = check.other, check.scenario, check.metric.path
    if not isinstance(other, Scenario) or other.plane in REAL:
        return None
    if check.bound is not None:
        record = with_uncertainty(run_scenario(other), other)
        if part_at(record.uncertainty, path) is None:
            return None
        errors = error_of(record, other, path).factors
        away = values_of(record, path, shift_of(record, path), errors) - check.bound
        return float((away >= 0.0 if check.higher_is_better else away <= 0.0).mean())
    if not isinstance(first, Scenario) or path[0] != "throughput" or not check.higher_is_better:
        return None
    records = [with_uncertainty(run_scenario(side), side) for side in (first, other)]
    found = decision(records[0], records[1], path[1], factor=check.factor)
    return None if found is None else float(found["share"])


class _Run:
    """A check while it is run: what is held against what, and after how many replications."""

    def __init__(
        self, check: LoadedCheck, entry: Entry | None, most: int, update: bool, sides: "Sides"
    ) -> None:
        self.check, self.entry = check, entry
        self.other: AlternativeRun | None = None
        if check.other is not None:
            self.one, self.other = sides.both(check.scenario, check.other)
        else:
            self.one = sides.of(
                check.scenario, None if entry is None or update else entry.warm_up_s
            )
        self.paired = self._is_paired()
        if entry is not None and self.paired and not update:
            most = min(most, len(entry.values))
        self.looks = self._looks(most, update)

    def _is_paired(self) -> bool:
        """Whether both sides draw the same numbers, replication by replication."""
        if self.one.exact:
            return False
        if self.other is not None:
            return not self.other.exact
        return (
            self.entry is not None
            and not self.entry.exact
            and self.entry.seed == self.check.scenario.seed
        )

    def _looks(self, most: int, update: bool) -> list[int]:
        if self.one.exact and (self.other is None or self.other.exact):
            return [1]
        if update:
            return [most]
        both_drawn = self.check.kind == "baseline" and not self.paired
        return looks_up_to(most, min(WELCH_MIN, most) if both_drawn else 2)

    def judged(self, look: int, confidence: float) -> tuple[Difference, float | None]:
        """The verdict after ``look`` replications, and the figure of the other side."""
        metric = self.check.metric
        self.one.play(look)
        value = sample(self.one.values(metric, look), self.one.exact)
        grain = metric.grain(value.value, self.one.counted_s) * (not self.one.exact)
        paired = self.paired
        if self.other is not None:
            self.other.play(look)
            others = self.other.values(metric, look)
            factor = self.check.factor
            reference = sample([factor * value for value in others], self.other.exact)
            step = metric.grain(reference.value / factor, self.other.counted_s)
            grain += factor * step * (not self.other.exact)
        elif self.check.bound is not None:
            reference = Sample(self.check.bound)
        elif self.entry is not None:
            kept = self.entry.values[:look] if paired else self.entry.values
            paired = paired and len(kept) == look
            reference = sample(kept, self.entry.exact)
            grain += metric.grain(reference.value, self.one.counted_s) * (not self.entry.exact)
        else:
            return UNKNOWN, None
        difference = judged(
            reference,
            value,
            higher_is_better=self.check.higher_is_better,
            tolerance=self.check.tolerance,
            confidence=confidence,
            paired=paired,
            grain=grain,
        )
        return difference, reference.value

    def result(
        self, look: int, difference: Difference, reference: float | None, wall_s: float
    ) -> Result:
        """What came of it after ``look`` replications."""
        values = self.one.values(self.check.metric, look)
        scenario = self.check.scenario
        entry = Entry(
            str(self.check.metric),
            scenario.seed,
            self.one.exact,
            self.one.warm_up_s,
            tuple(values),
            digests(scenario) if isinstance(scenario, Scenario) else {},
        )
        value = fsum(values) / len(values)
        replications = 0 if self.one.exact else look
        return Result(self.check, reference, value, difference, replications, wall_s, entry)


Side = Scenario | EmulatedRun


def is_exact(scenario: Side) -> bool:
    """Whether its plane draws nothing: one run tells all."""
    return scenario.plane not in DRAWING_PLANES


@dataclass
class AlternativeRun:
    """A scenario's outcomes so far, in the order of their replications.

    ``warm_up_s``: what they leave out; the two sides of a check leave out the same.
    """

    scenario: Side
    warm_up_s: float
    workers: int | None = None
    outcomes: list[Outcome] = field(default_factory=list)
    record: Record | None = None
    wall_s: float = 0.0
    """How long a run took, so far as is known."""

    @property
    def exact(self) -> bool:
        """Whether one run tells all."""
        return is_exact(self.scenario)

    @property
    def counted_s(self) -> float:
        """The time of each replication that counts."""
        return self.scenario.horizon_s - self.warm_up_s

    def play(self, count: int) -> None:
        """Sees to it that ``count`` replications are there; raises InputError as a run does."""
        if self.exact:
            if self.record is None:
                self.record = (
                    self.scenario.record()
                    if isinstance(self.scenario, EmulatedRun)
                    else run_scenario(self.scenario)
                )
            return
        assert isinstance(self.scenario, Scenario)
        numbers = range(len(self.outcomes) + 1, count + 1)
        for number in play_numbers(
            maker_of(self.scenario),
            self.scenario,
            numbers,
            self.warm_up_s,
            self.workers,
            self.wall_s,
        ):
            self.wall_s = number.wall_s
            self.outcomes.append(number.outcome)

    def values(self, metric: Metric, count: int) -> list[float]:
        """The figure of each of the first ``count`` replications; of an exact run, one."""
        if self.exact:
            assert self.record is not None
            return [metric.of_record(self.record)]
        return [metric.of_outcome(outcome) for outcome in self.outcomes[:count]]


class Sides:
    """All sides of a suite; what several checks share is run once.

    ``workers``: processes at most, by default as many as there are processors to use.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers
        self._played: dict[tuple[str, int, float], AlternativeRun] = {}
        self._warm_ups: dict[tuple[str, int], tuple[float, float]] = {}

    def of(self, scenario: Side, warm_up_s: float | None = None) -> AlternativeRun:
        """The scenario as run so far, with that warm-up or with its own."""
        if warm_up_s is None:
            warm_up_s = self._own_warm_up(scenario)[0]
        key = (scenario.hash, scenario.seed, warm_up_s)
        if key not in self._played:
            wall_s = self._warm_ups.get(key[:2], (0.0, 0.0))[1]
            self._played[key] = AlternativeRun(scenario, warm_up_s, self._workers, wall_s=wall_s)
        return self._played[key]

    def both(self, one: Side, other: Side) -> tuple[AlternativeRun, AlternativeRun]:
        """Two scenarios that are compared: both leave out the longer one's warm-up."""
        if is_exact(one) or is_exact(other):
            return self.of(one), self.of(other)
        warm_up_s = max(self._own_warm_up(each)[0] for each in (one, other))
        return self.of(one, warm_up_s), self.of(other, warm_up_s)

    def _own_warm_up(self, scenario: Side) -> tuple[float, float]:
        """The warm-up that is stated, or shown by a pilot run, and how long that run took."""
        if is_exact(scenario):
            return 0.0, 0.0
        assert isinstance(scenario, Scenario)
        key = (scenario.hash, scenario.seed)
        if key not in self._warm_ups:
            found = warm_up_of(maker_of(scenario), scenario)
            self._warm_ups[key] = found.warm_up_s, found.wall_s
        return self._warm_ups[key]
