"""A plane that runs one replication of a model, event by event: the common part of such planes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ...inputs import InputError
from ..kernel.histogram import Histogram, of_kernel
from ..machine.costs import LINE_BYTES, CostModel
from ..machine.disturbances.facts import PS_PER_S
from ..machine.parts import PartsModel
from ..machine.threads import Workers
from .experiment import Experiment
from .machine_use import MachineUse
from .outcome import ControlEvent, Outcome, ResourceUse, Why
from .plane import Command
from .why import WORKERS

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Of a machine with more links the series do not tell each one's use.
LINKS_IN_SERIES = 256


@dataclass(frozen=True, eq=False)
class Counted:
    """All since counting began; times in ps.

    ``done`` (O,): operations, in the workload's order, and their ``latencies``. ``busy_ps``: of the
    threads of each core (C,); ``held_ps`` (C,): slots of outstanding misses. ``memory_ps``,
    ``memory_bytes`` (n,), ``link_ps``, ``link_bytes`` (2L,): busy times and traffic. ``steps_ps``:
    time that operations took in threads, by step. ``facts``: what else the model counted.
    """

    since_ps: int
    done: Floats
    busy_ps: Ints
    held_ps: Floats
    memory_ps: Ints
    memory_bytes: Floats
    link_ps: Ints
    link_bytes: Floats
    latencies: tuple[Histogram, ...]
    steps_ps: Mapping[str, Ints] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


class Player(Protocol):
    """A model, and what it has counted."""

    @property
    def events(self) -> int:
        """Events handled since time 0."""

    def run(self, until_ps: int) -> bool:
        """Goes on until that time; False where the model waits for the control plane before."""

    def start_counting(self) -> None:
        """Forgets what was counted."""

    def counted(self) -> Counted:
        """What was counted."""

    def check(self) -> None:
        """Raises RuntimeError where something was lost or doubled, or a server did too much."""


class RunningModel(Protocol):
    """A model, compiled or in SimPy."""

    @property
    def now_ps(self) -> int:
        """The time reached."""

    @property
    def events(self) -> int:
        """Events handled since time 0."""

    def run(self, until_ps: int) -> bool:
        """See Player."""


ModelKind = TypeVar("ModelKind", bound=RunningModel)


class OfModel(Generic[ModelKind]):
    """What every player leaves to its model."""

    def __init__(self, model: ModelKind) -> None:
        self.model = model

    @property
    def now_ps(self) -> int:
        """The time reached."""
        return self.model.now_ps

    @property
    def events(self) -> int:
        """See Player."""
        return self.model.events

    def run(self, until_ps: int) -> bool:
        """See Player."""
        return self.model.run(until_ps)


class PartsPlayer(OfModel[PartsModel]):
    """Simulates a model that is made of ``machine/parts``, compiled or in SimPy."""

    def __init__(self, model: PartsModel, costs: CostModel, operations: int) -> None:
        super().__init__(model)
        self.costs, self.operations = costs, operations

    def start_counting(self) -> None:
        """See Player."""
        self.model.start_counting()

    def counted(self) -> Counted:
        """See Player."""
        found, costs = self.model.counts(), self.costs
        sent = found["link_lines"] * (LINE_BYTES + costs.link_header_bytes)
        sent = sent + found["link_requests"] * costs.link_request_bytes
        latencies = tuple(of_kernel(self.model.latency(k)) for k in range(self.operations))
        return Counted(
            since_ps=found["since_ps"],
            done=np.array([float(latency.count) for latency in latencies]),
            busy_ps=found["busy"],
            held_ps=found["held"],
            memory_ps=found["memory_done"],
            memory_bytes=memory_bytes(found),
            link_ps=found["link_done"],
            link_bytes=moved_bytes(sent, found["link_done"], costs.link_Bps),
            latencies=latencies,
        )

    def check(self) -> None:
        """See Player."""
        now = self.counted()
        passed_ps = self.model.now_ps - now.since_ps
        for name, busy_ps in (("memory", now.memory_ps), ("link", now.link_ps)):
            if (busy_ps > passed_ps).any():
                raise RuntimeError(f"{name} {int(busy_ps.argmax())} did more than time allows")


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
        self._time_s = 0.0

    @property
    def time_s(self) -> float:
        """The time reached."""
        return self._time_s

    def advance(self, until_s: float) -> None:
        """See Plane."""
        while not self.player.run(round(until_s * PS_PER_S)):
            self.attend()
        self._time_s = until_s

    # -- what a system may have otherwise ---------------------------------------------------------

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
        """See Plane."""
        return None

    def apply(self, commands: Sequence[Command]) -> None:
        """See Plane."""
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

    # -- counting ---------------------------------------------------------------------------------

    def start_counting(self) -> None:
        """See RandomPlane."""
        self.player.start_counting()

    def totals(self) -> Mapping[str, float]:
        """See RandomPlane."""
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
        parts = (busy, counted.held_ps, counted.memory_ps, counted.link_ps)
        return self.use.row(*(part / PS_PER_S for part in parts))

    def outcome(self) -> Outcome:
        """See Plane."""
        self.check()
        counted = self.player.counted()
        total_s = self._time_s - counted.since_ps / PS_PER_S
        if total_s <= 0:
            raise InputError("nothing was counted", expected="a horizon after the warm-up")
        memory_Bps, link_Bps = counted.memory_bytes / total_s, counted.link_bytes / total_s
        use = np.minimum(self._row(counted) / total_s, 1.0)
        uses = self.use.resource_uses(use, memory_Bps, link_Bps)
        done = dict(zip(self.operations, counted.done.tolist(), strict=True))
        known = bool(self.machine.links) or len(self.machine.nodes) == 1
        warnings = dict.fromkeys([*self.costs.warnings, *self.warnings()])
        if not any(done.values()):
            warnings["no operation was done while it was counted"] = None
        return Outcome(
            throughput={name: amount / total_s for name, amount in done.items()},
            operations=done,
            bandwidth_Bps={
                "memory": float(memory_Bps.sum()),
                "links": float(link_Bps.sum()) if known else None,
            },
            resources=uses,
            latency_ns={},
            why=self._why(counted, uses),
            energy_J=self.use.energy_J(
                self.workers.active_cores(len(self.machine.nodes)).astype(np.float64),
                memory_Bps,
                link_Bps,
                total_s,
            ),
            events=tuple(self.events),
            model=self.facts(counted),
            warnings=tuple(warnings),
            series={},
            steps=self.player.events,
            latencies_ns=dict(zip(self.operations, counted.latencies, strict=True)),
        )

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
