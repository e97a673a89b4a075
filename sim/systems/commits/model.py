"""The compiled commit models, run and read like the reference ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._kernel import CommitSetup, OneSidedCommits, ProcessorSetup, TwoPhaseCommits
from ...kernel.histogram import Histogram
from ...kernel.streams import stream_key
from .history import CAUSES, Row
from .parameters import LOSSES, STEPS, CommitParameters
from .result import CommitResult
from .workload import compute_times, key_draws, stream_keys, think_times


class KernelCommitModel:
    """A cluster whose clients run transactions, message by message.

    ``traced``: keep the trace (some fifty rows a transaction); else ``trace()`` is empty.
    ``checked``: check snapshot isolation meanwhile, in bounded memory; see ``findings``. ``plant``:
    a bug for tests of the checks (a ``Plant`` of ``kernel/commits.hpp``), which the reference does
    not have.
    """

    def __init__(
        self,
        parameters: CommitParameters,
        seed: int = 0,
        replication: int = 0,
        *,
        traced: bool = False,
        checked: bool = False,
        plant: int = 0,
    ) -> None:
        self.parameters = parameters
        model = OneSidedCommits if parameters.one_sided else TwoPhaseCommits
        self._kernel = model(
            _setup(parameters, seed, replication, traced=traced, checked=checked, plant=plant),
            key_draws(parameters),
            think_times(parameters),
            compute_times(parameters),
            seed,
            replication,
        )

    def __getattr__(self, name: str) -> Any:
        """``run``, ``now_ps``, ``commits``, ``findings`` and others of the compiled model."""
        return getattr(self.__dict__["_kernel"], name)

    def busy_ps(self) -> list[int]:
        """How long each card was busy outwards, then inwards, the threads of each node (summed),
        and those of all clients together."""
        kernel, clients = self._kernel, len(self.parameters.client_machine)
        threads = kernel.threads_busy_ps
        cards = [*kernel.outgoing_busy_ps, *kernel.incoming_busy_ps]
        return [*cards, *threads[clients:], sum(threads[:clients])]

    def trace(self) -> list[Row]:
        """All that happened so far: see history.py."""
        return [tuple(row) for row in self._kernel.trace().tolist()]

    def result(self) -> CommitResult:
        """Counts and busy times up to now."""
        kernel = self._kernel
        return CommitResult(
            time_ps=kernel.now_ps,
            given_up=kernel.given_up,
            aborts=dict(zip(CAUSES, kernel.aborts, strict=True)),
            messages=dict(zip(self.parameters.message_types, kernel.sent, strict=True)),
            busy_ps=np.array(self.busy_ps(), dtype=np.int64),
            latencies_ns=Histogram.of_kernel(kernel.latency_buckets, kernel.latency_total_ps),
        )


def _setup(parameters: CommitParameters, seed: int, replication: int, **looks: Any) -> CommitSetup:
    """Of all fields that have the same name there and mean the same, and the others."""
    p = parameters
    same = {name: value for name, value in vars(p).items() if name in CommitSetup.FIELDS}
    factors = {straggler.client: straggler.factor for straggler in p.stragglers}
    costs = [p.costs[name] for name in p.message_types]
    entries = max(map(len, costs))
    own: dict[str, Any] = {
        "client_factor": [factors.get(client, 1) for client in range(len(p.client_machine))],
        "node_machine": [node.machine for node in p.nodes],
        "node_threads": [node.threads for node in p.nodes],
        "costs": [of_type[min(k, len(of_type) - 1)] for of_type in costs for k in range(entries)],
        "cost_entries": entries,
        "death_client": [death.client for death in p.deaths],
        "death_ps": [death.at_ps for death in p.deaths],
        "death_step": [-1 if d.step is None else STEPS.index(d.step) for d in p.deaths],
        "stop_machine": [stop.machine for stop in p.stops],
        "stop_ps": [stop.at_ps for stop in p.stops],
        "stop_empty": [stop.empty for stop in p.stops],
        "return_ps": [-1 if s.returns_ps is None else s.returns_ps for s in p.stops],
        "loss_stream": stream_key(seed, replication, LOSSES),
        "processors": p.processors or ProcessorSetup(),
        "streams": stream_keys(p, seed, replication),
        **looks,
    }
    # What is None is as it is where nothing is said.
    given = {name: value for name, value in (same | own).items() if value is not None}
    return CommitSetup(**given)
