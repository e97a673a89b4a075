"""Times of messages between cores: making them (by cores with time left), and receiving them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..kernel.sums import group_sums
from ..machine.costs import CostModel
from ..machine.demands import Exchange
from .latency import Latency

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ExchangeTimes:
    """Times (C,) of the workers of each core, per unit of work: all of it in the worker, that it
    executes, that its miss slots are taken; ``making`` and ``receiving``: the worker's time by
    step. ``source``, ``target`` (n,): each node's share in making and in receiving.
    """

    worker_s: Floats
    core_s: Floats
    miss_s: Floats
    making: Floats
    receiving: Floats
    source: Floats
    target: Floats


class ExchangeStep:
    """An exchange on the cores at ``core_node`` (C,), ``threads`` (C,) workers on each."""

    def __init__(
        self, exchange: Exchange, costs: CostModel, core_node: Ints, threads: Floats
    ) -> None:
        self.exchange, self.costs = exchange, costs
        self.node, self.threads = core_node, threads
        self.shares = np.full(len(core_node), 1.0 / len(core_node))  # (C,) in making messages

    def times(self, worker_s: Floats, latency: Latency) -> ExchangeTimes:
        """Where workers spend ``worker_s`` (C,) on all else; who has time makes messages."""
        exchange, node, n = self.exchange, self.node, len(self.costs.machine.nodes)
        handed = self.costs.hand_overs
        write_slots, read_slots = handed.write_slots[node], handed.read_slots[node]
        # What a worker sends to itself stays where it is.
        remote = 1.0 - exchange.received if handed.own_cached else np.ones(len(node))
        target = group_sums(node, exchange.received, n)
        to_target = latency.handed_s(target)
        lines = exchange.lines + exchange.answer_lines
        send_core = exchange.send_s[node]
        make_core = exchange.make_s[node] + send_core
        make_miss = remote * lines * to_target[node] / write_slots
        # A worker waits for each of its atomic operations; the last of a hand-over lets no later
        # instruction pass before what it copied has arrived.
        make_worker = exchange.make_s[node] + self._handing(send_core, make_miss)
        make_worker = make_worker + remote * exchange.atomics * to_target[node]
        receive_core = exchange.received * exchange.receive_s[node]
        receive_core = receive_core + exchange.more_s
        for _ in range(2):  # who receives reads from who makes: once more settles it
            source = group_sums(node, self.shares, n)
            if handed.own_cached:
                remote = 1.0 - self.shares
            from_source = latency.handed_s(source)[node]
            receive_miss = remote * exchange.received * lines * from_source / read_slots
            waits = exchange.waits(self.shares, self.threads, remote)
            receive_worker = self._handing(receive_core, receive_miss) + waits * from_source
            self.shares = spare_time_shares(worker_s + receive_worker, make_worker)
        return ExchangeTimes(
            worker_s=self.shares * make_worker + receive_worker,
            core_s=self.shares * make_core + receive_core,
            miss_s=self.shares * make_miss + receive_miss,
            making=self.shares * make_worker,
            receiving=receive_worker,
            source=source,
            target=target,
        )

    def _handing(self, core_s: Floats, held_s: Floats) -> Floats:
        """Time that a step takes in one worker whose lines come from another core, or go there."""
        if self.costs.hand_overs.additive:
            return core_s + held_s * self.threads
        return overlapped(core_s, held_s, self.threads)


def overlapped(core_s: Floats, held_s: Floats, threads: Floats) -> Floats:
    """Time that a step takes in one worker: instructions and misses overlap.

    The threads of a core divide its reorder window and its line-fill buffers among them.
    """
    return np.maximum(core_s, held_s * threads)


def spare_time_shares(own_s: Floats, issue_s: Floats) -> Floats:
    """(C,) shares of the work that any core can do, for all cores to finish as early as possible.

    ``own_s`` (C,): time each core spends on its own part of a unit, ``issue_s`` (C,): on the whole
    of the shared part. Cores up to a common level of time fill up: water-filling.
    """
    # Only differences in time count, and only in proportion to the shared part.
    cost_s = np.maximum(issue_s, 1e-30)
    head = (own_s - own_s.min()) / cost_s
    order = np.argsort(own_s, kind="stable")
    rate, weighted = 1.0 / cost_s[order], head[order]
    # With the first k cores taking part, the level is (1 + sum own/cost) / (sum 1/cost).
    level = (1.0 + np.cumsum(weighted)) / np.cumsum(rate)
    # It falls as long as the next core is below it, and rises from there on.
    share = np.maximum(level.min() / cost_s - head, 0.0)
    return np.asarray(share / share.sum())
