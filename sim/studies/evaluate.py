"""Runs points of a study: from the values of its factors to a row of figures."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...inputs import InputError
from ...inputs.shared_work import SharedWork, shared
from ..kernel.streams import stream_key
from ..run.replications import unsettled
from ..run.runner import RunInterrupted, bare_record
from ..run.workers import Stopped
from .base import Base, settings_of
from .metrics import Metrics

Row = dict[str, Any]
POINT, ERROR, REPLAY, WALL, PLANE, HASH, UNSETTLED = (
    "point",
    "error",
    "replay",
    "wall_s",
    "plane",
    "scenario_hash",
    "unsettled",
)
LIKELY = "uncertainty."  # of a figure: its 90% interval
OWN = (POINT, PLANE, HASH, WALL, UNSETTLED, ERROR, REPLAY)


@dataclass(frozen=True)
class Runs:
    """What all runs of a study share; it travels to workers.

    ``paths``, ``units``: of the factors. ``own_seeds``: whether each point draws for itself, rather
    than all the same random numbers.
    """

    base: Base
    paths: tuple[str, ...]
    units: tuple[str, ...]
    metrics: Metrics = field(default_factory=Metrics)
    own_seeds: bool = False

    def settings(self, point: int, values: Sequence[Any]) -> tuple[list[str], str | None]:
        """The settings of a point, and its policy where that is a factor."""
        settings, policy = settings_of(self.paths, self.units, values)
        if self.own_seeds and "seed" not in self.paths:
            settings.append(f"seed={own_seed(point)}")
        return settings, policy

    def command(self, point: int, values: Sequence[Any]) -> str:
        """The command that runs a point on its own."""
        return self.base.command(*self.settings(point, values))


def own_seed(point: int) -> int:
    """The seed of a point whose draws are its own: the same for the same point; 53 bits."""
    return stream_key(point, 0, "study seed")[0] >> 11


def rows_of(
    runs: Runs,
    points: Iterable[tuple[int, Sequence[Any]]],
    work: SharedWork,
    go_on: Callable[[float], None] = lambda part: None,
    workers: int | None = 1,
) -> list[Row]:
    """A row for each point: its values by path, its figures, the warning of a run that was too
    short to settle, or its error with a command.

    Fewer where ``go_on``, which is called now and then, raises Stopped. ``workers``: processes for
    the replications of one point.
    """
    rows: list[Row] = []
    with shared(work), _present_kept(), contextlib.suppress(Stopped):
        for point, values in points:
            go_on(0.0)
            rows.append(_row(runs, point, values, go_on, workers))
    return rows


@contextlib.contextmanager
def _present_kept() -> Iterator[None]:
    """Within, the garbage collector does not look through all that is there already: modules and
    shared work, again and again, are a quarter of a quick run.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _row(
    runs: Runs,
    point: int,
    values: Sequence[Any],
    go_on: Callable[[float], None],
    workers: int | None,
) -> Row:
    row: Row = {POINT: point, **dict(zip(runs.paths, values, strict=True))}
    began = time.perf_counter()
    try:
        scenario = runs.base.load(*runs.settings(point, values))
        row[PLANE], row[HASH] = scenario.plane, scenario.hash
        gains = runs.metrics.gains
        record = bare_record(scenario, gains=gains, progress=go_on, workers=workers)
        row |= runs.metrics.of(record, scenario)
        if warning := unsettled(record.warnings):
            row[UNSETTLED] = warning
    except Stopped:
        raise
    except RunInterrupted as interrupted:
        if interrupted.lost is None:
            raise
        row |= {ERROR: interrupted.lost, REPLAY: runs.command(point, values)}
    except InputError as failure:
        row |= {ERROR: str(failure), REPLAY: runs.command(point, values)}
    except Exception as failure:  # a bug costs one run, not the study
        text = f"this is a bug: {type(failure).__name__}: {failure}"
        row |= {ERROR: text, REPLAY: runs.command(point, values)}
    row[WALL] = time.perf_counter() - began
    return row
