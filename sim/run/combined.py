"""One result of several replications: the mean of each figure, its interval, its replicates."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...inputs.fields import put_at
from ..kernel.arrays import Floats
from ..kernel.histogram import Histogram, merged
from ..planes.outcome import ResourceUse, Series
from .replications import Replication
from .statistics import (
    Interval,
    batch_means_interval,
    mean_interval,
    quantile_interval,
    replicated_quantile,
    value_error,
)

Values = Sequence[float | None]

QUANTILES = {"p50": 0.5, "p99": 0.99, "p999": 0.999}


class Combined:
    """What ``played`` say together; all fields but ``series`` are those of the Record.

    Intervals, at ``level``, are those of the mean over replications. Of one replication they are
    those of batch means over its series from ``warm_up_s`` on, where it has a series of the figure
    and they can be known. A figure that a replication does not know has neither value nor interval;
    where runs have not ``settled``, no figure has an interval.
    """

    def __init__(
        self, played: Sequence[Replication], level: float, warm_up_s: float, settled: bool = True
    ) -> None:
        self._level, self._settled = level, settled
        self._outcomes = [replication.outcome for replication in played]
        self.series = _mean_series([replication.series for replication in played])
        self._counted = self.series["time_s"] >= warm_up_s - 1e-12
        self.confidence: dict[str, Any] = {"level": level}
        self.replicates: dict[str, Any] = {}
        first = self._outcomes[0]
        self.throughput = {
            name: self._known(
                ("throughput", name), [outcome.throughput[name] for outcome in self._outcomes]
            )
            for name in first.throughput
        }
        self.operations = {
            name: math.fsum(outcome.operations[name] for outcome in self._outcomes) / len(played)
            for name in first.operations
        }
        self.bandwidth_Bps = {
            name: self._mean(
                ("bandwidth_Bps", name),
                [outcome.bandwidth_Bps.get(name) for outcome in self._outcomes],
            )
            for name in first.bandwidth_Bps
        }
        self.resources = self._resources()
        self.latency_ns = {name: self._latency(name) for name in first.throughput}
        self.energy_J = self._mean(("energy_J",), [outcome.energy_J for outcome in self._outcomes])
        self.model = mean_leaves([outcome.model for outcome in self._outcomes])
        warnings = [text for outcome in self._outcomes for text in outcome.warnings]
        self.warnings = tuple(dict.fromkeys(warnings))

    def _known(self, path: tuple[str, ...], values: Sequence[float]) -> float:
        """The mean of a figure that each replication knows, noted under ``path``."""
        value = math.fsum(values) / len(values)
        interval = self._interval(value, values, self._column("/".join(path)))
        if path[0] == "throughput" and not value:
            interval = None  # of what was never seen it is unknown how rare it is
        self._note(path, interval, values)
        return value

    def _mean(self, path: tuple[str, ...], values: Values) -> float | None:
        """The same of one that may be unknown."""
        known = [value for value in values if value is not None and math.isfinite(value)]
        return self._known(path, known) if known and len(known) == len(values) else None

    def _interval(
        self, value: float, values: Sequence[float], column: Floats | None
    ) -> Interval | None:
        if len(values) > 1:
            return mean_interval(values, self._level, about=value)
        return None if column is None else batch_means_interval(column, self._level, about=value)

    def _column(self, name: str) -> Floats | None:
        """That column of the series, after the warm-up."""
        return self.series[name][self._counted] if name in self.series else None

    def _note(
        self,
        path: tuple[str, ...],
        interval: Interval | None,
        values: Sequence[float] | None,
        highest: float = math.inf,
    ) -> None:
        """Keeps interval and replicates; no figure lies below 0 or above ``highest``."""
        bounds = None
        if interval is not None and self._settled:
            bounds = [min(max(bound, 0.0), highest) for bound in (interval.low, interval.high)]
        put_at(self.confidence, path, bounds)
        if values is not None:
            put_at(self.replicates, path, list(values))

    def _resources(self) -> tuple[ResourceUse, ...]:
        """The mean use of each; one that a replication does not list is listed by none."""
        by_name = [{use.name: use for use in outcome.resources} for outcome in self._outcomes]
        used = []
        for name, use in by_name[0].items():
            if all(name in found for found in by_name):
                used.append(self._use(name, use, [found[name] for found in by_name]))
        for kind in dict.fromkeys(use.kind for use, _ in used):
            of_kind = [(use, each) for use, each in used if use.kind == kind]
            columns = [self._column(f"utilisation/{use.name}") for use, _ in of_kind]
            known = [column for column in columns if column is not None]
            mean = np.mean(known, axis=0) if len(known) == len(columns) else None
            self._note_use((kind, "mean"), np.mean([each for _, each in of_kind], axis=0), mean)
            # Of each replication the use of this very resource, not of its own busiest: that is
            # the figure whose mean is reported.
            busiest = max(range(len(of_kind)), key=lambda k: of_kind[k][0].utilisation)
            self._note_use((kind, "busiest"), np.array(of_kind[busiest][1]), columns[busiest])
        return tuple(use for use, _ in used)

    def _use(
        self, name: str, use: ResourceUse, each: Sequence[ResourceUse]
    ) -> tuple[ResourceUse, list[float]]:
        """The mean use of one resource, and the part of it in use in each replication."""
        parts = [use.utilisation for use in each]
        mean = math.fsum(parts) / len(parts)
        rates = [use.Bps for use in each if use.Bps is not None]
        rate = math.fsum(rates) / len(rates) if len(rates) == len(each) else None
        column = self._column(f"utilisation/{name}")
        self._note(
            ("resources", name, "utilisation"), self._interval(mean, parts, column), None, 1.0
        )
        if rate is not None:
            self._note(("resources", name, "Bps"), self._interval(rate, rates, None), None)
        return replace(use, utilisation=mean, Bps=rate), parts

    def _note_use(self, path: tuple[str, str], parts: Floats, column: Floats | None) -> None:
        values = parts.tolist()
        interval = self._interval(math.fsum(values) / len(values), values, column)
        self._note(("utilisation", *path), interval, values, 1.0)

    def _latency(self, operation: str) -> dict[str, float | None] | None:
        """Mean and percentiles: of histograms where each replication has one, else means."""
        counted = [outcome.latencies_ns.get(operation) for outcome in self._outcomes]
        histograms = [histogram for histogram in counted if histogram is not None]
        path = ("latency_ns", operation)
        if len(histograms) < len(counted):
            latencies = [outcome.latency_ns.get(operation) or {} for outcome in self._outcomes]
            names = dict.fromkeys(name for latency in latencies for name in latency)
            return {
                name: self._mean((*path, name), [latency.get(name) for latency in latencies])
                for name in names
            } or None
        whole = merged(histograms)
        if not whole.count:
            return None
        means = [histogram.mean for histogram in histograms]
        mean = self._mean((*path, "mean"), means)
        if mean is not None and len(means) == 1:
            self._note((*path, "mean"), self._within_run(operation, mean), means)
        found = {"mean": mean}
        for name, part in QUANTILES.items():
            found[name] = self._quantile((*path, name), histograms, whole, part)
        return found

    def _within_run(self, operation: str, mean_ns: float) -> Interval | None:
        """Of the mean latency L / X of one run, L under way and X done per second: batch means of
        the linearised ratio (L_i - mean X_i) / X (see ``statistics.ratio``).
        """
        under_way, done = (
            self._column(f"{kind}/{operation}") for kind in ("under_way", "throughput")
        )
        if under_way is None or done is None or not done.any():
            return None
        left_ns = (under_way * 1e9 - mean_ns * done) / done.mean()
        around = batch_means_interval(left_ns, self._level, about=0.0)
        return around and Interval(mean_ns, mean_ns + around.low, mean_ns + around.high)

    def _quantile(
        self,
        path: tuple[str, str, str],
        histograms: Sequence[Histogram],
        whole: Histogram,
        part: float,
    ) -> float | None:
        """A percentile of all latencies; None where they are too few to bound it."""
        if quantile_interval(whole, part, self._level) is None:
            return None
        interval = replicated_quantile(histograms, part, self._level)
        values = [histogram.quantile(part) for histogram in histograms]
        known = all(math.isfinite(value) for value in values)
        self._note(path, interval, values if known else None)
        put_at(self.confidence, ("resolution_ns", *path[1:]), value_error(whole, part))
        return whole.quantile(part)


def _mean_series(each: Sequence[Series]) -> Series:
    """The mean of each column that all have; times are those of all."""
    common = [name for name in each[0] if all(name in series for series in each)]
    return {name: np.mean([series[name] for series in each], axis=0) for name in common}


def mean_leaves(each: Sequence[Any]) -> Any:
    """Data of one shape, with the mean of each number; where they differ otherwise, the first."""
    first = each[0]
    if isinstance(first, Mapping) and all(isinstance(value, Mapping) for value in each):
        return {
            key: mean_leaves([value[key] for value in each])
            for key in first
            if all(key in value for value in each)
        }
    if isinstance(first, (list, tuple)):
        if all(isinstance(value, (list, tuple)) and len(value) == len(first) for value in each):
            return [mean_leaves(parts) for parts in zip(*each, strict=True)]
        return first
    numbers = [
        value for value in each if isinstance(value, (int, float)) and not isinstance(value, bool)
    ]
    if len(numbers) < len(each) or all(value == first for value in each):
        return first
    return math.fsum(numbers) / len(numbers)
