"""Small runs of both commit protocols on this host, and what they may have left behind."""

import atexit
import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numatwin.engine_native.systems.commits.cluster import CommitCluster
from numatwin.sim.kernel.streams import stream_key
from numatwin.sim.systems.commits.history import Row

ROWS = 4_000_000  # that each role may keep: some seconds on the fastest of hosts


def remove_own(process: int, folder: str) -> None:
    """Not at the end of one that was forked."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


# Where runs of this process, and of those that it starts, have their folders: what a test beside it
# does is not seen here.
if "UCX_POSIX_DIR" not in os.environ:
    os.environ["UCX_POSIX_DIR"] = tempfile.mkdtemp(prefix="tests-of-numatwin-", dir="/dev/shm")
    atexit.register(remove_own, os.getpid(), os.environ["UCX_POSIX_DIR"])
SHARED_MEMORY = Path(os.environ["UCX_POSIX_DIR"])
GUARD = "numatwin-guard"
LOOK_S = 0.005
LONGEST_S = 300.0  # on the slowest of hosts


def small_run(clients: int = 2, **more: Any) -> dict[str, Any]:
    """Two storage servers and a timestamp server; records few enough for conflicts."""
    streams: list[int] = []
    for client in range(clients):
        for name in ("keys", "think"):
            streams += stream_key(1, 1, f"client {client} {name}")
    settings: dict[str, Any] = {
        "clients": clients, "nodes": 3, "storage": [0, 1], "managers": [2], "timestamps": 2,
        "records": 400, "record_bytes": 256, "insert_ring": 16, "timestamp_bits": 6_000,
        "versions": 2, "streams": streams, "crowded": True,
    }  # fmt: skip
    return settings | more


def played(
    settings: dict[str, Any], transport: str, commits: int, longest_s: float = LONGEST_S
) -> tuple[dict[str, Any], list[Row]]:
    """Counts and trace of a run of so many commits, or so long."""
    with CommitCluster(settings | {"trace_rows": ROWS}, transport) as cluster:
        cluster.start()
        until(lambda: cluster.board.counts()["commits"] >= commits, cluster.check, longest_s)
        cluster.stop()
        return cluster.board.counts(), [tuple(row) for row in cluster.board.trace().tolist()]


def until(
    done: Callable[[], bool],
    check: Callable[[], object] = lambda: None,
    longest_s: float = LONGEST_S,
) -> bool:
    """Waits; whether it came to pass in time: so many looks, as on a busy host, or one that is
    stopped meanwhile, who looks is late too."""
    for _ in range(round(longest_s / LOOK_S)):
        if done():
            return True
        check()
        time.sleep(LOOK_S)
    return done()


def environment() -> dict[str, str]:
    """Of processes that shall have a folder for segments of their own: without the one that the
    engine told UCX of, past Python, where a test used it in this process."""
    return dict(os.environ)


def is_running(pid: int) -> bool:
    """Whether that process is there and no zombie."""
    return _state(pid) not in ("", "Z")


def is_stopped(pid: int) -> bool:
    """Whether a signal has stopped that process."""
    return _state(pid) == "T"


def _state(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[0]


def segments() -> set[str]:
    """What is left of shared memory: POSIX segments that have a name, folders for these that no
    living process holds (fabric/segment_folder.hpp), SysV segments that this user owns and this
    process or a dead one made; those of a run that this process plays meanwhile are none."""
    found = {f"posix {path}" for path in SHARED_MEMORY.parent.glob("ucx*")}
    found |= {f"posix {path}" for path in SHARED_MEMORY.glob("ucx*")}
    found |= {f"folder {path.name}" for path in SHARED_MEMORY.glob("numatwin-*") if _is_left(path)}
    lines = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    own = [line.split() for line in lines]
    return found | {
        f"sysv {fields[1]}"
        for fields in own
        if int(fields[7]) == os.getuid()
        and (int(fields[4]) == os.getpid() or not is_running(int(fields[4])))
    }


def _is_left(folder: Path) -> bool:
    try:
        lock = os.open(folder, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return folder.exists()


def folder_of(process: int) -> Path | None:
    """Where the segments of that process, or of those that it forks, have their names."""
    return next((note.parent for note in SHARED_MEMORY.glob(f"numatwin-*/{process}")), None)


def children_of(pid: int) -> list[int]:
    """Its children, as the kernel tells them, but for the guard of its segments."""
    return [child for child, name in _named_children_of(pid) if name != GUARD]


def guard_of(pid: int) -> int:
    """Of its children the one that removes its segments once all others have ended. Waits until it
    is known by its name: on a busy host others may begin before it."""
    found: list[int] = []

    def named() -> bool:
        found[:] = [child for child, name in _named_children_of(pid) if name == GUARD]
        return bool(found)

    assert until(named)
    return found[0]


def _named_children_of(pid: int) -> list[tuple[int, str]]:
    command = ["ps", "-o", "pid=,comm=", "--ppid", str(pid)]
    lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    return [(int(line.split()[0]), line.split()[1]) for line in lines]
