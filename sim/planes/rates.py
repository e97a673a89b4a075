"""Rates of flows at one moment, and the loads that go with them.

Times of messages between cores: making them (by cores with time left), and receiving them.

Waits of bursts: what a hand-over moves goes over links in one piece, behind those of others.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._kernel import route_means, water_filling
from ..kernel.arrays import Floats, Ints
from ..kernel.sums import group_sums
from ..machine.costs import LINK_LOAD_MAX, CostModel
from ..machine.demands import Exchange
from .transfer_flows import Resources, TransferFlows


@dataclass(frozen=True)
class ExchangeTimes:
    """Times (C,) of the workers of each core, per unit of work: all of it in the worker, that it
    executes, that its miss slots are taken; ``making`` and ``receiving``: the worker's time by
    step; ``held_up``: of that, waiting for links. ``source``, ``target`` (n,): each node's share in
    making and in receiving.
    """

    worker_s: Floats
    core_s: Floats
    miss_s: Floats
    making: Floats
    receiving: Floats
    held_up: Floats
    source: Floats
    target: Floats


class ExchangeStep:
    """An exchange on the cores at ``core_node`` (C,), ``threads`` (C,) workers on each."""

    def __init__(
        self, exchange: Exchange, costs: CostModel, core_node: Ints, threads: Floats
    ) -> None:
        self.exchange, self.costs = exchange, costs
        self.node, self.threads, self.nodes = core_node, threads, len(costs.machine.nodes)
        self.shares = np.full(len(core_node), 1.0 / len(core_node))  # (C,) in making messages
        self.target = group_sums(core_node, exchange.received, self.nodes)
        handed = costs.hand_overs
        self._write_slots = handed.write_slots[core_node]
        self._read_slots = handed.read_slots[core_node]
        # What a worker sends to itself stays where it is.
        all_sent = np.ones(len(core_node))
        self._sent_away = 1.0 - exchange.received if handed.own_cached else all_sent
        lines = exchange.lines + exchange.answer_lines
        self._sent_lines = self._sent_away * lines
        self._make_core_s, self._send_core_s = (
            exchange.make_s[core_node],
            exchange.send_s[core_node],
        )
        receive_core_s = exchange.received * exchange.receive_s[core_node]
        self._receive_core_s = receive_core_s + exchange.more_s
        self._waits = exchange.waits(threads)
        self._line_s = handed.line_s
        self._to_target = (handed.line_s @ self.target)[core_node]
        self._bursts: Bursts | None = None
        if costs.machine.links and len(costs.machine.nodes) > 1:
            self._bursts = self._bursts_of(lines / exchange.bursts)

    def _bursts_of(self, lines: float) -> "Bursts":
        """Of so many ``lines`` each."""
        exchange, handed = self.exchange, self.costs.hand_overs
        threads = np.zeros(self.nodes)
        np.maximum.at(threads, self.node, self.threads)
        core_s = exchange.send_s[:, None] / exchange.bursts
        held_s = lines * handed.line_s * (threads / handed.write_slots)[:, None]
        alone_s = core_s + held_s if handed.additive else np.maximum(core_s, held_s)
        return Bursts(
            self.costs,
            lines,
            exchange.burst_square,
            float(self.threads.sum()),
            alone_s,
            self.target,
        )

    def times(
        self,
        worker_s: Floats,
        loads: "Loads",
        together: float,
        fetched: float,
        pace: Floats | float = 1.0,
    ) -> ExchangeTimes:
        """Where workers spend ``worker_s`` (C,) on all else; who has time makes messages. All take
        ``pace`` times as long as what comes of it says.

        Bursts wait for each other at links under ``loads``, ``together`` of them at once; lines
        that are waited for one by one come before them.
        """
        exchange, node = self.exchange, self.node
        own_cached = self.costs.hand_overs.own_cached
        to_target = self._to_target
        lines = exchange.lines + exchange.answer_lines
        send_core, receive_core = self._send_core_s, self._receive_core_s
        make_core = self._make_core_s + send_core
        make_miss = self._sent_lines * to_target / self._write_slots
        # A worker waits for each of its atomic operations; the last of a hand-over lets no later
        # instruction pass before what it copied has arrived.
        make_worker = self._make_core_s + self._handing(send_core, make_miss)
        remote = self._sent_away
        make_worker = make_worker + remote * exchange.atomics * to_target
        held_up = np.zeros(len(node))
        if self._bursts is not None:
            held_up = exchange.bursts * self._bursts.waits_s(loads, together, fetched)[node]
            make_worker = make_worker + held_up
        for _ in range(2):  # who receives reads from who makes: once more settles it
            source = group_sums(node, self.shares, self.nodes)
            if own_cached:
                remote = 1.0 - self.shares
            from_source = (self._line_s @ source)[node]
            receive_miss = remote * exchange.received * lines * from_source / self._read_slots
            waits = self._waits(self.shares, remote)
            receive_worker = self._handing(receive_core, receive_miss) + waits * from_source
            own_s = (worker_s + receive_worker) * pace
            self.shares = spare_time_shares(own_s, make_worker * pace)
        return ExchangeTimes(
            worker_s=self.shares * make_worker + receive_worker,
            core_s=self.shares * make_core + receive_core,
            miss_s=self.shares * make_miss + receive_miss,
            making=self.shares * make_worker,
            receiving=receive_worker,
            held_up=self.shares * held_up,
            source=source,
            target=self.target,
        )

    def _handing(self, core_s: Floats, held_s: Floats) -> Floats:
        """Time that a step takes in one worker whose lines come from another core, or go there."""
        if self.costs.hand_overs.additive:
            return core_s + held_s * self.threads
        return overlapped(core_s, held_s, self.threads)


def overlapped(
    core_s: Floats, held_s: Floats, threads: Floats, stall: Floats | float = 0.0
) -> Floats:
    """Time that a step takes in one worker: instructions and misses overlap.

    The threads of a core divide its reorder window and its line-fill buffers among them. A stream's
    lines come early or late by chance, and what is fetched ahead hides only part of that. Where the
    longer of both takes l and the shorter s, it is 3 e s^3 / (l^2 + l s + s^2) more, with the
    ``stall`` e: what is left where both take 1. With e = 1/3 this is a closed network of two
    stations, core and memory, with three pieces of work.
    """
    misses_s = held_s * threads
    longer = np.maximum(core_s, misses_s)
    if not np.any(stall):
        return longer
    shorter = np.minimum(core_s, misses_s)
    part = np.divide(shorter, longer, out=np.zeros_like(longer), where=longer > 0)
    return np.asarray(longer * (1.0 + 3.0 * stall * part**3 / (1.0 + part + part * part)))


def spare_time_shares(own_s: Floats, issue_s: Floats) -> Floats:
    """(C,) shares of the work that any core can do, for all cores to finish as early as possible.

    ``own_s`` (C,): time each core spends on its own part of a unit, ``issue_s`` (C,): on the whole
    of the shared part. Cores up to a common level of time fill up: water-filling.
    """
    share = water_filling(own_s, np.maximum(issue_s, 1e-30))
    each: Floats = share / share.sum()
    return each


# Control messages have a channel of their own on every link and go first; what is left is for data,
# at least this part where there are any.
DATA_PART_MIN = 0.05

NOBODY = 1e-300  # instead of 0, to divide by


class Bursts:
    """Bursts of ``lines`` on average, ``square`` in their mean square, that ``senders`` send, each
    of whom waits for the end of one before the next.

    Batches that come at random, M^[X]/G/1: who comes finds a link at work with the probability of
    its load U, and then waits for what is left of the burst in service and for those before it,
    with a mean of r / (1 - U), r = E[B²] / (2 E[B]); it sees the load that the other N - 1 senders
    make (Bard and Schweitzer, see ``closed_network``). That wait is taken to be exponential.

    A burst is on all links of its way at once, and over on the last of them; meanwhile its sender
    has work of its own for ``alone_s`` (n, n). So what is waited for is the largest of these. All
    that nodes send to others, in the shares ``target`` (n,), is taken together.
    """

    def __init__(
        self,
        costs: CostModel,
        lines: float,
        square: float,
        senders: float,
        alone_s: Floats,
        target: Floats,
    ) -> None:
        self.routes, self.target = costs.machine.routes, target
        self.others = 1.0 - 1.0 / max(senders, 1.0)
        self.sent_s = lines * costs.link_line_s
        self.left_s = 0.5 * square / lines * costs.link_line_s
        self.away = 1.0 - target
        away = np.where(np.eye(len(target), dtype=bool), 0.0, target)
        self.alone_s = (away * alone_s).sum(axis=1) / np.maximum(self.away, NOBODY)

    def waits_s(self, loads: "Loads", together: float, fetched: float) -> Floats:
        """(n,) how much longer than its own work a burst of each node takes on average, of which so
        much is ``fetched`` from the target before, where a link gets ``together`` times a burst at
        once (in E[B²] / E[B]).
        """
        part = np.maximum(1.0 - loads.control, DATA_PART_MIN)
        load = np.minimum((loads.links - loads.control) / part, LINK_LOAD_MAX)
        load = self.others * np.maximum(load, 0.0)
        wait_s = load * (together * self.left_s) / (part * (1.0 - load))
        # On each way, links that a burst finds at work, their waits, and how long it takes those
        # where it waits.
        there, back = self._means((load, wait_s, wait_s * self.sent_s / part))
        return self._late_s(((*there, 1.0), (*back, fetched)))

    def _means(self, per_link: Sequence[Floats]) -> tuple[tuple[Floats, ...], ...]:
        """Of each, (n,) its sum over the ways from each node to the targets; and from them back."""
        routes, target = self.routes, self.target
        if routes.nodes > routes.listed_nodes_max:
            trees = routes.entering.ravel(), routes.predecessor.ravel()
            found = route_means(*trees, np.stack(per_link, axis=1).ravel(), target)
            there, back = found.reshape(2, -1, 3).transpose(0, 2, 1)
            return tuple(there), tuple(back)
        sums = [routes.route_sums(of) for of in per_link]
        return tuple(of @ target for of in sums), tuple(target @ of for of in sums)

    def _late_s(self, ways: Sequence[tuple[Any, ...]]) -> Floats:
        sent_s = [part * s / np.maximum(w, NOBODY) for _, w, s, part in ways]
        least_s = np.maximum(self.alone_s, np.maximum(*sent_s))
        late, late_s = np.zeros((2, len(least_s)))
        for (likely, waits_s, _, _), each_s in zip(ways, sent_s, strict=True):
            mean_s = waits_s / np.maximum(likely, NOBODY) + NOBODY
            more = likely * np.exp((each_s - least_s) / mean_s)
            late, late_s = late + more, late_s + more * mean_s
        # Of links that are late then, a Poisson number, the last one's wait beyond ``least_s`` is
        # the integral of (1 - exp(-z)) / z from 0 to their mean number, near z / (1 + z/4).
        found: Floats = self.away * (least_s - self.alone_s) + late_s / (
            1.0 + 0.25 * late / np.maximum(self.away, NOBODY)
        )
        return found


@dataclass(frozen=True)
class Loads:
    """What waits depend on, and where to start from: load, 0 to 1, of memory controllers (n,) and
    directed links (2L,); the part of each link that control messages take (2L,). ``makers`` (n,):
    each node's share in making messages, where a search found it.
    """

    memory: Floats
    links: Floats
    control: Floats
    makers: Floats | None = None

    def joined(self) -> Floats:
        """All loads in one array."""
        return np.concatenate([self.memory, self.links, self.control])

    def split(self, joined: Floats) -> "Loads":
        """Loads from one array, as ``joined`` makes it."""
        n, links = len(self.memory), len(self.links)
        return Loads(joined[:n], joined[n : n + links], joined[n + links :])


@dataclass(frozen=True)
class Rates:
    """What goes on while nothing changes.

    ``flows`` (F,), ``transfers`` (T,): units per second. ``use`` (R,): of each resource, 0 to 1.
    ``binding`` (F,): the resource that holds each flow, -1 for its cap. ``steps``: by step of the
    workers' loop, the time in s that a unit takes in the workers of each core (C,); ``of_core``
    (C,): units per second that each core works for. ``memory_Bps`` (n,), ``link_Bps`` (2L,):
    traffic. ``pair_Bps`` (n, n): what each node draws from each home, transfers left out; empty
    where no pair is limited.
    """

    flows: Floats
    transfers: Floats
    use: Floats
    binding: Ints
    loads: Loads
    memory_Bps: Floats
    link_Bps: Floats
    steps: dict[str, Floats] = field(default_factory=dict)
    of_core: Floats = field(default_factory=lambda: np.zeros(0))
    pair_Bps: Floats = field(default_factory=lambda: np.zeros(0))
    transfer_flows: TransferFlows | None = None
    columns: Resources | None = None
    residual: float = 0.0
    """By how much loads that waits were computed from differ from those that came of it."""

    def with_transfers(self, transfers: Floats) -> "Rates":
        """The same with slower ``transfers`` (T,), which use less."""
        flows, columns = self.transfer_flows, self.columns
        if flows is None or columns is None:
            return self
        slower = self.transfers - transfers
        less = flows.use_of(slower, columns.count)
        less[columns.links] += less[columns.control]
        use = np.maximum(self.use - less / columns.capacity, 0.0)
        return replace(
            self,
            transfers=transfers,
            use=use,
            memory_Bps=np.maximum(self.memory_Bps - flows.memory_Bps(slower), 0.0),
            link_Bps=np.maximum(self.link_Bps - less[columns.links], 0.0),
        )
