"""The control plane: SimPy processes that observe and control a data plane, on its clock.

At one and the same instant the workload changes first, then policies are asked, in the order in
which the system lists their families: one sees what those before it have just ordered.
"""

from collections.abc import Generator, Mapping, Sequence
from math import ceil
from typing import Protocol

import simpy
from simpy.events import EventPriority
from simpy.rt import RealtimeEnvironment

from ...inputs.progress import Progress
from ..planes.outcome import ControlEvent
from ..planes.plane import Change, Experiment, Plane, StartPhase, is_real_time, unchanged_until_s
from .family import ChosenPolicy, decide
from .policy import AnyPolicy

# SimPy's own events have priorities 0 and 1.
FIRST_TURN = 2


class ControlledScenario(Experiment, Protocol):
    """What the control plane reads of a scenario: phases, keys that move, and also this."""

    @property
    def changes(self) -> Sequence[Change]:
        """What happens to its system, by time."""

    @property
    def policies(self) -> Mapping[str, ChosenPolicy]:
        """The policy of each family, in the order in which they are asked."""


class ControlPlane:
    """Steers ``plane`` through ``scenario``; ``events`` are what the control plane itself did.

    Its clock counts nanoseconds, in whole numbers: equal times are equal. It is real time where the
    plane says so (``REAL_TIME``), else virtual.
    """

    def __init__(self, scenario: ControlledScenario, plane: Plane) -> None:
        self.scenario, self.plane = scenario, plane
        self.policies: dict[str, AnyPolicy] = {
            family: chosen.make() for family, chosen in scenario.policies.items()
        }
        self.events: list[ControlEvent] = []
        self.clock = simpy.Environment()
        if is_real_time(plane):
            # A slow policy acts late: its effect shows that.
            self.clock = RealtimeEnvironment(factor=1e-9, strict=False)

    def run(self, progress: Progress | None = None) -> None:
        """Runs until the horizon; ``progress`` is called with the part that is done, 0 to 1."""
        horizon_s = self.scenario.horizon_s
        self.clock.process(self._phases(horizon_s))
        self.clock.process(self._changes())
        for rank, chosen in enumerate(self.scenario.policies.values()):
            if chosen.acts:
                self.clock.process(self._asked(chosen, rank, horizon_s))
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

    def _changes(self) -> Generator[simpy.Event, None, None]:
        for change in self.scenario.changes:
            yield self.clock.timeout(_ns(change.event.time_s) - self.clock.now)
            self.plane.advance(change.event.time_s)
            self.events.append(change.event)
            self.plane.apply([change.command])

    def _asked(
        self, chosen: ChosenPolicy, rank: int, horizon_s: float
    ) -> Generator[simpy.Event, None, None]:
        """Asks the policy of one family, of that ``rank`` among families, once a period.

        A memoryless one that orders nothing is not asked until it may see something else.
        """
        family, count = chosen.family, 0
        policy = self.policies[family.name]
        while True:
            count += 1
            at_s = count * chosen.period_s
            if at_s >= horizon_s:
                return
            yield _Turn(self.clock, _ns(at_s) - self.clock.now, FIRST_TURN + rank)
            self.plane.advance(at_s)
            commands = decide(family, policy, self.plane.observe(family.name))
            if commands:
                self.events += [family.event(command, chosen.name, at_s) for command in commands]
                self.plane.apply(commands)
            # To one that says so, neither the time nor what it saw before matters.
            elif getattr(policy, "MEMORYLESS", False):
                next_s = min(self.clock.peek() / 1e9, unchanged_until_s(self.plane), horizon_s)
                count = max(count, ceil(next_s / chosen.period_s - 1e-6) - 1)


class _Turn(simpy.Event):
    """Comes after ``delay_ns``; of what comes at that instant, the lower ``priority`` is first."""

    def __init__(self, clock: simpy.Environment, delay_ns: float, priority: int) -> None:
        super().__init__(clock)
        self._ok, self._value = True, None
        clock.schedule(self, EventPriority(priority), delay_ns)


def _ns(time_s: float) -> int:
    return round(time_s * 1e9)
