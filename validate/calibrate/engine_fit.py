"""The fit of an engine's few costs to its measured throughputs, and the profile that comes of it.

Each row is a run of a scenario with one operation; its throughput is predicted by the flow plane in
its steady state. One of each three configurations is held out. What the rows do not determine
keeps what the system counts with, with a wide range; all else has the fit's interval as its range,
so that predictions with the profile are intervals too.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import yaml

from ...inputs import InputError
from ...inputs.names import is_name
from ...inputs.progress import Progress, silent
from ...inputs.quantities import rounded
from ...sim.run.scenario import Scenario, load_document, scenario_of_document
from ...sim.run.scenario_parts import on_machine
from ...sim.run.what_if import flow_plane
from ...sim.systems.descriptor import System
from ...sim.systems.registry import system_of
from .calibration import FITTED, HELD_OUT, Calibration, error_percent, error_summary, residuals_of
from .engine_rows import ASSUMED_SPREAD, EngineRow, OwnEngine, load_rows, own_engine, run_of_row
from .fit import Fit, Floats, NothingDetermined, Predict, fit
from .observation import Kind, Measured, Observation, Origin
from .parameters import Key, Parameter
from .predictions import engine_calibrations

ENGINE = Kind("engine throughput", core=True, run=True)
KEY = "engine"
# A median error beyond this is warned of: a choice, not a measured bound.
FAR = 0.2
HELD_OUT_EACH = 3
# Rates that differ by this from those of default costs are of something else.
ANOTHER_SCALE = 20.0
LEAST_ERROR = 1e-6  # of rows that the model made
# Of its start, either way; and of a fact that is not determined.
BOUND, UNKNOWN = 1e3, 2.0
WORDS_PER_LINE = 96
LOCK = "under a lock"


@dataclass(frozen=True)
class EngineFit:
    """``calibration``: of the rows, as of any measurements; ``facts``: by name, those that runs
    like these meet, as a profile has them; ``layouts``: by what rows say of threads and nodes, the
    settings of the scenario that they ran with."""

    calibration: Calibration
    system: str
    scenario: str
    facts: Mapping[str, Mapping[str, Any]]
    layouts: Mapping[str, str]

    @property
    def misfit(self) -> dict[str, Any]:
        """Of the held-out rows, else of the fitted ones: see ``Misfit``."""
        rows = self.calibration
        held = rows.of(HELD_OUT)
        ones = held or rows.of(FITTED)
        freedom = len(ones) - (0 if held else len(rows.fit.estimates))
        squares = math.fsum(math.log(one.predicted / one.observation.value) ** 2 for one in ones)
        error = rounded(math.sqrt(squares / max(freedom, 1))) or LEAST_ERROR
        warning = self.warning()
        noted = {} if warning is None else {"warning": warning}
        return {"error": error, "rows": max(freedom, 1), **noted}

    def warning(self) -> str | None:
        """Where the rows are far from what any costs explain: not to trust the profile."""
        rows = self.calibration
        which = HELD_OUT if rows.of(HELD_OUT) else FITTED
        summary = error_summary(rows.of(which))
        if summary is None or summary[0] <= FAR:
            return None
        return (
            f"{which} rows are off by {error_percent(summary[0])} in the median, and so will be "
            "predictions: repeat noisy measurements; else the engine, or the machine, does not "
            "work as the scenario says"
        )


def calibrate_engine(
    machine: str,
    file: Path,
    *,
    scenario: str | None = None,
    settings: Sequence[str] = (),
    share: float | None = None,
    progress: Progress = silent,
) -> EngineFit:
    """The costs of the engine of which ``file`` has measured throughputs on ``machine`` (a name or
    path); raises InputError.

    ``scenario``: what ran, with ``settings``; by default what the first system with such a fit
    says. ``share`` of the configurations is held out, a third by default.
    """
    given = load_rows(file)
    base = load_document(scenario or _own_engines()[0].scenario)
    whole = scenario_of_document(base, settings, machine=machine, plane="flow")
    system, own = _fitted_system(whole, scenario)
    origin = Origin.of(str(file), file.name)

    def fitted_to(rows: Sequence[EngineRow]) -> tuple[Fit, list[Observation], list[Observation]]:
        runs = [run_of_row(base, settings, machine, whole, row) for row in rows]
        ones = [_observation(row, run, origin) for row, run in zip(rows, runs, strict=True)]
        fitted, held = divided(ones, rows, share)
        found = _with_locks(fitted, _predicted(system), _parameters(system, runs), progress)
        return found, fitted, held

    layouts = [given, _a_core_each(given, whole)]
    tried: list[tuple[Sequence[EngineRow], Fit, list[Observation], list[Observation]]] = []
    for layout in layouts[: 1 + (layouts[1] != given)]:
        if tried and max(tried[0][1].scatter.values()) <= 1.0:
            break
        try:
            tried.append((layout, *fitted_to(layout)))
        except NothingDetermined:
            if layout is layouts[-1] or layouts[1] == given:
                raise
    rows, found, fitted, held = min(tried, key=lambda one: _criterion(one[1], one[2]))
    calibration = Calibration(
        whole.machine,
        whole.machine.description,
        found,
        residuals_of(found, fitted, held),
        (Measured(origin, tuple(fitted + held)),),
        datetime.now(UTC).date().isoformat(),
        0,
    )
    counted = sorted((row for row in rows if row.threads), key=lambda row: row.threads or 0)
    ran = {
        f"{row.threads} thread{'s' * (row.threads != 1)}": " ".join(
            text for text in own.settings(whole, row) if text.startswith("system.")
        )
        for row in counted
    }
    return EngineFit(calibration, system.name, whole.name, _facts(found), ran)


def _a_core_each(rows: tuple[EngineRow, ...], whole: Scenario) -> tuple[EngineRow, ...]:
    """``rows`` with threads of which no nodes are told on as many as have a core for each thread,
    as an operating system spreads them."""
    cores = np.cumsum([node.cores for node in whole.machine.nodes if node.cores])

    def spread(row: EngineRow) -> EngineRow:
        threads = row.threads
        if threads is None or row.nodes is not None or threads > cores[-1]:
            return row
        nodes = int(np.searchsorted(cores, threads)) + 1
        return replace(row, nodes=nodes) if threads % nodes == 0 else row

    return tuple(map(spread, rows))


def _with_locks(
    fitted: Sequence[Observation],
    predict: Predict,
    parameters: Sequence[Parameter],
    progress: Progress,
) -> Fit:
    """The fit of the costs; where residuals are wider than their spreads, with each lock that makes
    it likelier and leaves these costs determined: one that stands in for a cost is none.
    """
    try:
        known = first = fit(parameters, fitted, predict, progress)
    except NothingDetermined:
        raise _nothing_determined(parameters, fitted, predict) from None
    for lock in _locks(fitted) if max(first.scatter.values()) > 1.0 else ():
        costs = [estimate.parameter for estimate in known.estimates.values()]
        with suppress(InputError):  # with a lock the rows may determine nothing
            tried = fit([*costs, lock], fitted, predict, progress)
            found = tried.estimates.get(lock.key)
            likelier = _criterion(tried, fitted) < _criterion(known, fitted)
            likelier &= known.estimates.keys() <= tried.estimates.keys()
            if found is not None and not found.at_bound and likelier:
                known = replace(tried, left=(*known.left, *tried.left))
    return known


def _nothing_determined(
    parameters: Sequence[Parameter], fitted: Sequence[Observation], predict: Predict
) -> NothingDetermined:
    """Why that may be."""
    file, starts = fitted[0].origin.file, {p.key: p.start for p in parameters}
    rates = predict(starts, fitted)
    faster = median(one.value / rate for one, rate in zip(fitted, rates.tolist(), strict=True))
    if not 1.0 / ANOTHER_SCALE < faster < ANOTHER_SCALE:
        return NothingDetermined(
            f"measured rates are {faster:.3g} times those of the scenario at default costs",
            file,
            expected="rates that some costs can explain",
            hint="are operations, units and threads those of the scenario?",
        )
    return NothingDetermined(
        f"the {len(fitted)} rows for the fit determine none of "
        f"{', '.join(p.name for p in parameters)}",
        file,
        expected="more rows, of other sizes and numbers of threads",
    )


def _locks(fitted: Sequence[Observation]) -> list[Parameter]:
    """Sections that would just hold up the fastest row of an operation."""
    fastest: dict[str, tuple[float, float]] = {}
    for one in fitted:
        for name, instructions_per_s in one.at["serial"].items():
            fastest[name] = max(fastest.get(name, (0.0, 0.0)), (one.value, instructions_per_s))
    return [_cost(name, per_s / rate, LOCK) for name, (rate, per_s) in fastest.items()]


def _cost(name: str, start: float, unit: str = "1") -> Parameter:
    return Parameter((KEY, name), name, unit, start, start / BOUND, start * BOUND, core=True)


def _criterion(fit: Fit, fitted: Sequence[Observation]) -> float:
    """Schwarz's criterion (Annals of Statistics 6, 1978): the less, the likelier the fit. Residuals
    below the spread of their measurements count as such."""
    left = np.log([one.value for one in fitted]) - np.log(fit.best(fitted))
    squares = float(((left / [one.sigma for one in fitted]) ** 2).sum())
    n = len(fitted)
    return n * math.log(max(squares / n, 1.0)) + len(fit.estimates) * math.log(n)


def _predicted(system: System) -> Predict:
    """What the flow plane predicts of rows, in operations per second, by values of the engine's
    costs."""
    profile = system.profile
    assert profile is not None

    kept: dict[tuple[object, ...], float] = {}  # a search comes back to them

    def rate(values: Mapping[Key, float], one: Observation) -> float:
        run, seen = one.at["run"], {k: v for k, v in values.items() if k in one.at["facts"]}
        at = (run.hash, *seen.items())
        if at not in kept:
            costs = profile.model_validate({key[1]: value for key, value in seen.items()})
            on = replace(run, machine=on_machine(run.machine, system.name, costs))
            kept[at] = float(flow_plane(on).steady().flows.sum())
        return kept[at]

    def predicted(values: Mapping[Key, float], ones: Sequence[Observation]) -> Floats:
        return np.array([rate(values, one) for one in ones], dtype=np.float64)

    return predicted


def profile_yaml(found: EngineFit, name: str) -> str:
    """The profile as a file's text."""
    rows = found.calibration
    errors = error_summary(rows.of(HELD_OUT))
    checked = (
        "none held out"
        if errors is None
        else f"{len(rows.of(HELD_OUT))} held out: error {error_percent(errors[0])} in the "
        f"median, {error_percent(errors[1].error)} at worst"
    )
    plain = {
        "name": name if is_name(name) else "engine",
        "system": found.system,
        "source": f"Fitted {rows.date} to {rows.sources[0].origin.label} as {found.scenario} on "
        f"{rows.description.name}: {len(rows.of(FITTED))} rows, {checked}",
        "misfit": found.misfit,
    }
    text = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=WORDS_PER_LINE)
    lines = [
        yaml.safe_dump(
            {fact: dict(description)}, sort_keys=False, allow_unicode=True, default_flow_style=True,
            width=math.inf,
        ).strip()[1:-1]
        for fact, description in found.facts.items()
    ]  # fmt: skip
    return text + "facts:\n" + "".join(f"  {line}\n" for line in lines)


def _own_engines() -> list[OwnEngine]:
    return [engine.own for engine in engine_calibrations() if engine.own is not None]


def _fitted_system(whole: Scenario, named: str | None) -> tuple[System, OwnEngine]:
    system, own = system_of(whole.system), own_engine(whole)
    if system.profile is None or own is None:
        raise InputError(
            "--scenario: engines of this kind are not fitted to throughputs",
            token=f"{named}, a system of kind {system.name}",
            expected="a scenario such as "
            + ", ".join(engine.scenario for engine in _own_engines()),
        )
    if whole.workload.change_times(whole.horizon_s):
        raise InputError(
            "--scenario: its workload changes over time", token=whole.name, expected="a steady one"
        )
    return system, own


def _observation(row: EngineRow, run: Scenario, origin: Origin) -> Observation:
    profile = system_of(run.system).profile
    assert profile is not None
    serial = profile.serial(run)
    return Observation(
        ENGINE,
        row.label,
        row.throughput,
        "/s",
        origin,
        spread=ASSUMED_SPREAD if row.spread is None else row.spread,
        at={
            "run": run,
            "facts": frozenset((KEY, name) for name in (*profile.in_play(run), *serial)),
            "serial": serial,
            "operation": row.operation,
        },
        line=row.line,
    )


def divided(
    ones: Sequence[Observation], rows: Sequence[EngineRow], share: float | None
) -> tuple[list[Observation], list[Observation]]:
    """Those to fit to, and those held out: of each three (or as many as ``share`` says)
    configurations one, in the order of the file, with its repetitions.

    Not always the same of the three: in a file that goes through three sizes again and again, all
    rows of one size would be missing.
    """
    if share is not None and not 0.0 <= share <= 0.5:
        raise InputError("--held-out", token=f"{share:g}", expected="a share from 0 to 0.5")
    each = HELD_OUT_EACH if share is None else round(1.0 / share) if share else 0
    order = {place: index for index, place in enumerate(dict.fromkeys(row.place for row in rows))}
    fitted: list[Observation] = []
    held: list[Observation] = []
    for observation, row in zip(ones, rows, strict=True):
        group, position = divmod(order[row.place], each or 1)
        (held if each and position == each - 1 - group % each else fitted).append(observation)
    return fitted, held


def _parameters(system: System, runs: Sequence[Scenario]) -> list[Parameter]:
    """What the runs meet of the engine's costs."""
    assert system.profile is not None
    met = {name: value for run in runs for name, value in system.profile.in_play(run).items()}
    return [_cost(name, value) for name, value in met.items()]


def _facts(found: Fit) -> dict[str, dict[str, Any]]:
    """As a profile has them: those that are not determined, or at a bound, marked as uncertain."""
    facts: dict[str, dict[str, Any]] = {}
    for key, one in found.estimates.items():
        value, low, high = map(rounded, (one.value, one.low, one.high))
        known = {"range": [min(low, value), max(high, value)], "source": "fitted; range: 95%"}
        facts[key[1]] = {"value": value, **known} | ({"doubtful": True} if one.at_bound else {})
    for left in found.left:
        value = rounded(left.parameter.start)
        facts[left.parameter.key[1]] = {
            "value": value,
            "range": [rounded(value / UNKNOWN), rounded(value * UNKNOWN)],
            "source": f"default, as the rows do not determine it: {left.reason}",
            "doubtful": True,
        }
    return facts
