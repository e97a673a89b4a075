"""Waits of bursts: what a hand-over moves goes over links in one piece, behind those of others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..machine.costs import LINK_LOAD_MAX, CostModel
from .rates import Loads

Floats = npt.NDArray[np.float64]

# Control messages have a channel of their own on every link and go first; what is left is for data,
# at least this part where there are any.
DATA_PART_MIN = 0.05

NOBODY = 1e-300  # instead of 0, to divide by


class Bursts:
    """Bursts of ``lines`` on average, ``square`` in their mean square, that ``senders`` send, each
    of whom waits for the end of one before the next.

    Batches that come at random, M^[X]/G/1: who comes finds a link at work with the probability of
    its load U, and then waits for what is left of the burst in service and for those before it,
    with a mean of r / (1 - U), r = E[B²] / (2 E[B]); it sees the load that the other N - 1 senders
    make (Bard and Schweitzer, see ``closed_network``). That wait is taken to be exponential.

    A burst is on all links of its way at once, and over on the last of them; meanwhile its sender
    has work of its own for ``alone_s`` (n, n). So what is waited for is the largest of these. All
    that nodes send to others, in the shares ``target`` (n,), is taken together.
    """

    def __init__(
        self,
        costs: CostModel,
        lines: float,
        square: float,
        senders: float,
        alone_s: Floats,
        target: Floats,
    ) -> None:
        self.routes, self.target = costs.machine.routes, target
        self.others = 1.0 - 1.0 / max(senders, 1.0)
        self.sent_s = lines * costs.link_line_s
        self.left_s = 0.5 * square / lines * costs.link_line_s
        self.away = 1.0 - target
        away = np.where(np.eye(len(target), dtype=bool), 0.0, target)
        self.alone_s = (away * alone_s).sum(axis=1) / np.maximum(self.away, NOBODY)

    def waits_s(self, loads: Loads, together: float, fetched: float) -> Floats:
        """(n,) how much longer than its own work a burst of each node takes on average, of which so
        much is ``fetched`` from the target before, where a link gets ``together`` times a burst at
        once (in E[B²] / E[B]).
        """
        part = np.maximum(1.0 - loads.control, DATA_PART_MIN)
        load = np.minimum((loads.links - loads.control) / part, LINK_LOAD_MAX)
        load = self.others * np.maximum(load, 0.0)
        wait_s = load * (together * self.left_s) / (part * (1.0 - load))
        # On each way, links that a burst finds at work, their waits, and how long it takes those
        # where it waits.
        sums, target = self.routes.route_sums, self.target
        likely, waits_s, sent_s = sums(load), sums(wait_s), sums(wait_s * self.sent_s / part)
        ways = (
            (likely @ target, waits_s @ target, sent_s @ target, 1.0),
            (
                target @ likely,
                target @ waits_s,
                target @ sent_s,
                fetched,
            ),
        )
        return self._late_s(ways)

    def _late_s(self, ways: Sequence[tuple[Floats, Floats, Floats, float]]) -> Floats:
        sent_s = [part * s / np.maximum(w, NOBODY) for _, w, s, part in ways]
        least_s = np.maximum(self.alone_s, np.maximum(*sent_s))
        late, late_s = np.zeros((2, len(least_s)))
        for (likely, waits_s, _, _), each_s in zip(ways, sent_s, strict=True):
            mean_s = waits_s / np.maximum(likely, NOBODY) + NOBODY
            more = likely * np.exp((each_s - least_s) / mean_s)
            late, late_s = late + more, late_s + more * mean_s
        # Of links that are late then, a Poisson number, the last one's wait beyond ``least_s`` is
        # the integral of (1 - exp(-z)) / z from 0 to their mean number, near z / (1 + z/4).
        found: Floats = self.away * (least_s - self.alone_s) + late_s / (
            1.0 + 0.25 * late / np.maximum(self.away, NOBODY)
        )
        return found
