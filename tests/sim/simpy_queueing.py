"""Networks of queues again, in plain SimPy: what the kernel's QueueingNetwork must equal.

A customer is a process. Servers are SimPy's Resources, so that the order of service is SimPy's own.
Draws come from the same streams.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Any, Literal

import numpy as np
import simpy

from numatwin.sim._kernel import Durations, QueueingNetwork
from numatwin.sim.kernel.streams import stream

SimPyProcess = Generator[simpy.Event, Any, None]
Row = tuple[int, int, int, int]
ARRIVE, DEPART = range(2)


@dataclass(frozen=True)
class Station:
    """``route``: where to with which probability; what is missing to 1 leaves."""

    kind: Literal["fifo", "delay"]
    service: Durations
    servers: int = 1
    route: tuple[float, ...] = ()
    between: Durations | None = None
    """Between arrivals from a source."""
    customers: int = 0
    """From the start."""


@dataclass(frozen=True)
class Network:
    """Stations, and what its streams are drawn from."""

    stations: tuple[Station, ...]
    seed: int = 1
    replication: int = 0

    def kernel(self) -> QueueingNetwork:
        """The same in the kernel."""
        network = QueueingNetwork(self.seed, self.replication)
        for s, station in enumerate(self.stations):
            draws = station.service, self.stream(f"service {s}")
            if station.kind == "fifo":
                network.add_fifo(*draws, station.servers)
            else:
                network.add_delay(*draws)
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
        while station is not None:
            if before is not None:
                self.record(DEPART, before, serial)
            self.record(ARRIVE, station, serial)
            service = self.draw[station]()
            if self.network.stations[station].kind == "fifo":
                with self.server[station].request() as turn:
                    yield turn
                    yield self.env.timeout(service)
            else:
                yield self.env.timeout(service)
            before, station = station, self.next_station(station)
        assert before is not None
        self.record(DEPART, before, serial)

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
