"""The gate: runs the checks of a suite and says which figures became better or worse.

Each side of a check runs replications until the verdict is clear (see ``verdicts.py``). Both have
the same random numbers, replication by replication, so that what is left is mostly the difference.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import fsum
from typing import Any

from ..sim.run.decision import decision
from ..sim.run.runner import run_scenario
from ..sim.run.scenario import Scenario
from ..sim.run.statistics import Sample
from ..sim.run.uncertainty import with_uncertainty
from .alternatives import AlternativeRun, Sides
from .baseline import Entry, digests
from .suite import LoadedCheck, Suite
from .verdicts import (
    UNKNOWN,
    WELCH_MIN,
    Difference,
    Verdict,
    confidence_of,
    judged,
    looks_up_to,
    sample,
)

Progress = Callable[[float], None]


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
    sides: Sides | None = None,
    progress: Progress | None = None,
) -> Iterator[Result]:
    """Runs the checks in their order, each until its verdict is clear.

    ``entries``: the baseline of those that want one. ``update``: for a new baseline; each check
    runs all replications of the suite, and is held against its former entry, where there is one.
    ``doubt``: also with what probability checks between two scenarios hold.
    ``sides``: what was run before, by which these checks may go too.
    """
    sides = Sides() if sides is None else sides
    for done, check in enumerate(suite.checks):
        report = _part(progress, done, len(suite.checks))
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
    ``compare`` has it: both with the same draws of all that they lean on.
    """
    first, other = check.other, check.scenario
    if not isinstance(first, Scenario) or not isinstance(other, Scenario):
        return None
    if check.metric.path[0] != "throughput" or not check.higher_is_better:
        return None
    records = [with_uncertainty(run_scenario(side), side) for side in (first, other)]
    found = decision(records[0], records[1], check.metric.path[1], factor=check.factor)
    return None if found is None else float(found["share"])


def _part(progress: Progress | None, done: int, count: int) -> Progress:
    def tell(part: float) -> None:
        if progress is not None:
            progress((done + part) / count)

    return tell


class _Run:
    """A check while it is run: what is held against what, and after how many replications."""

    def __init__(
        self, check: LoadedCheck, entry: Entry | None, most: int, update: bool, sides: Sides
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
