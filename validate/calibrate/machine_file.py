"""From a fit to a machine file: each fitted value in its place, with interval, source and date."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...inputs import Quantity
from ...topologies import build_machine
from ...topologies.machine import Machine
from ...topologies.schema import LoadedPoint, MachineDescription
from ...topologies.schema_types import Fact, WriteTurnaround
from .candidate import peak_Bps
from .curve import KNOTS, curve
from .engine_calibration import engine_calibrations
from .intervals import Fit, fitted_quantities, rounded
from .parameters import CURVE, Key, PairClass
from .words_between_cores import fitted_processes

Matrix = tuple[tuple[Quantity | None, ...], ...]


class Writer:
    """Puts what was fitted into a description; ``source``: by key, the text on where it is from."""

    def __init__(
        self,
        machine: Machine,
        classes: Sequence[PairClass],
        fit: Fit,
        source: Mapping[Key, str],
        curve_points: Sequence[LoadedPoint] = (),
    ) -> None:
        self.machine, self.classes = machine, classes
        self.fit, self.source, self.curve_points = fit, source, curve_points
        self.quantities = fitted_quantities(fit, source)

    def description(self, **more: Any) -> MachineDescription:
        """The description, which builds; ``more`` are further fields of it."""
        base = self.machine.description
        changes: dict[str, Any] = dict(more)
        changes |= self._pairs()
        changes["node_types"] = {
            name: self._node_type(name, kind) for name, kind in base.node_types.items()
        }
        changes["processes"] = fitted_processes(base.processes, self.quantities)
        for engine in engine_calibrations():
            base = engine.written(base, self.machine, self.fit, self.source)
        if self.curve_points:
            changes["loaded_latency"] = tuple(self.curve_points)
        made = base.model_copy(update=changes)
        build_machine(made)
        return made

    def _pairs(self) -> dict[str, Any]:
        """Distance classes and matrices of pairs, where the values are not nodes' own."""
        base, changes = self.machine.description, {}
        rows = list(base.distance_classes)
        for what, field in (("latency", "pair_latency"), ("bandwidth", "pair_bandwidth")):
            found = [
                (pair_class, value)
                for pair_class in self.classes
                if (value := self.quantities.get((what, pair_class.name))) is not None
            ]
            matrix = getattr(base, field)
            if matrix is None and any(
                not pair_class.local and self._class_of(pair_class) is None
                for pair_class, _ in found
            ):
                matrix = self._known_pairs(what)
            for pair_class, value in found:
                row = self._class_of(pair_class)
                if row is not None:
                    rows[row] = rows[row].model_copy(update={what: value})
                if matrix is not None:
                    matrix = _filled(matrix, pair_class, value)
            if matrix is not None:
                changes[field] = matrix
        if rows:
            changes["distance_classes"] = tuple(rows)
        return changes

    def _class_of(self, pair_class: PairClass) -> int | None:
        """The distance class that holds for these pairs."""
        row = int(self.machine.distance_class[pair_class.mask][0])
        return row if row >= 0 else None

    def _known_pairs(self, what: str) -> Matrix:
        """The table of all pairs as it is, where the file has none."""
        table = self.machine.latency_ns if what == "latency" else self.machine.bandwidth_Bps
        scale = 1e-9 if what == "latency" else 1.0
        return tuple(
            tuple(None if math.isnan(x) else _exact(float(f"{x * scale:.12g}")) for x in row)
            for row in table.tolist()
        )

    def _node_type(self, name: str, kind: Any) -> Any:
        changes: dict[str, Any] = {}
        memory: dict[str, Any] = {}
        for pair_class in self.classes:
            if pair_class.local and name in self._types(pair_class):
                for what in ("latency", "bandwidth"):
                    if (value := self.quantities.get((what, pair_class.name))) is not None:
                        memory[what] = value
        for key, field in (("misses", "outstanding_misses"), ("streaming", "streaming_misses")):
            if (value := self.quantities.get((key, name))) is not None:
                changes[field] = _fact(value)
        if (value := self.quantities.get(("turnaround", name))) is not None:
            memory["write_turnaround"] = _fact(value, WriteTurnaround)
        if memory:
            changes["memory"] = kind.memory.model_copy(update=memory)
        caches = tuple(
            cache.model_copy(update={"latency": value})
            if (value := self.quantities.get(("cache", name, str(cache.level)))) is not None
            else cache
            for cache in kind.caches
        )
        if caches != kind.caches:
            changes["caches"] = caches
        return kind.model_copy(update=changes)

    def _types(self, pair_class: PairClass) -> set[str]:
        """Types of the nodes whose own pairs are of this class."""
        ids = {self.machine.nodes[k].id for k in np.flatnonzero(np.diag(pair_class.mask)).tolist()}
        found = set()
        for group in self.machine.description.nodes:
            first, last = group.id_range()
            if ids & set(range(first, last + 1)):
                found.add(group.type)
        return found


def curve_points(fit: Fit, machine: Machine, text: str) -> list[LoadedPoint]:
    """The fitted curve as points, each with its interval; none where it was not fitted.

    ``machine``: with the fitted values. What was not determined of the curve is the start's.
    """
    keys = [("curve", name) for name in ("base", *CURVE)]
    if not any(key in fit.estimates for key in keys[1:]):
        return []
    points = []
    peak = peak_Bps(machine)
    known = fit.known
    for load in KNOTS.tolist():

        def latency_s(values: Mapping[Key, float], load: float = load) -> float:
            shape = (values["curve", name] for name in CURVE)
            return values["curve", "base"] * float(curve(np.array([load]), *shape)[0])

        value = latency_s(known)
        half = fit.half_width(lambda values: math.log(latency_s({**known, **values})))
        points.append(
            LoadedPoint(
                bandwidth=_exact(rounded(load * peak)),
                latency=Quantity(
                    rounded(value),
                    rounded(value * math.exp(-half)),
                    rounded(value * math.exp(half)),
                    text,
                ),
            )
        )
    return points


def _filled(matrix: Matrix, pair_class: PairClass, value: Quantity) -> Matrix:
    return tuple(
        tuple(value if pair_class.mask[i, j] else old for j, old in enumerate(row))
        for i, row in enumerate(matrix)
    )


def _fact(value: Quantity, kind: type[Fact] = Fact) -> Fact:
    return kind(value=value.value, range=(value.low, value.high), source=value.source)


def _exact(value: float) -> Quantity:
    return Quantity(value, value, value)
