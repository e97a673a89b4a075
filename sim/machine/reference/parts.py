"""All parts of one machine together, and models that are made of them, as ``kernel/parts.hpp``."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import simpy

from ..._kernel import Histogram, PartsSetup, Stream
from ..disturbances.facts import Interruptions
from ..disturbances.reference.disturbances import Disturbances
from .clock import run_until
from .core import CoreWork
from .interconnect import Interconnect, Routes
from .memory_controller import LoadCurve, MemoryController
from .os_thread import OsThreads
from .servers import rounded

Process = Generator[simpy.Event, None, None]


class Parts:
    """Threads on cores, memory controllers and links. Coherence is left out: a read asks no third
    node. Times in ps."""

    def __init__(self, setup: PartsSetup) -> None:
        n = len(setup.read_ps)
        self.threads = OsThreads(setup.core_node, setup.core)
        self.curve = LoadCurve(setup.load, setup.load_ratio)
        self.idle_ps = np.reshape(setup.latency_ps, (n, n)).tolist()
        self.handed_ps = np.reshape(setup.handed_ps, (n, n)).tolist()
        self.memory = [
            MemoryController(setup.read_ps[k], setup.write_ps[k], self.idle_ps[k][k])
            for k in range(n)
        ]
        self.disturbances = Disturbances()
        if setup.interruption_keys:
            kinds = tuple(setup.interruption_ps), tuple(setup.interruption_share)
            self.disturbances = Disturbances(
                Interruptions(setup.interrupted_every_ps, *kinds),
                [Stream(*key) for key in setup.interruption_keys],
            )
        self.links = Interconnect(
            setup.link_data_ps,
            setup.link_request_ps,
            Routes(setup.entering, setup.predecessor, setup.vertices),
        )

    def execute(self, now: int, thread: int, work: CoreWork) -> int:
        """A thread begins a phase: when it is over, interruptions of its core included."""
        core, done = self.threads.core_of(thread), self.threads.begin(now, thread, work)
        return self.threads.extend(thread, self.disturbances.stretched_ps(core, now, done))

    def read(self, now: int, node: int, home: int, lines: float) -> int:
        """A core of ``node`` reads lines of memory of ``home``: when controller and links are
        done."""
        return self.links.send_lines(now, home, node, lines, self.memory[home].serve(now, lines))

    def latency_ps(self, now: int, node: int, home: int) -> float:
        """The latency of such a line, at the controller's load of late."""
        return float(self.idle_ps[node][home]) + self.memory[home].wait_ps(now, self.curve)

    def hand_over(self, now: int, start: int, end: int, lines: float) -> int:
        """A core of ``start`` hands lines over to one of ``end``: when they are there."""
        idle_ps = rounded(self.handed_ps[end][start])
        return self.links.send_lines(now, start, end, lines, now + idle_ps)

    def counts_at(self, now: int) -> dict[str, Any]:
        """What was counted, by name."""
        cores, memory, links = range(len(self.threads.cores)), self.memory, self.links
        return {
            "busy": np.array([self.threads.busy(k, now) for k in cores]),
            "held": np.array([self.threads.held(k, now) for k in cores]),
            "memory_lines": np.array([controller.lines for controller in memory]),
            "memory_arrived": np.array([controller.arrived for controller in memory]),
            "memory_done": np.array([controller.done(now) for controller in memory]),
            "link_lines": np.array(links.lines),
            "link_requests": np.array(links.requests),
            "link_done": np.array(links.done(now), dtype=np.int64),
        }

    def start_counting(self, now: int) -> None:
        """Forgets what was counted."""
        self.threads.start_counting(now)
        for controller in self.memory:
            controller.start_counting(now)
        self.links.start_counting(now)


class PartsModel:
    """A model in SimPy made of parts: what is derived starts its processes on ``env``.

    ``latency_ps``: of each operation a histogram, to which those that are done add.
    """

    def __init__(self, setup: PartsSetup, operations: int) -> None:
        self.env, self.parts = simpy.Environment(), Parts(setup)
        self.latency_ps = [Histogram() for _ in range(operations)]
        self.events = self.now_ps = 0  # as planes see them: no event is under way
        self._since_ps = 0
        self._rows: list[tuple[int, int, int, int]] | None = None

    @property
    def now(self) -> int:
        """The time of the event under way."""
        return int(self.env.now)

    def until(self, time_ps: int) -> simpy.Timeout:
        """What happens at that time, now or later."""
        return self.env.timeout(time_ps - self.now)

    def happened(self, event: int, subject: int, data: int) -> None:
        """A row of the trace."""
        if self._rows is not None:
            self._rows.append((self.now, event, subject, data))

    def run(self, until_ps: int) -> bool:
        """Handles all events before that time."""
        self.events += run_until(self.env, until_ps)
        self.now_ps = until_ps
        return True

    def start_counting(self) -> None:
        """Forgets what was counted."""
        self._since_ps = self.now_ps
        self.parts.start_counting(self.now_ps)
        self.latency_ps = [Histogram() for _ in self.latency_ps]

    def counts(self) -> dict[str, Any]:
        """What was counted since, by name."""
        return {**self.parts.counts_at(self.now_ps), "since_ps": self._since_ps}

    def latency(self, operation: int) -> Histogram:
        """Latencies of an operation, in ps."""
        return self.latency_ps[operation]

    def keep_trace(self) -> None:
        """From now on."""
        self._rows = []

    def trace(self) -> list[tuple[int, int, int, int]]:
        """Rows (time_ps, event, subject, data) of what happened."""
        return self._rows or []
