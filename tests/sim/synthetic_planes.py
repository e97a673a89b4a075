"""Planes that play nothing: a record of each scenario at once, with figures of one's choice."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from numatwin.inputs import InputError
from numatwin.sim.planes.outcome import ControlEvent
from numatwin.sim.run.record import Record
from numatwin.sim.run.scenario import Scenario

Rate = Callable[[Scenario, int], float]


@dataclass
class SyntheticPlanes:
    """``rates``: operations per second by plane, told the scenario and how often it was played on
    that plane before; ``failing``: raises for the n-th run of a plane, counted from 1.

    ``played``: (scenario's workload, plane) in their order.
    """

    rates: Mapping[str, Rate]
    p99_ns: Mapping[str, float] = field(default_factory=dict)
    failing: Mapping[tuple[str, int], BaseException] = field(default_factory=dict)
    played: list[tuple[str, str]] = field(default_factory=list)
    _before: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __call__(self, scenario: Scenario) -> Record:
        plane = scenario.plane
        self.played.append((scenario.workload.name, plane))
        count = sum(one == plane for _, one in self.played)
        if (plane, count) in self.failing:
            raise self.failing[plane, count]
        rate = self.rates[plane](scenario, self._before[scenario.hash, plane])
        self._before[scenario.hash, plane] += 1
        operations = list(scenario.workload.operations)
        p99 = self.p99_ns.get(plane)
        return Record(
            scenario=scenario.name,
            title=scenario.title,
            scenario_hash=scenario.hash,
            plane=plane,
            policy=scenario.policy_name,
            seed=scenario.seed,
            horizon_s=scenario.horizon_s,
            machine={"name": scenario.machine.name, "nodes": []},
            settings=scenario.settings,
            throughput=dict.fromkeys(operations, rate),
            operations=dict.fromkeys(operations, rate * scenario.horizon_s),
            bandwidth_Bps={"memory": None if plane == "native" else 1e9},
            latency_ns={name: None if p99 is None else {"p99": p99} for name in operations},
            control_events=(ControlEvent(0.0, "phase", "start"),),
            model={"native": {"memory_traffic": "this host shows no counters of its memory"}},
            warnings=(),
            provenance={},
            series={"time_s": np.zeros(1), "duration_s": np.ones(1)},
        )


def steady(rate: float) -> Rate:
    """The same at any time."""
    return lambda scenario, before: rate


def by_round(*rates: float) -> Rate:
    """One of them after the other."""
    return lambda scenario, before: rates[before]


NO_MEMORY = InputError("no memory left for the engine", expected="a smaller --scale")
