"""A calibration from its files to its result: read, check, hold out, fit, predict."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from os.path import realpath
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from ...inputs import InputError, load_yaml
from ...inputs.progress import Progress, silent
from ...topologies import Machine, MachineDescription
from ...topologies.importers import mlc
from ...topologies.importers.source import open_source
from .another_machine import check_same, doubts
from .contradictions import check
from .fit import Fit, Floats, fit
from .host_source import read_measured
from .machine_file import written
from .mlc_source import read_mlc
from .observation import THROUGHPUT, Measured, Observation
from .parameters import Key, pair_classes, parameters_of
from .predictions import Candidate, engine_calibrations, predict, without_costs_unknown
from .record_source import read_native

FITTED, HELD_OUT = "fitted", "held out"


@dataclass(frozen=True)
class Residual:
    """A measurement beside what the calibrated machine predicts of it."""

    observation: Observation
    set: str
    predicted: float
    low: float
    high: float

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        return self.predicted / self.observation.value - 1.0

    @property
    def agrees(self) -> bool:
        """Whether the intervals of both overlap."""
        low, high = self.observation.interval
        return self.low <= high and low <= self.high


@dataclass(frozen=True)
class Calibration:
    """``description`` is the calibrated machine's, ``before`` the one it was made from."""

    before: Machine
    description: MachineDescription
    fit: Fit
    residuals: tuple[Residual, ...]
    sources: tuple[Measured, ...]
    date: str
    seed: int
    warnings: tuple[str, ...] = ()

    def of(self, which: str) -> list[Residual]:
        """The residuals of one set."""
        return [residual for residual in self.residuals if residual.set == which]


def error_percent(error: float) -> str:
    """``0.89%``, ``4,942%``: two digits, and none of what rounding leaves."""
    value = 100.0 * abs(error)
    return f"{value:,.0f}%" if value >= 99.5 else f"{round(value, 6):.2g}%"


def error_summary(residuals: Sequence[Residual]) -> tuple[float, Residual] | None:
    """Median of the errors' sizes, and the worst; None of none."""
    if not residuals:
        return None
    worst = max(residuals, key=lambda residual: abs(residual.error))
    return median(abs(residual.error) for residual in residuals), worst


def calibrate(
    machine: Machine,
    files: Sequence[str | Path],
    *,
    share: float | None = None,
    seed: int = 0,
    force: bool = False,
    progress: Progress = silent,
) -> Calibration:
    """``machine`` fitted to what ``files`` tell; raises InputError for what cannot be used, and for
    what was measured on another machine, unless ``force``.

    ``share`` of each kind is held out, drawn by ``seed``; None is a fifth, and every other point of
    MLC's loaded-latency curve and all its mixes.
    """
    if share is not None and not 0.0 <= share <= 0.8:
        raise InputError("--held-out", token=f"{share:g}", expected="a share from 0 to 0.8")
    _check_once(list(map(Path, files)))
    sources = [read_source(Path(file), machine) for file in files]
    if not force:
        check_same(sources, machine)
    check(sources, machine)
    found = calibrated(machine, sources, share=share, seed=seed, progress=progress)
    return replace(found, warnings=doubts(sources, machine))


def calibrated(
    machine: Machine,
    sources: Sequence[Measured],
    *,
    share: float | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> Calibration:
    """The calibration on what was read."""
    fitted, held = held_out(sources, share, seed)
    if not fitted:
        raise InputError("nothing is left to fit to", expected="a smaller --held-out")
    classes = pair_classes(machine)
    parameters = parameters_of(machine, classes)
    for engine in engine_calibrations():
        parameters += engine.parameters(machine)

    def predicted(values: Mapping[Key, float], ones: Sequence[Observation]) -> Floats:
        candidate = Candidate(machine, classes, values)
        return np.array([predict(candidate, one) for one in ones], dtype=np.float64)

    found = fit(parameters, fitted, predicted, progress)
    date = datetime.now(UTC).date().isoformat()
    texts = {
        key: f"fitted {date} to {', '.join(one.sources)}; range: 95%"
        for key, one in found.estimates.items()
    }
    used = tuple(
        f"{source.origin.label} ({source.origin.date}): "
        f"{sum(observation.origin is source.origin for observation in fitted)} fitted, "
        f"{sum(observation.origin is source.origin for observation in held)} held out"
        for source in sources
    )
    description = written(machine, classes, found, texts, used)
    return Calibration(
        machine, description, found, residuals_of(found, fitted, held), tuple(sources), date, seed
    )


def residuals_of(
    found: Fit, fitted: Sequence[Observation], held: Sequence[Observation]
) -> tuple[Residual, ...]:
    """Of each figure, beside what the fit predicts."""
    figures = found.predicted([*fitted, *held])
    sets = [FITTED] * len(fitted) + [HELD_OUT] * len(held)
    each = zip((*fitted, *held), sets, figures, strict=True)
    return tuple(Residual(one, which, *ends) for one, which, ends in each)


def _check_once(files: Sequence[Path]) -> None:
    """Raises InputError where a file is given twice: its figures would count as two sessions'."""
    for index, path in enumerate(files):
        if realpath(path) in map(realpath, files[:index]):
            raise InputError("--from: the same file twice", token=str(path), expected="each once")


def read_source(path: Path, machine: Machine) -> Measured:
    """What a file tells, of whatever kind it is; raises InputError."""
    if path.is_dir() or path.suffix == ".json":
        return read_native(path, machine)
    with open_source(path) as source:
        if mlc.recognises(source):
            return read_mlc(source)
        if not source.head.strip():
            raise source.error("empty file", expected=EXPECTED)
    document = load_yaml(path)
    if not isinstance(document.value, dict) or "node_types" not in document.value:
        raise InputError("no measurements", str(path), 1, expected=EXPECTED)
    return without_costs_unknown(read_measured(document), machine)


EXPECTED = (
    "a file that 'numatwin machine measure' wrote, the output of Intel MLC, or a folder that "
    "'numatwin run --on native' wrote"
)


def as_json(calibration: Calibration) -> dict[str, Any]:
    """The stable form of ``--json``."""
    found = calibration.fit
    return {
        "machine": calibration.description.name,
        "date": calibration.date,
        "seed": calibration.seed,
        "sources": [
            {
                "file": source.origin.file,
                "date": source.origin.date,
                "observations": len(source.observations),
                "unused": dict(source.unused),
            }
            for source in calibration.sources
        ],
        "warnings": list(calibration.warnings),
        "fitted": [
            {
                "parameter": one.parameter.name,
                "unit": one.parameter.unit,
                "before": one.parameter.start,
                "value": one.value,
                "interval": [one.low, one.high],
                "at_bound": one.at_bound,
                "sources": list(one.sources),
            }
            for one in found.estimates.values()
        ],
        "not_determined": [
            {"parameter": one.parameter.name, "reason": one.reason} for one in found.left
        ],
        "rows": [_row(residual) for residual in calibration.residuals],
        "errors": {which: _errors(calibration.of(which)) for which in (FITTED, HELD_OUT)},
    }


def _row(residual: Residual) -> dict[str, Any]:
    one = residual.observation
    return {
        "measurement": one.label,
        "kind": one.kind,
        "set": residual.set,
        "unit": one.unit,
        "measured": one.value,
        "measured_interval": list(one.interval),
        "predicted": residual.predicted,
        "predicted_interval": [residual.low, residual.high],
        "relative_error": residual.error,
        "source": one.origin.file,
        "line": one.line,
    }


def _errors(ones: Sequence[Residual]) -> dict[str, Any] | None:
    if (summary := error_summary(ones)) is None:
        return None
    middle, worst = summary
    label = worst.observation.label
    return {"median": middle, "worst": abs(worst.error), "worst_of": label}


SHARE = 0.2
# What a figure holds for, by which parameters differ.
PLACES = ("node", "home", "level", "transport", "operation", "step")


def held_out(
    sources: Sequence[Measured], share: float | None, seed: int
) -> tuple[list[Observation], list[Observation]]:
    """The observations to fit to, and those held out.

    ``share`` None: a fifth of each kind, but where a source has a rule of its own, by that. An end
    result is held out in any case: fitted to, it would be an input of its own prediction. What is
    measured once only is never held out by chance, as nothing else would determine it: of figures
    alike, one stays. Neither values nor files' order matter, only what was measured.
    """
    sets: tuple[list[Observation], list[Observation]] = ([], [])
    drawn: dict[str, list[Observation]] = {}
    for source in sources:
        for index, one in enumerate(source.observations):
            if one.kind == THROUGHPUT:
                sets[1].append(one)
            elif share is None and source.held_out is not None:
                sets[index in source.held_out].append(one)
            else:
                drawn.setdefault(one.kind, []).append(one)
    rng = np.random.default_rng(seed)
    for _, ones in sorted(drawn.items()):
        ones.sort(key=lambda o: (o.origin.label, o.label, str(o.repetition_key), o.line or 0))
        wanted, left = int((SHARE if share is None else share) * len(ones) + 0.5), set[int]()
        alike = Counter(map(_place, ones))
        for position in rng.permutation(len(ones)).tolist():
            place = _place(ones[position])
            if len(left) < wanted and alike[place] > 1:
                left.add(position)
                alike[place] -= 1
        for index, one in enumerate(ones):
            sets[index in left].append(one)
    return sets


def _place(observation: Observation) -> str:
    """What determines the same parameter: a curve's points all do, pairs of nodes do not."""
    ends = [f"{name}={observation.at[name]}" for name in PLACES if name in observation.at]
    if observation.at.get("threads") == 1:  # this alone tells what one core holds under way
        ends.append("one thread")
    return " ".join([observation.kind, *ends])
