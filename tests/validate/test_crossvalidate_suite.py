"""Suites for cross-validation: grids, sizes of a host, and what is refused with its line."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import told_by

from numatwin.inputs import InputError
from numatwin.topologies import Machine, load_machine
from numatwin.topologies.catalogue import CATALOGUE as MACHINES
from numatwin.validate.crossvalidate.sizes import MEMORY_PART, bytes_of, entries_of, size_bytes
from numatwin.validate.crossvalidate.suite import CATALOGUE, Suite, load_suite
from numatwin.workloads.schema import DataObject

NAME = "amd-8n-ht"
KIB, MIB = 2.0**10, 2.0**20

SUITE = """\
name: mine
rounds: 3
settings: {horizon: 10 ms}
runs:
  lookup:
    scenario: host-lookup
    grid:
      workload: {uniform: eris-lookup-1e9, zipf: lookup-zipf}
      size.index: [1/2 L2, 64 MiB]
  routing:
    scenario: eris-fig5-raw
    planes: [flow]
    metrics: [throughput.route]
    grid: {system.buffer_commands: [1, 16, 128]}
"""


@pytest.fixture(scope="module")
def machine() -> Machine:
    return load_machine(NAME)


def loaded(text: str, folder: Path, machine: Machine, quick: bool = False) -> Suite:
    path = folder / "mine.yaml"
    path.write_text(text)
    return load_suite(str(path), MACHINES.path(NAME), machine, quick=quick)


def test_each_combination_is_a_case(tmp_path: Path, machine: Machine) -> None:
    suite = loaded(SUITE, tmp_path, machine)
    assert (suite.name, suite.rounds) == ("mine", 3)
    assert [case.name for case in suite.cases] == [
        "lookup: uniform, 1/2 L2",
        "lookup: uniform, 64 MiB",
        "lookup: zipf, 1/2 L2",
        "lookup: zipf, 64 MiB",
        "routing: 1",
        "routing: 16",
        "routing: 128",
    ]
    first, last = suite.cases[0], suite.cases[-1]
    assert (first.native.plane, list(first.predicted)) == ("native", ["flow", "event"])
    assert first.native.workload.name == "eris-lookup-1e9"
    assert suite.cases[2].native.workload.name == "lookup-zipf"
    names = [str(metric) for metric in first.metrics]
    assert names == ["throughput.lookup", "latency_ns.lookup.p99", "bandwidth_Bps.memory"]
    assert [str(metric) for metric in last.metrics] == ["throughput.route"]
    assert last.native.system.buffer_commands == 128  # type: ignore[attr-defined]
    for case in suite.cases:
        assert case.native.horizon_s == 0.01
        for plane, scenario in case.predicted.items():
            assert scenario.plane == plane
            assert scenario.workload.description == case.native.workload.description


def test_quick_keeps_the_ends_of_each_axis(tmp_path: Path, machine: Machine) -> None:
    suite = loaded(SUITE, tmp_path, machine, quick=True)
    assert suite.rounds == 2
    assert [case.name for case in suite.cases][-2:] == ["routing: 1", "routing: 128"]


def test_data_are_as_large_as_told(tmp_path: Path, machine: Machine) -> None:
    suite = loaded(SUITE, tmp_path, machine)
    l2 = next(c.size_bytes for c in machine.nodes[0].caches if c.level == 2)
    assert suite.cases[0].size_bytes == pytest.approx(l2 / 2, rel=1e-3)
    assert suite.cases[1].size_bytes == pytest.approx(64 * MIB, rel=1e-3)


@pytest.mark.parametrize("name", CATALOGUE.names())
def test_bundled_suites_load(name: str) -> None:
    # A measured host, though without costs of messages between clients and servers.
    suite = load_suite(name, MACHINES.path("xeon-2c"), load_machine("xeon-2c"), quick=True)
    assert suite.cases
    assert {run for left in suite.left_out for run in left.runs} <= {"commit"}
    assert len({case.name for case in suite.cases}) == len(suite.cases)


def test_a_suite_includes_the_runs_of_others(tmp_path: Path, machine: Machine) -> None:
    (tmp_path / "other.yaml").write_text(
        "name: other\nsettings: {horizon: 20 ms}\nruns:\n  more: {scenario: host-lookup}\n"
    )
    suite = loaded(SUITE + "includes: [other.yaml]\n", tmp_path, machine)
    assert [case.name for case in suite.cases][-2:] == ["routing: 128", "more"]
    # The settings of each suite are of its own runs.
    assert [case.native.horizon_s for case in suite.cases[-2:]] == [0.01, 0.02]


def test_the_suite_of_the_host_includes_that_of_joins() -> None:
    path = MACHINES.path("xeon-2c")
    suites = [load_suite(name, path, load_machine("xeon-2c")) for name in ("host", "joins")]
    of_host, of_joins = ([case.name for case in suite.cases] for suite in suites)
    assert of_host[-len(of_joins) :] == of_joins
    assert {case.run for case in suites[1].cases} == {"join", "join-filtered", "aggregate"}


@pytest.mark.parametrize(
    ("includes", "other", "told"),
    [
        ("joinss", "", "unknown suite: found 'joinss', expected 'joins'"),
        ("other.yaml", "name: other\nruns:\n  lookup: {scenario: host-lookup}\n", "a run 'lookup'"),
        (
            "other.yaml",
            "name: other\nincludes: [joins]\nruns:\n  one: {scenario: host-lookup}\n",
            "suite 'other.yaml' includes others",
        ),
        ("none.yaml", "", "No such file"),
    ],
)
def test_includes_that_are_refused(
    includes: str, other: str, told: str, tmp_path: Path, machine: Machine
) -> None:
    (tmp_path / "other.yaml").write_text(other)
    text = told_by(loaded, SUITE + f"includes: [{includes}]\n", tmp_path, machine)
    assert text.startswith(f"{tmp_path / 'mine.yaml'}:15:"), text
    assert told in text


def test_sizes_of_a_machine(machine: Machine) -> None:
    caches = {cache.level: cache.size_bytes for cache in machine.nodes[0].caches}
    memory = sum(node.memory_bytes for node in machine.nodes)
    assert size_bytes("1 L1", machine) == caches[1]
    assert size_bytes("3/4 L2", machine) == 0.75 * caches[2]
    assert size_bytes("10 LLC", machine) == 10 * caches[max(caches)]
    assert size_bytes("1/8 memory", machine) == memory / 8
    assert size_bytes("24 MiB", machine) == 24 * MIB


def test_no_more_than_a_quarter_of_the_memory(machine: Machine) -> None:
    memory = sum(node.memory_bytes for node in machine.nodes)
    assert size_bytes("1/2 memory", machine) == MEMORY_PART * memory
    assert size_bytes("1000000 GiB", machine) == MEMORY_PART * memory


@pytest.mark.parametrize("text", ["", "L2", "4 L0", "1/0 L2", "-1 L2", "10", "4 rooms", "0 L2"])
def test_no_sizes(text: str, machine: Machine) -> None:
    assert "no size" in told_by(size_bytes, text, machine)


def test_a_cache_that_is_not_there(machine: Machine) -> None:
    assert "has no cache L9: expected of L1, L2, L3" in told_by(size_bytes, "1 L9", machine)


@given(st.integers(1 << 12, 1 << 40), st.sampled_from(["index", "column", "table"]))
def test_entries_take_the_bytes_asked_for(size: int, kind: str) -> None:
    fields: dict[str, dict[str, object]] = {
        "index": {"keys": 1000},
        "column": {"entries": 1},
        "table": {"record_size": "1 KiB"},
    }
    stored = DataObject.model_validate({"kind": kind, **fields[kind]})
    name, count = entries_of(stored, float(size))
    found = bytes_of(stored.model_copy(update={name: count}))
    assert count >= 1
    assert found == pytest.approx(size, rel=0.01, abs=1024)


@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        (
            "scenario: host-lookup",
            "scenario: host-lokup",
            6,
            "unknown scenario: found 'host-lokup'",
        ),
        ("planes: [flow]", "planes: [flow, fast]", 12, "unknown plane 'fast'"),
        ("planes: [flow]", "planes: [native]", 12, "unknown plane 'native'"),
        ("planes: [flow]", "planes: []", 12, "planes"),
        ("1/2 L2", "1/2 L7", 9, "run 'lookup': machine 'amd-8n-ht' has no cache L7"),
        ("64 MiB", "64 rooms", 9, "run 'lookup': no size: found '64 rooms'"),
        ("size.index", "size.indx", 9, "run 'lookup': no object 'indx'"),
        ("throughput.route", "throughput.rout", 13, "run 'routing': no operation 'rout'"),
        ("throughput.route", "speed", 13, "run 'routing': unknown metric: found 'speed'"),
        ("system.buffer_commands", "system.bufer", 14, "run 'routing': unknown field 'bufer'"),
        ("[1, 16, 128]", "[1, none]", 14, "system.buffer_commands: found 'none'"),
        ("{uniform: eris-lookup-1e9,", "{uniform: nothing,", 8, "unknown workload"),
        ("workload: {uniform", "machine: {uniform", 8, "'machine' cannot be set"),
        ("horizon: 10 ms", "plane: flow", 3, "'plane' cannot be set"),
        ("rounds: 3", "rounds: 0", 2, "rounds: found '0'"),
        ("rounds: 3", "round: 3", 2, "unknown field 'round'"),
        ("[1, 16, 128]", "[]", 14, "grid"),
    ],
)
def test_refused_with_file_and_line(
    old: str, new: str, line: int, told: str, tmp_path: Path, machine: Machine
) -> None:
    assert old in SUITE
    text = told_by(loaded, SUITE.replace(old, new), tmp_path, machine)
    assert text.startswith(f"{tmp_path / 'mine.yaml'}:{line}:"), text
    assert told in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "empty file"),
        ("name: mine\n", "missing field 'runs'"),
        ("name: mine\nruns: {}\n", "runs"),
        ("name: mine\nruns: [1]\n", "runs"),
        ("checks: {}\nname: mine\nruns: {}\n", "unknown field 'checks'"),
        ("name: [\n", "not YAML"),
    ],
)
def test_no_suites(text: str, told: str, tmp_path: Path, machine: Machine) -> None:
    assert told in told_by(loaded, text, tmp_path, machine)


def test_names_that_are_not_bundled(machine: Machine) -> None:
    with pytest.raises(InputError, match="unknown suite: found 'hots', expected 'host'"):
        load_suite("hots", MACHINES.path(NAME), machine)
    assert "No such file" in told_by(load_suite, "none/mine.yaml", MACHINES.path(NAME), machine)


def test_transactions_are_predicted_on_both_planes(tmp_path: Path, machine: Machine) -> None:
    cluster = load_machine("ib-fdr-8n")
    text = "name: mine\nruns:\n  rsi: {scenario: nam-fig6-rsi, settings: {system.clients: 2}}\n"
    (tmp_path / "mine.yaml").write_text(text)
    path = MACHINES.path("ib-fdr-8n")
    (case,) = load_suite(str(tmp_path / "mine.yaml"), path, cluster).cases
    assert list(case.predicted) == ["flow", "event"]


def test_what_this_machine_cannot_play_is_left_out(tmp_path: Path, machine: Machine) -> None:
    # On its own machine, a cluster, it can.
    rsi = "  rsi: {scenario: nam-fig6-rsi, settings: {system.clients: 2}}\n"
    suite = loaded(SUITE + rsi, tmp_path, machine)
    assert {case.run for case in suite.cases} == {"lookup", "routing"}
    (left,) = suite.left_out
    assert left.runs == ("rsi",)
    assert "machine 'amd-8n-ht'" in left.reason
    assert loaded("name: mine\nruns:\n" + rsi, tmp_path, machine).cases == ()
