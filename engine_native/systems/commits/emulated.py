"""Commits in a guest: each client and server a thread on its node, and memory between them.

Verbs are loads, stores and compare-and-swaps of the server's memory, messages go through memory
too: what the network carried crosses the guest's nodes. Times mean nothing there, so that there are
none: transactions are counted, in the region of the run whose traffic is.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from ....inputs import InputError
from ....inputs.progress import Progress
from ....sim.planes.outcome import Outcome
from ....sim.planes.plane import Experiment, Unsteered
from ....sim.systems.commits.servers import faults
from ....sim.systems.commits.spec import CommitSystem
from ..._engine import CommitBoard
from ...emulated.remote import EmulatedPlane, GuestProcess, RemoteEngine, counted
from ...transports import THREADS
from .cluster import make_run
from .counted import Counted, engine_facts
from .setup import commit_plan

SLICE_S = 1.0  # how often a waiting plane looks whether a role failed


class EmulatedCommits(Unsteered):
    """Runs the scenario in the guest, by the guest's clock; counts from ``warm_up_s`` on."""

    def __init__(self, process: GuestProcess, scenario: Experiment, warm_up_s: float) -> None:
        system = scenario.system
        assert isinstance(system, CommitSystem)
        self.scenario, self.system = scenario, system
        engine: Any = RemoteEngine(process)
        self.plan = commit_plan(scenario, 1, THREADS, engine.host_facts())
        self.operation, _ = system.transaction(scenario.workload)
        self._process, self._warm_up_s = process, warm_up_s
        self._cluster: Any = engine.ThreadCommits(make_run(self.plan.settings, engine.CommitRun))
        self._board: Any = self._cluster.held("board", CommitBoard)
        self._before: Mapping[str, Any] | None = None
        self._started = False
        self.time_s = 0.0

    def advance(self, until_s: float) -> None:
        """Raises InputError where a role failed."""
        if not self._started:
            try:
                self._cluster.start()
            except RuntimeError as failure:
                raise InputError(str(failure)) from None
            self._started = True
        if self._before is None and until_s >= self._warm_up_s:
            self._wait(self._warm_up_s)
            self._before = counted("begin", self._board, "counts")
        self._wait(until_s)
        self.time_s = until_s

    def _wait(self, until_s: float) -> None:
        while (left_s := until_s - self._board.now_ns * 1e-9) > 0:
            self._process.ask("sleep", min(left_s, SLICE_S))
            if failure := self._board.failure:
                raise InputError(f"the run in the guest failed: {failure}")

    def outcome(self) -> Outcome:
        """Counting ends with it, and so does the run.

        Of transactions that begin or end outside of the region a part is counted: at most one for
        each client.
        """
        assert self._before is not None
        after = counted("end", self._board, "counts")
        self._cluster.stop()
        if failure := self._board.failure:
            raise InputError(f"the run in the guest failed: {failure}")
        none = np.zeros(self.plan.roles, dtype=np.int64)
        done, before = (
            Counted.of(found, time_s=0.0, ran_ns=none, waited_ns=none)
            for found in (after, self._before)
        )
        done = done.since(before)
        warnings = list(self.plan.notes)
        if not done.commits:
            warnings.append("no transaction committed while it was counted")
        return Outcome(
            operations={self.operation: float(done.commits)},
            events=tuple(faults(self.system, self.time_s)),
            model={self.operation: engine_facts(self.scenario, self.plan, done)},
            warnings=tuple(warnings),
            steps=done.commits + int(done.aborts.sum()),
        )


@contextmanager
def emulated_commits(
    process: GuestProcess, warm_up_s: float, loading: Progress | None = None
) -> Iterator[EmulatedPlane]:
    """Makes the plane of a run in the guest, which ends the run. ``loading`` is told nothing."""
    yield lambda scenario: EmulatedCommits(process, scenario, warm_up_s)
