"""Which fields of a scenario decide its throughput: each is halved and doubled once.

Fields are numbers and choices that the scenario, its workload and its machine state, each under the
path by which ``--set`` names it.
"""

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args, get_origin

from ...inputs import DescriptionError, InputError
from ...inputs.progress import Progress, silent
from ..machine.assumptions import split_quantity
from ..run.scenario import Scenario
from ..run.what_if import FLOW, Predictor
from .base import Base, is_whole
from .levels import is_number, written

# Of a machine: what a type of node, link, adapter, ... is like; not which stand where.
MACHINE_PARTS = ("node_types", "link_types", "nics", "copy_engines", "engines")
NO_FACTS = (
    "source",
    "notes",
    "title",
    "name",
    "kind",
    "range",
    "doubtful",
    "line",
    "level",
    "page",
)
TIMES = (0.5, 2.0)
NOTHING = 5e-4  # the flow plane's search leaves as much open


@dataclass(frozen=True)
class Field:
    """A field at ``path``, as the scenario has it.

    ``value``: a number of ``unit``, or one of ``choices``. ``effect``: by how much throughput
    changes at most where the number is halved or doubled, or another choice taken, as a ratio less
    1 (0.5 is half as much again, or a third less); None where it was not tried.
    """

    path: str
    value: float | str
    unit: str = ""
    whole: bool = False
    choices: tuple[str, ...] = ()
    effect: float | None = None

    def setting(self, value: float | str) -> str:
        """The setting that gives it another value."""
        if isinstance(value, str):
            return f"{self.path}={value}"
        number = round(value) if self.whole else float(f"{value:.6g}")
        return f"{self.path}={written(number, self.unit)}"


def fields_of(base: Base, scenario: Scenario) -> tuple[Field, ...]:
    """All numbers and choices of ``scenario`` that ``base`` gave, in the order of its settings."""
    machine = {part: scenario.settings["machine"].get(part) or {} for part in MACHINE_PARTS}
    roots = {
        "system": scenario.settings["system"],
        "workload": scenario.settings["workload"],
        "machine": machine,
    }
    found = []
    for path, value in _leaves(roots, ()):
        field = _field(base, ".".join(path), value)
        if field is not None:
            found.append(field)
    return tuple(found)


def influences(
    base: Base,
    scenario: Scenario,
    fields: tuple[Field, ...],
    *,
    budget_s: float = math.inf,
    progress: Progress = silent,
) -> tuple[Field, ...]:
    """``fields`` with their effects, the largest first; those that ``budget_s`` left untried last.

    By the flow plane in the scenario's first moment (``Predictor``). Raises InputError where the
    scenario itself cannot be predicted.
    """
    began = time.perf_counter()
    tried: list[Field] = []
    predictor = Predictor(replace(scenario, plane=FLOW))
    for k, field in enumerate(fields):
        if time.perf_counter() - began > budget_s:
            tried += fields[k:]
            break
        tried.append(replace(field, effect=_effect(base, field, predictor)))
        progress((k + 1) / len(fields))
    return tuple(
        sorted(tried, key=lambda tested: -1.0 if tested.effect is None else tested.effect)
    )[::-1]


def _effect(base: Base, field: Field, predictor: Predictor) -> float:
    """The largest change that another value brings; 0 where no other one can be had."""
    own = sum(predictor.own.throughput.values())
    others: list[float | str] = [choice for choice in field.choices if choice != field.value]
    if not isinstance(field.value, str):
        others = [times * field.value for times in TIMES]
    found = 0.0
    for value in others:
        try:
            other = sum(predictor(base.load([field.setting(value)])).throughput.values())
        except (InputError, DescriptionError):
            continue
        if own > 0 and other > 0:
            change = math.exp(abs(math.log(other / own))) - 1.0
            found = max(found, change if change > NOTHING else 0.0)
    return found


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value in ``value`` that has no parts, or is a fact with a source."""
    if isinstance(value, Mapping) and "value" not in value:
        for key, inner in value.items():
            if key not in NO_FACTS:
                yield from _leaves(inner, (*path, str(key)))
    elif isinstance(value, list):
        for k, inner in enumerate(value):
            yield from _leaves(inner, (*path, str(k)))
    else:
        yield path, value


def _field(base: Base, path: str, value: Any) -> Field | None:
    """The field at ``path``; None where its value is neither a number nor a choice."""
    try:
        kinds = base.check_path(path, path)
    except InputError:  # of a part that stands in another form in the file
        return None
    if isinstance(value, bool):
        return Field(path, written(value, ""), choices=("true", "false"))
    literals = tuple(
        str(choice) for kind in kinds if get_origin(kind) is Literal for choice in get_args(kind)
    )
    if isinstance(value, str) and value in literals:
        return Field(path, value, choices=literals) if len(literals) > 1 else None
    number, unit = split_quantity(value)
    if not is_number(number) or isinstance(number, str) or number <= 0:
        return None
    return Field(path, number, unit, whole=not unit and is_whole(kinds))
