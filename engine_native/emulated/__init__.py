"""Runs a scenario's engine in a guest of the scenario's machine, and counts its traffic."""

import time
from dataclasses import replace

from ...inputs import InputError
from ...inputs.progress import Progress
from ...sim.control.control_plane import ControlPlane
from ...sim.run.counted import with_traffic
from ...sim.run.record import Record
from ...sim.run.scenario import Scenario, scenario_from_settings
from ...topologies.emulator import GuestMachine, guest_machine
from .. import require_engine, warm_up_s
from ..systems.registry import REAL_PLANES


def on_machine_of(guest: GuestMachine, scenario: Scenario) -> Scenario:
    """The scenario on the machine that the guest is: with fewer processors, smaller caches."""
    settings = dict(scenario.settings) | {"machine": guest.machine.plain}
    return scenario_from_settings(settings, scenario.name)


def run_emulated(
    scenario: Scenario,
    machine_scale: float | None = None,
    *,
    nodes: int | None = None,
    user_only: bool = False,
    progress: Progress | None = None,
    loading: Progress | None = None,
) -> Record:
    """The Record of ``scenario`` in a guest of its machine: traffic and operations, no times.

    ``machine_scale``: the part of the machine's processors, memory and caches that the guest has;
    by default as much as fits; ``nodes``: only its first ones, on which the scenario must run;
    ``user_only``: without what the guest's kernel accesses. It is played once, for as long as it
    says on the guest's clock.
    Raises InputError where this host cannot emulate it, or the guest or the engine failed.
    """
    require_engine()
    from ...topologies.emulator.counting import Counting
    from .remote import GuestProcess

    began = time.perf_counter()
    guest = guest_machine(scenario.machine, nodes=nodes, scale=machine_scale)
    played = on_machine_of(guest, scenario)
    counted_from_s = played.statistics.warm_up_s
    if counted_from_s is None:
        counted_from_s = warm_up_s(played)
    offered = REAL_PLANES[played.plane].engines[played.system.kind].load()
    with GuestProcess(guest, Counting(user_only=user_only)) as process:
        with offered(process, counted_from_s, loading) as make:
            plane = make(played)
            control = ControlPlane(played, plane)
            control.run(progress)
            outcome = plane.outcome()
        counted = process.counted()
    if counted.run.out_of_memory is not None:
        raise InputError(f"the guest ran out of memory: {counted.run.out_of_memory}")
    events = sorted([*control.events, *outcome.events], key=lambda event: event.time_s)
    record = with_traffic(played, outcome, counted.traffic, time.perf_counter() - began)
    return replace(record, control_events=tuple(events), warm_up_s=counted_from_s)
