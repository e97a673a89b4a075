"""A copy engine's contexts, and a thread for which it copies ahead: ``kernel/copy_engine.hpp``.

How long a copy takes is the service's affair, of which the engine is a core (``copy_engines.py``).
"""

from collections import deque

BUFFERS = 2


class CopyEngine:
    """So many copies at a time (``contexts``); further requests wait, first come first served."""

    def __init__(self, contexts: int) -> None:
        if contexts < 1:
            raise ValueError("contexts: expected at least one")
        self.contexts, self.under_way = contexts, 0
        self.waiting: deque[int] = deque()

    def request(self, job: int) -> bool:
        """Whether the copy begins now; else it waits."""
        if self.under_way == self.contexts:
            self.waiting.append(job)
            return False
        self.under_way += 1
        return True

    def end(self) -> int | None:
        """A copy has ended. The job of one that waited and begins now."""
        if self.under_way == 0:
            raise RuntimeError("no copy is under way")
        if self.waiting:
            return self.waiting.popleft()
        self.under_way -= 1
        return None


class DoubleBuffer:
    """Two buffers of a thread: while it works on the chunk in one, the next is copied into the
    other."""

    def __init__(self, chunks: int = 0) -> None:
        self.chunks, self.copied, self.worked = chunks, 0, 0
        self._copying = self._working = False

    def take_copy(self) -> bool:
        """True once for each copy that is due: one at a time, where a buffer is free."""
        if self._copying or self.copied == self.chunks or self.copied - self.worked == BUFFERS:
            return False
        self._copying = True
        return True

    def take_work(self) -> bool:
        """True once for each chunk to work on."""
        if self._working or self.copied == self.worked:
            return False
        self._working = True
        return True

    def end_copy(self) -> None:
        """A chunk is there."""
        self._copying = False
        self.copied += 1

    def end_work(self) -> None:
        """The thread is done with a chunk; its buffer is free."""
        self._working = False
        self.worked += 1

    @property
    def done(self) -> bool:
        """Whether all chunks have been worked on."""
        return self.worked == self.chunks
