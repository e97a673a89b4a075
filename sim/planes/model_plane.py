"""A plane that runs one replication of a model, event by event: the common part of such planes."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from ...inputs import InputError
from ..kernel.arrays import Floats, Ints
from ..kernel.histogram import Histogram
from ..kernel.picoseconds import PS_PER_S
from ..machine.costs import LINE_BYTES, CostModel
from ..machine.threads import Workers
from .machine_use import MachineUse
from .outcome import ControlEvent, Outcome, ResourceUse, Why
from .plane import Command, Experiment
from .why import WORKERS

# Of a machine with more links the series do not tell each one's use.
LINKS_IN_SERIES = 256
# Rounding of sums of a run, far below a line; each event is at a whole picosecond.
SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class Counted:
    """All since counting began; times in ps.

    ``done`` (O,): operations, in the workload's order, and their ``latencies``. ``busy_ps``: of the
    threads of each core (C,); ``held_ps`` (C,): slots of outstanding misses, None where these
    are not counted. ``memory_ps``,
    ``memory_bytes`` (n,), ``link_ps``, ``link_bytes`` (2L,): busy times and traffic. ``steps_ps``:
    time that operations took in threads, by step. ``facts``: what else the model counted.
    """

    since_ps: int
    done: Floats
    busy_ps: Ints
    held_ps: Floats | None
    memory_ps: Ints
    memory_bytes: Floats
    link_ps: Ints
    link_bytes: Floats
    latencies: tuple[Histogram, ...]
    steps_ps: Mapping[str, Ints] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


class RunningModel(Protocol):
    """A model, compiled or in SimPy."""

    @property
    def events(self) -> int:
        """Events handled since time 0."""

    def run(self, until_ps: int) -> bool:
        """Goes on until that time; False where the model waits for the control plane before."""


class Player(Protocol):
    """A ``model``, and what it has counted."""

    @property
    def model(self) -> RunningModel:
        """The model."""

    def start_counting(self) -> None:
        """Forgets what was counted."""

    def counted(self) -> Counted:
        """What was counted."""

    def check(self) -> None:
        """Raises RuntimeError where something was lost or doubled, or a server did too much."""


ModelKind = TypeVar("ModelKind", bound=RunningModel)


@dataclass(frozen=True, eq=False)
class Sums:
    """All that a model has counted since time 0, but for histograms; times in ps.

    ``done`` and ``latency_ps`` (O,): operations, and the sums of their latencies. ``lines`` (n,):
    of each home, read and written; ``memory_ps`` (n,), ``link_ps`` (2L,), ``core_ps`` (C,): busy
    times.
    """

    now_ps: int
    done: Ints
    latency_ps: Floats
    lines: Floats
    memory_ps: Floats
    link_ps: Floats
    core_ps: Floats


SumsKind = TypeVar("SumsKind", bound=Sums)


class SumsPlayer(ABC, Generic[ModelKind, SumsKind]):
    """Of a model that counts from time 0 on: what it counted is the difference of two sums:
    ``before`` counting began, and ``now``, when it was last asked."""

    def __init__(self, model: ModelKind, costs: CostModel) -> None:
        self.model, self.costs = model, costs
        self.start_counting()

    @abstractmethod
    def sums_now(self) -> SumsKind:
        """What the model has counted."""

    @abstractmethod
    def histograms(self) -> tuple[Histogram, ...]:
        """(O,) of latencies, in ns."""

    def start_counting(self) -> None:
        self.before = self.now = self.sums_now()
        self._latencies = self.histograms()

    def counted(self) -> Counted:
        """Slots of misses are not counted."""
        found = tuple(map(Histogram.since, self.histograms(), self._latencies))
        return replace(self.sums()[0], latencies=found)

    def sums(self) -> tuple[Counted, Floats]:
        """What was counted without its histograms, which take longer than all else where there are
        hundreds of operations; (O,) sums of latencies in ns.
        """
        before, self.now = self.before, self.sums_now()
        now = self.now
        link_ps = now.link_ps - before.link_ps
        counted = Counted(
            since_ps=before.now_ps,
            done=(now.done - before.done).astype(np.float64),
            busy_ps=(now.core_ps - before.core_ps).astype(np.int64),
            held_ps=None,
            memory_ps=np.rint(now.memory_ps - before.memory_ps).astype(np.int64),
            memory_bytes=(now.lines - before.lines) * LINE_BYTES,
            link_ps=np.rint(link_ps).astype(np.int64),
            link_bytes=link_ps / PS_PER_S * self.costs.link_Bps,
            latencies=(),
        )
        return counted, (now.latency_ps - before.latency_ps) / 1e3

    def check(self) -> None:
        now = self.sums_now()
        most = now.now_ps * (1.0 + SLACK) + self.model.events + 1.0
        if (now.memory_ps > most).any() or (now.link_ps > most).any():
            raise RuntimeError("a controller or a link did more than time allows")


PlayerKind = TypeVar("PlayerKind", bound=Player)


class ModelPlane(Generic[PlayerKind]):
    """Runs one replication; see ``plane.RandomPlane`` for what its methods promise.

    As it stands, of a system whose workers stay where they are, without policies and phases.
    """

    def __init__(
        self, experiment: Experiment, costs: CostModel, workers: Workers, player: PlayerKind
    ) -> None:
        self.machine, self.workload = experiment.machine, experiment.workload
        self.operations = tuple(self.workload.operations)
        self.costs, self.player = costs, player
        self.use = MachineUse(self.machine, workers, costs)
        self._workers = workers
        self.time_s = 0.0

    def advance(self, until_s: float) -> None:
        while not self.player.model.run(round(until_s * PS_PER_S)):
            self.attend()
        self.time_s = until_s

    @property
    def workers(self) -> Workers:
        """Where workers are now."""
        return self._workers

    @property
    def events(self) -> Sequence[ControlEvent]:
        """What the control plane's record shall show of the system."""
        return ()

    def attend(self) -> None:
        """The model has stopped, to let its system act."""
        raise RuntimeError("the model stopped before its time")

    def observe(self, family: str) -> Any:
        return None

    def apply(self, commands: Sequence[Command]) -> None:
        assert not commands, "a system with neither policies nor phases"

    def busy_ps(self, counted: Counted) -> Floats:
        """(C,) time that all workers of each core were busy."""
        return counted.busy_ps.astype(np.float64)

    def facts(self, counted: Counted) -> Mapping[str, Any]:
        """What the record shall say of the model."""
        return counted.facts

    def warnings(self) -> Sequence[str]:
        """What a user should know of this run, besides what the costs say."""
        return ()

    def check(self) -> None:
        """Raises where something was lost or doubled."""
        self.player.check()

    def start_counting(self) -> None:
        self.player.start_counting()

    def totals(self) -> Mapping[str, float]:
        counted = self.player.counted()
        return self.totals_of(counted, [latencies.total for latencies in counted.latencies])

    def totals_of(self, counted: Counted, latencies_ns: Iterable[float]) -> dict[str, float]:
        """The columns of what was counted; ``latencies_ns`` (O,): sums."""
        found = {}
        for name, done, latency_ns in zip(
            self.operations, counted.done.tolist(), latencies_ns, strict=True
        ):
            found[f"throughput/{name}"] = float(done)
            found[f"under_way/{name}"] = latency_ns * 1e-9
        row = self._row(counted)
        names = self.use.names
        if len(counted.link_ps) > LINKS_IN_SERIES:
            names = names[: len(names) - len(counted.link_ps)]
        for name, busy_s in zip(names, row.tolist(), strict=False):
            found[f"utilisation/{name}"] = busy_s
        return found

    def _row(self, counted: Counted) -> Floats:
        """Seconds of use of each resource."""
        busy = self.busy_ps(counted) / self.workers.on_cores
        held_ps = np.zeros_like(busy) if counted.held_ps is None else counted.held_ps
        parts = (busy, held_ps, counted.memory_ps, counted.link_ps)
        return self.use.row(*(part / PS_PER_S for part in parts))

    def outcome(self) -> Outcome:
        self.check()
        counted = self.player.counted()
        total_s = self.time_s - counted.since_ps / PS_PER_S
        if total_s <= 0:
            raise InputError("nothing was counted", expected="a horizon after the warm-up")
        use = np.minimum(self._row(counted) / total_s, 1.0)
        done = dict(zip(self.operations, counted.done.tolist(), strict=True))
        warnings = dict.fromkeys([*self.costs.warnings, *self.warnings()])
        if not any(done.values()):
            warnings["no operation was done while it was counted"] = None
        found = self.use.outcome(
            done,
            total_s,
            use,
            (counted.memory_bytes, counted.link_bytes),
            self.active_cores(total_s),
            latency_ns={},
            why={},
            events=tuple(self.events),
            model=self.facts(counted),
            warnings=tuple(warnings),
            series={},
            steps=self.player.model.events,
            latencies_ns=dict(zip(self.operations, counted.latencies, strict=True)),
        )
        uses = found.resources
        if counted.held_ps is None:
            uses = tuple(use for use in uses if use.kind != "misses")
        return replace(found, resources=uses, why=self._why(counted, uses))

    def active_cores(self, total_s: float) -> Floats:
        """(n,) cores that take their active power, on average since counting began, so long ago."""
        return self.workers.active_cores(len(self.machine.nodes)).astype(np.float64)

    def _why(self, counted: Counted, uses: Sequence[ResourceUse]) -> dict[str, Why]:
        """The busiest resource, and the time of an operation in a worker by step; nothing where
        none was done."""
        units = float(counted.done.sum())
        if not units:
            return {}
        demands = {name: float(ps.sum()) / units / 1e3 for name, ps in counted.steps_ps.items()}
        busiest = max(uses, key=lambda use: (round(use.utilisation, 3), use.kind != "cores"))
        words = {"cores": WORKERS, "misses": "outstanding misses of the cores"}
        found = words.get(busiest.kind, busiest.name)
        return {name: Why(found, (), demands) for name in self.operations}


def moved_bytes(arrived: Floats, done_ps: Ints, limit_Bps: Floats) -> Floats:
    """Bytes that servers moved: by their busy time where they have a limit, else all that
    ``arrived``.
    """
    limited = np.isfinite(limit_Bps)
    return np.where(limited, done_ps / PS_PER_S * np.where(limited, limit_Bps, 0.0), arrived)


def memory_bytes(found: Mapping[str, Any]) -> Floats:
    """(n,) bytes that controllers moved: of those that arrived, the part that was served in time.

    Written lines take longer than read ones.
    """
    arrived, arrived_ps = found["memory_lines"] * LINE_BYTES, found["memory_arrived"]
    rate_Bps = np.full(len(arrived), np.inf)
    np.divide(arrived * PS_PER_S, arrived_ps, out=rate_Bps, where=arrived_ps > 0)
    return moved_bytes(arrived, found["memory_done"], rate_Bps)
