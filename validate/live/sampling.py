"""Samples of a process: which node its threads ran on, how they moved, and the host's counters."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from ...engine_native.memory_traffic import LinkTraffic, MemoryTraffic, NoCounters
from ...topologies.machine import Machine
from .process import LiveProcess, Thread


@dataclass
class Totals:
    """Since sampling began. ``run_s``: by node (n,); ``wait_s``: ready, without a CPU, None where
    the kernel does not tell; ``moves``: from CPU to CPU; ``crossings``: from node to node, as far
    as samples show.
    """

    run_s: list[float]
    wait_s: float | None = 0.0
    moves: int = 0
    crossings: int = 0


@dataclass
class HostCounters:
    """Of all programs of the host: those that it shows, and (``missing``) why not others."""

    memory: MemoryTraffic | None = None
    links: LinkTraffic | None = None
    missing: list[str] = field(default_factory=list)

    @classmethod
    def open(cls) -> HostCounters:
        """Those that may be read here."""
        found = cls()
        try:
            found.memory = MemoryTraffic()
        except NoCounters as why:
            found.missing.append(f"traffic of memory: {why}")
        try:
            found.links = LinkTraffic()
        except NoCounters as why:
            found.missing.append(f"traffic of links: {why}")
        return found

    def bytes(self) -> tuple[float | None, float | None]:
        """Of memory and of links, so far."""
        memory = None if self.memory is None else self.memory.bytes()
        return memory, None if self.links is None else self.links.bytes()

    def close(self) -> None:
        """Ends counting."""
        for counters in (self.memory, self.links):
            if counters is not None:
                counters.close()


class Sampler:
    """Looks at the threads of ``processes`` again and again; what ran between two looks counts for
    the node where the thread is found."""

    def __init__(self, processes: list[LiveProcess], machine: Machine) -> None:
        self.processes = processes
        self.node_of = {cpu: k for k, node in enumerate(machine.nodes) for cpu in node.cpus}
        self.totals = Totals([0.0] * len(machine.nodes))
        self.threads = self._seen()
        self.all_threads = set(self.threads)
        self.exact = all(thread.moves is not None for thread in self.threads.values())
        self.began_s = self.looked_s = time.monotonic()

    def look(self) -> float:
        """Adds what went by since the last look; how long that was, in seconds."""
        now_s = time.monotonic()
        length_s, self.looked_s = now_s - self.looked_s, now_s
        before, self.threads = self.threads, self._seen()
        self.all_threads |= self.threads.keys()
        for tid, thread in self.threads.items():
            self._add(before.get(tid), thread)
        return length_s

    def _add(self, before: Thread | None, now: Thread) -> None:
        totals = self.totals
        node = self.node_of.get(now.cpu, 0)
        ran_s = now.run_s - (before.run_s if before else 0.0)
        totals.run_s[node] += max(ran_s, 0.0)
        if now.wait_s is None or totals.wait_s is None:
            totals.wait_s = None
        else:
            totals.wait_s += now.wait_s - (before.wait_s or 0.0 if before else 0.0)
        if before is None:
            return
        if now.moves is not None and before.moves is not None:
            totals.moves += now.moves - before.moves
        else:
            totals.moves += now.cpu != before.cpu
        totals.crossings += self.node_of.get(before.cpu, 0) != node

    def _seen(self) -> dict[int, Thread]:
        return {
            tid: thread for process in self.processes for tid, thread in process.threads().items()
        }
