"""The figures of a Record that a study keeps, by their path, such as ``latency_ns.commit.p99``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

from ...inputs import InputError
from ...inputs.fields import near
from ..run.record import Record
from ..run.scenario import Scenario

GAINS = ("bottleneck.gain_of", "bottleneck.gain_per_unit")
DEFAULTS = (
    "throughput.*",
    "latency_ns.*",
    "bandwidth_Bps.*",
    "power_W",
    "bottleneck.resource",
)
# Of each kind of figure: the dimension of a bound, and what one of its unit is in SI units.
OF_KIND = {
    "throughput": ("rate", 1.0),
    "latency_ns": ("time", 1e9),
    "bandwidth_Bps": ("bandwidth", 1.0),
    "power_W": ("power", 1.0),
}
UNITS = {
    "throughput": "/s",
    "latency_ns": "ns",
    "bandwidth_Bps": "B/s",
    "power_W": "W",
    "energy_J": "J",
    "utilisation": "1",
}
LESS_IS_BETTER = ("latency_ns", "power_W", "energy_J", "cost")
LATENCIES = ("mean", "p50", "p99", "p999")
FORMS = (
    "throughput.OPERATION, latency_ns.OPERATION.p99, bandwidth_Bps.memory, "
    "utilisation.KIND.busiest, resources.NAME.utilisation, power_W, energy_J, bottleneck.resource, "
    "model.NAME, machine.nodes or cost"
)
ROOTS = (*UNITS, "operations", "resources", "bottleneck", "model", "machine", "warm_up_s")
MACHINE = ("name", "nodes", "cores", "threads", "memory_GB", "ports")
COST = "cost"


@dataclass(frozen=True)
class Metrics:
    """The ``patterns`` of what is kept: paths, in which ``*`` stands for anything."""

    patterns: tuple[str, ...] = DEFAULTS

    @property
    def gains(self) -> bool:
        """Whether any asks what more of a resource would bring."""
        return any(fnmatchcase(path, pattern) for path in GAINS for pattern in self.patterns)

    def keep(self, path: str) -> bool:
        """Whether any pattern stands for the path."""
        return _kept(path, self.patterns)

    def of(self, record: Record, scenario: Scenario) -> dict[str, Any]:
        """The figures of a run by path, with the bounds of their intervals where there are any:
        ``PATH.low`` and ``PATH.high``.
        """
        found: dict[str, Any] = {}
        roots = {pattern.partition(".")[0] for pattern in self.patterns}
        for path, value in figures(record, scenario, roots):
            if not self.keep(path):
                continue
            found[path] = value
            if not record.confidence:  # as of the flow plane
                continue
            between = record.interval(*path.split("."))
            if between is not None:
                found[f"{path}.low"], found[f"{path}.high"] = between
        return found

    def check(self, operations: Sequence[str] | None) -> None:
        """See ``check_metric``."""
        for pattern in self.patterns:
            check_metric(pattern, operations)

    def check_found(self, rows: Sequence[Mapping[str, Any]], file: str | None = None) -> None:
        """Raises InputError for a figure that is asked for by name and none of these runs has."""
        names = dict.fromkeys(name for row in rows for name in row)
        for pattern in self.patterns:
            if names and "*" not in pattern and pattern not in names:
                root = pattern.partition(".")[0]
                raise InputError(
                    "no run has such a figure",
                    file,
                    token=pattern,
                    expected=f"one of those that metric '{root}.*' keeps",
                )


@lru_cache(maxsize=2**14)
def _kept(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether any pattern stands for the path. Runs of a study have the same paths."""
    return any(fnmatchcase(path, pattern) for pattern in patterns)


def check_metric(pattern: str, operations: Sequence[str] | None, source: str | None = None) -> None:
    """Raises InputError where no Record has such a figure. ``operations``: that there are, None
    where runs have different ones.
    """
    root, *rest = pattern.split(".")
    if root not in ROOTS or "" in rest:
        raise InputError("unknown metric", source, token=pattern, expected=FORMS)
    count = {"throughput": 1, "operations": 1, "latency_ns": 2, "bandwidth_Bps": 1}
    count |= {"utilisation": 2, "power_W": 0, "energy_J": 0, "machine": 1, "warm_up_s": 0}
    if pattern.endswith("*"):
        return
    if root in count and len(rest) != count[root]:
        raise InputError("unknown metric", source, token=pattern, expected=FORMS)
    if root == "resources" and len(rest) < 2:
        raise InputError("unknown metric", source, token=pattern, expected=FORMS)
    leaves = {
        "latency_ns": LATENCIES,
        "utilisation": ("mean", "busiest"),
        "bandwidth_Bps": ("memory", "links", "network"),
        "machine": MACHINE,
        "bottleneck": ("resource", "gain_of", "gain_per_unit"),
    }
    forms = [".".join([root, *rest[:-1], leaf]) for leaf in leaves.get(root, ())]
    if root in leaves and rest[-1] not in leaves[root] and "*" not in rest[-1]:
        raise InputError("unknown metric", source, token=pattern, expected=near(pattern, forms))
    if operations is None or root not in ("throughput", "operations", "latency_ns"):
        return
    if "*" not in rest[0] and rest[0] not in operations:
        forms = [".".join([root, name, *rest[1:]]) for name in operations]
        raise InputError("unknown metric", source, token=pattern, expected=near(pattern, forms))


def figures(record: Record, scenario: Scenario, roots: set[str]) -> Iterator[tuple[str, Any]]:
    """All figures below ``roots`` by path: numbers, texts, None where one is unknown."""
    counted_s = record.horizon_s - record.warm_up_s
    energy = record.energy_J
    plain: dict[str, Any] = {
        "throughput": record.throughput,
        "operations": record.operations,
        "latency_ns": {
            name: latencies
            for name, latencies in record.latency_ns.items()
            if latencies is not None
        },
        "bandwidth_Bps": record.bandwidth_Bps,
        "energy_J": energy,
        "power_W": energy / counted_s if energy is not None and counted_s > 0 else None,
        "model": record.model,
        "warm_up_s": record.warm_up_s,
    }
    for root, part in plain.items():
        if root in roots:
            yield from _flat(root, part)
    if "utilisation" in roots:
        yield from _uses(record)
    if "resources" in roots:
        for use in record.resources:
            yield f"resources.{use.name}.utilisation", use.utilisation
            yield f"resources.{use.name}.Bps", use.Bps
    if "bottleneck" in roots:
        why = next(iter(record.why.values()), None)
        best = why.gains[0] if why is not None and why.gains else None
        yield "bottleneck.resource", None if why is None else why.resource
        yield GAINS[0], None if best is None else best.resource
        yield GAINS[1], None if best is None else best.gain_per_10pct / 0.1
    if "machine" in roots:
        yield from machine_figures(scenario)


def machine_figures(scenario: Scenario) -> Iterator[tuple[str, float | str]]:
    """What a machine's price depends on."""
    machine = scenario.machine
    yield "machine.name", machine.name
    yield "machine.nodes", len(machine.nodes)
    yield "machine.cores", sum(node.cores for node in machine.nodes)
    yield "machine.threads", machine.threads
    known = [node.memory_bytes for node in machine.nodes if math.isfinite(node.memory_bytes)]
    yield "machine.memory_GB", math.fsum(known) / 1e9
    yield (
        "machine.ports",
        sum(
            nic.ports * (int(last or first) - int(first) + 1)
            for nic in machine.description.nics
            for first, _, last in [str(nic.nodes).partition("-")]
        ),
    )


def unit_of(path: str) -> str:
    """The unit of the figure at ``path``; empty where it has none."""
    base = path.removesuffix(".low").removesuffix(".high")
    root, _, rest = base.partition(".")
    if root == "resources":
        return {"utilisation": "1", "Bps": "B/s"}.get(rest.rpartition(".")[2], "")
    return UNITS.get(root, "")


def less_is_better(path: str) -> bool:
    """Whether a figure is one that nobody wants more of."""
    return path.partition(".")[0] in LESS_IS_BETTER


def _uses(record: Record) -> Iterator[tuple[str, float]]:
    by_kind: dict[str, list[float]] = {}
    for use in record.resources:
        by_kind.setdefault(use.kind, []).append(use.utilisation)
    for kind, uses in by_kind.items():
        yield f"utilisation.{kind}.mean", math.fsum(uses) / len(uses)
        yield f"utilisation.{kind}.busiest", max(uses)


def _flat(path: str, part: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(part, float):
        yield path, part if math.isfinite(part) else None
    elif part is None or isinstance(part, (int, str)):
        yield path, part
    elif isinstance(part, Mapping):
        for name, inner in part.items():
            yield from _flat(f"{path}.{name}", inner)
    elif isinstance(part, (list, tuple)):
        for index, inner in enumerate(part):
            yield from _flat(f"{path}.{index}", inner)
    else:
        yield path, part
