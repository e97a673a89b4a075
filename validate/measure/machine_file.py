"""Makes a machine file from measurements: this host's description with its figures."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from statistics import median
from typing import Any

import numpy as np
from pydantic import BaseModel

from ...inputs import OpenPart, Quantity
from ...inputs.quantities import rounded
from ...sim.machine.costs import LINE_BYTES, CostModel
from ...sim.machine.streams import lines_under_way
from ...sim.planes.rates import overlapped
from ...topologies import build_machine
from ...topologies.measurements import Measurement, figures
from ...topologies.schema import (
    Cache,
    KernelFacts,
    LoadedPoint,
    MachineDescription,
    NodeType,
    ReadWriteMix,
)
from ...topologies.schema_types import Fact, StreamStall, WriteTurnaround
from ..systems.registry import validations
from .bandwidth import TRAFFICS
from .effective_cache import effective_size, shared_text
from .interrupting import interruptions
from .plausible import TURNAROUND, doubts, plausible, within_bounds
from .session import Result

# A loaded-latency curve that ends below this share of the memory's bandwidth does not show the end.
LOAD_REACHED_MIN = 0.8
LITTLE = "latency under that load"
STREAMING = f"bandwidth of one thread that reads in sequence, times {LITTLE}, over 64 bytes"
RANDOM = f"independent loads of random lines (rate), times {LITTLE}"
TOGETHER = f"{RANDOM}; all cores of the node at once, each"
AHEAD = (
    f"independent loads of random lines with additions in between (rate), times {LITTLE} and the "
    "instructions from one to the next; the most of {}"
)

UNCOVERED = (
    "a stream with additions in between, beside line and additions that overlap, in parts of the "
    "latency"
)


def measured_description(result: Result) -> MachineDescription:
    """The host's description with all that was measured of it."""
    description = _Writer(result).description()
    passes = [_Writer(one).description() for one in result.passes]
    description = within_bounds(with_ranges(description, passes))
    notes = description.warnings
    doubtful = [
        path for path in build_machine(description).doubtful if not any(path in t for t in notes)
    ]
    return description.model_copy(update={"warnings": (*notes, *doubts(doubtful))})


class _Writer:
    def __init__(self, result: Result) -> None:
        self.result = result
        self.base = result.layout.description
        self.day = result.host.date[:10]
        self.warnings = list(result.warnings)

    def description(self) -> MachineDescription:
        base, result = self.base, self.result
        types = {name: self._node_type(name, kind) for name, kind in base.node_types.items()}
        met = interruptions(result.measurements)  # none may have been
        changes: dict[str, Any] = {
            "source": f"{base.source}; measured by numatwin {result.host.version}, {self.day}",
            "node_types": types,
            "host": result.host,
            "measurements": result.measurements,
            "read_write_mixes": tuple(self._mixes()) or base.read_write_mixes,
            "loaded_latency": tuple(self._loaded()) or base.loaded_latency,
            "interruptions": base.interruptions if met is None else met,
        }
        if len(result.layout.nodes) > 1:
            for field, name in (
                ("pair_latency", "memory.latency"),
                ("pair_bandwidth", "memory.bandwidth"),
            ):
                changes[field] = self._matrix(name, getattr(base, field))
        # Lines under way follow from the other facts.
        description = self._plausible(base.model_copy(update=changes))
        description = self._plausible(self._with_lines_under_way(description))
        description = self._with_uncovered(description)
        description = description.model_copy(update={"warnings": tuple(self.warnings)})
        for of in validations():
            if of.described is not None:
                description = of.described(description, result.measurements, self.day)
        build_machine(description)
        return description

    def _plausible(self, description: MachineDescription) -> MachineDescription:
        description, notes = plausible(description)
        self.warnings += notes
        return description

    def _found(self, name: str, **parameters: int | str | None) -> list[Measurement]:
        return figures(self.result.measurements, name, **parameters)

    def _ids(self, type_name: str) -> set[int]:
        """The ids of the nodes of a type."""
        return {node for node, name in self.base.type_of_node().items() if name == type_name}

    def _node_type(self, name: str, kind: NodeType) -> NodeType:
        ids = self._ids(name)
        changes: dict[str, Any] = {}
        starts = [node.id for node in self.result.layout.starts]
        if starts and starts[0] in ids:  # cores were measured on the first node
            changes["caches"] = self._caches(name, kind.caches)
            if found := self._found("system_call"):
                changes["system_call"] = self._quantity(found)
            kernel = {
                name: self._quantity(found)
                for name in KernelFacts.model_fields
                if (found := self._found(name))
            }
            changes["kernel"] = kind.kernel.model_copy(update=kernel)
            if self.result.clock_Hz is not None:
                clock = self.result.clock_Hz
                changes["clock"] = Quantity(
                    clock.value, clock.low, clock.high, f"measured {self.day}: {clock.source}"
                )
        memory: dict[str, Any] = {}
        for field in ("latency", "bandwidth"):
            local = [m for i in ids for m in self._found(f"memory.{field}", node=i, home=i)]
            if local:
                memory[field] = self._quantity(local)
        turnaround = self._write_turnaround(ids)
        if turnaround is not None:
            memory["write_turnaround"] = turnaround
        changes["memory"] = kind.memory.model_copy(update=memory)
        return kind.model_copy(update=changes)

    def _with_lines_under_way(self, description: MachineDescription) -> MachineDescription:
        """Lines under way of a core that reads, by Little's law: at the latency under that load
        that the cost model makes of all other facts, as it will divide them by it.
        """
        costs = CostModel(build_machine(description))
        alone = [self._under_way(costs, found, RANDOM) for found in self._found("random_reads")]
        together = [
            self._under_way(costs, found, TOGETHER, 1.0 / (found.parameters.threads or 1))
            for found in self._found("random_reads_together")
        ]
        spaced = self._found("spaced_reads")
        ahead = AHEAD.format(" and ".join(str(found.parameters.delay) for found in spaced))
        facts = {
            "streaming_misses": [
                self._under_way(costs, found, STREAMING)
                for found in self._found("read-bandwidth", threads=1)[:1]
            ],
            # A core alone has as many under way as beside others, at least.
            "outstanding_misses": alone and [*alone, *together],
            "outstanding_misses_together": together,
            "reorder_window": [
                self._under_way(costs, found, ahead, found.parameters.delay or 0)
                for found in spaced
            ],
        }
        # Where so few instructions lie between two loads that a core's miss slots end first, it
        # seems to look less far ahead: the most of all.
        known = {
            name: max(all_of, key=lambda fact: fact.value)
            for name, found in facts.items()
            if (all_of := [fact for fact in found if fact is not None])
        }
        starts = [node.id for node in self.result.layout.starts]
        types = {
            name: kind.model_copy(update=known) if starts and starts[0] in self._ids(name) else kind
            for name, kind in description.node_types.items()
        }
        return description.model_copy(update={"node_types": types})

    def _under_way(
        self, costs: CostModel, found: Measurement, method: str, times: float = 1.0
    ) -> Fact | None:
        """So many ``times`` the lines under way of what was read; None without the latency."""
        node, home = found.parameters.node, found.parameters.home
        latency = self._found("memory.latency", node=node, home=home)
        if not latency:
            return None
        ids: dict[int | None, int] = {one.id: k for k, one in enumerate(costs.machine.nodes)}
        unit_bytes = LINE_BYTES if found.value.kind == "rate" else 1.0
        value, low, high = (
            rounded(times * lines_under_way(costs, ids[node], ids[home], unit_bytes * rate))
            for rate in (found.value.value, *_range([found]))
        )
        return Fact(
            value=value,
            range=(low, high),
            source=self._source(found, method),
            doubtful=found.noisy or _doubtful(latency),
        )

    def _with_uncovered(self, description: MachineDescription) -> MachineDescription:
        """What a line of a stream takes with additions in between, beside line and additions that
        overlap: in parts of a line's latency, as if the core saw no line ahead.
        """
        plain, spaced = self._found("read-bandwidth", threads=1), self._found("spaced_stream")
        if not plain or len(spaced) < 2:
            return description
        costs, at = CostModel(build_machine(description)), spaced[0].parameters
        k = [node.id for node in costs.machine.nodes].index(at.node or 0)
        # Of the slowest, of the fastest, and of the median rates.
        both_s, work_s = (np.reciprocal([*_range([one]), one.value.value]) for one in spaced)
        unseen = costs.unseen(np.full(len(costs.cores), work_s[-1]))[k]
        if unseen <= 0.0:
            return description
        line_s = np.full(3, LINE_BYTES / plain[0].value.value)
        alone_s = overlapped(work_s, line_s, np.ones(3), costs.stream_stall[k])
        parts = np.clip((both_s - alone_s) / unseen / costs.idle_s[k, k], 0.0, 1.0)
        *ends, value = map(rounded, parts.tolist())
        fact = StreamStall(
            value=value,
            range=(min(*ends, value), max(*ends, value)),
            source=self._source(spaced[0], UNCOVERED),
            doubtful=_doubtful(spaced),
        )
        types = {
            name: kind.model_copy(update={"stream_uncovered": fact})
            if at.node in self._ids(name)
            else kind
            for name, kind in description.node_types.items()
        }
        return description.model_copy(update={"node_types": types})

    def _write_turnaround(self, ids: set[int]) -> WriteTurnaround | None:
        """What a written line costs the memory of nodes ``ids`` beyond a line that is read.

        Of B, B ÷ (1 + t/2) comes through where each line that is read is written back (see
        docs/model/calibration.md): the mean over nodes. Other mixes are predicted from it.
        """
        found = []
        for i in sorted(ids):
            reads = self._found("memory.bandwidth", node=i, home=i)
            for mix in self._found("mix-bandwidth", node=i, home=i, traffic="update"):
                if reads:
                    ends = product(_range(reads), _range([mix]))
                    lost = [b / m - 1.0 for b, m in ends]
                    best = reads[-1].value.value / mix.value.value - 1.0
                    found.append((best, min(lost), max(lost), mix))
        if not found:
            return None
        turns = 2.0 * np.array([row[:3] for row in found]).mean(axis=0)
        value, low, high = (float(f"{t:.3g}") for t in turns)
        if value < TURNAROUND.low:
            self.warnings.append(
                f"not written: write_turnaround: found {value:.4g}, expected {TURNAROUND.low:g} or "
                "more (a written line takes time)"
            )
            return None
        return WriteTurnaround(
            value=value,
            range=(max(min(low, value), TURNAROUND.low), max(high, value)),
            source=f"measured {self.day}, from streams that write back each line that they read",
            doubtful=any(row[3].noisy for row in found),
        )

    def _caches(self, name: str, caches: Sequence[Cache]) -> tuple[Cache, ...]:
        """With their latencies, and the size of the last one as far as it is this host's."""
        top = max((cache.level for cache in caches), default=0)
        private = max((cache.size.value for cache in caches if cache.level < top), default=math.inf)
        host = self.result.host.virtualisation
        made = []
        for k, cache in enumerate(caches):
            found = self._found("cache.latency", level=cache.level)
            changes: dict[str, Any] = {"latency": self._quantity(found)} if found else {}
            if cache.level == top:
                size = effective_size(
                    cache, private, self.result.measurements, virtual=host not in (None, "none")
                )
                if size is not None:
                    changes["size"] = size
                    self.warnings.append(
                        shared_text(f"node_types.{name}.caches.{k}.size", cache, size)
                    )
            made.append(cache.model_copy(update=changes))
        return tuple(made)

    def _quantity(self, found: Sequence[Measurement]) -> Quantity:
        """One value of several figures alike: their median, the range of all their quartiles."""
        value = median(m.value.value for m in found)
        if len(found) % 2 == 0:
            value = rounded(value)
        return Quantity(value, *_range(found), self._source(found[-1]), _doubtful(found))

    def _source(self, found: Measurement, method: str = "") -> str:
        how = method or found.method
        return f"measured {self.day}, median and quartiles of {found.repetitions}: {how}"

    def _matrix(self, name: str, table: Any) -> tuple[tuple[Quantity | None, ...], ...] | None:
        """Measured pairs, and what firmware table of the others."""
        nodes = self.result.layout.nodes
        rows = []
        for i, start in enumerate(nodes):
            row: list[Quantity | None] = []
            for j, home in enumerate(nodes):
                found = self._found(name, node=start.id, home=home.id)
                value = table[i][j] if table is not None else None
                row.append(found[-1].quantity() if found else value)
            rows.append(tuple(row))
        return tuple(rows) if any(value for row in rows for value in row) else None

    def _mixes(self) -> Iterable[ReadWriteMix]:
        for found in self._found("mix-bandwidth"):
            named = TRAFFICS[str(found.parameters.traffic)].mix
            several = len(self.result.layout.nodes) > 1
            yield ReadWriteMix(
                name=f"{named}{f', node {found.parameters.node}' if several else ''}",
                bandwidth=self._quantity([found]),
            )

    def _loaded(self) -> list[LoadedPoint]:
        bandwidths = self._found("loaded.bandwidth")
        if not bandwidths:
            return []
        points = [
            LoadedPoint(bandwidth=rate.quantity(), latency=latency.quantity())
            for rate, latency in zip(bandwidths, self._found("loaded.latency"), strict=False)
        ]
        peaks = self._found("machine.bandwidth") or self._found("memory.bandwidth")
        if peaks:
            reached = max(p.bandwidth.value for p in points)
            share = reached / max(m.value.value for m in peaks)
            if share < LOAD_REACHED_MIN:
                self.warnings.append(
                    f"loaded latency: the cores that load the memory reached only {share:.0%} of "
                    "its bandwidth (one core measures): how latency rises towards the end is not "
                    "in the curve"
                )
        return sorted(points, key=lambda point: point.bandwidth.value)


def _range(found: Sequence[Measurement]) -> tuple[float, float]:
    bounds = [m.ends for m in found]
    return min(low.value for low, _ in bounds), max(high.value for _, high in bounds)


def _doubtful(found: Sequence[Measurement]) -> bool:
    return any(m.noisy for m in found)


# Ranges of facts. A figure brings its quartiles; a fact that is worked out of several figures,
# such as what one more level of a tree takes, has none of its own. How far it went up and down
# between passes tells how sure it is.
NOT_MEASURED = ("catalogue", "guessed")  # so their sources begin
FACTOR = 2.0
# The parts of a description that hold facts of their own.
PARTS = ("node_types", "pair_latency", "pair_bandwidth", "processes", "engines")


def with_ranges(
    description: MachineDescription, passes: Sequence[MachineDescription]
) -> MachineDescription:
    """``description``, its facts with ranges that hold the quartiles of those of the ``passes``.

    What comes from the catalogue keeps its own; a fact whose range spans a factor of two becomes
    doubtful.
    """
    changes = {
        part: _ranged(getattr(description, part), [getattr(one, part) for one in passes])
        for part in PARTS
    }
    return description.model_copy(update=changes)


def _ranged(fact: Any, others: Sequence[Any]) -> Any:
    """The same with ranges; what ``others`` do not have in that place does not count."""
    same_type = [one for one in others if type(one) is type(fact)]
    if isinstance(fact, (Quantity, Fact)) and (fact.source or "").startswith(NOT_MEASURED):
        return fact
    if isinstance(fact, Quantity):
        low, high = _quartiles((fact.low, fact.high), [one.value for one in same_type])
        return replace(fact, low=low, high=high, doubtful=fact.doubtful or low * FACTOR <= high)
    if isinstance(fact, Fact) and (same_type or fact.range):
        low, high = _quartiles(fact.range or (fact.value,) * 2, [one.value for one in same_type])
        # Of what a written line costs, the time of a line that is read and written.
        line = 2.0 if isinstance(fact, WriteTurnaround) else 0.0
        doubtful = fact.doubtful or (line + low) * FACTOR <= line + high
        return fact.model_copy(update={"range": (low, high), "doubtful": doubtful})
    if isinstance(fact, OpenPart):
        known = [one.model for one in same_type]
        return OpenPart(_ranged(fact.model, known)) if fact.model is not None else fact
    if isinstance(fact, BaseModel):
        names = type(fact).model_fields
        parts = {name: getattr(fact, name) for name in names}
        return fact.model_copy(
            update=_each(parts, lambda name: [getattr(f, name) for f in same_type])
        )
    if isinstance(fact, Mapping):
        return _each(fact, lambda name: [one.get(name) for one in same_type])
    if isinstance(fact, tuple):
        long = [one for one in same_type if len(one) == len(fact)]
        return tuple(_ranged(part, [one[k] for one in long]) for k, part in enumerate(fact))
    return fact


def _each(parts: Mapping[str, Any], others: Callable[[str], Sequence[Any]]) -> dict[str, Any]:
    return {name: _ranged(part, others(name)) for name, part in parts.items()}


def _quartiles(known: tuple[float, float], values: Sequence[float]) -> tuple[float, float]:
    if not values:
        return known
    low, high = map(rounded, np.percentile(values, [25, 75]))
    return min(low, known[0]), max(high, known[1])
