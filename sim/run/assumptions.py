"""What a run assumed, and the effect of each assumption on its result."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from ...inputs import DescriptionError, InputError
from ...inputs.fields import part_at
from ...inputs.settings import with_part
from ...topologies import Machine, MachineDescription, build_machine
from ..machine.assumptions import (
    LESS,
    MORE,
    Assumption,
    Place,
    Variant,
    assumptions_of,
    split_quantity,
    stated,
    times_value,
)
from ..machine.costs import CostModel
from ..machine.missing_facts import missing_facts
from ..machine.transfer_limits import assumed_of_links
from ..systems.registry import system_of
from .hypotheses import place_in
from .scenario import Scenario, scenario_from_settings
from .what_if import Moment, Predictor

ROOTS = ("machine", "system")


def assumptions_in(scenario: Scenario, costs: CostModel | None) -> tuple[Assumption, ...]:
    """All that a run of ``scenario`` counts with though nobody stated it.

    ``costs``: the model of the run, which has noted what it assumed; None where none
    was. Facts that the machine file itself marks as uncertain are among them.
    """
    system = system_of(scenario.system)
    found = []
    if costs is not None:
        found += [*assumptions_of(costs.notes), *missing_facts(scenario.machine)]
        found += assumed_of_links(costs, costs.limits)
    if system.assumptions is not None:
        found += system.assumptions.load()(scenario)
    found += scenario.system.assumptions(scenario.machine)
    found += (one for one in doubtful_facts(scenario.machine) if system.reads(one.name))
    for part in ("objects", "operations"):
        found += _ranged(scenario.workload.plain[part], ("workload", part))
    return tuple(found)


def doubtful_facts(machine: Machine) -> Iterator[Assumption]:
    """Facts of the machine file that are marked as uncertain: over their ranges, where these are
    stated, or by a tenth.
    """
    for path in machine.doubtful:
        place = place_in(machine.plain, path)
        fact = part_at(machine.plain, place)
        number, unit = split_quantity(fact)
        if not isinstance(fact, Mapping) or not isinstance(number, float):
            continue
        bounds = fact.get("range")
        between = bounds or [times_value(fact["value"], times) for times in (LESS, MORE)]
        low, high = (stated(("machine", *place), end, unit) for end in between)
        source = fact.get("source") or "The machine file marks it as uncertain"
        yield Assumption(path, number, unit, str(source), low, high, bounds is not None)


def _ranged(plain: Any, place: Place) -> Iterator[Assumption]:
    """Values of a workload that it states with a range, such as a loop's instructions per cycle."""
    for at, fact in facts_in(plain, place):
        number, unit = split_quantity(fact)
        if "range" in fact and isinstance(number, float):
            low, high = (stated(at, end, unit) for end in fact["range"])
            source = str(fact.get("source") or "The workload states a range")
            yield Assumption(".".join(map(str, at[1:])), number, unit, source, low, high, True)


def facts_in(part: Any, place: Place = ()) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """The facts of a plain description that have more than a value, by place."""
    if isinstance(part, Mapping):
        if "value" in part:
            yield place, part
            return
        items: Any = part.items()
    else:
        items = enumerate(part) if isinstance(part, list) else ()
    for name, inner in items:
        if isinstance(inner, (Mapping, list)):
            yield from facts_in(inner, (*place, name))


def described_assumptions(
    found: Sequence[Assumption], predictor: Predictor | None
) -> tuple[Mapping[str, Any], ...]:
    """``Record.assumptions``; ``predictor``: of the scenario, None leaves effects out."""
    rows = []
    for assumption in found:
        row: dict[str, Any] = {
            "name": assumption.name,
            "value": assumption.value,
            "unit": assumption.unit,
            "source": assumption.source,
            "settings": list(assumption.settings),
            "ranged": assumption.ranged,
        }
        for end in ("low", "high"):
            variant = getattr(assumption, end)
            row[end] = None if variant is None else {"value": variant.value}
            if variant is not None and predictor is not None:
                row[end] |= _effect(variant, predictor)
        rows.append(row)
    return tuple(rows)


def predicted(predictor: Predictor, variant: Variant) -> Moment:
    """Of the predictor's scenario with the variant's settings; raises what ``varied`` raises."""
    key = repr(variant.settings)
    if key not in predictor.known:
        predictor.known[key] = predictor(varied(predictor.scenario, variant))
    return predictor.known[key]


def _effect(variant: Variant, predictor: Predictor) -> dict[str, float | None]:
    """Relative changes of the work done and of power; None where they cannot be predicted."""
    try:
        other = predicted(predictor, variant)
    except (InputError, DescriptionError):  # a value that this scenario cannot have
        return {"throughput": None, "power": None}
    own, work = predictor.own, sum(predictor.own.throughput.values())
    power = None
    if own.power_W and other.power_W is not None:
        power = other.power_W / own.power_W - 1.0
    if not work:
        return {"throughput": None, "power": power}
    change = sum(other.throughput.values()) / work - 1.0
    return {"throughput": predictor.relative(change), "power": power}


def varied(scenario: Scenario, variant: Variant) -> Scenario:
    """The scenario with the variant's settings; raises InputError where it cannot have them."""
    others = {place: v for place, v in variant.settings.items() if place[0] not in ROOTS}
    if others:  # a workload or a policy: the whole scenario is checked again
        known = {name: part for name, part in scenario.settings.items() if name != "unknown"}
        scenario = scenario_from_settings(with_settings(known, others), scenario.name)
    plain: dict[str, Any] = {}
    for (first, *place), value in variant.settings.items():
        root = str(first)
        if root not in ROOTS:
            continue
        if root not in plain:
            plain[root] = (
                scenario.machine.plain
                if root == "machine"
                else scenario.system.model_dump(mode="json", exclude_none=True)
            )
        plain[root] = with_settings(plain[root], {tuple(place): value})
    changes: dict[str, Any] = {}
    try:
        if "machine" in plain:
            description = MachineDescription.model_validate(plain["machine"])
            stated = scenario.machine.drawn_from or scenario.machine
            changes["machine"] = replace(build_machine(description), drawn_from=stated)
        if "system" in plain:
            changes["system"] = type(scenario.system).model_validate(plain["system"])
    except ValidationError as failure:  # beyond the field's range
        raise InputError(f"{scenario.name}: no value {variant.value} here") from failure
    return replace(scenario, **changes)


def with_settings(whole: Any, settings: Mapping[Place, Any]) -> Any:
    """``whole`` with each value at its place; no part of ``whole`` is changed."""
    for place, value in settings.items():
        stated = part_at(whole, place)
        # A fact keeps its source and loses its range, which the other value may lie outside of.
        if isinstance(stated, dict) and "value" in stated:
            kept = {name: part for name, part in stated.items() if name != "range"}
            value = {**kept, "value": value}
        whole = with_part(whole, place, value)
    return whole
