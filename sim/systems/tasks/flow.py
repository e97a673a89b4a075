"""The flow plane of tasks: rates of queries, constant between what policies and copies change."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....inputs.shared_work import shared
from ...kernel.arrays import Floats, Ints
from ...kernel.sums import group_sums
from ...machine.costs import LINE_BYTES, CostModel, Scales
from ...planes.availability import cost_of_faults
from ...planes.outcome import Gain, Outcome, Why
from ...planes.plane import Command, Experiment, StartPhase
from ...planes.why import GAIN_MIN, MORE, WORKERS, what_ifs
from .commands import (
    SAMPLE_S,
    AccessPathObservation,
    AllowStealing,
    CoresObservation,
    PlacerObservation,
    StealingObservation,
)
from .control_state import ControlState
from .looking import looking_threads
from .piece_log import PieceLog
from .program import Program
from .steady_rates import Rates, State
from .steady_state import Search, SteadyState

# Clients of a mix that ask for a blocked query wait there: a piece of time ends when so many of
# those that are left do.
STUCK_PART = 0.1
# More of a link that is less full than this changes nothing.
LINK_FULL = 0.99
FULL_NAMED = 2
MEAN_FREE = (
    "not modelled here: a stage has as many tasks as workers are free when it starts, nearly all "
    "or few. The flow plane counts with their mean, and throughput may be half of what it says: "
    "try --on event, or state system.concurrency"
)
POLLERS = (
    "not modelled here: of more threads than processors those without tasks poll, and take turns "
    "with those that have some: try --on event, or state system.look, after which they sleep"
)
BEHIND = (
    "at least for a while more queries arrive than can be done: they wait ever longer, and their "
    "latency has no mean"
)


class TasksFlow:
    """Runs a scenario as flows; see ``plane.Plane`` for what its methods promise."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment, self.machine = experiment, experiment.machine
        self.costs = CostModel(self.machine)
        self.control = ControlState(experiment, self.costs)
        self.program, self.layout = self.control.program, self.control.layout
        self.steady = SteadyState(self.program, self.costs)
        placed, cores = self.control.placed, self.control.cores
        self._per_core = np.divide(
            np.bincount(placed.node, minlength=len(cores)),
            cores,
            where=cores > 0,
            out=np.zeros(len(cores)),
        )
        self.stealable: frozenset[str] = frozenset()
        self._shares = tuple(query.share for query in self.program.queries)
        self._think_s = np.inf if self.program.arrivals_per_s else self.program.think_s
        self.queries = tuple(query.name for query in self.program.queries)
        self.log = PieceLog(
            self.machine, self.costs, placed, self.queries, active=self._active_cores
        )
        self.time_s = 0.0
        self._stuck = 0.0  # clients of the mix that wait for a part that is being moved
        self._left: dict[int, float] = {}  # pages that copies have still to move
        self._rates: Rates | None = None
        self._near: Rates | None = None
        self._running = self._allowed()  # while the rates hold, as all that follows
        self._columns: dict[str, float] = {}
        self._lasting = False
        self._known: dict[State, Rates] = {}
        self._watched: dict[str, Watched] = {}
        self._stealing: tuple[dict[str, float], Ints, Ints] | None = None  # but for the time

    @property
    def unchanged_until_s(self) -> float:
        """Until when rates stay what they are, unless something is applied: while clients get
        stuck, they are looked at anew at each step."""
        rates = self.rates()
        return self.time_s + (0.0 if self._stuck_per_s(rates) > 0 else self._next_change(rates))

    def start_near(self, other: "TasksFlow") -> None:
        """Looks for its rates from those of a scenario like it."""
        self._near = other.rates()

    def advance(self, until_s: float) -> None:
        while self.time_s < until_s:
            rates = self.rates()
            left = until_s - self.time_s
            if self._lasting:
                self._play(rates, left)
                self.time_s = until_s
                return
            step = min(left, self._next_change(rates))
            if left - step < 1e-9 * max(until_s, 1.0):
                step = left
            self._play(rates, step)
            self.time_s = until_s if step == left else self.time_s + step
            self._after(rates, step)

    def rates(self) -> Rates:
        """Of the present state."""
        if self._rates is None:
            state = self._state()
            # A policy may take the system back to where it was; clients who get stuck do not.
            if state not in self._known:
                if len(self._known) > 256:
                    self._known.clear()
                self._known[state] = self.steady.solve(state, self._near)
            self._rates = self._known[state]
            self._running, self._stealing = self._allowed(), None
            self._columns = self._columns_of(self._rates)
            # Until the control plane acts: nothing is copied, and nobody gets stuck.
            self._lasting = not (
                self._rates.blocked or self._stuck or self.layout.copies or self._left
            )
        return self._rates

    def _state(self) -> State:
        free = self.program.mix_clients - self._stuck
        pools, spread = self._pools()
        return State(
            parts=tuple(self.layout.parts.items()),
            clients=tuple(float(query.clients) for query in self.program.queries),
            mix_clients=free if free >= 1.0 else 0.0,
            shares=self._shares,
            stealable=self.stealable,
            workers=tuple(pools.tolist()),
            copies=self.layout.copies,
            paths=self.control.paths.current,
            spread=None if spread is None else tuple(spread.tolist()),
        )

    def _pools(self) -> tuple[Floats, Floats | None]:
        """(n,) threads of each node's pool that may run at a time; (n,) where those of any pool do,
        None: on the nodes of their pools.

        Threads that the operating system moves are on each allowed processor alike; more of them
        than there are processors share these. Where they may steal, they are all in one pool.
        """
        scheduling, allowed = self.program.scheduling, self._allowed().astype(np.float64)
        anywhere = scheduling.affinity == "none"
        if scheduling.queue != "machine" and not anywhere:
            return allowed, None
        spread = allowed / allowed.sum()
        if scheduling.queue != "machine" and not self.stealable:
            workers = scheduling.workers.astype(np.float64)
            return workers * min(1.0, allowed.sum() / workers.sum()), spread
        pools = np.zeros(len(allowed))
        pools[np.flatnonzero(scheduling.workers)[0]] = allowed.sum()
        return pools, spread

    def _allowed(self) -> Ints:
        """(n,) workers that may run at a time: those of allocated cores."""
        on = np.zeros(len(self._per_core))
        for node, _ in self.control.allocated:
            on[node] += 1
        able = np.ceil(on * self._per_core).astype(np.int64)
        workers, affinity = self.program.scheduling.workers, self.program.scheduling.affinity
        if affinity == "none":
            able = np.ceil(able * min(1.0, workers.sum() / able.sum())).astype(np.int64)
        return np.minimum(able, workers) if affinity == "node" else able

    def _next_change(self, rates: Rates) -> float:
        """How long these rates hold, unless the control plane acts."""
        ends = [
            self._left_of(copy.number, copy.pages) / pages_per_s if pages_per_s > 0 else np.inf
            for copy, pages_per_s in zip(
                self.layout.copies, rates.pages_per_s.tolist(), strict=True
            )
        ]
        getting_stuck = self._stuck_per_s(rates)
        if getting_stuck > 0:
            free = self.program.mix_clients - self._stuck
            ends.append(max(STUCK_PART * free, 1.0) / getting_stuck)
        return min(ends, default=np.inf)

    def _left_of(self, number: int, pages: int) -> float:
        return self._left.setdefault(number, float(pages))

    def _stuck_per_s(self, rates: Rates) -> float:
        """Clients of the mix per second who draw a query that is blocked."""
        if not self.program.mix_clients or not rates.blocked:
            return 0.0
        mixed = [k for k, query in enumerate(self.program.queries) if not query.clients]
        share = sum(self._shares[k] for k in mixed if k in rates.blocked)
        if share == 0:
            return 0.0
        asked = sum(float(rates.queries[k]) for k in mixed)
        return asked * share / max(1.0 - share, share / max(self.program.mix_clients, 1.0))

    def _columns_of(self, rates: Rates) -> dict[str, float]:
        """Of the series, what else is constant while these rates hold."""
        waiting = zip(self.machine.nodes, rates.waiting.tolist(), strict=True)
        return self.control.columns() | {f"waiting/node {n.id}": float(k) for n, k in waiting}

    def _play(self, rates: Rates, step: float) -> None:
        self.log.add(self.time_s, step, rates, self._running, self._columns)
        for watched in self._watched.values():
            watched.add(self.time_s, step, rates)

    def _after(self, rates: Rates, step: float) -> None:
        """What the piece of time has brought: pages that were copied, clients who are stuck."""
        stuck = min(self._stuck + self._stuck_per_s(rates) * step, float(self.program.mix_clients))
        ended = []
        for copy, pages_per_s in zip(self.layout.copies, rates.pages_per_s.tolist(), strict=True):
            left = self._left_of(copy.number, copy.pages) - pages_per_s * step
            self._left[copy.number] = left
            if left <= 1e-6 * copy.pages:
                ended.append(copy.number)
        for number in ended:
            del self._left[number]
            self.layout.arrived(number, self.time_s)
        if ended or stuck != self._stuck:
            self._rates = None
        if stuck:
            blocked = any(part.blocked for parts in self.layout.parts.values() for part in parts)
            stuck = stuck if blocked else 0.0
        self._stuck = stuck

    def observe(self, family: str) -> Any:
        watched, rates = self._watched.setdefault(family, Watched()), self.rates()
        if not watched.pieces:
            watched.pieces.append((0.0, max(self.time_s, SAMPLE_S), rates))
        seen = {
            "placer": self._seen_by_placer,
            "stealing": self._seen_by_stealing,
            "cores": self._seen_by_cores,
            "access-path": self._seen_by_access_path,
        }[family](watched)
        watched.pieces = []
        return seen

    def _seen_by_placer(self, watched: "Watched") -> PlacerObservation:
        n, samples = len(self.machine.nodes), watched.samples(self.time_s)
        of_parts: dict[tuple[str, int], tuple[Floats, Floats]] = {}
        node_cpu, node_Bps = np.zeros((n, samples)), np.zeros((n, samples))
        none = np.zeros(samples)
        for weight, rates in watched.weights(self.time_s, samples):
            local = rates.local_use
            node_cpu += local.node_cpu[:, None] * weight
            node_Bps += local.node_Bps[:, None] * weight
            for key, (running, Bps) in local.parts.items():
                before_cpu, before_Bps = of_parts.get(key, (none, none))
                of_parts[key] = before_cpu + running * weight, before_Bps + Bps * weight
        nodes = node_cpu, node_Bps
        return self.control.parts_seen(self.time_s, self._running, nodes, of_parts)

    def _seen_by_stealing(self, watched: "Watched") -> StealingObservation:
        rates = self.rates()
        if self._stealing is None:
            busy = group_sums(rates.node, rates.running, len(self.machine.nodes))
            self._stealing = (
                self._drawn_by_class(rates),
                np.rint(rates.waiting).astype(np.int64),
                np.rint(np.maximum(self._running - busy, 0.0)).astype(np.int64),
            )
        return StealingObservation(self.time_s, *self._stealing, self.control.facts.threshold_Bps)

    def _seen_by_access_path(self, _: "Watched") -> AccessPathObservation:
        return self.control.paths_seen(self.time_s, self._allowed().tolist())

    def _drawn_by_class(self, rates: Rates) -> dict[str, float]:
        """Memory throughput of a task of each class, NaN where none runs."""
        drawn = rates.by_class(rates.lines_per_s * LINE_BYTES)
        running = rates.by_class(rates.running)
        return {
            name: drawn[name] / running[name] if running.get(name, 0.0) > 0 else float("nan")
            for name in self.program.classes
        }

    def _seen_by_cores(self, watched: "Watched") -> CoresObservation:
        length = sum(piece[1] for piece in watched.pieces)
        load = links = controllers = 0.0
        used = np.zeros(len(self.machine.nodes))
        for _, step, rates in watched.pieces:
            part = step / length
            load += part * float(rates.running.sum())
            links += part * float(rates.served.link_Bps.sum())
            controllers += part * float(rates.served.memory_Bps.sum())
            used += part * rates.served.memory_Bps
        allowed = int(self._running.sum())
        cpu_load = min(load / allowed, 1.0)
        return self.control.cores_seen(self.time_s, cpu_load, used, links, controllers)

    def apply(self, commands: Sequence[Command]) -> None:
        """Where each worker has a queue of its own, these count as one a node."""
        for command in commands:
            if isinstance(command, StartPhase):
                self._shares = self.control.shares(command.phase)
            elif isinstance(command, AllowStealing):
                self.stealable = command.classes
            elif not self.control.apply(command):
                self.layout.order(command, self.time_s)
            self._rates = None

    def _active_cores(self, rates: Rates, allowed: Ints) -> Floats:
        """(n,) whose workers run tasks or look for some; a core counts by the part of its threads
        that do, as on the event plane."""
        look_s = self.program.scheduling.look_s
        if np.isinf(look_s):
            return allowed.astype(np.float64)
        busy = group_sums(rates.node, rates.running, len(allowed))
        looking = looking_threads(rates, allowed, busy, look_s, self._think_s)
        return np.asarray((busy + looking) / max(self._per_core.max(initial=1.0), 1.0))

    def outcome(self, with_gains: bool = True) -> Outcome:
        """``why`` holds at the end of the run; without gains there is none."""
        self.layout.check()
        cost = cost_of_faults(self.log.looks, self.control.failing, self.time_s)
        left_out = {
            MEAN_FREE: self.rates().mean_free,
            POLLERS: self._pollers_take_turns(),
            BEHIND: self.log.falls_behind,
        }
        notes = [text for text, holds in left_out.items() if holds]
        return self.log.outcome(
            why=self._why() if with_gains else {},
            events=self.layout.events,
            model={**self.control.described(), **({"queries": cost} if cost else {})},
            warnings=tuple(dict.fromkeys([*self.costs.warnings, *notes])),
        )

    def _pollers_take_turns(self) -> bool:
        scheduling, clients = self.program.scheduling, self.program.mix_clients
        threads = scheduling.workers.sum()
        if scheduling.affinity == "core" or threads <= self._running.sum():
            return False
        clients += sum(query.clients for query in self.program.queries)
        paced = self.program.arrivals_per_s or self.program.think_s
        tasks = 0.0 if paced else clients * (scheduling.concurrency or np.inf)
        return bool(np.isinf(scheduling.look_s) and tasks < threads)

    @shared()  # all but few parts of the machine stay as they are
    def _why(self) -> Mapping[str, Why]:
        """What 10% more of each resource would bring to all queries together, as things are now."""
        if float(self.rates().queries.sum()) <= 0:
            return {}
        scaled = what_ifs(self.machine, self.costs).items()
        search, state = self.steady.search, self._state()
        if search is None or search.state != state:
            search = Search(self.steady, state)
        gains = [Gain(name, self._gain(search, scales)) for name, scales in scaled]
        for name in self.program.locks:  # sections under it are that much shorter
            shorter = self.program.with_lock_times(name, 1.0 / MORE)
            gains.append(Gain(f"lock {name}", self._gain_with(search, shorter, self.costs)))
        gains.sort(key=lambda gain: (-round(gain.gain_per_10pct, 3), gain.resource))
        binding = gains[0].resource
        if gains[0].gain_per_10pct < 0.01:  # several are full at a time, or none is
            busy = self.rates().running.sum() >= LINK_FULL * self._running.sum()
            full = self._full()[:FULL_NAMED] or [WORKERS if busy else "what clients ask for"]
            binding = " and ".join(full)
        return dict.fromkeys(self.queries, Why(binding, tuple(gains)))

    def _full(self) -> list[str]:
        """Memories and links without time to spare, as things are now."""
        served, machine = self.rates().served, self.machine
        names = [*(f"memory of node {node.id}" for node in machine.nodes), *machine.link_names]
        use = np.concatenate([served.memory_use, served.link_use]).tolist()
        return [name for name, part in zip(names, use, strict=True) if part >= LINK_FULL]

    def _gain(self, search: Search, scales: Scales) -> float:
        """Of all queries on a machine whose parts are that much better, as things are now."""
        rates = self.rates()
        if scales.links != 1.0:
            use = rates.served.link_use.reshape(-1, 2).max(axis=1)
            of_kind = [scales.link_kind in (None, link.kind) for link in self.machine.links]
            if use[of_kind].max(initial=0.0) < LINK_FULL:
                return 0.0
        costs, program = CostModel(self.machine, scales), self.program
        # What an entry demands is the same with other links, and with other memory where no stream
        # waits for it alone.
        waits = scales.latency != 1.0 and costs.stream_uncovered.any()
        if waits or (scales.cores, scales.misses, scales.cache) != (1.0, 1.0, 1.0):
            program = self.control.draft.on(costs)
        return self._gain_with(search, program, costs)

    def _gain_with(self, search: Search, program: Program, costs: CostModel) -> float:
        rates = self.rates()
        found = search.on(program, costs).queries_per_s(rates)
        gain = found / float(rates.queries.sum()) - 1.0
        return gain if abs(gain) >= GAIN_MIN else 0.0


class Watched:
    """Pieces of time since a family of policies was last asked: begin, length, rates."""

    def __init__(self) -> None:
        self.pieces: list[tuple[float, float, Rates]] = []

    def add(self, begin_s: float, step_s: float, rates: Rates) -> None:
        """One more; while the rates are the same ones, the last piece gets longer."""
        if self.pieces and self.pieces[-1][2] is rates:
            first_s, length_s, _ = self.pieces[-1]
            self.pieces[-1] = (first_s, length_s + step_s, rates)
        else:
            self.pieces.append((begin_s, step_s, rates))

    def samples(self, now_s: float) -> int:
        """S, how many samples of ``SAMPLE_S`` there are."""
        return max(round((now_s - self.pieces[0][0]) / SAMPLE_S), 1)

    def weights(self, now_s: float, samples: int) -> list[tuple[Floats, Rates]]:
        """For each piece the part of each sample (S,) that it fills, and its rates."""
        if len(self.pieces) == 1:
            return [(np.ones(samples), self.pieces[0][2])]
        edges = np.linspace(self.pieces[0][0], now_s, samples + 1)
        length = edges[1] - edges[0]
        found = []
        for begin, step, rates in self.pieces:
            inside = np.minimum(edges[1:], begin + step) - np.maximum(edges[:-1], begin)
            found.append((np.clip(inside, 0.0, None) / length, rates))
        return found
