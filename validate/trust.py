"""What predictions of each kind were off by so far, and whether intervals hold what they say."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from ..sim.run.model_error import Class, Evidence, model_error
from .markdown import page_text, table_rows

Interval = tuple[float, float]
LEVEL, AIM = 0.9, (0.85, 0.95)
WIDTH_MAX = 6.0  # upper over lower end: a wider interval holds nearly anything


@dataclass(frozen=True)
class Trust:
    """Of a class: figures that are known and their sources, by what factor predictions of these
    were off (median, largest), and may be off next time, at 90%.
    """

    of: Class
    rows: int
    sources: int
    median: float
    largest: float
    factor: float

    def as_json(self) -> dict[str, Any]:
        """A row of ``numatwin trust --json``."""
        return {**asdict(self.of), **{k: v for k, v in asdict(self).items() if k != "of"}}


@dataclass(frozen=True)
class Coverage:
    """Of rows of a group: how many, the share ``held`` by 90% intervals that their own source is no
    evidence for, and the median ``width``, from the lower to the upper end as a factor.
    """

    group: str
    rows: int
    held: float
    width: float

    @property
    def judgeable(self) -> bool:
        """Whether the intervals are narrow enough to say something."""
        return self.width <= WIDTH_MAX


def trust(evidence: Sequence[Evidence]) -> list[Trust]:
    """A row for each class that is known anything of."""
    found = []
    for of in sorted({row.of for row in evidence}, key=lambda of: tuple(asdict(of).values())):
        off = [math.exp(abs(row.error)) for row in evidence if row.of == of]
        error = model_error(of, evidence)
        found.append(Trust(of, error.rows, error.sources, median(off), max(off), error.factor()))
    return found


def intervals(evidence: Sequence[Evidence]) -> Iterator[Interval]:
    """Between what each row's figure lies at 90% by the evidence of all other sources, in parts of
    what was predicted.
    """
    known: dict[tuple[str, Class], Any] = {}
    for row in evidence:
        key = row.source, row.of
        if key not in known:
            others = [one for one in evidence if one.source != row.source]
            known[key] = model_error(row.of, others)
        tail = 0.5 - 0.5 * LEVEL
        low, high = known[key].quantiles([tail, 1.0 - tail], row.shift, row.spread).tolist()
        most = (row.at_most or math.inf) / row.predicted
        yield math.exp(low), min(math.exp(high), most)


def holds(row: Evidence, interval: Interval) -> bool:
    """Whether what was measured lies in an interval of parts of what was predicted."""
    low, high = (row.predicted * end for end in interval)
    return low <= row.measured[1] and high >= row.measured[0]


def coverage(evidence: Sequence[Evidence]) -> list[Coverage]:
    """Of all rows, and by system, kind of work and kind of figure."""
    groups: dict[str, list[tuple[bool, float]]] = {"all": []}
    for row, (low, high) in zip(evidence, intervals(evidence), strict=True):
        of = row.of
        for name in ("all", f"system {of.system}", f"work {of.kind}", f"figure {of.figure}"):
            groups.setdefault(name, []).append((holds(row, (low, high)), high / low))
    return [
        Coverage(name, len(rows), sum(h for h, _ in rows) / len(rows), median(w for _, w in rows))
        for name, rows in groups.items()
    ]


def page_of(evidence: Sequence[Evidence]) -> str:
    """All of it in Markdown."""
    return page_text(
        "trust",
        known=table_rows(map(trust_cells, trust(evidence))),
        covered=table_rows(map(coverage_cells, coverage(evidence))),
        figures=table_rows(map(_cells, evidence, intervals(evidence))),
    )


TRUST_HEADS = (
    "system", "plane", "work", "figure", "figures", "sources", "median", "largest", "next, 90%"
)  # fmt: skip
COVERAGE_HEADS = ("of", "figures", "held", "upper / lower end, median")


def trust_cells(row: Trust) -> tuple[str, ...]:
    """A row of the table of ``TRUST_HEADS``; factors that predictions are off by, either way."""
    of = row.of
    factors = (f"×{factor:.2f}" for factor in (row.median, row.largest, row.factor))
    return (of.system, of.plane, of.kind, of.figure, str(row.rows), str(row.sources), *factors)


def coverage_cells(row: Coverage) -> tuple[str, ...]:
    """A row of the table of ``COVERAGE_HEADS``."""
    return row.group, str(row.rows), f"{row.held:.0%}", f"{row.width:.2f}"


def _cells(row: Evidence, interval: Interval) -> tuple[str, ...]:
    low, high = (row.predicted * end for end in interval)
    measured = " to ".join(f"{end:.4g}" for end in dict.fromkeys(row.measured))
    of = f"{row.of.system}, {row.of.plane}, {row.of.kind}: {row.of.figure}"
    held = "yes" if holds(row, interval) else "no"
    between = f"{low:.3g} to {high:.3g}"
    return f"`{row.id}`", row.source, of, measured, f"{row.predicted:.4g}", between, held
