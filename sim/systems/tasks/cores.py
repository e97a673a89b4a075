"""Policies that say which cores the threads of a database may run on.

After Dominico et al., An Elastic Multi-Core Allocation Mechanism for Database Systems, ICDE 2018:
a Petri net sees the use u of the allocated cores each period, and allocates one core more where
u >= th_max, releases one where u <= th_min. Its guards are not printed in the source. These
follow from its description, with n cores allocated of N:

    t0   Checks    -> Idle       u <= th_min and n > 1
    t1   Checks    -> Stable     th_min < u < th_max, or u <= th_min and n = 1
    t2   Checks    -> Overload   u >= th_max
    t3   Overload  -> Provision  n < N             allocate: n becomes n + 1
    t4   Overload  -> Stable     n = N
    t5   Idle      -> Provision  always            release: n becomes n - 1
    t6   Provision -> Checks     a new measurement
    t7   Stable    -> Checks     a new measurement

The guard n > 1 stands at t0, not behind Idle: a further transition from Idle back to Stable would
be needed there, and the source has eight. ``PetriNet.faults`` shows that nothing is dead or stuck,
and that n stays within 1 and N.

Which core is next: ``sparse``, on the node with the fewest allocated; ``dense``, on the node that
is filled already, then the next; ``adaptive``, on the node with most of the memory that is worked
on, and the first to go is on the node with least of it.
"""

from collections.abc import Callable
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from ....inputs import Quantity
from ....inputs.quantities import Duration
from ...control.family import Family
from ...control.policy import NoPolicy, PolicySpec
from ...planes.outcome import ControlEvent
from .commands import AllocateCore, CoresCommand, CoresObservation, ReleaseCore, check_cores
from .petri_net import PetriNet, Transition, net_svg

TH_MIN, TH_MAX = 0.1, 0.7
PERIOD = Quantity(0.1, 0.1, 0.1)  # not given in the source

Share = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]


class CoresSpec(PolicySpec):
    """An allocator of cores. ``th_min``, ``th_max``: below and above which it releases and
    allocates; ``metric``: CPU load of the allocated cores (0 to 1), or traffic over the
    interconnect by that of the memory controllers.
    """

    th_min: Share | None = None
    th_max: Share | None = None
    metric: Literal["load", "interconnect"] | None = None
    period: Duration = PERIOD

    def _fits(self) -> None:
        super()._fits()
        low = TH_MIN if self.th_min is None else self.th_min
        high = TH_MAX if self.th_max is None else self.th_max
        if low >= high:
            raise ValueError(f"th_min {low:g} is not below th_max {high:g}")


def elastic_net(cores: int, th_min: float = TH_MIN, th_max: float = TH_MAX) -> PetriNet:
    """The net of this file's first lines, for ``cores`` cores; tokens are (u, n)."""

    def goes(
        name: str,
        source: str,
        target: str,
        guard: Callable[[float, float], bool],
        text: str,
        step: int = 0,
    ) -> Transition:
        actions = {1: ("n := n + 1", "allocate"), -1: ("n := n − 1", "release")}
        effect_text, action = actions.get(step, ("", ""))
        return Transition(
            name,
            source,
            target,
            lambda token: guard(*token),
            text,
            lambda token: (token[0], token[1] + step),
            effect_text,
            waits=target == "Checks",
            action=action,
        )

    return PetriNet(
        name="elastic",
        places=("Checks", "Idle", "Stable", "Overload", "Provision"),
        transitions=(
            goes("t0", "Checks", "Idle", lambda u, n: u <= th_min and n > 1, "u ≤ th_min, n > 1"),
            goes(
                "t1",
                "Checks",
                "Stable",
                lambda u, n: th_min < u < th_max or (u <= th_min and n <= 1),
                "th_min < u < th_max, or n = 1",
            ),
            goes("t2", "Checks", "Overload", lambda u, n: u >= th_max, "u ≥ th_max"),
            goes("t3", "Overload", "Provision", lambda u, n: n < cores, "n < N", 1),
            goes("t4", "Overload", "Stable", lambda u, n: n >= cores, "n = N"),
            goes("t5", "Idle", "Provision", lambda u, n: True, "", -1),
            goes("t6", "Provision", "Checks", lambda u, n: True, "new u"),
            goes("t7", "Stable", "Checks", lambda u, n: True, "new u"),
        ),
        start="Stable",
        positions={
            "Checks": (0, 1.5),
            "Idle": (2, 0),
            "Stable": (2, 1.5),
            "Overload": (2, 3),
            "Provision": (4, 1.5),
            "t0": (1, 0.75),
            "t1": (1, 1.3),
            "t2": (1, 2.35),
            "t3": (3, 2.25),
            "t4": (2, 2.25),
            "t5": (3, 0.9),
            "t6": (2, -0.9),
            "t7": (1, 1.8),
        },
    )


class ElasticCores:
    """Allocates and releases one core a period by the net, from one core on."""

    def __init__(
        self, mode: str, th_min: float = TH_MIN, th_max: float = TH_MAX, metric: str = "load"
    ) -> None:
        if not 0 <= th_min < th_max:
            raise ValueError(f"th_min: expected at least 0 and below th_max, {th_max:g}")
        if metric not in ("load", "interconnect"):
            raise ValueError("metric: expected load or interconnect")
        self.mode, self.metric = mode, metric
        self.th_min, self.th_max = th_min, th_max
        self._net: PetriNet | None = None
        self._place = ""

    def decide(self, observation: CoresObservation) -> tuple[CoresCommand, ...]:
        """The core to allocate or to release now; the first time, all but one are released."""
        if self._net is None:
            self._net = elastic_net(int(observation.cores.sum()), self.th_min, self.th_max)
            self._place = self._net.start
            first = self._next(observation, ())  # it stays, all others go
            return tuple(ReleaseCore(*core) for core in observation.allocated if core != first)
        token = (self._measure(observation), float(len(observation.allocated)))
        self._place, _, fired = self._net.measured(self._place, token)
        for transition in fired:
            if transition.action == "allocate":
                return (AllocateCore(*self._next(observation)),)
            if transition.action == "release":
                return (ReleaseCore(*self._last(observation)),)
        return ()

    def _measure(self, observation: CoresObservation) -> float:
        if self.metric == "load":
            return observation.cpu_load
        if observation.controllers_Bps <= 0:
            return 0.0
        return observation.interconnect_Bps / observation.controllers_Bps

    def _next(
        self, observation: CoresObservation, allocated: tuple[tuple[int, int], ...] | None = None
    ) -> tuple[int, int]:
        """The core to allocate next: of a node with one left, its first that is not in use."""
        taken = set(observation.allocated if allocated is None else allocated)
        on = self._counts(observation, taken)
        left = [k for k, cores in enumerate(observation.cores.tolist()) if on[k] < cores]
        if self.mode == "sparse":
            node = min(left, key=lambda k: (on[k], k))
        elif self.mode == "dense":
            node = min(left, key=lambda k: (on[k] == 0, k))
        else:
            memory = self._memory(observation)
            node = min(left, key=lambda k: (-memory[k], k))
        core = next(c for c in range(int(observation.cores[node])) if (node, c) not in taken)
        return node, core

    def _last(self, observation: CoresObservation) -> tuple[int, int]:
        """The core to release: of a node that has one, its last in use."""
        taken = set(observation.allocated)
        on = self._counts(observation, taken)
        used = [k for k, count in enumerate(on) if count]
        if self.mode == "sparse":
            node = max(used, key=lambda k: (on[k], k))
        elif self.mode == "dense":
            node = max(used)
        else:
            memory = self._memory(observation)
            node = min(used, key=lambda k: (memory[k], -k))
        return node, max(core for taken_node, core in taken if taken_node == node)

    @staticmethod
    def _memory(observation: CoresObservation) -> list[float]:
        """(n,) of each node, in parts of the most; what differs by rounding alone is equal."""
        of_nodes = observation.memory_bytes
        found: list[float] = np.round(of_nodes / max(of_nodes.max(), 1e-300), 9).tolist()
        return found

    @staticmethod
    def _counts(observation: CoresObservation, taken: set[tuple[int, int]]) -> list[int]:
        on = [0] * len(observation.cores)
        for node, _ in taken:
            on[node] += 1
        return on


MODES = ("sparse", "dense", "adaptive")


def _draw(name: str) -> str | None:
    return net_svg(elastic_net(2), f"Allocation of cores, {name}") if name in MODES else None


def _event(command: CoresCommand, policy: str, time_s: float) -> ControlEvent:
    what = "allocate" if isinstance(command, AllocateCore) else "release"
    details = {"policy": policy, "action": what, "node": command.node, "core": command.core}
    return ControlEvent(
        time_s, "cores", f"{policy}: {what} core {command.core} of node {command.node}", details
    )


CORES = Family(
    name="cores",
    what="which cores the threads of the database may run on",
    spec=CoresSpec,
    titles={
        "none": "all cores, as the operating system has them (also: all)",
        "sparse": "as needed by the load, spread over the nodes (ICDE 2018)",
        "dense": "as needed by the load, node after node",
        "adaptive": "as needed by the load, close to the data",
    },
    make=lambda name, options: ElasticCores(name, **options) if name in MODES else None,
    fixed={"none": NoPolicy, "all": NoPolicy},
    expected="none, all, sparse, dense or adaptive",
    check=check_cores,
    event=_event,
    types=(CoresObservation, AllocateCore, ReleaseCore),
    draw=_draw,
)
