"""How deep throughput drops when the workload changes, and how soon it recovers.

For each change, between it and the next one (or the end of the run), with ``x(t)`` the throughput,
constant over each piece of time, or over each step that stands out of a real run's noise (see
below):

- *final*: the time-weighted mean of ``x`` over the last 10% of that time;
- *level*: what ``x`` should come back to: the final one, or a level handed in, such as the best
  final level of several runs (else a run that never recovers looks recovered at once);
- *depth*: ``1 - min x / level``, 0 where ``x`` never falls below the level;
- *recovery time*: from the change to the end of the last piece in which ``x`` is more than 5% below
  the level; unknown where that is still so at the end, or where the level is the final one of a run
  that still changes. Being above the level counts as recovered;
- *settled*: whether the mean of the last tenth is within a twentieth of these 5% of that of the
  tenth before it; else, at this pace, ``x`` would leave the 5% within twice the time looked at.

What a host does to a real run by itself, for a tenth of a second, say, looks like a drop, but does
not come at the same time after each change: the *typical* recovery is that of the median, at each
time after a change, over all changes of a run.

Finds the steps of a noisy time series that are larger than its noise.

With x_k the values and w_k their weights (lengths, the mean one 1), the steps f are the piecewise
constant values with the least

    sum over k of w_k (x_k - f_k)^2  +  RARE * 2 s^2 ln n * (number of steps)

where s is the standard deviation of the noise and n the number of values. Each step has two
parameters, its place and its height, so that with RARE = 1 this is the Bayesian information
criterion (Schwarz, The Annals of Statistics 6, 1978; for steps: Yao, Statistics & Probability
Letters 6, 1988), which is right for independent normal noise. That of a real host comes in bursts.
What stays visible: of one value at an end, a fall of about sqrt(4 ln n) standard deviations (3.5 of
20 values), of m values 1 / sqrt(m) of that; in between, where it takes two steps, sqrt(2) times as
much.

The least is found by dynamic programming over the last step's beginning (Jackson et al., IEEE
Signal Processing Letters 12, 2005). A series without noise is its own steps.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ...inputs.quantities import time_text
from ..kernel.arrays import Floats
from .record import Record

SAMPLES_MAX = 20_000
FINAL_PART = 0.1
TOLERANCE = 0.05
STILL = TOLERANCE / 20
SAMPLES = 20


@dataclass(frozen=True)
class Recovery:
    """What one change of the workload did to an operation's throughput, per second.

    ``change_s`` and ``until_s`` bound the time looked at. ``before`` is the final throughput before
    the change, None where nothing ran before it.
    """

    change_s: float
    until_s: float
    before: float | None
    lowest: float
    final: float
    level: float
    recovery_s: float | None
    """None: not recovered before ``until_s``."""
    settled: bool = True
    """Whether the run that the level is of has settled on it by ``until_s``."""

    @property
    def depth(self) -> float | None:
        """How far throughput fell below the level, 0 to 1; None where the level is 0."""
        return max(0.0, 1.0 - self.lowest / self.level) if self.level > 0 else None

    @property
    def lasts_s(self) -> float:
        """How long it takes to be back; not before the next change: at least until that."""
        return self.until_s - self.change_s if self.recovery_s is None else self.recovery_s


def change_times(record: Record) -> list[float]:
    """When the workload changed while ``record`` ran: its phase events after the start, rising."""
    times = {e.time_s for e in record.control_events if e.kind == "phase"}
    return sorted(time_s for time_s in times if 0.0 < time_s < record.horizon_s)


def recoveries(
    record: Record,
    operation: str,
    levels: Sequence[float] | None = None,
    sample_s: float | None = None,
) -> list[Recovery]:
    """One Recovery per change time of ``record``; none without a series of ``operation``.

    ``levels``: per change, the throughput to come back to, instead of the final one. ``sample_s``:
    throughput is averaged over steps of this length from each change on, as a monitor would sample
    it, so that a dip counts by its length; without it the shortest piece counts as it is.
    """
    parts = _between_changes(record, operation)
    if levels is not None and parts and len(levels) != len(change_times(record)):
        raise ValueError(f"{len(levels)} levels for {len(change_times(record))} changes")
    found: list[Recovery] = []
    before: float | None = None
    for k, pieces in enumerate(parts):
        if not len(pieces.rate):
            continue
        sampled = pieces if sample_s is None else pieces.sampled(sample_s)
        recovery = _recovery(sampled, before, None if levels is None or k == 0 else levels[k - 1])
        if k > 0:
            found.append(recovery)
        before = recovery.final
    return found


def recovery_notes(record: Record) -> tuple[str, ...]:
    """A note on each operation that still changes at the end, after the workload last did."""
    notes = []
    for operation in record.throughput if change_times(record) else ():
        found = recoveries(record, operation, sample_s=sample_step_s(record))
        if found and not found[-1].settled:
            last = found[-1]
            after = time_text(last.until_s - last.change_s)
            notes.append(
                f"{operation} has not recovered by the end: it still changes {after} after the "
                "workload last did; a longer horizon shows where it settles"
            )
    return tuple(notes)


def typical_recovery(record: Record, operation: str) -> Recovery | None:
    """That of the median throughput, over all changes, at each sample after a change.

    For a workload whose changes are alike; told as if it were the first of them, and held against
    its own final level, settled or not, as a host drifts. None without a series of ``operation``,
    or without changes.
    """
    sample_s = sample_step_s(record)
    parts = [part for part in _between_changes(record, operation)[1:] if len(part.rate)]
    if not parts or sample_s is None:
        return None
    sampled = [part.sampled(sample_s) for part in parts]
    shared = min(len(series.rate) for series in sampled)
    rates = np.median([series.rate[:shared] for series in sampled], axis=0)
    first = sampled[0]
    pieces = _Pieces(first.start_s[:shared], first.end_s[:shared], rates)
    found = _recovery(pieces, None, None)
    return found if found.settled else _recovery(pieces, None, found.final)


def _between_changes(record: Record, operation: str) -> "list[_Pieces]":
    """The pieces before the first change, and from each one to the next; [] without a series."""
    column = f"throughput/{operation}"
    if column not in record.series or len(record.series["time_s"]) == 0:
        return []
    whole = _Pieces.of_series(record, column)
    bounds = [float(whole.start_s[0]), *change_times(record), float(whole.end_s[-1])]
    return [whole.between(from_s, until_s) for from_s, until_s in pairwise(bounds)]


def _recovery(pieces: "_Pieces", before: float | None, level: float | None) -> Recovery:
    """Of ``pieces``, at least one, from a change on; ``level``: None for their final one."""
    change_s, until_s = float(pieces.start_s[0]), float(pieces.end_s[-1])
    clear = replace(pieces, rate=steps(pieces.rate, pieces.end_s - pieces.start_s))
    tenth_s = FINAL_PART * (until_s - change_s)
    final = clear.mean(until_s - tenth_s, until_s)
    earlier = clear.mean(until_s - 2 * tenth_s, until_s - tenth_s)
    settled = level is not None or abs(earlier - final) <= STILL * final
    level = final if level is None else level
    low = clear.rate < (1.0 - TOLERANCE) * level
    back_s = float(clear.end_s[low].max()) if low.any() else change_s
    return Recovery(
        change_s=change_s,
        until_s=until_s,
        before=before,
        lowest=float(clear.rate.min()),
        final=final,
        level=level,
        recovery_s=back_s - change_s if settled and back_s < until_s else None,
        settled=settled,
    )


def recoveries_together(records: Sequence[Record], operation: str) -> list[list[Recovery]]:
    """What ``recoveries`` finds for each record, sampled, against one level where that is fair.

    Where all records that change do so at the same times, the level of each change is the best
    final throughput of any of them; else each record has its own (``share_levels`` tells which).
    See ``sample_step_s``.
    """
    found = [recoveries(r, operation, sample_s=sample_step_s(r)) for r in records]
    if share_levels(found):
        changing = [ones for ones in found if ones]
        best = [max(ones, key=lambda one: one.final) for ones in zip(*changing, strict=True)]
        levels = [one.final for one in best]
        for k, record in enumerate(records):
            if found[k] and len(change_times(record)) == len(best):
                again = recoveries(record, operation, levels, sample_step_s(record))
                found[k] = [
                    one if of.settled else replace(one, recovery_s=None, settled=False)
                    for one, of in zip(again, best, strict=True)
                ]
    return found


def share_levels(found: Sequence[Sequence[Recovery]]) -> bool:
    """Whether several records change, all at the same times: one level each is fair to them."""
    changing = [ones for ones in found if ones]
    return len(changing) > 1 and len({tuple(o.change_s for o in ones) for ones in changing}) == 1


def sample_step_s(record: Record) -> float | None:
    """A step that shows a drop but not each transfer: a twentieth of the shortest time to look at.

    None for a record without changes.
    """
    changes = change_times(record)
    shortest_s = min((b - a for a, b in pairwise([*changes, record.horizon_s])), default=None)
    return None if shortest_s is None else shortest_s / SAMPLES


@dataclass(frozen=True)
class _Pieces:
    """Pieces of time in their order, none empty, and the rate in each."""

    start_s: Floats
    end_s: Floats
    rate: Floats

    @classmethod
    def of_series(cls, record: Record, column: str) -> "_Pieces":
        start_s = np.asarray(record.series["time_s"], dtype=np.float64)
        end_s = start_s + np.asarray(record.series["duration_s"], dtype=np.float64)
        rate = np.nan_to_num(np.asarray(record.series[column], dtype=np.float64))
        return cls(start_s, end_s, rate)

    def between(self, from_s: float, until_s: float) -> "_Pieces":
        """The pieces, cut where they cross the bounds."""
        start_s, end_s = np.maximum(self.start_s, from_s), np.minimum(self.end_s, until_s)
        inside = end_s > start_s
        return _Pieces(start_s[inside], end_s[inside], self.rate[inside])

    def mean(self, from_s: float, until_s: float) -> float:
        """The time-weighted mean rate; that of the last piece where none lies in these bounds."""
        part = self.between(from_s, until_s)
        length_s = part.end_s - part.start_s
        if not len(length_s):
            return float(self.rate[-1])
        return float((length_s * part.rate).sum() / length_s.sum())

    def sampled(self, step_s: float) -> "_Pieces":
        """Means over steps from the first piece on, longer ones where they would be too many.

        The last step may be shorter.
        """
        first_s, last_s = float(self.start_s[0]), float(self.end_s[-1])
        step_s = max(step_s, (last_s - first_s) / SAMPLES_MAX)
        count = max(1, math.ceil((last_s - first_s) / step_s - 1e-9))
        edges = np.minimum(first_s + step_s * np.arange(count + 1), last_s)
        edges[-1] = last_s
        rates = [self.mean(a, b) for a, b in pairwise(edges.tolist())]
        return _Pieces(edges[:-1], edges[1:], np.array(rates))


RARE = 2.0
# Of fewer values nothing can be said of their noise.
VALUES_MIN = 5
# The median of |x - 2 y + z| of independent normal draws, in their standard deviations.
MEDIAN_BEND = 0.6745 * math.sqrt(6.0)


def noise_of(values: Floats, lengths: Floats) -> float:
    """Standard deviation of the noise of ``values``.

    Told by how far each lies from the line through its neighbours: a steady rise is no noise, and a
    few steps hardly count. A series of which most of the second half lies on lines, or of which
    very few values lie there, has none: it is exact.
    """
    ends = np.cumsum(lengths)
    late = values[ends > ends[-1] / 2]
    if len(late) < VALUES_MIN or np.median(np.abs(np.diff(late, 2))) == 0.0:
        return 0.0
    return float(np.median(np.abs(np.diff(values, 2)))) / MEDIAN_BEND


def steps(values: Floats, lengths: Floats) -> Floats:
    """(n,) the height of the step that each of ``values`` (n,) belongs to; ``lengths`` (n,) > 0."""
    noise, count = noise_of(values, lengths), len(values)
    if noise == 0.0:
        return values
    each = RARE * 2.0 * noise**2 * math.log(count)
    weight = lengths / lengths.mean()
    # About their mean: sums of squares of large numbers would lose what distinguishes steps.
    away = values - values.mean()
    weights, sums, squares = (
        np.concatenate([[0.0], np.cumsum(part)])
        for part in (weight, weight * away, weight * away**2)
    )
    least, begins = np.zeros(count + 1), np.zeros(count + 1, dtype=np.int64)
    for end in range(1, count + 1):
        width, total = weights[end] - weights[:end], sums[end] - sums[:end]
        cost = least[:end] + each + (squares[end] - squares[:end] - total**2 / width)
        begins[end] = np.argmin(cost)
        least[end] = cost[begins[end]]
    found, end = np.empty(count), count
    while end > 0:
        first = int(begins[end])
        part = slice(first, end)
        found[part] = np.average(values[part], weights=weight[part])
        end = first
    return found
