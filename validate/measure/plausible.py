"""What a measured fact can be by its definition; what cannot be is not written.

On a busy host a figure may come out as anything. A fact outside of its bounds is replaced by what
the catalogue of facts says of the processor, or left out; the file's warnings say so. One inside of
them whose range spans a factor of two is marked as doubtful by ``ranges``.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from ...inputs import InputError, Quantity
from ...sim.machine.costs import LINE_BYTES
from ...topologies.facts.complete import complete
from ...topologies.schema import MachineDescription, NodeType
from ...topologies.schema_types import WRITE_TURNAROUND_MIN, Fact

Path = tuple[str | int, ...]
NAMED_MAX = 5


@dataclass(frozen=True)
class Bounds:
    """In SI units, both included, and why it cannot be otherwise."""

    low: float
    high: float
    why: str


BUFFERS = "a core that loads has at least one line under way, and buffers for some hundred at most"
OF_CORES: Mapping[str, Bounds] = {
    "outstanding_misses": Bounds(1.0, 1e3, BUFFERS),
    "outstanding_misses_together": Bounds(1.0, 1e3, BUFFERS),
    "streaming_misses": Bounds(1.0, 1e3, BUFFERS),
    "reorder_window": Bounds(1.0, 4e3, "a core looks ahead by one instruction at least"),
    "clock": Bounds(1e8, 1e10, "processors run at 0.1 to 10 GHz"),
    "system_call": Bounds(1e-8, 1e-3, "the kernel takes tens of cycles to enter and leave"),
}
KERNEL = Bounds(1e-8, 1e-2, "the kernel's way takes tens of cycles, and holds up nobody for long")
DRAM = Bounds(1e-8, 1e-3, "opening a row of DRAM alone takes more than 10 ns")
TURNAROUND = Bounds(
    WRITE_TURNAROUND_MIN, 20.0, "a bus that turns for each line loses some twenty lines' time"
)
BANDWIDTH_MAX_BPS = 1e13


def plausible(description: MachineDescription) -> tuple[MachineDescription, list[str]]:
    """The description without impossible facts, and a warning for each.

    In their place stands what the catalogue knows of the processor, where it does.
    """
    notes = []
    while found := next(_impossible(description), None):
        path, fact, bounds = found
        without = _with(description, path, None)
        known = _catalogued(without, path)
        if known is None or not bounds.low <= known.value <= bounds.high:
            description, instead = without, "left out, the catalogue has none"
        else:
            description = _with(description, path, known)
            instead = f"taken instead: {known.value:.4g}, {known.source}"
        notes.append(
            f"not written: {'.'.join(map(str, path))}: found {fact.value:.4g}, expected "
            f"{bounds.low:.4g} to {bounds.high:.4g} ({bounds.why}); {instead}"
        )
    return description, notes


def within_bounds(description: MachineDescription) -> MachineDescription:
    """The same with the ranges of facts cut where they reach beyond what can be."""
    for path, fact, bounds in list(_bounded(description)):
        ends = _range(fact)
        low, high = max(ends[0], bounds.low), min(ends[1], bounds.high)
        if (low, high) != ends and low <= fact.value <= high:
            cut = (
                replace(fact, low=low, high=high)
                if isinstance(fact, Quantity)
                else fact.model_copy(update={"range": (low, high)})
            )
            description = _with(description, path, cut)
    return description


def doubts(paths: Iterable[str]) -> Iterator[str]:
    """A warning that names doubtful facts, if there are any."""
    found = list(paths)
    if found:
        more = f" and {len(found) - NAMED_MAX} more" if len(found) > NAMED_MAX else ""
        yield (
            f"doubtful: {', '.join(found[:NAMED_MAX])}{more} (quartiles a factor of 2 apart, or "
            "hardly an undisturbed repetition)"
        )


def _impossible(description: MachineDescription) -> Iterator[tuple[Path, Quantity | Fact, Bounds]]:
    for path, fact, bounds in _bounded(description):
        if not bounds.low <= fact.value <= bounds.high:
            yield path, fact, bounds


def _bounded(description: MachineDescription) -> Iterator[tuple[Path, Quantity | Fact, Bounds]]:
    """Each fact that is known, with its bounds."""
    for name, kind in description.node_types.items():
        for path, fact, bounds in _of_kind(kind):
            if fact is not None:
                yield ("node_types", name, *path), fact, bounds
    latencies, bandwidths = description.pair_latency or (), description.pair_bandwidth or ()
    for i, row in enumerate(latencies):
        yield from (
            (("pair_latency", i, j), cell, DRAM) for j, cell in enumerate(row) if cell is not None
        )
    for i, row in enumerate(bandwidths):
        for j, cell in enumerate(row):
            if cell is not None:
                bounds = _bandwidth(latencies[i][j] if latencies else None)
                yield ("pair_bandwidth", i, j), cell, bounds


def _of_kind(kind: NodeType) -> Iterator[tuple[Path, Quantity | Fact | None, Bounds]]:
    for field, bounds in OF_CORES.items():
        yield (field,), getattr(kind, field), bounds
    for field in type(kind.kernel).model_fields:
        yield ("kernel", field), getattr(kind.kernel, field), KERNEL
    memory = kind.memory
    yield ("memory", "latency"), memory.latency, DRAM
    yield ("memory", "bandwidth"), memory.bandwidth, _bandwidth(memory.latency)
    yield ("memory", "write_turnaround"), memory.write_turnaround, TURNAROUND
    least_s = 1.0 / kind.clock.value if kind.clock is not None else 0.0
    most_s = memory.latency.value if memory.latency is not None else DRAM.high
    why = "a cache takes a cycle, no less than the level before it, and no more than memory"
    for k, cache in sorted(enumerate(kind.caches), key=lambda one: one[1].level):
        yield ("caches", k, "latency"), cache.latency, Bounds(least_s, most_s, why)
        least_s = cache.latency.value if cache.latency is not None else least_s


def _bandwidth(latency: Quantity | None) -> Bounds:
    least_Bps = LINE_BYTES / latency.value if latency is not None else 0.0
    why = "one line after the other is the least that a core reads"
    return Bounds(least_Bps, BANDWIDTH_MAX_BPS, why)


def _catalogued(description: MachineDescription, path: Path) -> Quantity | Fact | None:
    try:
        part: Any = complete(description).description
    except InputError:
        return None
    for key in path:
        part = getattr(part, str(key)) if isinstance(part, BaseModel) else part and part[key]
    return part if isinstance(part, (Quantity, Fact)) else None


def _with(part: Any, path: Path, value: Any) -> Any:
    """``part`` of a description with ``value`` at ``path``."""
    if not path:
        return value
    key, rest = path[0], path[1:]
    if isinstance(part, BaseModel):
        return part.model_copy(update={str(key): _with(getattr(part, str(key)), rest, value)})
    if isinstance(part, Mapping):
        return {**part, key: _with(part[key], rest, value)}
    assert isinstance(key, int)
    return (*part[:key], _with(part[key], rest, value), *part[key + 1 :])


def _range(fact: Quantity | Fact) -> tuple[float, float]:
    return (fact.low, fact.high) if isinstance(fact, Quantity) else fact.range or (fact.value,) * 2
