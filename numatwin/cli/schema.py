"""``numatwin schema``: JSON Schema of the files that users write, for editors and scripts."""

from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

from .options import argument

if TYPE_CHECKING:
    from pydantic import BaseModel

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Kind(StrEnum):
    """Kinds of files."""

    machine = "machine"
    workload = "workload"
    scenario = "scenario"
    study = "study"
    engine = "engine"
    suite = "suite"


# Module and class of those that one model describes.
DESCRIPTIONS = {
    Kind.machine: ("..topologies.schema", "MachineDescription"),
    Kind.workload: ("..workloads.schema", "WorkloadDescription"),
    Kind.study: ("..sim.studies.description", "StudyDescription"),
    Kind.suite: ("..validate.suite", "SuiteDescription"),
}


def schema(kind: Annotated[Kind, argument("KIND", "What the file describes.")]) -> None:
    """Print the JSON Schema of a kind of file.

    Editors use it to complete and check files that begin with the line
    '# yaml-language-server: $schema=FILE'. Rules across several fields are checked when the file
    is loaded.
    """
    import json

    print(json.dumps(json_schema(kind), indent=1, ensure_ascii=False))


def json_schema(kind: Kind) -> dict[str, Any]:
    """The schema as plain data."""
    if kind is Kind.scenario:
        return _of_scenarios()
    if kind is Kind.engine:
        return _of_engines()
    module, name = DESCRIPTIONS[kind]
    return {"$schema": DIALECT, **_of_model(getattr(import_module(module, __package__), name))}


def _of_model(model: "type[BaseModel]") -> dict[str, Any]:
    return model.model_json_schema(by_alias=True)


def _of_scenarios() -> dict[str, Any]:
    """That of each kind of system, chosen by the field that says which; a scenario that extends
    another may leave everything out, its system's kind too.
    """
    from ..sim.run.scenario_description import description_of
    from ..sim.systems.registry import default_kind, systems

    definitions: dict[str, Any] = {}
    chosen: list[dict[str, Any]] = []
    for system in systems():
        one = _of_model(description_of(system))
        inner = one.pop("$defs", {})
        prefix = f"{system.name}."
        definitions |= {prefix + name: _renamed(part, prefix) for name, part in inner.items()}
        one = _renamed(one, prefix)
        definitions[system.name] = one
        own = {"properties": {"system": {"properties": {"kind": {"const": system.name}}}}}
        if system.name != default_kind():
            own["properties"]["system"]["required"] = ["kind"]  # type: ignore[assignment]
            own["required"] = ["system"]  # type: ignore[assignment]
        chosen.append({"if": own, "then": {"$ref": f"#/$defs/{system.name}"}})
    extending = {
        "type": "object",
        "properties": {"extends": {"type": "string", "description": "A scenario: name or file."}},
        "required": ["extends"],
    }
    return {
        "$schema": DIALECT,
        "title": "ScenarioDescription",
        "if": {"required": ["extends"]},
        "then": extending,
        "else": {"type": "object", "allOf": chosen},
        "$defs": definitions,
    }


def _of_engines() -> dict[str, Any]:
    """That of an engine's profile; what its facts may be goes by the kind of system."""
    from ..sim.systems.descriptor import ProfileFile
    from ..sim.systems.registry import systems

    whole = _of_model(ProfileFile)
    definitions = whole.setdefault("$defs", {})
    known, chosen = [], []
    for system in systems():
        if system.profile is None:
            continue
        facts = _of_model(system.profile)
        definitions |= facts.pop("$defs", {})
        definitions[facts["title"]] = facts
        known.append(system.name)
        own = {"facts": {"$ref": f"#/$defs/{facts['title']}"}}
        said = {"properties": {"system": {"const": system.name}}}
        chosen.append({"if": said, "then": {"properties": own}})
    whole["properties"]["system"] = {"enum": known, "description": "The kind of system."}
    return {"$schema": DIALECT, **whole, "allOf": chosen}


def _renamed(part: Any, prefix: str) -> Any:
    """``part`` with its references to definitions led to those with the prefix."""
    if isinstance(part, list):
        return [_renamed(one, prefix) for one in part]
    if not isinstance(part, dict):
        return part
    return {
        key: f"#/$defs/{prefix}{value.removeprefix('#/$defs/')}"
        if key == "$ref" and isinstance(value, str)
        else _renamed(value, prefix)
        for key, value in part.items()
    }
