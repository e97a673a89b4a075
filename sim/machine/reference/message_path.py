"""The path of a message, as ``kernel/message_path.hpp``: threads, adapters and wires.

From left to right; each part is a FIFO server or a pure delay:

    sender's thread → outgoing side of its adapter → wire → incoming side → receiver's thread
    send_ps           out_ps                         wire_ps  in_ps           receive_ps

A part of 0 ps of a thread takes no thread. Within one machine there is no network, and what talks
to itself needs no message.

Paths between machines may fail for a time. A network adapter: ``kernel/adapter.hpp``.
"""

import heapq
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from typing import Any, NamedTuple

import simpy

from ..._kernel import MessageCost, PathFault, ProcessorSetup, Stream, Transport
from .processors import SharedProcessors
from .run_queues import Process as SharedProcess
from .servers import Backlog

Process = Generator[simpy.Event, Any, Any]


class Environment(simpy.Environment):
    """SimPy's, with a clock that counts whole picoseconds."""

    @property
    def now(self) -> int:
        """The time reached, in ps."""
        return int(super().now)


class LostError(Exception):
    """A place stopped while it had the message, or before it came."""


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

    def drop(self) -> None:
        """What they have not done yet is dropped."""
        self.admitted_ps = self.busy_ps()
        self.free_at = sorted(min(free, self.env.now) for free in self.free_at)

    def busy_ps(self) -> int:
        """Time that the servers were busy, up to now."""
        return self.admitted_ps - sum(max(0, free - self.env.now) for free in self.free_at)


class Place:
    """Where messages are sent and received: a process, with threads of its own or on shared
    processors. ``factor``: its threads take so many times as long. ``stopped``: it sends nothing
    that was not handed to its adapter before, and takes nothing; what its threads were at is lost.
    ``life``: how often it stopped.
    """

    def __init__(self, number: int, adapter: "Adapter", threads: Servers, factor: int = 1) -> None:
        self.number = number
        self.adapter = adapter
        self.threads = threads
        self.factor = factor
        self.stopped = False
        self.life = 0
        self.process = SharedProcess(number)

    def stop(self) -> None:
        """Until it starts again."""
        self.stopped = True
        self.life += 1

    def start(self) -> None:
        """It goes on where messages reach it."""
        self.stopped = False
        self.life += 1


class MessagePath:
    """Places on machines, and the messages between them.

    ``costs``: by type of message, then by items in it; the last entry is for more items, too.
    """

    def __init__(
        self,
        machines: int,
        costs: Mapping[str, tuple[MessageCost, ...]],
        processors: ProcessorSetup | None = None,
    ) -> None:
        self.env = Environment()
        self.processors: SharedProcessors | None = None
        if processors is not None:
            self.processors = SharedProcessors(self.env, processors)
        self.adapters = [Adapter() for _ in range(machines)]
        self.costs = costs
        self.sent: Counter[str] = Counter()
        self.never = self.env.event()
        self.paths = PathFaults()

    def note(self, kind: str, sender: Place, receiver: Place) -> None:
        """A message of another place's was received; a model may trace it."""

    def cost(self, kind: str, items: int) -> MessageCost:
        """What a message of this type costs with so many items in it."""
        entries = self.costs[kind]
        return entries[min(items, len(entries) - 1)]

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

    def post(self, sender: Place, kinds: Sequence[str]) -> Process:
        """The sender's thread writes messages, to hand them to its adapter all at once."""
        work_ps = sum(self.cost(kind, 0).send_ps for kind in kinds)
        if work_ps:
            yield self.work(sender, work_ps)
        if sender.stopped:
            yield self.never

    def carry(
        self, kind: str, sender: Place, receiver: Place, items: int = 0, work_ps: int = 0
    ) -> Process:
        """A message that was posted travels, and the receiver's thread takes it and does its work.

        Raises LostError where the receiver has stopped, or stops before that is done.
        """
        self.sent[kind] += 1
        cost = self.cost(kind, items)
        if sender.adapter is not receiver.adapter:
            last_bits = yield from self.pass_over(kind, sender, receiver, cost)
            received = receiver.adapter.receive(self.env.now, cost.in_ps, last_bits)
            yield self.env.timeout(received - self.env.now)
        if receiver.stopped:
            raise LostError
        work_ps += cost.receive_ps
        if work_ps:
            life = receiver.life
            yield self.work(receiver, work_ps, sender, cost.parts)
            if receiver.stopped or receiver.life != life:
                raise LostError
        self.note(kind, sender, receiver)

    def pass_over(self, kind: str, sender: Place, receiver: Place, cost: MessageCost) -> Process:
        """The sender's adapter sends, again where the path loses or is too late; when the last bits
        can be there.

        Its first bits are there as this returns.
        """
        if not self.paths.active:
            first_bits, last_bits = sender.adapter.send(self.env.now, cost.out_ps, cost.wire_ps)
            yield self.env.timeout(first_bits - self.env.now)
            return last_bits
        machines = self.adapters.index(sender.adapter), self.adapters.index(receiver.adapter)
        tries, life = 0, sender.life
        while True:
            factor = self.paths.factor(*machines)
            first_bits, last_bits = sender.adapter.send(
                self.env.now, factor * cost.out_ps, factor * cost.wire_ps
            )
            wait_ps = self.paths.wait_ps(tries)
            if not self.paths.loses(*machines):
                late_ps = self.paths.late_ps(*machines)
                reached = self.env.timeout(first_bits + late_ps - self.env.now)
                if late_ps <= wait_ps:
                    yield reached
                    return last_bits + late_ps
                late = self.comes_late(reached, kind, sender, receiver, cost, last_bits + late_ps)
                self.env.process(late)
            yield self.env.timeout(first_bits + wait_ps - self.env.now)
            if sender.life != life:
                raise LostError
            tries += 1
            self.sent[kind] += 1

    def comes_late(
        self,
        reached: simpy.Event,
        kind: str,
        sender: Place,
        receiver: Place,
        cost: MessageCost,
        last_bits: int,
    ) -> Process:
        """What was sent again before it came is received, and dropped."""
        yield reached
        received = receiver.adapter.receive(self.env.now, cost.in_ps, last_bits)
        yield self.env.timeout(received - self.env.now)
        life = receiver.life
        if not receiver.stopped and cost.receive_ps:
            yield self.work(receiver, cost.receive_ps, sender, cost.parts)
        if not receiver.stopped and receiver.life == life:
            self.note(kind, sender, receiver)

    def message(
        self, kind: str, sender: Place, receiver: Place, items: int = 0, work_ps: int = 0
    ) -> Process:
        """Posted and carried; to itself, the receiver's work only. Raises LostError."""
        life = sender.life
        if sender is not receiver:
            if post_ps := self.cost(kind, items).send_ps:
                yield self.work(sender, post_ps)
            if sender.stopped or sender.life != life:
                raise LostError
            yield from self.carry(kind, sender, receiver, items, work_ps)
        elif work_ps:
            yield self.work(receiver, work_ps)
            if receiver.life != life:
                raise LostError


class Passage(NamedTuple):
    """When the first and the last bits of a message can be at the receiver's adapter."""

    first_bits: int
    last_bits: int


class Adapter:
    """An outgoing and an incoming side, each in order of arrival; cut-through; times in ps."""

    def __init__(self) -> None:
        self.outgoing, self.incoming = Backlog(), Backlog()

    def send(self, now: int, out_ps: int, wire_ps: int) -> Passage:
        """A message is handed over; the outgoing side takes so long for it, then comes the wire."""
        last_bits = self.outgoing.serve(now, out_ps) + wire_ps
        return Passage(last_bits - out_ps, last_bits)

    def receive(self, now: int, in_ps: int, last_bits: int) -> int:
        """Its first bits are here, its last ones can be at ``last_bits``: when the host has it."""
        return max(self.incoming.serve(now, in_ps), last_bits)


class PathFaults:
    """Those that are on, and when a transport sends again what they lose."""

    def __init__(self, transport: Transport | None = None, losses: Stream | None = None) -> None:
        self.transport = transport
        self.losses = losses
        self.active: list[PathFault] = []

    def wait_ps(self, tries: int) -> int:
        """Until the next try, after so many that failed."""
        assert self.transport is not None
        transport = self.transport
        turn = tries % (transport.retries + 1)
        wait_ps = min(transport.timeout_ps * int(transport.growth**turn), transport.longest_ps)
        return wait_ps + (transport.reconnect_ps if turn == transport.retries else 0)

    def factor(self, sender: int, receiver: int) -> int:
        """How many times as long a message between two machines takes."""
        product = 1
        for fault in self._between(sender, receiver):
            product *= fault.factor
        return product

    def loses(self, sender: int, receiver: int) -> bool:
        """Whether the message is lost; draws where a path is lossy."""
        lost = False
        for fault in self._between(sender, receiver):
            if fault.loss >= 1:
                lost = True
            elif fault.loss > 0:
                assert self.losses is not None
                lost = self.losses.uniform() < fault.loss or lost
        return lost

    def late_ps(self, sender: int, receiver: int) -> int:
        """By how much the message is late; draws where some are."""
        late_ps = 0
        for fault in self._between(sender, receiver):
            if fault.late > 0:
                assert self.losses is not None
                if self.losses.uniform() < fault.late:
                    late_ps = max(late_ps, fault.late_ps)
        return late_ps

    def _between(self, sender: int, receiver: int) -> Sequence[PathFault]:
        return [f for f in self.active if f.side[sender] + f.side[receiver] == 3]
