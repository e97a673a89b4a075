"""The event plane of ERIS: every buffer, message and exchange of a descriptor, one replication."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ....inputs import InputError
from ...planes.experiment import Experiment
from ...planes.machine_use import MachineUse
from ...planes.outcome import Outcome, ResourceUse, Why
from ...planes.plane import Command, StartPhase
from .commands import Observation, Rebalance
from .costs import ErisCosts
from .cycles import Cycles
from .engine import Eris
from .parts import RECEIVE, SCAN, WALK
from .players import Counted, Player, RoutedPlayer, new_player, per_core

Floats = npt.NDArray[np.float64]

PS = 1e12

# Of a machine with more links the series do not tell each one's use.
LINKS_IN_SERIES = 256


PlayerMaker = Callable[[Eris, ErisCosts, Experiment, int], Player]
"""From ERIS's state, costs, scenario and replication."""


class ErisEvents:
    """Plays one replication; see ``plane.RandomPlane`` for what its methods promise."""

    def __init__(
        self, scenario: Experiment, replication: int, make: PlayerMaker = new_player
    ) -> None:
        self.machine, self.workload = scenario.machine, scenario.workload
        self.operations = tuple(self.workload.operations)
        self.costs = ErisCosts(self.machine)
        self.eris = Eris(scenario)
        self.player = make(self.eris, self.costs, scenario, replication)
        self.use = MachineUse(self.machine, self.eris.workers, self.costs)
        self._cycles: Cycles | None = None
        if isinstance(self.player, RoutedPlayer):
            self._cycles = Cycles(self.eris, self.player, self._watch)
        self._time_s = 0.0
        self._watched: Counted = self.player.counted()
        self._watched_at_s = 0.0

    @property
    def time_s(self) -> float:
        """The time reached."""
        return self._time_s

    def advance(self, until_s: float) -> None:
        """See Plane."""
        until_ps = round(until_s * PS)
        while not self.player.run(until_ps):
            assert self._cycles is not None
            self._cycles.attend()
        self._time_s = until_s

    # -- the control plane ------------------------------------------------------------------------

    def observe(self, family: str) -> Observation:
        """See Plane."""
        self._watch()
        seen = self.eris.observe(family, self._time_s)
        return seen if self._cycles is None else self._cycles.seen(seen)

    def apply(self, commands: Sequence[Command]) -> None:
        """See Plane."""
        for command in commands:
            if isinstance(command, StartPhase):
                self._watch()
                self.eris.phase = command.phase
                self.player.refresh()
            elif self._cycles is not None:
                assert isinstance(command, Rebalance)
                self._cycles.order(command)

    def _watch(self) -> None:
        """Tells the monitor what workers did since it was last told."""
        time_s = self.player.now_ps / PS
        now, before = self.player.counted(), self._watched
        self._watched = now
        length_s, self._watched_at_s = time_s - self._watched_at_s, time_s
        if not len(now.executed) or length_s <= 0:
            return
        executed = now.executed - before.executed
        commands: dict[str, Floats] = {}
        for operation, of_workers in zip(
            self.eris.phase.operations.values(), executed, strict=True
        ):
            sums = commands.setdefault(operation.object, np.zeros(self.eris.workers.count))
            sums += of_workers
        none = np.zeros(self.eris.workers.count, dtype=np.int64)
        steps_s = {
            name: per_core(
                self.eris, now.steps_ps.get(name, none) - before.steps_ps.get(name, none)
            )
            / PS
            for name in (WALK, RECEIVE, SCAN)
        }
        self.eris.watch(commands, steps_s, length_s)

    # -- counting ---------------------------------------------------------------------------------

    def start_counting(self) -> None:
        """See RandomPlane."""
        self._watch()
        self.player.start_counting()
        self._watched = self.player.counted()

    def totals(self) -> Mapping[str, float]:
        """See RandomPlane."""
        counted = self.player.counted()
        found = {}
        for name, done, latencies in zip(
            self.operations, counted.done.tolist(), counted.latencies, strict=True
        ):
            found[f"throughput/{name}"] = float(done)
            found[f"under_way/{name}"] = latencies.total * 1e-9
        row = self._row(counted)
        names = self.use.names
        if len(counted.link_ps) > LINKS_IN_SERIES:
            names = names[: len(names) - len(counted.link_ps)]
        for name, busy_s in zip(names, row.tolist(), strict=False):
            found[f"utilisation/{name}"] = busy_s
        return found

    def _row(self, counted: Counted) -> Floats:
        """Seconds of use of each resource."""
        busy = per_core(self.eris, counted.busy_ps) / self.eris.workers.on_cores
        parts = (busy, counted.held_ps, counted.memory_ps, counted.link_ps)
        return self.use.row(*(part / PS for part in parts))

    def outcome(self) -> Outcome:
        """See Plane."""
        self.player.check()
        self.eris.check_conservation()
        counted = self.player.counted()
        total_s = self._time_s - counted.since_ps / PS
        if total_s <= 0:
            raise InputError("nothing was counted", expected="a horizon after the warm-up")
        memory_Bps, link_Bps = counted.memory_bytes / total_s, counted.link_bytes / total_s
        use = np.minimum(self._row(counted) / total_s, 1.0)
        uses = self.use.resource_uses(use, memory_Bps, link_Bps)
        done = dict(zip(self.operations, counted.done.tolist(), strict=True))
        known = bool(self.machine.links) or len(self.machine.nodes) == 1
        warnings = dict.fromkeys([*self.costs.warnings, *self.eris.warnings()])
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
                self.eris.workers.active_cores(len(self.machine.nodes)).astype(np.float64),
                memory_Bps,
                link_Bps,
                total_s,
            ),
            events=tuple(self.eris.events),
            model={**self.player.demands.facts, **counted.facts},
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
        words = {"cores": "time of the workers", "misses": "outstanding misses of the cores"}
        found = words.get(busiest.kind, busiest.name)
        return {name: Why(found, (), demands) for name in self.operations}
