"""The event plane of ERIS: every buffer, message and exchange of a descriptor, one replication.

Balancing cycles of the event plane: participants, linked and copied parts, changes of owner.

A command of the policy is carried out once all workers concerned have met (the barrier of the
routing table's update), so that ranges never overlap. What is linked has its new owner then; what
is copied has it as far as it was rebuilt there.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._kernel import ErisTransfer
from ...kernel.arrays import Floats, Ints
from ...kernel.histogram import merged
from ...kernel.picoseconds import PS_PER_S
from ...machine.threads import Workers
from ...planes import model_plane
from ...planes.availability import Look, Looks
from ...planes.model_plane import ModelPlane
from ...planes.outcome import ControlEvent
from ...planes.plane import Command, Experiment, StartPhase
from .commands import BalancingObservation, Rebalance, SetPace
from .costs import ErisCosts
from .engine import Eris
from .partitions import ColumnPartitions, IndexPartitions
from .parts import RECEIVE, SCAN, WALK
from .players import Counted, Player, RoutedPlayer, new_player, per_core

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
        self._forgotten = Look(0.0, 0.0)  # what was done before counting began
        failing = [change.event for change in scenario.system.changes(self.machine)]
        self._looks = Looks(failing, scenario.horizon_s, self._look)

    def advance(self, until_s: float) -> None:
        """What is done is looked at on the way where something fails."""
        self._looks.advance(until_s, super().advance)

    def _look(self, time_s: float) -> Look:
        """All that is done by then, and how long it took."""
        counted, before = self.player.counted(), self._forgotten
        latencies = [*counted.latencies, *filter(None, [before.latencies_ns])]
        return Look(time_s, before.done + float(counted.done.sum()), merged(latencies))

    def attend(self) -> None:
        """Workers have met."""
        assert self._cycles is not None
        self._cycles.attend()

    def observe(self, family: str) -> BalancingObservation:
        self._watch()
        seen = self.eris.observe(family, self.time_s)
        return seen if self._cycles is None else self._cycles.seen(seen)

    def apply(self, commands: Sequence[Command]) -> None:
        for command in commands:
            if isinstance(command, StartPhase):
                self._watch()
                self.eris.phase = command.phase
                self.player.refresh()
            elif isinstance(command, SetPace):
                self.player.model.pace(command.workers, command.factor)
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
        self._forgotten = self._look(self.time_s)
        super().start_counting()
        self._watched = self.player.counted()

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
        found = {**self.player.demands.facts, **counted.facts}
        cost = self._looks.cost(self.time_s)
        return found | ({"operations": cost} if cost else {})

    def warnings(self) -> Sequence[str]:
        return self.eris.warnings()

    def check(self) -> None:
        super().check()
        self.eris.check_conservation()


# Keys or entries of one message, and how often, in a cycle, ownership and demands are renewed.
CHUNK_BYTES, RENEWALS = 256 * 1024, 12


@dataclass
class _Copies:
    """The copies of one object's cycle: ``first``, the kernel's number of the first one; ``on``,
    their positions among the object's transfers; ``moved``, what was handed to ERIS's state.
    """

    name: str
    first: int
    on: Ints
    moved: Floats


class Cycles:
    """Carries out what policies order; ``watch`` tells the monitor what was done until now."""

    def __init__(self, eris: Eris, player: RoutedPlayer, watch: Callable[[], None]) -> None:
        self.eris, self.player, self.watch = eris, player, watch
        self._ordered: deque[Rebalance] = deque()
        self._copies: list[_Copies] = []
        self._begun = 0  # transfers that the kernel knows

    def order(self, command: Rebalance) -> None:
        """Begins as soon as those before it have met."""
        self._ordered.append(command)
        if len(self._ordered) == 1:
            self._call()

    def seen(self, observation: BalancingObservation) -> BalancingObservation:
        """The observation, where objects whose workers are yet to meet are being balanced too."""
        waiting = {command.object for command in self._ordered}
        objects = {
            name: replace(one, balancing=True) if name in waiting else one
            for name, one in observation.objects.items()
        }
        return replace(observation, objects=objects)

    def attend(self) -> None:
        """The model has halted: workers have met, or copies have come on."""
        if self.player.model.gathered:
            self._begin(self._ordered.popleft())
            if self._ordered:
                self._call()
        else:
            self._renew()

    def _call(self) -> None:
        """Calls the workers whose partition changes."""
        command = self._ordered[0]
        part = self.eris.partitions[command.object]
        if isinstance(part, IndexPartitions):
            assert command.bounds is not None
            changed = (part.bounds[:-1] != command.bounds[:-1]) | (
                part.bounds[1:] != command.bounds[1:]
            )
        else:
            assert command.sizes is not None
            changed = part.sizes() != command.sizes
        concerned = np.flatnonzero(changed)
        # A command that changes nothing is executed anyway: at least one worker takes part.
        self.player.model.call((concerned if len(concerned) else np.zeros(1, int)).tolist())

    def _begin(self, command: Rebalance) -> None:
        eris, player, name = self.eris, self.player, command.object
        self.watch()
        part = eris.partitions[name]
        before = part.transfers
        eris.apply(command, player.demands, player.time_s)
        transfers = part.transfers
        link_ps = np.zeros(eris.workers.count)
        if transfers is not before and len(transfers.volume):
            linked = ~transfers.under_way
            if isinstance(part, IndexPartitions):
                per_link = (
                    player.demands.link_instructions(name) / player.demands.worker_rate * PS_PER_S
                )
                for end in (transfers.source[linked], transfers.target[linked]):
                    np.add.at(link_ps, end, per_link[end])
            ranges = _ranges(part, np.zeros(len(transfers.volume)), transfers.moved)
            player.moved({name: ranges})
            self._copy(name)
        player.model.dismiss(np.rint(link_ps).astype(np.int64).tolist())

    def _copy(self, name: str) -> None:
        """Hands the copies of an object to the kernel."""
        player, part = self.player, self.eris.partitions[name]
        t = part.transfers
        on = np.flatnonzero(t.under_way)
        if not len(on):
            return
        demand = player.demands.transfer(name, t.source[on], t.target[on])
        costs = player.demands.costs
        unit_bytes = player.demands.transfer_bytes(name)
        chunk = max(CHUNK_BYTES // unit_bytes, 1.0)
        started, node = [], self.eris.workers.node
        for k, at in enumerate(on.tolist()):
            source, target = int(t.source[at]), int(t.target[at])
            ends = demand.target_home[k], demand.source_home[k]
            one = ErisTransfer(
                source=source,
                target=target,
                volume=float(t.volume[at]),
                chunk=float(chunk),
                source_ps=demand.source_s[k] * PS_PER_S,
                target_ps=demand.target_s[k] * PS_PER_S,
                source_lines=demand.source_lines[k],
                lines=demand.lines[k],
                written_lines=demand.written_lines[k],
                source_slots=costs.streaming_misses[node[source]],
                target_slots=costs.streaming_misses[node[target]],
                across_ps=costs.idle_s[ends] * PS_PER_S,
            )
            started.append(one)
        player.model.begin(started)
        self._copies.append(_Copies(name, self._begun, on, np.zeros(len(on))))
        self._begun += len(on)
        player.model.halt_after(float(t.volume[on].sum()) / RENEWALS)

    def _renew(self) -> None:
        """Gives what was rebuilt to its new owners, and ends the cycles that are done."""
        eris, player = self.eris, self.player
        self.watch()
        rebuilt = player.model.rebuilt
        ranges: dict[str, list[tuple[int, int, float, float]]] = {}
        amounts = []
        # In the order in which ERIS's state lists objects.
        order = list(eris.partitions)
        for copies in sorted(self._copies, key=lambda one: order.index(one.name)):
            part = eris.partitions[copies.name]
            t = part.transfers
            now = rebuilt[copies.first : copies.first + len(copies.on)]
            before = t.moved.copy()
            after = t.moved.copy()
            after[copies.on] = np.where(
                now >= t.volume[copies.on] * (1 - 1e-9), t.volume[copies.on], now
            )
            ranges[copies.name] = _ranges(part, before, after)
            running = np.flatnonzero(t.under_way)
            amounts.append((after - before)[running])
        eris.moved(np.concatenate(amounts), player.time_s)
        player.moved(ranges)
        self._copies = [one for one in self._copies if eris.partitions[one.name].balancing]
        if not self._copies:
            player.model.begin([])
            self._begun = 0


def _ranges(
    part: IndexPartitions | ColumnPartitions, before: Floats, after: Floats
) -> list[tuple[int, int, float, float]]:
    """Keys that changed hands as transfers went from ``before`` to ``after`` (T,) moved."""
    if isinstance(part, ColumnPartitions):
        return []
    first, end = part.moved_ranges(before, after)
    t = part.transfers
    return [
        (int(t.source[k]), int(t.target[k]), float(first[k]), float(end[k]))
        for k in np.flatnonzero(after > before)
    ]
