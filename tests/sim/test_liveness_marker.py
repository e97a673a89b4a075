"""Markers: there as long as their process is, and taken away by the next one after that."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from numatwin.sim.run.workers import PREFIX, marked_alive

CHILD = """
from numatwin.sim.run.workers import marked_alive
with marked_alive() as folder:
    print(folder, flush=True)
    input()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def child() -> tuple[subprocess.Popen[str], Path]:
    """A process that has put up a marker."""
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_it_is_there_within_the_block(temporary: Path) -> None:
    with marked_alive() as first, marked_alive() as second:
        assert first != second
        assert all(os.path.isdir(folder) for folder in (first, second))
        assert Path(first).parent == temporary
    assert not list(temporary.iterdir())


def test_that_of_a_killed_process_is_taken_away() -> None:
    process, left = child()
    with marked_alive():
        assert left.is_dir()  # its process lives
    process.kill()
    process.communicate()
    assert left.is_dir()
    with marked_alive():
        assert not left.exists()


def test_what_is_no_marker_stays(temporary: Path) -> None:
    others = [temporary / "numatwin-mine", temporary / f"{PREFIX}kept"]
    for folder in others:
        folder.mkdir()
    (others[1] / "file").write_text("mine")
    with marked_alive():
        pass
    assert all(folder.is_dir() for folder in others)
