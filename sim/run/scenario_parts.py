"""The parts of a scenario that it names or contains: machine, workload, and other files.

A name is a bundled one or a path, relative to the file that says it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

from ...inputs import (
    Catalogue,
    DescriptionError,
    Document,
    InputError,
    Setting,
    Strict,
    load_yaml,
    part_of,
    with_setting,
)
from ...inputs.yaml_file import Place
from ...topologies import Machine, MachineDescription, load_machine, machine_from_document
from ...topologies.catalogue import CATALOGUE as MACHINES
from ...workloads import Workload, WorkloadDescription, load_workload, workload_from_document
from ...workloads.catalogue import CATALOGUE as WORKLOADS
from ...workloads.keys import Recorded
from ..control import ChosenPolicy
from ..systems.registry import check_engines


def machine_of(document: Document, settings: Sequence[Setting]) -> Machine:
    """The machine that is named or held in full, as set."""
    place = ("machine",)
    named = document.part(place)
    if isinstance(named, str) and not settings:
        with reported_at(document, place):
            machine = load_machine(MACHINES.path(named, folder_of(document, place)))
    else:
        part, _ = _named_or_held(document, place, MACHINES, MachineDescription, settings)
        machine = machine_from_document(part)
    check_engines(machine)
    return machine


def workload_of(document: Document, settings: Sequence[Setting]) -> tuple[Workload, Path, Document]:
    """The workload, the folder that its files are looked for in, and how it is written."""
    place = ("workload",)
    named = document.part(place)
    part, folder = _named_or_held(document, place, WORKLOADS, WorkloadDescription, settings)
    if isinstance(named, str) and WORKLOADS.is_bundled(named) and not settings:
        with reported_at(document, place):
            return load_workload(named), WORKLOADS.folder, part
    return workload_from_document(part, folder), folder, part


def _named_or_held(
    document: Document,
    place: Place,
    catalogue: Catalogue,
    model: type[Strict],
    settings: Sequence[Setting],
) -> tuple[Document, Path]:
    """The description that is named or held at ``place``, as set, and the folder of its file."""
    named, folder = document.part(place), folder_of(document, place)
    if isinstance(named, str):
        with reported_at(document, place):
            path = catalogue.path(named, folder)
        part, folder = load_yaml(path), path.parent
    else:
        part = part_of(document, place)
    for setting in settings:
        part = with_setting(part, model, setting)
    return part, folder


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
def reported_at(document: Document, place: Place) -> Iterator[None]:
    """Gives an error that does not know where it stands its place in the document."""
    try:
        yield
    except InputError as failure:
        if failure.file is not None:
            raise
        raise document.error(
            place, failure.message, token=failure.token, expected=failure.expected
        ) from None
    except DescriptionError as failure:
        at = (*place, *failure.place)
        raise document.error(at, f"{'.'.join(map(str, at))}: {failure}") from None


def with_files(
    whole: dict[str, Any], chosen: Mapping[str, ChosenPolicy], written: Callable[[Path], str]
) -> dict[str, Any]:
    """A copy of the settings, in which each path of a file is as ``written`` writes it."""
    copied = deepcopy(whole)
    for family, policy in chosen.items():
        if policy.file is not None:
            copied["policies"][family]["file"] = written(policy.file.absolute())
    workload = copied["workload"]
    for part in (workload, *workload.get("phases", ())):
        for operation in part["operations"].values():
            for named in (operation.get("keys", {}), *operation.get("operators", {}).values()):
                if "file" in named:
                    named["file"] = written(Path(named["file"]))
    return copied


def anywhere(path: Path, folder: Path) -> str:
    """A path that leads to the same file from any folder; a bundled file needs its name alone."""
    relative = (folder / path).absolute()
    return str(relative) if relative.exists() and relative.parent != WORKLOADS.folder else str(path)


def hash_of(whole: dict[str, Any], workload: Workload, chosen: Mapping[str, ChosenPolicy]) -> str:
    """Of what the scenario says and of what its files hold, not of where they lie."""
    said = with_files(whole, chosen, lambda path: path.name)
    digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode())
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
