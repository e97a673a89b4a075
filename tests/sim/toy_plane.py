"""A plane that draws at random and whose answers are known: one server with one queue (M/M/1).

Work arrives at random, with exponential gaps; service takes exponential times; first come, first
served. With λ arrivals and μ services per second a customer stays for an exponential time with
mean 1 / (μ - λ), and the server is busy for λ / μ of the time.
"""

import os
import signal
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from small_scenarios import LOOKUP, small_file

from numatwin.sim.kernel.histogram import Histogram
from numatwin.sim.kernel.streams import stream_key
from numatwin.sim.planes.outcome import Outcome, ResourceUse, Why
from numatwin.sim.planes.plane import Command, Experiment, StartPhase
from numatwin.sim.run.scenario import Scenario, load_scenario
from numatwin.sim.systems.eris.commands import BalancingObservation

EDGES_NS = np.array([0.0, *(10.0 * 1.01 ** np.arange(1_600))])
CHUNK = 1_024
SERVER = "server"


class Draws:
    """Exponential draws with mean 1, of a named stream."""

    def __init__(self, seed: int, replication: int, name: str) -> None:
        key = np.array(stream_key(seed, replication, name), dtype=np.uint64)
        self._generator = np.random.Generator(np.random.Philox(key=key))
        self._left: deque[float] = deque()

    def __call__(self) -> float:
        if not self._left:
            self._left.extend(self._generator.exponential(size=CHUNK).tolist())
        return self._left.popleft()


@dataclass(frozen=True)
class Queue:
    """Makes the plane. ``waiting`` customers are there at time 0, so that there is a warm-up.

    ``interrupted_in``: in this replication Ctrl-C comes, to this process, half-way.
    """

    arrivals_per_s: float = 5e5
    services_per_s: float = 1e6
    waiting: int = 0
    interrupted_in: int | None = None

    def __call__(self, scenario: Experiment, replication: int) -> "QueuePlane":
        return QueuePlane(self, scenario, replication)


class QueuePlane:
    """Plays one replication, customer by customer."""

    def __init__(self, queue: Queue, scenario: Experiment, replication: int) -> None:
        self.queue, self.time_s, self.steps = queue, 0.0, 0
        self._gap, self._service = (
            Draws(scenario.seed, replication, name) for name in ("arrivals", "services")
        )
        interrupted = queue.interrupted_in == replication
        self._interrupted_s = scenario.horizon_s / 2 if interrupted else None
        self._came = deque([0.0] * queue.waiting)
        self._arrival_s = self._gap() / queue.arrivals_per_s
        self._departure_s = self._begin(0.0) if queue.waiting else np.inf
        self.start_counting()

    def start_counting(self) -> None:
        self._since_s, self._busy_s, self._done, self._stayed_s = self.time_s, 0.0, 0, 0.0
        self._latencies_ns: list[float] = []

    def _begin(self, at_s: float) -> float:
        return at_s + self._service() / self.queue.services_per_s

    def advance(self, until_s: float) -> None:
        if self._interrupted_s is not None and until_s >= self._interrupted_s:
            os.kill(os.getpid(), signal.SIGINT)
        while (next_s := min(self._arrival_s, self._departure_s)) < until_s:
            self._pass(next_s)
            self.steps += 1
            if next_s == self._departure_s:
                stayed_s = next_s - self._came.popleft()
                self._done += 1
                self._stayed_s += stayed_s
                self._latencies_ns.append(stayed_s * 1e9)
                self._departure_s = self._begin(next_s) if self._came else np.inf
            else:
                self._came.append(next_s)
                if len(self._came) == 1:
                    self._departure_s = self._begin(next_s)
                self._arrival_s = next_s + self._gap() / self.queue.arrivals_per_s
        self._pass(until_s)

    def _pass(self, until_s: float) -> None:
        if self._came:
            self._busy_s += until_s - self.time_s
        self.time_s = until_s

    def totals(self) -> Mapping[str, float]:
        return {
            "throughput/lookup": self._done,
            "under_way/lookup": self._stayed_s,
            f"utilisation/{SERVER}": self._busy_s,
        }

    def observe(self, family: str) -> BalancingObservation:
        return BalancingObservation(self.time_s, 0.0, {})

    def apply(self, commands: Sequence[Command]) -> None:
        assert all(isinstance(command, StartPhase) for command in commands)

    def outcome(self) -> Outcome:
        counted_s = self.time_s - self._since_s
        counts, _ = np.histogram(self._latencies_ns, EDGES_NS)
        return Outcome(
            throughput={"lookup": self._done / counted_s},
            operations={"lookup": self._done},
            bandwidth_Bps={"memory": 64.0 * self._done / counted_s, "links": None},
            resources=(ResourceUse(SERVER, "cores", self._busy_s / counted_s, node=0),),
            why={"lookup": Why(SERVER, ())},
            model={"served": self._done, "rule": "first come, first served"},
            warnings=("a toy",),
            steps=self.steps,
            latencies_ns={"lookup": Histogram(EDGES_NS, counts, float(np.sum(self._latencies_ns)))},
        )


def toy_scenario(
    folder: Path,
    horizon: str = "20 ms",
    *,
    policy: str | None = None,
    workload: str | None = None,
    **statistics: Any,
) -> Scenario:
    """A scenario for it; its machine is no matter. ``workload``: a setting of its workload."""
    path = small_file(folder, LOOKUP)
    settings = [f"statistics.{name}={value}" for name, value in statistics.items()]
    if workload is not None:
        settings.append(f"workload.{workload}")
    if policy is not None:
        settings.append("policies.balancing.period=10 ms")
    return load_scenario(path, policy=policy, settings=[f"horizon={horizon}", *settings])
