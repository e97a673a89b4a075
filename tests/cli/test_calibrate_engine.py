"""``numatwin calibrate --from FILE.csv``: tables, JSON, the profile, exit status."""

import re
from pathlib import Path

import pytest
from command_line import CommandLine, Refused

from numatwin.validate.calibrate.calibration import error_percent

SMALL = """\
name: small
node_types:
  node:
    cores: 4
    clock: 3 GHz
    ipc: 1.5
    caches: [{level: 1, size: 32 KiB, latency: 1.5 ns}, {level: 2, size: 1 MiB, latency: 5 ns}]
    memory: {size: 64 GiB, bandwidth: 40 GB/s, latency: 100 ns}
nodes: [{id: 0, type: node}]
"""
ROWS = """\
operation,threads,keys,throughput
lookup,1,10000,20 M/s
lookup,2,10000,40 M/s
lookup,4,10000,80 M/s
"""
SHARED = ("--set", "system.placement=interleaved")


@pytest.fixture
def machine() -> str:
    Path("small.yaml").write_text(SMALL)
    Path("mine.csv").write_text(ROWS)
    return "small.yaml"


def test_tables_profile_and_report(numatwin: CommandLine, machine: str) -> None:
    done = numatwin(
        "calibrate", machine, "--from", "mine.csv", *SHARED, "--out", "mine.yaml", "--report",
        "r.html",
    )  # fmt: skip
    assert (done.status, done.err) == (0, "")
    assert "engine of kind eris, as in eris-mixed-amd" in done.out
    assert "not determined, 1 by default, assumed between 0.5 and 2: level_lines" in done.out
    assert re.search(r"^held out +engine throughput +1 ", done.out, re.M)
    assert "Engine profile: mine.yaml" in done.out
    assert "lookup, 4 threads, 10,000 keys" in Path("r.html").read_text("utf-8")
    profile = ("--set", "engine=mine.yaml")
    small = ("--set", "workload.objects.index.keys=10000", "--machine", machine, "--json")
    run = numatwin("run", "eris-mixed-amd", *profile, *SHARED, *small).json()
    low, high = run["uncertainty"]["throughput"]["lookup"]
    assert low < run["throughput"]["lookup"] < high


def test_json_has_it_all(numatwin: CommandLine, machine: str) -> None:
    found = numatwin("calibrate", machine, "--from", "mine.csv", *SHARED, "--json").json()
    assert (found["system"], found["scenario"]) == ("eris", "eris-mixed-amd")
    assert [(row["line"], row["set"]) for row in found["rows"]] == [
        (2, "fitted"), (3, "fitted"), (4, "held out")
    ]  # fmt: skip
    names = {one["parameter"] for one in (*found["fitted"], *found["not_determined"])}
    assert names == set(found["facts"]) == {"generate", "tree_level", "tree_entry", "level_lines"}
    assert found["errors"]["held out"]["worst"] < 0.01


def test_a_fit_that_explains_nothing_says_so(numatwin: CommandLine, machine: str) -> None:
    """Four threads, held out, are slower than two; the others, that scale, get no warning."""
    Path("flat.csv").write_text(ROWS.replace("80 M/s", "30 M/s"))
    wanted = ("calibrate", machine, *SHARED, "--from")
    done = numatwin(*wanted, "flat.csv")
    assert "warning: held out rows are off by " in done.out
    assert "warning" not in numatwin(*wanted, "mine.csv").out
    assert numatwin(*wanted, "mine.csv", "--json").json()["warning"] is None


def test_rates_of_another_scale_are_refused(refused: Refused, machine: str) -> None:
    """As of a thousand operations each: more rows would not help."""
    Path("large.csv").write_text(ROWS.replace(" M/s", " G/s"))
    message = refused("calibrate", machine, "--from", "large.csv", *SHARED)
    assert "large.csv: measured rates are " in message
    assert "times those of the scenario at default costs" in message


@pytest.mark.parametrize(
    ("error", "said"), [(1.1e-11, "0%"), (0.00894, "0.89%"), (0.123, "12%"), (49.4196, "4,942%")]
)
def test_errors_keep_two_digits(error: float, said: str) -> None:
    assert error_percent(-error) == said


BAD = [
    (("--from", "none.csv"), "numatwin: error: none.csv: cannot be read: No such file"),
    (("--from", "mine.csv", "--from", "x.txt"), "--from: an engine's throughputs cannot be"),
    (("--from", "mine.csv", "--scenario", "eris-fig12-scan"),
     "mine.csv:2:1: scenario eris-fig12-scan has no such operation: found 'lookup'"),
    (("--from", "small.yaml", "--scenario", "eris-fig1"),
     "--scenario: only for the throughputs of an engine"),
    (("--from", "mine.csv", "--out", "mine.csv"), "--out"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_input_is_one_line(
    refused: Refused, machine: str, options: tuple[str, ...], message: str
) -> None:
    assert message in refused("calibrate", machine, *options)
