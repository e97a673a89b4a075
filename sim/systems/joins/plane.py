"""The event and the reference plane of a cluster that joins: one replication each."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..._kernel import ExchangeModel, ExchangeSetup
from ...kernel.arrays import Ints
from ...kernel.histogram import Histogram
from ...kernel.picoseconds import PS_PER_S
from ...machine.costs import LINE_BYTES
from ...planes.outcome import Outcome, ResourceUse, Why
from ...planes.plane import Command, Experiment
from .choice import ChooseOperator, OperatorObservation
from .flow import FlowModel
from .reference.exchange import Exchange
from .setup import Busy, binding, network_Bps, plan_facts, play_of, stragglers, uses_of

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


ModelMaker = Callable[[ExchangeSetup, int, int], Model]
PER_QUERY = ("latencies_ps", "operators")


class JoinPlane:
    """Runs one replication; see ``plane.RandomPlane`` for what its methods promise."""

    def __init__(self, make: ModelMaker, experiment: Experiment, replication: int) -> None:
        self.experiment, self.replication = experiment, replication
        self.play = play_of(experiment, replication)
        self.model = make(self.play.setup, experiment.seed, replication)
        self.flow = FlowModel(self.play)
        self.chosen = 0
        self.time_s = 0.0
        self.start_counting()

    def advance(self, until_s: float) -> None:
        self.model.run(round(until_s * PS_PER_S))
        self.time_s = until_s

    def observe(self, family: str) -> OperatorObservation:
        return self.flow.observed(self.time_s, self.chosen)

    def apply(self, commands: Sequence[Command]) -> None:
        """Queries that begin from now on take another operator."""
        for command in commands:
            assert isinstance(command, ChooseOperator)
            self.chosen = self.play.names.index(command.operator)
            self.model.choose(self.chosen)

    def start_counting(self) -> None:
        self._before, self._since_s = self.model.counts(), self.time_s

    def _counted(self) -> Counts:
        now, before = self.model.counts(), self._before
        return {
            name: each[len(before[name]) :] if name in PER_QUERY else each - before[name]
            for name, each in now.items()
        }

    def totals(self) -> Mapping[str, float]:
        counted, name = self._counted(), self.play.operation
        latencies_s = float(counted["latencies_ps"].sum()) / PS_PER_S
        found = {
            f"throughput/{name}": float(len(counted["latencies_ps"])),
            f"under_way/{name}": latencies_s,
        }
        passed_s = max(self.time_s - self._since_s, 1e-12)
        for use in self._uses(counted, passed_s):
            found[f"utilisation/{use.name}"] = use.utilisation * passed_s
        return found

    def outcome(self) -> Outcome:
        counted, name = self._counted(), self.play.operation
        passed_s = max(self.time_s - self._since_s, 1e-12)
        queries = len(counted["latencies_ps"])
        uses = tuple(self._uses(counted, passed_s))
        # The model checks rows, each query.
        for use in uses:
            if use.utilisation > 1.0 + 1e-6:
                raise AssertionError(f"{use.name} was busy for longer than the run lasted")
        lines = counted["lines_read"] + counted["lines_written"]
        why = {}
        if self.replication == 1 and queries:
            mean_ns = float(counted["latencies_ps"].mean()) / 1e3
            gains = self.flow.gains(self.chosen)
            why[name] = Why(binding(uses), gains, {"a query": mean_ns})
        return Outcome(
            throughput={name: queries / passed_s},
            operations={name: float(queries)},
            bandwidth_Bps={
                "memory": float(lines.sum()) * LINE_BYTES / passed_s,
                "links": None,
                "network": network_Bps(uses),
            },
            resources=uses,
            why=why,
            events=tuple(stragglers(self.play.system)),
            model={name: self._facts(counted, queries)},
            warnings=() if queries else ("no query was answered while it was counted",),
            steps=self.model.events,
            latencies_ns={name: Histogram.of_values(counted["latencies_ps"].tolist())},
        )

    def _uses(self, counted: Counts, passed_s: float) -> Iterator[ResourceUse]:
        core_ps = np.bincount(self.play.setup.machine.core_node, counted["core_ps"])
        busy_ps = Busy(
            np.asarray(core_ps + counted["message_cpu_ps"], dtype=np.float64),
            counted["controller_ps"],
            counted["out_ps"],
            counted["in_ps"],
        )
        return uses_of(self.play, self.experiment.machine, busy_ps, passed_s * PS_PER_S)

    def _facts(self, counted: Counts, queries: int) -> dict[str, Any]:
        """What the model saw: partitions, messages, rows, and where pieces of work were done."""
        each = max(queries, 1)
        used = np.bincount(counted["operators"], minlength=len(self.play.names))
        return {
            **plan_facts(self.play, self.chosen, used.tolist()),
            "messages_per_query": float(counted["messages"].sum()) / each,
            "rows_sent_per_query": float(counted["rows_sent"].sum()) / each,
            "pieces": dict(zip(map(str, self.play.ids), counted["pieces"].tolist(), strict=True)),
            "waited_s": float(counted["waited_ps"].sum()) / PS_PER_S,
        }


event_plane = partial(JoinPlane, ExchangeModel)
"""Makes the event plane, from a scenario and the number of a replication."""

reference_plane = partial(JoinPlane, ReferenceModel)
"""The same, of the reference plane."""
