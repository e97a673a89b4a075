"""What an inference says: hypotheses, figures that are explained or not, what to measure next."""

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..sim.run.doubts import Doubt
from .inference import ENOUGH, Inference
from .posterior import DEVIATIONS, Floats, error_weights, quantiles

PARTS = (0.05, 0.5, 0.95)
REMAINS = 0.05  # a hypothesis of less is left out
FAR = 3.0  # spreads, beyond which nothing explains a figure
NARROWED, FACTS = 0.8, 5  # of a fact's deviation before, and how many are named


@dataclass(frozen=True)
class Remaining:
    """A hypothesis by evidence: of ``choices`` their probabilities, else a 90% ``interval``, before
    which it was between ``values``.
    """

    name: str
    values: tuple[str, ...]
    choices: dict[str, float]
    interval: tuple[str, ...]


@dataclass(frozen=True)
class Explained:
    """A measured figure and what the draws that count predict (5%, 50%, 95%); ``spreads``: how many
    of its own spreads it lies from the nearest end of them.
    """

    figure: str
    measured: float
    predicted: tuple[float, ...]
    spreads: float
    unit: str


@dataclass(frozen=True)
class Next:
    """A figure that is not measured, and how many ``bits`` it would tell."""

    figure: str
    bits: float


def hypotheses(found: Inference) -> list[Remaining]:
    """What the scenarios name as unknown, then the facts that evidence narrows most."""
    named = [k for k, doubt in enumerate(found.doubts) if doubt.named]
    rows = [_remaining(found, k) for k in named]
    width = [_deviation(found.parts[:, k], found.weights) for k in range(len(found.doubts))]
    facts = [k for k in range(len(found.doubts)) if k not in named and width[k] < NARROWED]
    return rows + [_remaining(found, k) for k in sorted(facts, key=width.__getitem__)[:FACTS]]


def _deviation(parts: Floats, weights: Floats) -> float:
    """Of a doubt's parts, relative to that of the prior."""
    mean = float(weights @ parts)
    return math.sqrt(12.0 * float(weights @ (parts - mean) ** 2))


def _remaining(found: Inference, k: int) -> Remaining:
    doubt, parts = found.doubts[k], found.parts[:, k]
    if doubt.choices:
        count = len(doubt.choices)
        at = np.minimum((parts * count).astype(int), count - 1)
        shares = np.bincount(at, found.weights, minlength=count).tolist()
        names = [_value(doubt, (k + 0.5) / count) for k in range(count)]
        return Remaining(doubt.setting, tuple(names), dict(zip(names, shares, strict=True)), ())
    ends = tuple(_value(doubt, part) for part in (0.0, 1.0))
    interval = tuple(_value(doubt, p) for p in quantiles(parts, found.weights, PARTS))
    return Remaining(doubt.setting, ends, {}, interval)


def _value(doubt: Doubt, part: float) -> str:
    """The value at a part of its probability, as a setting has it; its own where none states it."""
    own = f"{doubt.assumption.value} {doubt.assumption.unit}".rstrip()
    return next((_short(value) for value in doubt.at(part).values()), _short(own))


def _short(value: Any) -> str:
    number, space, unit = str(value).partition(" ")
    try:
        return f"{float(number):.4g}{space}{unit}"
    except ValueError:
        return str(value)


def explained(found: Inference) -> list[Explained]:
    """All that was measured, the least explained first."""
    rows = []
    for k, figure in enumerate(found.figures):
        if math.isnan(figure.measured):
            continue
        logs = np.nan_to_num(found.logs[:, k], nan=-99.0)
        low, middle, high = quantiles(logs, found.weights, PARTS)
        at = math.log(figure.measured)
        off = max(low - at, at - high, 0.0) / figure.spread
        predicted = tuple(math.exp(end) for end in (low, middle, high))
        unit = "B/s" if figure.path[0] == "bandwidth_Bps" else "/s"
        rows.append(Explained(figure.label, figure.measured, predicted, off, unit))
    return sorted(rows, key=lambda row: -row.spreads)


def next_runs(found: Inference) -> list[Next]:
    """What is not measured, by what it would tell: of its variance between the draws that count,
    over that of its own spread and of the model's error.
    """
    rows = []
    for k, figure in enumerate(found.figures):
        logs = found.logs[:, k]
        known = np.isfinite(logs) & (found.weights > 0.0)
        if not math.isnan(figure.measured) or not known.any():
            continue
        weights = found.weights[known] / found.weights[known].sum()
        variance = float(weights @ (logs[known] - float(weights @ logs[known])) ** 2)
        model = float(error_weights(figure.of, figure.source) @ np.minimum(DEVIATIONS, 1.0) ** 2)
        noise = figure.spread**2 + model
        rows.append(Next(figure.label, 0.5 * math.log2(1.0 + variance / noise)))
    return sorted(rows, key=lambda row: -row.bits)


def warnings(found: Inference) -> Iterator[str]:
    """What to know before any of it is believed."""
    if found.effective < ENOUGH:
        yield (
            f"only {found.effective:.0f} of {len(found.weights):,} draws count: evidence is much "
            "narrower than what was drawn, and intervals are rough"
        )
    for row in explained(found):
        if row.spreads > FAR:
            yield (
                f"nothing named here explains {row.figure}: it is {row.spreads:.1f} times its "
                "spread from what is predicted; the model, or an unnamed condition, differs there"
            )


def as_json(found: Inference) -> dict[str, Any]:
    """All of it as plain values."""
    return {
        "scenarios": list(found.scenarios),
        "draws": len(found.weights),
        "effective": found.effective,
        "hypotheses": [asdict(row) for row in hypotheses(found)],
        "figures": [asdict(row) for row in explained(found)],
        "next": [asdict(row) for row in next_runs(found)],
        "warnings": list(warnings(found)),
    }


def narrowed(found: Inference) -> dict[str, Any]:
    """``unknown`` of a scenario as evidence leaves it, and of the facts that it narrows most:
    choices that remain, 90% intervals.
    """
    doubts = {doubt.setting: doubt for doubt in found.doubts if doubt.setting != doubt.stream}
    left: dict[str, Any] = {}
    for row in (row for row in hypotheses(found) if row.name in doubts):
        likely = [value for value, share in row.choices.items() if share >= REMAINS]
        values = [_plain(value) for value in likely or dict.fromkeys(row.interval[::2])]
        if likely or len(values) == 1:
            left[row.name] = values
        elif doubts[row.name].named or row.name.startswith("machine."):
            left[row.name] = {"from": values[0], "to": values[1]}
    return left


def _plain(text: str) -> Any:
    """As YAML has it."""
    with suppress(ValueError):
        return int(text) if text.isdigit() else float(text)
    return text
