"""The event plane of ERIS: every buffer, message and exchange of a descriptor, one replication."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...kernel.picoseconds import PS_PER_S
from ...machine.threads import Workers
from ...planes import model_plane
from ...planes.experiment import Experiment
from ...planes.model_plane import ModelPlane
from ...planes.outcome import ControlEvent
from ...planes.plane import Command, StartPhase
from .commands import BalancingObservation, Rebalance
from .costs import ErisCosts
from .cycles import Cycles
from .engine import Eris
from .parts import RECEIVE, SCAN, WALK
from .players import Counted, Player, RoutedPlayer, new_player, per_core

Floats = npt.NDArray[np.float64]

PlayerMaker = Callable[[Eris, ErisCosts, Experiment, int], Player]
"""From ERIS's state, costs, scenario and replication."""


class ErisEvents(ModelPlane[Player]):
    """Plays one replication; see ``plane.RandomPlane`` for what its methods promise."""

    def __init__(
        self, scenario: Experiment, replication: int, make: PlayerMaker = new_player
    ) -> None:
        costs, self.eris = ErisCosts(scenario.machine), Eris(scenario)
        player = make(self.eris, costs, scenario, replication)
        super().__init__(scenario, costs, self.eris.workers, player)
        self._cycles: Cycles | None = None
        if isinstance(self.player, RoutedPlayer):
            self._cycles = Cycles(self.eris, self.player, self._watch)
        self._watched: Counted = self.player.counted()
        self._watched_at_s = 0.0

    def attend(self) -> None:
        """Workers have met."""
        assert self._cycles is not None
        self._cycles.attend()

    # -- the control plane ------------------------------------------------------------------------

    def observe(self, family: str) -> BalancingObservation:
        self._watch()
        seen = self.eris.observe(family, self._time_s)
        return seen if self._cycles is None else self._cycles.seen(seen)

    def apply(self, commands: Sequence[Command]) -> None:
        for command in commands:
            if isinstance(command, StartPhase):
                self._watch()
                self.eris.phase = command.phase
                self.player.refresh()
            elif self._cycles is not None:
                assert isinstance(command, Rebalance)
                self._cycles.order(command)

    def _watch(self) -> None:
        """Reports to the monitor what workers did since the last report."""
        time_s = self.player.model.now_ps / PS_PER_S
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
            / PS_PER_S
            for name in (WALK, RECEIVE, SCAN)
        }
        self.eris.watch(commands, steps_s, length_s)

    def start_counting(self) -> None:
        self._watch()
        super().start_counting()
        self._watched = self.player.counted()

    # -- of ERIS's own, see ModelPlane ------------------------------------------------------------

    @property
    def workers(self) -> Workers:
        return self.eris.workers

    @property
    def events(self) -> Sequence[ControlEvent]:
        return self.eris.events

    def busy_ps(self, counted: model_plane.Counted) -> Floats:
        """Threads of one core may each have time left while their core has none."""
        assert isinstance(counted, Counted)
        executed_ps = counted.core_executed_ps * self.workers.on_cores
        return np.maximum(per_core(self.eris, counted.busy_ps), executed_ps)

    def facts(self, counted: model_plane.Counted) -> Mapping[str, Any]:
        return {**self.player.demands.facts, **counted.facts}

    def warnings(self) -> Sequence[str]:
        return self.eris.warnings()

    def check(self) -> None:
        super().check()
        self.eris.check_conservation()
