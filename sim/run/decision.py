"""Which of two runs does more, how sure that is, what a wrong choice costs, what would settle it.

Both are predicted with the same draws of the same doubts, so that what they have in common cancels.
The regret of choosing one is what the other does more, where it does, on average over the draws.
What learning one doubt is worth is by how much the best choice's regret falls if one may choose
after it is known (the expected value of partial perfect information), with the difference as a
linear function of its draws (Strong, Oakley and Brennan, Medical Decision Making 34, 2014).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..kernel.arrays import Floats
from .comparison import difference, predicts
from .doubts import drawn
from .model_error import RATIO, class_of, known_error
from .record import Record
from .uncertainty import DRAWS, LEVEL, POINTS, bounds, limited, shift_of

EQUAL = 0.005  # relative; what differs by less decides nothing
SIGNIFICANT = 0.05  # over all doubts together
FACTS, REPLICATIONS, MODEL = "facts and assumptions", "replications", "the model's error"


def decision(
    first: Record, other: Record, operation: str, but_source: str | None = None, factor: float = 1.0
) -> dict[str, Any] | None:
    """How sure it is that ``other`` does more of an operation than ``first``, or than so many times
    (``factor``) as much; evidence of a source (``but_source``) says nothing of what the model may
    be wrong by.

    Returns
    -------
    dict | None
        ``operation``; ``ratio`` of the other to the first, its ``interval`` at ``level`` (without
        what the model may be wrong by: ``facts_interval``), and
        what it comes from (``causes``); ``share``: the probability that the other does more,
        and ``equal``: that both differ by less than ``EQUAL``; ``regret``: of choosing the first
        and of choosing the other, in parts of what the better one does; ``measure``: what would
        lower that most if it were known (``name``, ``setting``), and by what part (``share``), or
        None. None of all this where nothing is known of the difference.
    """
    values = (first.throughput.get(operation), other.throughput.get(operation))
    if not values[0] or values[1] is None:
        return None
    path, ratio = ("throughput", operation), values[1] / values[0]
    own, its = shift_of(first, path), shift_of(other, path)
    facts = ratio * its / np.where(own > 0.0, own, np.nan)
    facts = np.where(np.isfinite(facts), facts, ratio)
    chance = _ratio_draws(first, other, operation, (values[0], values[1]))
    causes = [] if np.allclose(own, its, rtol=1e-9) else [FACTS]
    causes += [REPLICATIONS] if chance.any() else []
    factors = _model_factors(first, other, operation, but_source)
    if not causes and not predicts(first, other) and factors.size == 1:
        return None
    drawn_ones = np.add.outer(facts, chance)  # each draw of the facts meets each part of chance
    found = drawn_ones[..., np.newaxis] * factors[:, np.newaxis]
    more = found / factor - 1.0
    causes += [MODEL] if factors.size > 1 else []
    losses = [float(np.maximum(more, 0.0).mean()), float(np.maximum(-more, 0.0).mean())]
    better = 1.0 + losses[0]  # of each draw, in parts of the first
    return {
        "operation": operation,
        "ratio": ratio,
        "level": LEVEL,
        "interval": bounds(found),
        "facts_interval": bounds(drawn_ones),
        "causes": causes,
        "share": float(((more > 0.0) + 0.5 * (more == 0.0)).mean()),
        "equal": float((abs(drawn_ones - 1.0) <= EQUAL).mean()),
        "regret": [loss / better for loss in losses],
        "measure": measure_first(
            doubts_in(first) | doubts_in(other), facts[np.newaxis] - 1.0, chance, min(losses)
        ),
    }


def level_errors(record: Record, operation: str, but_source: str | None = None) -> Floats:
    """(POINTS,) what such predictions may be off by, as logarithms."""
    return np.log(known_error(class_of(record, operation), but_source).factors)


def ratio_errors(record: Record, operation: str | None, but_source: str | None = None) -> Floats:
    """(POINTS,) what ratios of such predictions may be off by, as logarithms."""
    return np.log(known_error(class_of(record, operation, RATIO), but_source).factors)


def _model_factors(first: Record, other: Record, operation: str, but_source: str | None) -> Floats:
    """(1 or DRAWS, POINTS) by what the model's ratio may be off, each of two predictions as far as
    ``limited``; 1 of what was run exactly, and of one scenario. Of a prediction and what it
    predicts, what the model's level may be. What one system can do is off by the same for any
    number of arrivals.
    """
    uncertain = [record for record in (first, other) if record.uncertainty]
    alike = first.scenario_hash == other.scenario_hash
    if predicts(first, other) and uncertain:
        errors = level_errors(uncertain[0], operation, but_source)
    elif alike or len(uncertain) < 2 or not uncertain[0].uncertainty.get("model"):
        return np.ones((1, 1))
    else:
        errors = 0.5 * ratio_errors(first, operation, but_source)
    ends = ((first, -errors), (other, errors))
    if _one_system(first, other):
        errors = level_errors(first, operation, but_source)
        ends = ((first, errors), (other, errors))
    path = ("throughput", operation)
    # Of what was measured there is no error.
    own, its = (limited(one, path, np.exp(of if one.uncertainty else 0.0 * of)) for one, of in ends)
    return its / own


def _one_system(first: Record, other: Record) -> bool:
    """Whether both are predictions of open clients that differ in nothing else."""
    but_clients = [
        {**one.settings, "workload": {**one.settings.get("workload", {}), "clients": None}}
        for one in (first, other)
        if "offer" in one.uncertainty
    ]
    return len(but_clients) == 2 and but_clients[0] == but_clients[1]


def doubts_in(record: Record) -> dict[str, Mapping[str, Any]]:
    """The doubts that were drawn for a record, by their streams."""
    return {doubt["stream"]: doubt for doubt in record.uncertainty.get("doubts", ())}


def measure_first(
    doubts: Mapping[str, Mapping[str, Any]], more: Floats, chance: Floats, regret: float
) -> dict[str, Any] | None:
    """The doubt that is worth most, by the part of the ``regret`` that it takes away; ``more``:
    (K, DRAWS) what each rival does more than the choice, relative.
    """
    if regret <= 0.0:
        return None
    means = more.mean(axis=1, keepdims=True)
    worth = {}
    for stream in doubts:
        fitted = [_fitted(stream, one, len(doubts) * len(more)) for one in more]
        if any(one is not None for one in fitted):
            worth[stream] = _worth(
                means + [np.zeros(DRAWS) if one is None else one for one in fitted]
            )
    named = {stream: (doubt["name"], doubt["setting"]) for stream, doubt in doubts.items()}
    if chance.any():
        worth[REPLICATIONS] = _worth(means + chance)
        named[REPLICATIONS] = (REPLICATIONS, REPLICATIONS)
    best = max(worth, key=lambda stream: worth[stream], default=None)
    if best is None or worth[best] <= 0.0:
        return None
    name, setting = named[best]
    return {"name": name, "setting": setting, "share": min(worth[best] / regret, 1.0)}


def _worth(more: Floats) -> float:
    """By how much regret falls if ``more`` (K, N), one of whose N columns is true, is known before
    a choice is made.
    """
    known = float(np.maximum(more.max(axis=0), 0.0).mean())
    return known - max(float(more.mean(axis=1).max()), 0.0)


def _fitted(stream: str, facts: Floats, tried: int) -> Floats | None:
    """(DRAWS,) by how much the ratio differs with a doubt, on average over the others: a straight
    line, drawn in by what chance makes of a slope; None where chance makes all of it.
    """
    parts = drawn(stream, DRAWS) - 0.5
    spread = facts - facts.mean()
    total = float(spread @ spread)
    if total <= 0.0:
        return None
    slope = float(parts @ spread) / float(parts @ parts)
    held = slope * slope * float(parts @ parts) / total  # the part of the variance
    from scipy.special import stdtr

    degrees = DRAWS - 2
    student = (held * degrees / max(1.0 - held, 1e-12)) ** 0.5
    if 2.0 * stdtr(degrees, -student) * tried > SIGNIFICANT:
        return None
    true = max(1.0 - (1.0 - held) * (DRAWS - 1) / degrees, 0.0)
    return np.asarray((slope * parts - (slope * parts).mean()) * (true / held) ** 0.5)


def _ratio_draws(
    first: Record, other: Record, operation: str, values: tuple[float, float]
) -> Floats:
    """By how much the ratio may be off by chance, at equal parts of its probability."""
    found = difference(("throughput", operation), values, (first, other), LEVEL)
    if found is None or found["ratio_interval"] is None:
        return np.zeros(1)
    low, high = found["ratio_interval"]
    return chance_of(high - low, LEVEL)


def chance_of(width: float, confidence: float) -> Floats:
    """(POINTS,) normal values at equal parts of probability, of an interval's width."""
    from scipy.special import ndtri

    parts = (np.arange(POINTS) + 0.5) / POINTS
    return np.asarray(0.5 * width * ndtri(parts) / ndtri(0.5 + 0.5 * confidence))
