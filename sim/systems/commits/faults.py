"""From a scenario's faults to those of the models: at their times, or drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ..._kernel import ClockFault as KernelClockFault
from ..._kernel import PathFault as KernelPathFault
from ..._kernel import Transport
from ...kernel.streams import stream
from ...planes.outcome import ControlEvent
from .checked_values import PS, TIME_MAX_PS, ps
from .fault_spec import SOCKETS, VERBS, ClientFault, ClockFault, PathFault, ServerFault, TimedFault
from .parameters import RELIABLE_ONCE, CommitParameters, Death, Stop

if TYPE_CHECKING:
    from ...planes.plane import Experiment
    from .spec import CommitSystem


def with_faults(
    parameters: CommitParameters, experiment: Experiment, replication: int
) -> CommitParameters:
    """The parameters of a replication, with what fails in it."""
    system: CommitSystem = experiment.system
    if not system.faults:
        return parameters
    machine = experiment.machine
    ids = [machine.nodes[position].id for position in system.roles(machine).positions]
    deaths, stops = list[Death](), list[Stop]()
    paths, clocks = list[KernelPathFault](), list[KernelClockFault]()
    for fault in system.faults:
        for at_ps, until_ps in times_of(fault, experiment, replication):
            if isinstance(fault, ClientFault):
                deaths.append(Death(fault.client, at_ps, fault.step))
            elif isinstance(fault, ServerFault):
                empty = fault.memory == "lost"
                stops.append(Stop(ids.index(fault.server), at_ps, until_ps, empty))
            elif isinstance(fault, PathFault):
                paths.append(_path_fault(fault, ids, at_ps, until_ps))
            elif isinstance(fault, ClockFault):
                clocks.append(_clock_fault(fault, ids, at_ps, until_ps))
    return replace(
        parameters,
        deaths=tuple(deaths),
        stops=tuple(sorted(stops, key=lambda stop: stop.at_ps)),
        path_faults=tuple(paths),
        clock_faults=tuple(clocks),
        transport=transport_of(system),
        copy_ps=copy_ps(parameters) if parameters.replicas else 0,
        undoes=bool(stops or paths or clocks) and parameters.lease_ps is not None,
    )


def times_of(
    fault: TimedFault, experiment: Experiment, replication: int
) -> Iterator[tuple[int, int | None]]:
    """When it begins, and when it ends; None: never."""
    lasts = getattr(fault, "lasts", None)
    lasts_ps = None if lasts is None else max(1, ps(lasts.value))
    if fault.at is not None:
        at_ps = ps(fault.at.value)
        yield at_ps, None if lasts_ps is None else at_ps + lasts_ps
        return
    assert fault.rate is not None
    assert fault.stream is not None
    assert lasts_ps is not None
    draws = stream(experiment.seed, replication, fault.stream)
    at_ps = 0
    while True:
        at_ps += max(1, ps(-math.log1p(-draws.uniform()) / fault.rate.value))
        if at_ps >= experiment.horizon_s * PS:
            return
        yield at_ps, at_ps + lasts_ps
        at_ps += lasts_ps


def _path_fault(
    fault: PathFault, ids: list[int], at_ps: int, until_ps: int | None
) -> KernelPathFault:
    first, second = fault.sides(tuple(ids))
    return KernelPathFault(
        from_ps=at_ps,
        until_ps=until_ps or TIME_MAX_PS,
        side=[1 if node in first else 2 if node in second else 0 for node in ids],
        loss=1.0 if fault.is_down else fault.loss or 0.0,
        factor=fault.slow or 1,
        late=fault.late or 0.0,
        late_ps=0 if fault.delay is None else ps(fault.delay.value),
    )


def _clock_fault(
    fault: ClockFault, ids: list[int], at_ps: int, until_ps: int | None
) -> KernelClockFault:
    return KernelClockFault(
        machine=ids.index(fault.node),
        from_ps=at_ps,
        until_ps=until_ps or TIME_MAX_PS,
        ahead_ps=0 if fault.ahead is None else ps(fault.ahead.value),
        drift_ppm=fault.drift_ppm,
    )


def copy_ps(p: CommitParameters) -> int:
    """Of a record to another server, one after another: as fast as the slower of the adapters."""
    entries = p.costs["write" if p.one_sided else "install"]
    cost = entries[min(1, len(entries) - 1)]
    return max(cost.out_ps, cost.in_ps)


def transport_of(system: CommitSystem) -> Transport:
    """What the scenario says, else the defaults of its transport."""
    other = VERBS if system.architecture in RELIABLE_ONCE else SOCKETS
    given = system.retransmission or other
    reconnect, longest = given.reconnect or other.reconnect, given.longest or other.longest
    return Transport(
        timeout_ps=ps(given.timeout.value),
        growth=given.growth,
        longest_ps=TIME_MAX_PS if longest is None else ps(longest.value),
        retries=given.retries,
        reconnect_ps=0 if reconnect is None else ps(reconnect.value),
    )


def fault_events(
    experiment: Experiment, replication: int, until_s: float
) -> Iterator[ControlEvent]:
    """What failed up to that time, and came back, in words."""
    for fault in experiment.system.faults:
        for at_ps, until_ps in times_of(fault, experiment, replication):
            if at_ps / PS >= until_s:
                continue
            yield ControlEvent(at_ps / PS, "fault", f"{fault.subject} {fault.effect}", {})
            text = f"{fault.subject} is back"
            if isinstance(fault, ServerFault):
                empty = fault.memory == "lost"
                over_ps = fails_over_ps(experiment, fault.server, Stop(0, at_ps, until_ps, empty))
                if over_ps is not None:
                    until_ps, text = over_ps, f"replicas answer for {fault.subject}"
                elif empty:
                    text += ", without its records"
            if until_ps is not None and until_ps / PS < until_s:
                yield ControlEvent(until_ps / PS, "recovery", text, {})


def rejoin_events(
    experiment: Experiment, rejoins: Iterable[tuple[float, int]], until_s: float
) -> Iterator[ControlEvent]:
    """Which machines' servers have their records again, and when, in words."""
    machine = experiment.machine
    ids = [machine.nodes[at].id for at in experiment.system.roles(machine).positions]
    for at_ps, place in rejoins:
        if at_ps / PS < until_s:
            text = f"node {ids[place]} has its records again, and answers"
            yield ControlEvent(at_ps / PS, "recovery", text, {})


def fails_over_ps(experiment: Experiment, server: int, stop: Stop) -> int | None:
    """When replicas answer for a server that stops alone; None where it is back before."""
    system, machine = experiment.system, experiment.machine
    stores = server in [machine.nodes[at].id for at in system.roles(machine).storage]
    if not system.replicas or not stores:
        return None
    return stop.fails_over_ps(ps(system.failover.value))


def lost_records(experiment: Experiment, parameters: CommitParameters, until_s: float) -> list[str]:
    """What servers that came back without their records have lost, in words."""
    p, machine, found = parameters, experiment.machine, list[str]()
    ids = [machine.nodes[at].id for at in experiment.system.roles(machine).positions]
    for stop in () if p.replicas else p.stops:
        if not stop.empty or stop.returns_ps is None or stop.returns_ps >= until_s * PS:
            continue
        for server in p.storage_on(stop.machine):
            count = len(range(server, p.records, len(p.storage)))
            found.append(
                f"node {ids[stop.machine]} came back without its {count:,} records: they have no "
                "replicas, and are lost"
            )
    return found
