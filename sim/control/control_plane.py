"""The control plane: SimPy processes that watch a data plane and steer it, on its clock."""

from __future__ import annotations

from collections.abc import Callable, Generator

import simpy
from simpy.rt import RealtimeEnvironment

from ..planes.outcome import ControlEvent
from ..planes.plane import Plane, StartPhase, is_real_time
from ..run.scenario import Scenario
from .load_balancing import NoBalancing
from .policy import Policy, Rebalance, decide


class ControlPlane:
    """Steers ``plane`` through ``scenario``; ``events`` are what the control plane itself did.

    Its clock counts nanoseconds, in whole numbers: equal times are equal. It is real time where the
    plane says so (``REAL_TIME``), else virtual.
    """

    def __init__(self, scenario: Scenario, plane: Plane) -> None:
        self.scenario, self.plane = scenario, plane
        self.policy: Policy = scenario.new_policy()
        self.events: list[ControlEvent] = []
        self.clock = simpy.Environment()
        if is_real_time(plane):
            # What comes late comes late: a policy that takes long is told by its effect.
            self.clock = RealtimeEnvironment(factor=1e-9, strict=False)

    def run(self, progress: Callable[[float], None] | None = None) -> None:
        """Until the horizon; ``progress`` is told the part of it that is done, 0 to 1."""
        horizon_s = self.scenario.horizon_s
        self.clock.process(self._phases(horizon_s))
        if not isinstance(self.policy, NoBalancing):
            self.clock.process(self._balancer(horizon_s))
        horizon_ns = _ns(horizon_s)
        if isinstance(self.clock, RealtimeEnvironment):
            self.clock.sync()
        self.plane.advance(0.0)
        while (next_ns := self.clock.peek()) < horizon_ns:
            self.clock.step()
            if progress is not None:
                progress(next_ns / horizon_ns)
        self.plane.advance(horizon_s)
        if progress is not None:
            progress(1.0)

    def _phases(self, horizon_s: float) -> Generator[simpy.Event, None, None]:
        """Starts each phase of the workload, and moves its keys, when their time has come."""
        workload = self.scenario.workload
        started = workload.at(0.0)
        for at_s in workload.change_times(horizon_s):
            yield self.clock.timeout(_ns(at_s) - self.clock.now)
            self.plane.advance(at_s)
            phase = workload.at(at_s)
            text = f"phase {phase.name}" if phase is not started else f"{phase.name}: keys move"
            started = phase
            self.events.append(ControlEvent(at_s, "phase", text, {"phase": phase.name}))
            self.plane.apply([StartPhase(phase)])

    def _balancer(self, horizon_s: float) -> Generator[simpy.Event, None, None]:
        """Asks the policy once a period."""
        period_s, count = self.scenario.period_s, 0
        while True:
            count += 1
            at_s = count * period_s
            if at_s >= horizon_s:
                return
            yield self.clock.timeout(_ns(at_s) - self.clock.now)
            # At one and the same time the workload changes first, then the monitor looks.
            yield self.clock.timeout(0)
            self.plane.advance(at_s)
            commands = decide(self.policy, self.plane.observe("load_balancing"))
            for command in commands:
                self.events.append(self._decision(at_s, command))
            self.plane.apply(commands)

    def _decision(self, at_s: float, command: Rebalance) -> ControlEvent:
        text = f"{self.scenario.policy_name} balances {command.object}"
        return ControlEvent(at_s, "balance", text, {"object": command.object})


def _ns(time_s: float) -> int:
    return round(time_s * 1e9)
