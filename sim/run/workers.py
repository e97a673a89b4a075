"""Worker processes on this machine (joblib's loky), which end with the process that started them.

Ctrl-C is for the process that a user sees alone: workers are born deaf to it. They look whether
their marker is still there, and stop at the next occasion once it is gone.
"""

import contextlib
import fcntl
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from joblib.externals.loky import get_reusable_executor

SEMAPHORES = Path("/dev/shm")
IDLE_S = 30.0  # how long workers wait for the next run
GRACE_S = 5.0  # how long a worker may take to see that it shall stop
PARENT_LOOK_S = 0.5  # how often a worker looks whether its parent is still there


class Stopped(Exception):
    """Nobody waits for this work any more."""


class Workers:
    """Takes work; ``marker``: the folder that exists as long as anybody waits for it."""

    def __init__(self, executor: Any, marker: str) -> None:
        self._executor, self.marker = executor, marker
        self._asked: set[Future[Any]] = set()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """The future of a call; function and arguments must be picklable."""
        future: Future[Any] = self._executor.submit(function, *arguments)
        self._asked.add(future)
        future.add_done_callback(self._asked.discard)
        return future

    def stop(self) -> None:
        """Tells workers to stop at the next occasion."""
        with contextlib.suppress(OSError):
            os.rmdir(self.marker)

    def asked(self) -> list[Future[Any]]:
        """What is not done yet."""
        return list(self._asked)


@contextmanager
def local_workers(count: int) -> Iterator[Workers]:
    """At most ``count`` of them; at the end those that do not stop in time are killed."""
    _remove_abandoned()
    # Its start ends without_interrupts too early (Python before 3.13), so not with the workers'.
    resource_tracker.ensure_running()
    executor = get_reusable_executor(
        max_workers=count, timeout=IDLE_S, initializer=_end_with, initargs=(os.getpid(),)
    )
    workers: Workers | None = None
    try:
        with marked_alive() as folder:
            workers = Workers(executor, folder)
            yield workers
    finally:
        left = workers.asked() if workers is not None else []
        if wait(left, timeout=GRACE_S).not_done:  # such as a user's policy that never returns
            executor.shutdown(wait=True, kill_workers=True)


def _remove_abandoned() -> None:
    """Removes loky's semaphores of processes that were killed before they could."""
    for path in SEMAPHORES.glob("sem.loky-*-*"):
        maker = path.name.split("-")[1]
        with contextlib.suppress(OSError):
            if (
                maker.isdecimal()
                and path.stat().st_uid == os.getuid()
                and not Path("/proc", maker).exists()
            ):
                path.unlink()


def stop_without(marker: str) -> Callable[[float], object]:
    """A progress callback that raises Stopped once the marker is gone."""

    def go_on(_: float) -> None:
        if not os.path.exists(marker):
            raise Stopped

    return go_on


def _end_with(parent: int) -> None:
    """In a worker: ends it once ``parent`` was killed, as it would wait forever to be heard."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_LOOK_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Holds Ctrl-C back, here and in processes and threads that start meanwhile."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# A marker by which other processes see that this one is alive and works on a run: a folder that
# its owner holds a lock on. The lock ends with the process, however that ends, so that a folder
# without a lock is a leftover, which the next marker takes away.
PREFIX = "numatwin-run-"


@contextmanager
def marked_alive() -> Iterator[str]:
    """The path of a folder that exists until the end of the block, or of this process."""
    _clear()
    while True:
        folder = tempfile.mkdtemp(prefix=PREFIX)
        held = _lock(folder)
        # Before it was locked it may have looked like a leftover to others.
        if held is not None and os.path.exists(folder):
            break
        if held is not None:
            os.close(held)
    try:
        yield folder
    finally:
        with contextlib.suppress(OSError):
            os.rmdir(folder)
        os.close(held)


def _clear() -> None:
    """Takes away what processes of this user left that ended before their time."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.lstat().st_uid == os.getuid() and (held := _lock(folder)) is not None:
                try:
                    folder.rmdir()  # an empty one, as markers are
                finally:
                    os.close(held)


def _lock(folder: str | Path) -> int | None:
    """A descriptor that holds the folder's lock; None where another process does."""
    try:
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        return None
    return held
