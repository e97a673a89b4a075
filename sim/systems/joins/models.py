"""The models of a cluster that joins as planes use them: the compiled one and SimPy's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..._kernel import ExchangeModel
from .reference.exchange import Exchange

Ints = npt.NDArray[np.int64]
Counts = Mapping[str, npt.NDArray[Any]]


class ReferenceModel(Exchange):
    """The model in SimPy, as ``ExchangeModel``."""

    def counts(self) -> Counts:
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
        return np.array(self.rows, dtype=np.int64).reshape(-1, 4)


Model: TypeAlias = ExchangeModel | ReferenceModel
