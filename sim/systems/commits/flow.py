"""The flow plane of commits: rates of tries by mean value analysis, constant in pieces of time.

What changes in time is how far snapshots are behind: clients drift apart, one that dies or is slow
holds the run of timestamps up. So time goes in pieces that grow, and each is a steady state.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from ...planes.availability import Look, cost_of_faults
from ...planes.outcome import ControlEvent, Gain, Outcome, ResourceUse, Why, by_gain
from ...planes.plane import Experiment, Unsteered
from .build import commit_parameters
from .checked_values import PS
from .faults import fault_events, lost_records, rejoin_events
from .flow_faults import FlowFaults
from .servers import (
    IN,
    MACHINES_IN_SERIES,
    OUT,
    POLLERS,
    adapters_cap,
    faults,
    servers_of,
    uncertain_facts,
)
from .spec import CommitSystem
from .tries import Snapshots, Tries, TryModel
from .why import binding, what_ifs

GROWS, FIRST = 1.6, 0.02  # of a piece: times all before it since the last change, part of the run
ABORTS_MIN = 0.01  # of tries that abort: where fewer do, one piece is enough
RETRIES_MATTER = 0.05
GAIN_MIN = 1e-3


@dataclass(frozen=True, eq=False)
class _Piece:
    """So long, with these rates."""

    time_s: float
    length_s: float
    tries: Tries | None
    """None: nobody commits any more."""
    model: TryModel


class CommitFlow(Unsteered):
    """Runs a scenario as a closed network; see ``plane.Plane`` for what its methods promise."""

    costs = None
    """Of a machine's cores and memory: messages alone count here."""

    def __init__(self, experiment: Experiment) -> None:
        system = experiment.system
        assert isinstance(system, CommitSystem)
        self.experiment, self.system = experiment, system
        self.parameters, self.message_costs = commit_parameters(experiment)
        self.model = TryModel(self.parameters)
        self._faults: FlowFaults | None = None
        if self.parameters.faulty:
            healthy = self.model.solve(Snapshots(float(len(self.parameters.client_machine))))
            self._faults = FlowFaults(self.parameters, healthy.commits_per_s)
        self.operation, _ = system.transaction(experiment.workload)
        self.pieces: list[_Piece] = []
        self._servers = tuple(servers_of(experiment, self.parameters, self.message_costs))
        self.time_s, self._horizon_s = 0.0, experiment.horizon_s
        self._standing: float | None = None
        self._stands_since_s = 0.0
        self._last: Tries | None = None

    def advance(self, until_s: float) -> None:
        while self.time_s < until_s:
            tries, step_s = self._next(until_s)
            self.pieces.append(_Piece(self.time_s, step_s, tries, self.model))
            self.time_s += step_s
            if until_s - self.time_s < 1e-9 * until_s:
                self.time_s = until_s

    def _next(self, until_s: float) -> tuple[Tries | None, float]:
        """The rates from now on, and for how long."""
        p, changes = self.parameters, sorted(death.at_ps / PS for death in self.parameters.deaths)
        before = [change for change in changes if change <= self.time_s]
        cut_off, blocked = 0, False
        if self._faults is not None:
            standing = self._faults.at(self.time_s)
            changes += self._faults.changes_s
            cut_off, blocked = standing.cut_off, standing.blocked
            self.model = TryModel(standing.parameters, standing.lost)
        left_s = (
            min([change for change in changes if change > self.time_s] + [until_s]) - self.time_s
        )
        customers = float(len(p.client_machine) - len(before) - cut_off)
        if customers < 1 or blocked:
            return None, left_s
        moves = self._moves()
        # Snapshots are not far behind where clients keep in step.
        if not p.one_sided or not p.updates or p.in_step:
            return self._solve(Snapshots(customers)), left_s
        if before and moves == 1.0 and p.skip_after_ps is None:
            moves = 0.0  # the run waits for the dead one
        if moves < 1.0:
            return self._behind(customers, left_s, moves)
        step_s = left_s
        tries = self._solve(Snapshots(customers, self.time_s + 0.5 * step_s))
        if 1.0 - tries.chances.commits > ABORTS_MIN and p.skip_after_ps is None:
            step_s = min(max((GROWS - 1.0) * self.time_s, FIRST * self._horizon_s), left_s)
            tries = self._solve(Snapshots(customers, self.time_s + 0.5 * step_s))
        return tries, step_s

    def _behind(self, customers: float, left_s: float, moves: float) -> tuple[Tries | None, float]:
        """While the run of timestamps stands still, or ``moves`` at such a part of the clients'
        rate: until their timestamps are used up."""
        p = self.parameters
        if self._standing is None:
            self._standing, self._stands_since_s = 0.0, self.time_s
        elapsed_s = self.time_s - self._stands_since_s
        step_s = min(max((GROWS - 1.0) * elapsed_s, 0.25 * FIRST * self._horizon_s), left_s)
        tries = self._solve(Snapshots(customers, self.time_s, self._standing))
        more = 0.5 * (1.0 - moves) * tries.commits_per_s * step_s
        tries = self._solve(Snapshots(customers, self.time_s, self._standing + more))
        rounds = p.timestamp_bits // len(p.client_machine)
        ends_s = rounds * customers / max(tries.rate * (1.0 - moves), 1e-300) - elapsed_s
        if ends_s <= 0:
            return (None if moves == 0 else self._slowest(tries, moves)), left_s
        step_s = min(step_s, ends_s)
        self._standing += (1.0 - moves) * tries.commits_per_s * step_s
        return tries, step_s

    @staticmethod
    def _slowest(tries: Tries, moves: float) -> Tries:
        """All have to wait for the slowest one."""
        slower = replace(tries.solution, use=tries.solution.use * moves)
        return replace(tries, rate=tries.rate * moves, solution=slower)

    def _moves(self) -> float:
        """How fast the run of timestamps moves on, of what clients do: as the slowest of them."""
        p = self.parameters
        factor = max((slow.factor for slow in p.stragglers), default=1)
        if factor == 1 or p.skip_after_ps is not None or not p.one_sided:
            return 1.0
        clients = float(len(p.client_machine))
        tries = self._last or self._solve(Snapshots(clients))
        cycle_s = clients / tries.rate
        return cycle_s / (cycle_s + (factor - 1) * self.model.own_s(tries.chances))

    def _solve(self, snapshots: Snapshots) -> Tries:
        """Slow clients take no part worth speaking of where they are much slower."""
        p = self.parameters
        slow = sum(1.0 - 1.0 / straggler.factor for straggler in p.stragglers)
        customers = max(snapshots.customers - slow, 1.0)
        self._state, self._solved = replace(snapshots, customers=customers), self.model
        if self._last is None:
            self._last = self.model.solve(self._state)
        else:
            self._last = self.model.solve(self._state, self._last.chances)
        return self._last

    def outcome(self, with_gains: bool = True) -> Outcome:
        """``why`` holds at the end of the run; without gains it names what binds."""
        name, length_s = self.operation, sum(piece.length_s for piece in self.pieces)
        commits, uses = self.commits, self.uses(self.pieces)
        latency_s = sum(
            p.length_s * p.tries.commits_per_s * p.tries.latency_s for p in self.pieces if p.tries
        )
        mean_ns = latency_s / commits * 1e9 if commits else None
        return Outcome(
            throughput={name: commits / length_s},
            operations={name: commits},
            bandwidth_Bps={
                "memory": None,
                "links": None,
                "network": sum(use.Bps or 0.0 for use in uses if use.kind == OUT),
            },
            resources=uses,
            latency_ns={name: {"mean": mean_ns, "p50": None, "p99": None, "p999": None}},
            why={name: self._why(with_gains)} if self._last is not None else {},
            events=tuple(self._events()),
            model={name: self._facts(commits)},
            warnings=tuple(self._warnings()),
            series=self._series(uses),
            steps=len(self.pieces),
        )

    def _events(self) -> list[ControlEvent]:
        drawn = fault_events(self.experiment, 1, self.time_s)
        rejoins = self._faults.rejoins() if self._faults is not None else []
        again = rejoin_events(self.experiment, rejoins, self.time_s)
        return [*faults(self.system, self.time_s), *drawn, *again]

    def availability(self) -> dict[str, Any]:
        """What faults cost, or nothing without."""
        if not self.parameters.faulty:
            return {}
        looks, commits = [Look(0.0, 0.0)], 0.0
        for piece in self.pieces:
            commits += piece.length_s * piece.tries.commits_per_s if piece.tries else 0.0
            looks.append(Look(piece.time_s + piece.length_s, commits))
        drawn = list(fault_events(self.experiment, 1, self.time_s))
        found = cost_of_faults(lambda: looks, drawn, self.time_s)
        if found and self._faults is not None and self.parameters.replicas:
            found["availability"]["degraded_s"] = self._faults.degraded_s(self.time_s)
        return found

    def _why(self, with_gains: bool) -> Why:
        assert self._last is not None
        uses = self.uses([_Piece(0.0, 1.0, self._last, self._solved)], busiest=True)
        latency_ns = self._last.latency_s * 1e9
        return Why(
            binding(uses, adapters_cap(self.message_costs, self.system, self.experiment.machine)),
            self._gains(self._last) if with_gains else (),
            {"a transaction": latency_ns},
        )

    def _gains(self, tries: Tries) -> tuple[Gain, ...]:
        found, before = dict[str, float](), tries.commits_per_s
        for name, parameters in what_ifs(self.parameters).items():
            added = len(parameters.client_machine) - len(self.parameters.client_machine)
            state = replace(self._state, customers=self._state.customers + added)
            after = TryModel(parameters).solve(state, tries.chances).commits_per_s
            found[name] = after / before - 1.0
        return by_gain(found, GAIN_MIN)

    def _warnings(self) -> list[str]:
        p, found = self.parameters, list[str]()
        tries = self._last
        if tries is None or not self.commits:
            found.append("no transaction committed while it was counted")
        elif tries.solution.in_step < 0.9 * tries.solution.at_random:
            low, high = tries.solution.in_step, tries.solution.at_random
            found.append(
                "clients that hardly vary queue in convoys: all in step they would make "
                f"{low:,.0f} tries a second, at random {high:,.0f}"
            )
        if p.own_storage and self.model.turns:
            found.append(
                "threads of several servers are time-sliced independently here: on the event plane "
                "(--on event) fewer transactions commit"
            )
        if tries is not None and p.retries and 1.0 - tries.chances.commits > RETRIES_MATTER:
            found.append(
                "retries meet the same popular records again: more of them abort than the flow "
                "plane says"
            )
        if self.model.routes.on_host:
            found.append(
                "processes share processors in an order that the flow plane does not simulate: the "
                "event plane does"
            )
        if p.clock_faults:
            found.append(
                "clocks that are off are not modelled here: whom they have fenced the event plane "
                "(--on event) says"
            )
        found += lost_records(self.experiment, p, self.time_s)
        return [*found, *uncertain_facts(self.experiment.machine, self.system)]

    @property
    def commits(self) -> float:
        """In all pieces of time together."""
        return sum(p.length_s * p.tries.commits_per_s for p in self.pieces if p.tries)

    def uses(self, pieces: Sequence[_Piece], *, busiest: bool = False) -> tuple[ResourceUse, ...]:
        """Of each server, over these pieces; or of the ``busiest`` that may bind alone."""
        length_s = sum(piece.length_s for piece in pieces)
        use = np.zeros(len(self._servers))
        for piece in pieces:
            if piece.tries is not None:
                use += piece.length_s / length_s * piece.model.use_of_servers(piece.tries)
        each = list(zip(self._servers, np.minimum(use, 1.0).tolist(), strict=True))
        if busiest:
            each = [max((use for use in each if use[0].kind != POLLERS), key=itemgetter(1))]
        return tuple(server.use(part) for server, part in each)

    def _facts(self, commits: float) -> dict[str, Any]:
        """How tries ended."""
        tries = [(p.length_s * p.tries.rate, p.tries) for p in self.pieces if p.tries]
        begun = sum(count for count, _ in tries)
        snapshot = sum(count * (1.0 - tried.chances.reads) for count, tried in tries)
        return {
            "architecture": self.system.architecture,
            "clients": self.system.clients,
            "commits": commits,
            "aborts": {"snapshot": snapshot, "conflict": begun - commits - snapshot},
            "abort_rate": (begun - commits) / begun if begun else 0.0,
            "stages_ns": {
                name: seconds * 1e9
                for name, seconds in (tries[-1][1].solution.stages_s if tries else {}).items()
                if seconds > 0
            },
            **self.availability(),
        }

    def _series(self, uses: Sequence[ResourceUse]) -> dict[str, npt.NDArray[Any]]:
        rates = [p.tries.commits_per_s if p.tries else 0.0 for p in self.pieces]
        adapters = sum(use.kind in (OUT, IN) for use in uses)
        found = {
            "time_s": np.array([p.time_s for p in self.pieces]),
            "duration_s": np.array([p.length_s for p in self.pieces]),
            f"throughput/{self.operation}": np.array(rates),
        }
        if adapters > 2 * MACHINES_IN_SERIES:
            return found
        none = np.zeros(len(uses))
        each = [p.model.use_of_servers(p.tries) if p.tries else none for p in self.pieces]
        for k, use in enumerate(uses):
            found[f"utilisation/{use.name}"] = np.array([of_piece[k] for of_piece in each])
        return found
