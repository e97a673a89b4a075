"""The reference names every field of every schema, each with an example that the schema allows."""

import dataclasses
import re
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import numatwin
from numatwin.cli.schema import Kind, json_schema
from numatwin.sim.systems.registry import systems
from numatwin.topologies.facts.schema import Facts

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
reference: Any = import_module("reference")

ROW = re.compile(r"^\| `([\w-]+)` \| (.+?) \| (.+?) \| (.+?) \| `(.+)` \|$", re.M)


@cache
def pages() -> dict[str, str]:
    made: dict[str, str] = reference.pages()
    return made


def schemas() -> dict[str, dict[str, Any]]:
    """The schema of each page that is made from one."""
    found = {f"{kind.value}.md": json_schema(kind) for kind in Kind if kind is not Kind.scenario}
    scenario = json_schema(Kind.scenario)["$defs"]
    for system in systems():
        found[f"scenario-{system.name}.md"] = {**scenario[system.name], "$defs": scenario}
        if system.facts is not None:
            found[f"engine-{system.name}.md"] = system.facts.model_json_schema()
        if system.profile is not None:
            found[f"profile-{system.name}.md"] = system.profile.model_json_schema()
    return {**found, "catalogue.md": Facts.model_json_schema()}


def parts(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The schema and its parts that have fields."""
    reached = reference._reached(schema, schema.get("$defs", {}))
    inner = [part for name, part in schema.get("$defs", {}).items() if name in reached]
    return [part for part in [schema, *inner] if part.get("properties")]


@pytest.mark.parametrize("page", schemas())
def test_every_field_is_there(page: str) -> None:
    fields = [name for part in parts(schemas()[page]) for name in part["properties"]]
    rows = ROW.findall(pages()[page])
    assert [row[0] for row in rows] == fields
    assert not [row for row in rows if not row[1].strip()]


@pytest.mark.parametrize("page", schemas())
def test_every_example_is_allowed(page: str) -> None:
    schema = schemas()[page]
    definitions = schema.get("$defs", {})
    wrong = {}
    for part in parts(schema):
        for name, field in part["properties"].items():
            example = reference.example_of(field, definitions)
            checker = Draft202012Validator({**field, "$defs": definitions})
            if not checker.is_valid(example):
                wrong[f"{part.get('title')}.{name}"] = example
    assert wrong == {}


def test_units_defaults_and_ranges() -> None:
    machine = {row[0]: row for row in ROW.findall(pages()["machine.md"])}
    assert machine["bandwidth"][1] == "bandwidth with its unit"
    scenario = {row[0]: row for row in ROW.findall(pages()["scenario-eris.md"])}
    assert scenario["horizon"][2] == "*needed*"
    assert scenario["buffer_commands"][2] == "`128`"
    assert scenario["seed"][3] == "at least 0, at most 18,446,744,073,709,551,615"
    assert scenario["scale"][3] == "above 0, at most 1"


def test_what_python_offers() -> None:
    page = pages()["python.md"]
    assert [name for name in numatwin.__all__ if f"\n## {name}\n" not in page] == []
    record = pages()["record.md"]
    fields = [field.name for field in dataclasses.fields(numatwin.Record)]
    assert re.findall(r"^\| `(\w+)` \|", record, re.M) == fields


def test_links_lead_to_a_part() -> None:
    for page, text in pages().items():
        for anchor in re.findall(r"\]\(#([\w-]+)\)", text):
            assert f'<a id="{anchor}"></a>' in text, page


def test_bounds_of_lists_in_a_list_are_told_once() -> None:
    item = {"type": "array", "items": {"type": "integer", "minimum": 1}}
    assert reference.range_text({"type": "array", "items": item}) == "each at least 1"
