"""A small system with two families of policies, which no plane and no control plane knows.

Every core works off operations of ``work`` each. Policies of the family ``clock`` make all cores
faster; those of ``mover`` have core 0 copy ``volume`` units to core 1, in the background.

Its flow plane by hand: C cores do C / work operations per second, and ``factor`` times as many once
they are faster.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from numatwin.inputs import InputError, Quantity
from numatwin.inputs.quantities import Duration
from numatwin.sim.control import Family, PolicySpec
from numatwin.sim.control.user_policy import Origin
from numatwin.sim.kernel.arrays import Floats
from numatwin.sim.kernel.sums import group_sums
from numatwin.sim.machine.costs import CostModel, Scales
from numatwin.sim.machine.demands import Demand, Step, TransferDemand
from numatwin.sim.machine.threads import place_workers
from numatwin.sim.planes.flow_system import FlowSystem, MachineDemands, Piece
from numatwin.sim.planes.outcome import ControlEvent
from numatwin.sim.planes.plane import Experiment, StartPhase
from numatwin.sim.systems.descriptor import LazyImport, System, SystemSpec

SECOND = Quantity(1.0, 1.0, 1.0)
# Whoever asks and acts, in that order: (family, time).
LOG: list[tuple[str, float]] = []


@dataclass(frozen=True)
class Clock:
    """What ``clock`` policies see: how much faster cores are than at first, and what was done."""

    factor: float
    units: float


@dataclass(frozen=True)
class Faster:
    """Their command: cores are so many times as fast."""

    factor: float


@dataclass(frozen=True)
class Store:
    """What ``mover`` policies see: units still to be moved, and how fast the cores are just now."""

    left: float
    factor: float


@dataclass(frozen=True)
class Move:
    """Their command: so many units leave core 0 for core 1."""

    volume: float


class ClockSpec(PolicySpec):
    factor: float | None = None
    period: Duration = SECOND


class MoverSpec(PolicySpec):
    period: Duration = SECOND


class Silent:
    def decide(self, observation: object) -> list[Any]:
        return []


@dataclass
class Once:
    """Gives its command when it is first asked."""

    command: Any
    asked: int = 0

    def decide(self, observation: object) -> list[Any]:
        self.asked += 1
        return [self.command] if self.asked == 1 else []


def _checked(kind: type) -> Any:
    def check(commands: Any, seen: Any, name: str, origin: Origin | None) -> tuple[Any, ...]:
        for command in commands:
            if not isinstance(command, kind):
                told = origin or Origin()
                raise InputError(f"policy {name}: no {kind.__name__}", told.file, told.line)
        return tuple(commands)

    return check


def _clock(name: str, options: Mapping[str, Any]) -> Any:
    made: dict[str, Callable[[], Any]] = {
        "none": Silent,
        "once": lambda: Once(Faster(options.get("factor", 2.0))),
    }
    return made[name]() if name in made else None


def _mover(name: str, options: Mapping[str, Any]) -> Any:
    made: dict[str, Callable[[], Any]] = {"none": Silent, "once": lambda: Once(Move(1e6))}
    return made[name]() if name in made else None


def _event(kind: str) -> Any:
    return lambda command, name, time_s: ControlEvent(time_s, kind, f"{name} orders {command}")


TITLES = {"none": "never", "once": "when first asked"}
CLOCK = Family(
    "clock",
    "how fast",
    ClockSpec,
    TITLES,
    _clock,
    "none or once",
    _checked(Faster),
    _event("clock"),
)
MOVER = Family(
    "mover",
    "what moves",
    MoverSpec,
    TITLES,
    _mover,
    "none or once",
    _checked(Move),
    _event("mover"),
)


class ToySpec(SystemSpec):
    kind: Literal["toy"] = "toy"
    work: Duration = Quantity(1e-7, 1e-7, 1e-7)


class ToyFlow(FlowSystem[MachineDemands]):
    """See FlowSystem."""

    def __init__(self, experiment: Experiment) -> None:
        machine = experiment.machine
        self.machine, self.spec = machine, experiment.system
        nodes = np.repeat(np.arange(len(machine.nodes)), [node.cores for node in machine.nodes])
        self.workers = place_workers(machine, nodes)
        self.phase = experiment.workload.at(0.0)
        self.events: list[ControlEvent] = []
        self.factor, self.volume, self.arrived, self.done = 1.0, 0.0, 0.0, 0.0
        LOG.clear()

    def demands(self, scales: Scales) -> MachineDemands:
        return MachineDemands(CostModel(self.machine, scales))

    def demand(self, demands: MachineDemands, time_s: float) -> Demand:
        cores = self.workers.cores
        work_s = self.spec.work.value / self.factor / demands.costs.scales.cores
        return Demand(
            flow_of=np.zeros(len(self.machine.nodes), dtype=np.int64),
            steps=(Step("work", np.full(cores, work_s / cores), np.zeros(cores), ()),),
            writes=(),
            batch=1,
            miss_instructions=1.0,
        )

    def transfers(self, demands: MachineDemands) -> TransferDemand | None:
        if self.arrived >= self.volume:
            return None
        home = self.workers.core_node[:2]
        one, at = np.ones(1), np.arange(2)
        return TransferDemand(
            at[:1], at[1:], home[:1], home[1:], 1e-7 * one, 1e-7 * one, one, one, one
        )

    def left(self) -> Floats:
        return np.array([self.volume - self.arrived])

    def moved(self, amounts: Floats, time_s: float) -> None:
        self.arrived = min(self.arrived + float(amounts.sum()), self.volume)
        if self.volume - self.arrived <= 1e-9 * self.volume:
            self.arrived = self.volume
            self.events.append(ControlEvent(time_s, "done", "moved"))

    def columns(self) -> Mapping[str, float]:
        return {"speed/cores": self.factor}

    def played(self, piece: Piece) -> None:
        self.done += piece.units_per_s * piece.length_s
        busy_s = group_sums(np.zeros(self.workers.cores, int), piece.steps_s["work"], 1)
        assert 0 < busy_s[0] <= piece.length_s * self.workers.cores * (1 + 1e-9)

    def observe(self, family: str, time_s: float) -> Clock | Store:
        LOG.append((family, time_s))
        if family == "clock":
            return Clock(self.factor, self.done)
        assert family == "mover"
        return Store(self.volume - self.arrived, self.factor)

    def apply(self, command: Any, demands: MachineDemands, time_s: float) -> None:
        assert not isinstance(command, StartPhase)
        if isinstance(command, Faster):
            self.factor = command.factor
        else:
            assert isinstance(command, Move)
            self.volume += command.volume

    def check_conservation(self) -> None:
        assert 0 <= self.arrived <= self.volume

    def warnings(self) -> Sequence[str]:
        return ("a toy",)


SYSTEM = System(
    name="toy",
    spec=ToySpec,
    operations=("lookup",),
    planes={"flow": LazyImport(__name__, "ToyFlow")},
    families=(CLOCK, MOVER),
)
