"""Whether the cores under measurement are just now as fast as they can be: looks before and after.

A hypervisor moves the CPUs of a virtual machine over hardware threads: two of them may share one
core for a second, or one shares its core with another machine's, or they lie in different parts of
the socket. The kernel below sees nothing of it. But whoever shares a core takes of its adders, and
messages between cores tell how far apart they are. A look therefore lets all cores do additions
that do not wait for one another, then pairs of them exchange messages; each figure is held against
what it mostly is at its best.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from ...engine_native._engine import Work
    from .layout import Layout

T = TypeVar("T")
Floats = npt.NDArray[np.float64]
Probe = Callable[[], "Look"]

# A clock's own ups and downs are some percent; a neighbour on the core costs a fifth and more.
LOST_MAX = 0.1
# Messages within one part of a socket differ by less than that.
FARTHER_MAX = 0.3
# Of all looks, where the figure of an undisturbed core is sought: most looks may be disturbed.
BEST_QUANTILE = 0.9
REMEMBERED, LOOKS_FIRST = 1_000, 20
LOOK_WINDOWS, LOOK_WINDOW_NS, LOOK_LIMIT_NS = 3, 200_000, 5_000_000
PAUSE_S = 0.02
FRESH_S = 0.02  # a look as old as that still tells of now
# Parts of a socket lie so many times as far from each other as cores of one of them, and more.
APART_TIMES = 2.0
NEAR_QUANTILE = 1.0 - BEST_QUANTILE
LINES_APART = 4  # a processor may fetch lines in pairs
BLOCK_BYTES, LINE_BYTES = 2 << 20, 64


@dataclass(frozen=True)
class Look:
    """(cores,) additions per nanosecond, (pairs,) nanoseconds of a message within each pair."""

    rates: Floats
    messages_ns: Floats


@dataclass
class Quiet:
    """Takes figures between two looks, again where a look was not calm, while there is patience.

    ``patience_s``: what may still be spent on waiting and on figures taken in vain; ``each_s``: of
    it, for one figure; ``spent_s``: what was.
    """

    probe: Probe
    patience_s: float
    each_s: float
    spent_s: float = 0.0
    looks: int = 0
    calm_looks: int = 0
    _known: deque[Look] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    _calm_until: float = 0.0

    def look(self) -> bool:
        """Whether all cores have all their adders, and none is farther from another than mostly."""
        look = self.probe()
        self._known.append(look)
        rates = np.array([known.rates for known in self._known])
        full_rates = (1.0 - LOST_MAX) * np.quantile(rates, BEST_QUANTILE, axis=0)
        calm = bool((look.rates >= full_rates).all())
        if calm:
            # Threads of one core are closer than cores can be: such looks do not count.
            apart = np.array([known.messages_ns for known in self._known])
            apart = apart[(rates >= full_rates).all(axis=1)]
            near_ns = np.quantile(apart, NEAR_QUANTILE, axis=0)
            calm = bool((look.messages_ns <= (1.0 + FARTHER_MAX) * near_ns).all())
        self.looks += 1
        self.calm_looks += calm
        self._calm_until = time.monotonic() + FRESH_S if calm else 0.0
        return calm

    def take(self, measure: Callable[[], T]) -> tuple[T, bool]:
        """What ``measure`` returns, and whether it was calm before and after."""
        while len(self._known) < LOOKS_FIRST:
            self.look()
        left_s = min(self.each_s, self.patience_s)
        while True:
            begun = time.monotonic()
            calm = self._wait(left_s)
            left_s -= self._spend(begun)
            begun = time.monotonic()
            found = measure()
            if self.look() and calm:
                return found, True
            left_s -= self._spend(begun)
            if left_s <= 0.0:
                return found, False

    def watch(self, measure: Callable[[], T], times: int) -> Iterator[tuple[T, bool]]:
        """What ``measure`` returns so many times, and whether it was calm before and after.

        Unlike ``take`` it chooses no moments: for what tells how restless a host is.
        """
        while len(self._known) < LOOKS_FIRST:
            self.look()
        for _ in range(times):
            calm = self.look()
            found = measure()
            yield found, self.look() and calm

    def _wait(self, limit_s: float) -> bool:
        """Looks until it is calm; False where it takes longer than the limit."""
        until = time.monotonic() + limit_s
        while time.monotonic() >= self._calm_until and not self.look():
            if time.monotonic() > until:
                return False
            time.sleep(PAUSE_S)
        return True

    @property
    def near_ns(self) -> float:
        """What a message between the first two cores takes at best; infinite where that is not
        known."""
        pairs = [known.messages_ns[0] for known in self._known if len(known.messages_ns)]
        return float(np.quantile(pairs, NEAR_QUANTILE)) if pairs else float("inf")

    @property
    def restless(self) -> float:
        """Share of the looks that were not calm."""
        return 1.0 - self.calm_looks / self.looks if self.looks else 0.0

    def _spend(self, begun: float) -> float:
        seconds = time.monotonic() - begun
        self.patience_s -= seconds
        self.spent_s += seconds
        return seconds


def mostly_calm(found: Sequence[tuple[T, bool]]) -> tuple[list[T], bool]:
    """Those that were calm where most were, else all; and whether they were."""
    calm = [one for one, quiet in found if quiet]
    if 2 * len(calm) > len(found):
        return calm, True
    return [one for one, _ in found], False


def core_probe(layout: Layout) -> Probe:
    """Looks at one CPU of each core, and at messages between neighbours in pairs."""
    from ...engine_native._engine import Block, free_additions, ping_pong, run_team

    cores = [cpu for node in layout.starts for cpu in node.cores]
    adders: list[tuple[int, Work]] = [(cpu, free_additions()) for cpu in cores]
    pairs = list(zip(cores[::2], cores[1::2], strict=False))
    bytes_apart = LINES_APART * LINE_BYTES
    block = Block(max(BLOCK_BYTES, len(pairs) * bytes_apart), layout.binding(layout.homes[0]), True)
    talkers: list[tuple[int, Work]] = []
    for at, pair in enumerate(pairs):
        talkers += [
            (cpu, ping_pong(block, at * LINES_APART, cpu == pair[0])) for cpu in pair
        ]  # fmt: skip

    def probe() -> Look:
        amounts, elapsed_ns, _ = run_team(adders, LOOK_WINDOWS, LOOK_WINDOW_NS, LOOK_LIMIT_NS)
        rates = np.median(amounts / elapsed_ns, axis=0)
        if not talkers:
            return Look(rates, np.empty(0))
        amounts, elapsed_ns, _ = run_team(talkers, LOOK_WINDOWS, LOOK_WINDOW_NS, LOOK_LIMIT_NS)
        return Look(rates, np.median(elapsed_ns[:, ::2] / amounts[:, ::2], axis=0))

    return probe
