"""The compiled commit models, run and read like the reference ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, fields

from ..._kernel import CommitSetup, OneSidedCommits, TwoPhaseCommits
from ...machine.processors import Processors
from .history import CAUSES, Row
from .parameters import CommitParameters, MessageCost
from .result import QUANTILES, CommitResult, Latencies
from .workload import compute_times, key_draws, stream_keys, think_times

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
    entries = max(len(p.costs[name]) for name in p.message_types)
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
    setup.streams = stream_keys(p, seed, replication).reshape(-1).tolist()
    setup.traced = traced
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
