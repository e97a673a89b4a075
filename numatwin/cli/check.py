"""``check`` of machines, workloads, scenarios and studies: all errors of a file at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from ..inputs import InputError
from .options import Json, argument
from .output import present
from .status import BAD_INPUT

if TYPE_CHECKING:
    from pathlib import Path

    from ..inputs import Document

PARTS = ("machine", "workload")
File = Annotated[str, argument("FILE", "The file (.yaml), or a bundled name.")]


def check_machine(file: File, json: Json = False) -> None:
    """Check a machine file: list all its errors by line."""
    from ..topologies.catalogue import CATALOGUE

    _tell(file, _errors(CATALOGUE.path(file), _read_machine), json)


def check_workload(file: File, json: Json = False) -> None:
    """Check a workload file: list all its errors by line."""
    from ..workloads.catalogue import CATALOGUE

    _tell(file, workload_errors(CATALOGUE.path(file)), json)


def check_scenario(file: File, json: Json = False) -> None:
    """Check a scenario file and what it names: list all errors by line."""
    _tell(file, scenario_errors(file), json)


def check_study(file: File, json: Json = False) -> None:
    """Check a study file: list all its errors by line."""
    from pathlib import Path

    from ..sim.studies.study import study_of

    _tell(file, _errors(Path(file), study_of), json)


def workload_errors(path: Path) -> list[InputError]:
    """All errors of a workload file."""
    return _errors(path, _reads_workload(path.parent))


def _read_machine(document: Document) -> None:
    from ..sim.systems.registry import check_engines
    from ..topologies import machine_from_document

    check_engines(machine_from_document(document))


def _reads_workload(folder: Path) -> Callable[[Document], object]:
    from ..workloads import workload_from_document

    return lambda document: workload_from_document(document, folder)


def scenario_errors(file: str) -> list[InputError]:
    """All errors of a scenario file, and of the machine and the workload that it names or holds.

    What they must have in common is checked once each of them is right.
    """
    from ..inputs.every_error import every_error, in_order
    from ..sim.run.scenario import CATALOGUE, extended, scenario_of_document
    from ..sim.run.scenario_description import described_system, description_of

    path, found = CATALOGUE.path(file), list[InputError]()
    try:
        document, found = _loaded(path)
        document = extended(document)
    except InputError as failure:
        return in_order([*found, failure])

    def read_alone(one: Document) -> None:
        one.read_as(description_of(described_system(one)))

    own, repaired = every_error(document, read_alone)
    found += own
    held = [part for part in PARTS if document.part((part,)) is not None]
    parts = [error for part in held for error in _part_errors(document, part)]
    if not parts and len(held) == len(PARTS):
        found += _elsewhere(every_error(repaired, scenario_of_document)[0], found)
    return in_order([*found, *parts])


def _part_errors(document: Document, part: str) -> list[InputError]:
    """Those of the machine or workload that a scenario names or holds."""
    from pathlib import Path

    from ..inputs import Document
    from ..inputs.every_error import every_error
    from ..sim.run.scenario_parts import named_or_inline

    try:
        held, folder = named_or_inline(document, part)
    except InputError as failure:
        if failure.file is None or failure.file == document.source_of((part,)):
            return [failure]
        held, folder = Document(None, failure.file), Path(failure.file).parent
    read = _read_machine if part == "machine" else _reads_workload(folder)
    named = isinstance(document.part((part,)), str)
    return _errors(Path(held.file), read) if named else every_error(held, read)[0]


def _loaded(path: Path) -> tuple[Document, list[InputError]]:
    from ..inputs import load_yaml

    found: list[InputError] = []
    return load_yaml(path, refused=found), found


def _errors(path: Path, read: Callable[[Document], object]) -> list[InputError]:
    from ..inputs.every_error import every_error, in_order

    try:
        document, found = _loaded(path)
    except InputError as failure:  # no YAML: nothing can be read on
        return [failure]
    return in_order([*found, *_elsewhere(every_error(document, read)[0], found)])


def _elsewhere(errors: list[InputError], found: list[InputError]) -> list[InputError]:
    """Without those where one was ``found``, around it or inside it: what stands there now may be
    their cause.
    """
    from ..inputs.fields import overlap

    places = [one.place for one in found if one.place]
    return [
        one
        for one in errors
        if not one.place or not any(overlap(one.place, place) for place in places)
    ]


def _tell(file: str, errors: list[InputError], json: bool) -> None:
    count = len(errors)
    present(
        json,
        lambda: {
            "file": file,
            "errors": [
                {
                    "file": one.file,
                    "line": one.line,
                    "column": one.column,
                    "message": one.message,
                    "found": one.token,
                    "expected": one.expected,
                    "text": str(one),
                }
                for one in errors
            ],
        },
        [*map(str, errors), f"{file}: {count or 'no'} error{'' if count == 1 else 's'}"],
    )
    if errors:
        raise typer.Exit(BAD_INPUT)
