"""The compiled commit models, run and read like the reference ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, fields

from ..._kernel import CommitSetup, OneSidedCommits, TwoPhaseCommits
from ...kernel.streams import stream_key
from .apart import STREAM
from .history import CAUSES, Row
from .parameters import CommitParameters, MessageCost
from .processors import Processors
from .result import QUANTILES, CommitResult, Latencies
from .workload import (
    compute_times,
    key_draws,
    pace_streams,
    step_streams,
    stream_keys,
    think_times,
    turn_streams,
)

# What has the same name and meaning in CommitSetup.
SAME = (
    *("machines", "storage", "managers", "timestamps", "records", "reads", "updates", "inserts"),
    *("backoff_ps", "poll_ps", "retries", "every_rm", "versions"),
    *("read_work_ps", "check_work_ps", "install_work_ps"),
    *("timestamp_bits", "send_queue", "snapshot_every", "client_machine"),
)
# What of Processors has which name there.
PROCESSORS = {
    part.name: "processors" if part.name == "count" else f"processor_{part.name}"
    for part in fields(Processors)
    if part.name not in ("turns", "paces")
}


class KernelCommitModel:
    """A cluster whose clients run transactions, message by message.

    ``traced``: keep the trace (some fifty rows a transaction); else ``trace()`` is empty.
    """

    def __init__(
        self,
        parameters: CommitParameters,
        seed: int = 0,
        replication: int = 0,
        *,
        traced: bool = False,
    ) -> None:
        self.parameters = parameters
        model = OneSidedCommits if parameters.one_sided else TwoPhaseCommits
        self._kernel = model(
            _setup(parameters, seed, replication, traced),
            key_draws(parameters),
            think_times(parameters),
            compute_times(parameters),
            seed,
            replication,
        )

    def run(self, until_ps: int) -> None:
        """Goes on to that time; what happens just then comes after.

        Ctrl-C raises KeyboardInterrupt between two events; a further run goes on from there.
        """
        self._kernel.run(until_ps)

    @property
    def now_ps(self) -> int:
        """The time reached."""
        return self._kernel.now_ps

    @property
    def events(self) -> int:
        """Events handled so far."""
        return self._kernel.events

    @property
    def commits(self) -> int:
        """Transactions that committed so far."""
        return self._kernel.commits

    @property
    def latency_total_ps(self) -> int:
        """The sum of their latencies."""
        return self._kernel.latency_total_ps

    def busy_ps(self) -> list[int]:
        """How long each card was busy outwards, then inwards, the threads of each node (summed),
        and those of all clients together."""
        kernel, clients = self._kernel, len(self.parameters.client_machine)
        threads = kernel.threads_busy_ps
        cards = [*kernel.outgoing_busy_ps, *kernel.incoming_busy_ps]
        return [*cards, *threads[clients:], sum(threads[:clients])]

    def latency_buckets(self) -> list[int]:
        """How many latencies fell into each bucket of the kernel's histogram, from 0 on."""
        return list(self._kernel.latency_buckets)

    def trace(self) -> list[Row]:
        """All that happened so far: see history.py."""
        return [tuple(row) for row in self._kernel.trace().tolist()]

    def result(self) -> CommitResult:
        """Counts and busy times up to now."""
        kernel, clients = self._kernel, len(self.parameters.client_machine)
        threads = kernel.threads_busy_ps
        quantiles: dict[str, float | None] = dict.fromkeys(QUANTILES)
        if kernel.commits:
            quantiles = {n: float(kernel.latency_quantile_ps(q)) for n, q in QUANTILES.items()}
        return CommitResult(
            time_ps=kernel.now_ps,
            commits=kernel.commits,
            given_up=kernel.given_up,
            aborts=dict(zip(CAUSES, kernel.aborts, strict=True)),
            messages=dict(zip(self.parameters.message_types, kernel.sent, strict=True)),
            outgoing_busy_ps=tuple(kernel.outgoing_busy_ps),
            incoming_busy_ps=tuple(kernel.incoming_busy_ps),
            node_busy_ps=tuple(threads[clients:]),
            client_busy_ps=sum(threads[:clients]),
            latency_ps=Latencies(kernel.commits, kernel.latency_total_ps, **quantiles),
        )


def _setup(parameters: CommitParameters, seed: int, replication: int, traced: bool) -> CommitSetup:
    p = parameters
    setup = CommitSetup()
    for name in SAME:
        setattr(setup, name, getattr(p, name))
    factors = {straggler.client: straggler.factor for straggler in p.stragglers}
    setup.client_factor = [factors.get(client, 1) for client in range(len(p.client_machine))]
    setup.node_machine = [node.machine for node in p.nodes]
    setup.node_threads = [node.threads for node in p.nodes]
    known = [p.costs] if p.apart is None else [p.costs, p.apart.costs]
    entries = max(len(costs[name]) for costs in known for name in p.message_types)
    setup.cost_entries = entries
    setup.costs = _plain(p.costs, p.message_types, entries)
    setup.death_client = [death.client for death in p.deaths]
    setup.death_ps = [death.at_ps for death in p.deaths]
    for name in ("lease_ps", "skip_after_ps"):
        value = getattr(p, name)
        setattr(setup, name, -1 if value is None else value)
    setup.start_ps = list(p.start_ps)
    setup.timestamp_reach = p.timestamp_reach or 0
    setup.in_step, setup.doorbell = p.in_step, p.doorbell
    if p.processors is not None:
        for part, name in PROCESSORS.items():
            setattr(setup, name, getattr(p.processors, part))
        if (turns := p.processors.turns) is not None:
            keys = [stream_key(seed, replication, name) for name in turn_streams(p.processors)]
            setup.set_turns(turns.setup(), keys)
        if (paces := p.processors.paces) is not None:
            keys = [stream_key(seed, replication, name) for name in pace_streams(p.processors)]
            setup.set_paces(paces.lasts_ps, paces.share, paces.slowdown, keys)
    setup.streams = stream_keys(p, seed, replication).reshape(-1).tolist()
    setup.traced = traced
    if p.spreads or p.wake_spread is not None:
        _set_spreads(setup, p, seed, replication)
    if p.apart is not None:
        costs = _plain(p.apart.costs, p.message_types, entries)
        key = stream_key(seed, replication, STREAM)
        setup.set_apart(p.apart.near_ps, p.apart.apart_ps, costs, key)
    return setup


def _plain(
    costs: Mapping[str, tuple[MessageCost, ...]], types: tuple[str, ...], entries: int
) -> list[int]:
    return [
        part
        for name in types
        for k in range(entries)
        for part in astuple(costs[name][min(k, len(costs[name]) - 1)])
    ]


def _set_spreads(setup: CommitSetup, p: CommitParameters, seed: int, replication: int) -> None:
    of_type = [p.spreads.get(name) for name in p.message_types]
    tables = list(dict.fromkeys(s for s in (*of_type, p.wake_spread) if s is not None))
    at = {table: index for index, table in enumerate(tables)} | {None: -1}
    setup.set_spreads(
        [table.draws() for table in tables],
        [at[spread] for spread in of_type],
        at[p.wake_spread],
        [word for name in step_streams(p) for word in stream_key(seed, replication, name)],
    )
