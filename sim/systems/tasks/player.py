"""A model of tasks on the event planes, with its counts since counting began."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ...kernel.histogram import Histogram
from ...machine.costs import LINE_BYTES, CostModel
from ...planes.model_plane import Counted, OfModel
from .models import Model
from .parameters import PS_PER_S

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# Rounding of sums of a run, far below a line.
SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class _Sums:
    """What had been counted at a time."""

    now_ps: int
    lines: Floats
    memory_ps: Floats
    link_ps: Floats
    core_ps: Floats
    looked_ps: Floats
    answered: Ints
    latency_ps: Floats


class TasksPlayer(OfModel[Model]):
    """See ``model_plane.Player``; ``core_node`` (C,): of the cores of workers."""

    def __init__(self, model: Model, costs: CostModel, queries: int, core_node: Ints) -> None:
        super().__init__(model)
        self.costs, self.queries = costs, queries
        self.core_node, self.cores = core_node, len(core_node)
        self._before, self._latencies = self._sums(), self._histograms()

    def _sums(self) -> _Sums:
        used = self.model.service_use()
        return _Sums(
            self.model.now_ps,
            used.lines_read + used.lines_written,
            used.controller_ps,
            used.link_ps,
            used.core_ps[: self.cores],
            self.model.looked_ps().astype(np.float64),
            self.model.answered(),
            self.model.latency_totals_ps(),
        )

    def _histograms(self) -> tuple[Histogram, ...]:
        return tuple(self.model.latencies(query) for query in range(self.queries))

    def start_counting(self) -> None:
        """See Player."""
        self._before, self._latencies = self._sums(), self._histograms()

    def counted(self) -> Counted:
        """See Player; slots of misses are not counted."""
        return replace(
            self.sums()[0],
            latencies=tuple(map(Histogram.since, self._histograms(), self._latencies)),
        )

    def sums(self) -> tuple[Counted, Floats]:
        """What was counted without its histograms, which take longer than all else where there are
        hundreds of queries; (Q,) sums of latencies in ns.
        """
        before, now = self._before, self._sums()
        link_ps = now.link_ps - before.link_ps
        counted = Counted(
            since_ps=before.now_ps,
            done=(now.answered - before.answered).astype(np.float64),
            busy_ps=(now.core_ps - before.core_ps).astype(np.int64),
            held_ps=np.zeros(self.cores),
            memory_ps=np.rint(now.memory_ps - before.memory_ps).astype(np.int64),
            memory_bytes=(now.lines - before.lines) * LINE_BYTES,
            link_ps=np.rint(link_ps).astype(np.int64),
            link_bytes=link_ps / PS_PER_S * self.costs.link_Bps,
            latencies=(),
        )
        return counted, (now.latency_ps - before.latency_ps) / 1e3

    @property
    def active_thread_s(self) -> Floats:
        """(n,) time that threads of each node ran tasks or looked for some."""
        before, now = self._before, self._sums()
        looked_ps, core_ps = now.looked_ps - before.looked_ps, now.core_ps - before.core_ps
        ran_ps = np.bincount(self.core_node, core_ps, len(looked_ps))
        return np.asarray((looked_ps + ran_ps) / PS_PER_S)

    def check(self) -> None:
        """See Player."""
        made, done, waiting, running, _ = self.model.class_counts().sum(axis=0).tolist()
        if made != done + waiting + running:
            raise RuntimeError(f"of {made} tasks {made - done - waiting - running} were lost")
        if waiting != int(self.model.waiting().sum()) + self.model.parts_waiting:
            raise RuntimeError("tasks wait in no queue")
        now = self.model.service_use()
        most = self.model.now_ps * (1.0 + SLACK) + 1.0
        if (now.controller_ps > most).any() or (now.link_ps > most).any():
            raise RuntimeError("a controller or a link did more than time allows")
