"""Networks of queues in plain SimPy, and on the kernel's headers: these must give one trace.

In SimPy a customer is a process. Servers are SimPy's Resources, so that the order of service is
SimPy's own. On the kernel it is ``queueing_network.cpp``, compiled on first use. Draws come from
the same streams.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
from bisect import bisect_right
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import accumulate
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest
import simpy

from numatwin.sim._kernel import Durations
from numatwin.sim.kernel.streams import stream, stream_key

HERE = Path(__file__).parent
SimPyProcess = Generator[simpy.Event, Any, None]
Row = tuple[int, int, int, int]
Rows = npt.NDArray[np.int64]
ARRIVE, DEPART = range(2)


@dataclass(frozen=True)
class Times:
    """Durations by name: the name of their maker, and its arguments; empirical: two times, then
    their weights.
    """

    kind: Literal["deterministic", "exponential", "uniform", "empirical"]
    values: tuple[float, ...]

    def durations(self) -> Durations:
        """The kernel's."""
        if self.kind == "empirical":
            return Durations.empirical([int(t) for t in self.values[:2]], self.values[2:])
        made: Durations = getattr(Durations, self.kind)(*self.values)
        return made


@dataclass(frozen=True)
class Station:
    """``route``: where to with which probability; what is missing to 1 leaves."""

    kind: Literal["fifo", "delay"]
    service: Times
    servers: int = 1
    route: tuple[float, ...] = ()
    between: Times | None = None
    """Between arrivals from a source."""
    customers: int = 0
    """From the start."""


@dataclass(frozen=True)
class Network:
    """Stations, and what its streams are drawn from."""

    stations: tuple[Station, ...]
    seed: int = 1
    replication: int = 0

    def text(self) -> str:
        """For ``queueing_network``: how many stations; then of each its kind, servers, service,
        stream of routes, source, customers, and where to."""
        words: list[object] = [len(self.stations)]
        for s, station in enumerate(self.stations):
            words += [station.kind, station.servers, *self._draws(f"service {s}", station.service)]
            words += self._key(f"route {s}")
            words += ["none"]
            if station.between is not None:
                words[-1:] = self._draws(f"source {s}", station.between)
            words += [station.customers, *(station.route or (0.0,) * len(self.stations))]
        return " ".join(map(str, words))

    def _draws(self, name: str, times: Times) -> list[object]:
        return [times.kind, len(times.values), *times.values, *self._key(name)]

    def _key(self, name: str) -> tuple[int, int]:
        return stream_key(self.seed, self.replication, name)

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
            partial(station.service.durations().draw, service)
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

    def source(self, station: int, between: Times) -> SimPyProcess:
        draws, durations = self.network.stream(f"source {station}"), between.durations()
        while True:
            yield self.env.timeout(durations.draw(draws))
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


@cache
def program() -> Path:
    """``queueing_network``, compiled."""
    compiler = os.environ.get("CXX", "g++")
    if shutil.which(compiler) is None:
        pytest.skip(f"no C++ compiler: {compiler}")
    folder = mkdtemp()
    atexit.register(shutil.rmtree, folder)
    made = Path(folder) / "queueing_network"
    flags = ["-std=c++20", "-O2", "-ffp-contract=off", f"-I{HERE.parents[1] / 'sim'}"]
    source = str(HERE / "queueing_network.cpp")
    subprocess.run([compiler, *flags, source, "-o", str(made)], check=True)
    return made


def kernel_rows(network: Network, *until_ps: int) -> Rows:
    """The trace on the kernel, stopped at each of the times: [rows, 4]."""
    done = subprocess.run(
        [program(), *map(str, until_ps)],
        input=network.text().encode(),
        capture_output=True,
        check=True,
    )
    return np.frombuffer(done.stdout, np.int64).reshape(-1, 4)


def kernel_trace(network: Network, *until_ps: int) -> list[Row]:
    """The same rows, in the order of ``simpy_trace``."""
    return in_order([tuple(row) for row in kernel_rows(network, *until_ps).tolist()])


def in_order(trace: list[Row]) -> list[Row]:
    """By time; then by customer, as SimPy's Resources pass on in a step of their own."""
    return sorted(trace, key=lambda row: (row[0], row[3]))
