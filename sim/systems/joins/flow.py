"""The flow plane of joins: the time of a query as a sum over steps of the slowest part of each.

In a step the workers' time, the memory controller's, and both sides of the adapters' overlap where
verbs are one-sided, so that the longest counts. With two-sided messages workers wait for what they
send: their scan and the adapter's time add up, as in the cost formulas of the source. A step that
waits for rows begins on all nodes when the last node has sent its own.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from ..._kernel import ExchangeOperator, ExchangeStep, MessageCost
from ...kernel.arrays import Floats
from ...kernel.picoseconds import PS_PER_S
from ...planes.outcome import Gain, Outcome, Why, by_gain
from ...planes.plane import Command, Experiment
from .choice import ChooseOperator, OperatorObservation
from .operators import Pieces, StepPlan
from .setup import Busy, Play, binding, network_Bps, plan_facts, play_of, stragglers, uses_of
from .spec import LINE_BYTES

MORE = 1.1
GAIN_MIN = 1e-3
PARTS_OF_MACHINE = ("speed of workers", "memory bandwidth", "network bandwidth and message rate")


class FlowModel:
    """Times of queries by operator; ``speed``: of each of ``PARTS_OF_MACHINE``, 1 as it is."""

    def __init__(self, play: Play, speed: Mapping[str, float] | None = None) -> None:
        self.play, self.setup = play, play.setup
        paces = speed or {}
        self.cpu, self.memory, self.network = (paces.get(name, 1.0) for name in PARTS_OF_MACHINE)
        core_node = np.array(self.setup.machine.core_node)
        self.n = len(self.setup.machine.read_ps)
        self.slow = np.array(self.setup.slow, dtype=np.float64) / self.cpu
        node = core_node[np.array(self.setup.worker_core)]
        self.workers = np.bincount(node, minlength=self.n).astype(np.float64)
        # Threads that share a core share its pipeline.
        self.cores = np.bincount(core_node, minlength=self.n).astype(np.float64)
        self.lanes = np.minimum(self.workers, self.cores)
        self._solved: dict[int, tuple[float, Busy]] = {}

    def query_s(self, operator: int) -> float:
        """Of a query, without the time to think."""
        return self.solved(operator)[0]

    def observed(self, time_s: float, chosen: int) -> OperatorObservation:
        """What policies see where queries take the operator of that number."""
        predicted_s = {str(name): self.query_s(k) for k, name in enumerate(self.play.names)}
        return OperatorObservation(time_s, self.play.names[chosen], predicted_s)

    def solved(self, operator: int) -> tuple[float, Busy]:
        """Its time, and how long parts are busy for it."""
        if operator not in self._solved:
            self._solved[operator] = self._solve(
                self.setup.operators[operator], self.play.plans[operator].steps
            )
        return self._solved[operator]

    def _solve(
        self, exchange_operator: ExchangeOperator, plans: Sequence[StepPlan]
    ) -> tuple[float, Busy]:
        busy = Busy(*(np.zeros(self.n) for _ in range(4)))
        total_s = np.zeros(self.n)  # when each node has come so far
        taking_s = np.zeros(self.n)  # receivers' work that no step has waited for yet
        sent = False
        costs = list(exchange_operator.costs)
        for step, plan in zip(exchange_operator.steps, plans, strict=True):
            if step.gated and sent:
                total_s = np.full(self.n, total_s.max()) + taking_s
                taking_s, sent = np.zeros(self.n), False
            step_s, received_s = self._step(exchange_operator, step, plan.pieces, costs, busy)
            total_s, taking_s = total_s + step_s, taking_s + received_s
            sent = sent or bool(step.rows)
        return float(total_s.max()), busy

    def _step(
        self,
        exchange_operator: ExchangeOperator,
        step: ExchangeStep,
        pieces: Pieces,
        costs: list[MessageCost],
        busy: Busy,
    ) -> tuple[Floats, Floats]:
        counts = 1 if pieces.counts is None else pieces.counts
        lines = np.bincount(pieces.home, pieces.lines * counts, self.n)
        line_s: Floats = np.array(step.instructions_ps) / PS_PER_S * self.slow
        # No worker is done before its largest piece.
        largest = np.zeros(self.n)
        np.maximum.at(largest, pieces.home, pieces.lines)
        wait_s = (
            np.array(self.setup.machine.latency_ps).reshape(self.n, self.n).diagonal() / PS_PER_S
        )
        misses_s = step.read * wait_s / np.array(self.setup.slots)
        line_s = np.maximum(line_s, misses_s)
        fetched_s: Floats = np.zeros(self.n)
        if step.central:
            share = self.lanes / line_s
            chunk_s = self.setup.fetch[3].out_ps / PS_PER_S
            chunk_Bps = self.play.system.chunk.value / chunk_s * self.network
            fetched_s += lines * ((1.0 - 1.0 / self.n) * LINE_BYTES / chunk_Bps)
            lines = lines.sum() * share / share.sum()
            largest = np.full(self.n, largest.max(initial=0.0) * (line_s > 0))
        line_time_s = np.array(self.setup.machine.read_ps) / PS_PER_S / self.memory
        write_s = np.array(self.setup.machine.write_ps) / PS_PER_S / self.memory
        memory_s = lines * (step.read * line_time_s + step.written * write_s)
        scan_s = lines * line_s
        wall_s = np.maximum(np.maximum(scan_s / self.lanes, memory_s), largest * line_s)
        busy.workers += scan_s
        busy.memory += memory_s
        busy.out += fetched_s
        busy.into += fetched_s
        if not step.rows:
            return np.maximum(wall_s, fetched_s), np.zeros(self.n)
        send_s, receive_s, out_s, in_s, copied = self._messages(exchange_operator, step, costs)
        copy_s = copied * np.array(self.setup.copy_ps) / PS_PER_S * self.slow
        copied_s = copied * write_s
        busy.workers += send_s + receive_s + copy_s
        busy.memory += copied_s
        busy.out += out_s
        busy.into += in_s
        if exchange_operator.one_sided:
            threads_s = wall_s + send_s / self.workers
            both = np.maximum(np.maximum(out_s, in_s) + fetched_s, threads_s)
            return both, np.zeros(self.n)
        network_s = np.maximum(np.maximum(out_s, in_s), send_s / self.workers)
        taken_s = np.maximum(receive_s / self.workers + copy_s / self.lanes, copied_s)
        return wall_s + network_s, taken_s

    def _messages(
        self, exchange_operator: ExchangeOperator, step: ExchangeStep, costs: list[MessageCost]
    ) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Time of sending and receiving threads, of adapters' sides; lines copied by receivers."""
        rows = np.array(step.rows, dtype=np.float64)
        owner = np.arange(rows.shape[1]) % self.n
        if step.central:
            rows = np.tile(rows.sum(axis=0) / self.n, (self.n, 1))
        # Each worker fills buffers of its own: the last one of a partition is half full on average.
        of_worker = rows / self.workers[:, None]
        remote = (owner[None, :] != np.arange(self.n)[:, None]) & (rows > 0)
        full = np.floor(of_worker / step.rows_of_buffer)
        left = of_worker - full * step.rows_of_buffer
        part = np.ceil(left / step.rows_of_buffer * (len(costs) - 1)).astype(np.int64)

        def seconds(field: str) -> Floats:
            each = np.array([getattr(cost, field) for cost in costs]) / PS_PER_S
            last = np.where(left > 1e-9, each[part], 0.0)
            return np.asarray(np.where(remote, full * each[-1] + last, 0.0) * self.workers[:, None])

        def to_owners(values: Floats) -> Floats:
            return np.asarray(np.bincount(owner, values.sum(axis=0), self.n), dtype=np.float64)

        send_s = seconds("send_ps").sum(axis=1) * self.slow
        out_s = seconds("out_ps").sum(axis=1) / self.network
        in_s = to_owners(seconds("in_ps")) / self.network
        if exchange_operator.one_sided:
            return send_s, np.zeros(self.n), out_s, in_s, np.zeros(self.n)
        receive_s = to_owners(seconds("receive_ps")) * self.slow
        return send_s, receive_s, out_s, in_s, to_owners(rows) * step.row_lines

    def gains(self, operator: int) -> tuple[Gain, ...]:
        """What 10% more of each part of the machine would bring."""
        better = {name: FlowModel(self.play, {name: MORE}) for name in PARTS_OF_MACHINE}
        before = self.query_s(operator)
        return by_gain({n: before / b.query_s(operator) - 1.0 for n, b in better.items()}, GAIN_MIN)


class JoinFlow:
    """Runs a scenario query by query; see ``plane.Plane`` for what its methods promise."""

    costs = None
    """Machine parts are used as the models of joins have it."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment, self.play = experiment, play_of(experiment, 1, flows=True)
        self.flow, self.chosen = FlowModel(self.play), 0
        self.time_s = 0.0
        self.answered = [0.0] * len(self.play.names)
        self.pieces: list[tuple[float, float, int]] = []

    def each_s(self, operator: int) -> float:
        """Of a query, with the time to think."""
        return self.flow.query_s(operator) + self.play.setup.think_ps / PS_PER_S

    def advance(self, until_s: float) -> None:
        if until_s <= self.time_s:
            return
        lasts_s = until_s - self.time_s
        self.answered[self.chosen] += lasts_s / self.each_s(self.chosen)
        if self.pieces and self.pieces[-1][2] == self.chosen:
            since_s, before_s, _ = self.pieces.pop()
            self.pieces.append((since_s, before_s + lasts_s, self.chosen))
        else:
            self.pieces.append((self.time_s, lasts_s, self.chosen))
        self.time_s = until_s

    def observe(self, family: str) -> OperatorObservation:
        return self.flow.observed(self.time_s, self.chosen)

    def apply(self, commands: Sequence[Command]) -> None:
        for command in commands:
            assert isinstance(command, ChooseOperator)
            self.chosen = self.play.names.index(command.operator)

    def outcome(self, with_gains: bool = True) -> Outcome:
        """``why`` holds at the end of the run."""
        name, total_s, answered = self.play.operation, self.time_s, sum(self.answered)
        of_queries = Busy(*np.zeros((4, self.flow.n)))
        latency_s = 0.0
        for k, count in enumerate(self.answered):
            if count:
                query_s, of_query = self.flow.solved(k)
                of_queries.add(of_query, count / total_s)
                latency_s += count * query_s
        of_queries.workers = np.minimum(of_queries.workers, self.flow.workers)
        for side in (of_queries.memory, of_queries.out, of_queries.into):
            np.minimum(side, 1.0, out=side)
        uses = tuple(uses_of(self.play, self.experiment.machine, of_queries))
        gains = self.flow.gains(self.chosen) if with_gains else ()
        why = Why(binding(uses), gains, {"a query": self.flow.query_s(self.chosen) * 1e9})
        mean_ns = latency_s / answered * 1e9 if answered else None
        return Outcome(
            throughput={name: answered / total_s},
            operations={name: answered},
            bandwidth_Bps={
                "memory": sum(use.Bps or 0.0 for use in uses if use.kind == "memory"),
                "links": None,
                "network": network_Bps(uses),
            },
            resources=uses,
            latency_ns={name: {"mean": mean_ns, "p50": None, "p99": None, "p999": None}},
            why={name: why},
            events=tuple(stragglers(self.play.system)),
            model={
                name: plan_facts(self.play, self.chosen, self.answered)
                | {"predicted_s": {n: self.flow.query_s(k) for k, n in enumerate(self.play.names)}}
            },
            series={
                "time_s": np.array([since_s for since_s, _, _ in self.pieces]),
                "duration_s": np.array([lasts_s for _, lasts_s, _ in self.pieces]),
                f"throughput/{name}": np.array([1 / self.each_s(k) for *_, k in self.pieces]),
            },
            steps=len(self.pieces),
        )
