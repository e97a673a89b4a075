"""The log of a run of the flow plane: its intervals of constant rates, summed for the Record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...topologies.machine import Machine
from ..machine.costs import CostModel
from ..machine.threads import Workers
from .machine_use import MachineUse
from .outcome import ControlEvent, Outcome, Series, Why
from .rates import Rates
from .resources import Resources
from .transfer_uses import transfer_uses

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def time_average(length_s: Floats, rows: Ints) -> Floats:
    """(n,) mean of ``rows`` (T, n), each of which held for its ``length_s`` (T,); exact where all
    are equal."""
    first: Floats = rows[0].astype(np.float64)
    if (rows == rows[0]).all():
        return first
    return np.asarray(length_s @ rows / length_s.sum())


class FlowLog:
    """Pieces of time, one row each."""

    def __init__(
        self, machine: Machine, resources: Resources, workers: Workers, costs: CostModel
    ) -> None:
        self.machine, self.resources, self.costs = machine, resources, costs
        self._start: list[float] = []
        self._length: list[float] = []
        self._throughput: list[dict[str, float]] = []
        self._columns: list[Mapping[str, float]] = []
        self._use: list[Floats] = []
        self._active: list[Ints] = []
        self._memory_bytes = np.zeros(len(machine.nodes))
        self._link_bytes = np.zeros(len(costs.link_Bps))
        self._pairs = np.zeros((len(machine.nodes),) * 2)
        self._machine_use = MachineUse(machine, workers, costs)

    def add(
        self,
        time_s: float,
        length_s: float,
        throughput: dict[str, float],
        rates: Rates,
        columns: Mapping[str, float],
        workers: Workers,
    ) -> None:
        """A piece in which ``throughput`` (per second), the system's ``columns``, where ``workers``
        were and the rest were constant.
        """
        self._active.append(workers.active_cores(len(self.machine.nodes)))
        self._start.append(time_s)
        self._length.append(length_s)
        self._throughput.append(throughput)
        self._columns.append(columns)
        r = self.resources
        # Threads of one core may each have time left while their core has none.
        cores = np.maximum(rates.use[r.workers], rates.use[r.cores])
        self._use.append(
            self._machine_use.row(
                cores, *(rates.use[part] for part in (r.misses, r.memory, r.links))
            )
        )
        self._memory_bytes += rates.memory_Bps * length_s
        self._link_bytes += rates.link_Bps * length_s
        if len(rates.pair_Bps):
            self._pairs += rates.pair_Bps * length_s

    def outcome(
        self,
        why: Mapping[str, Why],
        events: Sequence[ControlEvent],
        model: Mapping[str, Any],
        warnings: tuple[str, ...],
    ) -> Outcome:
        """All pieces together, with what else is known."""
        length = np.array(self._length)
        total_s = float(length.sum())
        use = np.array(self._use)
        mean_use = length @ use / total_s
        done = {
            name: float(length @ [row[name] for row in self._throughput])
            for name in self._throughput[0]
        }
        memory_Bps, link_Bps = self._memory_bytes / total_s, self._link_bytes / total_s
        known = bool(self.machine.links) or len(self.machine.nodes) == 1
        links_Bps = float(link_Bps.sum()) if known else None
        return Outcome(
            throughput={name: amount / total_s for name, amount in done.items()},
            operations=done,
            bandwidth_Bps={"memory": float(memory_Bps.sum()), "links": links_Bps},
            resources=(
                *self._machine_use.resource_uses(mean_use, memory_Bps, link_Bps),
                *transfer_uses(self.costs, self._pairs / total_s),
            ),
            latency_ns=dict.fromkeys(done),
            why=why,
            energy_J=self._machine_use.energy_J(
                time_average(length, np.array(self._active)), memory_Bps, link_Bps, total_s
            ),
            events=tuple(events),
            model=model,
            warnings=warnings,
            series=self._series(use),
            steps=len(length),
        )

    def _series(self, use: Floats) -> Series:
        columns: dict[str, npt.NDArray[Any]] = {
            "time_s": np.array(self._start),
            "duration_s": np.array(self._length),
        }
        for name in self._throughput[0]:
            columns[f"throughput/{name}"] = np.array([row[name] for row in self._throughput])
        for k, name in enumerate(self._machine_use.names):
            columns[f"utilisation/{name}"] = use[:, k]
        for name in dict.fromkeys(name for row in self._columns for name in row):
            columns[name] = np.array([row.get(name, np.nan) for row in self._columns])
        return columns
