"""Runs points of a study: from the values of its factors to a row of figures.

The figures of a Record that a study keeps, by their path, such as ``latency_ns.commit.p99``.
"""

import contextlib
import gc
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

from ...inputs import InputError
from ...inputs.fields import near
from ...inputs.progress import Progress, silent
from ...inputs.shared_work import SharedWork, shared
from ..kernel.streams import stream_key
from ..run.record import KINDS, Record, better
from ..run.record import figures as figures_of
from ..run.replications import unsettled
from ..run.runner import RunInterrupted, bare_record
from ..run.scenario import Scenario
from ..run.workers import Stopped
from .base import Base, settings_of

GAINS = ("bottleneck.gain_of", "bottleneck.gain_per_unit")
DEFAULTS = ("throughput.*", "latency_ns.*", "bandwidth_Bps.*", "power_W", "bottleneck.resource")
FORMS = (
    "throughput.OPERATION, latency_ns.OPERATION.p99, bandwidth_Bps.memory, "
    "utilisation.KIND.busiest, resources.NAME.utilisation, power_W, energy_J, bottleneck.resource, "
    "model.NAME, machine.nodes or cost"
)
MACHINE = ("name", "nodes", "cores", "threads", "memory_GB", "ports")
COUNTED = "traffic"  # of the emulator alone, which studies do not run on
COST = "cost"


@dataclass(frozen=True)
class Metrics:
    """The ``patterns`` of what is kept: paths, in which ``*`` stands for anything."""

    patterns: tuple[str, ...] = DEFAULTS

    @property
    def gains(self) -> bool:
        """Whether any asks what more of a resource would bring."""
        return any(fnmatchcase(path, pattern) for path in GAINS for pattern in self.patterns)

    def keep(self, path: str) -> bool:
        """Whether any pattern stands for the path."""
        return _kept(path, self.patterns)

    def of(self, record: Record, scenario: Scenario) -> dict[str, Any]:
        """The figures of a run by path, with the bounds of their intervals where there are any:
        ``PATH.low`` and ``PATH.high``.
        """
        found: dict[str, Any] = {}
        roots = {pattern.partition(".")[0] for pattern in self.patterns}
        for path, value in figures(record, scenario, roots):
            if not self.keep(path):
                continue
            found[path] = value
            if not record.confidence:  # as of the flow plane
                continue
            between = record.interval(*path.split("."))
            if between is not None:
                found[f"{path}.low"], found[f"{path}.high"] = between
        return found

    def check(self, operations: Sequence[str] | None) -> None:
        """See ``check_metric``."""
        for pattern in self.patterns:
            check_metric(pattern, operations)

    def check_found(self, rows: Sequence[Mapping[str, Any]], file: str | None = None) -> None:
        """Raises InputError for a figure that is asked for by name and none of these runs has."""
        names = dict.fromkeys(name for row in rows for name in row)
        for pattern in self.patterns:
            if names and "*" not in pattern and pattern not in names:
                root = pattern.partition(".")[0]
                raise InputError(
                    "no run has such a figure",
                    file,
                    token=pattern,
                    expected=f"one of those that metric '{root}.*' keeps",
                )


@lru_cache(maxsize=2**14)
def _kept(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether any pattern stands for the path. Runs of a study have the same paths."""
    return any(fnmatchcase(path, pattern) for pattern in patterns)


def check_metric(pattern: str, operations: Sequence[str] | None, source: str | None = None) -> None:
    """Raises InputError where no Record has such a figure. ``operations``: that there are, None
    where runs have different ones.
    """
    root, *rest = pattern.split(".")
    kind = KINDS.get(root)
    names, last = (1, MACHINE) if kind is None else (kind.names, kind.last)
    if (kind is None and root != "machine") or root == COUNTED or "" in rest:
        raise InputError("unknown metric", source, token=pattern, expected=FORMS)
    if pattern.endswith("*"):
        return
    few = names is not None and len(rest) != names
    if few or (root == "resources" and len(rest) < 2):
        raise InputError("unknown metric", source, token=pattern, expected=FORMS)
    if last and rest[-1] not in last and "*" not in rest[-1]:
        forms = [".".join([root, *rest[:-1], leaf]) for leaf in last]
        raise InputError("unknown metric", source, token=pattern, expected=near(pattern, forms))
    if operations is None or root not in ("throughput", "operations", "latency_ns"):
        return
    if "*" not in rest[0] and rest[0] not in operations:
        forms = [".".join([root, name, *rest[1:]]) for name in operations]
        raise InputError("unknown metric", source, token=pattern, expected=near(pattern, forms))


def figures(record: Record, scenario: Scenario, roots: set[str]) -> Iterator[tuple[str, Any]]:
    """All figures below ``roots`` by path: numbers, texts, None where one is unknown."""
    for path, value in figures_of(record, (root for root in KINDS if root in roots)):
        yield ".".join(path), value
    if "machine" in roots:
        yield from machine_figures(scenario)


def machine_figures(scenario: Scenario) -> Iterator[tuple[str, float | str]]:
    """What a machine's price depends on."""
    machine = scenario.machine
    yield "machine.name", machine.name
    yield "machine.nodes", len(machine.nodes)
    yield "machine.cores", sum(node.cores for node in machine.nodes)
    yield "machine.threads", machine.threads
    known = [node.memory_bytes for node in machine.nodes if math.isfinite(node.memory_bytes)]
    yield "machine.memory_GB", math.fsum(known) / 1e9
    yield (
        "machine.ports",
        sum(
            nic.ports * (int(last or first) - int(first) + 1)
            for nic in machine.description.nics
            for first, _, last in [str(nic.nodes).partition("-")]
        ),
    )


def less_is_better(path: str) -> bool:
    """Whether a figure is one that nobody wants more of."""
    root = path.partition(".")[0]
    return root == COST or better(root) == "less"


Row = dict[str, Any]
POINT, PLANE, HASH, WALL = "point", "plane", "scenario_hash", "wall_s"
UNSETTLED, ERROR, REPLAY = "unsettled", "error", "replay"
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
    go_on: Progress = silent,
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
    runs: Runs, point: int, values: Sequence[Any], go_on: Progress, workers: int | None
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
