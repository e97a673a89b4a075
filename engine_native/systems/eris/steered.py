"""ERIS as the control plane sees it, wherever its engine runs: observations and commands."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ....sim.kernel.arrays import Floats
from ....sim.planes.outcome import ControlEvent
from ....sim.planes.plane import Command, Experiment, StartPhase
from ....sim.systems.eris.commands import BalancingObservation, ObjectObservation
from .setup import ErisHost, phase_setup, totals_of


class SteeredEris:
    """A replication on an engine; what it did since it was last watched."""

    def __init__(self, host: ErisHost, scenario: Experiment) -> None:
        self.scenario, self._host, self._engine = scenario, host, host.engine
        self.operations = tuple(scenario.workload.operations)
        self.objects = tuple(scenario.workload.objects)
        self.phase = scenario.workload.at(0.0)
        self._began_s: float | None = None
        self.time_s = 0.0
        self._cycles_before = len(self._engine.cycles())
        self._since = self._watched = totals_of(self._engine)

    def observe(self, family: str) -> BalancingObservation:
        now, before = totals_of(self._engine), self._watched
        self._watched = now
        period_s = now["time_s"] - before["time_s"]
        objects = {}
        if self._host.partitioned:
            objects = {
                name: self._observed(k, now, before, period_s)
                for k, name in enumerate(self.objects)
            }
        return BalancingObservation(self.time_s, period_s, objects)

    def _observed(
        self, k: int, now: Mapping[str, Any], before: Mapping[str, Any], period_s: float
    ) -> ObjectObservation:
        def more(name: str) -> Floats:
            return np.asarray(now[name][k] - before[name][k], dtype=np.float64)

        bounds, executed = self._engine.bounds(k), more("object_executed")
        return ObjectObservation(
            kind="index" if bounds else "column",
            bounds=np.array(bounds, dtype=np.int64) if bounds else None,
            sizes=now["object_entries"][k].astype(np.float64),
            accesses_per_s=executed / max(period_s, 1e-9),
            execution_s=np.divide(
                more("object_execution_ns") * 1e-9,
                executed,
                out=np.zeros_like(executed),
                where=executed > 0,
            ),
            nodes=self._host.worker_nodes.copy(),
            balancing=self._engine.balancing(k),
        )

    def by_operation(self, now: Mapping[str, Any], name: str) -> dict[str, float]:
        """How far a total of each operation has gone since counting began."""
        before: Mapping[str, Any] = self._since
        more = (now[name] - before[name]).sum(axis=1)
        return dict(zip(self.operations, map(float, more), strict=True))

    def apply(self, commands: Sequence[Command]) -> None:
        for command in commands:
            if isinstance(command, StartPhase):
                self.phase = command.phase
                self._engine.set_phase(*phase_setup(command.phase, self.time_s, self._host.module))
                continue
            k = self.objects.index(command.object)
            if command.bounds is not None:
                self._engine.rebalance(k, command.bounds.tolist())
            else:
                assert command.sizes is not None
                held = totals_of(self._engine)["object_entries"][k]
                self._engine.rebalance(k, whole_sizes(command.sizes, int(held.sum())))

    def events(self) -> Iterator[ControlEvent]:
        """Balancing cycles: what they moved, and when they were over."""
        began_s = self._began_s or 0.0
        for cycle in self._engine.cycles()[self._cycles_before :]:
            name, at_s = self.objects[cycle.object], cycle.began_s - began_s
            if not 0.0 <= at_s <= self.time_s:
                continue
            details = {
                "object": name,
                "links": cycle.links,
                "copies": cycle.copies,
                "copied_bytes": cycle.copied_bytes,
            }
            text = f"{name}: {cycle.links} links, {cycle.copies} copies"
            yield ControlEvent(at_s, "transfer", text, details)
            if cycle.ended_s - began_s <= self.time_s:
                lasted_s = cycle.ended_s - cycle.began_s
                yield ControlEvent(
                    cycle.ended_s - began_s,
                    "done",
                    f"balancing of {name} done after {lasted_s:.3g} s",
                    {"object": name, "duration_s": lasted_s, "copied_bytes": cycle.copied_bytes},
                )


def whole_sizes(sizes: Floats, total: int) -> list[int]:
    """Whole numbers near ``sizes`` that sum to ``total``."""
    edges = np.rint(np.cumsum(sizes) * (total / max(float(sizes.sum()), 1e-300)))
    edges[-1] = total
    return [int(size) for size in np.diff(np.concatenate([[0.0], edges]))]
