"""``numatwin run``: what is printed, what is written where, what is refused."""

import json
import os
import pty
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from command_line import CommandLine, Refused

from numatwin.cli.assumptions import assumption_parts
from numatwin.cli.files import alone_in
from numatwin.cli.output import show
from numatwin.cli.record_facts import record_parts
from numatwin.sim.run.record import load_record
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario

SCAN, FIG13, MACHINE = "eris-fig12-scan", "eris-fig13", "intel-4s-qpi"


def files() -> list[str]:
    """Every file below the current folder."""
    return sorted(str(path) for path in Path().rglob("*") if path.is_file())


def test_of_joins_it_is_said_by_which_operator(numatwin: CommandLine) -> None:
    def operators(*words: str) -> list[str]:
        lines = numatwin("run", *words, "--on", "flow", "--exact").out.splitlines()
        return [" ".join(line.split()[1:]) for line in lines if line.startswith("operator ")]

    cheapest = ("join", "--policy", "operator=cheapest")
    assert operators(*cheapest) == ["rrj"]
    # The policy is first asked when the first query is under way.
    (found,) = operators(*cheapest, "--set", "workload.operations.join.selectivity=0.1")
    assert found.startswith("ghj-bloom 9")
    assert ", rrj " in found
    assert operators(SCAN) == []


def test_what_there_is_none_of_has_no_interval(numatwin: CommandLine) -> None:
    said = numatwin("run", "host-queries", "--out", "one").out
    assert "link traffic" not in said + Path("one/report.html").read_text()
    assert re.search("link traffic +0 B/s$", numatwin("run", SCAN).out, re.MULTILINE)


def test_json_is_one_object_and_writes_nothing(numatwin: CommandLine) -> None:
    done = numatwin("run", SCAN, "--json")
    record = done.json()
    assert (record["scenario"], record["plane"]) == (SCAN, "flow")
    assert done.err == ""
    assert files() == []


def test_table_record_and_report(numatwin: CommandLine) -> None:
    printed = numatwin("run", SCAN).said()
    folder = f"out/{SCAN}"
    assert files() == [
        f"{folder}/{name}" for name in ("record.json", "report.html", "series.parquet")
    ]
    record = load_record(folder)
    assert record.scenario == SCAN
    for text in ("throughput", "busiest resources", "scan is limited by ", folder):
        assert text in printed


def test_what_is_asked_for_names_the_folder(numatwin: CommandLine) -> None:
    """So that no run replaces another one of the scenario."""
    Path("files").mkdir()
    Path("files/mine.yaml").write_text(numatwin("scenario", "show", SCAN).out)
    for name in ("my-machine", "saved.tar.bz2"):
        text = numatwin("machine", "show", MACHINE, "--yaml").out
        Path(f"files/{name}.yaml").write_text(text)
    for words, folder in (
        ([SCAN, "--machine", MACHINE], f"{SCAN}-{MACHINE}"),
        ([SCAN, "--machine", "files/my-machine.yaml"], f"{SCAN}-my-machine"),
        ([SCAN, "--machine", "files/saved.tar.bz2.yaml"], f"{SCAN}-saved"),
        ([SCAN, "--workload", "eris-scan-8e9"], f"{SCAN}-eris-scan-8e9"),
        ([SCAN, "--seed", "7", "--on", "flow", "--policy", "none"], f"{SCAN}-none-on-flow-seed-7"),
        (["files/mine.yaml"], "mine"),
    ):
        assert numatwin("run", *words, "--exact").out.endswith(
            f"Report: out/{folder}/report.html\n"
        )
        assert Path(f"out/{folder}/record.json").exists()


def test_what_is_set_names_the_folder(numatwin: CommandLine) -> None:
    folders = []
    for setting in ("system.nodes=2", "system.nodes=3", "system.nodes=2"):
        out = numatwin("run", SCAN, "--set", setting, "--exact").out
        folders.append(out.rsplit("Record: ")[1].splitlines()[0])
        digest = load_record(folders[-1]).scenario_hash
        assert folders[-1] == f"out/{SCAN}-{digest[:8]}"
    assert folders[0] != folders[1]
    assert folders[0] == folders[2]


def test_the_policy_asked_for_names_the_folder(numatwin: CommandLine) -> None:
    Path("mine.py").write_text("class Lazy:\n    def decide(self, seen):\n        return []\n")
    assert numatwin("run", FIG13, "--policy", "./mine.py:Lazy", "--exact").status == 0
    assert load_record(f"out/{FIG13}-mine-Lazy").policy == "Lazy"
    assert numatwin("run", FIG13, "--policy", "none", "--exact").status == 0
    assert load_record(f"out/{FIG13}-none").policy == "none"


def test_a_latency_known_of_no_operation_has_no_column(
    numatwin: CommandLine, capsys: pytest.CaptureFixture[str]
) -> None:
    out = numatwin("run", SCAN, "--exact", "--json", "--out", "a")
    head = out.json()
    assert set(head["latency_ns"].values()) == {None}
    found = re.findall("^operation.*", numatwin("run", SCAN, "--exact").out, re.M)
    assert found[0].split() == ["operation", "throughput", "total"]
    record = replace(load_record("a"), latency_ns={"scan": {"mean": 7.5e6, "p99": None}})
    show(record_parts(record))
    shown = capsys.readouterr().out
    found = re.findall("^operation.*", shown, re.M)
    assert found[0].split() == ["operation", "throughput", "mean", "latency", "total"]
    assert "7.5 ms" in shown


def test_out_with_json(numatwin: CommandLine) -> None:
    done = numatwin("run", SCAN, "--json", "--out", "here/it is")
    head = json.loads(Path("here/it is/record.json").read_text())
    assert done.json() == {name: head[name] for name in head if name != "digest"}


def test_replications_of_an_expectation(numatwin: CommandLine) -> None:
    done = numatwin("run", SCAN, "--replications", "3", "--exact", "--json")
    once = numatwin("run", SCAN, "--exact", "--json").json()
    assert done.json()["throughput"] == once["throughput"]
    assert done.err.count("\n") == 1
    assert "runs one" in done.err


def test_progress_bar_on_a_terminal(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "numatwin", "run", FIG13, "--exact", "--json"]
    # Into a file: a pipe that nobody reads would hold it once it is full.
    with (
        open(tmp_path / "out", "wb") as out,
        subprocess.Popen(words, cwd=tmp_path, stdout=out, stderr=theirs) as process,
    ):
        os.close(theirs)
        seen = b""
        while chunk := _read(ours):
            seen += chunk
    os.close(ours)
    assert process.returncode == 0
    assert json.loads((tmp_path / "out").read_text())["scenario"] == FIG13
    assert b"simulating" in seen


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # what Linux says when the other end is closed
        return b""


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["eris-fig31"], "'eris-fig31'"),
        (["./none.yaml"], "none.yaml"),
        ([SCAN, "--machine", "amd-8n-th"], "'amd-8n-ht'"),
        ([SCAN, "--workload", "none"], "workload"),
        ([FIG13, "--policy", "ma-8x"], "ma-8x"),
        ([SCAN, "--scale", "1/0"], "1/0"),
        ([SCAN, "--scale", "2"], "scale"),
        ([SCAN, "--set", "horizon"], "path=value"),
        ([SCAN, "--set", "colour=red"], "colour"),
        ([SCAN, "--set", "horizon=60"], "unit"),
        ([SCAN, "--set", "horizon=-1s"], "horizon"),
    ],
)
def test_refused(refused: Refused, words: list[str], text: str) -> None:
    assert text in refused("run", *words)


def test_a_policy_that_fails_midway_is_told_whole(refused: Refused) -> None:
    Path("mine.py").write_text("class Lazy:\n    def decide(self, seen):\n        pass\n")
    assert refused("run", FIG13, "--policy", "mine.py:Lazy") == (
        "numatwin: error: mine.py:2: policy Lazy: decide returned NoneType: "
        "expected a list of Rebalance, [] for none\n"
    )


@pytest.mark.parametrize("option", ["--machine", "--workload", "--policy"])
def test_a_pipe_keeps_nobody_waiting(refused: Refused, option: str) -> None:
    os.mkfifo("pipe.yaml" if option != "--policy" else "pipe.py")
    value = "./pipe.yaml" if option != "--policy" else "./pipe.py:Policy"
    assert "cannot be read: a pipe: expected a file" in refused("run", SCAN, option, value)


def test_a_folder_that_cannot_be_written(numatwin: CommandLine) -> None:
    Path("taken").write_text("")
    for folder in ("taken", "taken/in/it"):
        done = numatwin("run", SCAN, "--out", folder)
        assert (done.status, done.out) == (2, "")  # told before the run
        assert done.err == f"numatwin: error: {folder}: cannot be written: not a folder\n"
    assert files() == ["taken"]


def test_a_full_disk_costs_no_result(
    numatwin: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(pq, "write_table", full)
        done = numatwin("run", SCAN, "--exact")
    assert done.status == 75
    assert "scan is limited by " in done.out
    assert "Record: " not in done.out
    told = f"numatwin: error: out/{SCAN}: cannot be written: No space left on device\n"
    assert done.err == told
    assert files() == []


def test_a_record_whose_report_finds_no_room_is_kept(
    numatwin: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync = os.fsync

    def full(handle: int) -> None:
        if "/.report.html" in os.readlink(f"/proc/self/fd/{handle}"):
            raise OSError(28, "No space left on device")
        fsync(handle)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        done = numatwin("run", SCAN, "--exact")
    assert done.status == 75
    assert "scan is limited by " in done.out
    assert done.err == (
        f"numatwin: error: out/{SCAN}/report.html: cannot be written: No space left on device; "
        f"the record is kept in out/{SCAN}\n"
    )
    assert files() == [f"out/{SCAN}/record.json", f"out/{SCAN}/series.parquet"]
    assert load_record(f"out/{SCAN}").scenario == SCAN


def test_a_reader_that_goes_away_costs_no_record(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "numatwin", "run", SCAN, "--exact", "--out", "kept"]
    done = subprocess.run(command, cwd=tmp_path, stdout=write, stderr=subprocess.PIPE, timeout=900)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")
    assert load_record(tmp_path / "kept").scenario == SCAN
    assert (tmp_path / "kept/report.html").exists()


def test_a_setting_without_effect_is_told(numatwin: CommandLine) -> None:
    idle = "machine.link_types.ht-full.bandwidth=100 GB/s"
    line = f"--set {idle}: the prediction is the same without it; limited by"
    done = numatwin("run", SCAN, "--set", idle, "--set", "system.threads=1", "--exact", "--json")
    (told,) = done.json()["idle_settings"]
    assert told["setting"] == idle
    assert f"numatwin: {line}" in done.err
    assert done.err.count("\n") == 1
    shown = numatwin("run", SCAN, "--set", idle, "--exact", "--out", "one")
    assert f"Note: {line}" in shown.out
    assert load_record(Path("one")).idle_settings[0]["throughput"] == {"scan": 0.0}
    assert (
        "the same without it"
        not in numatwin("run", SCAN, "--set", "system.threads=1", "--exact").out
    )


def test_several_errors_are_counted(refused: Refused) -> None:
    text = "name: x\nmachine: nix\nworkload: eris-lookup-1e9\nhorizon: 1 parsec\n"
    Path("two.yaml").write_text(text)
    told = refused("run", "two.yaml")
    assert "('numatwin scenario check two.yaml' lists all 2 errors)" in told
    Path("one.yaml").write_text(text.replace("nix", MACHINE))
    assert "lists all" not in refused("run", "one.yaml")


def test_a_folder_that_another_run_writes_to(numatwin: CommandLine, refused: Refused) -> None:
    with alone_in(Path("here")):
        told = refused("run", SCAN, "--out", "here")
    assert (
        told == "numatwin: error: here: another run writes to this folder: expected another --out\n"
    )
    assert not Path("here").exists()
    for _ in range(2):
        assert numatwin("run", SCAN, "--exact", "--out", "here").status == 0


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_interrupted_between_record_and_report(
    numatwin: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command that is told writes the report."""
    with monkeypatch.context() as patched:
        patched.setattr("numatwin.reports.write_report", interrupted)
        done = numatwin("run", "eris-fig8-amd", "--exact", "--out", "some where")
    command = "numatwin report 'some where' --out 'some where/report.html'"
    assert (done.status, done.err) == (
        130,
        f"numatwin: interrupted; the record is kept in some where; for its report: {command}\n",
    )
    assert numatwin(*shlex.split(command)[1:]).status == 0
    assert Path("some where/report.html").exists()


def test_interrupted_in_the_effects_of_assumptions(
    numatwin: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("numatwin.sim.run.runner.with_effects", interrupted)
    done = numatwin("run", "eris-fig8-amd", "--out", "out")
    kept = "the record is kept in out, its report in out/report.html"
    assert (done.status, done.err) == (130, f"numatwin: interrupted; {kept}\n")
    assert Path("out/report.html").exists()


@pytest.mark.parametrize(
    ("effects", "told"),
    [
        ([0.1, 0.0], "2 assumptions. Other values (mostly a tenth less and more) of 1 of them"),
        ([0.1, 0.2, 0.0], "more) of 2 of them would change the predicted throughput."),
        ([0.0, 0.0], "more) of none of them would change the predicted throughput."),
        ([0.1], "1 assumption. Other values (mostly a tenth less and more) would change"),
        ([0.0], "less and more) would not change the predicted throughput."),
    ],
)
def test_how_many_assumptions_matter(
    capsys: pytest.CaptureFixture[str], effects: list[float], told: str
) -> None:
    rows = [
        {
            "name": f"setup {k}",
            "value": 1e5,
            "unit": "ns",
            "source": "a guess",
            "low": {"value": 9e4, "throughput": effect, "power": None},
            "high": None,
        }
        for k, effect in enumerate(effects)
    ]
    record = replace(run_scenario(load_scenario("eris-fig8-intel")), assumptions=tuple(rows))
    show(assumption_parts(record))
    out = capsys.readouterr().out
    assert told in out
    assert " 100 µs " in out
    assert "e+05" not in out


def test_where_no_interval_is_drawn_it_is_told_and_scripts_have_it(numatwin: CommandLine) -> None:
    words = ("run", "eris-fig9", "--set", "system.nodes=17")
    assert "No interval by default above 16 nodes: --uncertainty" in numatwin(*words).out
    assert "No interval" not in numatwin(*words, "--exact").out
    low, high = json.loads(numatwin(*words, "--json").out)["uncertainty"]["throughput"]["scan"]
    assert low < high
