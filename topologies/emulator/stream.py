"""A stream of a command's output, which ends with a mark."""

from __future__ import annotations

from collections.abc import Callable

Sink = Callable[[bytes], object]


class Stream:
    """Hands to ``sink`` what comes before the ``mark``; what follows it is dropped."""

    def __init__(self, sink: Sink, mark: bytes) -> None:
        self._sink, self._mark = sink, mark
        self._held = b""
        self.ended = False

    def take(self, piece: bytes) -> None:
        """Takes the next piece; holds back what may be the beginning of the mark."""
        if self.ended:
            return
        data = self._held + piece
        before, mark, _ = data.partition(self._mark)
        if mark:
            self.ended = True
        else:
            longest = min(len(data), len(self._mark) - 1)
            held = next(k for k in range(longest, -1, -1) if data.endswith(self._mark[:k]))
            before, self._held = data[: len(data) - held], data[len(data) - held :]
        if before:
            self._sink(before)
