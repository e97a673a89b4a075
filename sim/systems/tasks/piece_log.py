"""The log of a run of tasks as flows: pieces of time with constant rates, added up."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....topologies import Machine
from ...kernel.arrays import Floats, Ints
from ...kernel.sums import group_sums
from ...machine.costs import CostModel
from ...machine.threads import Workers
from ...planes.availability import Look
from ...planes.flow_log import series_of
from ...planes.machine_use import MachineUse
from ...planes.outcome import Outcome
from .steady_rates import Rates


@dataclass
class _Piece:
    """A piece of time in which nothing changed."""

    time_s: float
    length_s: float
    rates: Rates
    allowed: Ints
    columns: dict[str, float]


class PieceLog:
    """Of runs with threads on the cores of ``placed`` that answer ``queries``.

    ``active``: how many cores of each node (n,) are, as energy counts it, while rates hold and so
    many workers of each node may run.
    """

    def __init__(
        self,
        machine: Machine,
        costs: CostModel,
        placed: Workers,
        queries: Sequence[str],
        *,
        active: Callable[[Rates, Ints], Floats],
    ) -> None:
        self.machine, self.costs, self.queries, self.active = machine, costs, queries, active
        self.core_node = placed.core_node
        self.use = MachineUse(machine, placed, costs)
        self._pieces: list[_Piece] = []

    def add(
        self, time_s: float, length_s: float, rates: Rates, allowed: Ints, columns: dict[str, float]
    ) -> None:
        """A piece in which these rates held, ``allowed`` (n,) workers might run, and ``columns``
        of the series were constant. Pieces in which nothing changed are one.
        """
        if self._pieces and (last := self._pieces[-1]).rates is rates and last.columns == columns:
            last.length_s += length_s
        else:
            self._pieces.append(_Piece(time_s, length_s, rates, allowed, columns))

    def looks(self) -> list[Look]:
        """Queries that were done by the end of each piece."""
        done, found = 0.0, [Look(0.0, 0.0)]
        for piece in self._pieces:
            done += float(piece.rates.queries.sum()) * piece.length_s
            found.append(Look(piece.time_s + piece.length_s, done))
        return found

    def _count(self, piece: _Piece) -> None:
        """Adds what was done in a piece."""
        rates, length_s = piece.rates, piece.length_s
        n, served = len(self.machine.nodes), rates.served
        on = group_sums(rates.node, rates.running, n)
        held = group_sums(rates.node, rates.running * served.held[: len(rates.node)], n)
        cores = np.maximum(np.bincount(self.core_node, minlength=n), 1)
        busy = np.minimum(on / cores, 1.0)[self.core_node]
        misses = np.minimum(held / cores, 1.0)[self.core_node]
        self._use.append(self.use.row(busy, misses, served.memory_use, served.link_use))
        self._memory_bytes += served.memory_Bps * length_s
        self._link_bytes += served.link_Bps * length_s
        self._pair_bytes += served.pair_Bps * length_s
        self._done += rates.queries * length_s
        self._response_s += rates.queries * rates.response_s * length_s
        self._active += np.minimum(self.active(rates, piece.allowed), cores) * length_s
        done, stolen = rates.running / rates.task_s, rates.stolen
        any_stolen = rates.by_class(stolen.astype(np.float64))
        taken = {name: x for name, x in rates.by_class(done * stolen).items() if any_stolen[name]}
        for sums, found in ((self._tasks, rates.by_class(done)), (self._stolen, taken)):
            for name, per_s in found.items():
                sums[name] = sums.get(name, 0.0) + per_s * length_s
        self._taken.append(taken)

    def _sum_up(self) -> None:
        n = len(self.machine.nodes)
        self._use: list[Floats] = []
        self._memory_bytes, self._link_bytes = np.zeros(n), np.zeros(len(self.costs.link_Bps))
        self._pair_bytes = np.zeros((n, n))
        self._response_s = np.zeros(len(self.queries))
        self._done = np.zeros(len(self.queries))
        self._active = np.zeros(n)
        self._tasks: dict[str, float] = {}
        self._stolen: dict[str, float] = {}
        self._taken: list[dict[str, float]] = []  # of each piece, per second
        for piece in self._pieces:
            self._count(piece)

    @property
    def falls_behind(self) -> bool:
        """Whether open clients' queries wait ever longer, at least for a while."""
        return any(np.isinf(piece.rates.response_s).any() for piece in self._pieces)

    def outcome(self, model: Mapping[str, Any], **others: Any) -> Outcome:
        """All pieces together, with what else is known."""
        self._sum_up()
        length, use = np.array([piece.length_s for piece in self._pieces]), np.array(self._use)
        total_s, latency = float(length.sum()), {}
        for k, name in enumerate(self.queries):
            mean_s = self._response_s[k] / self._done[k] if self._done[k] > 0 else np.inf
            mean_ns = mean_s * 1e9 if np.isfinite(mean_s) else None
            latency[name] = {"mean": mean_ns, "p50": None, "p99": None, "p999": None}
        traffic = self._pair_bytes / total_s
        began = np.array([piece.time_s for piece in self._pieces])
        rates = np.array([piece.rates.queries for piece in self._pieces])
        each, columns = dict(zip(self.queries, rates.T, strict=True)), []
        for piece, taken in zip(self._pieces, self._taken, strict=True):
            stolen = {f"stolen/{name}": taken.get(name, 0.0) for name in self._stolen}
            columns.append({**piece.columns, **stolen})
        return self.use.outcome(
            dict(zip(self.queries, self._done.tolist(), strict=True)),
            total_s,
            length @ use / total_s,
            (self._memory_bytes, self._link_bytes),
            self._active / total_s,
            self._pair_bytes,
            latency_ns=latency,
            model={
                **model,
                "tasks": {name: round(count, 3) for name, count in self._tasks.items()},
                "stolen": {name: round(count, 3) for name, count in self._stolen.items()},
                "traffic_Bps": traffic.tolist(),
                "interconnect_ratio": interconnect_ratio(traffic),
            },
            series=series_of((began, length), each, self.use, use, columns),
            steps=len(length),
            **others,
        )


def interconnect_ratio(traffic_Bps: Floats) -> float:
    """Of ``traffic_Bps`` (n, n), what nodes read and write of others' memory, by all of it."""
    total = float(traffic_Bps.sum())
    return float(traffic_Bps.sum() - np.trace(traffic_Bps)) / total if total > 0 else 0.0
