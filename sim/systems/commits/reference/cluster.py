"""Machines on a network: threads, network adapters, and messages from one to another.

A message, from left to right; each part is a FIFO server or a pure delay:

    sender's thread → outgoing side of its adapter → wire → incoming side → receiver's thread
    send_ps           out_ps                         wire_ps  in_ps           receive_ps

A part of 0 ps of a thread takes no thread. Within one machine there is no network, and what talks
to itself needs no message.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from typing import Any

import simpy

from ....machine.processors import Processors
from ....machine.reference.adapter import Adapter
from ....machine.reference.processors import Process as SharedProcess
from ....machine.reference.processors import SharedProcessors
from ..history import MESSAGE, Row
from ..parameters import MessageCost

Process = Generator[simpy.Event, Any, Any]


class Environment(simpy.Environment):
    """SimPy's, with a clock that counts whole picoseconds."""

    @property
    def now(self) -> int:
        """The time reached, in ps."""
        return int(super().now)


class Servers:
    """Alike servers with one FIFO queue; who arrives knows at once when it will be done."""

    def __init__(self, env: Environment, count: int = 1) -> None:
        self.env = env
        self.free_at = [0] * count
        self.admitted_ps = 0

    def admit(self, service_ps: int) -> int:
        """When a job that arrives now will be done."""
        end = max(self.env.now, self.free_at[0]) + service_ps
        heapq.heapreplace(self.free_at, end)
        self.admitted_ps += service_ps
        return end

    def work(self, service_ps: int) -> simpy.Timeout:
        """A job that arrives now, to be waited for."""
        return self.env.timeout(self.admit(service_ps) - self.env.now)

    def busy_ps(self) -> int:
        """Time that the servers were busy, up to now."""
        return self.admitted_ps - sum(max(0, free - self.env.now) for free in self.free_at)


class Place:
    """Who sends and receives: a client or a node. ``factor``: a straggler's time is so much longer.

    ``stopped``: a client that died or was fenced; it does nothing more.
    """

    def __init__(self, number: int, adapter: Adapter, threads: Servers, factor: int = 1) -> None:
        self.number = number
        self.adapter = adapter
        self.threads = threads
        self.factor = factor
        self.stopped = False
        self.process = SharedProcess(number)


class Cluster:
    """Places on machines, the messages between them, and the trace of what happens."""

    def __init__(
        self,
        machines: int,
        costs: Mapping[str, tuple[MessageCost, ...]],
        types: tuple[str, ...],
        processors: Processors | None = None,
    ) -> None:
        self.env = Environment()
        self.processors: SharedProcessors | None = None
        if processors is not None:
            self.processors = SharedProcessors(self.env, processors)
        self.adapters = [Adapter() for _ in range(machines)]
        self.costs = costs
        self.types = {name: index for index, name in enumerate(types)}
        self.sent: Counter[str] = Counter()
        self.trace: list[Row] = []
        self.never = self.env.event()

    def log(self, kind: int, client: int, transaction: int, a: int, b: int = 0) -> None:
        """Adds a row to the trace."""
        self.trace.append((self.env.now, kind, client, transaction, a, b))

    def cost(self, kind: str, records: int) -> MessageCost:
        """What a message of this type costs with so many records aboard."""
        entries = self.costs[kind]
        return entries[min(records, len(entries) - 1)]

    def shared(self, place: Place) -> SharedProcessors | None:
        """The processors that the place shares with others; None: it has threads of its own."""
        processors = self.processors
        if processors is None or processors.position(place.process) is None:
            return None
        return processors

    def work(
        self, place: Place, ps: int, sender: Place | None = None, parts: int = 1
    ) -> simpy.Event:
        """The place's thread works for so long, on what it does itself or on a sender's message, of
        so many parts."""
        processors = self.shared(place)
        if processors is None:
            return place.threads.work(ps * place.factor)
        by = None if sender is None else sender.process
        return processors.work(place.process, ps * place.factor, by, parts)

    def busy_ps(self, place: Place) -> int:
        """How long the place's threads were busy, up to now."""
        processors = self.shared(place)
        if processors is None:
            return place.threads.busy_ps()
        return processors.busy_ps(place.process)

    def outgoing_busy_ps(self) -> tuple[int, ...]:
        """How long each adapter was sending, up to now."""
        return tuple(adapter.outgoing.done(self.env.now) for adapter in self.adapters)

    def incoming_busy_ps(self) -> tuple[int, ...]:
        """How long each adapter was receiving, up to now."""
        return tuple(adapter.incoming.done(self.env.now) for adapter in self.adapters)

    def give_way(self, place: Place) -> None:
        """On shared processors, lets others run first, where that is how places do it."""
        processors = self.shared(place)
        if processors is not None and processors.setup.gives_way:
            processors.give_way(place.process)

    def compute(self, place: Place, ps: int) -> Process:
        """The place works; then a place that has stopped goes no further."""
        if ps and self.shared(place) is None:
            yield self.env.timeout(ps * place.factor)
        elif ps:
            yield self.work(place, ps)
        if place.stopped:
            yield self.never

    def pause(self, place: Place, ps: int) -> Process:
        """The place's own time passes; then a place that has stopped goes no further."""
        processors = self.shared(place)
        if ps and processors is not None:
            ps *= place.factor
            awake_ps = processors.setup.awake_ps
            if ps > 2 * awake_ps:
                yield self.env.timeout(ps - awake_ps)
                ps = awake_ps
            self.give_way(place)
            if ps:
                yield processors.work(place.process, ps)
        elif ps:
            yield self.env.timeout(ps * place.factor)
        elif processors is not None and place.process.gives_way:
            # Others run first: what comes next begins when the place runs again.
            yield processors.work(place.process, 0)
        if place.stopped:
            yield self.never

    def post(self, sender: Place, kinds: Sequence[str], records: int = 0) -> Process:
        """The sender's thread writes messages, to hand them to its adapter all at once."""
        work_ps = sum(self.cost(kind, records).send_ps for kind in kinds)
        if work_ps:
            yield self.work(sender, work_ps)
        if sender.stopped:
            yield self.never

    def carry(
        self, kind: str, sender: Place, receiver: Place, records: int = 0, work_ps: int = 0
    ) -> Process:
        """A message that was posted travels, and the receiver's thread takes it and does its work.

        Nobody takes what reaches a client that has stopped.
        """
        self.sent[kind] += 1
        cost = self.cost(kind, records)
        if sender.adapter is not receiver.adapter:
            first_bits, last_bits = sender.adapter.send(self.env.now, cost.out_ps, cost.wire_ps)
            yield self.env.timeout(first_bits - self.env.now)
            received = receiver.adapter.receive(self.env.now, cost.in_ps, last_bits)
            yield self.env.timeout(received - self.env.now)
        if receiver.stopped:
            yield self.never
        work_ps += cost.receive_ps
        if work_ps:
            yield self.work(receiver, work_ps, sender, cost.parts)
        if receiver.stopped:
            yield self.never
        self.log(MESSAGE, sender.number, receiver.number, self.types[kind])

    def message(
        self, kind: str, sender: Place, receiver: Place, records: int = 0, work_ps: int = 0
    ) -> Process:
        """Posted and carried; to itself, the receiver's work only."""
        if sender is not receiver:
            yield from self.post(sender, [kind], records)
            yield from self.carry(kind, sender, receiver, records, work_ps)
        elif work_ps:
            yield self.work(receiver, work_ps)

    def together(self, parts: list[Process]) -> Process:
        """Runs all parts at once, waits for the last of them, and returns what each returned."""
        results: list[Any] = [None] * len(parts)
        done = self.env.event()
        left = len(parts)

        def run(index: int, part: Process) -> Process:
            nonlocal left
            results[index] = yield from part
            left -= 1
            if left == 0:
                done.succeed()

        for index, part in enumerate(parts):
            self.env.process(run(index, part))
        if parts:
            yield done
        return results
