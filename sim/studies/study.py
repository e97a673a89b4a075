"""A study: a base scenario, its factors, the design of its points, and what is asked of them."""

import hashlib
import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..._version import __version__
from ...inputs import Document, InputError, load_yaml
from ...inputs.kinds import check_kind
from ...inputs.quantities import in_unit
from ...inputs.yaml_file import Place
from ..run.scenario import CATALOGUE as SCENARIOS
from ..run.scenario import load_document
from ..run.scenario_parts import reported_at
from . import designs
from .base import INNER, POLICY, Base, is_whole
from .description import (
    POINTS_MAX,
    Constraint,
    FactorDescription,
    Objective,
    Prices,
    StudyDescription,
    read_constraint,
    read_objective,
)
from .designs import Distribution, Factor
from .evaluate import COST, Metrics, Runs
from .levels import Levels, checked_range, is_number, listed, read_levels, split_number

FORMAT = 2  # of rows: the second has what says that a run did not settle
STEPS = 5  # of a range that a grid has and that does not say how many
WITH_FILES = (*INNER, POLICY)


@dataclass(frozen=True, eq=False)
class Study:
    """All that its runs need, and its analysis. ``identity``: what rows depend on, as plain JSON
    values: a folder whose rows are of another identity belongs to another study.
    """

    name: str
    title: str
    file: str
    runs: Runs
    design: designs.Design
    constraints: tuple[Constraint, ...]
    objective: Objective | None
    prices: Prices | None
    identity: Mapping[str, Any]

    @property
    def factors(self) -> tuple[Factor, ...]:
        """What its runs differ in."""
        return self.design.factors

    @property
    def default_folder(self) -> Path:
        """Where its rows go unless said otherwise."""
        return Path("out") / f"study-{self.name}"


def load_study(path: str | Path) -> Study:
    """The study in a file; raises InputError with line and column."""
    return study_of(load_yaml(path))


def study_of(document: Document) -> Study:
    """The study that a document describes; raises InputError."""
    check_kind(document, "study")
    described = document.read_as(StudyDescription)
    folder = Path(document.file).parent
    base = _base(document, described, folder)
    with _placed(document, ("scenario",)):
        scenario = base.load()
    factors = [
        _factor(document, base, name, spec, folder) for name, spec in described.factors.items()
    ]
    design = _design(document, described, factors, folder)
    if design.kind == "table":
        for factor in design.factors:
            with _placed(document, ("design", "file")):
                base.check_values(factor.path, factor.levels.checked, factor.unit)
    fixed = not any(factor.path.startswith("workload") for factor in factors)
    operations = list(scenario.workload.operations) if fixed else None
    constraints = []
    for index, text in enumerate(described.constraints):
        with _placed(document, ("constraints", index)):
            constraints.append(read_constraint(text, operations))
    objective = None
    if described.objective is not None:
        with _placed(document, ("objective",)):
            objective = read_objective(described.objective, operations)
    asked = [constraint.metric for constraint in constraints] + (
        objective.metrics if objective else []
    )
    if COST in asked and described.prices is None:
        place: Place = ("objective",) if objective and COST in objective.metrics else ()
        raise document.error(place, "a cost needs 'prices'")
    # What is kept anyway is not named again: another objective needs no new runs.
    patterns = [*described.metrics]
    patterns += [m for m in asked if m != COST and not Metrics(described.metrics).keep(m)]
    patterns += ["machine.*"] if described.prices is not None else []
    metrics = Metrics(tuple(dict.fromkeys(patterns)))
    with _placed(document, ("metrics",)):
        metrics.check(operations)
    paths, units = (tuple(getattr(f, what) for f in factors) for what in ("path", "unit"))
    runs = Runs(base, paths, units, metrics, own_seeds=not described.common_random_numbers)
    identity: dict[str, Any] = {
        "format": FORMAT,
        "version": __version__,
        "study": described.name,
        "file": str(document.file),
        "scenario": scenario.hash,
        "settings": list(base.settings),
        "factors": [_plain_factor(factor) for factor in factors],
        "design": described.design.model_dump(mode="json") | {"points": design.count},
        "metrics": list(metrics.patterns),
        "common_random_numbers": described.common_random_numbers,
    }
    if design.columns is not None:
        content = json.dumps(design.columns, default=str).encode()
        identity["design"]["digest"] = hashlib.sha256(content).hexdigest()
    return Study(
        name=described.name,
        title=described.title or described.name,
        file=str(document.file),
        runs=runs,
        design=design,
        constraints=tuple(constraints),
        objective=objective,
        prices=described.prices,
        identity=identity,
    )


def changes(identity: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    """In what both differ; where the file lies does not matter."""
    names = dict.fromkeys([*identity, *before])
    return [n for n in names if n != "file" and identity.get(n) != before.get(n)]


def _base(document: Document, described: StudyDescription, folder: Path) -> Base:
    scenario: str | Mapping[str, Any] = described.scenario
    if isinstance(scenario, str):
        with _placed(document, ("scenario",)):
            if not SCENARIOS.is_bundled(scenario):
                scenario = str(folder / scenario)
                load_document(scenario)
            else:
                SCENARIOS.path(scenario)
    settings = [
        f"{path}={_text(_with_folder(path, value, folder))}"
        for path, value in described.settings.items()
    ]
    if described.replications is not None:
        settings.append(f"statistics.replications={described.replications}")
    base = Base(scenario, {}, tuple(settings), f"{document.file} (scenario)")
    for path in described.settings:
        with _placed(document, ("set", path)):
            Base(base.scenario, {}, (), base.file).check_path(path, "")
    return base


def _factor(
    document: Document, base: Base, path: str, spec: FactorDescription, folder: Path
) -> Factor:
    place: Place = ("factors", path)
    with _placed(document, place):
        whole = is_whole(base.check_path(path, ""))
        if spec.text is not None:
            levels = _with_folders(path, read_levels(spec.text, "", whole), folder)
            base.check_values(path, levels.checked, levels.unit)
            return Factor(path, levels, whole=whole)
    if spec.values is not None:
        inner = () if isinstance(document.part(place), list) else ("values",)
        checked = set(map(repr, Levels(tuple(spec.values)).checked))
        for index, value in enumerate(spec.values):
            with _placed(document, (*place, *inner, index)):
                if repr(value) in checked:
                    base.check_values(path, [_with_folder(path, value, folder)])
    with _placed(document, place):
        if spec.values is not None:
            return Factor(path, _with_folders(path, listed(spec.values), folder), whole=whole)
        unit, numbers = _numbers(spec)
        distribution = _distribution(spec, numbers)
        if distribution.kind in ("uniform", "loguniform"):
            low, high = distribution.low, distribution.high
            log = distribution.kind == "loguniform"
            values = checked_range(low, high, spec.steps or STEPS, log, whole, "")
            base.check_values(path, Levels(values).checked, unit)
        else:  # a grid has so many levels of equal probability
            import numpy as np

            count = spec.steps or STEPS
            parts = (np.arange(count) + 0.5) / count
            values = tuple(Factor(path, Levels(()), distribution, whole).drawn(parts))
        return Factor(path, Levels(values, unit), distribution, whole)


def _numbers(spec: FactorDescription) -> tuple[str, dict[str, float]]:
    """The unit of a range or distribution, and its numbers in that unit."""
    given = {"low": spec.low, "high": spec.high, "mode": spec.mode, "mean": spec.mean}
    given["deviation"] = spec.deviation
    unit, numbers = "", {}
    for name, value in given.items():
        if value is None:
            continue
        split = (float(value), "") if is_number(value) else split_number(str(value))
        if split is None:
            raise InputError("not a number", token=str(value), expected="such as 8 or 1.5 us")
        if spec.distribution == "lognormal" and name in ("mean", "deviation") and split[1]:
            raise InputError(f"lognormal: {name} is of the logarithm", token=str(value))
        unit = unit or split[1]
        scaled = in_unit(*split, unit) if split[1] else split[0]
        if scaled is None:
            raise InputError("units that do not fit each other", token=str(value), expected=unit)
        numbers[name] = scaled
    return unit, numbers


def _distribution(spec: FactorDescription, numbers: Mapping[str, float]) -> Distribution:
    kind = spec.distribution or ("loguniform" if spec.scale == "log" else "uniform")
    made = Distribution(kind, **numbers)
    if not made.low < made.high and not (made.low == made.high and kind == "uniform"):
        raise InputError(
            "an empty range", token=f"{made.low:g} to {made.high:g}", expected="from below to"
        )
    if kind == "loguniform" and made.low <= 0:
        raise InputError("a log range", token=f"{made.low:g}", expected="both ends above 0")
    if kind in ("normal", "lognormal") and not made.deviation > 0:
        raise InputError("deviation", token=f"{made.deviation:g}", expected="above 0")
    if kind == "triangular" and not made.low <= made.mode <= made.high:
        raise InputError("mode", token=f"{made.mode:g}", expected="between from and to")
    return made


def _design(
    document: Document, described: StudyDescription, factors: list[Factor], folder: Path
) -> designs.Design:
    kind, points = described.design.kind, described.design.points or 0
    if kind == "latin_hypercube":
        return designs.latin_hypercube(factors, points, described.design.seed)
    if kind == "sobol":
        return designs.sobol(factors, points, described.design.seed)
    if kind == "one_at_a_time":
        return designs.one_at_a_time(factors)
    if kind == "table":
        path = folder / str(described.design.file)
        columns, units = designs.table(path, [factor.path for factor in factors])
        made = [
            Factor(factor.path, Levels(tuple(dict.fromkeys(column)), unit), None, factor.whole)
            for factor, column, unit in zip(factors, columns, units, strict=True)
        ]
        return designs.Design("table", tuple(made), len(columns[0]), tuple(columns))
    return designs.grid(factors)


def check_size(study: Study, limit: int | None) -> None:
    """Raises InputError for more points than anybody waits for."""
    if study.design.count > POINTS_MAX and limit is None:
        raise InputError(
            "too many points",
            study.file,
            token=f"{study.design.count:,}",
            expected=f"at most {POINTS_MAX:,}, a sample (design), or --limit N",
        )


def _with_folders(path: str, levels: Levels, folder: Path) -> Levels:
    return Levels(tuple(_with_folder(path, v, folder) for v in levels.values), levels.unit)


def _with_folder(path: str, value: Any, folder: Path) -> Any:
    """A file that a value names, from where the study lies."""
    if path in INNER and isinstance(value, str) and not SCENARIOS.is_bundled(value):
        return str(folder / value)
    if path.split(".")[0] in (POLICY, "policies") and isinstance(value, str) and ".py:" in value:
        family, equals, file = value.rpartition("=")
        return f"{family}{equals}{folder / file}"
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _plain_factor(factor: Factor) -> dict[str, Any]:
    plain: dict[str, Any] = {"path": factor.path, "unit": factor.unit}
    if factor.distribution is not None:
        ends = {name: str(value) for name, value in vars(factor.distribution).items()}
        plain["distribution"] = ends
    plain["values"] = list(factor.levels.values)
    files = {}
    for value in factor.levels.values:
        name = str(value).rpartition("=")[2].rpartition(":")[0] or str(value)
        if factor.path in WITH_FILES and isinstance(value, str) and Path(name).is_file():
            files[value] = hashlib.sha256(Path(name).read_bytes()).hexdigest()
    return plain | ({"files": files} if files else {})


def _placed(document: Document, place: Place) -> AbstractContextManager[None]:
    return reported_at(document, place, ".".join(map(str, place)))
