"""Shared memory of a run is gone whatever is killed, and when: also while UCX makes a segment."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("numatwin.engine_native._engine", reason="needs libnuma-dev")

import commit_runs
from commit_runs import (
    LONGEST_S,
    children_of,
    environment,
    folder_of,
    guard_of,
    is_running,
    is_stopped,
    segments,
    small_run,
    until,
)
from known import known

from numatwin.engine_native import _engine
from numatwin.engine_native.systems.commits.cluster import CommitCluster

pytestmark = pytest.mark.skipif(not _engine.HAS_UCX, reason="needs libucx-dev")

# Two servers of 150 MB: UCX takes some ten milliseconds to fill a segment, which has a name
# meanwhile.
ASK = """
import sys, time
sys.path.insert(0, sys.argv[1])
from commit_runs import small_run
from numatwin.engine_native.systems.commits.cluster import CommitCluster
with CommitCluster(small_run(1, records=1_200_000, versions=1), sys.argv[2]) as run:
    print(run.parent_pid, flush=True)
    run.start()
    time.sleep(600)
"""


@contextlib.contextmanager
def asking(transport: str) -> Iterator[tuple[int, int]]:
    """Process ids of who asks for a run, and of the parent of all its processes."""
    folder = os.path.dirname(commit_runs.__file__)
    command = [sys.executable, "-c", ASK, folder, transport]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment()
    ) as asker:
        assert asker.stdout is not None
        try:
            yield asker.pid, int(asker.stdout.readline())
        finally:
            asker.kill()


@contextlib.contextmanager
def stopped_at_the_worst_moment() -> Iterator[tuple[int, int, Path]]:
    """Who asks for a run, the parent of its processes, and a segment that has a name, and whose
    maker is stopped before it can take it away. Asks again where a busy host left no time to see
    one."""
    for _ in range(5):
        with asking("shm") as (asker, parent):
            segment = held_segment(parent)
            if segment is not None:
                yield asker, parent, segment
                return
    pytest.fail("no segment was seen")


def held_segment(parent: int) -> Path | None:
    assert until(lambda: folder_of(parent) is not None)
    folder = known(folder_of(parent))
    late = time.monotonic() + LONGEST_S
    while time.monotonic() < late:  # without a pause: the moment is short
        names = os.listdir(folder)
        if not any(name.startswith("ucx") for name in names):
            continue
        others = [int(name) for name in names if name.isdigit() and int(name) != parent]
        for process in others:
            os.kill(process, signal.SIGSTOP)
        assert until(lambda stopping=others: all(map(is_stopped, stopping)))  # type: ignore[misc]
        # One that noted itself meanwhile goes on, and may be who made it.
        came = {name for name in os.listdir(folder) if name.isdigit()} - set(names)
        if not came and (held := [*folder.glob("ucx*")]):
            return held[0]
        for process in others:  # too late: on to the next one
            os.kill(process, signal.SIGCONT)
    return None


def send(process: int, sent: signal.Signals) -> None:
    """To who may be gone already, as one that was killed takes others with it."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, sent)


@pytest.mark.parametrize("killed", ["server", "parent", "asker", "parent and asker", "all"])
def test_nothing_is_left_of_a_segment_half_made(killed: str) -> None:
    before = segments()
    with stopped_at_the_worst_moment() as (asker, parent, segment):
        guard, servers = guard_of(parent), children_of(parent)  # in this order: see guard_of
        assert segment.exists()
        assert segment.parent.exists()
        victims = {
            "server": servers[:1],
            "parent": [parent],
            "asker": [asker],
            "parent and asker": [parent, asker],
            "all": [parent, asker, *servers],
        }[killed]
        for victim in victims:
            send(victim, signal.SIGKILL)
        if killed == "server":  # the others were only stopped for this test
            for server in servers[1:]:
                send(server, signal.SIGCONT)
        started = [parent, guard, *servers]
        assert until(lambda: not any(map(is_running, started))), started
        assert until(lambda: not segment.parent.exists())
    assert until(lambda: segments() <= before), segments() - before


def test_what_a_killed_guard_leaves_goes_with_the_next_run() -> None:
    with stopped_at_the_worst_moment() as (asker, parent, segment):
        guard = guard_of(parent)
        started = [parent, guard, *children_of(parent)]
        for victim in guard, parent, asker:
            os.kill(victim, signal.SIGKILL)
    assert until(lambda: not any(map(is_running, started))), started
    # It is there until some run begins: a test beside this one may begin one any moment. And while
    # that test looks whether it is left, it is passed over.
    for _ in range(3):
        with CommitCluster(small_run(1), "shm") as run:
            run.start()
            gone = until(lambda: not segment.parent.exists(), longest_s=60.0)
            run.stop()
        if gone:
            return
    pytest.fail("it is still there")


def test_a_folder_in_use_stays() -> None:
    with CommitCluster(small_run(1), "shm") as first:
        first.start()
        folder = known(folder_of(first.parent_pid or 0))
        with CommitCluster(small_run(1), "shm") as second:
            second.start()
            assert folder.exists()
            other = folder_of(second.parent_pid or 0)
            assert other not in (None, folder)
            second.stop()
        assert folder.exists()
        first.stop()
    assert until(lambda: not folder.exists())


def test_a_sysv_segment_of_the_dead_is_removed() -> None:
    """Made, and its maker killed before it could attach it: a window of two system calls."""
    libc = ctypes.CDLL(None, use_errno=True)
    with CommitCluster(small_run(1), "sysv") as run:
        run.start()
        folder = known(folder_of(run.parent_pid or 0))
        reading, writing = os.pipe()
        maker = os.fork()
        if maker == 0:  # as if it were one of the run's processes, which note themselves first
            try:
                (folder / str(os.getpid())).touch()
                made = libc.shmget(0, 4096, 0o600 | 0o1000)  # IPC_PRIVATE, IPC_CREAT
                os.write(writing, str(made).encode())
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as told:
            left = f"sysv {told.read()}"
        other = libc.shmget(0, 4096, 0o600 | 0o1000)  # of a process that is none of them
        try:
            os.waitpid(maker, 0)
            assert segments() >= {left, f"sysv {other}"}
            run.stop()
            run.close()
            assert until(lambda: left not in segments()), segments()
            assert f"sysv {other}" in segments()
        finally:
            libc.shmctl(other, 0, None)  # IPC_RMID
