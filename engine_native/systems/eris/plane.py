"""The native plane of ERIS: real workers on this host, watched and steered by the control plane.

One engine serves all replications of a run: its data stay loaded; each replication begins with the
workload's first phase and with even partitions. Clients pause while these are made even.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ....inputs.progress import Progress
from ....inputs.quantities import counted
from ....sim.kernel.arrays import Ints
from ....sim.kernel.histogram import Histogram
from ....sim.planes.outcome import Outcome, ResourceUse, Why
from ....sim.planes.plane import Experiment, Maker
from ....sim.systems.eris.spec import ErisSystem
from ..._engine import STEPS, ObjectMemory
from ...host_mapping import threads_waited_ns, transparent_huge_bytes
from ...memory_traffic import MemoryTraffic, NoCounters
from ...outcomes import SLICE_S, TAKEN, limit_of_workers, no_memory
from .setup import ErisHost, totals_of
from .steered import SteeredEris

PAGE_BYTES, HUGE_PART_LOW = 4096, 0.5


class MeasuredHost(ErisHost):
    """The engine in this process, and what this host tells of its memory."""

    def __init__(self, scenario: Experiment, loading: Progress | None = None) -> None:
        super().__init__(scenario, loading)
        self.huge_part = _huge_part(self.memory)
        self.traffic: MemoryTraffic | None = None
        self.no_traffic = ""
        try:
            self.traffic = MemoryTraffic()
        except NoCounters as failure:
            self.no_traffic = str(failure)

    def traffic_bytes(self) -> float | None:
        """Through the memory controllers so far; None where they do not tell."""
        return None if self.traffic is None else self.traffic.bytes()

    def close(self) -> None:
        """Ends the workers, and counting."""
        super().close()
        if self.traffic is not None:
            self.traffic.close()


class NativeEris(SteeredEris):
    """Runs one replication in real time; see ``RandomPlane`` for what its methods promise."""

    REAL_TIME = True

    _host: MeasuredHost

    def __init__(self, host: MeasuredHost, scenario: Experiment) -> None:
        super().__init__(host, scenario)
        self._nodes = np.unique(host.worker_nodes)
        self._waited_before_ns = threads_waited_ns()
        self._traffic_before = host.traffic_bytes()
        self._latencies_before = self._latencies(self._since)

    def advance(self, until_s: float) -> None:
        """Raises InputError where a worker failed."""
        if self._began_s is None:
            self._host.begin(self.scenario)
            self._began_s = self._engine.time_s
            self.start_counting()
            self._watched = self._since
        while (left_s := until_s - (self._engine.time_s - self._began_s)) > 0:
            time.sleep(min(left_s, SLICE_S))
            self._host.check()
        self.time_s = until_s

    def start_counting(self) -> None:
        self._traffic_before = self._host.traffic_bytes()
        self._waited_before_ns = threads_waited_ns()
        self._since = totals_of(self._engine)
        self._latencies_before = self._latencies(self._since)

    def totals(self) -> Mapping[str, float]:
        now = totals_of(self._engine)
        found = {}
        latency_ns = self.by_operation(now, "latency_sum_ns")
        for name, done in self.by_operation(now, "done").items():
            found[f"throughput/{name}"] = done
            found[f"under_way/{name}"] = latency_ns[name] * 1e-9
        for use, busy_ns in zip(self._node_names(), self._busy_ns(now), strict=True):
            found[f"utilisation/{use}"] = busy_ns * 1e-9
        return found

    def _latencies(self, now: Mapping[str, Any]) -> list[tuple[Ints, float]]:
        """Counts and sums until ``now``, which has just been read: whoever wakes to read takes a
        worker's processor, so that operations near the readings take long."""
        sums = now["latency_sum_ns"].sum(axis=1)
        return [
            (np.array(self._engine.latencies(k), dtype=np.int64), float(sums[k]) * 1e3)
            for k in range(len(self.operations))
        ]

    def _node_names(self) -> list[str]:
        ids = [self.scenario.machine.nodes[k].id for k in self._nodes]
        return [f"cores of node {node}" for node in ids]

    def _busy_ns(self, now: Mapping[str, Any]) -> list[float]:
        """Of the workers of each node on average, since counting began."""
        busy = np.asarray(now["busy_ns"] - self._since["busy_ns"], dtype=np.float64)
        return [float(busy[self._host.worker_nodes == k].mean()) for k in self._nodes]

    def outcome(self) -> Outcome:
        now, before = totals_of(self._engine), self._since
        latencies_ns = dict(zip(self.operations, self._histograms(now), strict=True))
        self._host.check()
        counted_s = now["time_s"] - before["time_s"]
        waited_ns = threads_waited_ns() - self._waited_before_ns
        # A wait counts as it ends, also where it began before counting did.
        waited = min(waited_ns * 1e-9 / max(counted_s * len(self._host.worker_nodes), 1e-9), 1.0)
        traffic, earlier = self._host.traffic_bytes(), self._traffic_before
        memory_Bps = (
            None if traffic is None or earlier is None else max(traffic - earlier, 0.0) / counted_s
        )
        done = self.by_operation(now, "done")
        nodes = [self.scenario.machine.nodes[k].id for k in self._nodes]
        uses = zip(self._node_names(), self._busy_ns(now), nodes, strict=True)
        return Outcome(
            throughput={name: amount / counted_s for name, amount in done.items()},
            operations=done,
            bandwidth_Bps={"memory": memory_Bps, "links": None},
            resources=tuple(
                ResourceUse(name, "cores", min(busy_ns * 1e-9 / counted_s, 1.0), node=node)
                for name, busy_ns, node in uses
            ),
            why=self._why(now, sum(done.values())),
            events=tuple(self.events()),
            model=self._facts(now, waited),
            warnings=tuple(self._warnings(waited)),
            steps=int(sum(done.values())),
            latencies_ns=latencies_ns,
        )

    def _why(self, now: Mapping[str, Any], operations: float) -> dict[str, Why]:
        """Who is busy, and the time of an operation in a worker by step, as the event plane's;
        nothing where none was done."""
        if not operations:
            return {}
        before = self._since
        busy_ns = (now["busy_ns"] - before["busy_ns"]).astype(np.float64)
        span_ns = max(now["time_s"] - before["time_s"], 1e-9) * 1e9
        idle_ns = np.maximum(span_ns - busy_ns, 0.0)
        steps_ns = (now["step_ns"] - before["step_ns"]).sum(axis=1)
        demands = {
            **dict(zip(STEPS, (float(ns) / operations for ns in steps_ns), strict=True)),
            "idle": float(idle_ns.sum()) / operations,
        }
        clients = self.scenario.workload.description.clients
        paced = clients.kind == "open" or clients.think_time.value > 0
        limit = limit_of_workers(busy_ns / span_ns, paced)
        return dict.fromkeys(self.operations, Why(limit, (), demands))

    def _histograms(self, now: Mapping[str, Any]) -> Iterator[Histogram]:
        pairs = zip(self._latencies(now), self._latencies_before, strict=True)
        for (counts, total_ps), (before, before_ps) in pairs:
            more = counts.copy()
            more[: len(before)] -= before
            yield Histogram.of_kernel(np.trim_zeros(more, "b"), total_ps - before_ps)

    def _facts(self, now: Mapping[str, Any], waited: float) -> dict[str, Any]:
        def more(name: str) -> Any:
            before: Mapping[str, Any] = self._since
            return now[name] - before[name]

        steps = more("step_ns").sum(axis=1)
        units = max(float(more("executed").sum()), 1.0)
        memory = self._host.memory
        return {
            "native": {
                "workers": len(self._host.mapping.cpu),
                "cpus": len(set(self._host.mapping.cpu)),
                "host_nodes": len(set(self._host.mapping.host_node)),
                "scale": self.scenario.scale,
                "memory_traffic": self._host.no_traffic or "counted by the memory controllers",
                "bytes_used": {
                    name: part.used_bytes for name, part in zip(self.objects, memory, strict=True)
                },
                "huge_page_part": self._host.huge_part,
                # Of the workers' time, as in commits' records.
                "waited_for_processors": waited,
            },
            "step_ns_per_command": {
                name: float(spent) / units for name, spent in zip(STEPS, steps, strict=True)
            },
            "commands_per_flush": _part(float(more("executed").sum()), more("flushes").sum()),
            "forwarded": int(more("object_forwarded").sum()),
            "exchange_retries": int(more("retries").sum()),
            "refused_by_full_buffers": int(more("refused").sum()),
            "copied_bytes": int(more("copied_bytes").sum()),
        }

    def _warnings(self, waited: float) -> Iterator[str]:
        """``waited``: for a processor, as a part of the workers' time."""
        if self._host.left_out:
            count = len(self._host.worker_nodes)
            yield (
                f"{counted(count, 'worker')}, as many as this host has CPUs, stand for "
                f"{count + self._host.left_out} of {self.scenario.machine.name}"
            )
        yield from self._host.mapping.warnings
        cpus = self._host.mapping.cpu
        if waited > TAKEN and len(set(cpus)) == len(cpus):
            yield "this host was busy with other work: workers waited for their processors"
        refusals = dict.fromkeys(part.refusal for part in self._host.memory if part.refusal)
        yield from refusals
        system, part = self.scenario.system, self._host.huge_part
        assert isinstance(system, ErisSystem)
        if system.page_size.value > PAGE_BYTES and part is not None and part < HUGE_PART_LOW:
            yield f"huge pages: this host gave them to {part:.0%} of the memory"
        if self._host.host.binding_refused and len(self._host.host.nodes) > 1:
            yield f"memory is not bound to nodes: {self._host.host.binding_refused}"


def _part(part: float, whole: float) -> float | None:
    return float(part) / float(whole) if whole else None


def _huge_part(memory: Sequence[ObjectMemory]) -> float | None:
    """Of what objects hold, what lies in huge pages: reserved ones, and transparent ones, which the
    kernel may promise and not give."""
    promised = sum(part.transparent_bytes for part in memory)
    given = transparent_huge_bytes()
    huge = sum(part.huge_bytes for part in memory)
    huge += promised if given is None else min(promised, given)
    return _part(huge, sum(part.reserved_bytes for part in memory))


@contextmanager
def native_eris(loading: Progress | None = None) -> Iterator[Maker]:
    """Makes the planes of a run; at the end the engine's workers are gone. ``loading`` is told the
    part of the data that is loaded."""
    host: list[MeasuredHost] = []

    def make(experiment: Experiment, replication: int) -> NativeEris:
        if not host:
            host.append(MeasuredHost(experiment, loading))
        return NativeEris(host[0], experiment)

    try:
        yield make
        for one in host:
            if one.started:
                one.engine.stop()  # checks that nothing was lost or done twice
    except MemoryError as failure:
        raise no_memory(failure) from None
    finally:
        for one in host:
            one.close()
