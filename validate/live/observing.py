"""A process of this host, observed for a while: a Record of where its pages lie and its threads
run, how they move, and the traffic that counters show.

The Record of a process of this host: what was seen, and nothing predicted.

Samples of a process: which node its threads ran on, how they moved, and the host's counters.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...engine_native.memory_traffic import (
    COUNT,
    LinkTraffic,
    MemoryTraffic,
    NoCounters,
    opened,
    reason,
)
from ...inputs.progress import Progress, silent
from ...sim.planes.outcome import ControlEvent, ResourceUse
from ...sim.run.record import Record
from ...sim.run.runner import provenance
from ...topologies import build_machine
from ...topologies.importers import import_machine
from ...topologies.machine import Machine
from ...topologies.picture import picture_data
from .process import LiveProcess, Thread

SAMPLES_MAX, SAMPLE_MIN_S = 1_000, 0.1


def this_host() -> Machine:
    """As its kernel describes it; raises InputError."""
    return build_machine(import_machine(None, name="this-host"))


def observe(pid: int, for_s: float, progress: Progress = silent) -> Record:
    """What process ``pid`` does for ``for_s`` seconds, or until it ends or Ctrl-C; raises
    InputError where there is none."""
    began_s = time.perf_counter()
    process, machine = LiveProcess(pid), this_host()
    counters = HostCounters.open()
    missing, events = list(counters.missing), None
    try:
        events = ThreadEvents(process.thread_ids())
    except NoCounters as why:
        missing.append(str(why))
    pages = process.pages()
    if pages is None:
        missing.append("where its pages lie: numa_maps cannot be read: expected its own user")
    memory, sampler = process.memory_bytes(), Sampler([process], machine)
    rows = [(0.0, 0.0, list(sampler.totals.run_s), counters.bytes())]
    each_s = max(for_s / SAMPLES_MAX, min(SAMPLE_MIN_S, for_s / 10))
    try:
        with suppress(KeyboardInterrupt):
            while sampler.looked_s - sampler.began_s < for_s and process.alive:
                left_s = sampler.began_s + for_s - time.monotonic()
                time.sleep(max(min(each_s, left_s), 0.0))
                length_s = sampler.look()
                if events is not None:
                    events.follow(sampler.threads)
                at_s = sampler.looked_s - sampler.began_s
                rows.append((at_s, length_s, list(sampler.totals.run_s), counters.bytes()))
                progress(min(at_s / for_s, 1.0))
        later, counts = process.pages(), None if events is None else events.counts()
        by_cpu = {} if counters.memory is None else counters.memory.by_cpu()
    finally:
        counters.close()
        if events is not None:
            events.close()
    seen_s = max(sampler.looked_s - sampler.began_s, 1e-9)
    if sampler.totals.wait_s is None:
        missing.append("how long threads wait for a CPU: the kernel keeps no schedstat")
    if not sampler.exact:
        missing.append("moves between CPUs: only those that samples show")
    warnings = [f"not seen: {what}" for what in missing]
    if not process.alive:
        warnings.insert(0, f"process {pid} ended after {seen_s:.3g} s")
    return live_record(
        machine,
        title=f"{process.name}, process {pid}",
        settings={"pid": pid, "for_s": for_s},
        horizon_s=seen_s,
        began_s=began_s,
        series=_series(machine, rows),
        resources=_uses(machine, sampler, seen_s),
        bandwidth_Bps=_rates(rows, seen_s),
        model={
            "threads": len(sampler.all_threads),
            "run_s": {
                str(node.id): run_s
                for node, run_s in zip(machine.nodes, sampler.totals.run_s, strict=True)
            },
            "wait_s": sampler.totals.wait_s,
            "moves": sampler.totals.moves,
            "moves_between_nodes": sampler.totals.crossings,
            "pages_bytes": pages,
            "pages_bytes_at_the_end": later,
            "memory_bytes": memory,
            "events": counts,
            # Of all programs, by the node of the CPU that a socket's counters are read from.
            "memory_traffic_bytes": {
                str(machine.nodes[sampler.node_of.get(cpu, 0)].id): moved
                for cpu, moved in by_cpu.items()
            }
            or None,
        },
        warnings=warnings,
    )


Row = tuple[float, float, list[float], tuple[float | None, float | None]]


def _series(machine: Machine, rows: list[Row]) -> dict[str, Any]:
    ends, lengths = np.array([row[0] for row in rows]), np.array([row[1] for row in rows[1:]])
    found: dict[str, Any] = {"time_s": ends[:-1], "duration_s": np.diff(ends)}
    ran = np.diff([row[2] for row in rows], axis=0)
    for k, name, cpus in _cores(machine):
        found[f"utilisation/{name}"] = np.minimum(ran[:, k] / np.maximum(lengths * cpus, 1e-9), 1.0)
    return found


def _cores(machine: Machine) -> list[tuple[int, str, int]]:
    """Position, name and CPUs of each node that has some."""
    return [
        (k, f"cores of node {node.id}", len(node.cpus))
        for k, node in enumerate(machine.nodes)
        if node.cpus
    ]


def _uses(machine: Machine, sampler: "Sampler", seen_s: float) -> tuple[ResourceUse, ...]:
    run_s = sampler.totals.run_s
    return tuple(
        ResourceUse(name, "cores", min(run_s[k] / (seen_s * cpus), 1.0), node=machine.nodes[k].id)
        for k, name, cpus in _cores(machine)
    )


def _rates(rows: list[Row], seen_s: float) -> dict[str, float | None]:
    first, last = rows[0][3], rows[-1][3]
    return {
        name: None if a is None or b is None else (b - a) / seen_s
        for name, a, b in zip(("memory", "links"), first, last, strict=True)
    }


HARDWARE = 0  # PERF_TYPE_HARDWARE, and its events
EVENTS = {"cycles": 0, "instructions": 1, "cache_misses": 3}


class ThreadEvents:
    """Counters of threads, each since it was first seen, until ``close``; raises NoCounters."""

    def __init__(self, threads: Iterable[int]) -> None:
        self._open: dict[int, dict[str, int]] = {}
        self._ended = dict.fromkeys(EVENTS, 0.0)
        try:
            for thread in threads:
                self._open[thread] = self._counters(thread)
        except OSError as failure:
            self.close()
            raise NoCounters(f"instructions and cache misses: {reason(failure, 2)}") from None

    def follow(self, threads: Iterable[int]) -> None:
        """Count those that are new, too."""
        for thread in set(threads) - self._open.keys():
            try:
                self._open[thread] = self._counters(thread)
            except OSError:
                self._open[thread] = {}  # it has ended

    def counts(self) -> dict[str, float]:
        """So far, of all threads."""
        total = dict(self._ended)
        for counters in self._open.values():
            for name, descriptor in counters.items():
                count, enabled, running = COUNT.unpack(os.read(descriptor, COUNT.size))
                total[name] += count * (enabled / running if running else 0.0)
        return total

    def close(self) -> None:
        """Ends counting."""
        for counters in self._open.values():
            for descriptor in counters.values():
                os.close(descriptor)
        self._open = {}

    @staticmethod
    def _counters(thread: int) -> dict[str, int]:
        found: dict[str, int] = {}
        try:
            for name, event in EVENTS.items():
                found[name] = opened(HARDWARE, event, thread=thread)
        except OSError:
            for descriptor in found.values():
                os.close(descriptor)
            raise
        return found


OBSERVED = "observed"


def live_record(
    machine: Machine,
    *,
    title: str,
    settings: Mapping[str, Any],
    horizon_s: float,
    began_s: float,
    model: Mapping[str, Any],
    warnings: Sequence[str],
    series: Mapping[str, Any],
    resources: tuple[ResourceUse, ...] = (),
    bandwidth_Bps: Mapping[str, float | None] | None = None,
    events: tuple[ControlEvent, ...] = (),
    policy: str = "none",
) -> Record:
    """``began_s``: when all began, by ``time.perf_counter``."""
    return Record(
        scenario="process",
        title=title,
        scenario_hash=hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:16],
        plane=OBSERVED,
        policy=policy,
        seed=0,
        horizon_s=horizon_s,
        machine=picture_data(machine),
        settings={"machine": machine.name, **settings},
        bandwidth_Bps=bandwidth_Bps or {},
        resources=resources,
        control_events=events,
        model=model,
        warnings=tuple(warnings),
        provenance=provenance(time.perf_counter() - began_s, 0),
        series=dict(series),
    )


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
    def open(cls) -> "HostCounters":
        """Those that may be read here."""
        found = cls()
        for what, counters in (("memory", MemoryTraffic), ("links", LinkTraffic)):
            try:
                setattr(found, what, counters())
            except NoCounters as why:
                found.missing.append(f"traffic of {what}: {why}")
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
