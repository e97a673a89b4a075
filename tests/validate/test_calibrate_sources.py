"""What files tell, what contradicts itself, and the three servers that Intel MLC measured."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from calibrations import EXAMPLES, TRUTH, asked, measured, server
from refusals import told_by

from numatwin.inputs import InputError
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.systems.eris.facts import ENGINE, ErisFacts
from numatwin.topologies import build_machine, load_machine
from numatwin.topologies.importers import import_machine
from numatwin.validate.calibrate import calibrate
from numatwin.validate.calibrate.calibration import HELD_OUT, error_summary, read_source
from numatwin.validate.calibrate.contradictions import check
from numatwin.validate.calibrate.observation import (
    CACHE,
    IDLE,
    LOADED,
    MACHINE_READ,
    MIX,
    READ,
    STEP,
    Measured,
    Observation,
)
from numatwin.validate.calibrate.predictions import Candidate, predict
from numatwin.validate.systems.eris.calibration import ROUTING

MLC = EXAMPLES / "mlc-2s.txt"
SHARED = Path(__file__).parents[3] / "shared" / "data" / "mlc"
# What is reached today; a change that makes a prediction worse is to be seen. Median and worst
# errors of the held-out points of the loaded-latency curve, and of the mixes.
REACHED = {
    "icelake-2s": ((0.010, 0.055), (0.025, 0.055)),
    "ivybridge-2s": ((0.008, 0.025), (0.070, 0.115)),
    "skylake-2s": ((0.013, 0.060), (0.045, 0.095)),
}
MEASURED = """\
name: mine
node_types:
  socket:
    cores: 2
    clock: 3 GHz
    caches:
    - {level: 1, size: 32 KiB}
    - {level: 2, size: 1 MiB}
    memory: {size: 8 GiB}
nodes: [{id: 0, type: socket}]
host: {date: 2026-01-02 03:04:05, version: 0.1.0, cpu_model: Some CPU}
measurements:
- {name: memory.latency, value: 90 ns, quartiles: [89 ns, 91 ns], REPEATED}
- {name: latency, value: 91 ns, REPEATED, parameters: {size: 64 MiB}}
- {name: latency, value: 40 ns, REPEATED, parameters: {size: 1.5 MiB}}
- {name: cache.latency, value: 4 ns, REPEATED, parameters: {size: 96 KiB, level: 2}}
- {name: memory.bandwidth, value: 20 GB/s, REPEATED, parameters: {threads: 2}}
- {name: read-bandwidth, value: 11 GB/s, REPEATED, parameters: {threads: 1}}
- {name: random_reads, value: 100 M/s, REPEATED}
- {name: outstanding_misses, value: 9, REPEATED}
- {name: loaded.latency, value: 95 ns, REPEATED, parameters: {threads: 1, delay: 9}}
- {name: loaded.bandwidth, value: 9 GB/s, REPEATED, parameters: {threads: 1, delay: 9}}
- {name: routing, value: 3 ns, REPEATED, parameters: {targets: 8, buffer: 272 B}}
- {name: routing, value: 9 ns, REPEATED, parameters: {targets: 64, buffer: 272 B}}
- {name: fetch-add, value: 5 ns, REPEATED}
- {name: memory.latency, value: 0 ns, REPEATED}
""".replace("REPEATED", "repetitions: 9, method: m")


def written(tmp_path: Path, text: str, name: str = "file.txt") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def told(path: Path) -> str:
    return told_by(calibrate, server(), [path])


def test_what_mlc_printed() -> None:
    found = read_source(MLC, server())
    kinds = [one.kind for one in found.observations]
    assert [kinds.count(kind) for kind in (IDLE, READ, LOADED, MIX)] == [4, 4, 19, 5]
    first = found.observations[0]
    assert (first.value, first.unit, first.line) == (88.0e-9, "s", 6)
    held = [found.observations[k].kind for k in sorted(found.held_out or ())]
    assert held == [LOADED] * 9 + [MIX] * 5
    written_parts = {o.label: o.at["written"] for o in found.observations if o.kind == MIX}
    assert written_parts["3:1 Reads-Writes"] == 0.25
    assert written_parts["ALL Reads"] == 0.0


def test_what_machine_measure_wrote(tmp_path: Path) -> None:
    path = written(tmp_path, MEASURED, "mine.yaml")
    found = read_source(path, load_machine(path))
    by_kind = {one.kind: one for one in found.observations}
    assert [one.kind for one in found.observations] == [
        IDLE, IDLE, CACHE, READ, READ, "random reads", LOADED, ROUTING,
    ]  # fmt: skip
    assert by_kind[LOADED].at["load"] == 9e9
    assert found.observations[0].line == 13
    assert found.observations[0].spread == pytest.approx(2 / 90 / 1.349)
    assert found.origin.date == "2026-01-02"
    assert sum(found.unused.values()) == 5
    assert found.unused["0: below the resolution of the clock"] == 1
    assert found.unused["mine has no such cost among those of processes"] == 1
    assert "derived from other figures" in found.unused
    made = calibrate(load_machine(path), [path], share=0.0)
    assert made.fit.values["latency", "local"] == pytest.approx(90.5e-9, rel=0.01)
    # A core that draws 11 GB/s of lines of 90 ns has so many under way, and more as memory is
    # loaded then.
    assert 11 * 90 / 64 < made.fit.values["streaming", "socket"] < 1.5 * 11 * 90 / 64
    errors = {one.observation.label: one.error for one in made.residuals}
    assert abs(errors["read bandwidth, 0 from 0, 1 thread"]) < 0.02


def test_a_calibrated_machine_runs(tmp_path: Path) -> None:
    from numatwin.topologies.export import machine_yaml

    made = calibrate(server(), [MLC])
    path = written(tmp_path, machine_yaml(made.description), "fitted.yaml")
    record = run_scenario(load_scenario("eris-fig8-intel", machine=str(path)))
    assert record.throughput["lookup"] > 0
    assert made.description.calibrated_on[0].endswith("18 fitted, 14 held out")


@pytest.mark.parametrize("name", sorted(REACHED))
def test_real_servers(name: str) -> None:
    path = SHARED / f"{name}.txt"
    if not path.exists():
        pytest.skip("needs ../shared/data/mlc")
    machine = build_machine(import_machine(path))
    found = calibrate(machine, [path])
    held = found.of(HELD_OUT)
    assert {one.observation.kind for one in held} == {LOADED, MIX}
    for kind, (median_max, worst_max) in zip((LOADED, MIX), REACHED[name], strict=True):
        summary = error_summary([one for one in held if one.observation.kind == kind])
        assert summary is not None
        assert summary[0] <= median_max
        assert abs(summary[1].error) <= worst_max
    agree = sum(one.agrees for one in held)
    assert agree >= 0.85 * len(held)


def cut(lines: int, more: str = "") -> Callable[[str], str]:
    return lambda text: "\n".join(text.splitlines()[:lines]) + more


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: "", "file.txt: empty file"),
        (lambda text: "some words\n", "file.txt"),
        (cut(6), "file.txt:6: cut off: no row of node 1"),
        (cut(25), "file.txt:25: cut off: no row of node 1"),
        (cut(14), "file.txt:14: cut off: no row of mix 2:1 Reads-Writes: expected 5 rows"),
        (cut(30), "file.txt:28: cut off: no figures below"),
        (cut(40), "file.txt:40: cut off: no row of delay 00300: expected 19 rows"),
        (cut(51), "file.txt:51: cut off: no row of delay 20000"),
        (cut(40, "\n 00300\t100"), "file.txt:41: cut off: a row of the loaded latencies"),
        (cut(40, "\n 00300\t100.74\t 545"), "file.txt:41: cut off in the last number"),
        (
            lambda text: text.replace("98.79", "38.79"),
            "file.txt:42: contradiction: loaded latency at 42.32 GB/s is 38.79 ns, below the idle",
        ),
        (
            lambda text: text.replace("140.8", "440.8"),
            "file.txt:7: contradiction: idle latency, 1 from 0 is 440.8 ns, but idle latency, "
            "0 from 1 141.3 ns (line 6), which server-2s has as one parameter",
        ),
        (
            lambda text: text.replace(" 141.3", "  41.3").replace("140.8", " 40.8"),
            "file.txt:6: contradiction: idle latency, 0 from 1 is 41.3 ns, less than the 87.5 ns "
            "that node 1 takes to its own memory (line 7)",
        ),
        (
            lambda text: text.replace(" 92.27", "922.70"),
            "file.txt:52: contradiction: loaded latency at 0.9531 GB/s is 922.7 ns, but 90.82 ns",
        ),
        (
            lambda text: text.replace("34100.1", "234100.1"),
            "file.txt:25: contradiction: read bandwidth, 0 from 1 is 234.1 GB/s, more than the",
        ),
        (
            lambda text: text.replace("ALL Reads        : 2", "ALL Reads        : 3"),
            "contradiction: ALL Reads is 311.4 GB/s, more than all nodes draw",
        ),
        (
            lambda text: text.replace("     0\t     1\t", "     0\t     7\t").replace(
                "       1\t", "       7\t"
            ),
            "file.txt:6: idle latency, 0 from 7: server-2s has no node 7",
        ),
        (
            lambda text: text.replace("       0\t  88.0", "       0\t   nan"),
            "file.txt:6: no number: found 'nan', expected such as 89.2",
        ),
    ],
)
def test_bad_mlc_output_is_told(tmp_path: Path, change: Callable[[str], str], message: str) -> None:
    text = change(MLC.read_text())
    assert text != MLC.read_text()
    line = told(written(tmp_path, text))
    assert message in line
    assert "\n" not in line


def test_the_whole_output_and_parts_of_it_are_read(tmp_path: Path) -> None:
    lines = MLC.read_text().splitlines(keepends=True)
    for text in ("".join(lines), "".join(lines[:8]), "".join(lines).rstrip("\n")):
        assert read_source(written(tmp_path, text), server()).observations


def test_one_delay_alone_may_have_been_asked_for(tmp_path: Path) -> None:
    lines = MLC.read_text().splitlines(keepends=True)
    assert lines[33].startswith(" 00000")
    found = read_source(written(tmp_path, "".join(lines[:34])), server())
    assert [one.kind for one in found.observations].count(LOADED) == 1


def test_figures_of_no_use_are_counted(tmp_path: Path) -> None:
    between = """
Measuring cache-to-cache transfer latency (in ns)...
Local Socket L2->L2 HIT  latency\t50.5
Writer Numa Node     0\t     1
            0\t     -\t 114.0
            1\t 114.6\t     -
"""
    text = MLC.read_text().replace("  88.0", "   0.0") + between
    found = read_source(written(tmp_path, text), server())
    assert [one.kind for one in found.observations].count(IDLE) == 3
    assert list(found.unused.values()) == [1, 3]
    assert "0: not measured" in found.unused


def test_the_same_file_twice_is_no_second_session(tmp_path: Path) -> None:
    path = written(tmp_path, MLC.read_text())
    with pytest.raises(InputError, match="the same file twice"):
        calibrate(server(), [path, tmp_path / "." / "file.txt"])


def test_fewer_nodes_are_another_machine() -> None:
    with pytest.raises(InputError, match="2 nodes with memory: expected the 8 of amd-8n-ht"):
        calibrate(load_machine("amd-8n-ht"), [MLC])


def test_two_sources_that_disagree_are_both_named() -> None:
    first = measured(asked(), TRUTH, server())
    ones = [
        dataclasses.replace(
            o, origin=dataclasses.replace(o.origin, file="other.txt"), line=7, value=1.3 * o.value
        )
        for o in first.observations
        if o.kind == IDLE
    ]
    text = told_by(check, [first, Measured(ones[0].origin, tuple(ones))], server())
    assert text.startswith("other.txt:7: contradiction: idle 0 0")
    assert "synthetic.txt" in text
    near = [dataclasses.replace(o, value=o.value / 1.3 * 1.05) for o in ones]
    check([first, Measured(near[0].origin, tuple(near))], server())


def test_a_part_above_the_whole_is_told() -> None:
    first = measured(asked(), TRUTH, server())
    whole = Observation(MACHINE_READ, "all", 50e9, "B/s", first.origin, line=3)
    with pytest.raises(InputError, match="more than the 50 GB/s of the whole machine"):
        check([Measured(first.origin, (*first.observations, whole))], server())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t[: t.index("measurements:")], "no measurements"),
        (lambda t: t.replace("90 ns, quart", "90, quart"), "mine.yaml:13"),
        (lambda t: t.replace("Some CPU", "Another CPU"), "measured on another machine"),
        (lambda t: t[: t.index("- {name: memory.latency")] + "- {name: fetch-add, value: 5 ns, "
         "repetitions: 9, method: m}\n", "no measurement to calibrate on: 1 mine has no such cost"),
    ],
)  # fmt: skip
def test_bad_measurements_are_told(
    tmp_path: Path, change: Callable[[str], str], message: str
) -> None:
    machine = load_machine(written(tmp_path, MEASURED, "good.yaml"))
    path = written(tmp_path, change(MEASURED), "mine.yaml")
    assert message in told_by(calibrate, machine, [path])


def test_a_level_that_the_machine_lacks_is_told(tmp_path: Path) -> None:
    text = MEASURED.replace("    - {level: 2, size: 1 MiB}\n", "")
    machine = load_machine(written(tmp_path, text, "flat.yaml"))
    with pytest.raises(InputError, match="mine tells of no L2 cache there"):
        calibrate(machine, [written(tmp_path, MEASURED, "mine.yaml")])


def test_records_of_no_use_are_told(tmp_path: Path) -> None:
    record = run_scenario(load_scenario("eris-fig8-intel"))
    folder = record.save(tmp_path / "run")
    with pytest.raises(InputError, match="a run of the flow plane: a prediction is no measurement"):
        calibrate(load_machine("intel-4s-qpi"), [folder])
    head = json.loads((folder / "record.json").read_text())
    head["plane"] = "native"
    del head["digest"]
    (folder / "record.json").write_text(json.dumps(head))
    with pytest.raises(InputError, match="a run of another machine: found 'intel-4s-qpi'"):
        calibrate(server(), [folder])
    head["warnings"] = ["4 nodes of intel-4s-qpi are mapped onto one node of this host"]
    (folder / "record.json").write_text(json.dumps(head))
    with pytest.raises(InputError, match="this run was not on intel-4s-qpi itself"):
        calibrate(load_machine("intel-4s-qpi"), [folder])


def test_a_native_record_tells_of_core_times(tmp_path: Path) -> None:
    """The steps of a run that a machine with known core times would have."""
    machine = load_machine("intel-4s-qpi")
    record = run_scenario(load_scenario("eris-fig8-intel"))
    demands = record.why["lookup"].demands
    names = {"making and routing commands": "issue", "receiving commands": "receive"}
    steps = {of: demands[name] * 1.4 for name, of in names.items()}
    native = dataclasses.replace(
        record,
        plane="native",
        model={"step_ns_per_command": {**steps, "flush": 0.0}},
        replicates={"throughput": {"lookup": [1e8, 1.01e8, 0.99e8]}},
        warnings=(),
    )
    found = calibrate(machine, [native.save(tmp_path / "run")])
    assert [one.observation.kind for one in found.of(HELD_OUT)] == ["native throughput"]
    again = calibrate(machine, [tmp_path / "run"], share=0.0)  # an end result is never fitted to
    assert [one.observation.kind for one in again.of(HELD_OUT)] == ["native throughput"]
    assert again.fit.values == found.fit.values
    assert ("loop", "routing") in found.fit.estimates
    assert all(key[0] in ("loop", "core") for key in found.fit.estimates)
    fitted = {o.observation.label.rsplit(": ")[-1]: o.error for o in found.of("fitted")}
    assert abs(fitted["making and routing commands"]) < 0.05
    engine = found.description.facts_of(ENGINE, ErisFacts)
    assert engine is not None
    assert engine.flush_fixed is not None
    assert engine.scan_line_sum is None  # nothing was scanned


def test_a_native_record_of_scans_tells_of_scanning(tmp_path: Path) -> None:
    """A scan is a command of each worker: its record counts per command. Steps that the plane does
    not play in scans are not fitted to, and end nothing.
    """
    machine = load_machine("amd-8n-ht")
    record = run_scenario(load_scenario("eris-fig12-scan"))
    workers = sum(node.cores for node in machine.nodes)
    each_ns = record.why["scan"].demands["scanning"] / workers
    native = dataclasses.replace(
        record,
        plane="native",
        model={"step_ns_per_command": {"issue": 900.0, "receive": 80.0, "scan": each_ns}},
        warnings=(),
    )
    path = native.save(tmp_path / "run")
    source = read_source(path, machine)
    assert list(source.unused.values()) == [2]
    (step,) = (one for one in source.observations if one.kind == STEP)
    own = Candidate(machine, (), {})
    assert predict(own, step) == pytest.approx(step.value, rel=1e-3)


def test_what_was_measured_of_fewer_nodes_is_another_machine(tmp_path: Path) -> None:
    path = written(tmp_path, MEASURED, "mine.yaml")
    assert "measured on another machine: 1 node with memory" in told_by(calibrate, server(), [path])


def test_a_record_that_was_cut_off_is_told_whatever_its_name(tmp_path: Path) -> None:
    path = written(tmp_path, '{"schema": 1,', "mine.json")
    assert "mine.json:1:14: not a record: not JSON" in told_by(calibrate, server(), [path])
