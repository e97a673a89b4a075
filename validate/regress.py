"""The gate: runs the checks of a suite and says which figures became better or worse.

Each side of a check plays replications until the verdict is clear (see ``verdicts.py``). Both have
the same random numbers, replication by replication, so that what is left is mostly the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import fsum
from pathlib import Path
from typing import Any

from ..inputs import InputError
from ..sim.statistics import Sample
from .alternatives import Played
from .baseline import Entry, check_fits, digests, load_baseline
from .suite import LoadedCheck, Suite
from .verdicts import Difference, Verdict, judged, looks_up_to, sample

Progress = Callable[[float], None]


@dataclass(frozen=True)
class Result:
    """What came of one check. ``reference``: what ``value`` is held against.

    ``entry``: what a baseline would keep of it.
    """

    check: LoadedCheck
    reference: float
    value: float
    difference: Difference
    replications: int
    entry: Entry

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
            "reference": self.reference,
            "value": self.value,
            "relative_difference": relative.value if relative is not None else None,
            "interval": [relative.low, relative.high] if relative is not None else None,
            "tolerance": self.check.tolerance,
            "replications": self.replications,
            "paired": self.difference.paired,
            "verdict": self.verdict,
        }


def baseline_of(suite: Suite, path: Path | None, needed: bool) -> dict[str, Entry]:
    """The baseline that the suite's checks want, checked to fit them.

    Not ``needed``: where it is about to be made anew.
    """
    checks = [check for check in suite.checks if check.kind == "baseline"]
    if not checks or not needed:
        return {}
    at = path or suite.baseline_path
    entries = load_baseline(at)
    for check in checks:
        if check.name not in entries:
            raise InputError(
                f"no baseline of check '{check.name}'",
                str(at),
                expected="run 'numatwin regress' with --update to make it anew",
            )
        check_fits(entries[check.name], str(check.metric), check.scenario, check.name, at)
    return entries


def regress(
    suite: Suite,
    entries: Mapping[str, Entry],
    *,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Iterator[Result]:
    """Runs the checks in their order; ``entries``: the baseline, for those that want it.

    A check that wants a baseline and has none is played in full, to make one. Scenarios that
    several checks share are played once.
    """
    sides: dict[tuple[str, int], Played] = {}
    for done, check in enumerate(suite.checks):
        told = _part(progress, done, len(suite.checks))
        yield _run(check, entries.get(check.name), suite.replications, sides, workers, told)
    if progress is not None:
        progress(1.0)


def _part(progress: Progress | None, done: int, count: int) -> Progress | None:
    if progress is None:
        return None
    return lambda part: progress((done + part) / count)


def _run(
    check: LoadedCheck,
    entry: Entry | None,
    most: int,
    sides: dict[tuple[str, int], Played],
    workers: int | None,
    progress: Progress | None,
) -> Result:
    one = _side(check.scenario, sides, workers)
    other = None if check.other is None else _side(check.other, sides, workers)
    if entry is not None and not one.exact:
        one = Played(check.scenario, workers, entry.warm_up_s)
        if not entry.exact:
            most = min(most, len(entry.values)) if _same_draws(entry, check) else most
    elif other is not None and not (one.exact or other.exact) and not one.outcomes:
        both_s = max(one.own_warm_up_s(), other.own_warm_up_s())
        if both_s != one.warm_up_s or both_s != other.warm_up_s:
            one = Played(check.scenario, workers, both_s)
            assert check.other is not None
            other = Played(check.other, workers, both_s)
    exact = one.exact and (other is None or other.exact)
    looks = [1] if exact else looks_up_to(most)
    if check.kind == "baseline" and entry is None:
        looks = looks[-1:]
    for look in looks:
        one.play(look)
        if other is not None:
            other.play(look)
        difference, reference = _judged(check, one, other, entry, look, len(looks))
        if progress is not None:
            progress(look / looks[-1])
        if difference.verdict != "undecided":
            break
    values = one.values(check.metric, look)
    kept = Entry(
        str(check.metric),
        check.scenario.seed,
        one.exact,
        one.warm_up_s or 0.0,
        tuple(values),
        digests(check.scenario),
    )
    value = fsum(values) / len(values)
    return Result(check, reference, value, difference, 0 if one.exact else look, kept)


def _side(scenario: Any, sides: dict[tuple[str, int], Played], workers: int | None) -> Played:
    """The scenario as played by the checks before, if they did."""
    return sides.setdefault((scenario.hash, scenario.seed), Played(scenario, workers))


def _same_draws(entry: Entry, check: LoadedCheck) -> bool:
    return entry.seed == check.scenario.seed


def _judged(
    check: LoadedCheck,
    one: Played,
    other: Played | None,
    entry: Entry | None,
    look: int,
    looks: int,
) -> tuple[Difference, float]:
    """The verdict after ``look`` replications, and the figure of the other side."""
    value = sample(one.values(check.metric, look), one.exact)
    paired = False
    if other is not None:
        reference = sample(other.values(check.metric, look), other.exact)
        paired = not one.exact and not other.exact
    elif check.bound is not None:
        reference = Sample(check.bound)
    elif entry is None:
        reference = value
        paired = not one.exact
    elif entry.exact or not _same_draws(entry, check):
        reference = sample(entry.values, entry.exact)
    else:
        reference, paired = sample(entry.values[:look], False), not one.exact
    difference = judged(
        reference,
        value,
        higher_is_better=check.higher_is_better,
        tolerance=check.tolerance,
        looks=looks,
        paired=paired,
    )
    return difference, reference.value
