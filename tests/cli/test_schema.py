"""``numatwin schema``: every bundled file satisfies it, and slips do not."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import CommandLine
from jsonschema import Draft202012Validator

from numatwin.cli.schema import Kind, json_schema
from numatwin.sim.run import scenario as scenarios
from numatwin.topologies import catalogue as machines
from numatwin.validate.suite import CATALOGUE as SUITES
from numatwin.workloads import catalogue as workloads

FOLDERS = {
    Kind.machine: Path(machines.__file__).parent,
    Kind.workload: Path(workloads.__file__).parent,
    Kind.scenario: Path(scenarios.__file__).parents[1] / "scenarios",
    Kind.suite: SUITES.folder,
}


def plain(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", FOLDERS)
def test_bundled_files_satisfy_it(kind: Kind) -> None:
    validator = Draft202012Validator(json_schema(kind))
    files = sorted(FOLDERS[kind].glob("*.yaml"))
    assert files
    wrong = {
        path.name: [f"{error.json_path}: {error.message}"[:200] for error in errors]
        for path in files
        if (errors := list(validator.iter_errors(plain(path))))
    }
    assert not wrong


@pytest.mark.parametrize("kind", Kind)
def test_it_is_a_schema(numatwin: CommandLine, kind: Kind) -> None:
    printed = numatwin("schema", kind.value).json()
    Draft202012Validator.check_schema(printed)
    assert printed == json_schema(kind)


STUDY = {
    "name": "a",
    "scenario": "eris-fig8-intel",
    "factors": {"machine": ["intel-4s-qpi", "amd-8n-ht"], "seed": "1:5:3"},
    "design": "grid",
}


@pytest.mark.parametrize(
    ("kind", "file", "path", "value"),
    [
        (Kind.machine, "intel-4s-qpi.yaml", ("node_types", "e7-4860", "clock"), 2.27),
        (Kind.machine, "intel-4s-qpi.yaml", ("node_types", "e7-4860", "cores"), "ten"),
        (Kind.machine, "intel-4s-qpi.yaml", ("nodez",), []),
        (Kind.workload, "lookup-zipf.yaml", ("objects",), 1),
        (Kind.scenario, "eris-fig13.yaml", ("horizon",), 5),
        (Kind.scenario, "eris-fig13.yaml", ("system",), {"kind": "tasks", "routing": 1}),
        (Kind.suite, "policies.yaml", ("checks", "rsi-commits", "at_leest"), "1 M/s"),
    ],
)
def test_a_slip_does_not_satisfy_it(
    kind: Kind, file: str, path: tuple[str, ...], value: object
) -> None:
    whole = part = plain(FOLDERS[kind] / file)
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    assert not Draft202012Validator(json_schema(kind)).is_valid(whole)


def test_a_study() -> None:
    validator = Draft202012Validator(json_schema(Kind.study))
    assert validator.is_valid(STUDY)
    assert not validator.is_valid({**STUDY, "factors": 3})


def test_an_engine_profile() -> None:
    profile = {"name": "mine", "system": "eris", "facts": {"tree_level": {"value": 44.8}}}
    validator = Draft202012Validator(json_schema(Kind.engine))
    assert validator.is_valid(profile)
    slips: list[dict[str, Any]] = [
        {"system": "erris"},
        {"facts": {"tree_levels": 44.8}},
        {"facts": {"tree_level": "44.8 ns"}},
        {"costs": {}},
    ]
    for slip in slips:
        assert not validator.is_valid(profile | slip), slip


def test_bundled_files_open_with_a_line_for_editors(tmp_path: Path) -> None:
    """It leads to what 'make setup' writes, which is the schema of today."""
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, root / "tools" / "schemas.py", tmp_path], check=True)
    for kind, folder in FOLDERS.items():
        name = f"{kind.value}.json"
        assert json.loads((tmp_path / name).read_text()) == json_schema(kind)
        for path in folder.glob("*.yaml"):
            first = path.read_text(encoding="utf-8").partition("\n")[0]
            key, _, named = first.partition("=")
            assert key == "# yaml-language-server: $schema", path
            assert (path.parent / named).resolve() == root / "build" / "schemas" / name
