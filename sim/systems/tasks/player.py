"""A model of tasks on the event planes, with its counts since counting began."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...kernel.histogram import Histogram
from ...kernel.picoseconds import PS_PER_S
from ...machine.costs import CostModel
from ...planes.model_plane import Sums, SumsPlayer
from .models import Counts, Model

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TaskSums(Sums):
    """Of queries. ``counts``: all that the model has counted."""

    counts: Counts


class TasksPlayer(SumsPlayer[Model, TaskSums]):
    """Plays a model; ``core_node`` (C,): of the cores of workers."""

    def __init__(self, model: Model, costs: CostModel, core_node: Ints) -> None:
        self.core_node = core_node
        super().__init__(model, costs)

    def sums_now(self) -> TaskSums:
        counts = self.model.counts()
        return TaskSums(
            now_ps=self.model.now_ps,
            done=counts["answered"],
            latency_ps=counts["latency_ps"],
            lines=counts["lines_read"] + counts["lines_written"],
            memory_ps=counts["controller_ps"],
            link_ps=counts["link_ps"],
            core_ps=counts["core_ps"][: len(self.core_node)],
            counts=counts,
        )

    def histograms(self) -> tuple[Histogram, ...]:
        return self.model.latencies()

    @property
    def active_thread_s(self) -> Floats:
        """(n,) time that threads of each node ran tasks or looked for some."""
        looked_ps, core_ps = self.since("looked_ps"), self.now.core_ps - self.before.core_ps
        ran_ps = np.bincount(self.core_node, core_ps, len(looked_ps))
        return np.asarray((looked_ps + ran_ps) / PS_PER_S)

    def since(self, name: str) -> npt.NDArray[Any]:
        """What was counted of that name."""
        return np.asarray(self.now.counts[name] - self.before.counts[name])

    def check(self) -> None:
        super().check()
        counts = self.model.counts()
        made, done, waiting, running, _ = counts["classes"].sum(axis=0).tolist()
        if made != done + waiting + running:
            raise RuntimeError(f"of {made} tasks {made - done - waiting - running} were lost")
        if waiting != int(counts["waiting"].sum()) + counts["parts_waiting"]:
            raise RuntimeError("tasks wait in no queue")
