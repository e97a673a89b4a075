"""The flow plane: rates that are constant between events, from max-min fair sharing.

Time advances in pieces. At the start of each the rates of all flows are found
(``rate_solver.py``); a piece ends when a transfer is done, when the control plane acts, or when a
running transfer has shifted enough load for the rates to be found again.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..kernel.arrays import Floats
from ..machine.costs import Scales
from ..machine.demands import Demand, Exchange, Gathered, TransferDemand
from .availability import cost_of_faults
from .flow_log import FlowLog
from .flow_system import Demands, FlowSystem, Piece
from .outcome import Outcome
from .plane import Command, Experiment, StartPhase
from .rate_solver import TOLERANCE, RateSolver
from .rates import Loads, Rates
from .why import explain

# Transfers that one command begins end at as many times as there are of them. Ends that lie closer
# together than this part of the time that all take, or of the policies' period, share a piece.
CYCLE_PART, PERIOD_PART = 1 / 12, 1 / 10

# Rates between control events start from those before: this is near enough for a transient.
TRANSIENT_TOLERANCE = 1e-3

# Gains are given to a tenth of a per cent.
WHAT_IF_TOLERANCE = 1e-5


# Rounds of closed clients' rate and its service time; each at least halves the error.
CLOSED_ROUNDS = 4

# How many messages a worker hands over together is found to this part of their number.
GATHERED_PART, MESSAGES_MIN = 0.05, 1e-3
# Who does that much less than is asked for does not keep up.
OFFERED_PART = 1e-3


class FlowPlane:
    """Runs a scenario as flows; see ``plane.Plane`` for what its methods promise."""

    def __init__(self, experiment: Experiment, system: FlowSystem[Any]) -> None:
        self.machine, self.workload = experiment.machine, experiment.workload
        self.system = system
        self._wires: dict[object, Floats] = {}
        self.demands, self.solver = self._model(Scales())
        self.costs = self.demands.costs
        self.log = FlowLog(self.machine, self.solver.resources, system.workers, self.costs)
        self._grain_min_s, self._grain_s = experiment.period_s * PERIOD_PART, 0.0
        self._failing = [change.event for change in experiment.system.changes(experiment.machine)]
        self.time_s = 0.0
        self._rates: Rates | None = None
        self._loads: Loads | None = None
        self._unsettled = 0.0
        self._together = ""

    def start_near(self, other: "FlowPlane") -> None:
        """Looks for its first rates from those of a scenario like it."""
        self._loads = other._loads

    def advance(self, until_s: float) -> None:
        while self.time_s < until_s:
            rates = self.rates()
            left = until_s - self.time_s
            step = min(left, self._next_end(rates))
            if left - step < 1e-9 * max(until_s, 1.0):
                step = left
            if len(rates.transfers):
                # Some may end within the step: then they go on as much slower as to end with it.
                most = self.system.left() / step
                rates = rates.with_transfers(np.minimum(rates.transfers, most))
            self._play(rates, step)
            self.time_s = until_s if step == left else self.time_s + step
            if len(rates.transfers):
                self.system.moved(rates.transfers * step, self.time_s)
                self._rates = None

    def _next_end(self, rates: Rates) -> float:
        """Time until transfers have ended, or moved enough to look at the rates again."""
        if not len(rates.transfers):
            return float("inf")
        ends = self.system.left() / np.maximum(rates.transfers, 1e-30)
        if not self._grain_s:
            self._grain_s = max(float(ends.max()) * CYCLE_PART, self._grain_min_s)
        return max(float(ends.min()), min(self._grain_s, float(ends.max())))

    def _play(self, rates: Rates, step: float) -> None:
        units = float(rates.flows.sum())
        done = {name: units * o.share for name, o in self.system.phase.operations.items()}
        self.log.add(self.time_s, step, done, rates, self.system.columns(), self.system.workers)
        steps_s = {name: rates.of_core * each_s * step for name, each_s in rates.steps.items()}
        self.system.played(Piece(step, units, steps_s))

    def rates(self) -> Rates:
        """The rates as things are."""
        if self._rates is None:
            transfers = self.system.transfers(self.demands)
            tolerance = TOLERANCE if transfers is None else TRANSIENT_TOLERANCE
            self._rates = self._solve(self.demands, self.solver, transfers, tolerance)
            self._loads = self._rates.loads
            if self._rates.residual > tolerance:
                self._unsettled = max(self._unsettled, self._rates.residual)
            self.system.settled(self.demands, self.time_s)
        return self._rates

    def steady(self) -> Rates:
        """Rates in the present state, transfers left out."""
        if self._rates is not None and not len(self._rates.transfers):
            return self._rates
        rates = self._solve(self.demands, self.solver)
        self._loads = rates.loads
        return rates

    def throughput(self, scales: Scales) -> float:
        """Units of work per second in the present state, transfers left out, under ``scales``."""
        demands, solver = self._model(scales)
        solver.wires.handed = self.solver.wires.handed
        rates = self._solve(demands, solver, tolerance=WHAT_IF_TOLERANCE, fills=False)
        return float(rates.flows.sum())

    def _model(self, scales: Scales) -> tuple[Demands, RateSolver]:
        demands, workers = self.system.demands(scales), self.system.workers
        return demands, RateSolver(demands.costs, workers.core_node, workers.on_cores, self._wires)

    def _solve(
        self,
        demands: Demands,
        solver: RateSolver,
        transfers: TransferDemand | None = None,
        tolerance: float = TOLERANCE,
        fills: bool = True,
    ) -> Rates:
        """Rates of the system's flows, which ask for no more than the clients do.

        ``fills``: whether it matters how full buffers are, beside throughput.
        """
        flow = self.system.demand(demands, self.time_s)
        clients = self.workload.description.clients
        if clients.kind == "open":
            assert clients.arrival_rate is not None
            flow = replace(flow, offered_per_s=clients.arrival_rate.value * flow.asking)
        elif not flow.asking:
            flow = replace(flow, offered_per_s=0.0)
        rates = solver.solve(flow, transfers, self._loads, tolerance)
        if not flow.asking:
            return rates
        if fills and flow.exchange is not None and clients.kind == "open":
            return self._gathered(solver, flow, flow.exchange, rates, (transfers, tolerance))
        outside_s = clients.think_time.value + flow.delay_s
        if clients.kind == "open" or (not outside_s and flow.customers is None):
            return rates
        # By default each worker is a client that waits for all of its batch, then thinks. How long
        # an operation takes depends on the load, and that on the answer.
        workers = self.system.workers.count * flow.asking
        customers = workers * flow.batch if flow.customers is None else flow.customers
        exchange = flow.exchange
        for _ in range(CLOSED_ROUNDS):
            if exchange is not None and outside_s and exchange.gathering is not None:
                flow = replace(flow, exchange=self._in_batches(exchange, flow, rates))
                rates = solver.solve(flow, transfers, rates.loads, tolerance)
            units_per_s = max(float(rates.flows.sum()), 1e-300)
            service_s, batch_s = _work(rates) / units_per_s, 0.0
            if outside_s and flow.customers is None:
                # Of an operation, until all are made; or done, by the worker itself.
                each_s = service_s
                if exchange is not None:
                    made_s = rates.of_core @ rates.steps[exchange.names[0]]
                    each_s = float(made_s) / units_per_s
                batch_s = (flow.batch - 1.0) * each_s
            away_s = outside_s + batch_s
            offered = closed_rate(customers, workers, service_s, away_s, flow.variation)
            flow = replace(flow, offered_per_s=offered)
            rates = solver.solve(flow, transfers, rates.loads, tolerance)
        return rates

    def _in_batches(self, exchange: Exchange, flow: Demand, rates: Rates) -> Exchange:
        """The exchange of clients that think after each batch: a worker hands over one at a time.

        Those of others come to it in parts: it executes each by itself, and looks for more, as far
        as it has nothing else to do.
        """
        assert exchange.gathering is not None
        workers, batch = self.system.workers.count, min(flow.batch, exchange.gathers)
        if batch >= exchange.gathers:
            return exchange
        part = batch / (workers * -math.expm1(batch * math.log1p(-1.0 / workers)))
        idle = max(1.0 - _work(rates) / workers, 0.0)
        looks = (1.0 + idle) * (1.0 / batch + idle / part)
        return exchange.gathering(Gathered(batch, part, looks, float(rates.flows.sum())))

    def _gathered(
        self,
        solver: RateSolver,
        flow: Demand,
        exchange: Exchange,
        rates: Rates,
        how: tuple[TransferDemand | None, float],
    ) -> Rates:
        """Rates where workers hand over what came in a round of their loop: less than they may, as
        in ``rates``, unless they do not keep up with what clients ask for.

        Arrivals are Poisson, and so is what a worker finds when it looks again: m messages on
        average, half of them to be made, half of others. It finds none with exp(-m), and sleeps
        until one comes: it works for 1 - exp(-m) of its time. Where it finds any to be made, or to
        be executed, these are (m / 2) / (1 - exp(-m / 2)), which are handled together.
        """
        enough = (1.0 - OFFERED_PART) * flow.offered_per_s
        if exchange.gathering is None or rates.flows.sum() < enough:
            return rates
        fewer, most = MESSAGES_MIN, 2.0 * exchange.gathers
        while most > (1.0 + GATHERED_PART) * fewer:
            found = math.sqrt(fewer * most)
            busy = -math.expm1(-found)
            together = 0.5 * found / -math.expm1(-0.5 * found)
            # After work it looks again; each message is made and executed.
            looks = 2.0 * busy * (2.0 - busy) / found
            fill = Gathered(together, together, looks, flow.offered_per_s)
            partly = replace(
                flow, exchange=exchange.gathering(fill), batch=min(flow.batch, together)
            )
            tried = solver.solve(partly, how[0], rates.loads, how[1])
            behind = tried.flows.sum() < enough
            if behind or _work(tried) > busy * self.system.workers.count:
                fewer = found
            else:
                most, rates = found, tried
                self._together = f"{together:,.3g} of {exchange.gathers:,}"
        return rates

    def observe(self, family: str) -> Any:
        return self.system.observe(family, self.time_s)

    def apply(self, commands: Sequence[Command]) -> None:
        for command in commands:
            if isinstance(command, StartPhase):
                self.system.phase = command.phase
            else:
                self.system.apply(command, self.demands, self.time_s)
                self._grain_s = 0.0
            self._rates = None

    def outcome(self, with_gains: bool = True) -> Outcome:
        """``why`` holds at the end of the run; without gains it names what binds."""
        self.system.check_conservation()
        cost = cost_of_faults(self.log.looks, self._failing, self.time_s)
        warnings = dict.fromkeys([*self.costs.warnings, *self.system.warnings()])
        if self._unsettled:
            words = f"rates and waits did not settle: loads are off by up to {self._unsettled:.2g}"
            warnings[words] = None
        if self._together:
            words = f"workers hand over {self._together} messages at a time: with more to do they "
            words += "fill buffers further, and can do more than the use of cores leaves; waits "
            words += "count as use, which the event plane leaves out"
            warnings[words] = None
        return self.log.outcome(
            why=explain(self, self.workload.operations, with_gains),
            events=self.system.events,
            model={**self.demands.facts, **({"operations": cost} if cost else {})},
            warnings=tuple(warnings),
        )


def _work(rates: Rates) -> float:
    """How many workers are busy, on average."""
    return float(rates.of_core @ np.sum(list(rates.steps.values()), axis=0))


def closed_rate(
    customers: float, servers: float, service_s: float, think_s: float, variation: float = 1.0
) -> float:
    """Rate of a closed system: ``customers`` think for ``think_s``, then wait for ``service_s`` of
    work, of that squared coefficient of ``variation``, which is spread evenly over ``servers``.

    Bard and Schweitzer's approximation of mean value analysis: who arrives finds the queues that
    all the others make, R = S (1 + (N - 1) / N * X R / K), with X = N / (Z + R). Of the service
    under way, if any, S (1 + variation) / 2 is left on average (Reiser, A queueing network analysis
    of computer communication networks with window flow control, 1979).
    """
    seen = (customers - 1.0) / (customers * servers)
    # X (Z + S / (1 - seen S X)) = N: the left side rises from 0 to infinity at X = 1 / (seen S).
    low, high = 0.0, customers / (think_s + service_s)
    if seen * service_s > 0:
        high = min(high, 1.0 / (seen * service_s))
    for _ in range(100):
        rate = 0.5 * (low + high)
        left = 1.0 - seen * service_s * rate
        spared = 0.5 * (1.0 - left) * (1.0 - variation)  # of the one in service
        if left <= 0 or rate * (think_s + service_s * (1.0 - spared) / left) > customers:
            high = rate
        else:
            low = rate
    return low
