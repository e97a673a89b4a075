"""A measured figure used in a calibration, in the same form from every source, and what reads those
of ``numatwin machine measure``.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from ...inputs import Document, InputError
from ...topologies.machine import Machine
from ...topologies.measurements import Measurement
from ...topologies.schema import MachineDescription


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
    ) -> "Kind":
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
# Of a normal distribution: standard deviations between its quartiles.
QUARTILES = 1.349
# A noisy figure holds others' work too: so many times its spread.
NOISY = 3.0
# A working set from which a cache level answers for sure: around the size that was chosen for it.
NEAR_LEVEL = (0.75, 1.5)


@dataclass(frozen=True)
class Origin:
    """Where figures come from: ``file`` for errors, ``label`` and ``date`` for people."""

    file: str
    label: str
    date: str

    @classmethod
    def of(cls, file: str, label: str) -> Self:
        """Of a file that says no date: when it was written."""
        try:
            changed_s = Path(file).stat().st_mtime
        except OSError:
            return cls(file, label, "date unknown")
        return cls(file, label, datetime.fromtimestamp(changed_s, UTC).date().isoformat())


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

    def moved(self, side: int) -> "Observation":
        """The same at a load that is off by its spread."""
        load = self.at["load"] * math.exp(side * self.load_spread)
        return replace(self, at={**self.at, "load": load})

    def error(self, message: str, expected: str | None = None) -> InputError:
        """The InputError that names the figure's place."""
        return InputError(message, self.origin.file, self.line, expected=expected)


@dataclass(frozen=True)
class Measured:
    """What one file tells. ``unused``: figures by the reason why none of them is used; ``homes``:
    nodes with memory that were measured, none where that is not said; ``cpu_model``: of the host.
    """

    origin: Origin
    observations: tuple[Observation, ...]
    unused: Mapping[str, int] = field(default_factory=dict)
    held_out: frozenset[int] | None = None
    """Positions that this source's own rule holds out; None where the seeded choice decides."""
    homes: frozenset[int] = frozenset()
    cpu_model: str = ""


class HostReader:
    """Reads one file; ``machine`` is the one that it describes, by which sizes are judged."""

    def __init__(
        self, document: Document, description: MachineDescription, machine: Machine
    ) -> None:
        self.document, self.description, self.machine = document, description, machine
        self.first = next((n for n in machine.nodes if n.cores), machine.nodes[0])
        date = description.host.date[:10] if description.host is not None else "date unknown"
        name = document.file.rsplit("/", 1)[-1]
        label = "".join(c if c.isprintable() else "?" for c in name)
        self.origin = Origin(document.file, label, date)
        self.at = 0  # the position of the figure that is read
        self.by_delay: dict[tuple[object, ...], Measurement] = {
            (m.parameters.threads, m.parameters.delay): m
            for m in description.measurements
            if m.name == "loaded.bandwidth"
        }

    def observation(
        self, kind: Kind, measurement: Measurement, label: str, at: Mapping[str, Any], **more: Any
    ) -> Observation:
        """One figure, with its spread and its line."""
        mark = self.document.marks.get(("measurements", self.at))
        value = measurement.value
        return Observation(
            kind,
            label,
            value.value,
            value.unit,
            self.origin,
            spread=spread_of(measurement),
            at=at,
            line=mark[0] if mark else None,
            **more,
        )

    def ends(self, measurement: Measurement) -> dict[str, int]:
        """Node and home; of a host with one node they go without saying."""
        given = measurement.parameters
        node = self.first.id if given.node is None else given.node
        return {"node": node, "home": node if given.home is None else given.home}

    def sizes(self) -> list[tuple[int, float, float]]:
        """(level, smallest, largest) working sets that a level of the first node answers."""
        found, before = [], 0.0
        for cache in self.first.caches:
            chosen = min(3 * before, math.sqrt(before * cache.size_bytes))
            chosen = chosen or cache.size_bytes / 2
            low = 0.0 if not before else NEAR_LEVEL[0] * chosen
            found.append((cache.level, low, min(NEAR_LEVEL[1] * chosen, 0.8 * cache.size_bytes)))
            before = cache.size_bytes
        return found

    def node_of(self, cpu: int | None) -> int | None:
        """The id of the node that a CPU belongs to; None where that is unknown."""
        return next((n.id for n in self.machine.nodes if cpu in n.cpus), None)

    def private_bytes(self) -> float:
        """The largest cache that a core of the first node has to itself."""
        own = [cache.size_bytes for cache in self.first.caches if cache.shared_by_cores == 1]
        return max(own, default=0.0)


def spread_of(measurement: Measurement) -> float:
    """Relative standard deviation of the figure: by its quartiles, as if it were normal."""
    if measurement.quartiles is None:
        return 0.01
    low, high = measurement.quartiles
    spread = (high.value - low.value) / QUARTILES / max(measurement.value.value, 1e-300)
    return max(spread, 0.005) * (NOISY if measurement.noisy else 1.0)


def size_of(measurement: Measurement) -> float | None:
    """Bytes that it is of; None where that is not said."""
    return measurement.parameters.size.value if measurement.parameters.size is not None else None
