"""What a machine predicts of each kind of measurement, with some of its facts replaced: through the
cost model that planes use, and of native runs through the flow plane. What a system adds: its
engine's parameters, and what measurements show of them (``EngineCalibration``).

Words and lines that cores share: atomic operations of several threads on one line are made of an
operation and of the line's way. A message is two hand-overs of the line (the writer takes it back,
the reader fetches it), so that one takes h = line / 2. Who increments by compare-and-swap loads the
word first; the line goes round, and each thread succeeds once a round: n h. Who adds at once does
so when the line arrives, and again, in ``word_add`` each, until the next one's request arrives:
with two threads that has to be made first, and takes h; with more of them, one waits already. Of a
thread that holds the line for t, an addition takes n (h + t) / (1 + t / word_add): t is h with two
threads, and 0 with more. (Written with figures of two threads in sight; more were never measured.)
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, Protocol

import numpy as np

from ...inputs import Quantity
from ...sim.machine.costs import LINE_BYTES, CostModel
from ...sim.machine.streams import random_Bps, streamed_Bps
from ...sim.run.scenario import Scenario
from ...sim.run.what_if import flow_plane
from ...topologies.machine import Machine, Node
from ...topologies.measurements import Measurement
from ...topologies.schema import MachineDescription
from ..systems.registry import validation_of, validations
from .engine_rows import OwnEngine
from .observation import (
    ATOMIC,
    CACHE,
    IDLE,
    LINE,
    LOADED,
    MACHINE_READ,
    MIX,
    RANDOM,
    READ,
    STEP,
    THROUGHPUT,
    HostReader,
    Kind,
    Measured,
    Observation,
)
from .parameters import (
    ATOMIC_KEY,
    CURVE,
    KNOTS,
    LINE_KEY,
    Key,
    PairClass,
    Parameter,
    curve,
    node_types,
)  # fmt: skip

Reader = Callable[[HostReader, Measurement], Observation | str]
Values = Mapping[Key, float]


class Quantities(Protocol):
    """Functions of the values, by name, as a machine file has them; ``source``: where it is from,
    by the keys that tell of it, of which the first that was fitted counts.
    """

    def __call__(
        self, figures: Callable[[Values], Mapping[Any, float]], keys: Callable[[Any], Sequence[Key]]
    ) -> Mapping[Any, Quantity]: ...


@dataclass(frozen=True)
class NativeSteps:
    """What native runs of the engine tell.

    ``steps``: of a real worker's loop, each with the step of the model that it is part of.
    ``commands_per_s``: of the plane in its steady state, the commands that workers execute.
    """

    steps: Mapping[str, str]
    commands_per_s: Callable[[Any], float]


@dataclass(frozen=True, kw_only=True)
class EngineCalibration:
    """``parameters`` of a machine. ``readers``: by a measurement's name, what makes an Observation
    of it, or tells why not. ``predictions``: by kind of measurement. ``written``: a description
    with what was fitted, of the description, the machine from before, and what makes quantities of
    the values; ``in_runs``: whether runs meet what is fitted. ``native``: of its native runs, where
    a flow plane runs such. ``own``: how engines of users are fitted, where the system has a profile
    of them.
    """

    parameters: Callable[[Machine], Sequence[Parameter]]
    readers: Mapping[str, Reader] = field(default_factory=dict)
    predictions: "Mapping[Kind, Callable[[Candidate, Observation], float]]"
    written: Callable[[MachineDescription, Machine, Quantities], MachineDescription]
    in_runs: bool = False
    native: NativeSteps | None = None
    own: OwnEngine | None = None


def engine_calibrations() -> tuple[EngineCalibration, ...]:
    """Of each system that has one."""
    return tuple(
        validation.calibration.load()
        for validation in validations()
        if validation.calibration is not None
    )


def native_steps(system: str) -> NativeSteps | None:
    """What native runs of that system tell; None where nothing."""
    calibration = validation_of(system).calibration
    return None if calibration is None else calibration.load().native


class Candidate:
    """``machine`` with ``values`` (SI) in place of its own, by the key of their parameter."""

    def __init__(
        self, machine: Machine, classes: Sequence[PairClass], values: Mapping[Key, float]
    ) -> None:
        self.base, self.classes, self.values = machine, classes, values
        self.ids = {node.id: k for k, node in enumerate(machine.nodes)}

    @cached_property
    def machine(self) -> Machine:
        """The machine with these values."""
        base, values = self.base, self.values
        latency, bandwidth = base.latency_ns.copy(), base.bandwidth_Bps.copy()
        memory_Bps: dict[int, float] = {}
        for pair_class in self.classes:
            if (found := values.get(("latency", pair_class.name))) is not None:
                latency[pair_class.mask] = found * 1e9
            if (found := values.get(("bandwidth", pair_class.name))) is not None:
                bandwidth[pair_class.mask] = found
                if pair_class.local:
                    homes = np.flatnonzero(pair_class.mask.any(axis=0)).tolist()
                    memory_Bps |= dict.fromkeys(homes, found)
        nodes = tuple(
            self._node(node, kind, memory_Bps.get(k, node.memory_bandwidth_Bps))
            for k, (node, kind) in enumerate(zip(base.nodes, node_types(base), strict=True))
        )
        description = base.description
        for engine in engine_calibrations():
            if engine.in_runs:
                description = engine.written(description, base, self._exact)
        changed = replace(
            base,
            description=description, latency_ns=latency, bandwidth_Bps=bandwidth, nodes=nodes,
        )  # fmt: skip
        if all(("curve", part) in values for part in CURVE):
            ratios = curve(KNOTS, *(values["curve", part] for part in CURVE)).tolist()
            peak, base_ns = peak_Bps(changed), values["curve", "base"] * 1e9
            points = zip(KNOTS.tolist(), ratios, strict=True)
            curved = tuple((load * peak, ratio * base_ns) for load, ratio in points)
            changed = replace(changed, loaded_latency=curved)
        return changed

    def _exact(
        self, figures: Callable[[Mapping[Key, float]], Mapping[object, float]], keys: object
    ) -> Mapping[object, Quantity]:
        return {name: Quantity.exact(v) for name, v in figures(self.values).items()}

    def _node(self, node: Node, kind: str, memory_Bps: float | None) -> Node:
        values = self.values
        return replace(
            node,
            memory_bandwidth_Bps=memory_Bps,
            outstanding_misses=values.get(("misses", kind), node.outstanding_misses),
            streaming_misses=values.get(("streaming", kind), node.streaming_misses),
            write_turnaround=values.get(("turnaround", kind), node.write_turnaround),
            caches=tuple(
                replace(cache, latency_ns=values[key] * 1e9)
                if (key := ("cache", kind, str(cache.level))) in values
                else cache
                for cache in node.caches
            ),
        )

    @cached_property
    def costs(self) -> CostModel:
        """Its cost model."""
        return CostModel(self.machine)

    def ends(self, observation: Observation) -> tuple[int, int]:
        """Positions of node and home."""
        return self.ids[observation.at["node"]], self.ids[observation.at["home"]]


def peak_Bps(machine: Machine) -> float:
    """What all nodes with CPUs read together, each from its own memory; NaN where unknown."""
    own = [
        node.memory_bandwidth_Bps or machine.bandwidth_Bps[k, k]
        for k, node in enumerate(machine.nodes)
        if node.memory_bytes != 0 and (node.cores or not any(node.cores for node in machine.nodes))
    ]
    return float(np.sum(own))


@dataclass(frozen=True)
class Steady:
    """Units of work per second, and by step the time of workers per command.

    A scan is a unit of work, and a command of each worker that holds a part of what is scanned.
    """

    units_per_s: float
    step_s: Mapping[str, float]


@dataclass
class NativeRun:
    """The scenario of a native Record, or of a loop; what it does on the last machine is kept, as
    several figures are asked of it.
    """

    scenario: Scenario
    _last: tuple[Candidate, Steady] | None = field(default=None, repr=False)

    def steady(self, candidate: Candidate) -> Steady:
        """Its first phase, as it goes on."""
        if self._last is None or self._last[0] is not candidate:
            engine = native_steps(self.scenario.system.kind)
            assert engine is not None, "runs of such systems are not read"
            plane = flow_plane(replace(self.scenario, machine=candidate.machine, plane="flow"))
            rates = plane.steady()
            units = float(rates.flows.sum())
            commands = max(units, 1e-300) * (engine.commands_per_s(plane) or 1.0)
            steps = rates.steps.items()
            steps_s = {name: float(rates.of_core @ s) / commands for name, s in steps}
            self._last = candidate, Steady(units, steps_s)
        return self._last[1]

    def __str__(self) -> str:
        return self.scenario.hash


def native_throughput(candidate: Candidate, observation: Observation) -> float:
    """Operations per second."""
    run: NativeRun = observation.at["run"]
    share = run.scenario.workload.at(0.0).operations[observation.at["operation"]].share
    return run.steady(candidate).units_per_s * share


def native_step_s(candidate: Candidate, observation: Observation) -> float:
    """Time of a worker for its part of a command, in one of its steps."""
    run: NativeRun = observation.at["run"]
    return run.steady(candidate).step_s.get(observation.at["step"], float("nan"))


def predict(candidate: Candidate, observation: Observation) -> float:
    """The figure in the unit of ``observation``; NaN where the machine does not tell it."""
    prediction = PREDICTIONS.get(observation.kind) or _of_engines()[observation.kind]
    return prediction(candidate, observation)


def _cache(candidate: Candidate, observation: Observation) -> float:
    node = candidate.machine.nodes[candidate.ids[observation.at["node"]]]
    cache = node.cache(observation.at["level"])
    return float("nan") if cache is None or cache.latency_ns is None else cache.latency_ns * 1e-9


def _read(candidate: Candidate, observation: Observation) -> float:
    """So many cores of a node stream from a home: what their slots hold, up to what memory or the
    way there delivers. All cores, where their number is not given.
    """
    costs, (i, j) = candidate.costs, candidate.ends(observation)
    threads = observation.at.get("threads")
    if threads is not None and costs.cores[i] and threads < costs.cores[i]:
        return streamed_Bps(costs, i, j, threads)
    most = float(costs.memory_Bps[j])
    return most if i == j else float(np.fmin(candidate.machine.bandwidth_Bps[i, j], most))


def _loaded(candidate: Candidate, observation: Observation) -> float:
    load = min(observation.at["load"] / peak_Bps(candidate.machine), 1.0)
    base_s = candidate.values.get(("curve", "base"))  # as the tool sees it at no load
    if base_s is None:
        base_s = float(np.nanmin(candidate.costs.latency_s))
    return base_s * float(np.interp(load, *candidate.costs.loaded_latency))


def _mix(candidate: Candidate, observation: Observation) -> float:
    """Peak bandwidth of one node, or of all, where this share of all lines are writes."""
    each = candidate.costs.mixed_memory_Bps(observation.at["written"])
    if "node" in observation.at:
        return float(each[candidate.ids[observation.at["node"]]])
    has_memory = [node.memory_bytes != 0 for node in candidate.machine.nodes]
    return float(each[has_memory].sum())


def _line_s(tried: Candidate, observation: Observation) -> float:
    """A message between two cores, or an atomic operation of several on one line."""
    costs = tried.base.description.processes
    if costs is None or costs.line is None:
        return float("nan")
    line = tried.values.get(LINE_KEY, costs.line.value)
    each = tried.values.get(ATOMIC_KEY, costs.word_add.value)
    operation, threads = observation.at["operation"], observation.at["threads"]
    return line if operation == "message" else contended_s(operation, threads, line, each)


def contended_s(operation: str, threads: int, line_s: float, alone_s: float) -> float:
    """Time of an atomic operation as each of several threads sees it; see above."""
    hand_over_s = line_s / 2.0
    held_s = hand_over_s if operation == "fetch-add" and threads == 2 else 0.0
    return threads * (hand_over_s + held_s) / (1.0 + held_s / alone_s)


def _atomic_s(tried: Candidate, observation: Observation) -> float:
    """An atomic operation on a word that the core has."""
    costs = tried.base.description.processes
    start = float("nan") if costs is None else costs.word_add.value
    return tried.values.get(ATOMIC_KEY, start)


PREDICTIONS: Mapping[Kind, Callable[[Candidate, Observation], float]] = {
    IDLE: lambda tried, one: float(tried.machine.latency_ns[tried.ends(one)]) * 1e-9,
    CACHE: _cache,
    READ: _read,
    MACHINE_READ: lambda tried, one: peak_Bps(tried.machine),
    LOADED: _loaded,
    MIX: _mix,
    # Independent loads of one core: as many under way as it can have (Little's law).
    RANDOM: lambda tried, one: random_Bps(tried.costs, *tried.ends(one)) / LINE_BYTES,
    ATOMIC: _atomic_s,
    LINE: _line_s,
    STEP: native_step_s,
    THROUGHPUT: native_throughput,
}


@cache
def _of_engines() -> Mapping[Kind, Callable[[Candidate, Observation], float]]:
    engines = engine_calibrations()
    return {kind: how for engine in engines for kind, how in engine.predictions.items()}


def without_costs_unknown(measured: Measured, machine: Machine) -> Measured:
    """What was measured, less what ``machine`` has no cost of that could be fitted.

    A factor on a cost of 0 moves nothing: such steps take less than a clock tells.
    """
    own = Candidate(machine, (), {})
    ones = measured.observations
    used = tuple(one for one in ones if not one.kind.scaled or predict(own, one) > 0)
    if len(used) == len(ones):
        return measured
    reason = f"{machine.name} has no such cost among those of processes"
    unused = {**measured.unused, reason: len(ones) - len(used)}
    return replace(measured, observations=used, unused=unused)
