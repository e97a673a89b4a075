"""``check``: all errors of a file at once, in the order of lines, and none that is not there."""

from pathlib import Path

import pytest
from command_line import CommandLine

from numatwin.topologies import machine_names

MACHINE = """\
name: mine
node_types:
  half:
    cores: four
    memory: {size: 8 GiB, bandwith: 20 GB/s, latency: 90}
nodes:
  - {ids: 0-1, type: half}
  - {ids: 2-3, type: haf}
link_types:
  wire: {bandwidth: 10 GBs}
links:
  - {ends: [0, 1], type: wire}
  - {ends: [1, 7], type: wire}
  - {ends: [2, 3], type: wire, lenth: 3}
name: again
"""
SCENARIO = """\
name: mine
machine: {machine}
workload: {workload}
horizon: 3
plane: fluw
seed: -1
system:
  nodes: 99
  buffer_comands: 3
"""


def told(numatwin: CommandLine, *words: str) -> list[str]:
    done = numatwin(*words)
    assert (done.status, done.err) == (2, "")
    *lines, last = done.out.splitlines()
    assert last == f"{words[-1]}: {len(lines)} error{'s' if len(lines) > 1 else ''}"
    return lines


def test_all_errors_of_a_machine(numatwin: CommandLine) -> None:
    Path("m.yaml").write_text(MACHINE)
    assert told(numatwin, "machine", "check", "m.yaml") == [
        "m.yaml:4:12: node_types.half.cores: found 'four', expected a whole number",
        "m.yaml:5:27: unknown field 'bandwith' in node_types.half.memory: expected 'bandwidth'",
        "m.yaml:5:55: node_types.half.memory.latency: a bare number has no unit: expected a time "
        "such as '129 ns': found '90'",
        "m.yaml:8:22: unknown node type: expected one of half",
        "m.yaml:10:21: link_types.wire.bandwidth: unknown unit 'GBs': expected a bandwidth such "
        "as '26.7 GB/s': found '10 GBs'",
        "m.yaml:13:6: unknown end 7: expected a node or hub",
        "m.yaml:14:32: unknown field 'lenth' in links.2: expected one of ends, ports, type",
        "m.yaml:15:1: duplicate key 'name' (first at line 1)",
    ]


def test_the_same_as_json(numatwin: CommandLine) -> None:
    Path("m.yaml").write_text("name: mine\nnodes: []\ncores: 3\n")
    done = numatwin("machine", "check", "m.yaml", "--json")
    assert done.status == 2
    assert '"line": 3, "column": 1, "message": "unknown field \'cores\'"' in done.out


def test_a_scenario_with_its_machine_and_workload(numatwin: CommandLine) -> None:
    Path("m.yaml").write_text(MACHINE.replace("four", "4"))
    Path("w.yaml").write_text("name: w\nobjects: {t: {kind: index}}\noperations: {}\n")
    Path("s.yaml").write_text(SCENARIO.format(machine="m.yaml", workload="w.yaml"))
    lines = told(numatwin, "scenario", "check", "s.yaml")
    places = [line.split(": ")[0] for line in lines]
    assert [place.partition(":")[0] for place in places] == sorted(
        place.partition(":")[0] for place in places
    )
    own = [place for place in places if place.startswith("s.yaml")]
    assert own == ["s.yaml:4:10", "s.yaml:6:7", "s.yaml:9:3"]
    assert sum(place.startswith("m.yaml") for place in places) == 7
    assert sum(place.startswith("w.yaml") for place in places) >= 1


def test_errors_of_parts_that_a_scenario_holds_say_whose_they_are(numatwin: CommandLine) -> None:
    Path("s.yaml").write_text(
        "name: s\nsystem: {kind: eris}\nhorizon: 1 s\n"
        "machine:\n  nodes: 3\n"
        "workload:\n  objects: {t: {kind: index, size: 3}}\n  operations: []\n"
    )
    lines = told(numatwin, "scenario", "check", "s.yaml")
    assert "s.yaml:4:1: missing field 'name' in machine" in lines
    assert "s.yaml:5:10: machine.nodes: found '3', expected a list" in lines
    assert "s.yaml:6:1: missing field 'name' in workload" in lines
    unknown = "unknown field 'size' in workload.objects.t: expected 'key_size'"
    assert f"s.yaml:7:30: {unknown}" in lines
    assert "s.yaml:8:3: workload.operations: expected a mapping" in lines


@pytest.mark.parametrize("expected", ["machine", "workload", "scenario", "study"])
@pytest.mark.parametrize(
    ("kind", "text", "command"),
    [
        ("machine", MACHINE, "machine check"),
        ("workload", "name: w\noperations: {}\n", "workload check"),
        ("scenario", SCENARIO, "scenario check"),
        ("scenario", "extends: eris-fig13\n", "scenario check"),
        ("study", "scenario: eris-fig13\nfactors: {}\n", "study check"),
        ("suite", "name: s\nchecks: {}\n", "regress"),
    ],
)
def test_a_file_of_another_kind(
    numatwin: CommandLine, kind: str, text: str, command: str, expected: str
) -> None:
    Path("f.yaml").write_text(text)
    done = numatwin(expected, "check", "f.yaml")
    line = f"f.yaml:1:1: this is a {kind} file: expected a {expected} file (try 'numatwin {command}"
    assert (line in done.out) == (kind != expected)


def test_commands_that_are_given_a_file_of_another_kind(numatwin: CommandLine) -> None:
    Path("f.yaml").write_text("extends: eris-fig13\n")
    line = "numatwin: error: f.yaml:1:1: this is a scenario file: expected a {} file (try 'numatwin"
    for expected, words in (
        ("machine", ("run", "eris-fig13", "--machine", "f.yaml")),
        ("workload", ("run", "eris-fig13", "--workload", "f.yaml")),
        ("study", ("study", "run", "f.yaml")),
        ("suite", ("regress", "f.yaml")),
    ):
        done = numatwin(*words)
        assert done.status == 2
        assert done.err.startswith(line.format(expected))


def test_what_its_parts_have_in_common(numatwin: CommandLine) -> None:
    text = SCENARIO.format(machine="amd-8n-ht", workload="lookup-zipf")
    Path("s.yaml").write_text(text)
    lines = told(numatwin, "scenario", "check", "s.yaml")
    assert [int(line.split(":")[1]) for line in lines] == [4, 5, 6, 8, 9]
    assert "s.yaml:8:10: system.nodes: machine 'amd-8n-ht' has 8 nodes with cores" in lines[3]


def test_each_error_is_told_alone_too(numatwin: CommandLine) -> None:
    """Its first line is what loading the file says."""
    Path("m.yaml").write_text(MACHINE.replace("name: again\n", ""))
    first = told(numatwin, "machine", "check", "m.yaml")[0]
    assert numatwin("machine", "show", "m.yaml").err == f"numatwin: error: {first}\n"


def test_workloads_and_studies(numatwin: CommandLine) -> None:
    Path("w.yaml").write_text(
        "name: w\nobjects:\n  t: {kind: index, keys: 0, key_sze: 8 B}\n"
        "operations:\n  get: {kind: lookup, object: u}\n"
    )
    lines = told(numatwin, "workload", "check", "w.yaml")
    assert [int(line.split(":")[1]) for line in lines] == [3, 3, 5]
    Path("s.yaml").write_text(
        "name: s\nscenario: eris-fig5\nfactors:\n  system.bufer_commands: [1, 2]\n"
        "  seed: {from: 5, to: 1}\ndesign: {kind: sobol}\n"
    )
    lines = told(numatwin, "study", "check", "s.yaml")
    assert [int(line.split(":")[1]) for line in lines] == [4, 5, 6]
    # Nothing is said of what stands in for a part at fault.
    Path("s.yaml").write_text("name: s\nscenario: eris-fig5\nfactors:\n  seed: []\n")
    (line,) = told(numatwin, "study", "check", "s.yaml")
    assert line.startswith("s.yaml:4:3: factors.seed.values: an empty list")
    Path("s.yaml").write_text("name: s\nfactors:\n  seed: [1, 2]\n")
    assert told(numatwin, "study", "check", "s.yaml") == ["s.yaml:1:1: missing field 'scenario'"]


def test_a_misspelt_field_that_is_needed(numatwin: CommandLine) -> None:
    """The field that was meant is not missing as well; ``run`` tells the same."""
    text = SCENARIO.format(machine="amd-8n-ht", workload="lookup-zipf").partition("horizon")[0]
    Path("s.yaml").write_text(f"{text}seed: 1\nhorizont: 1 s\n")
    told_once = "s.yaml:5:1: unknown field 'horizont': expected 'horizon'"
    assert told(numatwin, "scenario", "check", "s.yaml") == [told_once]
    assert told_once in numatwin("run", "s.yaml").err


def test_a_scenario_without_workload(numatwin: CommandLine) -> None:
    """Nothing is said of what a workload that is not there does not have."""
    Path("s.yaml").write_text("name: s\nmachine: amd-8n-ht\nhorizon: 1 s\n")
    assert told(numatwin, "scenario", "check", "s.yaml") == ["s.yaml:1:1: missing field 'workload'"]


def test_what_a_value_s_stand_in_leaves_undone_is_no_error(numatwin: CommandLine) -> None:
    faults = "{kind: eris, faults: [{kind: slow, worker: 5, factor: four, at: 3 ms}]}"
    Path("s.yaml").write_text(f"extends: eris-fig8-amd\nname: s\nsystem: {faults}\n")
    assert told(numatwin, "scenario", "check", "s.yaml") == [
        "s.yaml:3:63: system.faults.0.factor: found 'four', expected a number"
    ]


def test_a_misspelt_field_whose_value_does_not_suit_what_was_meant(numatwin: CommandLine) -> None:
    """One mistake, one line; a mistake inside the value is another."""
    text = SCENARIO.format(machine="amd-8n-ht", workload="lookup-zipf").partition("horizon")[0]
    Path("s.yaml").write_text(f"{text}horizon: 1 s\npolicy: one-shot\n")
    assert told(numatwin, "scenario", "check", "s.yaml") == [
        "s.yaml:5:1: unknown field 'policy': expected 'policies'"
    ]
    Path("s.yaml").write_text(f"{text}horizon: 1 s\npolicy: {{balancing: {{period: 1}}}}\n")
    assert told(numatwin, "scenario", "check", "s.yaml") == [
        "s.yaml:5:1: unknown field 'policy': expected 'policies'",
        "s.yaml:5:30: policies.balancing.period: a bare number has no unit: expected a time such "
        "as '129 ns': found '1'",
    ]


@pytest.mark.parametrize("text", ["", "[", "a: 1\n\tb: 2\n", "3", "[1]", "name: {a: {b: 1}}\n"])
@pytest.mark.parametrize("kind", ["machine", "workload", "scenario", "study"])
def test_what_is_no_such_file_at_all(numatwin: CommandLine, kind: str, text: str) -> None:
    Path("x.yaml").write_text(text)
    assert told(numatwin, kind, "check", "x.yaml")
    assert told(numatwin, kind, "check", "missing.yaml")


def test_bundled_ones_have_none(numatwin: CommandLine) -> None:
    for name in machine_names()[:4]:
        assert numatwin("machine", "check", name) == (0, f"{name}: no errors\n", "")
    assert numatwin("scenario", "check", "eris-fig11-shared").status == 0
    assert numatwin("workload", "check", "checkout").status == 0


@pytest.mark.parametrize("key", ["<<: {a: 1}", "? [a]\n: 1", "seed: 1\nseed: 2"])
def test_a_key_that_is_refused_leaves_the_others(numatwin: CommandLine, key: str) -> None:
    """The rest of the mapping is read on: it is not said to be none."""
    parts = "machine: amd-8n-ht\nworkload: eris-lookup-1e9\nhorizon: 1 s\n"
    Path("s.yaml").write_text(f"name: mine\n{parts}{key}\n")
    done = numatwin("scenario", "check", "s.yaml")
    assert done.status == 2
    first, count = done.out.splitlines()
    assert ("duplicate key 'seed'" in first) == key.startswith("seed")
    assert count == "s.yaml: 1 error"
