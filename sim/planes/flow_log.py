"""The log of a run of the flow plane: its intervals of constant rates, summed for the Record."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...topologies.machine import Machine
from ..kernel.arrays import Floats, Ints
from ..machine.costs import CostModel
from ..machine.threads import Workers
from .availability import Look
from .machine_use import MachineUse
from .outcome import Outcome
from .rates import Rates
from .transfer_flows import Resources


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

    def looks(self) -> list[Look]:
        """What was done by the end of each piece."""
        ends_s = np.cumsum([0.0, *self._length])
        done = [sum(row.values()) for row in self._throughput] * np.array(self._length)
        return list(map(Look, ends_s.tolist(), np.cumsum([0.0, *done]).tolist()))

    def outcome(self, **others: Any) -> Outcome:
        """All pieces together, with what else is known."""
        length, use = np.array(self._length), np.array(self._use)
        total_s = float(length.sum())
        each = {
            name: np.array([row[name] for row in self._throughput]) for name in self._throughput[0]
        }
        return self._machine_use.outcome(
            {name: float(length @ rates) for name, rates in each.items()},
            total_s,
            length @ use / total_s,
            (self._memory_bytes, self._link_bytes),
            time_average(length, np.array(self._active)),
            self._pairs,
            latency_ns=dict.fromkeys(each),
            series=series_of(
                (np.array(self._start), length), each, self._machine_use, use, self._columns
            ),
            steps=len(length),
            **others,
        )


def series_of(
    pieces_s: tuple[Floats, Floats],
    throughput: Mapping[str, Floats],
    machine_use: MachineUse,
    use: Floats,
    columns: Sequence[Mapping[str, float]],
) -> dict[str, npt.NDArray[Any]]:
    """The series of P pieces of time: when each began, how long it was (P,); operations per second
    (P,) by name, rows of ``use`` (P, R), and what else was constant in each.
    """
    found: dict[str, npt.NDArray[Any]] = {"time_s": pieces_s[0], "duration_s": pieces_s[1]}
    found |= {f"throughput/{name}": rates for name, rates in throughput.items()}
    found |= {f"utilisation/{name}": use[:, k] for k, name in enumerate(machine_use.names)}
    for name in dict.fromkeys(name for row in columns for name in row):
        found[name] = np.array([row.get(name, np.nan) for row in columns])
    return found
