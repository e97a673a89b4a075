"""The models of commit protocols as the planes use them: their counters, in one form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ...kernel.histogram import Histogram
from ...machine.reference.clock import run_until
from .model import KernelCommitModel
from .parameters import CommitParameters
from .reference.commits import CommitModel as SimpyModel
from .reference.one_sided import OneSidedModel
from .reference.two_phase import TwoPhaseModel

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Counters:
    """All since time 0. ``busy_ps`` (B,): adapters outwards, by machine, then inwards, then the
    threads of each node, then those of all clients together; alike threads added up.
    ``latencies_ns``: of commits, from first begin to the client's knowing.
    """

    time_ps: int
    given_up: int
    aborts: Mapping[str, int]
    messages: Mapping[str, int]
    busy_ps: Ints
    latencies_ns: Histogram

    def since(self, before: Counters) -> Counters:
        """What was counted from ``before`` to now."""
        return Counters(
            self.time_ps - before.time_ps,
            self.given_up - before.given_up,
            {cause: count - before.aborts[cause] for cause, count in self.aborts.items()},
            {name: count - before.messages[name] for name, count in self.messages.items()},
            self.busy_ps - before.busy_ps,
            self.latencies_ns.since(before.latencies_ns),
        )


@dataclass(frozen=True, eq=False)
class Sums:
    """The part of ``Counters`` that series are made of, cheap to ask for; as there."""

    commits: int
    latency_ns: float
    busy_ps: Ints


class EventModel(KernelCommitModel):
    """A protocol as a compiled model, of one replication; its history is checked under faults."""

    def __init__(self, parameters: CommitParameters, seed: int, replication: int) -> None:
        super().__init__(parameters, seed, replication, checked=parameters.faulty)

    def sums(self) -> Sums:
        """The same as ``counters`` says, without its histogram."""
        busy_ps = np.array(self.busy_ps(), dtype=np.int64)
        return Sums(self.commits, self.latency_total_ps / 1e3, busy_ps)

    def counters(self) -> Counters:
        """What was counted so far."""
        found = self.result()
        return Counters(
            found.time_ps,
            found.given_up,
            found.aborts,
            found.messages,
            self.sums().busy_ps,
            Histogram.of_kernel(self.latency_buckets(), found.latency_ps.total),
        )


class ReferenceModel:
    """A protocol in plain SimPy, as ``EventModel``."""

    def __init__(self, parameters: CommitParameters, seed: int, replication: int) -> None:
        kind = OneSidedModel if parameters.one_sided else TwoPhaseModel
        self._model: SimpyModel = kind(parameters, seed, replication)
        self.events = 0
        self.findings: list[str] = []

    def run(self, until_ps: int) -> None:
        self.events += run_until(self._model.env, until_ps)

    def sums(self) -> Sums:
        model, cluster = self._model, self._model.cluster
        busy = [
            *cluster.outgoing_busy_ps(),
            *cluster.incoming_busy_ps(),
            *map(cluster.busy_ps, model.nodes),
            sum(map(cluster.busy_ps, model.clients)),
        ]
        latencies_ps = model.latencies_ps
        return Sums(len(latencies_ps), sum(latencies_ps) / 1e3, np.array(busy, dtype=np.int64))

    def counters(self) -> Counters:
        model, cluster = self._model, self._model.cluster
        return Counters(
            model.now_ps,
            model.given_up,
            dict(model.aborts),
            {name: cluster.sent[name] for name in model.p.message_types},
            self.sums().busy_ps,
            Histogram.of_values(model.latencies_ps),
        )


Model: TypeAlias = EventModel | ReferenceModel
