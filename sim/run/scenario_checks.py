"""Refuses scenarios whose parts do not go together, or that would take forever."""

from collections.abc import Mapping

from ...inputs import Document
from ...inputs.quantities import time_text
from ...topologies import Machine
from ...workloads import Workload
from ..control import ChosenPolicy
from ..systems.descriptor import System
from .real_planes import DRAWING_PLANES, PLANES, REAL, planes_of
from .scenario_description import ScenarioDescription
from .scenario_parts import reported_at

# Kernels count picoseconds in 64 bits, and look ahead; nobody waits longer for a real clock.
DRAWN_MAX_S = 1e6
FLOW_MAX_S = 1e18  # totals of so long are below the 1e36 that a record holds
ASKED_MAX = 1_000_000  # half an hour and a gigabyte of series in the flow plane


def simulated_span(description: ScenarioDescription) -> tuple[str, float]:
    """The field that says how long the scenario's plane runs, and that time."""
    horizon_s, event = description.horizon.value, description.event_horizon
    if description.plane in REAL and description.native_horizon is not None:
        return "native_horizon", description.native_horizon.value
    if description.plane in DRAWING_PLANES and event is not None and event.value < horizon_s:
        return "event_horizon", event.value
    return "horizon", horizon_s


def check_plane(document: Document, plane: str) -> None:
    """Refuses a plane that does not exist."""
    if plane not in PLANES:
        raise document.error(("plane",), "unknown plane", token=plane, expected=" or ".join(PLANES))


def check_system(
    document: Document,
    system: System,
    description: ScenarioDescription,
    machine: Machine,
    workload: Workload,
) -> None:
    """Refuses a plane, a workload or a machine that the system does not go with."""
    if description.plane not in (planes := planes_of(system)):
        raise document.error(
            ("plane",),
            f"plane {description.plane} does not run systems of kind {system.name}",
            expected=" or ".join(planes),
        )
    why = foreign_operation(system, workload) or description.system.misfit(workload)
    if why is not None:
        raise document.error(
            ("workload",), f"a system of kind {system.name} cannot run '{workload.name}': {why}"
        )
    with reported_at(document, ("system",)):
        description.system.check(machine, workload)


def foreign_operation(system: System, workload: Workload) -> str | None:
    """Which operation of ``workload`` the system does not run, in words; None if it runs all."""
    for name, operation in workload.operations.items():
        if operation.kind not in system.operations:
            kinds = [
                f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
                for kind in (operation.kind, *system.operations)
            ]
            return f"operation '{name}' is {kinds[0]}: expected {' or '.join(kinds[1:])}"
    return None


def check_pauses(
    written: Document, description: ScenarioDescription, machine: Machine, workload: Workload
) -> None:
    """Refuses clients that pause for longer than a plane that counts time in whole steps can."""
    system, clients = description.system, workload.description.clients
    if description.plane not in (*DRAWING_PLANES, *REAL):
        return
    if clients.arrival_rate is not None:
        # Each worker has arrivals of its own.
        makers = system.arrival_streams(machine)
        field, pause_s = "arrival_rate", makers / clients.arrival_rate.value
        least = f"{makers / system.PAUSE_MAX_S:.4g}"
        expected = (
            f"at least {least}/s, one in {system.PAUSE_MAX_S:,.0f} s for each of {makers} workers"
        )
    else:
        field, pause_s = "think_time", clients.think_time.value
        expected = f"at most {system.PAUSE_MAX_S:,.0f} s"
    if pause_s > system.PAUSE_MAX_S:
        place = ("clients", field)
        raise written.error(
            place,
            f"clients.{field}: out of the range of plane {description.plane}",
            token=str(written.part(place)),
            expected=expected,
        )


def check_horizon(document: Document, description: ScenarioDescription) -> None:
    """Refuses more time than a plane that counts it in whole steps can, or a record holds."""
    field, played_s = simulated_span(description)
    counted = description.plane in (*DRAWING_PLANES, *REAL)
    most_s = DRAWN_MAX_S if counted else FLOW_MAX_S
    if played_s > most_s:
        raise document.error(
            (field,),
            f"{field}: too long for plane {description.plane}",
            token=time_text(played_s),
            expected=f"at most {most_s:,.0f} s" if counted else f"at most {most_s:g} s",
        )


def check_questions(
    document: Document, description: ScenarioDescription, chosen: Mapping[str, ChosenPolicy]
) -> None:
    """Refuses what would take forever: the plane runs on from one question to the next."""
    field, played_s = simulated_span(description)
    acting = [policy for policy in chosen.values() if policy.acts]
    asked = sum(played_s / policy.period_s for policy in acting)
    if asked > ASKED_MAX:
        shortest = min(acting, key=lambda policy: policy.period_s)
        raise document.error(
            (field,),
            f"{field}: policies would be asked {asked:.3g} times",
            token=time_text(played_s),
            expected=f"at most {ASKED_MAX:,} times (policy {shortest.name} each "
            f"{time_text(shortest.period_s)})",
        )


def check_warm_up(document: Document, description: ScenarioDescription) -> None:
    """Told where the later of both was said: a setting comes after a file."""
    warm_up_s, (field, played_s) = description.statistics.warm_up_s, simulated_span(description)
    if warm_up_s is None or warm_up_s < played_s:
        return
    place = ("statistics", "warm_up")
    if place in document.marks and (field,) not in document.marks:
        raise document.error(
            (field,),
            f"{field}: nothing is left of it after statistics.warm_up",
            token=time_text(played_s),
            expected=f"more than {time_text(warm_up_s)}",
        )
    raise document.error(
        place,
        f"statistics.warm_up: nothing is left of {field}",
        token=time_text(warm_up_s),
        expected=f"less than {time_text(played_s)}",
    )
