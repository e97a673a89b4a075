"""Differences between figures of two records, and their uncertainty.

Replication i of one record has the same draws as replication i of another with the same seed:
their streams are keyed by (seed, replication, name). Compared pair by pair, much of what is random
cancels. Where seeds or numbers of replications differ, the interval is Welch's. A record of a plane
that draws nothing is exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .real_planes import NATIVE
from .record import part_at

if TYPE_CHECKING:  # or a record of flows would wait for SciPy
    from .record import Record
    from .statistics import Sample

LEVEL = 0.95
NOISY = "noisy host"  # so warnings of measured machines begin


def level_of(records: Sequence[Record]) -> float:
    """The confidence of the first record that has one."""
    levels = [record.confidence.get("level") for record in records]
    return next((level for level in levels if isinstance(level, float) and 0 < level < 1), LEVEL)


def predicts(first: Record, other: Record) -> bool:
    """Whether one of them predicts what the other measured: the same scenario and machine."""
    same = first.scenario == other.scenario and first.machine == other.machine
    return same and (first.plane == NATIVE) != (other.plane == NATIVE)


def noise_of(records: Sequence[Record]) -> str:
    """``noisy host: …; …``: what was said of it as the facts of their machines were measured."""
    machines = [record.settings.get("machine") for record in records]
    texts_of = [one.get("warnings") or () for one in machines if isinstance(one, Mapping)]
    begin = f"{NOISY}: "
    noise = dict.fromkeys(
        text.removeprefix(begin) for texts in texts_of for text in texts if text.startswith(begin)
    )
    return begin + "; ".join(noise) if noise else ""


def settled(records: Sequence[Record]) -> bool:
    """Whether all ran for long enough that longer runs would do the same, as far as is known."""
    random = [record for record in records if record.replications]
    if not random:
        return True
    from .replications import unsettled

    return not any(unsettled(record.warnings) for record in random)


def has_intervals(record: Record) -> bool:
    """Whether the interval of any figure is known."""

    def any_in(part: object) -> bool:
        if isinstance(part, Mapping):
            return any(any_in(inner) for name, inner in part.items() if name != "resolution_ns")
        return isinstance(part, (list, tuple))

    return any_in(record.confidence)


def difference(
    path: Sequence[str], values: Sequence[float | None], records: Sequence[Record], level: float
) -> dict[str, Any] | None:
    """Of the second of two records to the first, in a figure whose ``values`` they have.

    ``interval``: of the difference; ``ratio_interval``: of the ratio, None to 0; ``paired``. None
    where it is unknown how sure it is.
    """
    if not any(record.replications for record in records) or not settled(records):
        return None
    from . import statistics

    pairs = list(zip(values, records, strict=True))
    samples = [_sample(path, value, record) for value, record in pairs]
    first, second = samples
    if first is None or second is None:
        return None
    one, other = records
    paired = one.seed == other.seed and 1 < one.replications == other.replications
    difference_interval = statistics.difference(first, second, level, paired)
    if difference_interval is None:
        return None
    ratio = statistics.ratio(first, second, level, paired)
    return {
        "value": difference_interval.value,
        "interval": [difference_interval.low, difference_interval.high],
        # Figures are not below 0, and so are their ratios.
        "ratio_interval": [max(ratio.low, 0.0), max(ratio.high, 0.0)]
        if ratio is not None
        else None,
        "paired": paired,
    }


def _sample(path: Sequence[str], value: float | None, record: Record) -> Sample | None:
    """The figure with its replicates; None where these are not known and it is not exact."""
    from .statistics import Sample

    if value is None or not math.isfinite(value):
        return None
    if not record.replications:
        return Sample(value)
    found = part_at(record.replicates, path)
    whole = isinstance(found, (list, tuple)) and len(found) == record.replications
    if not whole or not all(isinstance(bound, (int, float)) for bound in found):
        return None
    return Sample(value, tuple(found))
