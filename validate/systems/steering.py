"""The cores of a process, or of a control group, steered by a policy of the family ``cores``.

The same policy objects as in simulations; what they see is measured. A core is what the kernel
calls one: the CPUs of its hardware threads are allocated and released together.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...inputs import DescriptionError, InputError, Quantity
from ...inputs.grouping import by_key
from ...inputs.number_sets import format_list
from ...sim.control.family import ChosenPolicy, choose, decide
from ...sim.control.policy import named
from ...sim.planes.outcome import ControlEvent
from ...sim.run.record import Record
from ...sim.systems.tasks.commands import AllocateCore, CoresObservation
from ...sim.systems.tasks.cores import CORES, MODES, CoresSpec
from ...topologies.machine import Machine
from ..live.masks import Affinity, Cpuset, Journal, Masks, left_behind
from ..live.observing import HostCounters, Sampler, live_record, this_host
from ..live.process import LiveProcess
from ..measure.layout import siblings_of

Core = tuple[int, int]


def chosen_policy(policy: str, metric: str, period_s: float) -> ChosenPolicy:
    """The policy of a name or ``FILE.py:CLASS``; raises InputError."""
    try:
        fields: dict[str, Any] = dict(named(policy))
        if fields.get("policy") in MODES:
            fields["metric"] = metric
        spec = CoresSpec(**fields, period=Quantity.exact(period_s))
        return choose(spec, CORES, Path.cwd())
    except (DescriptionError, ValueError) as failure:
        raise InputError(f"--policy: {failure}", token=policy) from None


@dataclass
class Steered:
    """What is steered, and how: by process or by group; ``dry``: decisions only."""

    pid: int | None
    group: str | None
    policy: ChosenPolicy
    metric: str = "load"
    for_s: float = float("inf")
    dry: bool = False
    said: Callable[[str], None] = print
    events: list[ControlEvent] = field(default_factory=list)

    def masks(self) -> Masks:
        """As they are now, or as they were before steering that was killed."""
        if self.group is not None:
            found: Masks = Cpuset.of(self.group)
        else:
            assert self.pid is not None
            found = Affinity.of(LiveProcess(self.pid))
        for journal in left_behind():
            left = journal.masks
            same = (
                left.process.pid == self.pid
                if isinstance(left, Affinity)
                else isinstance(found, Cpuset) and left.folder == found.folder
            )
            if same and not self.dry:
                journal.give_back()
                return self.masks()
        return found


def cores_of(machine: Machine, cpus: list[int]) -> list[list[list[int]]]:
    """Of each node its cores, as lists of those of ``cpus`` that are its hardware threads."""
    able, found = set(cpus), []
    for node in machine.nodes:
        cpus_here = sorted(able.intersection(node.cpus))
        found.append(list(by_key((siblings_of(cpu), cpu) for cpu in cpus_here).values()))
    return found


def steer(what: Steered) -> Record:
    """Steers until the process ends, the time is over or Ctrl-C; raises InputError."""
    began_s = time.perf_counter()
    machine, masks, counters = this_host(), what.masks(), HostCounters.open()
    title = what.group or f"{LiveProcess(what.pid or 0).name}, process {what.pid}"
    if what.metric == "interconnect" and (counters.memory is None or counters.links is None):
        counters.close()
        raise InputError(
            f"--metric: {'; '.join(counters.missing)}", token="interconnect", expected="load"
        )
    loop = _Loop(what, machine, masks, counters)
    journal = None if what.dry else Journal.of(masks)
    try:
        with suppress(KeyboardInterrupt):
            loop.run()
        loop.sampler.look()  # what came after the last period, too
    finally:
        counters.close()
        if journal is not None:
            journal.give_back()
    return live_record(
        machine,
        title=title,
        settings={
            "pid": what.pid,
            "cgroup": what.group,
            "policy": what.policy.name,
            "metric": what.metric,
            "period_s": what.policy.period_s,
            "dry_run": what.dry,
        },
        horizon_s=max(loop.sampler.looked_s - loop.sampler.began_s, 1e-9),
        began_s=began_s,
        series=loop.series(),
        events=tuple(what.events),
        policy=what.policy.name,
        model={
            "moves": loop.sampler.totals.moves,
            "moves_between_nodes": loop.sampler.totals.crossings,
            "run_s": sum(loop.sampler.totals.run_s),
        },
        warnings=[*loop.notes, *(f"not seen: {why}" for why in counters.missing)],
    )


class _Loop:
    """Asks the policy once a period, and does what it says."""

    def __init__(
        self, what: Steered, machine: Machine, masks: Masks, counters: HostCounters
    ) -> None:
        self.what, self.machine, self.masks, self.counters = what, machine, masks, counters
        self.cores = cores_of(machine, masks.cpus)
        if not any(self.cores):
            raise InputError("no CPU that it may use is of this host's nodes")
        self.allocated: list[Core] = [
            (node, core) for node, cores in enumerate(self.cores) for core in range(len(cores))
        ]
        self.sampler = Sampler(masks.processes(), machine)
        self.policy = what.policy.make()
        self.before = counters.bytes()
        self.rows: list[tuple[float, float, float, int]] = []  # begin, length, load, cores
        self.notes: list[str] = []

    def run(self) -> None:
        """Until all processes have ended, or the time is over."""
        what, sampler = self.what, self.sampler
        while (left_s := sampler.began_s + what.for_s - time.monotonic()) > 0:
            before_s = sum(sampler.totals.run_s) + (sampler.totals.wait_s or 0.0)
            begin_s = sampler.looked_s - sampler.began_s
            time.sleep(min(what.policy.period_s, left_s))
            sampler.processes = self.masks.processes()
            length_s = sampler.look()
            if not any(process.alive for process in sampler.processes):
                self.notes.append("all of its processes have ended")
                return
            used_s = sum(sampler.totals.run_s) + (sampler.totals.wait_s or 0.0) - before_s
            load = min(used_s / (length_s * len(self._cpus())), 1.0)
            self.rows.append((begin_s, length_s, load, len(self.allocated)))
            self._ask(load, length_s)

    def _cpus(self) -> list[int]:
        return sorted(cpu for node, core in self.allocated for cpu in self.cores[node][core])

    def _ask(self, load: float, length_s: float) -> None:
        at_s = self.sampler.looked_s - self.sampler.began_s
        commands = decide(CORES, self.policy, self._observation(at_s, load, length_s))
        for command in commands:
            core = (command.node, command.core)
            if isinstance(command, AllocateCore):
                self.allocated.append(core)
            else:
                self.allocated.remove(core)
            self._tell(CORES.event(command, self.what.policy.name, at_s), core, load)
        # Threads that have come since are moved, too.
        moved = commands or len(self.allocated) < sum(map(len, self.cores))
        if moved and not self.what.dry:
            self.masks.set(self._cpus())

    def _tell(self, event: ControlEvent, core: Core, load: float) -> None:
        cpus = format_list(self.cores[core[0]][core[1]])
        details = {**event.details, "cpus": cpus, "load": load, "cores": len(self.allocated)}
        self.what.events.append(ControlEvent(event.time_s, event.kind, event.text, details))
        self.what.said(
            f"{event.time_s:.3f} s: {event.text} (CPU {cpus}; load {100 * load:.0f}%; "
            f"{len(self.allocated)} cores then)"
        )

    def _observation(self, at_s: float, load: float, length_s: float) -> CoresObservation:
        ids = {node.id: k for k, node in enumerate(self.machine.nodes)}
        memory = np.zeros(len(ids))
        for process in self.sampler.processes:
            for of_nodes in (process.pages() or {}).values():
                for node, bytes_ in of_nodes.items():
                    memory[ids.get(node, 0)] += bytes_
        before, self.before = self.before, self.counters.bytes()
        controllers, links = (
            0.0 if a is None or b is None else (b - a) / length_s
            for a, b in zip(before, self.before, strict=True)
        )
        return CoresObservation(
            at_s,
            np.array([len(cores) for cores in self.cores]),
            tuple(sorted(self.allocated)),
            load,
            memory,
            links,
            controllers,
        )

    def series(self) -> dict[str, np.ndarray]:
        """A row a period."""
        begin, length, load, cores = zip(*self.rows, strict=True) if self.rows else ((),) * 4
        return {
            "time_s": np.array(begin, dtype=float),
            "duration_s": np.array(length, dtype=float),
            "load": np.array(load, dtype=float),
            "cores": np.array(cores, dtype=float),
        }


def give_back() -> list[str]:
    """Gives back what steering that was killed has left; of whom."""
    found = []
    for journal in left_behind():
        masks = journal.masks
        journal.give_back()
        found.append(
            f"process {masks.process.pid}" if isinstance(masks, Affinity) else str(masks.folder)
        )
    return found
