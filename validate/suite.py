"""Suites of regression checks: scenarios to run, and limits of their figures.

A check names a scenario, a metric, and what it is held against: a bound (``at_least``,
``at_most``), another alternative (``against``: another policy, machine …) or a multiple of its
figure (``against`` and ``at_least: 1.2 ×``), or, with neither, the baseline file. See
``suites/policies.yaml``. A check may also run a command in the emulator, and hold what it does to
memory against a bound.
"""

import math
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StrictFloat, StrictInt, StrictStr

from ..inputs import Catalogue, DescriptionError, Document, InputError, Strict, load_yaml
from ..inputs.fields import near
from ..inputs.kinds import check_kind
from ..inputs.names import Name
from ..inputs.quantities import parse_quantity
from ..inputs.yaml_file import Place
from ..sim.run.real_planes import SIMULATED
from ..sim.run.scenario import Scenario, load_scenario
from ..sim.studies.levels import written
from .emulated import EmulatedCommand, EmulatedRun, emulated_run, seen_from
from .metrics import BIN_HALF, Metric

CATALOGUE = Catalogue(Path(__file__).parent / "suites", "suite", listed=False)
BASELINE_ENDING = ".baseline.json"

Tolerance = Annotated[float, Field(strict=True, ge=0, lt=1)]
TOLERANCE = 0.01
# Both sides of a comparison are message as the middles of their bins.
TOLERANCE_IN_BINS_MIN = 2 * BIN_HALF
Bound = StrictStr | StrictFloat | StrictInt
# A bound as a multiple of the alternative's figure: "1.2 ×", or with the letter x.
_FACTOR = re.compile(r"(\d+(?:\.\d+)?)\s*[×x]")
Values = dict[str, str | int | float | bool]


class Alternative(Strict):
    """What stands in for the same of the scenario file; see ``numatwin run --help``.

    ``machine``, ``workload``: names, or paths relative to the suite's file. ``settings``: values by
    path, such as ``system.buffer_commands: 64``.
    """

    machine: str | None = None
    workload: str | None = None
    policy: str | None = None
    scale: Annotated[float, Field(strict=True, gt=0, le=1)] | None = None
    settings: Annotated[Values, Field(max_length=1_000)] = Field(default_factory=dict)


class Check(Alternative):
    """One check of a suite.

    ``metric``: ``throughput.lookup``, ``latency_ns.lookup.p99``, ``bandwidth_Bps.memory``,
    ``energy_J``, ``utilisation.memory.busiest``, ``recovery.lookup.depth`` … ``better``:
    ``higher`` or ``lower``, by default what anybody would want of the metric. ``tolerance``: by
    what part of what it is held against the figure may be worse, by default 1%, and 0 for a bound.
    ``at_least``, ``at_most``: a bound, or with ``against`` a multiple of the other's figure, such
    as ``1.2 ×``, which the figure has to reach.
    ``emulate`` in place of a scenario: a command, whose ``traffic.user_remote_share`` (or
    ``remote_share``, ``remote_bytes``, ``memory_bytes``, ``link_bytes``) has a bound.
    """

    scenario: str | None = None
    emulate: EmulatedCommand | None = None
    plane: str | None = None
    metric: str
    better: Literal["higher", "lower"] | None = None
    tolerance: Tolerance | None = None
    at_least: Bound | None = None
    at_most: Bound | None = None
    against: Alternative | None = None

    def _fits(self) -> None:
        given = [n for n in ("at_least", "at_most") if getattr(self, n) is not None]
        if len(given) > 1:
            raise DescriptionError(
                (given[1],), f"it conflicts with {given[0]}: expected one of them, or two checks"
            )
        self._check_emulated(given)
        for side in given:
            raw = getattr(self, side)
            if (_factor(raw) is None) == (self.against is None):
                continue
            raise DescriptionError(
                (side,),
                f"{raw}: expected a multiple of what it is against, such as 1.2 ×"
                if self.against is not None
                else f"{raw}: a multiple of what? Expected 'against' too, or a bound",
            )
        wants = {"at_least": "higher", "at_most": "lower"}.get(given[0]) if given else None
        if wants is not None and self.better not in (None, wants):
            raise DescriptionError(
                ("better",), f"{self.better} is better, but {given[0]}: expected {wants}, or none"
            )

    def _check_emulated(self, given: list[str]) -> None:
        if self.emulate is None:
            if self.scenario is None:
                raise DescriptionError(("metric",), "missing: expected scenario or emulate")
            return
        siblings = {
            "scenario",
            "plane",
            "against",
            *Alternative.model_fields,
        } & self.model_fields_set
        if siblings:
            raise DescriptionError(
                (min(siblings),), "it conflicts with emulate: expected one of them"
            )
        if not given:
            raise DescriptionError(
                ("emulate",), "traffic has no baseline: expected at_most or at_least"
            )


class SuiteDescription(Strict):
    """A suite's file. ``replications``: of each alternative, at most."""

    name: Name
    title: str = ""
    notes: tuple[str, ...] = ()
    replications: Annotated[int, Field(strict=True, ge=2, le=10_000)] = 20
    checks: Annotated[dict[Name, Check], Field(min_length=1, max_length=1_000)]


@dataclass(frozen=True)
class LoadedCheck:
    """A check with its scenarios. ``bound``: None where it is held against something else.

    ``factor``: by which the figure of ``other`` is multiplied before the two are compared.
    ``kind``: ``bound``, ``against`` or ``baseline``. ``line``: where it stands in the suite.
    """

    name: str
    metric: Metric
    higher_is_better: bool
    tolerance: float
    kind: Literal["bound", "against", "baseline"]
    scenario: Scenario | EmulatedRun
    other: Scenario | None
    bound: float | None
    line: int | None
    factor: float = 1.0


@dataclass(frozen=True)
class Suite:
    """A suite, ready to run. ``path``: its file; ``size``: how many checks that has in all.

    ``checks``: those that were chosen.
    """

    name: str
    title: str
    path: Path
    replications: int
    size: int
    checks: tuple[LoadedCheck, ...]

    @property
    def baseline_path(self) -> Path:
        """Where its baseline is, unless another file is named."""
        return self.path.with_name(self.path.stem + BASELINE_ENDING)

    def of_baseline(self) -> "Suite":
        """The suite with only those checks that are held against its baseline."""
        return replace(
            self, checks=tuple(check for check in self.checks if check.kind == "baseline")
        )


def load_suite(name_or_path: str, *, seed: int | None = None, only: Iterable[str] = ()) -> Suite:
    """The bundled suite of that name, or the one in that file; raises InputError.

    ``seed`` stands in for those of the scenarios; ``only``: these checks alone.
    """
    path = CATALOGUE.path(name_or_path)
    document = load_yaml(path)
    check_kind(document, "suite")
    description = document.read_as(SuiteDescription)
    chosen = list(only) or list(description.checks)
    for name in chosen:
        if name not in description.checks:
            expected = near(name, description.checks) or "one of the suite"
            raise InputError("unknown check", str(path), token=name, expected=expected)
    checks = tuple(
        _loaded(document, name, check, path.parent, seed)
        for name, check in description.checks.items()
        if name in chosen
    )
    return Suite(
        description.name,
        description.title,
        path,
        description.replications,
        len(description.checks),
        checks,
    )


def _loaded(
    document: Document, name: str, check: Check, folder: Path, seed: int | None
) -> LoadedCheck:
    place: Place = ("checks", name)
    other = None
    scenario: Scenario | EmulatedRun
    if check.emulate is not None:
        scenario = _emulated(document, (*place, "emulate"), check.emulate, folder)
    else:
        with _reported_at(document, place, check):
            scenario = _scenario(check, check, folder, seed)
    if check.against is not None:
        with _reported_at(document, (*place, "against"), check):
            other = _scenario(check, _over(check, check.against), folder, seed)
    with _reported_at(document, (*place, "metric"), check):
        metric = Metric.parsed(check.metric)
        metric.check(scenario)
    if other is not None and other.hash == scenario.hash:
        raise document.error(
            (*place, "against"),
            f"check '{name}': against: it is what is checked itself",
            expected="another policy, machine, workload, scale or setting",
        )
    bound, factor = None, None
    higher = metric.higher_is_better if check.better is None else check.better == "higher"
    kind: Literal["bound", "against", "baseline"] = "baseline" if other is None else "against"
    for side, raw in (("at_least", check.at_least), ("at_most", check.at_most)):
        if raw is not None:
            higher, factor = side == "at_least", _factor(raw)
            if factor is None:
                bound, kind = _bound(document, (*place, side), raw, metric), "bound"
    tolerance = check.tolerance
    if tolerance is None:
        tolerance = TOLERANCE if bound is factor is None else 0.0
    if bound is None and metric.in_bins and tolerance < TOLERANCE_IN_BINS_MIN:
        raise document.error(
            (*place, "tolerance"),
            f"check '{name}': tolerance: {metric} is counted in coarser steps",
            token=f"{tolerance:g}",
            expected=f"at least {TOLERANCE_IN_BINS_MIN:g}",
        )
    line = document.marks.get(place, (None, None))[0]
    return LoadedCheck(
        name, metric, higher, tolerance, kind, scenario, other, bound, line, factor or 1.0
    )


def _emulated(
    document: Document, place: Place, command: EmulatedCommand, folder: Path
) -> EmulatedRun:
    what = f"check '{place[1]}': emulate"
    try:
        return emulated_run(command, folder)
    except DescriptionError as failure:
        raise document.error(
            (*place, *failure.place), f"{what}.{'.'.join(map(str, failure.place))}: {failure}"
        ) from None
    except InputError as failure:
        if failure.file is not None and failure.line is not None:
            raise
        raise document.error(
            (*place, "machine"),
            f"{what}: {failure.message}",
            token=failure.token,
            expected=failure.expected,
        ) from None


@contextmanager
def _reported_at(document: Document, place: Place, check: Check) -> Iterator[None]:
    """Tells an error where it stands in the suite, unless it stands in a file of its own."""
    try:
        yield
    except InputError as failure:
        if failure.file is not None and failure.line is not None:
            raise
        field, message = _at_fault(check, failure)
        raise document.error(
            (*place, *field),
            f"check '{place[1]}': {message}",
            token=failure.token,
            expected=failure.expected,
        ) from None


def _at_fault(check: Check, failure: InputError) -> tuple[Place, str]:
    """The field of a check that ``failure`` is about, and what it says.

    What a check says reaches a scenario as options of ``numatwin run`` do.
    """
    if failure.file is None:
        return ("scenario",), failure.message
    option, _, value = failure.file.partition(" ")
    if option == "--set":
        return ("settings", value.partition("=")[0]), f"{value}: {failure.message}"
    if option.startswith("--"):
        return ("plane" if option == "--on" else option[2:],), failure.message
    message = f"{failure.file}: {failure.message}"
    for field in ("scenario", "machine", "workload", "policy"):
        named = getattr(check, field) or ""
        if Path(named.partition(".py:")[0]).stem == Path(failure.file).stem:
            return (field,), message
    return (), message


def _over(check: Alternative, other: Alternative) -> Alternative:
    """``other``, with what it does not say as in ``check``."""
    said = other.model_dump(exclude_none=True)
    return check.model_copy(update={**said, "settings": {**check.settings, **other.settings}})


def _scenario(check: Check, how: Alternative, folder: Path, seed: int | None) -> Scenario:
    assert check.scenario is not None

    def resolved(text: str | None) -> str | None:
        return None if text is None else seen_from(folder, text)

    name = resolved(check.scenario)
    assert name is not None
    if check.plane is not None and check.plane not in SIMULATED:
        raise InputError(
            "unknown plane", "--on", token=check.plane, expected=" or ".join(SIMULATED)
        )
    loaded = load_scenario(
        name,
        machine=resolved(how.machine),
        workload=resolved(how.workload),
        policy=resolved(how.policy),
        plane=check.plane,
        seed=seed,
        scale=how.scale,
        settings=[f"{path}={written(value, '')}" for path, value in how.settings.items()],
    )
    if loaded.plane not in SIMULATED:
        raise InputError("unknown plane", token=loaded.plane, expected=" or ".join(SIMULATED))
    return loaded


def _factor(raw: Bound) -> float | None:
    """What ``1.2 ×`` multiplies by; None of what is no multiple of more than 0."""
    found = _FACTOR.fullmatch(raw.strip()) if isinstance(raw, str) else None
    return (float(found[1]) or None) if found else None


def _bound(document: Document, place: Place, raw: Bound, metric: Metric) -> float:
    """A bound in the metric's own unit."""
    what, found = f"{'.'.join(map(str, place))}", math.nan
    if metric.dimension is None:
        if isinstance(raw, str):
            raise document.error(place, what, token=str(raw), expected="a number")
        found = float(raw)
    elif not isinstance(raw, str):
        raise document.error(place, what, token=str(raw), expected="a number with its unit")
    else:
        try:
            found = parse_quantity(raw, metric.dimension) * metric.per_si
        except ValueError as failure:
            raise document.error(place, f"{what}: {failure}", token=raw) from None
    if not (math.isfinite(found) and found >= 0):
        raise document.error(place, what, token=str(raw), expected="a number from 0 on")
    return found
