"""A run of a commit protocol on this host: its processes (or threads) from start to stop."""

import contextlib
import os
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from ....inputs import InputError
from ..._engine import CommitBoard, CommitRun, Phase, ThreadCommits
from ...engine_process import EngineProcess
from ...transports import THREADS, ucx_settings

START_S, START_S_PER_GB = 60.0, 20.0  # a busy host is given so long to start, and to load
STOP_S = 5.0
CLEAR_UP_S = 3.0  # for the launcher to end its processes, and what they would leave behind
LOOK_S = 0.02


def make_run(settings: Mapping[str, Any], form: Callable[[], CommitRun] = CommitRun) -> CommitRun:
    """The engine's own form of a run; ``form`` is that of a remote engine where one runs it."""
    run = form()
    for name, value in settings.items():
        setattr(run, name, value)
    return run


class CommitCluster:
    """The roles of one run. A context manager: at its end nothing of the run is left.

    ``settings``: fields of ``CommitRun``. With transport ``threads`` all roles are threads of this
    process; else each is a process, under a parent of their own.
    """

    def __init__(self, settings: Mapping[str, Any], transport: str) -> None:
        self.settings = dict(settings) | ucx_settings(transport)
        self.run = make_run(self.settings)
        self.transport = transport
        self._threads: ThreadCommits | None = None
        self._process: EngineProcess | None = None
        if transport == THREADS:
            self._threads = ThreadCommits(self.run)
            self.board = self._threads.board
            self._finalizer = weakref.finalize(self, _close, None, [])
            return
        opened: list[int] = []
        try:
            # A file in memory without a name: it is gone with the last process that has it.
            opened.append(os.memfd_create("numatwin-commits"))
            os.ftruncate(opened[0], self.run.board_bytes)
            self.board = CommitBoard(self.run, opened[0])
            opened += os.pipe()
            file, reading, pipe = opened
            self._process = EngineProcess(
                "launch_commits", self.settings, (file, reading), (file, reading)
            )
        except OSError as failure:
            _close(None, opened)
            raise InputError(f"a run of processes cannot begin: {failure.strerror}") from None
        except BaseException:
            _close(None, opened)
            raise
        os.close(reading)
        self._finalizer = weakref.finalize(self, _close, self._process, [pipe, file])

    def __enter__(self) -> "CommitCluster":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Loads records, connects all, and lets the clients begin. Raises InputError."""
        if self._threads is not None:
            try:
                self._threads.start()
            except RuntimeError as failure:
                raise InputError(str(failure)) from None
            return
        stored = self.run.blocks * self.run.block_bytes * len(self.run.storage)
        longest_s = START_S + START_S_PER_GB * stored / 1e9
        late = time.monotonic() + longest_s
        while not self.board.all_connected:
            self.check()
            if time.monotonic() > late:
                raise InputError(f"the run's processes were not ready within {longest_s:.0f} s")
            time.sleep(0.002)
        self.check()
        self.board.begin()

    def check(self) -> None:
        """Raises InputError where the run failed: a server died, or could not be had."""
        if failure := self.board.failure:
            raise InputError(f"the native run failed: {failure}")
        if self._process is not None and self._process.ended:
            if self.board.phase == Phase.finished:
                return
            raise InputError(f"the run's processes are gone: {self._process.last_words()}")

    def wait_until(self, time_s: float) -> None:
        """Until that time of the run; notices within ``LOOK_S`` what fails meanwhile."""
        while (left_s := time_s - self.board.now_ns * 1e-9) > 0:
            self.check()
            time.sleep(min(left_s, LOOK_S))
        self.check()

    def stop(self) -> None:
        """Clients end the transaction that they are in; then all roles end. Raises InputError."""
        if self._threads is not None:
            self._threads.stop()
            return
        if self.board.phase == Phase.running:
            self.board.phase = Phase.stopping
        late = time.monotonic() + STOP_S
        while not self.board.clients_done and time.monotonic() < late:
            self.check()
            time.sleep(0.001)
        self.board.phase = Phase.finished
        while self._process is not None and not self._process.ended and time.monotonic() < late:
            time.sleep(0.001)

    def close(self) -> None:
        """Ends whatever is left of it."""
        if self._threads is not None:
            self._threads.stop()
        self._finalizer()

    @property
    def parent_pid(self) -> int | None:
        """Of the process that is the parent of all roles."""
        return None if self._process is None else self._process.pid

    def pids(self) -> list[int]:
        """Of each role: clients, then nodes."""
        return [self.board.pid(role) for role in range(self.run.clients + self.run.nodes)]


def _close(process: EngineProcess | None, descriptors: list[int]) -> None:
    """Children before the board: they may still count on it."""
    for descriptor in descriptors[:1]:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    if process is not None:
        process.close(CLEAR_UP_S)
    for descriptor in descriptors[1:]:
        with contextlib.suppress(OSError):
            os.close(descriptor)
