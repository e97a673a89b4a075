"""Which record is faster, how sure that is, and what would settle it: in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..sim.run.record import Record
    from ..sim.studies.regret import UnderDoubt

SURE = 0.995  # beyond it, a probability is said as more than 99%
# Words for probabilities from each on (Mastrandrea et al., Guidance Note of the IPCC, 2010).
LIKELY = ((0.99, "almost certainly"), (0.9, "very likely"), (0.66, "likely"))
SETTLES = 0.8  # of the regret
NO_FACT = "No single fact would settle it: run one of them for real, which 'numatwin infer' weighs."
# What 'numatwin machine measure' finds of a host, by the beginning of the field's path.
MEASURED = (
    "node_types.", "pair_latency", "pair_bandwidth", "distance_classes", "copy_engines",
    "interruptions", "processes", "engines.",
)  # fmt: skip


def ratio_texts(ratio: float, *bounds: float) -> list[str]:
    """``×0.96 ×0.93 ×0.9995``: as many digits as distinguish the bounds, from each other and 1."""
    different = len({1.0, *bounds})
    for digits in range(2, 6):
        written = (f"×{value:.{digits}f}" for value in (1.0, ratio, *bounds))
        one, *texts = (text.replace("inf", "∞") for text in written)
        if len({one, *texts[1:]}) == different:
            break
    return texts


def decisions(records: Sequence[Record]) -> list[dict[str, Any]]:
    """For each operation and each record but the first, what ``decision`` says of both, with
    ``record``: its position, and ``prediction``: the position of the one that predicts what the
    other measured, or None. Nothing where no facts were drawn, and of runs that did not settle.
    """
    from ..sim.run.comparison import predicts, settled
    from ..sim.run.decision import decision
    from ..sim.run.real_planes import NATIVE

    first, found = records[0], []
    for k, other in enumerate(records[1:], 1):
        one_predicts = predicts(first, other)
        uncertain = one_predicts or (first.uncertainty and other.uncertainty)
        if not uncertain or not settled((first, other)):
            continue
        prediction = (k if first.plane == NATIVE else 0) if one_predicts else None
        found += [
            {"record": k, "prediction": prediction, **row}
            for operation in first.throughput
            if (row := decision(first, other, operation)) is not None
        ]
    return found


def decision_lines(rows: Sequence[Mapping[str, Any]], letters: Sequence[str]) -> list[str]:
    """A line for each row of ``decisions``."""
    return [
        _line(row, letters) if row["prediction"] is None else _prediction_line(row, letters)
        for row in rows
    ]


def _line(row: Mapping[str, Any], letters: Sequence[str]) -> str:
    names = letters[0], letters[row["record"]]
    ratio, *bounds = ratio_texts(row["ratio"], *row["interval"])
    said = f"{row['operation']}: {verdict(row, names)}. {names[1]} to {names[0]}: {ratio}, with "
    said += f"{row['level']:.0%} between {' and '.join(bounds)}, given {_causes(row)}."
    return " ".join([said, *regret_texts(row, names)])


def verdict(row: Mapping[str, Any], names: Sequence[str]) -> str:
    """Who does more, and how sure that is."""
    if row["equal"] >= row["level"]:
        return "no difference"
    share = max(row["share"], 1.0 - row["share"])
    faster = names[row["share"] > 0.5]
    sure = "more than 99%" if share >= SURE else f"{share:.0%}"
    for least, word in LIKELY:
        if share >= least:
            return f"{faster} is {word} faster ({sure})"
    return f"undecided, either may be faster ({faster} with a probability of {sure})"


def regret_texts(row: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """What choosing either costs on average, and what would settle it, where that is open."""
    if row["equal"] >= row["level"]:
        return []
    best = names[row["regret"][1] < row["regret"][0]]
    least, most = sorted(row["regret"])
    rival = names[best == names[0]]
    costs = f"Expected loss: {_percent(least)} by choosing {best}, {_percent(most)} by {rival}"
    sure = max(row["share"], 1.0 - row["share"]) >= SURE
    return [f"{costs}.", *([] if sure else [measure_text(row["measure"])])]


def best_texts(doubt: UnderDoubt) -> list[str]:
    """Which run of a study to choose under doubt, how sure that and each constraint is, and what
    would settle it."""
    choices, measure = doubt.choices, doubt.measure
    if not choices:
        return []
    best = choices[0]
    holds = [
        f"Point {best.point} holds {text} with a probability of {held:.0%}."
        for text, held in doubt.holds.items()
        if held < SURE
    ]
    if len(choices) < 2:
        return holds
    share = best.probability
    sure = "more than 99%" if share >= SURE else f"{share:.0%}"
    word = next((f"is {word}" for least, word in LIKELY if share >= least), "may be")
    said = f"Under doubt, point {best.point} {word} the best of {len(choices)} ({sure})"
    texts = [f"{said}. Expected loss by choosing it: {_percent(best.regret)}.", *holds]
    return texts if share >= SURE else [*texts, measure_text(measure)]


def measure_text(measure: Mapping[str, Any] | None) -> str:
    """What to measure first, and what that saves of an expected loss."""
    if measure is None:
        return NO_FACT
    settles = measure["share"] >= SETTLES
    effect = "it would settle it" if settles else f"that saves {measure['share']:.0%} of this"
    return f"{_to_do(measure['setting'])}: {effect}."


def _to_do(setting: str) -> str:
    """The command that tells what a doubt is."""
    if setting == "replications":
        return "Run more replications first (--replications)"
    path = setting.removeprefix("machine.")
    if path != setting and path.startswith(MEASURED):
        return f"Measure {setting} first ('numatwin machine measure', or --set {setting}=)"
    return f"Find out {setting} first (--set {setting}=)"


def _percent(part: float) -> str:
    return f"{part:.2%}" if 0.0 < part < 0.01 else f"{part:.0%}"


def _prediction_line(row: Mapping[str, Any], letters: Sequence[str]) -> str:
    """Of what was measured, and what was predicted of it: no rivals."""
    predicted, measured = letters[row["prediction"]], letters[row["record"]]
    values = [row["ratio"], *row["interval"]]
    if row["prediction"] == 0:  # the ratio is that of what was measured
        values = [1.0 / value if value else math.inf for value in values]
        values[1:] = reversed(values[1:])
    else:
        measured = letters[0]
    ratio, *bounds = ratio_texts(*values)
    between = f" [{', '.join(bounds)}]" if row["causes"] else ""
    given = f", given {_causes(row)}" if row["causes"] else ""
    said = f"{row['operation']}: the prediction ({predicted}) is {ratio}{between}"
    return f"{said} of what was measured ({measured}){given}."


def _causes(row: Mapping[str, Any]) -> str:
    from .words import listing

    return listing(row["causes"])
