"""What the model itself is wrong by: learnt from all predictions that were held against the truth.

Each piece of evidence is a figure that was published, measured or counted, with its prediction and
what the facts left open of that. What is left, the logarithm of measured over predicted less what
facts explain, has Student's distribution (most predictions are much nearer than a few) with a scale
that depends on the system, the plane, the kind of work and of figure. Evidence that is like a
prediction counts fully, other evidence less (a power prior: Ibrahim and Chen, Statistical Science
15, 2000), and all of it together no more than ``OTHERS_MOST`` rows: classes' scales differ, so that
no amount of other evidence tells one. Rows of one source count as the root of their number, as they
err together. The scale is not known but has a posterior, so that what is predicted from little
evidence is wide. Where intervals are scored (``numatwin trust``), no source is evidence for its own
predictions; those of a run use all there is.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..kernel.arrays import Floats
from .record import Record

EVIDENCE = Path(__file__).with_name("model_error.json")
Z90 = 1.6448536269514722  # the 95% quantile of a normal distribution
# Of scales: where they are looked for, and what is known of one before any evidence.
SCALES = np.geomspace(0.01, 3.0, 60)
PRIOR_MEDIAN, PRIOR_LOG = 0.2, 1.0
# What evidence counts that differs in one respect.
OTHER_PLANE, OTHER_KIND, OTHER_SYSTEM, OTHER_FIGURE = 0.5, 0.25, 0.5, 0.1
OTHERS_MOST = 2.0  # rows, all of it together
KINDS = {
    "lookup": "lookup",
    "upsert": "lookup",
    "route": "lookup",
    "scan": "scan",
    "transaction": "commits",
    "join": "joins",
    "aggregate": "joins",
}
THROUGHPUT, RATIO, TRAFFIC, LATENCY, OTHER = "throughput", "ratio", "traffic", "latency", "other"
POINTS = 20  # at equal probabilities, for the distribution of an error


ERRORS = np.concatenate([-np.geomspace(12.0, 1e-3, 400), np.geomspace(1e-3, 12.0, 400)])
DEGREES = 4.0  # of freedom; 'benchmarks/model_error.py --choices' has others, and of the above


def student_below(scores: Floats) -> Floats:
    """Student's distribution of ``DEGREES`` in closed form, without SciPy, which a first answer
    does without.
    """
    wide = 1.0 + scores * scores / DEGREES
    return np.asarray(
        0.5 + 0.375 * scores / np.sqrt(wide) * (1.0 - scores * scores / (12.0 * wide))
    )


@dataclass(frozen=True)
class Class:
    """What a prediction is of."""

    system: str
    plane: str
    kind: str
    figure: str

    def likeness(self, other: "Class") -> float:
        """What evidence of the other class counts for this one."""
        return (
            (1.0 if self.figure == other.figure else OTHER_FIGURE)
            * (1.0 if self.kind == other.kind else OTHER_KIND)
            * (1.0 if self.system == other.system else OTHER_SYSTEM)
            * (1.0 if self.plane == other.plane else OTHER_PLANE)
        )


@dataclass(frozen=True)
class Evidence:
    """A figure that is known: between what it was ``measured``, as what ``predicted``, and between
    what factors of that it lies at 90% as facts are uncertain.
    """

    id: str
    source: str
    of: Class
    measured: tuple[float, float]
    predicted: float
    facts: tuple[float, float] = (1.0, 1.0)
    at_most: float | None = None  # what no such figure exceeds: 1 of a share

    @property
    def error(self) -> float:
        """The logarithm of the nearest end of what was measured to the prediction; 0 within."""
        low, high = self.measured
        return math.log(min(max(self.predicted, low), high) / self.predicted)

    @property
    def shift(self) -> float:
        """The middle of what facts make of the prediction, as a logarithm."""
        return 0.5 * (math.log(self.facts[0]) + math.log(self.facts[1]))

    @property
    def spread(self) -> float:
        """The deviation that facts explain."""
        return (math.log(self.facts[1]) - math.log(self.facts[0])) / (2.0 * Z90)


@dataclass(frozen=True)
class ModelError:
    """The posterior of a class: ``weights`` of ``SCALES``; how many ``rows`` of evidence are of
    the class, and of how many ``sources``.
    """

    weights: Floats
    rows: int
    sources: int

    @cached_property
    def factors(self) -> Floats:
        """(POINTS,) by what predictions are multiplied, at equal parts of its probability."""
        return np.asarray(np.exp(self.quantiles((np.arange(POINTS) + 0.5) / POINTS)))

    def quantiles(
        self, parts: Sequence[float] | Floats, shift: float = 0.0, spread: float = 0.0
    ) -> Any:
        """Of the logarithm of the truth to the prediction, at parts of its probability; ``shift``
        and ``spread``: of the facts.
        """
        scales = np.sqrt(SCALES**2 + spread * spread)
        below = student_below(ERRORS[:, None] / scales[None, :]) @ self.weights
        return np.asarray(shift + np.interp(np.asarray(parts), below, ERRORS))

    def factor(self) -> float:
        """By how much the truth may differ at 90%, either way."""
        return float(np.exp(self.quantiles([0.95])[0]))


def model_error(of: Class, evidence: Iterable[Evidence]) -> ModelError:
    """What is known of predictions of a class from evidence."""
    rows = list(evidence)
    of_source = Counter((row.source, row.of) for row in rows)
    log_weights = -0.5 * (np.log(SCALES / PRIOR_MEDIAN) / PRIOR_LOG) ** 2
    counts = [of.likeness(row.of) / math.sqrt(of_source[row.source, row.of]) for row in rows]
    others = sum(count for row, count in zip(rows, counts, strict=True) if row.of != of)
    for row, count in zip(rows, counts, strict=True):
        if row.of != of:
            count *= OTHERS_MOST / max(others, OTHERS_MOST)
        variance = SCALES**2 + row.spread**2
        left = row.error - row.shift
        near = np.log1p(left * left / variance / DEGREES)
        log_weights -= 0.5 * count * (np.log(variance) + (DEGREES + 1.0) * near)
    weights = np.exp(log_weights - log_weights.max())
    own = [row for row in rows if row.of == of]
    sources = len({row.source for row in own})
    return ModelError(weights / weights.sum(), len(own), sources)


@cache
def known_evidence() -> tuple[Evidence, ...]:
    """All that is bundled."""
    return tuple(
        Evidence(
            row["id"], row["source"], Class(**row["of"]),
            (row["measured"][0], row["measured"][1]), row["predicted"],
            (row["facts"][0], row["facts"][1]), row.get("at_most"),
        )
        for row in json.loads(EVIDENCE.read_text(encoding="utf-8"))["rows"]
    )  # fmt: skip


@cache
def known_error(of: Class, but_source: str | None = None) -> ModelError:
    """What all bundled evidence says of a class, but for that of a source."""
    return model_error(of, (row for row in known_evidence() if row.source != but_source))


def class_of(record: Record, operation: str | None, figure: str = THROUGHPUT) -> Class:
    """What a figure of a run is of; ``operation``: None for a figure of all, which is that of the
    first.
    """
    operations = record.settings.get("workload", {}).get("operations", {})
    chosen = operation if operation in operations else next(iter(operations), None)
    kind = kind_of(operations[chosen]) if chosen is not None else "other"
    system = record.settings.get("system", {}).get("kind", "")
    return Class(str(system), record.plane, kind, figure)


def kind_of(operation: Mapping[str, Any]) -> str:
    """The kind of work that an operation of a workload is."""
    kind = str(operation.get("kind"))
    if kind != "query":
        return KINDS.get(kind, "other")
    operators = operation.get("operators") or {}
    kinds = {one.get("kind") for one in operators.values() if isinstance(one, Mapping)}
    return "scan" if len(operators) == 1 and kinds <= {"scan", "custom"} else "queries"
