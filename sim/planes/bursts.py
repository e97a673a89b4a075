"""Waits of bursts: what a hand-over moves goes over links in one piece, behind those of others."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..machine.costs import LINK_LOAD_MAX, CostModel
from .rates import Loads

Floats = npt.NDArray[np.float64]

# Control messages have a channel of their own on every link and go first; what is left is for data,
# at least this part where there are any.
DATA_PART_MIN = 0.05


class Bursts:
    """Bursts of ``lines`` on average, ``square`` in their mean square, that ``senders`` send, each
    of whom waits for the end of one before the next.

    Batches that come at random, M^[X]/G/1: who comes finds a link at work with the probability of
    its load U, and then waits for what is left of the burst in service and for those before it,
    with a mean of r / (1 - U), r = E[B²] / (2 E[B]); it sees the load that the other N - 1 senders
    make (Bard and Schweitzer, see ``closed_network``). That wait is taken to be exponential.

    A burst is on all links of its way at once, and over on the last of them; meanwhile its sender
    has work of its own for ``alone_s`` (n, n). So what is waited for is the largest of these.
    """

    def __init__(
        self, costs: CostModel, lines: float, square: float, senders: float, alone_s: Floats
    ) -> None:
        self.routes = costs.machine.routes
        self.alone_s, self.others = alone_s, 1.0 - 1.0 / max(senders, 1.0)
        self.sent_s = lines * costs.link_line_s
        self.left_s = 0.5 * square / lines * costs.link_line_s

    def waits_s(self, loads: Loads, together: float, fetched: float) -> Floats:
        """(n, n) how much longer than ``alone_s`` a burst from i to j takes, of which so much is
        ``fetched`` from j before, where a link gets ``together`` times a burst at once (in
        E[B²] / E[B]).
        """
        part = np.maximum(1.0 - loads.control, DATA_PART_MIN)
        load = np.minimum((loads.links - loads.control) / part, LINK_LOAD_MAX)
        load = self.others * np.maximum(load, 0.0)
        found_s = together * self.left_s / (part * (1.0 - load))
        # The links of a way as if all had the same mean wait; the slowest one carries a burst last.
        routes = self.routes
        likely, sent_s = routes.route_sums(load), routes.route_maxima(self.sent_s / part)
        # Nobody waits on the way to oneself.
        mean_s = (routes.route_sums(load * found_s) + 1e-300) / (likely + 1e-300)
        least_s = np.maximum(self.alone_s, sent_s)
        there = likely * np.exp((sent_s - least_s) / mean_s)
        back = likely.T * np.exp((fetched * sent_s.T - least_s) / mean_s.T)
        # Of links that are late then, a Poisson number, the last one's wait beyond ``least_s`` is
        # the integral of (1 - exp(-z)) / z from 0 to their mean number, near z / (1 + z/4).
        late_s = (there * mean_s + back * mean_s.T) / (1.0 + 0.25 * (there + back))
        found: Floats = least_s - self.alone_s + late_s
        return found
