"""Scenarios: a machine, a workload, a system and its policies, for so long and with that seed.

A scenario file names its machine and workload, or holds them in full. It may extend another one,
and any field may be set from outside; what comes of it all stands in ``Scenario.settings``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from ...inputs import (
    Catalogue,
    Document,
    InputError,
    Setting,
    Strict,
    changed,
    load_yaml,
    merged,
    parse_setting,
    with_setting,
)
from ...inputs.names import Name
from ...inputs.quantities import Duration, time_text
from ...inputs.yaml_file import Place
from ...topologies import Machine
from ...workloads import (
    Workload,
    scaled,
)
from ..control import Policy, families
from ..control.policy_spec import PolicySpec
from ..systems.commits.spec import CommitSystem
from ..systems.eris.spec import AnySystem, ErisSystem
from .plan import Statistics
from .scenario_parts import (
    anywhere,
    folder_of,
    hash_of,
    machine_of,
    policies_of,
    told_at,
    with_files,
    workload_of,
)

BUNDLED = Path(__file__).parents[1] / "scenarios"
CATALOGUE = Catalogue(BUNDLED, "scenario")

PLANES = ("flow", "event", "reference", "native")
DRAWING_PLANES = ("event", "reference")
OWN_HORIZONS = ("event_horizon", "native_horizon")
NATIVE = "native"
SIMULATED = ("flow", "event", "reference")

BALANCING = "load_balancing"  # the policy family that ``--policy`` chooses from
EXTENDED_MAX = 16
SEED_MAX = 2**64 - 1
# Kernels count picoseconds in 64 bits, and look ahead; nobody waits longer for a real clock.
DRAWN_MAX_S = 1e6


class ScenarioDescription(Strict):
    """A scenario file, with what it extends.

    ``machine`` and ``workload``: a bundled name, the path of a file (relative to this one), or a
    description in full. ``policies``: by family; each is ``none`` by default. ``statistics``: of
    planes that draw at random; these play ``event_horizon`` where that is shorter than ``horizon``,
    as a steady state needs no more. The native plane plays ``native_horizon`` where there is one,
    as real clocks and threads need longer. A ``horizon`` that is set from outside counts for each
    plane whose own is not. ``scale``: so much of the workload's objects is there.
    """

    name: Name
    title: str = ""
    source: str | None = None
    notes: tuple[str, ...] = ()
    machine: str | dict[str, Any]
    workload: str | dict[str, Any]
    system: AnySystem = ErisSystem()
    policies: dict[str, PolicySpec] = Field(default_factory=dict)
    horizon: Duration
    event_horizon: Duration | None = None
    native_horizon: Duration | None = None
    scale: Annotated[float, Field(strict=True, gt=0, le=1)] = 1.0
    seed: Annotated[int, Field(strict=True, ge=0, le=SEED_MAX)] = 0
    plane: str = "flow"
    statistics: Statistics = Statistics()


@dataclass(frozen=True, eq=False)
class Scenario:
    """All that a run needs. ``new_policy`` makes the load balancer, asked every ``period_s``.

    ``horizon_s``: how long the plane plays; ``shortened``: what of the file makes that less than
    its ``horizon``, and of how much it is a part, in words; empty where nothing does.
    ``settings``: the whole scenario as plain JSON values, after all that it extends and all that
    was set, machine and workload in full: ``scenario_from_settings`` makes it again. ``hash``: of
    these settings and of the files that they name (SHA-256); the same for the same scenario,
    wherever its files lie. ``workload`` is as large as ``scale`` says.
    """

    name: str
    title: str
    source: str | None
    machine: Machine
    workload: Workload
    system: AnySystem
    policy_name: str
    new_policy: Callable[[], Policy]
    period_s: float
    horizon_s: float
    shortened: str
    scale: float
    seed: int
    plane: str
    statistics: Statistics
    settings: Mapping[str, Any]
    hash: str

    @property
    def policy_names(self) -> Mapping[str, str]:
        """The name of the policy of each family."""
        return {BALANCING: self.policy_name}


def scenario_names() -> tuple[str, ...]:
    """The names of the bundled scenarios, in alphabetical order."""
    return tuple(CATALOGUE.names())


def load_scenario(
    name_or_path: str | Path,
    *,
    machine: str | None = None,
    workload: str | None = None,
    policy: str | None = None,
    plane: str | None = None,
    seed: int | None = None,
    replications: int | None = None,
    scale: float | None = None,
    settings: Sequence[str] = (),
) -> Scenario:
    """The bundled scenario of that name, or the one in that file; raises InputError.

    The options stand in for what the file says. ``machine``, ``workload``: names or paths;
    ``policy``: the name of a load balancer, or ``my_policy.py:MyBalancer``; paths are relative to
    the current folder. ``settings``: ``path=value`` each, for any field of the scenario, of its
    machine (``machine.…``) and its workload (``workload.…``); the later one wins.
    """
    document = _extended(load_yaml(CATALOGUE.path(str(name_or_path))))
    for place, option, value in (
        (("machine",), "machine", machine),
        (("workload",), "workload", workload),
        (("plane",), "on", plane),
        (("seed",), "seed", seed),
        (("statistics", "replications"), "replications", replications),
        (("scale",), "scale", scale),
    ):
        if value is not None:
            _check_mappings(document, place[:-1])
            document = changed(document, place, value, f"--{option} {value}")
    parsed = [parse_setting(text) for text in settings]
    if policy is not None:
        document = _with_policy(document, policy)
    return _scenario(document, parsed)


def scenario_from_settings(settings: Mapping[str, Any], name: str = "settings") -> Scenario:
    """The scenario that these ``settings`` are of; ``name`` stands in errors. Raises InputError."""
    return _scenario(Document(dict(settings), name), [])


def _extended(document: Document, depth: int = 0) -> Document:
    """The document over the one that it extends, which may extend another."""
    place = ("extends",)
    if not isinstance(document.value, dict) or "extends" not in document.value:
        return document
    extends = document.value["extends"]
    if not isinstance(extends, str):
        raise document.error(place, "extends: expected the name or path of a scenario")
    if depth == EXTENDED_MAX:
        raise document.error(
            place, "extends too many", expected=f"at most {EXTENDED_MAX}, and no circle"
        )
    with told_at(document, place):
        path = CATALOGUE.path(extends, folder_of(document, place))
    own = {key: value for key, value in document.value.items() if key != "extends"}
    return merged(_extended(load_yaml(path), depth + 1), replace(document, value=own))


def _with_policy(document: Document, policy: str) -> Document:
    """The document with another load balancer; the period stays, options of the old one go."""
    source, place = f"--policy {policy}", ("policies", BALANCING)
    _check_mappings(document, place)
    file, _, class_name = policy.rpartition(":")
    spec: dict[str, Any] = {"policy": policy}
    dropped = {"file", "class", "options"}
    if ".py:" in policy or policy.endswith(".py"):
        if not class_name.isidentifier() or not file.endswith(".py"):
            raise InputError("no policy class", source, expected="FILE.py:CLASS")
        spec = {"file": file, "class": class_name}
        dropped = {"policy", "threshold", "options"}
    for key in dropped & set(document.part(place) or ()):
        document = changed(document, (*place, key), None, source)
    for key, value in spec.items():
        document = changed(document, (*place, key), value, source)
    return document


def _scenario(document: Document, settings: Sequence[Setting]) -> Scenario:
    """The scenario of a document that extends no other."""
    document = _with_all_families(document)  # so that they can be set
    inner: dict[str, list[Setting]] = {"machine": [], "workload": []}
    for setting in settings:
        if setting.path[0] in inner and len(setting.path) > 1:
            inner[setting.path[0]].append(setting.inside())
        else:
            document = with_setting(document, ScenarioDescription, setting)
    document = _with_set_horizon(document, [setting.path for setting in settings])
    document = _with_all_families(document)  # so that they stand in the settings
    description = document.read_as(ScenarioDescription)
    _check_plane(document, description.plane)
    machine = machine_of(document, inner["machine"])
    described, folder, written = workload_of(document, inner["workload"])
    with told_at(document, ()):
        workload = scaled(described, description.scale)
    if not any(node.cores for node in machine.nodes):
        raise document.error(
            ("machine",),
            f"no node of machine '{machine.name}' has cores, so nothing can run there",
            expected="'cores' in a node type of its file",
        )
    _check_system(document, description, machine, workload)
    _check_pauses(written, description, machine, workload)
    _check_horizon(document, description)
    _check_warm_up(document, description)
    _check_deaths(document, description)
    chosen = policies_of(document, description.policies, description.system)
    whole = description.model_dump(mode="json", exclude_none=True) | {
        # What facts were measured by, no plane reads; it would be taken along with each record.
        "machine": machine.description.model_dump(
            mode="json", exclude_none=True, exclude={"measurements"}
        ),
        "workload": described.description.model_dump(mode="json", exclude_none=True),
    }
    return Scenario(
        name=description.name,
        title=description.title,
        source=description.source,
        machine=machine,
        workload=workload,
        system=description.system,
        policy_name=chosen[BALANCING].name,
        new_policy=chosen[BALANCING].make,
        period_s=description.policies[BALANCING].period.value,
        horizon_s=_played(description)[1],
        shortened=_shortened(description),
        scale=description.scale,
        seed=description.seed,
        plane=description.plane,
        statistics=description.statistics,
        settings=with_files(whole, chosen, lambda path: anywhere(path, folder)),
        hash=hash_of(whole, workload, chosen),
    )


def _with_all_families(document: Document) -> Document:
    """The document with an entry for each policy family."""
    if isinstance(document.value, dict):
        _check_mappings(document, ("policies",))
        for family in families():
            if document.part(("policies", family)) is None:
                document = changed(document, ("policies", family), {}, document.file)
    return document


def _check_mappings(document: Document, place: Place) -> None:
    """Refuses anything but a mapping, or nothing, at ``place`` and around it."""
    for depth in range(len(place) + 1):
        part = document.part(place[:depth])
        if part is not None and not isinstance(part, dict):
            where = ".".join(map(str, place[:depth])) or "file"
            raise document.error(place[:depth], f"{where}: expected a mapping")


def _check_plane(document: Document, plane: str) -> None:
    if plane not in PLANES:
        raise document.error(("plane",), "unknown plane", token=plane, expected=" or ".join(PLANES))


def _check_system(
    document: Document, description: ScenarioDescription, machine: Machine, workload: Workload
) -> None:
    """Refuses a plane, a workload or a machine that the system does not go with."""
    system = description.system
    if description.plane not in system.PLANES:
        raise document.error(
            ("plane",),
            f"plane {description.plane} does not play systems of kind {system.kind}",
            expected=" or ".join(system.PLANES),
        )
    if (why := system.misfit(workload)) is not None:
        raise document.error(
            ("workload",), f"a system of kind {system.kind} cannot run '{workload.name}': {why}"
        )
    with told_at(document, ("system",)):
        system.check(machine, workload)


def _check_pauses(
    written: Document, description: ScenarioDescription, machine: Machine, workload: Workload
) -> None:
    """Refuses clients that pause for longer than a plane that counts time in whole steps can."""
    system, clients = description.system, workload.description.clients
    if description.plane not in (*DRAWING_PLANES, NATIVE):
        return
    if clients.arrival_rate is not None:
        # Each worker has arrivals of its own.
        makers = len(system.aeu_nodes(machine)) if isinstance(system, ErisSystem) else 1
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


def _with_set_horizon(document: Document, paths: Sequence[tuple[str, ...]]) -> Document:
    """Without a plane's own horizon where only the horizon of all is set from outside."""
    if ("horizon",) in paths:
        for name in OWN_HORIZONS:
            if (name,) not in paths and document.part((name,)) is not None:
                document = changed(document, (name,), None, document.source_of(("horizon",)))
    return document


def _played(description: ScenarioDescription) -> tuple[str, float]:
    """The field that says how long the scenario's plane plays, and that time."""
    horizon_s, event = description.horizon.value, description.event_horizon
    if description.plane == NATIVE and description.native_horizon is not None:
        return "native_horizon", description.native_horizon.value
    if description.plane in DRAWING_PLANES and event is not None and event.value < horizon_s:
        return "event_horizon", event.value
    return "horizon", horizon_s


def _shortened(description: ScenarioDescription) -> str:
    field, played_s = _played(description)
    whole_s = description.horizon.value
    if played_s >= whole_s:
        return ""
    whole = time_text(whole_s)
    return f"played {time_text(played_s)} ({field}) of the {whole} that the scenario lasts"


def _check_horizon(document: Document, description: ScenarioDescription) -> None:
    field, played_s = _played(description)
    if description.plane in (*DRAWING_PLANES, NATIVE) and played_s > DRAWN_MAX_S:
        raise document.error(
            (field,),
            f"{field}: too long for plane {description.plane}",
            token=time_text(played_s),
            expected=f"at most {DRAWN_MAX_S:,.0f} s",
        )


def _check_warm_up(document: Document, description: ScenarioDescription) -> None:
    """Told where the later of both was said: a setting comes after a file."""
    warm_up_s, (field, played_s) = description.statistics.warm_up_s, _played(description)
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


def _check_deaths(document: Document, description: ScenarioDescription) -> None:
    """Refuses a client that dies after the end: such a fault would do nothing, without a word."""
    if not isinstance(description.system, CommitSystem):
        return
    _, played_s = _played(description)
    for at, death in enumerate(description.system.deaths):
        if death.at.value >= played_s:
            raise document.error(
                ("system", "deaths", at, "at"),
                f"system.deaths.{at}.at: client {death.client} dies at {death.at.value:g} s, "
                "after the horizon",
                expected=f"less than {played_s:g} s",
            )
