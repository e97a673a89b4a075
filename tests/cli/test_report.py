"""``numatwin report``: which records it is on, where it goes."""

from pathlib import Path

import pytest
from command_line import CommandLine, Refused

SCAN = "eris-fig12-scan"


@pytest.fixture
def record(numatwin: CommandLine) -> str:
    """The name of a folder with a record, in the folder that the commands run in."""
    assert numatwin("run", SCAN, "--exact", "--out", "runs/scan").status == 0
    return "runs/scan"


def test_a_folder_of_records_stands_for_them(numatwin: CommandLine, record: str) -> None:
    assert numatwin("run", SCAN, "--policy", "ma-1", "--exact", "--out", "runs/other").status == 0
    for words in (["runs"], ["runs/other", record], ["runs/other", "runs/scan/record.json"]):
        done = numatwin("report", *words, "--out", f"{len(words)}.html")
        assert (done.status, done.err, done.out) == (0, "", f"{len(words)}.html\n")
    one, two = (Path(f"{k}.html").read_text(encoding="utf-8") for k in (1, 2))
    assert one == two
    assert "ma-1" in one


@pytest.mark.parametrize("name", ["report.txt", "report", "a.html/report"])
def test_only_html_is_written(refused: Refused, record: str, name: str) -> None:
    line = refused("report", record, "--out", name)
    assert f"--out: wrong kind of file: found '{name}', expected the extension .html" in line


def test_what_is_no_record(refused: Refused, record: str) -> None:
    Path("empty").mkdir()
    assert "empty: not a record: no record.json in it" in refused("report", record, "empty")
