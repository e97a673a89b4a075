"""From a fit to a machine file: each fitted value in its place, with interval, source and date."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...inputs import Quantity
from ...inputs.quantities import rounded
from ...topologies import build_machine
from ...topologies.machine import Machine
from ...topologies.schema import LoadedPoint, MachineDescription
from ...topologies.schema_types import Fact, WriteTurnaround
from .fit import Fit, fitted_quantities
from .parameters import ATOMIC_KEY, CURVE, KNOTS, LINE_KEY, Key, PairClass, curve
from .predictions import Candidate, engine_calibrations, peak_Bps

Matrix = tuple[tuple[Quantity | None, ...], ...]


def written(
    machine: Machine,
    classes: Sequence[PairClass],
    fit: Fit,
    source: Mapping[Key, str],
    calibrated_on: tuple[str, ...],
) -> MachineDescription:
    """The description of ``machine`` with what was fitted, which builds; ``source``: by key, the
    text on where it is from.
    """
    base, quantities = machine.description, fitted_quantities(fit, source)

    def quantified(
        figures: Callable[[Mapping[Key, float]], Mapping[Any, float]],
        keys: Callable[[Any], Sequence[Key]],
    ) -> Mapping[Any, Quantity]:
        return fit.quantities(
            figures, lambda name: next(source[key] for key in keys(name) if key in source)
        )

    changes: dict[str, Any] = {"calibrated_on": (*base.calibrated_on, *calibrated_on)}
    changes |= _pairs(machine, classes, quantities)
    changes["node_types"] = {
        name: _node_type(machine, classes, quantities, name, kind)
        for name, kind in base.node_types.items()
    }
    if base.processes is not None:
        words = {"word_add": quantities.get(ATOMIC_KEY), "line": quantities.get(LINE_KEY)}
        known = {name: value for name, value in words.items() if value is not None}
        changes["processes"] = base.processes.model_copy(update=known)
    if any(("curve", part) in fit.estimates for part in CURVE):
        changes["loaded_latency"] = _curve_points(machine, classes, fit, source)
    for engine in engine_calibrations():
        base = engine.written(base, machine, quantified)
    made = base.model_copy(update=changes)
    build_machine(made)
    return made


def _pairs(
    machine: Machine, classes: Sequence[PairClass], quantities: Mapping[Key, Quantity]
) -> dict[str, Any]:
    """Distance classes and matrices of pairs, where the values are not nodes' own."""
    base, changes = machine.description, dict[str, Any]()
    rows = list(base.distance_classes)
    for what, field in (("latency", "pair_latency"), ("bandwidth", "pair_bandwidth")):
        # Of each fitted class of pairs, the distance class that holds for it, below 0 of none.
        found = [
            (one, int(machine.distance_class[one.mask][0]), quantities[what, one.name])
            for one in classes
            if (what, one.name) in quantities
        ]
        matrix = getattr(base, field)
        if matrix is None and any(not one.local and row < 0 for one, row, _ in found):
            matrix = _known_pairs(machine, what)
        for one, row, value in found:
            if row >= 0:
                rows[row] = rows[row].model_copy(update={what: value})
            if matrix is not None:
                matrix = _filled(matrix, one, value)
        if matrix is not None:
            changes[field] = matrix
    return {**changes, "distance_classes": tuple(rows)} if rows else changes


def _known_pairs(machine: Machine, what: str) -> Matrix:
    """The table of all pairs as it is, where the file has none."""
    table = machine.latency_ns * 1e-9 if what == "latency" else machine.bandwidth_Bps
    return tuple(
        tuple(None if math.isnan(x) else Quantity.exact(float(f"{x:.12g}")) for x in row)
        for row in table.tolist()
    )


def _node_type(
    machine: Machine,
    classes: Sequence[PairClass],
    quantities: Mapping[Key, Quantity],
    name: str,
    kind: Any,
) -> Any:
    changes: dict[str, Any] = {}
    memory: dict[str, Any] = {}
    types = machine.description.type_of_node()
    for pair_class in classes:
        own = np.flatnonzero(np.diag(pair_class.mask)).tolist() if pair_class.local else []
        for what in ("latency", "bandwidth"):
            value = quantities.get((what, pair_class.name))
            if value is not None and any(types[machine.nodes[k].id] == name for k in own):
                memory[what] = value
    for key, field in (("misses", "outstanding_misses"), ("streaming", "streaming_misses")):
        if (value := quantities.get((key, name))) is not None:
            changes[field] = _fact(value)
    if (value := quantities.get(("turnaround", name))) is not None:
        memory["write_turnaround"] = _fact(value, WriteTurnaround)
    if memory:
        changes["memory"] = kind.memory.model_copy(update=memory)
    caches = [quantities.get(("cache", name, str(cache.level))) for cache in kind.caches]
    if any(caches):
        changes["caches"] = tuple(
            cache if value is None else cache.model_copy(update={"latency": value})
            for cache, value in zip(kind.caches, caches, strict=True)
        )
    return kind.model_copy(update=changes)


def _curve_points(
    machine: Machine, classes: Sequence[PairClass], fit: Fit, source: Mapping[Key, str]
) -> tuple[LoadedPoint, ...]:
    """The fitted curve as points, each with its interval. What was not determined of the curve is
    the start's.
    """

    def latency_s(values: Mapping[Key, float]) -> dict[float, float]:
        ratios = curve(KNOTS, *(values["curve", name] for name in CURVE))
        return dict(zip(KNOTS.tolist(), values["curve", "base"] * ratios, strict=True))

    text = next(text for key, text in source.items() if key[0] == "curve")
    peak = peak_Bps(Candidate(machine, classes, fit.known).machine)
    points = fit.quantities(latency_s, lambda load: text).items()
    return tuple(
        LoadedPoint(bandwidth=Quantity.exact(rounded(load * peak)), latency=value)
        for load, value in points
    )


def _filled(matrix: Matrix, pair_class: PairClass, value: Quantity) -> Matrix:
    return tuple(
        tuple(value if pair_class.mask[i, j] else old for j, old in enumerate(row))
        for i, row in enumerate(matrix)
    )


def _fact(value: Quantity, kind: type[Fact] = Fact) -> Fact:
    return kind(value=value.value, range=(value.low, value.high), source=value.source)
