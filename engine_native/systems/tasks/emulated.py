"""Queries as tasks in a guest: the engine's workers there, under the policy of stealing here.

Its times mean nothing, so that there are none: queries are counted, whole ones alone, in the region
of the run whose traffic is.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ....inputs.progress import Progress
from ....sim.planes.outcome import Outcome
from ....sim.planes.plane import Command, Experiment, StartPhase
from ....sim.systems.tasks.commands import AllowStealing
from ...emulated.remote import EmulatedPlane, GuestProcess, RemoteEngine, counted
from .plane import NativeTasks, TasksHost

SLICE_S = 2.0  # how often a waiting plane looks whether a worker failed
PLACING_SLICE_S = 0.1  # and, with a placer, at what is in use and has arrived


class EmulatedTasks(NativeTasks):
    """Runs the scenario in the guest; counts from ``warm_up_s`` on, after a pause in which the
    clients have all their answers, until another one."""

    def __init__(
        self, process: GuestProcess, host: TasksHost, scenario: Experiment, warm_up_s: float
    ) -> None:
        self._process, self._warm_up_s, self._counting = process, warm_up_s, False
        self._begun: Sequence[Command] = ()
        super().__init__(host, scenario, replication=1)

    def advance(self, until_s: float) -> None:
        """Raises InputError where a worker failed."""
        if self._began_s is None:
            self._host.begin(self.scenario, 1)
            self._move_threads()
            self._began_s = time.monotonic()
        if not self._counting and until_s >= self._warm_up_s:
            self._wait(self._warm_up_s)
            self._host.stop()
            self._end_copies()
            self._began_s = time.monotonic() - self._warm_up_s
            self._since, self._moved_before = self._host.counts(), self._host.migrations()
            counted("begin", self._engine, "answered")
            self._host.begin(self.scenario, 1)
            super().apply(self._begun)
            self._counting = True
        self._wait(until_s)
        self.time_s = until_s

    def _called(self, name: str, *arguments: Any) -> Any:
        return self._process.ask("call", name, arguments)

    def _wait(self, until_s: float) -> None:
        assert self._began_s is not None
        while (left_s := self._began_s + until_s - time.monotonic()) > 0:
            slice_s = SLICE_S
            if self._placing is not None:
                slice_s = self._placing.attend(until_s - left_s)
            self._process.ask("sleep", min(left_s, max(slice_s, PLACING_SLICE_S)))
            self._host.check()

    def _end_copies(self) -> None:
        """Of parts that move; meanwhile the run's time stands still."""
        while self._placing is not None and self._placing.layout.copies:
            self._placing.attend(self._warm_up_s)
            self._process.ask("sleep", PLACING_SLICE_S)
            self._host.check()

    def apply(self, commands: Sequence[Command]) -> None:
        """As on this host; what may be stolen and is asked for holds after the pause, too."""
        super().apply(commands)
        begun = [one for one in commands if isinstance(one, AllowStealing | StartPhase)]
        self._begun = tuple({type(one): one for one in (*self._begun, *begun)}.values())

    def outcome(self) -> Outcome:
        """Counting ends with it, once all clients have their answers."""
        self._host.stop()
        counted("end", self._engine, "answered")
        more = self._host.counts().since(self._since)
        return Outcome(
            operations=dict(zip(self._names, more.answered[:, 0].tolist(), strict=True)),
            events=self._placed(),
            model={
                "tasks": self._by_class(more.done),
                "stolen": self._by_class(more.stolen),
                **self._moved(),
                "steals": more.steals.tolist(),  # by node of the thief, and home
            },
            warnings=tuple(self._warnings(0.0, float(more.answered[:, 0].sum()))),
            steps=int(more.done.sum()),
        )


@contextmanager
def emulated_tasks(
    process: GuestProcess, warm_up_s: float, loading: Progress | None = None
) -> Iterator[EmulatedPlane]:
    """Makes the plane of a run in the guest. ``loading`` is told nothing: tables come at once."""
    engine = RemoteEngine(process)
    yield lambda scenario: EmulatedTasks(process, TasksHost(scenario, engine), scenario, warm_up_s)
