"""A model of tasks on the event planes, with its counts since counting began."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...kernel.histogram import Histogram
from ...machine.costs import CostModel
from ...planes.model_plane import Sums, SumsPlayer
from .models import Model
from .parameters import PS_PER_S

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TaskSums(Sums):
    """Of queries. ``looked_ps`` (n,): time in which idle workers looked for work."""

    looked_ps: Floats


class TasksPlayer(SumsPlayer[Model, TaskSums]):
    """Plays a model; ``core_node`` (C,): of the cores of workers."""

    def __init__(self, model: Model, costs: CostModel, queries: int, core_node: Ints) -> None:
        self.queries, self.core_node = queries, core_node
        super().__init__(model, costs)

    def sums_now(self) -> TaskSums:
        used = self.model.service_use()
        return TaskSums(
            now_ps=self.model.now_ps,
            done=self.model.answered(),
            latency_ps=self.model.latency_totals_ps(),
            lines=used.lines_read + used.lines_written,
            memory_ps=used.controller_ps,
            link_ps=used.link_ps,
            core_ps=used.core_ps[: len(self.core_node)],
            looked_ps=self.model.looked_ps().astype(np.float64),
        )

    def histograms(self) -> tuple[Histogram, ...]:
        return tuple(self.model.latencies(query) for query in range(self.queries))

    @property
    def active_thread_s(self) -> Floats:
        """(n,) time that threads of each node ran tasks or looked for some."""
        before, now = self.before, self.sums_now()
        looked_ps, core_ps = now.looked_ps - before.looked_ps, now.core_ps - before.core_ps
        ran_ps = np.bincount(self.core_node, core_ps, len(looked_ps))
        return np.asarray((looked_ps + ran_ps) / PS_PER_S)

    def check(self) -> None:
        super().check()
        made, done, waiting, running, _ = self.model.class_counts().sum(axis=0).tolist()
        if made != done + waiting + running:
            raise RuntimeError(f"of {made} tasks {made - done - waiting - running} were lost")
        if waiting != int(self.model.waiting().sum()) + self.model.parts_waiting:
            raise RuntimeError("tasks wait in no queue")
