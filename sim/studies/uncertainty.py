"""Uncertainty of a prediction: what it leans on, and its random draws, together.

All doubts (facts with a range, assumptions; see ``doubts``) are drawn together, as a Latin
hypercube; of each draw the first moments are predicted, relative to those of the facts as they are
(``what_if``). Of a random run, what the next replication would differ by is drawn too, Student's t
of the replications' deviation (Law, Simulation Modeling and Analysis, 4.5; a prediction interval).
What the model itself is wrong by is in none of it: ``numatwin crossvalidate`` says that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from ...inputs import DescriptionError, InputError
from ...inputs.shared_work import SharedWork, shared
from ..machine.assumptions import Place, Variant
from ..run.assumptions import varied
from ..run.comparison import difference, settled
from ..run.plane_names import REAL
from ..run.record import Record, part_at
from ..run.scenario import Scenario
from ..run.what_if import Predictor
from .doubts import Doubt, Floats, doubts_of, merged

LEVEL = 0.9
DRAWS = 32
PARTS = 100  # of what chance may do
TRIED, NAMED = 6, 2
NOTICED = 0.005


def with_uncertainty(
    record: Record, scenario: Scenario, progress: Callable[[float], None] | None = None
) -> Record:
    """The Record of a run of ``scenario`` with its ``uncertainty``, and a ``fact_range`` that holds
    what was drawn; as it is where the run did not settle. Raises InputError of what was measured.
    """
    if scenario.plane in REAL:
        raise InputError("--uncertainty", token=scenario.plane, expected="a plane that predicts")
    if not settled([record]):
        return record
    with shared(SharedWork()):  # variants have most of the machine in common
        doubts = doubts_of(scenario)
        shifts, most = _drawn_doubts(record, scenario, doubts, progress)
    throughput = {
        name: _bounds(np.add.outer(value * shifts[name], _by_chance(record, name)))
        for name, value in record.throughput.items()
    }
    return replace(
        record,
        fact_range=_widened(record, shifts),
        uncertainty={
            "level": LEVEL,
            "facts": [doubt.name for doubt in doubts],
            "most": most,
            "throughput": throughput,
            "shifts": {name: shift.tolist() for name, shift in shifts.items()},
        },
    )


def _drawn_doubts(
    record: Record,
    scenario: Scenario,
    doubts: tuple[Doubt, ...],
    progress: Callable[[float], None] | None,
) -> tuple[dict[str, Floats], list[dict[str, Any]]]:
    """(DRAWS,) by what each draw of the doubts multiplies the throughput of each operation, and the
    doubts that decide most. A draw that contradicts itself, or that the scenario cannot run with,
    leaves it as it is.
    """
    shifts = {name: np.ones(DRAWS) for name in record.throughput}
    if not doubts:
        return shifts, []
    predictor = Predictor(scenario)
    own = predictor.own.throughput
    parts = np.column_stack([doubt.draws(DRAWS) for doubt in doubts])
    for k in range(DRAWS):
        with suppress(InputError, DescriptionError):
            found = predictor(varied(scenario, merged(doubts, parts[k]))).throughput
            for name, shift in shifts.items():
                if own.get(name):
                    shift[k] += predictor.relative(found[name] / own[name] - 1.0)
        if progress is not None:
            progress((k + 1) / DRAWS)
    return shifts, _most(scenario, predictor, doubts, parts, shifts)


def _most(
    scenario: Scenario,
    predictor: Predictor,
    doubts: tuple[Doubt, ...],
    parts: Floats,
    shifts: Mapping[str, Floats],
) -> list[dict[str, Any]]:
    """Of the doubts that decide most: the ``name`` (the field that
    states it), and from what to what throughput changes at the
    ends of its range (``low``, ``high``, relative), the others as they are. Looked for among those
    that the draws' ranks follow most.
    """
    total = np.mean(list(shifts.values()), axis=0) if shifts else np.ones(DRAWS)
    ranks = total.argsort().argsort()
    followed = [abs(float(np.corrcoef(part.argsort().argsort(), ranks)[0, 1])) for part in parts.T]
    found = []
    for k in np.argsort(followed)[::-1][:TRIED]:
        ends = [_change(scenario, predictor, doubts[k].at(part)) for part in (0.0, 1.0)]
        if max(ends) - min(ends) >= NOTICED:
            found.append({"name": doubts[k].setting, "low": min(ends), "high": max(ends)})
    return sorted(found, key=lambda one: one["low"] - one["high"])[:NAMED]


def _change(scenario: Scenario, predictor: Predictor, settings: Mapping[Place, Any]) -> float:
    """By what the settings change all throughput, relative to none; 0 where they cannot be had."""
    with suppress(InputError, DescriptionError):
        found = predictor(varied(scenario, Variant("an end", settings)))
        own = sum(predictor.own.throughput.values())
        return predictor.relative(sum(found.throughput.values()) / own - 1.0) if own else 0.0
    return 0.0


def _widened(record: Record, shifts: Mapping[str, Floats]) -> dict[str, Any]:
    """The range of facts over corners and draws: an extreme need not be at a corner."""
    ranges = record.fact_range.get("throughput", {})
    wide = {
        name: [
            min(low, record.throughput[name] * float(shifts[name].min())),
            max(high, record.throughput[name] * float(shifts[name].max())),
        ]
        for name, (low, high) in ranges.items()
    }
    return {**record.fact_range, "throughput": wide} if wide else {}


def beats(first: Record, other: Record, operation: str) -> dict[str, Any] | None:
    """How sure it is that ``other`` does more of an operation than ``first``, given the doubts of
    both, and their random draws: ``share`` of what may be in which it does, ``ratio``, its
    ``interval`` at ``level``, and the ``causes`` of it. None where either has no uncertainty, or
    none that says anything of the difference: doubts are drawn for the first moments, in which
    policies that only act later are alike.

    The same doubts have the same draws in both.
    """
    if not (first.uncertainty and other.uncertainty) or not first.throughput.get(operation):
        return None
    own, its = (
        np.asarray(record.uncertainty["shifts"].get(operation, ()), dtype=np.float64)
        for record in (first, other)
    )
    if len(own) != DRAWS or len(its) != DRAWS:
        return None
    values = (first.throughput[operation], other.throughput[operation])
    ratio = values[1] / values[0]
    chance = _ratio_draws(first, other, operation, values)
    causes = [] if np.allclose(own, its, rtol=1e-9) else ["facts and assumptions"]
    causes += ["replications"] if chance.any() else []
    if not causes:
        return None
    # Each draw of the facts meets each tenth of what chance may do.
    found = np.add.outer(ratio * its / own, chance)
    share = float(((found > 1.0) + 0.5 * (found == 1.0)).mean())
    return {
        "operation": operation,
        "ratio": ratio,
        "level": LEVEL,
        "interval": _bounds(found),
        "share": share,
        "causes": causes,
    }


def _ratio_draws(
    first: Record, other: Record, operation: str, values: tuple[float, float]
) -> Floats:
    """By how much the ratio may be off by chance, at equal parts of its probability."""
    from scipy.special import ndtri

    found = difference(("throughput", operation), values, (first, other), LEVEL)
    if found is None or found["ratio_interval"] is None:
        return np.zeros(1)
    low, high = found["ratio_interval"]
    parts = (np.arange(PARTS) + 0.5) / PARTS
    return np.asarray(0.5 * (high - low) * ndtri(parts) / ndtri(0.5 + 0.5 * LEVEL))


def _by_chance(record: Record, operation: str) -> Floats:
    """By how much one more replication may differ, at equal parts of its probability."""
    found = part_at(record.replicates, ("throughput", operation))
    if not isinstance(found, (list, tuple)) or len(found) < 2:
        return np.zeros(1)
    from scipy.special import stdtrit

    count = len(found)
    deviation = float(np.std(found, ddof=1)) * math.sqrt(1.0 + 1.0 / count)
    return np.asarray(deviation * stdtrit(count - 1, (np.arange(PARTS) + 0.5) / PARTS))


def _bounds(values: Floats) -> list[float]:
    ends = (0.5 - 0.5 * LEVEL, 0.5 + 0.5 * LEVEL)
    low, high = np.quantile(values, ends, method="hazen")
    return [max(float(low), 0.0), float(high)]
