"""The common tools of all measurements: teams on CPUs, memory of nodes, and their figures.

Repetitions of a measurement: their median, their quartiles, and which of them count.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ...inputs import Quantity, load_yaml
from ...inputs.quantities import rounded
from ...sim.kernel.arrays import Flags
from ...sim.kernel.arrays import Floats as Floats
from ...topologies.measurements import Kind, Measurement, Parameters, Reading
from .layout import Layout, NodeLayout

if TYPE_CHECKING:
    from ...engine_native._engine import Block, Work

T = TypeVar("T")
Member = tuple[int, "Work"]
HUGE_PAGE_BYTES = 2 << 20
LINE_BYTES = 64
# Of a node: more takes long to lay out, and caches of that size are shared by many cores.
ARENA_BYTES_MAX = 1 << 30


def methods_of(part: str) -> dict[str, str]:
    """How the figures of a part are made, by name."""
    document = load_yaml(Path(__file__).with_name("methods.yaml"))
    return {str(name): str(method) for name, method in document.value[part].items()}


@dataclass(frozen=True)
class Effort:
    """How thoroughly in one pass: repetitions of a figure, time of each, and sizes.

    ``octave_points``: sizes of the working set per octave; ``last_caches``: how many times the last
    cache the memory holds that is measured on; ``pairs_max``: of CPUs. ``budget_s``: when that is
    over, what is left gets few repetitions.
    """

    quick: bool
    wanted: int
    window_ns: int
    octave_points: int
    last_caches: int
    pairs_max: int
    budget_s: float

    def of_one(self, passes: int, *, again: bool) -> Effort:
        """As thoroughly in one of several passes that all of them together are as this; the curve
        by working set, which is no fact, is drawn once.
        """
        return replace(
            self,
            wanted=max(self.wanted // passes, WANTED_MIN),
            octave_points=1 if again else self.octave_points,
        )


WANTED_MIN = 5
FULL = Effort(False, 25, 500_000, 4, 8, 120, 55.0)
QUICK = Effort(True, 9, 200_000, 1, 4, 12, 8.0)
# Repetitions of what is still to be measured when the time is over, and how long they may take.
LATE_WANTED, LATE_S = 3, 0.01


@dataclass
class Bench:
    """One session's tools. ``arenas``: by node, the memory that its figures are measured on."""

    layout: Layout
    effort: Effort
    measurements: list[Measurement] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    begun: float = field(default_factory=time.monotonic)
    _arenas: dict[int, Block] = field(default_factory=dict)
    _cycles: dict[int, tuple[int, int]] = field(default_factory=dict)

    def warn(self, text: str) -> None:
        """A warning, once."""
        if text not in self.warnings:
            self.warnings.append(text)

    def run(
        self,
        members: Sequence[Member],
        *,
        limit_s: float,
        window_ns: int | None = None,
        wanted: int | None = None,
    ) -> Windows:
        """Windows of the members' work, as many as wanted, or as come within the limit."""
        from ...engine_native._engine import run_team

        wanted = wanted or self.effort.wanted
        if time.monotonic() - self.begun > self.effort.budget_s:
            wanted, limit_s = min(wanted, LATE_WANTED), min(limit_s, LATE_S)
            self.warn(
                f"more to measure than {self.effort.budget_s:g} s allow: the last figures have few "
                "repetitions"
            )

        plan = (wanted, window_ns or self.effort.window_ns, int(limit_s * 1e9))
        return Windows(*run_team(list(members), *plan))

    def add(
        self, name: str, samples: Samples, kind: Kind, method: str, **parameters: object
    ) -> Samples:
        """Keeps a figure; ``samples`` in SI units, but times in nanoseconds."""
        low, high = samples.quartiles

        def reading(value: float) -> Reading:
            # The shift keeps what stands in the file as short as what was rounded.
            return Reading(float(f"{value}e-9") if kind == "time" else value, kind)

        self.measurements.append(
            Measurement(
                name=name,
                value=reading(samples.median),
                quartiles=(reading(low), reading(high)),
                repetitions=len(samples.values),
                disturbed=samples.disturbed,
                noisy=samples.noisy,
                method=method,
                parameters=Parameters.model_validate(
                    {
                        key: _size(value) if key in _SIZES else value
                        for key, value in parameters.items()
                    }
                ),
            )
        )
        return samples

    def arena(self, node: NodeLayout) -> Block:
        """Memory of the node, several times its last cache where that much is free."""
        if node.id not in self._arenas:
            caches = max(node.last_cache_bytes, 8 << 20)
            wanted = min(self.effort.last_caches * caches, max(ARENA_BYTES_MAX, 2 * caches))
            self._arenas[node.id] = self.block(node, wanted, what=f"node {node.id}")
        return self._arenas[node.id]

    def cycle(self, node: NodeLayout, size_bytes: int) -> int:
        """Lays a cycle through the beginning of the node's arena; returns its lines."""
        known, lines = self._cycles.get(node.id, (0, 0))
        if known != size_bytes:
            lines = self.arena(node).arrange_cycle(size_bytes, seed=1)
            self._cycles[node.id] = size_bytes, lines
        return lines

    def written(self, node: NodeLayout) -> None:
        """Tells that something else than a cycle was written into the node's arena."""
        self._cycles.pop(node.id, None)

    def block(
        self, node: NodeLayout, wanted_bytes: int, *, huge_pages: bool = True, what: str
    ) -> Block:
        """A block on the node: smaller where not enough is free, and then it says so."""
        from ...engine_native._engine import Block

        size = min(wanted_bytes, node.memory_bytes) // HUGE_PAGE_BYTES * HUGE_PAGE_BYTES
        block = None
        while block is None:
            size = max(size, HUGE_PAGE_BYTES)
            try:
                block = Block(size, self.layout.binding(node), huge_pages)
            except MemoryError:
                if size == HUGE_PAGE_BYTES:
                    raise
                size = size // 2 // HUGE_PAGE_BYTES * HUGE_PAGE_BYTES
            except OSError as failure:
                if failure.errno not in (errno.EPERM, errno.ENOSYS, errno.EINVAL):
                    raise
                raise CannotBind(
                    f"the kernel binds no memory to nodes: {failure.strerror}"
                ) from None
        if size < wanted_bytes // HUGE_PAGE_BYTES * HUGE_PAGE_BYTES:
            self.warn(
                f"{what}: not enough free memory for {wanted_bytes >> 20} MiB: measured on "
                f"{size >> 20} MiB"
            )
        if huge_pages and block.huge_bytes < 0.9 * size:
            self.warn(
                f"{what}: no huge pages (transparent_hugepage is off, or memory is fragmented): "
                "latencies include page walks"
            )
        return block


def ends(start: NodeLayout, home: NodeLayout) -> dict[str, int]:
    """Whose CPUs use whose memory, as parameters of a figure."""
    return {"node": start.id, "home": home.id}


_SIZES = ("size", "page", "buffer", "region")


def _size(size_bytes: object) -> Quantity:
    assert isinstance(size_bytes, int)
    return Quantity.exact(size_bytes)


class CannotBind(Exception):
    """Memory of a chosen node cannot be had."""


# With fewer undisturbed repetitions than this the disturbed ones count too: a median of one tells
# nothing of its spread.
UNDISTURBED_MIN = 3


@dataclass(frozen=True)
class Windows:
    """What a team did: (windows, members) amounts and nanoseconds, (windows,) whether disturbed."""

    amounts: Floats
    elapsed_ns: Floats
    disturbed: Flags

    def of(self, values: Floats) -> Samples:
        """The samples among ``values``, one for each window, that count."""
        undisturbed = ~self.disturbed
        if undisturbed.sum() < UNDISTURBED_MIN:
            return Samples(values, 0, noisy=bool(self.disturbed.any()))
        return Samples(values[undisturbed], int((~undisturbed).sum()))

    def ns_each(self) -> Samples:
        """Nanoseconds that one of the first member's amount took."""
        return self.of(self.elapsed_ns[:, 0] / self.amounts[:, 0])

    def rates(self, *members: int) -> Samples:
        """Amounts per second of the members together; of all, where none is named."""
        chosen = list(members) or list(range(self.amounts.shape[1]))
        rate = self.amounts[:, chosen] / self.elapsed_ns[:, chosen] * 1e9
        return self.of(rate.sum(axis=1))


@dataclass(frozen=True)
class Samples:
    """Repetitions of one figure; ``disturbed`` more were left out.

    ``noisy``: there were too few others, so that disturbed ones are among them.
    """

    values: Floats
    disturbed: int = 0
    noisy: bool = False

    @property
    def median(self) -> float:
        """The figure itself."""
        return rounded(float(np.median(self.values)))

    @property
    def quartiles(self) -> tuple[float, float]:
        """Between them lies half of the repetitions."""
        low, high = np.percentile(self.values, [25, 75])
        # Rounded alike, so that they still stand on both sides of the median.
        return min(rounded(float(low)), self.median), max(rounded(float(high)), self.median)

    @property
    def spread(self) -> float:
        """Interquartile range over the median."""
        low, high = self.quartiles
        return (high - low) / self.median if self.median else 0.0

    def scaled(self, factor: float) -> Samples:
        """Each value times ``factor``."""
        return Samples(self.values * factor, self.disturbed, self.noisy)
