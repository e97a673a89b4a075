"""ERIS in a guest: its engine works there, and is watched and steered from here.

Its times mean nothing, so that there are none: operations are counted, in the region of the run
whose traffic is.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from ....inputs.progress import Progress
from ....sim.planes.outcome import Outcome
from ....sim.planes.plane import Experiment
from ...emulated.remote import EmulatedPlane, GuestProcess, RemoteEngine, counted
from .setup import ErisHost, as_totals, totals_of
from .steered import SteeredEris

SLICE_S = 4.0  # how often a waiting plane looks whether a worker failed
PAUSE_S = 0.2  # and whether all is done


class EmulatedEris(SteeredEris):
    """Runs the scenario in the guest, by the guest's clock; counts from ``warm_up_s`` on."""

    def __init__(
        self, process: GuestProcess, host: ErisHost, scenario: Experiment, warm_up_s: float
    ) -> None:
        super().__init__(host, scenario)
        self._process, self._warm_up_s = process, warm_up_s
        self._counting = False

    def advance(self, until_s: float) -> None:
        """Raises InputError where a worker failed."""
        if self._began_s is None:
            self._host.begin(self.scenario)
            self._began_s = self._engine.time_s
            self._watched = totals_of(self._engine)
        if not self._counting and until_s >= self._warm_up_s:
            self._wait(self._warm_up_s)
            self._pause()
            self._since = as_totals(counted("begin", self._engine, "totals"))
            self._engine.set_making(True)
            self._counting = True
        self._wait(until_s)
        self.time_s = until_s

    def _wait(self, until_s: float) -> None:
        assert self._began_s is not None
        while (left_s := until_s - (self._engine.time_s - self._began_s)) > 0:
            self._process.ask("sleep", min(left_s, SLICE_S))
            self._host.check()

    def _pause(self) -> None:
        """Until all that was made is done, so that what is counted is of whole operations alone:
        on a busy host, processors of the guest may stand still for long between two looks."""
        self._engine.set_making(False)
        while True:
            now = totals_of(self._engine)
            if now["made"].sum() == now["done"].sum():
                return
            self._process.ask("sleep", PAUSE_S)
            self._host.check()

    def outcome(self) -> Outcome:
        """Counting ends with it."""
        self._pause()
        now, before = as_totals(counted("end", self._engine, "totals")), self._since
        self._host.check()
        done = self.by_operation(now, "done")
        executed = {name: int(n) for name, n in self.by_operation(now, "executed").items()}
        flushes = int((now["flushes"] - before["flushes"]).sum())
        return Outcome(
            operations=done,
            events=tuple(self.events()),
            model={
                "engine": {
                    "workers": len(self._host.worker_nodes),
                    "commands_executed": executed,
                    "commands_per_flush": sum(executed.values()) / flushes if flushes else None,
                }
            },
            warnings=tuple(self._host.mapping.warnings),
            steps=int(sum(done.values())),
        )


@contextmanager
def emulated_eris(
    process: GuestProcess, warm_up_s: float, loading: Progress | None = None
) -> Iterator[EmulatedPlane]:
    """Makes the plane of a run in the guest; at the end the engine's workers are gone."""
    host: list[ErisHost] = []

    def make(experiment: Experiment) -> EmulatedEris:
        host.append(ErisHost(experiment, loading, RemoteEngine(process)))
        return EmulatedEris(process, host[-1], experiment, warm_up_s)

    yield make
    for one in host:
        one.engine.stop()  # checks that nothing was lost or done twice
