"""Uncertainty of a prediction: what it leans on, and its random draws, together.

All doubts (facts with a range, assumptions; see ``doubts``) are drawn together, as a Latin
hypercube; of each draw the first moments are predicted, relative to those of the facts as they are
(``what_if``). Of a random run, what the next replication would differ by is drawn too, Student's t
of the replications' deviation (Law, Simulation Modeling and Analysis, 4.5; a prediction interval).
What the model itself is wrong by comes on top, as far as is known (``model_error``), or what the
fit of a user's own engine was off by, where that is more.

Open clients have as much done as they offer, or as can be: throughput = min(offer, capacity). Facts
move both; what the model is wrong by multiplies the capacity, which the flow plane predicts from
far too many arrivals. Where it cannot, or a run does not keep up, what is done stands for it.
Closed clients do an operation every pause + latency: the error multiplies the latency, not the
pause.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...inputs import DescriptionError, InputError
from ...inputs.fields import put_at
from ...inputs.progress import Progress, silent
from ...inputs.quantities import si_of
from ...inputs.shared_work import shared
from ...topologies.schema_types import Misfit
from ..kernel.arrays import Floats
from ..machine.assumptions import Place, Variant, split_quantity
from .assumptions import predicted
from .comparison import settled
from .doubts import Doubt, doubts_of, merged, parts_drawn
from .model_error import LATENCY, OTHER, THROUGHPUT, TRAFFIC, ModelError, class_of, known_error
from .real_planes import REAL
from .record import Record, part_at
from .scenario import Scenario
from .what_if import FLOW, Moment, Predictor, acting, predictor_of

LEVEL = 0.9
DRAWS = 32
POINTS = 100  # at equal probabilities, for the distribution of chance
TRIED, NAMED = 6, 2
NOTICED = 0.01
MEAN = "mean"  # of a latency
BEHIND = (
    "in {} of {} draws of facts and assumptions more arrives than can be done: then latencies have "
    "no mean, and here no interval"
)
LEFT_OUT = "{} of {} draws of facts and assumptions cannot be run, and are left out: {}"
ARRIVALS: Place = ("workload", "clients", "arrival_rate")
KEPT_UP, TOO_MANY = 0.95, "1e12/s"  # of the offer: the rest is chance, and how a run begins

Path = tuple[str, ...]


def with_uncertainty(
    record: Record, scenario: Scenario, progress: Progress = silent, most: bool = True
) -> Record:
    """The Record of a run of ``scenario`` with its ``uncertainty``; as it is where the run did not
    settle. ``most``: with the doubts that decide most. Raises InputError of what was measured.
    """
    if scenario.plane in REAL:
        raise InputError("--uncertainty", token=scenario.plane, expected="a plane that predicts")
    if not settled([record]):
        return record
    with shared():  # variants have most of the machine in common
        doubts = doubts_of(scenario)
        parts = parts_drawn(doubts, DRAWS)
        drawn = [merged(doubts, row) for row in parts]
        played, warnings = _played(scenario, drawn, progress)
        parts, drawn = parts[played], [drawn[k] for k in played]
        shifts, unlike = _shifts(record, scenario, drawn)
        decisive = _most(scenario, doubts, parts, shifts) if most and doubts else []
        if behind := max((int(np.isnan(shift).sum()) for shift in shifts.values()), default=0):
            warnings += (BEHIND.format(behind, DRAWS),)
            shifts = {at: shift for at, shift in shifts.items() if not np.isnan(shift).any()}
        record = replace(record, warnings=(*record.warnings, *warnings))
        record = replace(record, uncertainty=_offer(record, scenario, drawn, shifts))
    errors = {path: error_of(record, scenario, path) for path in shifts}
    intervals = {at: interval_of(record, at, of, errors[at].factors) for at, of in shifts.items()}
    intervals |= {at: bounds(values) for at, values in unlike.items()}
    return replace(
        record,
        uncertainty={
            "level": LEVEL,
            "doubts": [
                {"name": doubt.name, "setting": doubt.setting, "stream": doubt.stream}
                for doubt in doubts
            ],
            "most": decisive,
            "left_out": [family.name for family, _ in acting(scenario, rules=False)],
            "model": [
                {
                    "figure": ".".join(path),
                    "factor": error.factor(),
                    "rows": error.rows,
                    "sources": error.sources,
                }
                for path, error in errors.items()
            ],
            **record.uncertainty,
            **_nested(intervals),
            "shifts": _nested({path: shift.tolist() for path, shift in shifts.items()}),
        },
    )


def figures_of(record: Record) -> Iterator[tuple[Path, float]]:
    """The headline figures of a run by their paths: throughput, mean latency, traffic, energy."""
    for name, value in record.throughput.items():
        yield ("throughput", name), value
    for name, moved in record.bandwidth_Bps.items():
        if moved is not None:
            yield ("bandwidth_Bps", name), moved
    for name, latencies in record.latency_ns.items():
        mean_ns = (latencies or {}).get(MEAN)
        if mean_ns is not None:
            yield ("latency_ns", name, MEAN), mean_ns
    if record.energy_J is not None:
        yield ("energy_J",), record.energy_J


def shift_of(record: Record, path: Sequence[str]) -> Floats:
    """(DRAWS,) by what each draw multiplies a figure; ones where that is unknown. All percentiles
    of a latency are taken to change as its mean does.
    """
    place = path if path[0] != "latency_ns" else (*path[:2], MEAN)
    found = part_at(record.uncertainty, ("shifts", *place))
    known = found and len(found) == DRAWS
    return np.asarray(found, dtype=np.float64) if known else np.ones(DRAWS)


@dataclass(frozen=True)
class FitError:
    """What the fit of a scenario's engine was off by in the rows that it did not use."""

    misfit: Misfit
    sources = 1

    @property
    def rows(self) -> int:
        return self.misfit.rows

    @property
    def factors(self) -> Floats:
        """(POINTS,) as of a ``ModelError``."""
        return self._at((np.arange(POINTS) + 0.5) / POINTS)

    def factor(self) -> float:
        """By how much the truth may differ at 90%, either way."""
        return float(self._at(0.95))

    def _at(self, parts: Floats | float) -> Floats:
        from scipy.special import stdtrit

        return np.asarray(np.exp(self.misfit.error * stdtrit(self.rows, parts)))


def error_of(record: Record, scenario: Scenario, path: Path) -> ModelError | FitError:
    """What the model is wrong by in a figure of a run, as far as is known; of throughput of a
    fitted engine, the wider one: held-out rows show both kinds of error.
    """
    waits = path[0] == "latency_ns"
    figures = {"throughput": THROUGHPUT, "bandwidth_Bps": TRAFFIC}
    if waits:  # of closed clients that never pause, the inverse of throughput
        clients = scenario.workload.description.clients
        inverse = clients.kind == "closed" and not clients.think_time.value
        figures["latency_ns"] = THROUGHPUT if inverse else LATENCY
    operation = path[1] if waits or path[0] == "throughput" else None
    known = known_error(class_of(record, operation, figures.get(path[0], OTHER)))
    misfit = scenario.machine.description.engine_misfit
    if misfit is None or figures.get(path[0]) != THROUGHPUT:
        return known
    own = FitError(misfit)
    return own if own.factor() > known.factor() else known


def interval_of(record: Record, path: Sequence[str], shift: Floats, factors: Floats) -> list[float]:
    """Between what a figure lies at ``LEVEL``."""
    return bounds(values_of(record, path, shift, factors))


def values_of(record: Record, path: Sequence[str], shift: Floats, factors: Floats) -> Floats:
    """What a figure may be: of its shifts, of one more replication, and of what the model may be
    wrong by.
    """
    value = part_at({path[0]: getattr(record, path[0])}, path)
    drawn = np.add.outer(value * shift, by_chance(record, path))
    return np.asarray(drawn[..., np.newaxis] * limited(record, path, factors)[:, np.newaxis])


def limited(record: Record, path: Sequence[str], factors: Floats) -> Floats:
    """(1 or DRAWS, POINTS) ``factors`` of the model's error, as far as clients let them act."""
    if path[0] != "throughput":
        return np.atleast_2d(factors)
    if "offer" not in record.uncertainty:
        pausing = _pausing(record, path)
        return np.atleast_2d(1.0 / (pausing + (1.0 - pausing) / factors))
    offered, capacity = np.array(record.uncertainty["offer"])[..., np.newaxis]
    return np.asarray(np.minimum(capacity * factors, offered))


def _pausing(record: Record, path: Sequence[str]) -> float:
    """Of the time from one operation of a closed client to its next one, the part that it pauses;
    0 where latencies are not known.
    """
    clients = record.settings.get("workload", {}).get("clients", {})
    pause = si_of("{} {}".format(*split_quantity(clients.get("think_time"))))
    waits = {name: (found or {}).get(MEAN) for name, found in record.latency_ns.items()}
    rates = {name: record.throughput[name] for name in path[1:] or record.throughput}
    if not pause or not all(waits.get(name) for name in rates) or not sum(rates.values()):
        return 0.0
    busy_s = sum(rate * (waits[name] or 0.0) * 1e-9 for name, rate in rates.items())
    return float(pause[0] / (pause[0] + busy_s / sum(rates.values())))


def _offer(
    record: Record, scenario: Scenario, drawn: Sequence[Variant], shifts: Mapping[Path, Floats]
) -> dict[str, Any]:
    """Of open clients, what each draw offers, and what could be done, in parts of what is done."""
    rate, each = scenario.workload.description.clients.arrival_rate, record.throughput
    total = sum(each.values())
    if rate is None or not total:
        return {}
    done = sum(value / total * shifts["throughput", name] for name, value in each.items())
    kept_up, predictor = total >= KEPT_UP * rate.value, predictor_of(scenario)
    offered, capacity = np.full(DRAWS, rate.value), np.array(done)
    for k, draw in enumerate(drawn):
        if stated := si_of(str(draw.settings.get(ARRIVALS))):
            offered[k] = stated[0]
        if kept_up and predictor.plane == FLOW:
            capacity[k] = 1.0 + _total_change(predictor, {**draw.settings, ARRIVALS: TOO_MANY})
    found = np.array([offered / (rate.value if kept_up else total), capacity])
    return {"offer": (found / np.maximum(done, 1e-9)).tolist()}


def _played(
    scenario: Scenario, drawn: Sequence[Variant], progress: Progress
) -> tuple[list[int], tuple[str, ...]]:
    """(DRAWS,) the draw that stands for each, itself where it can be predicted: of others, which
    contradict themselves or cannot be run, others are taken, and a warning says why.
    """
    predictor, possible, reason = predictor_of(scenario), list[int](), ""
    for k, draw in enumerate(drawn):
        try:
            predicted(predictor, draw)
            possible.append(k)
        except (InputError, DescriptionError) as failure:
            reason = reason or str(failure)
        progress((k + 1) / DRAWS)
    if not reason:
        return possible, ()
    left = iter(possible * DRAWS)
    played = [k if k in possible else next(left, k) for k in range(DRAWS)]
    return played, (LEFT_OUT.format(DRAWS - len(possible), DRAWS, reason),)


def _shifts(
    record: Record, scenario: Scenario, drawn: Sequence[Variant]
) -> tuple[dict[Path, Floats], dict[Path, Floats]]:
    """(DRAWS,) by what each draw of the doubts multiplies each figure, NaN where latencies of open
    clients have no mean; and the values (DRAWS,) of those figures that are 0 without them.
    """
    shifts = {path: np.ones(DRAWS) for path, _ in figures_of(record)}
    predictor, unlike = predictor_of(scenario), dict[Path, Floats]()
    waits = [path for path in shifts if path[0] == "latency_ns"]
    if scenario.workload.description.clients.kind == "closed":
        waits = []  # rates tell theirs
    for path in waits:
        if figure_of(predictor.own, path) is None:
            del shifts[path]
    with suppress(InputError, DescriptionError):  # none can be run
        moments = [predicted(predictor, draw) for draw in drawn]
        for path in list(shifts):
            if figure_of(predictor.own, path) == 0.0:
                values = np.array([figure_of(moment, path) or 0.0 for moment in moments])
                if values.any():
                    unlike[path] = values
                    del shifts[path]
                continue
            for k, found in enumerate(moments):
                endless = path in waits and figure_of(found, path) is None
                change = np.nan if endless else _change(path, predictor.own, found)
                shifts[path][k] += predictor.relative(change)
    return shifts, unlike


def _change(path: Path, own: Moment, found: Moment) -> float:
    """By how much a figure differs, relative to its own; traffic of a short replication, which is
    not known, as the work done.
    """
    first, other = (figure_of(moment, path) for moment in (own, found))
    if (first is None or other is None) and path[0] in ("bandwidth_Bps", "latency_ns"):
        first, other = (sum(moment.throughput.values()) for moment in (own, found))
        if path[0] == "latency_ns":  # of clients that wait for their answers (Little's law)
            first, other = other, first
    return other / first - 1.0 if first and other is not None else 0.0


def figure_of(moment: Moment, path: Path) -> float | None:
    """Throughput or latency of an operation, traffic by way, or power; None where it is unknown."""
    if path[0] == "throughput":
        return moment.throughput.get(path[1])
    if path[0] == "latency_ns":
        return (moment.latency_ns.get(path[1]) or {}).get(path[2])
    return moment.bandwidth_Bps.get(path[1]) if len(path) > 1 else moment.power_W


def _most(
    scenario: Scenario, doubts: tuple[Doubt, ...], parts: Floats, shifts: Mapping[Path, Floats]
) -> list[dict[str, Any]]:
    """Of the doubts that decide most: the ``name`` (the field that states it), and from what to
    what throughput changes at the ends of its range (``low``, ``high``, relative), the others as
    they are. Looked for among those that the draws' ranks follow most.
    """
    rates = [shift for path, shift in shifts.items() if path[0] == "throughput"]
    total = np.mean(rates, axis=0) if rates else np.ones(DRAWS)
    ranks = total.argsort().argsort()
    followed = [abs(float(np.corrcoef(part.argsort().argsort(), ranks)[0, 1])) for part in parts.T]
    predictor, named = (
        predictor_of(scenario),
        [doubt.named for doubt in doubts],
    )  # by the user: tried in any case
    found = []
    for k in np.add(followed, named).argsort()[::-1][:TRIED]:
        ends = [_total_change(predictor, doubts[k].at(part)) for part in (0.0, 1.0)]
        if max(ends) - min(ends) >= NOTICED:
            found.append({"name": doubts[k].setting, "low": min(ends), "high": max(ends)})
    return sorted(found, key=lambda one: one["low"] - one["high"])[:NAMED]


def _total_change(predictor: Predictor, settings: Mapping[Place, Any]) -> float:
    """By what the settings change all throughput, relative to none; 0 where they cannot be had."""
    with suppress(InputError, DescriptionError):
        found = predicted(predictor, Variant("an end", settings))
        own = sum(predictor.own.throughput.values())
        return predictor.relative(sum(found.throughput.values()) / own - 1.0) if own else 0.0
    return 0.0


def by_chance(record: Record, path: Sequence[str]) -> Floats:
    """By how much one more replication may differ, at equal parts of its probability."""
    found = part_at(record.replicates, path)
    if not isinstance(found, (list, tuple)) or len(found) < 2:
        return np.zeros(1)
    from scipy.special import stdtrit

    count = len(found)
    deviation = float(np.std(found, ddof=1)) * math.sqrt(1.0 + 1.0 / count)
    return np.asarray(deviation * stdtrit(count - 1, (np.arange(POINTS) + 0.5) / POINTS))


def bounds(values: Floats) -> list[float]:
    """Between what ``LEVEL`` of the values lie, as many of the others below as above."""
    ends = (0.5 - 0.5 * LEVEL, 0.5 + 0.5 * LEVEL)
    low, high = np.quantile(values, ends, method="hazen")
    return [max(float(low), 0.0), float(high)]


def _nested(flat: Mapping[Path, Any]) -> dict[str, Any]:
    """Values by path as nested mappings, shaped as a Record's figures."""
    found: dict[str, Any] = {}
    for path, value in flat.items():
        put_at(found, path, value)
    return found
