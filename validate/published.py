"""Published results against predictions, a row each; the figures are those of the papers.

A published figure is only compared, never an input of a prediction.

What results of a source say of its other results: each is predicted from all but its own figure.

Three predictions that must not be confused. *Blind*: from low-level facts alone, as they are.
*Before evidence*: the interval of all that facts, assumptions and unreported conditions may be, and
of what the model was wrong by elsewhere. *Given the others*: the same draws, weighed by how well
they predict the other figures of the same source (``posterior``), without the figure itself.
``benchmarks/published_draws.py`` writes the draws, ``published_draws.json``.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from ..inputs import InputError
from ..inputs.fields import near
from ..sim.run.model_error import Class
from ..sim.run.real_planes import SIMULATED
from .posterior import (
    Floats,
    Known,
    effective,
    error_weights,
    log_likelihood,
    normalised,
    predictive,
    tempered,
)
from .results import Published, Runs
from .systems.registry import validations

PUBLISHED: Mapping[str, Published] = {
    id_: result for validation in validations() for id_, result in validation.published.items()
}


def published_rows(plane: str | None = None, id_: str | None = None) -> list[dict[str, Any]]:
    """A row per published result, or only the one of that id; raises InputError.

    Each on the first plane that can predict it; with ``plane``, on that one, and results that it
    cannot predict have no row. Keys: ``id``, ``about``, ``published`` (None: not published),
    ``predicted``, ``unit``, ``relative_error`` (None for a result in words), ``holds`` (None for a
    number), ``plane``, ``calibrated_on`` (ids of results), ``machines`` [{``name``, ``source``,
    ``calibrated_on``}], ``note``. What a machine was calibrated on its row is calibrated on, too.
    """
    if plane is not None and plane not in SIMULATED:
        raise InputError(
            f"plane {plane} predicts nothing: it measures this host",
            expected=" or ".join(SIMULATED),
        )
    chosen = PUBLISHED
    if id_ is not None:
        if id_ not in PUBLISHED:
            expected = near(id_, PUBLISHED) or f"one of {', '.join(PUBLISHED)}"
            raise InputError("unknown published result", token=id_, expected=expected)
        chosen = {id_: PUBLISHED[id_]}
        if plane is not None and plane not in chosen[id_].planes:
            raise InputError(
                f"plane {plane} does not predict {id_}", expected=" or ".join(chosen[id_].planes)
            )
    runs = {name: Runs(name) for name in ([plane] if plane is not None else SIMULATED)}
    return [
        _row(key, result, runs[plane or result.planes[0]])
        for key, result in chosen.items()
        if plane is None or plane in result.planes
    ]


def left_out(plane: str) -> list[str]:
    """Ids of the results that this plane cannot predict."""
    return [key for key, result in PUBLISHED.items() if plane not in result.planes]


def _row(key: str, result: Published, runs: Runs) -> dict[str, Any]:
    runs.machines.clear()
    prediction = result.predict(runs)
    error = None
    if isinstance(result.value, float) and isinstance(prediction.value, float):
        error = prediction.value / result.value - 1.0
    machines = [dict(machine) for machine in runs.machines.values()]
    of_machines = (on for machine in machines for on in machine["calibrated_on"])
    return {
        "id": key,
        "about": result.about,
        "published": result.value,
        "predicted": prediction.value,
        "unit": result.unit,
        "relative_error": error,
        "holds": prediction.holds,
        "plane": runs.plane,
        "calibrated_on": list(dict.fromkeys((*result.calibrated_on, *of_machines))),
        "machines": machines,
        "note": result.note.format(**prediction.facts),
    }


STORED = Path(__file__).with_name("published_draws.json")
READ = 0.02  # relative deviation of a figure that is read from a paper
PARTS = (0.05, 0.5, 0.95)
NEAR = 0.25
# So many draws count at least: where evidence would leave fewer, it counts less.
COUNT_MIN = 10.0
# How probably a result in words is as published although a draw has it otherwise: an estimate.
OTHERWISE = 0.1


@dataclass(frozen=True)
class Drawn:
    """Of a result in numbers: what kind of figure it is, its prediction as published rows have it
    (``blind``), and with each draw (N,); NaN where a draw cannot be.
    """

    id: str
    of: Class
    blind: float
    draws: Floats


def source_of(id_: str) -> str:
    """The paper that a result is of."""
    return id_.partition("-")[0]


@cache
def stored() -> Mapping[str, Drawn]:
    """Results in numbers as the file has them, by id."""
    rows = json.loads(STORED.read_text(encoding="utf-8"))["rows"]
    return {
        row["id"]: Drawn(
            row["id"], Class(**row["of"]), row["blind"], np.array(row["draws"], dtype=float)
        )
        for row in rows
    }


@cache
def stored_words() -> Mapping[str, Floats]:
    """Of results in words (N,): whether a draw has it as published; NaN where none was tried."""
    words = json.loads(STORED.read_text(encoding="utf-8")).get("words", {})
    return {id_: np.array(held, dtype=float) for id_, held in words.items()}


@dataclass(frozen=True)
class Given:
    """Of a result: 90% intervals ``before`` evidence and given the ``others`` (so many), its
    ``value`` given these, and how many draws count (``effective``).
    """

    blind: float
    before: tuple[float, float]
    value: float
    interval: tuple[float, float]
    others: int
    effective: float

    def holds(self, figure: float) -> bool:
        """Whether the interval given the others does."""
        return self.interval[0] <= figure <= self.interval[1]

    def near(self, figure: float) -> bool:
        """Whether the value given the others lies within a quarter."""
        return abs(self.value / figure - 1.0) <= NEAR


@cache
def given_others() -> Mapping[str, Given]:
    """Of all results in numbers whose draws are stored, by id."""
    return {row.id: _given(row) for row in stored().values() if row.id in PUBLISHED}


@cache
def words_given() -> Mapping[str, tuple[float, float]]:
    """Of results in words whose draws are stored, by id: how probably they come out as published
    before evidence, and given the other results of their source.
    """
    found = {}
    for id_, held in stored_words().items():
        possible = np.where(np.isfinite(held), 0.0, -np.inf)
        given = _weighed(possible, _known_of(_others(id_)), id_)
        weights = [normalised(one) for one in (possible, given)]
        before, after = (float(one @ np.nan_to_num(held)) for one in weights)
        found[id_] = before, after
    return found


def shares() -> dict[str, float]:
    """Of stored results, the shares within a quarter and in 90% intervals; the median widths."""
    rows = [(PUBLISHED[id_].value, one) for id_, one in given_others().items()]
    pairs = [(figure, one) for figure, one in rows if isinstance(figure, float)]
    before = [one.before[0] <= figure <= one.before[1] for figure, one in pairs]
    return {
        "within 25%, blind": _mean([abs(one.blind / f - 1.0) <= NEAR for f, one in pairs]),
        "within 25%, given the others": _mean([one.near(f) for f, one in pairs]),
        "in the interval, before evidence": _mean(before),
        "in the interval, given the others": _mean([one.holds(f) for f, one in pairs]),
        "upper / lower end, before evidence": median(
            one.before[1] / one.before[0] for _, one in pairs
        ),
        "upper / lower end, given the others": median(
            one.interval[1] / one.interval[0] for _, one in pairs
        ),
    }


def _mean(held: Sequence[bool]) -> float:
    return sum(held) / len(held)


def _logs(draws: Floats) -> Floats:
    """Not finite of draws in which there is no such figure, as a loss that is a gain."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(draws))


def _given(row: Drawn) -> Given:
    others = _others(row.id)
    known = _known_of(others)
    predicted = _logs(row.draws)
    possible = np.where(np.isfinite(predicted), 0.0, -np.inf)
    predicted = np.nan_to_num(predicted, posinf=0.0, neginf=0.0)
    error = error_weights(row.of, source_of(row.id))
    own = next((one for one in known if one[0].of == row.of), None)
    before = predictive(predicted, possible, error, None, PARTS)
    log_weights = _weighed(possible, known, row.id)
    after = predictive(predicted, log_weights, error, own, PARTS)
    most = PUBLISHED[row.id].at_most or math.inf
    first, _, last, low, value, high = (min(math.exp(log), most) for log in (*before, *after))
    return Given(
        row.blind, (first, last), value, (low, high), len(others),
        effective(normalised(log_weights)),
    )  # fmt: skip


def _known_of(rows: Sequence[Drawn]) -> list[tuple[Known, Floats]]:
    return [_known([one for one in rows if one.of == of]) for of in {one.of for one in rows}]


def _weighed(possible: Floats, known: Sequence[tuple[Known, Floats]], id_: str) -> Floats:
    """(N,) logarithms of the draws' weights by what is ``known``, and by the other results in words
    of a result's source; ``COUNT_MIN`` draws count at least.
    """
    likely = possible + log_likelihood(known, len(possible))
    for other, held in stored_words().items():
        if other != id_ and source_of(other) == source_of(id_):
            chances = OTHERWISE + (1.0 - 2.0 * OTHERWISE) * held
            likely = likely + np.log(np.where(np.isfinite(held), chances, np.nanmean(chances)))
    with np.errstate(divide="ignore"):
        return np.log(tempered(likely, COUNT_MIN))


def _others(id_: str) -> list[Drawn]:
    """The other results in numbers of its source."""
    rows = (row for row in stored().values() if row.id in PUBLISHED and row.id != id_)
    return [row for row in rows if source_of(row.id) == source_of(id_)]


def _known(rows: Sequence[Drawn]) -> tuple[Known, Floats]:
    """The published figures of one class, and their predictions by draws."""
    figures = np.array([PUBLISHED[row.id].value for row in rows], dtype=float)
    weights = error_weights(rows[0].of, source_of(rows[0].id))
    predicted = _logs(np.column_stack([row.draws for row in rows]))
    known = Known(rows[0].of, np.log(figures), np.full(len(rows), READ), weights)
    return known, np.nan_to_num(predicted, nan=99.0, posinf=99.0, neginf=99.0)
