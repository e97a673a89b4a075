"""The figures of a record, each kind described once: for tables, pages, comparisons and studies."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from .record import Record

Path = tuple[str, ...]
LATENCIES = ("mean", "p50", "p99", "p999")


@dataclass(frozen=True)
class Kind:
    """Of figures whose paths begin with its name: where they stand in a Record, as a number, a
    text, or such below names (``of``); their ``unit``, which direction is ``better`` (None: it
    depends), how many ``names`` follow (None: any number), which ``last`` ones there are, and the
    ``dimension`` that a bound is said in, of which SI's unit is ``per_si`` of theirs.
    """

    of: Callable[[Record], Any]
    unit: str = ""
    better: Literal["more", "less"] | None = None
    names: int | None = None
    last: tuple[str, ...] = ()
    dimension: str | None = None
    per_si: float = 1.0


KINDS: Mapping[str, Kind] = {
    "throughput": Kind(lambda r: r.throughput, "/s", "more", 1, (), "rate"),
    "operations": Kind(lambda r: r.operations, names=1),
    "latency_ns": Kind(
        lambda r: {name: known for name, known in r.latency_ns.items() if known is not None},
        *("ns", "less", 2, LATENCIES, "time", 1e9),
    ),
    "bandwidth_Bps": Kind(
        lambda r: r.bandwidth_Bps, "B/s", None, 1, ("memory", "links", "network"), "bandwidth"
    ),
    "energy_J": Kind(lambda r: r.energy_J, "J", "less", 0),
    "power_W": Kind(lambda r: power_W(r), "W", "less", 0, (), "power"),
    "model": Kind(lambda r: r.model),
    "warm_up_s": Kind(lambda r: r.warm_up_s, names=0),
    "utilisation": Kind(lambda r: _used(r), "1", None, 2, ("mean", "busiest")),
    "resources": Kind(
        lambda r: {u.name: {"utilisation": u.utilisation, "Bps": u.Bps} for u in r.resources}
    ),
    "bottleneck": Kind(
        lambda r: bottleneck(r), names=1, last=("resource", "gain_of", "gain_per_unit")
    ),
    "traffic": Kind(lambda r: _traffic(r)),
}


def figures(record: Record, roots: Iterable[str]) -> Iterator[tuple[Path, Any]]:
    """All figures of the kinds ``roots`` with their paths: numbers, texts, None where one is not
    known.
    """
    for root in roots:
        yield from _flat((root,), KINDS[root].of(record))


def unit_of(path: str) -> str:
    """The unit of the figure at a path joined by dots; empty where it has none."""
    root, _, rest = path.removesuffix(".low").removesuffix(".high").partition(".")
    if root == "resources":
        return {"utilisation": "1", "Bps": "B/s"}.get(rest.rpartition(".")[2], "")
    if root == "traffic":
        return "B" if rest.endswith("bytes") else "1"
    return KINDS[root].unit if root in KINDS else ""


def better(root: str) -> Literal["more", "less"] | None:
    """Which direction is better of the kind of figures; None where it depends."""
    return KINDS[root].better if root in KINDS else None


def counted_s(record: Record) -> float:
    """The time that a record's sums, such as its energy, are over."""
    return record.horizon_s - record.warm_up_s


def power_W(record: Record) -> float | None:
    """Its energy over the time that this is of."""
    time_s = counted_s(record)
    return record.energy_J / time_s if record.energy_J is not None and time_s > 0 else None


def _used(record: Record) -> dict[str, dict[str, float]]:
    """By kind of resource, its mean use and that of the busiest."""
    by_kind: dict[str, list[float]] = {}
    for use in record.resources:
        by_kind.setdefault(use.kind, []).append(use.utilisation)
    return {
        kind: {"mean": math.fsum(uses) / len(uses), "busiest": max(uses)}
        for kind, uses in by_kind.items()
    }


def bottleneck(record: Record) -> dict[str, Any]:
    """What binds the first operation, and what more of it would bring."""
    why = next(iter(record.why.values()), None)
    best = why.gains[0] if why is not None and why.gains else None
    return {
        "resource": None if why is None else why.resource,
        "gain_of": None if best is None else best.resource,
        "gain_per_unit": None if best is None else best.gain_per_10pct / 0.1,
    }


def _traffic(record: Record) -> dict[str, float | None]:
    """Bytes through all memory controllers and over all links: as counted, or the rate over time.

    ``remote_share``: of the lines that cores miss, those of other nodes' memory; unknown of rates.
    """
    counted = record.traffic
    memory_bytes: float | None
    link_bytes: float | None
    if counted:
        memory_bytes = math.fsum(m["read_bytes"] + m["written_bytes"] for m in counted["memory"])
        sizes = [one["data_bytes"] + one["message_bytes"] for one in counted["links"]]
        link_bytes = math.fsum(sizes) if sizes else None
    else:
        rates = (record.bandwidth_Bps.get(name) for name in ("memory", "links"))
        time_s = counted_s(record)
        memory_bytes, link_bytes = (None if rate is None else rate * time_s for rate in rates)
    return {
        "memory_bytes": memory_bytes,
        "link_bytes": link_bytes,
        "links_per_memory": link_bytes / memory_bytes if memory_bytes and link_bytes else None,
        "remote_share": counted.get("remote_share") if counted else None,
    }


def _flat(path: Path, part: Any) -> Iterator[tuple[Path, Any]]:
    if isinstance(part, float):
        yield path, part if math.isfinite(part) else None
    elif isinstance(part, Mapping):
        for name, inner in part.items():
            yield from _flat((*path, str(name)), inner)
    elif isinstance(part, (list, tuple)):
        for index, inner in enumerate(part):
            yield from _flat((*path, str(index)), inner)
    else:
        yield path, part
