"""Networks of queues again, in plain SimPy: what the kernel's QueueingNetwork must equal.

A customer is a process. Servers and places of bounded stations are SimPy's Resources, so that order
of service, holding and blocking are SimPy's own. Draws come from the same streams.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from math import ceil, inf
from typing import Any, Literal

import numpy as np
import simpy

from numatwin.sim._kernel import Durations, FlowNetwork, QueueingNetwork
from numatwin.sim.kernel.streams import stream

SimPyProcess = Generator[simpy.Event, Any, None]
Row = tuple[int, int, int, int]
ARRIVE, DEPART, HOLD, LOSE = range(4)


@dataclass(frozen=True)
class Station:
    """``route``: where to with which probability; what is missing to 1 leaves."""

    kind: Literal["fifo", "shared", "delay", "bounded", "transfer"]
    service: Durations
    servers: int = 1
    room: int | None = None
    links: tuple[int, ...] = ()
    cap: float = inf
    route: tuple[float, ...] = ()
    between: Durations | None = None
    """Between arrivals from a source."""
    customers: int = 0
    """From the start."""


@dataclass(frozen=True)
class Network:
    """``links``: their capacities."""

    stations: tuple[Station, ...]
    links: tuple[float, ...] = ()
    seed: int = 1
    replication: int = 0

    def kernel(self) -> QueueingNetwork:
        """The same in the kernel."""
        network = QueueingNetwork(self.seed, self.replication)
        for capacity in self.links:
            network.add_link(capacity)
        for s, station in enumerate(self.stations):
            draws = station.service, self.stream(f"service {s}")
            if station.kind == "fifo":
                network.add_fifo(*draws, station.servers)
            elif station.kind == "shared":
                network.add_shared(*draws, station.servers)
            elif station.kind == "delay":
                network.add_delay(*draws)
            elif station.kind == "bounded":
                network.add_bounded(*draws, station.servers, station.room)
            else:
                network.add_transfer(*draws, np.array(station.links), station.cap)
        for s, station in enumerate(self.stations):
            if station.route:
                network.set_route(s, np.array(station.route), self.stream(f"route {s}"))
            if station.between is not None:
                network.add_source(s, station.between, self.stream(f"source {s}"))
            network.add_customers(s, station.customers)
        return network

    def stream(self, name: str) -> Any:
        """The stream of that name, from its beginning."""
        return stream(self.seed, self.replication, name)


class SharedServer:
    """Processor sharing on a virtual clock: each of n jobs gets min(1, servers / n)."""

    def __init__(self, env: simpy.Environment, servers: int) -> None:
        self.env, self.servers = env, servers
        self.virtual, self.rate, self.since = 0.0, 0.0, 0
        self.jobs: list[tuple[float, int, simpy.Event]] = []
        self.admitted = 0
        self.changes = 0

    def serve(self, work: int) -> simpy.Event:
        """An event for the end of that much work."""
        self.progress()
        done = self.env.event()
        self.jobs.append((self.virtual + float(work), self.admitted, done))
        self.admitted += 1
        self.share()
        return done

    def progress(self) -> None:
        passed = float(self.env.now - self.since)
        self.since = int(self.env.now)
        if self.jobs:
            self.virtual += self.rate * passed

    def share(self) -> None:
        self.changes += 1
        if not self.jobs:
            return
        self.rate = min(1.0, float(self.servers) / float(len(self.jobs)))
        missing = min(self.jobs)[0] - self.virtual
        wait = ceil(missing / self.rate) if missing > 0 else 0
        planned = self.changes
        self.env.timeout(wait).callbacks.append(lambda _: self.finish(planned))

    def finish(self, planned: int) -> None:
        if planned != self.changes:
            return
        self.progress()
        first = min(self.jobs)
        self.virtual = max(self.virtual, first[0])
        self.jobs.remove(first)
        if not self.jobs:
            self.virtual = 0.0
        self.share()
        first[2].succeed()


class SharedLinks:
    """A FlowNetwork on SimPy's clock."""

    def __init__(self, env: simpy.Environment, capacities: tuple[float, ...]) -> None:
        self.env = env
        self.network = FlowNetwork(np.array(capacities))
        self.ends: dict[int, simpy.Event] = {}
        self.changes = 0

    def transfer(self, links: tuple[int, ...], volume: int, cap: float) -> simpy.Event:
        """An event for the end of that transfer."""
        self.advance()
        flow = self.network.start_flow(np.array(links), float(volume), cap=cap)
        self.ends[flow] = self.env.event()
        self.plan()
        return self.ends[flow]

    def advance(self) -> None:
        for flow in self.network.advance(float(self.env.now))[1]:
            self.ends.pop(int(flow)).succeed()

    def plan(self) -> None:
        self.changes += 1
        planned, at = self.changes, self.network.next_event()
        if at < inf:
            wait = max(ceil(at) - self.env.now, 0)
            self.env.timeout(wait).callbacks.append(lambda _: self.due(planned))

    def due(self, planned: int) -> None:
        if planned == self.changes:
            self.advance()
            self.plan()


@dataclass
class Run:
    """A network while it runs, and its trace."""

    network: Network
    env: simpy.Environment = field(default_factory=simpy.Environment)
    trace: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.created = 0
        stations = self.network.stations
        services = [self.network.stream(f"service {k}") for k in range(len(stations))]
        self.draw: list[Callable[[], int]] = [
            partial(station.service.draw, service)
            for station, service in zip(stations, services, strict=True)
        ]
        self.route = [self.network.stream(f"route {k}") for k in range(len(stations))]
        self.server = [simpy.Resource(self.env, s.servers) for s in stations]
        self.place = [simpy.Resource(self.env, s.room or 10**9) for s in stations]
        self.shared = [SharedServer(self.env, s.servers) for s in stations]
        self.links = SharedLinks(self.env, self.network.links)
        for k, station in enumerate(stations):
            for _ in range(station.customers):
                self.env.process(self.customer(k, self.new_customer()))
        for k, station in enumerate(stations):
            if station.between is not None:
                self.env.process(self.source(k, station.between))

    def new_customer(self) -> int:
        self.created += 1
        return self.created - 1

    def record(self, event: int, station: int, customer: int) -> None:
        self.trace.append((int(self.env.now), event, station, customer))

    def source(self, station: int, between: Durations) -> SimPyProcess:
        draws = self.network.stream(f"source {station}")
        while True:
            yield self.env.timeout(between.draw(draws))
            self.env.process(self.customer(station, self.new_customer()))

    def customer(self, station: int | None, serial: int) -> SimPyProcess:
        before: int | None = None
        release: Callable[[], None] = lambda: None  # noqa: E731
        while station is not None:
            facts, place, turn = self.network.stations[station], self.place[station], None
            if facts.kind == "bounded":
                if before is None and place.count == place.capacity:
                    return self.record(LOSE, station, serial)
                turn = place.request()
                if not turn.triggered:
                    self.record(HOLD, station, serial)
                yield turn
            if before is not None:
                self.record(DEPART, before, serial)
            self.record(ARRIVE, station, serial)
            release()
            release = lambda: None  # noqa: E731
            server = self.server[station]
            if facts.kind == "bounded":
                assert turn is not None
                served = server.request()
                yield served
                yield self.env.timeout(self.draw[station]())

                def release(
                    place: Any = place, turn: Any = turn, server: Any = server, served: Any = served
                ) -> None:
                    server.release(served)
                    place.release(turn)
            elif facts.kind == "fifo":
                service = self.draw[station]()
                with server.request() as turn_to_serve:
                    yield turn_to_serve
                    yield self.env.timeout(service)
            elif facts.kind == "delay":
                yield self.env.timeout(self.draw[station]())
            elif facts.kind == "shared":
                yield self.shared[station].serve(self.draw[station]())
            else:
                volume = self.draw[station]()
                yield self.links.transfer(facts.links, volume, facts.cap)
            before, station = station, self.next_station(station)
        assert before is not None
        self.record(DEPART, before, serial)
        release()

    def next_station(self, station: int) -> int | None:
        targets: list[int | None] = [
            k for k, p in enumerate(self.network.stations[station].route) if p > 0
        ]
        sums = [0.0, *accumulate(p for p in self.network.stations[station].route if p > 0)]
        if sums[-1] < 1:
            targets.append(None)
            sums.append(1.0)
        if len(targets) == 1:
            return targets[0]
        found = bisect_right(sums, self.route[station].uniform() * sums[-1]) - 1
        return targets[min(found, len(targets) - 1)]


def simpy_trace(network: Network, until_ps: int) -> list[Row]:
    """What happens before ``until_ps``; within one picosecond, in the order of customers."""
    run = Run(network)
    run.env.run(until=until_ps)
    return in_order(run.trace)


def kernel_trace(network: Network, *until_ps: int) -> list[Row]:
    """The same from the kernel, stopped at each of the times."""
    kernel = network.kernel()
    kernel.keep_trace()
    for until in until_ps:
        kernel.run(until)
    return in_order([tuple(row) for row in kernel.trace().tolist()])


def in_order(trace: list[Row]) -> list[Row]:
    """By time; then by customer, as SimPy's Resources pass on in a step of their own."""
    return sorted(trace, key=lambda row: (row[0], row[3]))
