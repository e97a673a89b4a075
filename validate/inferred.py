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
NOTHING = 1e-9  # of a figure, which counts as none of it
NARROWED, FACTS = 0.8, 5  # of a fact's deviation before, and how many are named


@dataclass(frozen=True)
class Remaining:
    """A hypothesis by evidence: of ``choices`` their probabilities, else a 90% ``interval``, before
    which it was between ``values``, or one of them as likely as ``before`` says. ``impossible``:
    those of which no draw can be run.
    """

    name: str
    values: tuple[str, ...]
    choices: dict[str, float]
    interval: tuple[str, ...]
    before: tuple[float, ...] = ()
    impossible: tuple[str, ...] = ()


@dataclass(frozen=True)
class Explained:
    """A measured figure and what the draws that count predict (5%, 50%, 95%); ``spreads``: how many
    of its own spreads it lies from the nearest end of them. ``row``: of the evidence, from 1.
    """

    row: int
    scenario: str
    figure: str
    measured: float
    predicted: tuple[float, ...]
    spreads: float
    unit: str


@dataclass(frozen=True)
class Next:
    """A figure that is not measured, and how many ``bits`` it would tell."""

    row: int
    scenario: str
    figure: str
    bits: float


def hypotheses(found: Inference) -> list[Remaining]:
    """What the scenarios name as unknown, then the facts that evidence narrows most."""
    return [_remaining(found, k) for k in _shown(found)]


def _shown(found: Inference) -> list[int]:
    named = [k for k, doubt in enumerate(found.doubts) if doubt.named]
    width = [_deviation(found.parts[:, k], found.weights) for k in range(len(found.doubts))]
    facts = [k for k in range(len(found.doubts)) if k not in named and width[k] < NARROWED]
    return named + sorted(facts, key=width.__getitem__)[:FACTS]


def _deviation(parts: Floats, weights: Floats) -> float:
    """Of a doubt's parts, relative to that of the prior."""
    mean = float(weights @ parts)
    return math.sqrt(12.0 * float(weights @ (parts - mean) ** 2))


def _remaining(found: Inference, k: int) -> Remaining:
    doubt, parts = found.doubts[k], found.parts[:, k]
    if doubt.choices:
        at, count = doubt.chosen(parts), len(doubt.choices)
        shares = np.bincount(at, found.weights, minlength=count).tolist()
        names = tuple(str(value) for one in doubt.choices for value in one.settings.values())
        before = tuple(weight / sum(doubt.weights) for weight in doubt.weights)
        drawn, run = (np.bincount(at[one], minlength=count) for one in (at >= 0, found.runs))
        not_run = tuple(names[i] for i in np.flatnonzero((drawn > 0) & (run == 0)).tolist())
        choices = dict(zip(names, shares, strict=True))
        return Remaining(doubt.setting, names, choices, (), before, not_run)
    ends = tuple(_short(_setting(doubt, part)) for part in (0.0, 1.0))
    now = quantiles(parts, found.weights, PARTS)
    interval = tuple(_short(_setting(doubt, part)) for part in now)
    return Remaining(doubt.setting, ends, {}, interval)


def _setting(doubt: Doubt, part: float) -> Any:
    """The value at a part of its probability; its own where no setting states it."""
    own = f"{doubt.assumption.value} {doubt.assumption.unit}".rstrip()
    return next(iter(doubt.at(part).values()), own)


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
        rates = np.exp(found.logs[found.runs, k])
        predicted = tuple(quantiles(rates, found.weights[found.runs], PARTS))
        low, _, high = (math.log(max(rate / figure.measured, NOTHING)) for rate in predicted)
        off, of = max(low, -high, 0.0) / figure.spread, (figure.run + 1, figure.scenario)
        unit = "B/s" if figure.path[0] == "bandwidth_Bps" else "/s"
        rows.append(Explained(*of, figure.label, figure.measured, predicted, off, unit))
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
        bits = 0.5 * math.log2(1.0 + variance / noise)
        rows.append(Next(figure.run + 1, figure.scenario, figure.label, bits))
    return sorted(rows, key=lambda row: -row.bits)


def warnings(found: Inference) -> Iterator[str]:
    """What to know before any of it is believed."""
    if not found.runs.all():
        left, count = np.count_nonzero(~found.runs), len(found.runs)
        yield (
            f"{left:,} of {count:,} draws cannot be run, and are left out: evidence says nothing "
            f"of them. The first: {found.refusal}"
        )
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
    choices that remain, as likely as they are, 90% intervals.
    """
    left: dict[str, Any] = {}
    for k in _shown(found):
        doubt, row = found.doubts[k], _remaining(found, k)
        if doubt.choices:
            shares = [float(f"{share:.3g}") for share in row.choices.values()]
            kept = [i for i, share in enumerate(shares) if share >= min(REMAINS, max(shares))]
            values = [value for i in kept for value in doubt.choices[i].settings.values()]
            several = {"choices": values, "weights": [shares[i] for i in kept]}
            left[row.name] = several if len(values) > 1 else values
        elif doubt.setting != doubt.stream:
            ends = quantiles(found.parts[:, k], found.weights, PARTS[::2])
            values = list(dict.fromkeys(_rounded(_setting(doubt, part)) for part in ends))
            if len(values) == 1:
                left[row.name] = values
            elif doubt.named or row.name.startswith("machine."):
                left[row.name] = {"from": values[0], "to": values[1]}
    return left


def _rounded(value: Any) -> Any:
    """As YAML has it; a whole number as it is."""
    with suppress(ValueError):
        return value if isinstance(value, int) else float(_short(value))
    return _short(value)
