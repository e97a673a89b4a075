"""Scans that a thread copies ahead for: how they are measured, and predicted from both alone."""

import ctypes
import os
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from numatwin.topologies import build_machine
from numatwin.topologies.measurements import Measurement
from numatwin.validate.crossvalidate.primitives import primitive_rows
from numatwin.validate.measure import copying_ahead, measured_description
from numatwin.validate.measure.copying_ahead import (
    METHODS,
    double_buffered_s,
    dsa_devices,
    dsa_queue,
)
from numatwin.validate.measure.session import measure_pass


@pytest.mark.parametrize(
    ("copies_s", "scan_s", "chunks", "expected_s"),
    [
        # copy   scan              the first copy, what is longer in between, the last scan
        (8.0, 4.0, 4, 2.0 + 3 * 2.0 + 1.0),
        (4.0, 8.0, 4, 1.0 + 3 * 2.0 + 2.0),
        (3.0, 5.0, 1, 8.0),
    ],
)
def test_double_buffering(copies_s: float, scan_s: float, chunks: int, expected_s: float) -> None:
    assert double_buffered_s(copies_s, scan_s, chunks) == pytest.approx(expected_s)


def test_accelerators_are_those_that_linux_shows(tmp_path: Path) -> None:
    assert dsa_devices(tmp_path / "none") == ()
    for name in ("dsa2", "dsa0", "wq0.0", "engine0.1", "iax1"):
        (tmp_path / name).mkdir()
    assert dsa_devices(tmp_path) == ("dsa0", "dsa2")


def test_a_queue_is_one_for_users_that_may_be_written_to(tmp_path: Path) -> None:
    files = tmp_path / "dev"
    files.mkdir()
    # name     state       type      has a file
    queues = {
        "wq0.0": ("enabled", "kernel", True),
        "wq0.1": ("disabled", "user", True),
        "wq0.2": ("enabled", "user", False),
        "wq1.0": ("enabled", "user", True),
    }
    for name, (state, kind, has_file) in queues.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "state").write_text(f"{state}\n")
        (tmp_path / name / "type").write_text(f"{kind}\n")
        if has_file:
            (files / name).touch()
    assert dsa_queue(tmp_path, files) == files / "wq1.0"
    assert dsa_queue(tmp_path / "none", files) is None


@pytest.fixture
def played_queue(tmp_path: Path) -> Iterator[Path]:
    """A device behind a pipe: copies what descriptors say (linux/idxd.h), and says so."""
    queue = tmp_path / "wq0.0"
    os.mkfifo(queue)
    device = os.open(queue, os.O_RDWR)

    def plays() -> None:
        while (asked := struct.unpack("<IIQQQI28x", os.read(device, 64)))[1]:
            _, operation, completion, source, target, size = asked
            assert operation >> 24 == 3  # a copy of memory
            ctypes.memmove(target, source, size)
            ctypes.c_uint8.from_address(completion).value = 1

    player = threading.Thread(target=plays)
    player.start()
    yield queue
    os.write(device, bytes(64))
    player.join()
    os.close(device)


def test_an_accelerator_copies_where_it_may_be_used(
    played_queue: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying_ahead, "dsa_devices", lambda: ("dsa0",))
    monkeypatch.setattr(copying_ahead, "dsa_queue", lambda: played_queue)
    monkeypatch.setattr(copying_ahead, "MEMORY_BYTES_MAX", 1 << 20)
    found = measure_pass(quick=True, only=["buffering"])
    if len(found.layout.starts[0].cores) < 2:
        pytest.skip("one core")
    assert {one.name for one in found.measurements} == set(METHODS)
    (method, *_) = {one.method for one in found.measurements if one.name == "copies-ahead"}
    assert method.startswith("wq0.0, a data streaming accelerator's queue, copies it")
    assert not [warning for warning in found.warnings if "buffering" in warning]


def test_a_thread_copies_where_an_accelerator_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying_ahead, "dsa_queue", lambda: tmp_path / "wq0.0")
    monkeypatch.setattr(copying_ahead, "MEMORY_BYTES_MAX", 1 << 20)
    found = measure_pass(quick=True, only=["buffering"])
    if len(found.layout.starts[0].cores) < 2:
        pytest.skip("one core")
    assert {one.name for one in found.measurements} == set(METHODS)
    (warning,) = [warning for warning in found.warnings if "buffering" in warning]
    assert "wq0.0: No such file or directory; a thread copies instead" in warning


def test_each_measured_scan_is_predicted_from_both_alone() -> None:
    found = measure_pass(quick=True, only=["latency", "bandwidth", "buffering"])
    if len(found.layout.starts[0].cores) < 2:
        pytest.skip("one core: nobody copies while the other scans")
    by_place: dict[str, dict[str, Measurement]] = {}
    for one in found.measurements:
        if one.name in METHODS:
            by_place.setdefault(str(one.parameters.place), {})[one.name] = one
    assert set(by_place) == {"cache", "memory"}
    assert all(set(names) == set(METHODS) for names in by_place.values())
    machine = build_machine(measured_description(found))
    rows = [row for row in primitive_rows(machine) if row.metric == "copied-scan"]
    assert len(rows) == len(by_place)
    for row in rows:
        place = "cache" if "place cache" in row.scenario else "memory"
        alone = [
            by_place[place][name].value.value * 1e9 for name in ("copies-ahead", "cached-scan")
        ]
        # As long as the longer of both at least, and not longer than one after the other.
        assert max(alone) <= row.predicted.value * 1.000001 <= sum(alone) * 1.000001
        assert row.measured.value > 0
