"""Scenarios: a machine, a workload, a system and its policies, for so long and with that seed.

A scenario file names its machine and workload, or holds them in full. It may extend another one,
and any field may be set from outside; what comes of it all stands in ``Scenario.settings``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from ...inputs import (
    Catalogue,
    Document,
    InputError,
    Setting,
    changed,
    load_yaml,
    merged,
    parse_setting,
    with_setting,
)
from ...inputs.errors import Place
from ...inputs.fields import field_names
from ...inputs.kinds import check_kind
from ...inputs.quantities import time_text
from ...inputs.shared_work import once
from ...topologies import Machine
from ...workloads import Workload, scaled
from ..control import ChosenPolicy
from ..planes.plane import Change
from ..systems.descriptor import System, SystemSpec
from .hypotheses import Unknowns
from .real_planes import OWN_HORIZONS
from .scenario_checks import (
    check_horizon,
    check_pauses,
    check_plane,
    check_questions,
    check_system,
    check_warm_up,
    simulated_span,
)
from .scenario_description import ScenarioDescription, Statistics, described_system, description_of
from .scenario_parts import (
    INNER,
    anywhere,
    check_mappings,
    folder_of,
    hash_of,
    machine_of,
    named_or_inline,
    reported_at,
    with_files,
    workload_of,
)
from .scenario_policies import (
    policies_of,
    policy_text,
    with_long_forms,
    with_policies,
    without_foreign_families,
)

BUNDLED = Path(__file__).parents[1] / "scenarios"
CATALOGUE = Catalogue(BUNDLED, "scenario")

EXTENDED_MAX = 16
WORDS = ("name", "title", "source", "notes", "kind")  # of a part, which no run draws

At = tuple[str | None, int | None, int | None]


@dataclass(frozen=True, eq=False)
class Scenario:
    """All that a run needs. ``policies``: by family, in the order in which they are asked.

    ``horizon_s``: how long the plane runs; ``shortened``: what of the file makes that less than
    its ``horizon``, and of how much it is a part, in words; empty where nothing does.
    ``settings``: the whole scenario as plain JSON values, after all that it extends and all that
    was set, machine and workload in full: ``scenario_from_settings`` makes it again. ``hash``: of
    these settings and of the files that they name (SHA-256); the same for the same scenario,
    wherever its files lie. ``workload`` is as large as ``scale`` says; ``workload_at``: the file
    (or the option), line and column that name or hold it.
    """

    name: str
    title: str
    source: str | None
    machine: Machine
    workload: Workload
    system: SystemSpec
    policies: Mapping[str, ChosenPolicy]
    horizon_s: float
    shortened: str
    scale: float
    seed: int
    plane: str
    statistics: Statistics
    settings: Mapping[str, Any]
    hash: str
    workload_at: At = (None, None, None)

    @property
    def policy_names(self) -> Mapping[str, str]:
        """The name of the policy of each family."""
        return {family: chosen.name for family, chosen in self.policies.items()}

    @property
    def policy_name(self) -> str:
        """Its policies in one line: the name of the only one, or ``family=name`` of each."""
        return policy_text(dict(self.policy_names))

    @property
    def changes(self) -> tuple[Change, ...]:
        """What happens to the system, by time."""
        return self.system.changes(self.machine)

    @property
    def period_s(self) -> float:
        """The shortest time between two questions to its policies; the horizon without any."""
        periods = (chosen.period_s for chosen in self.policies.values())
        return min(periods, default=self.horizon_s)


def scenario_names() -> tuple[str, ...]:
    """The names of the bundled scenarios, in alphabetical order."""
    return tuple(CATALOGUE.names())


def load_scenario(
    name_or_path: str | Path,
    *,
    machine: str | None = None,
    workload: str | None = None,
    policy: str | Sequence[str] | None = None,
    plane: str | None = None,
    seed: int | None = None,
    replications: int | None = None,
    scale: float | None = None,
    settings: Sequence[str] = (),
) -> Scenario:
    """Load the bundled scenario of that name, or the one in that file.

    The options take the place of what the file says.

    Parameters
    ----------
    name_or_path : str or Path
        A name that ``numatwin scenario list`` prints, or the path of a scenario file.
    machine, workload : str, optional
        Name or path; relative to the current folder.
    policy : str or sequence of str, optional
        Names of policies, or ``my_policy.py:MyClass``; after ``family=`` where the system has
        several families.
    plane : str, optional
        One of ``flow``, ``event``, ``reference``, ``native``, ``emulator``.
    seed, replications : int, optional
        Seed of all random streams; runs with independent draws, at least.
    scale : float, optional
        Part of the workload's size, more than 0.
    settings : sequence of str
        ``path=value`` each, for any field of the scenario, its machine (``machine.…``) and its
        workload (``workload.…``); the later one wins.

    Returns
    -------
    Scenario

    Raises
    ------
    InputError
        If a description or an option is wrong; says where.
    """
    return scenario_of_document(
        load_document(name_or_path),
        settings,
        machine=machine,
        workload=workload,
        policy=policy,
        plane=plane,
        seed=seed,
        replications=replications,
        scale=scale,
    )


def load_document(name_or_path: str | Path) -> Document:
    """The document of a bundled scenario or a scenario file, over all that it extends."""
    path = CATALOGUE.path(str(name_or_path))
    return once("scenario", path, lambda: extended(_loaded(path)))


def scenario_of_document(
    document: Document,
    settings: Sequence[str] = (),
    *,
    machine: str | None = None,
    workload: str | None = None,
    policy: str | Sequence[str] | None = None,
    plane: str | None = None,
    seed: int | None = None,
    replications: int | None = None,
    scale: float | None = None,
) -> Scenario:
    """The scenario of a document that extends no other; see ``load_scenario``."""
    for place, option, value in (
        (("machine",), "machine", machine),
        (("workload",), "workload", workload),
        (("plane",), "on", plane),
        (("seed",), "seed", seed),
        (("statistics", "replications"), "replications", replications),
        (("scale",), "scale", scale),
    ):
        if value is not None:
            check_mappings(document, place[:-1])
            document = changed(document, place, value, f"--{option} {value}")
    parsed = [parse_setting(text) for text in settings]
    if policy is not None:
        kind = [setting for setting in parsed if setting.path == ("system", "kind")]
        for setting in kind:  # whose families they are
            document = changed(document, setting.path, setting.value, setting.source)
        document = with_policies(document, [policy] if isinstance(policy, str) else policy)
    return _scenario(document, parsed)


def scenario_from_settings(settings: Mapping[str, Any], name: str = "settings") -> Scenario:
    """The scenario that these ``settings`` are of; ``name`` stands in errors. Raises InputError."""
    return _scenario(Document(dict(settings), name), [])


def _loaded(path: str | Path) -> Document:
    return with_long_forms(load_yaml(path))


def extended(document: Document, depth: int = 0) -> Document:
    """The document over the one that it extends, which may extend another."""
    check_kind(document, "scenario")
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
    with reported_at(document, place):
        base = _loaded(CATALOGUE.path(extends, folder_of(document, place)))
    own = {key: value for key, value in document.value.items() if key != "extends"}
    return merged(extended(base, depth + 1), replace(document, value=own))


def _scenario(
    document: Document, settings: Sequence[Setting], *, open_ones: bool = True
) -> Scenario:
    """The scenario of a document that extends no other; ``open_ones``: its unknown fields have no
    values yet."""
    inner: dict[str, list[Setting]] = {part: [] for part in INNER}
    outer = []
    for setting in settings:
        if setting.path[0] in inner and len(setting.path) > 1:
            inner[setting.path[0]].append(setting.inside())
        else:
            outer.append(setting)
    settings_key = tuple((setting.path, repr(setting.value), setting.source) for setting in outer)
    # As what was read keeps the document it was read from, no other one has its id.
    read = once("description", (id(document), settings_key), lambda: _read(document, outer))
    document, system, description = read.document, read.system, read.description
    check_plane(document, description.plane)
    machine = machine_of(document, inner["machine"])
    described, folder, written = workload_of(document, inner["workload"])
    with reported_at(document, ()):
        workload = scaled(described, description.scale)
    if not any(node.cores for node in machine.nodes):
        raise document.error(
            ("machine",),
            f"no node of machine '{machine.name}' has cores, so nothing can run there",
            expected="'cores' in a node type of its file",
        )
    check_system(document, system, description, machine, workload)
    check_pauses(written, description, machine, workload)
    check_horizon(document, description)
    check_warm_up(document, description)
    with reported_at(document, ("system",)):
        description.system.check_horizon(simulated_span(description)[1])
    chosen = policies_of(document, description, system)
    check_questions(document, description, chosen)
    if description.unknown and open_ones:
        _check_unknown(document, settings, description)
        try:
            return _scenario(document, _stated(settings, description.unknown), open_ones=False)
        except InputError:  # not all between two ends can be, such as a size of pages
            firsts = _stated(settings, description.unknown, middle=False)
            return _scenario(document, firsts, open_ones=False)
    whole = {**read.plain, "machine": machine.plain, "workload": described.plain}
    return Scenario(
        name=description.name,
        title=description.title,
        source=description.source,
        machine=machine,
        workload=workload,
        system=description.system,
        policies=chosen,
        horizon_s=simulated_span(description)[1],
        shortened=_shortened(description),
        scale=description.scale,
        seed=description.seed,
        plane=description.plane,
        statistics=description.statistics,
        settings=with_files(whole, chosen, lambda path: anywhere(path, folder)),
        hash=hash_of(whole, machine, described, workload, chosen),
        workload_at=_at(document, ("workload",)),
    )


def _check_unknown(
    document: Document, settings: Sequence[Setting], description: ScenarioDescription
) -> None:
    """Refuses what is said to be unknown where it names no field, or what the field cannot be."""
    known = changed(document, ("unknown",), None, "unknown")
    settings = [setting for setting in settings if setting.path[0] != "unknown"]
    for path, unknown in (description.unknown or {}).items():
        place, fields = ("unknown", path), _instead(path, description)
        if fields:
            raise document.error(
                place,
                f"unknown {path}: no condition of one run",
                expected=f"{fields}; or a scenario of each value, and numatwin compare",
            )
        for value in unknown.values:
            try:
                _scenario(known, [*settings, Setting("unknown", tuple(path.split(".")), value)])
            except InputError as failure:
                text = f"unknown {path}: {failure.message}"
                error = document.error(place, text, token=str(value), expected=failure.expected)
                error.hint = failure.hint
                raise error from None


def _instead(path: str, description: ScenarioDescription) -> str:
    """What may be unknown instead of ``path``, which is not drawn; '' where it is, or no field."""
    root, *inner = path.split(".")
    families = type(description.policies).model_fields
    if root in ("policy", "policies") and not inner and families:
        return " or ".join(f"policies.{family}" for family in families)
    drawn = root in (*INNER, "system", "policies") and inner and inner[0] not in WORDS
    if drawn or root == "scale" or root not in type(description).model_fields:
        return ""
    return "a field of its machine, workload, system or policies, or scale"


def _stated(
    settings: Sequence[Setting], unknown: Unknowns, *, middle: bool = True
) -> list[Setting]:
    """The settings after the ``middle`` or first values of what they leave unknown."""
    stated = {".".join(setting.path) for setting in settings}
    left = {path: one for path, one in unknown.items() if path not in stated}
    values = [
        Setting("unknown", tuple(path.split(".")), one.middle if middle else one.values[0])
        for path, one in left.items()
    ]
    plain = {path: one.model_dump() for path, one in left.items()}
    return [*values, *settings, Setting("unknown", ("unknown",), plain)]


def _at(document: Document, place: Place) -> At:
    error = document.error(place, "")
    return error.file, error.line, error.column


@dataclass(frozen=True)
class _Read:
    """A scenario's description, of which ``plain`` is what a Scenario's settings have of it; the
    ``document`` that it was read from was itself made from ``source``.
    """

    source: Document
    document: Document
    system: System
    description: ScenarioDescription
    plain: Mapping[str, Any]


def _read(source: Document, settings: Sequence[Setting]) -> _Read:
    """The description in a document with ``settings`` of its own fields."""
    document = with_long_forms(source)
    for setting in settings:
        schema = description_of(described_system(document))
        document = with_long_forms(with_own_setting(document, schema, setting))
    document = _with_set_horizon(document, [setting.path for setting in settings])
    system = described_system(document)
    document = without_foreign_families(document, system)
    description = document.read_as(description_of(system))
    # What an engine costs is in the machine's part.
    plain = description.model_dump(mode="json", exclude_none=True, exclude={"engine"})
    return _Read(source, document, system, description, plain)


def _with_set_horizon(document: Document, paths: Sequence[tuple[str, ...]]) -> Document:
    """Without a plane's own horizon where only the horizon of all is set from outside."""
    if ("horizon",) in paths:
        for name in OWN_HORIZONS:
            if (name,) not in paths and document.part((name,)) is not None:
                document = changed(document, (name,), None, document.source_of(("horizon",)))
    return document


def _shortened(description: ScenarioDescription) -> str:
    field, played_s = simulated_span(description)
    whole_s = description.horizon.value
    if played_s >= whole_s:
        return ""
    whole = time_text(whole_s)
    return f"runs {time_text(played_s)} ({field}) of the {whole} that the scenario lasts"


def with_own_setting(document: Document, schema: type[BaseModel], setting: Setting) -> Document:
    """``with_setting`` of a scenario; an error says where the field stands in one of its parts."""
    try:
        return with_setting(document, schema, setting)
    except InputError as failure:
        name, *rest = setting.path
        if rest:
            raise
        path = next(_paths(document, schema, name), None)
        if path is not None:
            failure.expected, failure.hint = None, f"did you mean {path}?"
        raise


def _paths(document: Document, schema: type[BaseModel], name: str) -> Iterator[str]:
    """Paths of the field ``name`` in the parts of a scenario that it names or holds."""
    if name in field_names(schema, ("system",)):
        yield f"system.{name}"
    for part, (_, model) in reversed(INNER.items()):
        if document.part((part,)) is None:
            continue
        described, _ = named_or_inline(document, part)
        for place in _places(described.value, ()):
            if name in field_names(model, place):
                yield ".".join(map(str, (part, *place, name)))


def _places(value: Any, place: Place) -> Iterator[Place]:
    """The places of all mappings, the outer ones first."""
    if isinstance(value, dict):
        yield place
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in inner:
        if isinstance(part, (dict, list)):
            yield from _places(part, (*place, key))
