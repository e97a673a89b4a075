"""Records: saved and loaded again as they were, whole or not at all; damage is told in one line."""

import dataclasses
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fresh_processes import python
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refusals import told_by

from numatwin.inputs import InputError
from numatwin.sim.planes.outcome import ControlEvent, Gain, ResourceUse, Why
from numatwin.sim.run.record import Record, load_record
from numatwin.sim.run.record_files import HEAD_FILE, LARGEST, SERIES_FILE, SMALLEST
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario

# ``run --json``, as scripts depend on it: what was promised, and what else there is.
PROMISED = {
    *("scenario", "plane", "seed", "horizon_s", "wall_s", "events", "throughput", "bandwidth_Bps"),
    *("resources", "latency_ns", "bottleneck", "energy_J", "control_events", "confidence"),
}
BESIDE = {
    *("schema", "title", "scenario_hash", "policy", "policies", "machine", "settings"),
    *("operations", "why", "model", "warnings", "provenance", "traffic", "replications"),
    *("warm_up_s", "replicates", "uncertainty", "idle_settings", "assumptions"),
}


def made_up(**fields: Any) -> Record:
    """A Record with something in every field."""
    values: dict[str, Any] = {
        "scenario": "made-up",
        "title": "Größe × 10",
        "scenario_hash": "00ff",
        "plane": "flow",
        "policy": "ma-8",
        "policies": {"balancing": "ma-8"},
        "seed": 2**64 - 1,
        "horizon_s": 2.5,
        "machine": {"name": "two", "nodes": [{"id": 0}, {"id": 3}]},
        "settings": {"horizon": "2.5 s", "list": [1, "a", None]},
        "throughput": {"lookup": 1e9, "scan": 0.1},
        "operations": {"lookup": 2.5e9, "scan": 0.25},
        "bandwidth_Bps": {"memory": 1e11, "links": 0.0},
        "resources": (
            ResourceUse("cores of node 0", "cores", 1.0, node=0),
            ResourceUse("0→harp", "link", 1 / 3, 1e9, 3e9, ends=(0, "harp")),
        ),
        "latency_ns": {"lookup": {"mean": 400.0, "p99": None}, "scan": None},
        "why": {"lookup": Why("memory", (Gain("memory", 0.05), Gain("links", 0.0)), {"walk": 3.0})},
        "energy_J": 12.5,
        "control_events": (ControlEvent(0.5, "phase", "phase hot", {"phase": "hot"}),),
        "confidence": {"level": 0.95},
        "model": {"index": {"levels": 4, "rates": [0.5, 0.25]}},
        "warnings": ("uncertain value used: ipc",),
        "provenance": {"wall_s": 0.01, "events": 3, "version": "0", "host": {"cpus": 2}},
        "replications": 2,
        "warm_up_s": 0.25,
        "replicates": {"throughput": {"lookup": [0.9e9, 1.1e9]}},
        "series": {
            "time_s": np.array([0.0, 1.0]),
            "duration_s": np.array([1.0, 1.5]),
            "throughput/lookup": np.array([1.1e9, 0.9e9]),
            "imbalance/index": np.array([np.nan, 1 / 3]),
        },
    }
    return Record(**{**values, **fields})


def refused(path: Path) -> str:
    told = told_by(load_record, path)
    assert len(told) < 600 + len(str(path))
    return told


def same(one: Record, other: Record) -> None:
    """Equal, series included, NaN for NaN."""
    assert one == other
    assert one.as_json() == other.as_json()
    assert list(one.series) == list(other.series)
    for name, column in one.series.items():
        assert column.dtype == other.series[name].dtype
        assert np.array_equal(column, other.series[name], equal_nan=column.dtype.kind == "f")


def test_saved_and_loaded_again(tmp_path: Path) -> None:
    record = made_up()
    folder = record.save(tmp_path / "deep" / "run")
    assert sorted(path.name for path in folder.iterdir()) == [HEAD_FILE, SERIES_FILE]
    assert list(folder.parent.iterdir()) == [folder]
    same(load_record(folder), record)
    same(load_record(folder / HEAD_FILE), record)


def test_wide_records_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are written in another way, which takes less time."""
    monkeypatch.setattr("numatwin.sim.run.record_files.WIDE", 1)
    record = made_up()
    folder = record.save(tmp_path / "run")
    same(load_record(folder), record)
    assert len((folder / HEAD_FILE).read_text().splitlines()) < 50


def write_undigested(folder: Path, head: dict[str, Any]) -> None:
    head = {name: value for name, value in head.items() if name != "digest"}
    (folder / HEAD_FILE).write_text(json.dumps(head))


@given(bit=st.integers(min_value=0), of_series=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_a_single_flipped_bit(folder: Path, bit: int, of_series: bool) -> None:
    """It is refused, or what is read is the same: white space differs."""
    whole = {name: (folder / name).read_bytes() for name in (HEAD_FILE, SERIES_FILE)}
    name = SERIES_FILE if of_series else HEAD_FILE
    flipped = bytearray(whole[name])
    flipped[bit // 8 % len(flipped)] ^= 1 << bit % 8
    (folder / name).write_bytes(flipped)
    try:
        same(load_record(folder), made_up())
    except InputError:
        refused(folder)
    (folder / name).write_bytes(whole[name])


def test_reading_starts_no_threads(folder: Path) -> None:
    """Threads that were still starting as a short command ended aborted it."""
    script = (
        "import os, sys, pyarrow.parquet\n"
        "from numatwin.sim.run.record import load_record\n"
        "before = len(os.listdir('/proc/self/task'))\n"
        "load_record(sys.argv[1])\n"
        "print(len(os.listdir('/proc/self/task')) - before)"
    )
    told = python("-c", script, str(folder))
    assert (told.returncode, told.stdout) == (0, "0\n")


def test_a_layout_of_ones_own(folder: Path) -> None:
    head = json.loads((folder / HEAD_FILE).read_text())
    (folder / HEAD_FILE).write_text(json.dumps(dict(reversed(head.items()))))
    same(load_record(folder), made_up())


def test_a_record_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        made_up().seed = 1  # type: ignore[misc]


def test_what_is_no_number_becomes_null(tmp_path: Path) -> None:
    """JSON has no NaN; the types of NumPy become those of JSON."""
    record = made_up(
        energy_J=float("nan"),
        latency_ns={"lookup": {"mean": float("inf"), "p99": np.float64(2.5)}},
        model={"n": np.int64(3), "of": np.array([1.0, np.nan]), "by": {1: (True, None)}},
    )
    folder = record.save(tmp_path / "run")
    assert "NaN" not in (folder / HEAD_FILE).read_text(encoding="utf-8")
    again = load_record(folder)
    assert again.energy_J is None
    assert again.latency_ns == {"lookup": {"mean": None, "p99": 2.5}}
    assert again.model == {"n": 3, "of": [1.0, None], "by": {"1": [True, None]}}
    assert again.as_json() == record.as_json()


def is_figure(value: float) -> bool:
    return value == 0 or SMALLEST <= abs(value) < LARGEST


numbers = st.floats(-LARGEST, LARGEST).filter(is_figure)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    rates=st.dictionaries(st.text(max_size=8), numbers, max_size=3),
    column=st.lists(numbers | st.just(math.nan), max_size=5),
    text=st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    seed=st.integers(0, 2**64 - 1),
)
def test_any_values_come_back(
    tmp_path: Path, rates: dict[str, float], column: list[float], text: str, seed: int
) -> None:
    values = np.array(column, np.float64)
    series = {"time_s": values, "duration_s": values} | {text: values}
    record = made_up(seed=seed, throughput=rates, title=text, series=series)
    same(load_record(record.save(tmp_path / "run")), record)


def test_json_has_the_fields_that_were_promised() -> None:
    assert set(made_up().as_json()) == PROMISED | BESIDE


def test_json_of_a_run() -> None:
    found = run_scenario(load_scenario("eris-mixed-amd")).as_json()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert set(found) == PROMISED | BESIDE
    assert (found["scenario"], found["plane"], found["seed"]) == ("eris-mixed-amd", "flow", 0)
    assert set(found["throughput"]) == {"lookup", "upsert"}
    assert set(found["latency_ns"]) == {"lookup", "upsert"}
    assert set(found["bandwidth_Bps"]) == {"memory", "links"}
    for use in found["resources"]:
        assert {"name", "utilisation", "Bps"} <= set(use)
    assert set(found["bottleneck"]) == {"resource", "gain_of", "gain_per_unit"}
    assert found["wall_s"] > 0
    assert found["events"] == 1
    assert found["energy_J"] > 0
    assert found["control_events"] == []
    assert found["confidence"] == {}


def test_bottleneck_is_that_of_the_first_operation() -> None:
    """Its best gain, which another resource may bring: 5% for 10% more is half a unit per unit."""
    why = {"lookup": Why("memory", (Gain("core speed", 0.05), Gain("memory", 0.02)))}
    best = {"resource": "memory", "gain_of": "core speed", "gain_per_unit": 0.5}
    assert made_up(why=why).as_json()["bottleneck"] == best
    nothing = {"resource": None, "gain_of": None, "gain_per_unit": None}
    assert made_up(why={}).as_json()["bottleneck"] == nothing
    no_gain = {"resource": "memory", "gain_of": None, "gain_per_unit": None}
    assert made_up(why={"lookup": Why("memory", ())}).as_json()["bottleneck"] == no_gain


def no_room(*_: Any, **__: Any) -> None:
    raise OSError(28, "No space left on device")


def broken(*_: Any, **__: Any) -> None:
    raise MemoryError


@pytest.mark.parametrize(
    ("where", "what"), [(pq, "write_table"), (os, "fsync"), (os, "replace"), (os, "fchmod")]
)
@pytest.mark.parametrize("failure", [no_room, broken])
@pytest.mark.parametrize("is_there", [False, True])
def test_a_failing_write_leaves_what_was_there(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    where: Any,
    what: str,
    failure: Any,
    is_there: bool,
) -> None:
    folder, old = tmp_path / "run", made_up()
    if is_there:
        old.save(folder)
        (folder / "notes.txt").write_text("mine")
    with monkeypatch.context() as patched:
        patched.setattr(where, what, failure)
        with pytest.raises(InputError if failure is no_room else MemoryError) as caught:
            made_up(seed=1, series={"time_s": np.zeros(1)}).save(folder)
    if failure is no_room:
        assert str(caught.value) == f"{folder}: cannot be written: No space left on device"
    if is_there:
        same(load_record(folder), old)
        names = sorted(path.name for path in folder.iterdir())
        assert names == ["notes.txt", HEAD_FILE, SERIES_FILE]
        assert (folder / "notes.txt").read_text() == "mine"
    else:
        assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_beside_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another file system may be mounted there, to which no file can be moved from outside."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    replace = os.replace

    def replace_inside(source: Path, target: Path) -> None:
        if not source.is_relative_to(folder):
            raise OSError(18, "Invalid cross-device link")
        replace(source, target)

    monkeypatch.setattr(os, "replace", replace_inside)
    same(load_record(made_up().save(folder)), made_up())
    assert list(tmp_path.iterdir()) == [folder]


def test_an_earlier_record_is_replaced_beside_other_files(tmp_path: Path) -> None:
    folder = made_up().save(tmp_path / "run")
    (folder / "report.html").write_text("mine")
    newer = made_up(seed=1, series={"time_s": np.zeros(3), "duration_s": np.ones(3)})
    newer.save(folder)
    same(load_record(folder), newer)
    assert (folder / "report.html").read_text() == "mine"


@pytest.mark.parametrize("place", ["file", "file/run"])
def test_where_nothing_can_be_written(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("mine")
    assert "cannot be written: " in told_by(made_up().save, tmp_path / place)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "mine"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return made_up().save(tmp_path / "run")


def test_nothing_there_or_something_else(tmp_path: Path) -> None:
    wrote, path = "expected a folder that 'numatwin run' wrote", tmp_path / "run"
    assert refused(path) == f"{path}: cannot be read: No such file or directory: {wrote}"
    assert refused(tmp_path) == f"{tmp_path}: not a record: no record.json in it: {wrote}"
    (tmp_path / "m.yaml").write_text("name: mine\n")
    assert refused(tmp_path / "m.yaml").endswith(f"m.yaml:1:1: not a record: not JSON: {wrote}")
    os.mkfifo(tmp_path / "pipe")
    told = f"{tmp_path / 'pipe'}: cannot be read: a pipe: expected a file"
    assert refused(tmp_path / "pipe") == told


@pytest.mark.parametrize(
    ("content", "told"),
    {
        b"": "1:1: not a record: not JSON",
        b'{\n"schema": 1,,\n}': "2:13: not a record: not JSON",
        b"\xff\xfe\x00": " not a record: not JSON",
        b"[" * 100_000: " not a record: nested too deeply",
        b"[" * 99 + b"]" * 99: " not a record: nested too deeply",
        b"9" * 10_000: f" not a record: found '{'9' * 59}…', expected finite numbers, below 1e+36",
        b"[1]": " not a record of this version: found 'list', expected schema 1",
        b"{}": " not a record of this version: found 'None', expected schema 1",
        b'{"schema": 2}': " not a record of this version: found '2', expected schema 1",
        b'{"schema": 1}': " not a record: missing field 'scenario'",
    }.items(),
)
def test_a_damaged_head(folder: Path, content: bytes, told: str) -> None:
    (folder / HEAD_FILE).write_bytes(content)
    assert refused(folder) == f"{folder / HEAD_FILE}:{told}"


@pytest.mark.parametrize(
    ("field", "value", "place"),
    [
        ("horizon_s", None, "horizon_s"),
        ("horizon_s", "long", "horizon_s"),
        ("throughput", 5, "throughput"),
        ("throughput", {"lookup": [1]}, "throughput.lookup"),
        ("resources", {}, "resources"),
        ("resources", [{"name": "cores"}], "missing field 'resources.0.kind'"),
        ("resources", [{"name": "a", "kind": "link", "utilisation": 1, "ends": 0}], "resources.0"),
        ("why", {"lookup": {"resource": "memory", "gains": [7]}}, "why.lookup.gains.0"),
        (
            "control_events",
            [{"time_s": "soon", "kind": "a", "text": "b"}],
            "control_events.0.time_s",
        ),
        ("latency_ns", {"lookup": 4}, "latency_ns.lookup"),
        ("warnings", "none", "warnings"),
        ("replications", "many", "replications"),
        ("replicates", [], "replicates"),
        ("machine", {"lookup": {"a": None}}, "missing field 'machine.name'"),
        ("machine", {"name": "m", "nodes": [-1]}, "machine.nodes.0"),
        ("machine", {"name": "m", "nodes": [{"id": 0, "cpus": 1e30}]}, "machine.nodes.0.cpus"),
        ("machine", {"name": "m", "links": True}, "machine.links"),
        ("machine", {"name": "m", "links": [1e30]}, "machine.links.0"),
        ("assumptions", [{"name": "a"}], "missing field 'assumptions.0.value'"),
        (
            "assumptions",
            [{"name": "a", "value": 1, "unit": "", "source": "", "low": {}}],
            "missing field 'assumptions.0.low.value'",
        ),
    ],
)
def test_a_field_of_another_kind(folder: Path, field: str, value: Any, place: str) -> None:
    head = json.loads((folder / HEAD_FILE).read_text())
    (folder / HEAD_FILE).write_text(json.dumps(head | {field: value}))
    assert refused(folder).startswith(f"{folder / HEAD_FILE}: not a record: {place}")


@pytest.mark.parametrize("kept", [0, 3, 100, -1])
def test_series_that_are_missing_or_cut_off(folder: Path, kept: int) -> None:
    content = (folder / SERIES_FILE).read_bytes()
    (folder / SERIES_FILE).unlink()
    told = f"{folder / SERIES_FILE}: cannot be read: No such file or directory"
    assert refused(folder) == told
    (folder / SERIES_FILE).write_bytes(content[:kept])
    assert refused(folder).startswith(f"{folder / HEAD_FILE}: damaged or changed: ")
    write_undigested(folder, json.loads((folder / HEAD_FILE).read_text()))
    assert refused(folder).startswith(f"{folder / SERIES_FILE}: not a time series: ")


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999", "-1e36"])
def test_a_number_that_is_none_is_refused(folder: Path, text: str) -> None:
    head = folder / HEAD_FILE
    whole = json.loads(head.read_text()) | {"throughput": {"lookup": "HERE"}}
    head.write_text(json.dumps(whole).replace('"HERE"', text))
    told = f"{head}: not a record: found '{text}', expected finite numbers, below 1e+36"
    assert refused(folder) == told


def test_next_to_nothing_is_none(tmp_path: Path) -> None:
    """Its ratios and squares would be no numbers."""
    record = made_up(throughput={"lookup": 5e-324, "scan": -1e300})
    assert record.as_json()["throughput"] == {"lookup": 0.0, "scan": None}
    folder = made_up().save(tmp_path / "run")
    head = json.loads((folder / HEAD_FILE).read_text())
    write_undigested(folder, head | {"throughput": {"lookup": 5e-324}})
    assert load_record(folder).throughput == {"lookup": 0.0}


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"time_s": ["now"]}, "column time_s: expected numbers"),
        ({"time_s": [0.0]}, "no column duration_s"),
        (
            {"time_s": [0.0], "duration_s": [1e37]},
            "column duration_s: expected finite numbers, below 1e+36",
        ),
    ],
)
def test_series_that_make_no_times(folder: Path, columns: dict[str, list[Any]], told: str) -> None:
    pq.write_table(pa.table(columns), folder / SERIES_FILE)
    write_undigested(folder, json.loads((folder / HEAD_FILE).read_text()))
    assert refused(folder) == f"{folder / SERIES_FILE}: not a time series: {told}"
