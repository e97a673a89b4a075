"""The models of a cluster that joins as planes use them: the compiled one and SimPy's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..._kernel import ExchangeModel, ExchangeSetup
from .reference.exchange import Exchange

Ints = npt.NDArray[np.int64]
Counts = Mapping[str, npt.NDArray[Any]]


class Model(Protocol):
    """What the planes ask of a model."""

    @property
    def events(self) -> int:
        """Handled since time 0."""

    def run(self, until_ps: int) -> bool:
        """Goes on to that time."""

    def choose(self, chosen: int) -> None:
        """Queries that begin from now on take this operator."""

    def counts(self) -> Counts:
        """Since time 0, by name; arrays by node, by core, or by query."""

    def trace(self) -> npt.NDArray[Any]:
        """Rows (time, event, subject, data)."""


class ReferenceModel(Exchange):
    """The model in SimPy."""

    def counts(self) -> Counts:
        """See Model."""
        service, nodes = self.service, range(len(self.nodes))
        service.count(self.now)
        found: dict[str, npt.NDArray[Any]] = {
            "latencies_ps": np.array(self.latencies_ps, dtype=np.int64),
            "operators": np.array(self.operator_used, dtype=np.int64),
            "message_cpu_ps": np.array(self.message_cpu_ps()),
            "out_ps": np.array([a.outgoing.done(self.now) for a in self.adapters]),
            "in_ps": np.array([a.incoming.done(self.now) for a in self.adapters]),
            "lines_read": np.array([service.lines_read(k) for k in nodes]),
            "lines_written": np.array([service.lines_written(k) for k in nodes]),
            "controller_ps": np.array([service.controller_ps(k) for k in nodes]),
            "core_ps": np.array([service.core_busy(k) for k in range(len(service.cores))]),
        }
        return found | {name: np.array(each) for name, each in self.counted.items()}

    def trace(self) -> Ints:
        """See Model."""
        return np.array(self.rows, dtype=np.int64).reshape(-1, 4)


def event_model(setup: ExchangeSetup, seed: int, replication: int) -> Model:
    """The compiled one."""
    return ExchangeModel(setup, seed, replication)


def reference_model(setup: ExchangeSetup, seed: int, replication: int) -> Model:
    """SimPy's."""
    return ReferenceModel(setup, seed, replication)
