"""The parts of a scenario that it names or contains: machine, workload, and other files.

A name is a bundled one or a path, relative to the file that says it.

Reads an engine's profile, and puts what it costs on a machine into the machine's description.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from ...inputs import (
    Catalogue,
    DescriptionError,
    Document,
    InputError,
    Setting,
    Strict,
    changed,
    load_yaml,
    part_of,
    with_setting,
)
from ...inputs.fields import near
from ...inputs.settings import place_of
from ...inputs.shared_work import KEPT_MAX, once
from ...inputs.text_lines import check_regular
from ...inputs.yaml_file import Place
from ...topologies import Machine, MachineDescription, load_machine, machine_from_document
from ...topologies.catalogue import CATALOGUE as MACHINES
from ...topologies.machine import kept_machines
from ...topologies.schema_types import Misfit
from ...workloads import Workload, WorkloadDescription, load_workload, workload_from_document
from ...workloads.catalogue import CATALOGUE as WORKLOADS
from ...workloads.keys import Recorded
from ..control import ChosenPolicy
from ..systems.descriptor import EngineProfile, ProfileFile
from ..systems.registry import check_engines, systems
from .scenario_description import described_system

Result = TypeVar("Result")

INNER: dict[str, tuple[Catalogue, type[Strict]]] = {
    "machine": (MACHINES, MachineDescription),
    "workload": (WORKLOADS, WorkloadDescription),
}
"""What a scenario names or holds in full: the bundled ones, and how one is described."""


def machine_of(document: Document, settings: Sequence[Setting]) -> Machine:
    """The machine that is named or held in full, as set."""
    if document.part(("engine",)) is not None:
        return _machine_with_engine(document, settings)
    return _made_once(
        document, "machine", settings, lambda: _machine(document, settings), kept_machines
    )


def _machine(document: Document, settings: Sequence[Setting]) -> Machine:
    place = ("machine",)
    named = document.part(place)
    if isinstance(named, str) and not settings:
        machine = load_machine(_path_of(document, place, named, MACHINES))
    else:
        part, _ = named_or_inline(document, "machine", settings)
        machine = machine_from_document(part)
    check_engines(machine)
    return machine


def _machine_with_engine(document: Document, settings: Sequence[Setting]) -> Machine:
    """The machine as set, with what the engine of the scenario's profile takes there; settings of
    engines come last.
    """
    place = ("engine",)
    named = document.part(place)
    of_engines = [setting for setting in settings if setting.path[0] == "engines"]
    others = [setting for setting in settings if setting.path[0] != "engines"]
    part, _ = named_or_inline(document, "machine", others)
    with reported_at(document, place):
        engine = load_engine(folder_of(document, place) / named)
    check_kind(document, engine, described_system(document).name)
    part = with_engine(part, engine, machine_from_document(part))
    part = _as_set(part, MachineDescription, of_engines)
    machine = machine_from_document(part)
    check_engines(machine)
    return machine


def _made_once(
    document: Document,
    part: str,
    settings: Sequence[Setting],
    make: Callable[[], Result],
    most: Callable[[Result], int] = lambda made: KEPT_MAX,
) -> Result:
    """What ``make`` makes of a part of ``document`` as set: made once while work is shared."""
    named = document.part((part,))
    setting_texts = tuple((setting.path, repr(setting.value)) for setting in settings)
    folder = str(folder_of(document, (part,)))
    if isinstance(named, str):
        return once(part, (named, folder, setting_texts), make, most)
    # As a part that is held in full is kept beside what was made of it, no other one has its id.
    _, made = once(
        f"{part} in full",
        (id(named), folder, setting_texts),
        lambda: (named, make()),
        lambda kept: most(kept[1]),
    )
    return made


def workload_of(document: Document, settings: Sequence[Setting]) -> tuple[Workload, Path, Document]:
    """The workload, the folder that its files are looked for in, and how it is written."""
    return _made_once(document, "workload", settings, lambda: _workload(document, settings))


def _workload(document: Document, settings: Sequence[Setting]) -> tuple[Workload, Path, Document]:
    place = ("workload",)
    named = document.part(place)
    part, folder = named_or_inline(document, "workload", settings)
    if isinstance(named, str) and WORKLOADS.is_bundled(named) and not settings:
        with reported_at(document, place):
            return load_workload(named), WORKLOADS.folder, part
    return workload_from_document(part, folder), folder, part


def _path_of(document: Document, place: Place, named: str, catalogue: Catalogue) -> Path:
    """The file that is named at ``place``; an error of reading it tells who named it."""
    with reported_at(document, place):
        path = catalogue.path(named, folder_of(document, place))
        try:
            check_regular(path)
            path.open("rb").close()
        except OSError as failure:
            raise InputError(f"{path}: cannot be read: {failure.strerror}") from None
        return path


def named_or_inline(
    document: Document, part: str, settings: Sequence[Setting] = ()
) -> tuple[Document, Path]:
    """The description of the ``machine`` or ``workload``, as set, and the folder of its file."""
    place, (catalogue, model) = (part,), INNER[part]
    named, folder = document.part(place), folder_of(document, place)
    if isinstance(named, str):
        path = _path_of(document, place, named, catalogue)
        described, folder = once("file", path, lambda: load_yaml(path)), path.parent
    else:
        described = part_of(document, place)
    return _as_set(described, model, settings), folder


def _as_set(part: Document, model: type[Strict], settings: Sequence[Setting]) -> Document:
    """``part`` with the settings. A fact whose value is set is certain: it keeps no range, nor a
    mark of doubt, unless these are set as well.
    """
    for setting in settings:
        part = with_setting(part, model, setting)
    paths = {setting.path for setting in settings}
    for setting in settings:
        *fact, field = setting.path
        drop = {name for name in ("range", "doubtful") if (*fact, name) not in paths}
        place = place_of(part, model, setting)[:-1]
        stated = part.part(place)
        if field in ("value", "protocol") and place and not drop.isdisjoint(stated):
            rest = {name: value for name, value in stated.items() if name not in drop}
            part = changed(part, place, rest, setting.source)
    return part


def check_mappings(document: Document, place: Place) -> None:
    """Refuses anything but a mapping, or nothing, at ``place`` and around it."""
    for depth in range(len(place) + 1):
        part = document.part(place[:depth])
        if part is not None and not isinstance(part, dict):
            where = ".".join(map(str, place[:depth])) or "file"
            raise document.error(place[:depth], f"{where}: expected a mapping")


def folder_of(document: Document, place: Place) -> Path:
    """The folder that a path at ``place`` is relative to: its file's; else the current one."""
    return Path(document.source_of(place)).parent if place in document.marks else Path()


@contextmanager
def reported_at(document: Document, place: Place, name: str | None = None) -> Iterator[None]:
    """Gives an error that does not know where it stands its place in the document, and the ``name``
    of that; so does one of a file as a whole that is named there.
    """
    try:
        yield
    except InputError as failure:
        if failure.file:
            if not failure.of_whole_file or place not in document.marks:
                raise
            name = failure.file
        message = failure.message if name is None else f"{name}: {failure.message}"
        raise document.error(
            place, message, token=failure.token, expected=failure.expected
        ) from None
    except DescriptionError as failure:
        where = (*place, *failure.place)
        raise document.error(where, f"{'.'.join(map(str, where))}: {failure}") from None


def with_files(
    whole: dict[str, Any], chosen: Mapping[str, ChosenPolicy], written: Callable[[Path], str]
) -> dict[str, Any]:
    """The settings, in which each path of a file is as ``written`` writes it: what has such paths
    is copied.
    """
    found = dict(whole)
    if any(policy.file is not None for policy in chosen.values()):
        found["policies"] = deepcopy(whole["policies"])
    for family, policy in chosen.items():
        if policy.file is not None:
            found["policies"][family]["file"] = written(policy.file.absolute())
    if any(_with_file(whole["workload"])):
        found["workload"] = deepcopy(whole["workload"])
    for named in _with_file(found["workload"]):
        named["file"] = written(Path(named["file"]))
    return found


def _with_file(workload: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The parts of a workload that name a file."""
    for part in (workload, *workload.get("phases", ())):
        for operation in part["operations"].values():
            for named in (operation.get("keys", {}), *operation.get("operators", {}).values()):
                if "file" in named:
                    yield named


def anywhere(path: Path, folder: Path) -> str:
    """A path that leads to the same file from any folder; a bundled file needs its name alone."""
    relative = (folder / path).absolute()
    return str(relative) if relative.exists() and relative.parent != WORKLOADS.folder else str(path)


_as_text = json.JSONEncoder(sort_keys=True).encode


def hash_of(
    whole: dict[str, Any],
    machine: Machine,
    described: Workload,
    workload: Workload,
    chosen: Mapping[str, ChosenPolicy],
) -> str:
    """Of what the scenario says and of what its files hold, not of where they lie; ``workload`` is
    what is ``described``, as large as the scenario says.
    """
    setting_texts = with_files(whole, chosen, lambda path: path.name)
    # As JSON with sorted keys; the texts of machine and workload, most of it, are made once.
    texts = {"machine": machine.plain_text}
    if setting_texts["workload"] is described.plain:
        texts["workload"] = described.plain_text
    texts |= {name: _as_text(part) for name, part in setting_texts.items() if name not in texts}
    text = ", ".join(f"{json.dumps(name)}: {texts[name]}" for name in sorted(texts))
    digest = hashlib.sha256(f"{{{text}}}".encode())
    for family in sorted(chosen):
        if (file := chosen[family].file) is not None:
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    for phase in workload.phases:
        for operation in phase.operations.values():
            if isinstance(operation.keys, Recorded):
                density = operation.keys.density()
                digest.update(density.breaks.tobytes() + density.mass.tobytes())
            for trace in operation.traces.values():
                digest.update(repr(trace).encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class Engine:
    """A profile that was read: of which ``system``, and its ``facts``."""

    file: str
    system: str
    facts: EngineProfile
    misfit: Misfit | None = None


def load_engine(path: Path) -> Engine:
    """The profile in the file at ``path``; raises InputError."""
    document = load_yaml(path)
    described = document.read_as(ProfileFile)
    profiles = {system.name: system.profile for system in systems() if system.profile is not None}
    if described.system not in profiles:
        raise document.error(
            ("system",),
            "no profiles of engines of this kind",
            token=described.system,
            expected=near(described.system, profiles) or f"one of {', '.join(profiles)}",
        )
    facts = document.read_as(profiles[described.system], ("facts",))
    return Engine(document.file, described.system, facts, described.misfit)


def with_engine(document: Document, engine: Engine, machine: Machine) -> Document:
    """The machine's ``document`` with what the engine takes on it; ``machine``: as it is there."""
    plain = engine.facts.on(machine).model_dump(mode="json", exclude_defaults=True)
    document = changed(document, ("engines", engine.system), plain, engine.file)
    if engine.misfit is None:
        return document
    return changed(document, ("engine_misfit",), engine.misfit.model_dump(), engine.file)


def on_machine(machine: Machine, system: str, profile: EngineProfile) -> Machine:
    """``machine`` with what an engine of that profile takes there, in its description alone."""
    return replace(machine, description=machine.description.with_facts(system, profile.on(machine)))


def check_kind(document: Document, engine: Engine, system: str) -> None:
    """Raises InputError for a profile of another kind of engine than the scenario's ``system``."""
    if engine.system != system:
        raise document.error(
            ("engine",),
            f"a profile of engines of kind {engine.system}",
            token=engine.file,
            expected=f"one of kind {system}, as the scenario's system is",
        )
