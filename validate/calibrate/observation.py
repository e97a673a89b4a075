"""A measured figure used in a calibration, in the same form from every source."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...inputs import InputError
from ...topologies.facts.catalogue import Entry


class Kind(str):
    """What is predicted in one way, and held out in proportion.

    ``core``: it tells of core times alone; any other fact could be bent to meet an end result.
    ``run``: a run of the flow plane predicts it, which takes a thousand times as long as a formula.
    ``scaled``: it is a cost of the machine file times a factor, which moves nothing of a cost of 0.
    """

    core: bool
    run: bool
    scaled: bool

    def __new__(
        cls, name: str, *, core: bool = False, run: bool = False, scaled: bool = False
    ) -> Kind:
        """One more kind."""
        made = super().__new__(cls, name)
        made.core, made.run, made.scaled = core, run, scaled
        return made


IDLE = Kind("idle latency")
CACHE = Kind("cache latency")
READ = Kind("read bandwidth")
MACHINE_READ = Kind("read bandwidth of the machine")
LOADED = Kind("loaded latency")
MIX = Kind("read-write mix")
RANDOM = Kind("random reads")
ATOMIC = Kind("atomic operation", scaled=True)
LINE = Kind("line between cores", scaled=True)
STEP = Kind("native step", core=True, run=True)
THROUGHPUT = Kind("native throughput", core=True, run=True)

# Why a figure is not used.
NO_PARAMETER = "no parameter of the machine represents it"

# Relative standard deviation of a figure whose source tells none, and the least that is believed of
# one that does: the next session's figure lies that far away however calm each was.
ASSUMED_SPREAD = 0.01
SPREAD_MIN = 0.002


@dataclass(frozen=True)
class Origin:
    """Where figures come from: ``file`` for errors, ``label`` and ``date`` for people."""

    file: str
    label: str
    date: str


@dataclass(frozen=True)
class Observation:
    """``value`` in SI units (``unit``: ``s``, ``B/s``, ``/s``); ``spread``: its relative standard
    deviation.

    ``at``: what it holds for, as its kind's prediction asks (node and home by their ids, threads,
    load in B/s …). ``repetition_key``: figures of one kind with the same words are repetitions.
    ``size_bytes``: what it may be drawn over. ``line``: of ``origin.file``, where that is known.
    ``load_spread``: that of the load at which it was measured.
    """

    kind: Kind
    label: str
    value: float
    unit: str
    origin: Origin
    spread: float = ASSUMED_SPREAD
    at: Mapping[str, Any] = field(default_factory=dict)
    line: int | None = None
    size_bytes: float | None = None
    load_spread: float = 0.0

    @property
    def sigma(self) -> float:
        """Standard deviation of the value's logarithm."""
        return max(self.spread, SPREAD_MIN)

    @property
    def interval(self) -> tuple[float, float]:
        """Where 95% of such figures lie, by its spread."""
        factor = math.exp(1.96 * self.sigma)
        return self.value / factor, self.value * factor

    @property
    def repetition_key(self) -> tuple[object, ...]:
        """Of the same quantity, from any source."""
        return (self.kind, *sorted((name, str(value)) for name, value in self.at.items()))

    def moved(self, side: int) -> Observation:
        """The same at a load that is off by its spread."""
        load = self.at["load"] * math.exp(side * self.load_spread)
        return replace(self, at={**self.at, "load": load})

    def error(self, message: str, expected: str | None = None) -> InputError:
        """The InputError that names the figure's place."""
        return InputError(message, self.origin.file, self.line, expected=expected)


@dataclass(frozen=True)
class Measured:
    """What one file tells. ``unused``: figures by the reason why none of them is used."""

    origin: Origin
    observations: tuple[Observation, ...]
    unused: Mapping[str, int] = field(default_factory=dict)
    held_out: frozenset[int] | None = None
    """Positions that this source's own rule holds out; None where the seeded choice decides."""
    processor: Entry | None = None
    """The catalogue's entry of the processors that were measured; None where it is not known."""
