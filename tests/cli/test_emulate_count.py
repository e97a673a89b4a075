"""``numatwin emulate --count``: a Record of bytes, its report, and how it compares."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import CommandLine, Refused
from emulator_needed import needs_emulator
from fresh_processes import python

from numatwin.cli import emulate
from numatwin.inputs import InputError
from numatwin.reports import write_report
from numatwin.sim.run.record import Record, load_record
from numatwin.topologies import emulator

# Two nodes, a processor each.
SMALL = ("emulate", "opteron-4n", "--nodes", "2", "--scale", "1/128")


@pytest.fixture(autouse=True)
def _no_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)


def test_a_program_that_ends_as_if_interrupted_is_not(
    numatwin: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its status is the command's, and nobody pressed Ctrl-C."""
    ended = emulator.GuestRun(130, b"", b"", 1.0, 1.0)
    monkeypatch.setattr(emulator, "run_in_guest", lambda *_, **__: ended)
    done = numatwin(*SMALL, "--json", "--", "false")
    assert done.status == 130
    assert "interrupted" not in done.err


@needs_emulator
def test_a_counted_command_is_a_record_to_report_and_to_compare(
    numatwin: CommandLine, tmp_path: Path
) -> None:
    command = [*SMALL, "--predict", "--out", "counted", "--json", "--", "sh", "-c", "exit 3"]
    done = python("-m", "numatwin", *command, stdin=subprocess.DEVNULL)
    assert done.returncode == 3, done.stderr
    assert json.loads(done.stdout)["record"]["plane"] == "emulator"
    record = load_record("counted")
    assert (record.plane, record.title) == ("emulator", "sh -c 'exit 3'")
    assert "the command failed: its exit status is 3" in record.warnings
    assert (record.horizon_s, record.resources, record.throughput) == (0.0, (), {})
    traffic = record.traffic
    assert (traffic["span"], traffic["regions"], traffic["levels"]) == ("command", 0, [1, 2, 3])
    n = len(record.machine["nodes"])
    for pairs in traffic["pairs"].values():
        assert [len(row) for row in pairs] == [n] * n
        assert not any(row[2:] != [0] * (n - 2) for row in pairs)  # of two nodes of four

    def total(*names: str) -> int:
        return sum(sum(map(sum, traffic["pairs"][name])) for name in names)

    assert total("reads_user") > 10_000
    read = sum(node["read_bytes"] for node in traffic["memory"])
    assert read == 64 * total("memory_reads")
    # All that crosses is between nodes 0 and 1, which have a link.
    used = [link["ends"] for link in traffic["links"] if link["data_bytes"]]
    assert all(set(ends) == {0, 1} for ends in used)
    assert 0 < traffic["remote_share"] < 1
    assert 0 <= traffic["user_remote_share"] <= 1
    predicted = traffic["predicted"]
    least_s, most_s = predicted["interval_s"]
    assert 0 < least_s <= predicted["time_s"] <= most_s < 1
    assert sum(predicted["binding"].values()) == pytest.approx(1)
    assert predicted["placements_s"]["all local"] <= predicted["time_s"]

    assert numatwin("run", "eris-fig1", "--on", "flow", "--out", "predicted").status == 0
    compared = numatwin("compare", "counted", "predicted", "--json").json()["rows"]
    rows = {row["metric"]: row for row in compared}
    assert rows["traffic.memory_bytes"]["values"][0] == sum(
        node["read_bytes"] + node["written_bytes"] for node in traffic["memory"]
    )
    assert rows["traffic.memory_bytes"]["values"][1] > 0
    assert rows["traffic.remote_share"]["values"][0] == traffic["remote_share"]
    assert "traffic memory" in numatwin("compare", "counted", "predicted").out

    page = write_report([record], tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Who accesses whose memory" in page
    assert "Links and memory controllers" in page


@needs_emulator
@pytest.mark.parametrize(
    ("command", "status", "error"),
    [
        ("./nope", 127, "numatwin: error: no such command: './nope'\n"),
        ("/etc/passwd", 126, "numatwin: error: /etc/passwd: Permission denied\n"),
    ],
)
def test_a_command_that_cannot_be_started_leaves_nothing(
    numatwin: CommandLine, command: str, status: int, error: str
) -> None:
    told = numatwin(*SMALL, "--out", "counted", "--json", "--", command)
    assert (told.status, "record" in json.loads(told.out)) == (status, False)
    assert json.loads(told.out)["errors"] == error
    assert not Path("counted").exists()


@needs_emulator
def test_a_command_that_ends_as_if_there_were_none_is_counted(numatwin: CommandLine) -> None:
    done = numatwin(*SMALL, "--out", "counted", "--", "sh", "-c", "exit 127")
    assert done.status == 127
    assert load_record("counted").traffic["pairs"]


ENDLESS = "echo up; while :; do :; done"


@needs_emulator
@pytest.mark.parametrize(
    ("stop", "status", "told"),
    [
        (emulator.GuestTimeout("the command did not end within 5 s"), 124, "within 5 s"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_what_a_server_did_until_it_was_stopped_is_kept(
    numatwin: CommandLine,
    monkeypatch: pytest.MonkeyPatch,
    stop: BaseException,
    status: int,
    told: str,
) -> None:
    """Stopped as its first word comes: by then it has been counted."""

    def stopped(_: object) -> Callable[[bytes], None]:
        def write(_: bytes) -> None:
            raise stop

        return write

    monkeypatch.setattr(emulate, "_to", stopped)
    done = numatwin(*SMALL, "--out", "counted", "--", "sh", "-c", ENDLESS)
    assert done.status == status
    assert told in done.err
    assert "what was counted is kept" in done.err
    record = load_record("counted")
    assert any(told in text for text in record.warnings)
    assert sum(map(sum, record.traffic["pairs"]["reads_user"])) > 10_000


@needs_emulator
def test_an_unmodified_server_is_counted_for_a_while(numatwin: CommandLine) -> None:
    words = ("--count-from", "0.2", "--count-for", "0.2", "--out", "counted")
    assert numatwin(*SMALL, *words, "--", "sh", "-c", ENDLESS).status == 0
    traffic = load_record("counted").traffic
    assert (traffic["span"], traffic["regions"]) == ("regions", 1)
    assert sum(map(sum, traffic["pairs"]["reads_user"])) > 0


@needs_emulator
def test_a_command_marks_a_region_by_signals_to_its_parent(numatwin: CommandLine) -> None:
    client = "head -c 1000000 /dev/zero | wc -c"
    script = f"kill -USR1 $PPID; {client}; kill -USR2 $PPID; {client}; exit 5"
    done = numatwin(*SMALL, "--out", "counted", "--", "sh", "-c", script)
    assert (done.status, done.out) == (5, "1000000\n" * 2)
    traffic = load_record("counted").traffic
    assert (traffic["span"], traffic["regions"]) == ("regions", 1)


@needs_emulator
def test_a_command_that_ends_before_its_region_is_counted_whole(numatwin: CommandLine) -> None:
    done = numatwin(*SMALL, "--count-from", "1000", "--out", "counted", "--", "true")
    assert done.status == 0
    assert "the command ended before --count-from: all of it was counted" in done.err
    assert load_record("counted").traffic["span"] == "command"


@needs_emulator
def test_counts_are_printed_though_their_record_cannot_be_written(
    numatwin: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise InputError("cannot be written: No space left on device", "counted")

    monkeypatch.setattr(Record, "save", full)
    done = numatwin(*SMALL, "--out", "counted", "--", "true")
    assert done.status == 2
    assert "to other nodes' memory" in done.err
    assert done.err.endswith("error: counted: cannot be written: No space left on device\n")


def test_a_folder_that_cannot_be_written_is_refused_before_the_guest_starts(
    refused: Refused,
) -> None:
    Path("file").write_text("")
    assert "file/counted: cannot be written" in refused(*SMALL, "--out", "file/counted", "--", "x")


@pytest.mark.parametrize(
    "words", [("--count",), ("--out", "counted"), ("--detail", "caches"), ("--count-for", "3")]
)
def test_counting_needs_a_command(refused: Refused, words: tuple[str, ...]) -> None:
    assert "a command after '--'" in refused(*SMALL, *words)


def test_a_time_is_predicted_from_misses(refused: Refused) -> None:
    words = ("--predict", "--detail", "accesses", "--", "true")
    assert "expected --detail caches or coherence" in refused(*SMALL, *words)


def test_a_time_is_predicted_where_caches_are_known(refused: Refused) -> None:
    Path("bare.yaml").write_text(
        "name: bare\nnode_types: {node: {cores: 1, memory: {size: 1 GiB, latency: 80 ns}}}\n"
        "nodes: [{id: 0, type: node}]\n"
    )
    assert "caches" in refused("emulate", "bare.yaml", "--predict", "--", "true")
