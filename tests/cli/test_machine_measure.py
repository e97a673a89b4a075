"""``numatwin machine measure``: a machine file of this host, or one clear line."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import CommandLine, Refused

from numatwin.validate.measure import session
from numatwin.validate.measure.bench import Bench

pytest.importorskip("numatwin.engine_native._engine", reason="the native engine is not built")


def interrupted(bench: Bench) -> Iterator[float]:
    yield 0.5
    raise KeyboardInterrupt


@pytest.fixture
def nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(bench: Bench) -> Iterator[float]:
        pytest.fail("it was measured")
        yield

    for part in session.PARTS:
        monkeypatch.setitem(session.PARTS, part, (never, 1.0))


def test_a_machine_file(numatwin: CommandLine) -> None:
    printed = numatwin(
        "machine", "measure", "--quick", "--only", "atomics", "--out", "mine.yaml"
    ).said()
    assert "fetch-add" in printed
    assert printed.endswith("\nMachine file: mine.yaml\n")
    shown = numatwin("machine", "show", "mine.yaml")
    assert shown.status == 0
    assert "figures in the file, quick" in shown.out
    assert numatwin("machine", "show", "mine.yaml", "--json").json()["name"] == "this-host"


def test_the_help_names_all_parts(numatwin: CommandLine) -> None:
    told = set(re.split(r"[^a-z]+", numatwin("machine", "measure", "--help").out))
    assert set(session.PARTS) <= told


def test_one_json_object(numatwin: CommandLine) -> None:
    done = numatwin(
        "machine", "measure", "--quick", "--only", "atomics", "--only", "copies", "--json"
    )
    found = done.json()
    assert done.err == ""
    assert found["host"]["parts"] == ["atomics", "copies"]
    assert found["host"]["duration_s"] > 0
    assert (found["interrupted"], found["missing"]) == (False, [])
    assert {"name", "nodes", "latency_ns", "bandwidth_Bps", "warnings"} <= set(found)
    for figure in found["measurements"]:
        assert figure["unit"] == "ns"
        low, high = figure["quartiles"]
        assert 0 < low <= figure["value"] <= high
        assert figure["repetitions"] >= 1
    copies = [m for m in found["measurements"] if m["name"] == "copy"]
    assert {m["parameters"]["size_bytes"] for m in copies} == {64, 4096, 1 << 20}
    assert not any(Path.cwd().iterdir())


def test_interrupted(numatwin: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(session.PARTS, "copies", (interrupted, 1.0))
    words = ["machine", "measure", "--quick", "--only", "atomics", "--only", "copies"]
    done = numatwin(*words, "--out", "mine.yaml")
    assert done.status == 130
    assert "Machine file: mine.yaml (partial: interrupted)\n" in done.out
    assert done.err == "numatwin: interrupted; what was finished is kept\n"
    shown = numatwin("machine", "show", "mine.yaml")
    assert "warning: interrupted: not finished: copies\n" in shown.out
    assert numatwin(*words).status == 130
    assert [path.name for path in Path.cwd().iterdir()] == ["mine.yaml"]


@pytest.mark.usefixtures("nothing_is_measured")
def test_refused_before_anything_is_measured(refused: Refused) -> None:
    for out, message in (
        ("none/mine.yaml", "none/mine.yaml: cannot be written: No such file or directory"),
        ("mine.json", "expected the extension .yaml or .yml"),
    ):
        assert message in refused("machine", "measure", "--out", out)
    Path("folder.yaml").mkdir()
    assert "it is a folder" in refused("machine", "measure", "--out", "folder.yaml")
    if os.geteuid() != 0:
        Path("closed").mkdir(mode=0o500)
        assert "Permission denied" in refused("machine", "measure", "--out", "closed/mine.yaml")
    assert "unknown part: found 'speed'" in refused("machine", "measure", "--only", "speed")


def test_without_the_engine(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.delattr("numatwin.engine_native._engine", raising=False)
    monkeypatch.setitem(sys.modules, "numatwin.engine_native._engine", None)
    assert "not in this build: expected libnuma-dev" in refused("machine", "measure")
