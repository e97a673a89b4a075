"""Threads of the operating system on cores, as ``kernel/os_thread.hpp``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .core import Core, CoreWork, ThreadTime


@dataclass
class Thread:
    """``work`` and times (ps) of the phase under way."""

    core: int
    pinned: bool = False
    work: CoreWork = field(default_factory=CoreWork)
    over: int = 0
    time: ThreadTime = field(default_factory=ThreadTime)


class OsThreads:
    """Which core each thread has now, and what it does there: one phase after the other.

    A thread may be moved at any time: the part of its phase that is left goes on there. Use is
    counted where it was made. ``core_node`` (C,): node of each core; ``core`` (A,): where each
    thread begins.
    """

    def __init__(self, core_node: Sequence[int], core: Sequence[int]) -> None:
        self.core_node = list(core_node)
        self.cores = [Core() for _ in core_node]
        self.ran = [0] * len(self.cores)  # with the phases under way to their ends
        self.threads = [Thread(place) for place in core]
        for place in core:
            self.cores[place].threads += 1

    def core_of(self, thread: int) -> int:
        """Where the thread is now."""
        return self.threads[thread].core

    def node_of(self, thread: int) -> int:
        """The node of that core."""
        return self.core_node[self.core_of(thread)]

    def pin(self, thread: int) -> None:
        """The thread cannot be moved from now on."""
        self.threads[thread].pinned = True

    def begin(self, now: int, thread: int, work: CoreWork) -> int:
        """When a phase is over that the thread begins."""
        t = self.threads[thread]
        end = self.cores[t.core].begin(now, work)
        t.work, t.over = work, end.done
        t.time.begin(now, end.alone, work.held)
        t.time.over = end.done
        self.ran[t.core] += end.done - now
        return end.done

    def extend(self, thread: int, done: int) -> int:
        """The phase under way ends no earlier than ``done``: when it does."""
        t = self.threads[thread]
        if done > t.over:
            self.ran[t.core] += done - t.over
            t.over = t.time.over = done
        return t.over

    def move(self, now: int, thread: int, core: int) -> int:
        """The thread has another core from now on: when its phase ends (now, if there is none).

        Raises ``RuntimeError`` for a pinned thread.
        """
        t = self.threads[thread]
        if t.pinned:
            raise RuntimeError(f"thread {thread} is pinned to its core")
        if core == t.core:
            return max(t.over, now)
        before, t.core = t.core, core
        self.cores[before].threads -= 1
        self.cores[core].threads += 1
        if t.over <= now:
            return now
        left = t.time.left(now)
        self.ran[before] -= t.over - now
        t.time.cut(now)
        self.cores[before].held -= left * t.work.held
        return self.begin(now, thread, CoreWork(*(part * left for part in t.work)))

    def busy(self, core: int, now: int) -> int:
        """How long threads ran on a core, all together, since counting began."""
        ahead = (max(t.over - now, 0) for t in self.threads if t.core == core)
        return self.ran[core] - sum(ahead)

    def held(self, core: int, now: int) -> float:
        """Slot time of misses on a core, since counting began."""
        found = self.cores[core].held
        for t in self.threads:
            if t.core == core:
                found -= t.time.held_left(now)
        return found

    def held_up(self, thread: int, now: int) -> int:
        """Time that a thread was kept waiting, since counting began."""
        return self.threads[thread].time.held_up(now)

    def start_counting(self, now: int) -> None:
        """Forgets what was counted."""
        for core in self.cores:
            core.start_counting(now)
        self.ran = [0] * len(self.cores)
        for t in self.threads:
            t.time.start_counting(now)
            self.ran[t.core] += max(t.over - now, 0)
            self.cores[t.core].held += t.time.held_left(now)
