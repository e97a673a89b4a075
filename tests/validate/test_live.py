"""Processes of this host, observed and steered: what is seen is so, and masks come back."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from refusals import told_by

from numatwin.inputs import InputError
from numatwin.sim.control.family import ChosenPolicy
from numatwin.sim.run.record import load_record
from numatwin.sim.systems.tasks.commands import AllocateCore, CoresObservation, ReleaseCore
from numatwin.sim.systems.tasks.cores import CORES
from numatwin.validate.live import left_behind, masks, observe
from numatwin.validate.live.process import LiveProcess
from numatwin.validate.systems.steering import Steered, give_back, steer

BUSY = """
import threading, sys
data = bytearray(64 << 20)
data[::4096] = b"x" * len(data[::4096])
def spin():
    while True: sum(range(1000))
for _ in range(2): threading.Thread(target=spin, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""
CPUS = sorted(os.sched_getaffinity(0))
TWO_CPUS = pytest.mark.skipif(len(CPUS) < 2, reason="one CPU: no core to release")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def busy() -> Iterator[subprocess.Popen[bytes]]:
    """Two threads that compute, and 64 MiB."""
    with subprocess.Popen(
        [sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process
        process.kill()


def masks_of(pid: int) -> list[list[int]]:
    return [sorted(os.sched_getaffinity(int(t))) for t in os.listdir(f"/proc/{pid}/task")]


def test_pages_threads_and_what_was_not_seen(busy: subprocess.Popen[bytes], tmp_path: Path) -> None:
    record = observe(busy.pid, 0.3)
    seen = record.model
    assert seen["threads"] == 3
    assert sum(seen["run_s"].values()) > 0
    assert sum(size for kind in seen["pages_bytes"].values() for size in kind.values()) > 64 << 20
    assert all(0 <= use.utilisation <= 1 for use in record.resources)
    assert record.horizon_s >= 0.3
    for part, rate in record.bandwidth_Bps.items():
        assert (rate is None) == any(f"traffic of {part}" in line for line in record.warnings)
    assert json.loads(json.dumps(load_record(record.save(tmp_path / "seen")).model)) == json.loads(
        json.dumps(seen)
    )


def test_a_process_that_ends_is_seen_until_then(busy: subprocess.Popen[bytes]) -> None:
    record = observe(busy.pid, 3600.0, lambda part: busy.kill())
    assert record.warnings[0].startswith(f"process {busy.pid} ended after")


def test_what_proc_says(tmp_path: Path) -> None:
    """Of two nodes, with huge pages, and a name with brackets; a kernel without schedstat."""
    folder = tmp_path / "7"
    (folder / "task" / "7").mkdir(parents=True)
    rest = ["S"] + ["0"] * 10 + ["300", "100"] + ["0"] * 6 + ["4242"] + ["0"] * 16 + ["5"]
    for stat in (folder / "stat", folder / "task" / "7" / "stat"):
        stat.write_text(f"7 (a) b (c)) {' '.join(rest)} 0 0\n")
    (folder / "comm").write_text("a) b (c)\n")
    (folder / "numa_maps").write_text(
        "7f00 default anon=3 dirty=3 N0=1 N1=2 kernelpagesize_kB=4\n"
        "7f01 bind:1 heap anon=2 N1=2 kernelpagesize_kB=2048\n"
        "7f02 default file=/lib/N9=9 mapped=4 N0=4 kernelpagesize_kB=4\n"
        "7f03 default\n"
    )
    process = LiveProcess(7, tmp_path)
    assert process.name == "a) b (c)"
    pages = process.pages()
    assert pages == {"anonymous": {0: 4096, 1: 8192}, "heap": {1: 4 << 20}, "file": {0: 4 * 4096}}
    thread = process.threads()[7]
    assert thread.run_s == 400 / os.sysconf("SC_CLK_TCK")
    assert (thread.wait_s, thread.cpu, thread.moves) == (None, 5, None)
    shutil.rmtree(folder)
    assert not process.alive
    assert process.threads() == {}


class Scripted:
    """Releases the last core, allocates it again, ends as told; keeps what masks were."""

    def __init__(self, pid: int, end: Callable[[], None]) -> None:
        self.pid, self.end, self.seen = pid, end, [masks_of(pid)]
        self.observed: list[CoresObservation] = []

    def decide(self, observation: CoresObservation) -> Sequence[Any]:
        self.seen.append(masks_of(self.pid))
        self.observed.append(observation)
        core = observation.allocated[-1]
        if len(self.observed) == 1:
            return (ReleaseCore(*core),)
        if len(self.observed) == 2:
            self.released = self.observed[0].allocated[-1]
            return (AllocateCore(*self.released),)
        self.end()
        return ()


def steered(policy: Scripted, **options: Any) -> Steered:
    chosen = ChosenPolicy(CORES, "scripted", lambda: policy, 0.01)
    return Steered(policy.pid, None, chosen, said=lambda line: None, **options)


def interrupt() -> None:
    raise KeyboardInterrupt


def fail() -> None:
    raise InputError("the policy failed")


@TWO_CPUS
@pytest.mark.parametrize("end", [interrupt, fail])
def test_cores_are_taken_and_given_back_however_it_ends(
    busy: subprocess.Popen[bytes], end: Callable[[], None]
) -> None:
    policy = Scripted(busy.pid, end)
    if end is fail:
        assert "the policy failed" in told_by(steer, steered(policy))
    else:
        record = steer(steered(policy))
        assert [event.details["action"] for event in record.control_events] == [
            "release",
            "allocate",
        ]
        assert record.control_events[0].details["cores"] == len(policy.observed[1].allocated)
    first, second, third = policy.seen[1:4]
    assert first == third == policy.seen[0]
    assert all(cpus != CPUS and set(cpus) < set(CPUS) for cpus in second)
    assert masks_of(busy.pid) == policy.seen[0]
    assert list(left_behind()) == []


def test_a_dry_run_changes_nothing(busy: subprocess.Popen[bytes]) -> None:
    policy = Scripted(busy.pid, interrupt)
    record = steer(steered(policy, dry=True))
    assert len(record.control_events) == 2
    assert all(seen == policy.seen[0] for seen in policy.seen)


def test_a_process_that_ends_while_it_is_steered(busy: subprocess.Popen[bytes]) -> None:
    policy = Scripted(busy.pid, busy.kill)
    record = steer(steered(policy))
    assert "all of its processes have ended" in record.warnings
    assert list(left_behind()) == []


@TWO_CPUS
def test_who_kills_it_finds_an_offer_to_give_back(busy: subprocess.Popen[bytes]) -> None:
    before = masks_of(busy.pid)
    command = ["cores", "--pid", str(busy.pid), "--policy", "dense", "--period", "50 ms"]
    python = [sys.executable, "-u", "-m", "numatwin"]
    with subprocess.Popen([*python, *command], stdout=subprocess.PIPE) as steering:
        assert steering.stdout is not None
        assert b"release core" in steering.stdout.readline()
        while masks_of(busy.pid) == before:
            assert steering.poll() is None
        assert list(left_behind()) == []  # it still steers
        steering.send_signal(signal.SIGKILL)
    assert masks_of(busy.pid) != before
    assert len(list(left_behind())) == 1
    assert give_back() == [f"process {busy.pid}"]
    assert masks_of(busy.pid) == before
    assert list(left_behind()) == []


def test_a_damaged_note_and_one_of_an_ended_process_go(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "numatwin" / "cores"
    folder.mkdir(parents=True)
    (folder / "999999999-1.json").write_text("{")
    (folder / "999999999-2.json").write_text('{"pid": 999999999, "started": "1", "before": {}}')
    assert list(left_behind()) == []
    assert list(folder.iterdir()) == []


def test_a_control_group(
    busy: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that stands in for one of version 2, whose own list is empty."""
    group = tmp_path / "groups" / "db"
    group.mkdir(parents=True)
    (group / "cpuset.cpus").write_text("\n")
    (group / "cpuset.cpus.effective").write_text(f"{CPUS[0]}\n")
    (group / "cgroup.procs").write_text(f"{busy.pid}\n")
    monkeypatch.setattr(masks, "CGROUPS", tmp_path / "groups")
    found = masks.Cpuset.of("db")
    assert (found.cpus, [one.pid for one in found.processes()]) == ([CPUS[0]], [busy.pid])
    found.set([0, 1, 2, 5])
    assert (group / "cpuset.cpus").read_text() == "0-2,5\n"
    found.give_back()
    assert (group / "cpuset.cpus").read_text() == "\n"
    assert re.search(r"no such control group.*'none'|none", told_by(masks.Cpuset.of, "none"))
    (group / "cpuset.cpus").unlink()
    assert "no cpuset" in told_by(masks.Cpuset.of, "db")
