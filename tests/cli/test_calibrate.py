"""``numatwin calibrate``: tables, JSON, files, exit status; the page in a browser."""

import re
from pathlib import Path

import pytest
from command_line import CommandLine, Refused
from fresh_processes import python

from numatwin.topologies import load_machine

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
SERVER, MLC = str(EXAMPLES / "server-2s.yaml"), str(EXAMPLES / "mlc-2s.txt")
HOSTILE = "<img src=x onerror=boom()>.txt"

IN_THE_MIDDLE = """
import os, signal, sys
from numatwin.validate.calibrate import fit

search = fit.least_squares
def interrupted(*words, **named):
    os.kill(os.getpid(), signal.SIGINT)
    return search(*words, **named)

fit.least_squares = interrupted
from numatwin.cli import main
sys.exit(main(["calibrate", sys.argv[1], "--from", sys.argv[2], "--out", "m.yaml"]))
"""


def test_tables_and_files(numatwin: CommandLine) -> None:
    printed = numatwin(
        "calibrate", SERVER, "--from", MLC, "--out", "m.yaml", "--report", "r.html"
    ).said()
    assert re.search(r"^latency local +\S+ +100 ns +87\.7\d ns ", printed, re.M)
    held_out = printed[printed.index("Held out") : printed.index("Fitted to")]
    assert re.search(r"^1:1 Reads-Writes ", held_out, re.M)
    assert re.search(r"^latency of the L1 .* no measurement depends on it$", printed, re.M)
    assert "Of 14 measurements that the fit never saw, the median error is 0." in printed
    assert "Machine file: m.yaml" in printed
    assert "Report: r.html" in printed
    assert load_machine("m.yaml").latency_ns[0, 1] == pytest.approx(141, rel=0.02)
    page = Path("r.html").read_text("utf-8")
    assert "8 parameters fitted to 18 measurements" in page.replace("\u202f", " ")


def test_json_has_it_all(numatwin: CommandLine) -> None:
    found = numatwin("calibrate", SERVER, "--from", MLC, "--json").json()
    assert found["machine"] == "server-2s"
    assert len(found["fitted"]) == 8
    one = found["fitted"][0]
    assert one["interval"][0] < one["value"] < one["interval"][1]
    assert (one["before"], one["unit"]) == (pytest.approx(100e-9), "s")
    assert re.fullmatch(r"mlc-2s\.txt \(\d{4}-\d\d-\d\d\)", one["sources"][0])
    assert {row["set"] for row in found["rows"]} == {"fitted", "held out"}
    assert [row["line"] for row in found["rows"][:2]] == [6, 6]
    errors = found["errors"]["held out"]
    assert errors["median"] < errors["worst"] < 0.06
    reasons = {one["reason"] for one in found["not_determined"]}
    assert reasons == {"no measurement depends on it"}
    assert not list(Path.cwd().iterdir())


def test_the_share_held_out_can_be_chosen(numatwin: CommandLine) -> None:
    found = numatwin("calibrate", SERVER, "--from", MLC, "--held-out", "0", "--json").json()
    assert found["errors"]["held out"] is None
    assert "write turnaround" in {one["parameter"] for one in found["fitted"]}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--from", "nothing.txt"), "nothing.txt: cannot be read: No such file or directory"),
        (("--from", MLC, "--out", "m.txt"), "--out: wrong kind of file: found 'm.txt'"),
        (("--from", "m.yaml", "--out", "./m.yaml"), "--out: it is a file of --from: found"),
        (("--from", MLC, "--from", MLC), "--from: the same file twice"),
        (("--from", MLC, "--report", "r.yaml"), "--report: wrong kind of file: found 'r.yaml'"),
        (("--from", MLC, "--out", "no/m.yaml"), "no/m.yaml: cannot be written"),
        (("--from", MLC, "--held-out", "0.9"), "--held-out: found '0.9', expected a share"),
        (("--from", SERVER), "no measurements: expected a file that 'numatwin machine measure'"),
        ((), "--from"),
    ],
)
def test_bad_input(refused: Refused, words: tuple[str, ...], message: str) -> None:
    assert message in refused("calibrate", SERVER, *words)


def test_a_machine_that_was_there_stays_where_measurements_are_bad(refused: Refused) -> None:
    Path("m.yaml").write_text("mine")
    Path("cut.txt").write_text("\n".join(Path(MLC).read_text().splitlines()[:6]))
    line = refused("calibrate", SERVER, "--from", "cut.txt", "--out", "m.yaml")
    assert "cut.txt:6: cut off: no row of node 1: expected 2 rows" in line
    assert Path("m.yaml").read_text() == "mine"


def test_names_of_files_come_alive_nowhere(numatwin: CommandLine) -> None:
    Path(HOSTILE).write_text(Path(MLC).read_text())
    done = numatwin("calibrate", SERVER, "--from", HOSTILE, "--report", "r.html", "--out", "m.yaml")
    assert done.status == 0
    page = Path("r.html").read_text("utf-8")
    assert "<img" not in page
    assert "&lt;img src=x" in page
    assert load_machine("m.yaml").name == "server-2s"


def test_ctrl_c_leaves_no_half_written_file(tmp_path: Path) -> None:
    """A signal from outside, in the middle of the fit."""
    done = python("-c", IN_THE_MIDDLE, SERVER, MLC, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    assert done.stderr.startswith("numatwin: interrupted")
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_link_to_itself_is_told(refused: Refused) -> None:
    Path("loop").symlink_to("loop")
    assert "loop: cannot be read: " in refused("calibrate", SERVER, "--from", "loop")
