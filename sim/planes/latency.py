"""Latencies between nodes under load, without a matrix for each iteration where sums will do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Latency:
    """Latency of a line that node i fetches from home j: idle, plus the wait at j's memory, plus
    the waits of data on links from j to i. Requests have a channel of their own and do not wait.

    ``idle_s``, ``idle_handed_s`` (n, n): from memory, and from a core of j that hands it over;
    ``memory_s`` (n,): waits at controllers; ``links_s`` (n, n): waits on the way from i to j, None
    where nobody waits.
    """

    idle_s: Floats
    idle_handed_s: Floats
    memory_s: Floats
    links_s: Floats | None

    def read_s(self, lines: Floats) -> Floats:
        """(n,) latency of all ``lines`` (n, n) that each node reads, one after the other."""
        total = np.einsum("ij,ij->i", lines, self.idle_s) + lines @ self.memory_s
        if self.links_s is not None:
            total += np.einsum("ij,ji->i", lines, self.links_s)
        return np.asarray(total)

    def streamed_s(self, lines: Floats, slots: Floats, line_max_s: Floats) -> Floats:
        """(n,) time that a core of each node needs for all ``lines`` (n, n), with ``slots`` (n,)
        under way, but from no home longer than ``line_max_s`` (n, n) a line.
        """
        each = self.idle_s + self.memory_s[None, :]
        if self.links_s is not None:
            each += self.links_s.T
        each /= slots[:, None]
        return np.asarray(np.einsum("ij,ij->i", lines, np.minimum(each, line_max_s)))

    def handed_s(self, shares: Floats) -> Floats:
        """(n,) mean latency of a line that each node gets from others, in ``shares`` (n,)."""
        total = self.idle_handed_s @ shares
        if self.links_s is not None:
            total += shares @ self.links_s
        return np.asarray(total)

    def pairs_s(self, initiator: Ints, home: Ints) -> Floats:
        """(T,) latency of a line from the memory of each ``home`` (T,)."""
        total = self.idle_s[initiator, home] + self.memory_s[home]
        if self.links_s is not None:
            total += self.links_s[home, initiator]
        return np.asarray(total)
