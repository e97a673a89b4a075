"""Uncertainty of a prediction: its machine's uncertain facts and its random draws together.

Facts are drawn uniformly from their ranges, all together (a Latin hypercube); of each draw the
first moments are predicted, relative to those of the facts as they are (``what_if``). Of a random
run, what the next replication would differ by is drawn too, Student's t of the replications'
deviation (Law, Simulation Modeling and Analysis, 4.5; a prediction interval). What the model itself
is wrong by is in none of it: ``numatwin crossvalidate`` says that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...inputs import InputError
from ..kernel.streams import stream_key
from ..run.comparison import difference
from ..run.record import Record, part_at
from ..run.scenario import Scenario
from ..run.what_if import Predictor
from ..systems.registry import system_of
from .base import settings_of
from .designs import latin_hypercube
from .sensitivity import machine_facts

Floats = npt.NDArray[np.float64]

LEVEL = 0.9
DRAWS = 100
SEED = 1  # the same draws for all runs: two records of one machine have the same facts


def with_uncertainty(
    record: Record,
    scenario: Scenario,
    load: Callable[[Sequence[str]], Scenario],
    progress: Callable[[float], None] | None = None,
) -> Record:
    """The Record of a run of ``scenario`` with its ``uncertainty``, and a ``fact_range`` that holds
    what was drawn. ``load`` makes the scenario with further settings. Raises InputError of what was
    measured.
    """
    if scenario.plane == "native":
        raise InputError("--uncertainty", token="native", expected="a plane that predicts")
    reads = system_of(scenario.system).reads
    factors = [f for f in machine_facts(scenario) if reads(f.path.removeprefix("machine."))]
    shifts = {name: np.ones(DRAWS) for name in record.throughput}
    if factors:
        predictor = Predictor(scenario)
        design = latin_hypercube(factors, DRAWS, SEED)
        paths, units = ([getattr(f, what) for f in factors] for what in ("path", "unit"))
        own = predictor.own.throughput
        for k, values in design.points():
            settings, _ = settings_of(paths, units, values)
            found = predictor(load(settings)).throughput
            for name, shift in shifts.items():
                if own.get(name):
                    shift[k] += predictor.relative(found[name] / own[name] - 1.0)
            if progress is not None:
                progress((k + 1) / DRAWS)
    throughput = {
        name: _bounds(value * shifts[name] + _drawn(record, name))
        for name, value in record.throughput.items()
    }
    return replace(
        record,
        fact_range=_widened(record, shifts),
        uncertainty={
            "level": LEVEL,
            "facts": [factor.path for factor in factors],
            "throughput": throughput,
            "shifts": {name: shift.tolist() for name, shift in shifts.items()},
        },
    )


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
    """How sure it is that ``other`` does more of an operation than ``first``, given the uncertain
    facts of both, and their random draws: ``share`` of what may be in which it does, ``ratio``, and
    its ``interval`` at ``level``. None where either has no uncertainty.

    Records of the same machine are held against each other with the same facts.
    """
    if not (first.uncertainty and other.uncertainty) or not first.throughput.get(operation):
        return None
    own, its = (
        np.asarray(record.uncertainty["shifts"].get(operation, ())) for record in (first, other)
    )
    if len(own) != DRAWS or len(its) != DRAWS:
        return None
    if first.machine != other.machine or first.uncertainty["facts"] != other.uncertainty["facts"]:
        its = np.random.default_rng(stream_key(SEED, 0, "other machine")).permutation(its)
    values = (first.throughput[operation], other.throughput[operation])
    ratio = values[1] / values[0]
    chance = _ratio_draws(first, other, operation, values)
    # Each draw of the facts meets each tenth of what chance may do.
    found = np.add.outer(ratio * its / own, chance)
    share = float(((found > 1.0) + 0.5 * (found == 1.0)).mean())
    return {
        "operation": operation,
        "ratio": ratio,
        "level": LEVEL,
        "interval": _bounds(found),
        "share": share,
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
    parts = (np.arange(20) + 0.5) / 20
    return np.asarray(0.5 * (high - low) * ndtri(parts) / ndtri(0.5 + 0.5 * LEVEL))


def _drawn(record: Record, operation: str) -> Floats:
    """By how much one more replication may differ, for each draw of the facts."""
    found = part_at(record.replicates, ("throughput", operation))
    if not isinstance(found, (list, tuple)) or len(found) < 2:
        return np.zeros(DRAWS)
    from scipy.special import stdtrit

    count = len(found)
    deviation = float(np.std(found, ddof=1)) * math.sqrt(1.0 + 1.0 / count)
    parts = (np.arange(DRAWS) + 0.5) / DRAWS
    rng = np.random.default_rng(stream_key(SEED, 0, f"replications/{operation}"))
    return np.asarray(deviation * rng.permutation(stdtrit(count - 1, parts)))


def _bounds(values: Floats) -> list[float]:
    low, high = np.quantile(values, (0.5 - 0.5 * LEVEL, 0.5 + 0.5 * LEVEL))
    return [max(float(low), 0.0), float(high)]
