"""The compiled kernel's stub, and structs whose fields are written once (kernel/described.hpp)."""

import ast
import importlib.util
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from numatwin.sim import _kernel
from numatwin.sim._kernel import ErisDemands, ErisMachine, SharedSetup, SparseRows

ROOT = Path(__file__).parent.parent.parent
FIELD = re.compile(r'^ *FIELD\(([\w:<>, ]+), (\w+),\s*"((?:[^"\\]|\\.)*)"', re.MULTILINE)
# By the module that has it: the struct, and its name in C++ where that is another.
DESCRIBED = [
    ("sim", "_kernel", name, name)
    for name in vars(_kernel)
    if hasattr(getattr(_kernel, name), "FIELDS")
]
DESCRIBED += [
    ("engine_native", "_engine", name, of)
    for name, of in (("EngineSetup", "EngineSetup"), ("CommitRun", "RunSetup"))
]


@pytest.fixture(scope="module")
def stub_of() -> Callable[[ModuleType], str]:
    spec = importlib.util.spec_from_file_location("stubs", ROOT / "tools" / "stubs.py")
    assert spec is not None
    assert spec.loader is not None
    stubs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stubs)
    return cache(stubs.stub)


@pytest.mark.parametrize(("folder", "module", "name", "struct"), DESCRIBED)
def test_a_field_is_written_once(
    stub_of: Callable[[ModuleType], str], folder: str, module: str, name: str, struct: str
) -> None:
    """What a header describes is in Python and in the stub, with its words, and nothing else."""
    compiled = pytest.importorskip(f"numatwin.{folder}.{module}")
    kind: Any = getattr(compiled, name)
    headers = "".join(path.read_text() for path in ROOT.glob(f"{folder}/**/*.hpp"))
    begin = headers.index(f"FIELDS_OF({struct});")
    body = headers[begin : headers.index("END_OF_FIELDS;", begin)]
    written = {name: words for _, name, words in FIELD.findall(body)}
    assert len(written) == body.count("FIELD(")
    assert tuple(written) == kind.FIELDS
    assert {name: getattr(kind, name).__doc__ for name in written} == written
    stub = ast.parse(stub_of(compiled))
    (found,) = (part for part in stub.body if isinstance(part, ast.ClassDef) and part.name == name)
    attributes = [
        part.target.id
        for part in found.body
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
    ]
    assert attributes[: len(written) + 1] == ["FIELDS", *written]


def test_structs_are_made_of_arrays_and_sequences() -> None:
    made = ErisMachine(
        node=np.array([0, 1]), flush_ps=[1, 2.5], handed_ps=np.array([[1, 2], [3, 4]]), batch=7
    )
    assert (made.node, made.flush_ps, made.handed_ps) == ([0, 1], [1.0, 2.5], [1, 2, 3, 4])
    assert (made.batch, made.lines_per_command, made.answers) == (7, 0.25, False)
    made.node = [1]
    assert made.node == [1]
    rows = SharedSetup(memory_ps=SparseRows([0, 1], [0], [2.0])).memory_ps
    assert rows.row(0) == [(0, 2.0)]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"flush_ns": [1.0]}, "no field 'flush_ns'"),
        ({"node": [0.5]}, "node: not of its type"),
        ({"node": np.array([0.5])}, "node: not of its type"),
        ({"flush_ps": "no numbers"}, "flush_ps: not of its type"),
        ({"batch": 1.5}, "batch: not of its type"),
    ],
)
def test_what_is_no_field_or_of_another_type_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(TypeError, match=told):
        ErisMachine(**given)


def test_a_field_of_a_wrong_type_changes_nothing() -> None:
    demands = ErisDemands(lines=[1.0])
    with pytest.raises(TypeError, match="lines"):
        demands.lines = ["one"]  # type: ignore[list-item]
    assert demands.lines == [1.0]
