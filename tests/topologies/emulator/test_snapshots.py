"""Guests that are kept when they are ready: the next one begins there."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from emulator_needed import needs_emulator

from numatwin.topologies import load_machine
from numatwin.topologies.emulator import GuestMachine, guest_machine, run_in_guest, snapshots
from numatwin.topologies.emulator import guest as guests
from numatwin.topologies.emulator.counting import run_counted

MIB = 1 << 20


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(snapshots, "cache_folder", lambda: tmp_path)
    return tmp_path / "ready"


def small_guest() -> GuestMachine:
    """One node, of 65,536 pages."""
    machine = load_machine("opteron-4n")
    return guest_machine(machine, nodes=1, scale=1 / 128, memory_bytes=256 * MIB)


@needs_emulator
@pytest.mark.sweep
def test_the_second_guest_begins_where_the_first_was_ready(own_cache: Path) -> None:
    guest = guest_machine(
        load_machine("opteron-4n"), nodes=2, scale=1 / 128, memory_bytes=256 * MIB
    )
    command = ["sh", "-c", "cat /proc/sys/kernel/random/boot_id; date +%s; nproc; ls /usr | wc -l"]
    first = run_in_guest(guest, command, time_limit_s=300)
    (kept,) = own_cache.glob("*.guest")
    second = run_in_guest(guest, command, time_limit_s=300)
    assert second.boot_s < first.boot_s / 2
    found, again = first.output.split(), second.output.split()
    assert found[2:] == again[2:]
    assert int(again[1]) >= int(found[1])
    # Its plugin counts as in a guest that has booted.
    counted = run_counted(guest, ["true"], time_limit_s=300)
    assert counted.traffic.whole.accesses.sum() > 0

    kept.write_bytes(kept.read_bytes()[: 1 << 16])
    third = run_in_guest(guest, command, time_limit_s=300)
    assert third.status == 0
    assert third.output.split()[2:] == found[2:]
    assert kept.stat().st_size > 1 << 16


@needs_emulator
def test_room_is_made_while_a_guest_begins(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another session removes what was kept before QEMU reads it; and a file may hold nothing."""
    guest = small_guest()
    run_in_guest(guest, ["true"], time_limit_s=300)
    (kept,) = own_cache.glob("*.guest")
    begin = subprocess.Popen

    def after_removal(*words: Any, **options: Any) -> Any:
        kept.unlink()
        return begin(*words, **options)

    with monkeypatch.context() as removed:
        removed.setattr(subprocess, "Popen", after_removal)
        assert run_in_guest(guest, ["true"], time_limit_s=300).status == 0
    assert not kept.exists()  # it has not booted again: it would have been kept
    kept.write_bytes(b"")
    monkeypatch.setattr(guests, "RESUME_LIMIT_S", 1.0)
    assert run_in_guest(guest, ["true"], time_limit_s=300).status == 0
    assert kept.stat().st_size > MIB


@needs_emulator
@pytest.mark.parametrize("hang", [1, 2])
def test_a_guest_that_hangs_as_it_boots_is_started_once_more(
    monkeypatch: pytest.MonkeyPatch, hang: int
) -> None:
    begin, begun = subprocess.Popen, 0

    def stopped_at_first(words: list[str], **options: Any) -> Any:
        nonlocal begun
        begun += 1
        monkeypatch.setattr(guests, "BOOT_LIMIT_S", 0.1 if begun <= hang else 60.0)
        return begin([*words, *(["-S"] if begun <= hang else [])], **options)

    monkeypatch.setattr(subprocess, "Popen", stopped_at_first)
    monkeypatch.setattr(guests, "BOOT_LIMIT_PER_PROCESSOR_S", 0.0)
    if hang == 1:
        assert run_in_guest(small_guest(), ["true"], time_limit_s=300).status == 0
    else:
        with pytest.raises(guests.GuestFailure, match=r"did not start within \d+ s"):
            run_in_guest(small_guest(), ["true"], time_limit_s=300)
    assert begun == 2


@needs_emulator
def test_a_guest_that_would_take_all_the_room_is_not_kept(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 64 bytes for each of 65,536 pages.
    guest = small_guest()
    monkeypatch.setattr(guests, "KEPT_BYTES", 65_535 * 64)
    assert run_in_guest(guest, ["true"], time_limit_s=300).status == 0
    assert not list(own_cache.iterdir())


def test_the_oldest_give_way(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    #   a: used first, b, c: used last; 300 bytes in all, room for 250 with 100 more
    monkeypatch.setattr(snapshots, "KEPT_BYTES", 250)
    own_cache.mkdir()
    for age, name in enumerate("abc"):
        file = own_cache / f"{name}.guest"
        file.write_bytes(bytes(100))
        os.utime(file, (1e9 + age, 1e9 + age))
    (own_cache / "killed.7.part").write_bytes(b"")
    os.utime(own_cache / "killed.7.part", (1e9, 1e9))
    (own_cache / "under-way.8.part").write_bytes(b"")
    snapshots._make_room(own_cache, 100)
    assert sorted(file.name for file in own_cache.iterdir()) == ["c.guest", "under-way.8.part"]


def test_guests_that_differ_are_kept_apart() -> None:
    one, same, other = (
        snapshots.snapshot_file(words, "/bin/true")
        for words in (["-m", "1"], ["-m", "1"], ["-m", "2"])
    )
    assert one == same != other
