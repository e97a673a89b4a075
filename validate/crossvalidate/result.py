"""The result of a cross-validation: rows, their summary, the state of the host, and files.

Summary of the rows: errors by set, kind and plane, and whether the aim is reached.

The aim, on the test set: of throughput and of memory traffic the median error is at most 5%, 90% of
the rows are within 10%, and the worst within 25%; of p99 latency each row is within 25%. Errors are
those of the values. How wide the intervals are, and how many predicted ones hold the measured
value, is reported beside them and excuses no error: the wider an interval, the less it says. So is
what intervals hold that know what the model was wrong by in all other runs (``trust``).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

from ..._version import __version__
from ...inputs import write_json
from ...sim.run.model_error import Class, Evidence
from ...topologies import Machine
from ..trust import AIM, LEVEL, Coverage, coverage
from .rows import Row
from .session import Found
from .suite import LeftOut, Suite

ROWS_FILE = "rows.json"
NOISY = "noisy host"


@dataclass(frozen=True)
class Result:
    """``primitives``: the calibration set; ``found``: what the session found."""

    suite: Suite
    primitives: tuple[Row, ...]
    found: Found

    @property
    def machine(self) -> Machine:
        """The host, as its machine file has it."""
        return self.suite.machine

    @cached_property
    def rows(self) -> list[Row]:
        """The calibration set, then the test set."""
        return [*self.primitives, *self.found.rows()]

    @cached_property
    def noise(self) -> list[str]:
        """Reasons to distrust what was measured; those of the machine file come first."""
        warnings = [
            f"{text} (when it was measured)"
            for text in self.machine.description.warnings
            if text.startswith(NOISY)
        ]
        return [*warnings, *self.found.noise(), *spread_warnings(self.rows)]

    @property
    def left_out(self) -> list[LeftOut]:
        """What has no row, and why."""
        return [*self.suite.left_out, *self.found.left_out()]

    @property
    def warnings(self) -> list[str]:
        """All that a reader should know, of noise and else."""
        return self.noise + ([self.found.not_kept] if self.found.not_kept is not None else [])

    @cached_property
    def errors(self) -> "list[Errors]":
        """By set, kind and plane."""
        return errors_of(self.rows)

    @cached_property
    def checks(self) -> "list[Check]":
        """The aim, part by part."""
        return checks_of(self.rows)

    @cached_property
    def coverage(self) -> list[Coverage]:
        """By kind, how many measurements 90% intervals hold that the other runs' errors make."""
        return coverage_of(self.rows)

    @property
    def holds(self) -> bool:
        """Whether every run came to its end, and the aim is reached; nothing to judge is no."""
        return (
            not self.found.failures
            and bool(self.checks)
            and all(check.holds for check in self.checks)
        )

    def as_json(self) -> dict[str, Any]:
        """The stable form of ``--json``."""
        host = self.machine.description.host
        return {
            "suite": self.suite.name,
            "version": __version__,
            "machine": self.machine.name,
            "host": None if host is None else host.model_dump(mode="json", exclude_none=True),
            "rounds": self.found.rounds,
            "interrupted": self.found.interrupted,
            "noisy": bool(self.noise),
            "noise": self.noise,
            "warnings": self.warnings,
            "aim": {
                "median_error": MEDIAN_MAX,
                "within_10_percent": NEAR_SHARE,
                "near": NEAR,
                "worst_error": WORST_MAX,
            },
            "summary": [asdict(errors) for errors in self.errors],
            "coverage": [
                {
                    "kind": one.group,
                    "rows": one.rows,
                    "level": LEVEL,
                    "held": one.held,
                    "width": one.width,
                    "aim": list(AIM),
                    "judgeable": one.judgeable,
                }
                for one in self.coverage
            ],
            "checks": [check.as_json() for check in self.checks],
            "holds": self.holds,
            "rows": [row.as_json() for row in self.rows],
            "left_out": [asdict(left_out) for left_out in self.left_out],
            "failures": [asdict(failure) for failure in self.found.failures],
        }

    def save(self, folder: Path) -> None:
        """Writes the rows into ``folder``, whole or not at all."""
        write_json(folder / ROWS_FILE, self.as_json())


MEDIAN_MAX, WORST_MAX = 0.05, 0.25
NEAR, NEAR_SHARE = 0.10, 0.90
SPREAD_MAX, SPREAD_SHARE = 0.10, 0.25
HALF_WIDTH_MAX = 1e6  # that of an interval about 0 is infinite, which JSON does not know
COVERED_MIN = 10  # rows: of fewer, a share tells nothing


@dataclass(frozen=True)
class Check:
    """One part of the aim: ``found`` against ``aim``, at most or (``at_least``) at least that."""

    kind: str
    name: str
    aim: float
    found: float
    at_least: bool = False

    @property
    def holds(self) -> bool:
        """Whether it is reached."""
        return self.found >= self.aim if self.at_least else self.found <= self.aim

    def as_json(self) -> dict[str, Any]:
        """As ``--json`` has it."""
        return {
            "kind": self.kind,
            "name": self.name,
            "aim": self.aim,
            "found": self.found,
            "holds": self.holds,
        }


@dataclass(frozen=True)
class Errors:
    """Of some rows, as ``--json`` has it: how many, their median and worst error, and the share
    within 10%.

    ``plane``: None for all planes together. ``predicted_half_width``, ``measured_half_width``: the
    median of the larger halves of their intervals, relative to the value;
    ``held_by_predicted_interval``: the share of rows whose predicted interval holds the measured
    value.
    """

    set: str
    kind: str
    plane: str | None
    rows: int
    median_error: float
    worst_error: float
    within_10_percent: float
    predicted_half_width: float
    measured_half_width: float
    held_by_predicted_interval: float


def errors_of(rows: Sequence[Row]) -> list[Errors]:
    """By set and kind, all planes together and, of several, each alone."""
    found = []
    for name, kind in dict.fromkeys((row.set, row.kind) for row in rows):
        chosen = [row for row in rows if (row.set, row.kind) == (name, kind)]
        planes = list(dict.fromkeys(row.plane for row in chosen))
        found.append(_errors(name, kind, None, chosen))
        if len(planes) > 1:
            found += [
                _errors(name, kind, plane, [row for row in chosen if row.plane == plane])
                for plane in planes
            ]
    return sorted(found, key=lambda summary: summary.set)


def _errors(name: str, kind: str, plane: str | None, rows: Sequence[Row]) -> Errors:
    errors = [row.error for row in rows]
    return Errors(
        set=name,
        kind=kind,
        plane=plane,
        rows=len(rows),
        median_error=median(errors),
        worst_error=max(errors),
        within_10_percent=sum(error <= NEAR for error in errors) / len(errors),
        predicted_half_width=min(median(row.predicted.relative for row in rows), HALF_WIDTH_MAX),
        measured_half_width=min(median(row.measured.relative for row in rows), HALF_WIDTH_MAX),
        held_by_predicted_interval=sum(row.interval_holds for row in rows) / len(rows),
    )


def checks_of(rows: Sequence[Row]) -> list[Check]:
    """The aim, held against the rows of the test set; kinds without a row are left out."""
    return [
        check
        for errors in errors_of([row for row in rows if row.set == "test"])
        if errors.plane is None
        for check in _checks(errors)
    ]


def _checks(errors: Errors) -> Iterator[Check]:
    if errors.kind in ("throughput", "memory traffic"):
        yield Check(errors.kind, "median error", MEDIAN_MAX, errors.median_error)
        near = errors.within_10_percent
        yield Check(errors.kind, "rows within 10%", NEAR_SHARE, near, at_least=True)
    if errors.kind in ("throughput", "memory traffic", "p99 latency"):
        yield Check(errors.kind, "worst error", WORST_MAX, errors.worst_error)


def coverage_of(rows: Sequence[Row]) -> list[Coverage]:
    """Of the test set, by kind: what intervals hold that the errors of all other runs make."""
    test = [row for row in rows if row.set == "test"]
    test = [row for row in test if min(row.predicted.low, row.measured.value) > 0.0]
    found = []
    for kind in dict.fromkeys(row.kind for row in test):
        of_kind = [_evidence(row) for row in test if row.kind == kind]
        if len(of_kind) >= COVERED_MIN:
            found.append(replace(coverage(of_kind)[0], group=kind))
    return found


def _evidence(row: Row) -> Evidence:
    value = row.predicted.value
    return Evidence(
        row.metric, row.group, Class("", row.plane, "", row.kind), (row.measured.value,) * 2, value,
        (row.predicted.low / value, row.predicted.high / value),
    )  # fmt: skip


def spread_warnings(rows: Sequence[Row]) -> Iterator[str]:
    """A line if the rounds of many figures differ much: the host was not quiet."""
    spans = {}
    for row in rows:
        if len(row.values) > 1 and row.kind == "throughput" and row.set == "test":
            low, high = row.measured.low, row.measured.high
            spans[row.scenario, row.metric] = (
                (high - low) / row.measured.value if row.measured.value else math.inf
            )
    wide = [span for span in spans.values() if span > SPREAD_MAX]
    if spans and len(wide) > SPREAD_SHARE * len(spans):
        yield (
            f"noisy host: the rounds of {len(wide)} of {len(spans)} measured throughputs lie more "
            f"than {SPREAD_MAX:.0%} apart, at worst {max(wide):.0%}"
        )
