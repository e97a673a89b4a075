"""The result of a plane: figures, utilisation, bottlenecks, control events."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from ..kernel.histogram import Histogram

Series = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class ResourceUse:
    """What one resource did, averaged over the horizon.

    ``kind``: ``cores``, ``memory``, ``link``, ``pair`` (what one node can draw from another),
    ``misses`` (cache lines under way), ``nic out`` and ``nic in`` (a direction of a network
    adapter), ``threads`` (of a server, for its messages), ``pollers`` (such as look for
    messages all the time, and are in use for that), ``clients`` (their threads). ``Bps`` is
    the rate in bytes per second for memory, links, pairs and adapters, None for others;
    ``capacity_Bps`` its limit. A message that its adapter's message rate holds back counts with the
    bytes that would have taken as long. ``node`` is the node's id (cores, memory, misses, adapters,
    threads), ``ends`` the vertex ids of a directed link, or of a pair (initiator, home).
    """

    name: str
    kind: str
    utilisation: float
    Bps: float | None = None
    capacity_Bps: float | None = None
    node: int | None = None
    ends: tuple[int | str, int | str] | None = None


@dataclass(frozen=True)
class Gain:
    """What 10% more of one resource (or kind of resource) would add to an operation's rate."""

    resource: str
    gain_per_10pct: float
    """Relative: 0.1 is 10% more throughput for 10% more of the resource."""


def by_gain(found: Mapping[str, float], least: float) -> tuple[Gain, ...]:
    """By falling gain; less than ``least`` is none. What rounding and searches leave in doubt does
    not decide the order.
    """
    gains = [Gain(name, gain if abs(gain) >= least else 0.0) for name, gain in found.items()]
    return tuple(sorted(gains, key=lambda gain: (-round(gain.gain_per_10pct, 3), gain.resource)))


@dataclass(frozen=True)
class Why:
    """What holds one operation back: the binding resource, and what more of each would bring.

    ``gains`` are sorted by falling gain. ``demands`` are the parts of one operation's time on its
    core, in nanoseconds, by name (``tree walk``, ``memory stall``, ``routing`` …).
    """

    resource: str
    gains: tuple[Gain, ...]
    demands: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ControlEvent:
    """Something that the control plane did or saw: a phase, a decision, a transfer.

    ``kind``: ``phase``, ``balance`` (a decision), ``transfer`` (transfers begin), ``refused`` (they
    would overfill a memory), ``done`` (the end of a balancing cycle), ``fault``. ``details`` are
    plain JSON values.
    """

    time_s: float
    kind: str
    text: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a plane saw while it counted, up to now; the fields are those of the Record.

    A plane counts from time 0, or from its last ``start_counting``.
    """

    throughput: Mapping[str, float] = field(default_factory=dict)
    operations: Mapping[str, float]
    bandwidth_Bps: Mapping[str, float | None] = field(default_factory=dict)
    resources: tuple[ResourceUse, ...] = ()
    latency_ns: Mapping[str, Mapping[str, float | None] | None] = field(default_factory=dict)
    why: Mapping[str, Why] = field(default_factory=dict)
    energy_J: float | None = None
    events: tuple[ControlEvent, ...] = ()
    model: Mapping[str, Any]
    warnings: tuple[str, ...] = ()
    series: Series = field(default_factory=dict)
    steps: int
    """Pieces of time, or events, that were simulated, all since time 0."""
    latencies_ns: Mapping[str, Histogram] = field(default_factory=dict)
    """By operation, each latency that was counted. The Record's ``latency_ns`` (mean, p50, p99,
    p999) comes of it; ``latency_ns`` above then needs no entry for this operation."""
