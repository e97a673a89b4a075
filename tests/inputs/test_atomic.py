"""Files appear whole or not at all."""

import os
from pathlib import Path

import pytest
from refusals import told_by

from numatwin.inputs import (
    InputError,
    check_folder,
    check_writable,
    write_bytes_atomically,
    write_text_atomically,
)


def test_written_whole_with_the_mode_of_the_earlier_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    path.chmod(0o640)
    write_text_atomically(path, "new µ")
    assert path.read_bytes() == "new µ".encode()
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["x"]


def test_a_link_stays(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_bytes_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


@pytest.mark.parametrize("name", [".", "none/x", "a\0b"])
def test_refused(tmp_path: Path, name: str) -> None:
    assert "cannot be written" in told_by(write_text_atomically, f"{tmp_path}/{name}", "x")
    assert os.listdir(tmp_path) == []


def test_a_failure_midway_leaves_the_earlier_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    path.write_text("old")

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="cannot be written: No space left on device"):
        write_text_atomically(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x"]


def test_what_has_no_bytes_is_refused(tmp_path: Path) -> None:
    assert "cannot be written" in told_by(write_text_atomically, tmp_path / "x", "\ud800")
    assert os.listdir(tmp_path) == []


def test_whether_it_can_be_written_is_known_before(tmp_path: Path) -> None:
    check_writable(tmp_path / "new.yaml")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "old.yaml").write_text("kept")
    check_writable(tmp_path / "old.yaml")
    assert (tmp_path / "old.yaml").read_text() == "kept"
    for path, message in (
        (tmp_path, "it is a folder"),
        (tmp_path / "none" / "new.yaml", "No such file or directory"),
        (tmp_path / "old.yaml" / "new.yaml", "Not a directory"),
        (f"{tmp_path}/a\0b", "cannot be written"),
    ):
        assert message in told_by(check_writable, path)


def test_whether_a_folder_can_be_written_is_known_before(tmp_path: Path) -> None:
    check_folder(tmp_path)
    check_folder(tmp_path / "new" / "newer")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("kept")
    for path, message in (
        (tmp_path / "file", "not a folder"),
        (tmp_path / "file" / "new", "not a folder"),
        (f"{tmp_path}/a\0b", "cannot be written"),
        ("/proc/new", "cannot be written"),
    ):
        assert message in told_by(check_folder, path)


def test_a_pipe_behind_a_link_stays(tmp_path: Path) -> None:
    """So would a device, such as /dev/full, which root may replace."""
    pipe, link = tmp_path / "pipe", tmp_path / "out.yaml"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for write in (check_writable, lambda path: write_text_atomically(path, "text")):
        assert "expected a file, found a device or pipe" in told_by(write, link)
    assert pipe.is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.yaml", "pipe"]
