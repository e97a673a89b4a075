"""What a prediction leans on and nobody knows exactly, as distributions that can be drawn.

A fact that the machine file gives with a range lies in it, as often below its value as above. A
value that stands in for a missing fact, or for what an engine takes, lies between the ends that its
assumption names. A fact that has a source but no range has the spread of its kind; what is stated
without a source counts as exact, as does a range of no width. Facts are drawn by their path and
the machine's name, assumptions by their name: two scenarios on one machine, or with one engine,
have the same draws.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...inputs.grouping import by_key
from ...topologies import Machine, MachineDescription, build_machine
from ..kernel.arrays import Floats, Ints
from ..kernel.streams import stream_key
from ..machine.assumptions import (
    Assumption,
    Place,
    Variant,
    in_one_unit,
    split_quantity,
    stated,
    times_value,
)
from ..systems.registry import system_of
from .assumptions import assumptions_in, facts_in, with_settings
from .hypotheses import Unknown, between, listed, place_in
from .scenario import Scenario
from .what_if import costs_of

SEED = 1  # the same draws for all runs
# The ends between which a fact lies whose source states no range, relative to its value: medians of
# the ranges that the sources of the bundled machines state for facts of that kind.
SPREADS: Mapping[str, tuple[float, float]] = {
    "caches.latency": (0.758, 1.3),
    "distance_classes.bandwidth": (0.877, 1.065),
    "distance_classes.latency": (0.87, 1.111),
    "memory.bandwidth": (0.951, 1.042),
    "memory.latency": (0.875, 1.106),
}


@dataclass(frozen=True)
class Doubt:
    """One uncertain quantity; ``stream`` names its draws. ``choices``: of ``weights``, where it is
    one of a few; ``named``: by the scenario, as unknown. ``others`` are as far off as the
    ``assumption`` is, each within its own ends: instructions per cycle of all loops of a query.
    """

    assumption: Assumption
    stream: str
    choices: tuple[Variant, ...] = ()
    named: bool = False
    others: tuple[Assumption, ...] = ()
    weights: tuple[float, ...] = ()

    @property
    def name(self) -> str:
        """What a table calls it."""
        return self.stream if self.others else self.assumption.name

    @property
    def setting(self) -> str:
        """The field that states it, as ``--set`` takes it; its name where several do."""
        settings = self.assumption.settings
        return settings[0] if len(settings) == 1 and not self.others else self.name

    def draws(self, count: int) -> Floats:
        """(count,) parts of its probability, one from each stripe of equal probability."""
        return drawn(self.stream, count)

    def at(self, part: float) -> Mapping[Place, Any]:
        """The settings that state its value at ``part`` of its probability; none for its own."""
        if self.choices:
            return self.choices[int(self.chosen(np.array(part)))].settings
        settings: dict[Place, Any] = {}
        for assumption in (self.assumption, *self.others):
            settings |= _at(assumption, part)
        return settings

    def chosen(self, parts: Floats) -> Ints:
        """Which of the ``choices`` it is at ``parts`` of its probability."""
        ends = np.cumsum(self.weights)
        return np.searchsorted(ends[:-1] / ends[-1], parts, side="right")


def _at(assumption: Assumption, part: float) -> Mapping[Place, Any]:
    low, high = assumption.low, assumption.high
    if low is None or high is None or not _numeric(assumption, low, high):
        own: Mapping[Place, Any] = {}
        ends = [None if end is None else end.settings for end in (low, high)]
        values = [settings for settings in (ends[0], own, ends[1]) if settings is not None]
        return values[min(int(part * len(values)), len(values) - 1)]
    value = assumption.value
    center = _part_of(value, low, high) if isinstance(value, float) else 0.5
    at = 2.0 * part * center if part < 0.5 else center + (2.0 * part - 1.0) * (1.0 - center)
    if at in (0.0, 1.0):  # an end, to the letter: it may have been predicted already
        return (high if at else low).settings
    return {
        place: between(lowest, high.settings[place], at) for place, lowest in low.settings.items()
    }


def _numeric(assumption: Assumption, low: Variant, high: Variant) -> bool:
    """Whether values between the two can be stated: of a machine's facts, and where a range says
    so. What a system assumes, such as a page size, is one of a few.
    """
    return low.settings.keys() == high.settings.keys() and all(
        (place[0] == "machine" or assumption.ranged)
        and in_one_unit(value, high.settings[place]) is not None
        for place, value in low.settings.items()
    )


def drawn(stream: str, count: int) -> Floats:
    """(count,) see ``Doubt.draws``."""
    rng = np.random.default_rng(stream_key(SEED, 0, stream))
    return np.asarray((rng.permutation(count) + rng.random(count)) / count)


def doubts_of(scenario: Scenario) -> tuple[Doubt, ...]:
    """All that a prediction of ``scenario`` leans on and that is not exact: what it names as
    unknown, facts of its machine and clients with a range, and assumptions.
    """
    found = list(_unknown(scenario.settings))
    named = {place for one in found for place in _places(one.assumption)}
    streams = by_key(
        (_stream_of(one), one)
        for one in assumptions_in(scenario, costs_of(scenario))
        if (one.low or one.high) and named.isdisjoint(_places(one))
    )
    found += [
        Doubt(first, stream, others=tuple(others)) for stream, (first, *others) in streams.items()
    ]
    known = {place for one in found for place in _places(one.assumption)}
    clients = {"clients": scenario.settings["workload"].get("clients", {})}
    found += [
        doubt
        for doubt in (*_ranged("workload", clients, ""), *doubts_about(scenario.machine))
        if system_of(scenario.system).reads(doubt.name)
        and known.isdisjoint(_places(doubt.assumption))
    ]
    return tuple(found)


def _unknown(settings: Mapping[str, Any]) -> Iterator[Doubt]:
    """What the settings of a scenario name as unknown; the same in two scenarios is one doubt."""
    for path, raw in settings.get("unknown", {}).items():
        unknown = Unknown.model_validate(listed(raw))
        place, values = place_in(settings, path), unknown.values
        variants = [
            Variant(value if isinstance(value, float) else str(value), {place: value})
            for value in values
        ]
        unit, source = split_quantity(values[0])[1], "unknown, as the scenario says"
        of = Assumption(path, "unknown", unit, source, variants[0], variants[-1], True)
        choices = tuple(variants) if unknown.choices else ()
        weights = unknown.weights or (1.0,) * len(choices)
        stream = f"unknown/{path}/{values}{unknown.weights or ''}"
        yield Doubt(of, stream, choices, True, weights=weights)


def doubts_about(machine: Machine) -> Iterator[Doubt]:
    """The facts of a machine that have a range, their own or that of their kind."""
    return _ranged("machine", plain_facts(machine.description), f"{machine.name}/")


def _ranged(root: str, plain: Mapping[str, Any], of: str) -> Iterator[Doubt]:
    for place, fact in facts_in(plain):
        path, bounds = ".".join(map(str, place)), fact.get("range") or _usual_range(place, fact)
        number, unit = split_quantity(fact)
        if not bounds or not isinstance(number, float):
            continue
        low, high = (stated((root, *place), end, unit) for end in bounds)
        if low.value != high.value:
            source, own = str(fact.get("source", "")), fact.get("range") is not None
            fact_of = Assumption(path, number, unit, source, low, high, own)
            yield Doubt(fact_of, f"{of}{path}")


def plain_facts(description: MachineDescription) -> dict[str, Any]:
    """A machine as its file has it, without what its facts were measured by."""
    return description.model_dump(mode="json", exclude_none=True, exclude={"measurements"})


def drawn_machines(machine: Machine, count: int) -> Iterator[Machine]:
    """The machine with all that is uncertain about it drawn together, so many times; not at all
    where nothing is.
    """
    doubts = tuple(doubts_about(machine))
    for row in parts_drawn(doubts, count) if doubts else ():
        settings = {place[1:]: value for place, value in merged(doubts, row).settings.items()}
        plain = with_settings(plain_facts(machine.description), settings)
        description = MachineDescription.model_validate(plain)
        yield replace(build_machine(description), drawn_from=machine)


def parts_drawn(doubts: tuple[Doubt, ...], count: int) -> Floats:
    """(count, len(doubts)) draws of all of them together, a Latin hypercube."""
    return np.array([doubt.draws(count) for doubt in doubts]).reshape(-1, count).T


def merged(doubts: tuple[Doubt, ...], parts: Floats) -> Variant:
    """All doubts at once, each at its of ``parts`` (len(doubts),)."""
    settings: dict[Place, Any] = {}
    for doubt, part in zip(doubts, parts.tolist(), strict=True):
        settings |= doubt.at(part)
    return Variant("drawn", settings)


def kind_of(place: Place) -> str:
    """What facts of all nodes, caches and classes have in common: ``memory.latency``."""
    words = [word for word in place if isinstance(word, str)]
    return ".".join(words[2:] if words[0] in ("node_types", "link_types") else words)


def _usual_range(place: Place, fact: Mapping[str, Any]) -> list[Any]:
    """The range that facts of its kind have; [] where that is unknown, or it has no source."""
    spread = SPREADS.get(kind_of(place))
    if spread is None or "source" not in fact:
        return []
    return [times_value(fact["value"], times) for times in spread]


def _stream_of(assumption: Assumption) -> str:
    """By its name; of a query's loops together: counts are as wrong about all of them."""
    place = next(_places(assumption))
    if place[0] == "workload" and place[-1] in ("ipc", "size"):
        return stream_of_loops(str(place[2]), place[-1])
    return assumption.name


def stream_of_loops(query: str, field: str) -> str:
    """Of a doubt about all loops of a query: their ``ipc``, or their structures' ``size``."""
    return f"{query}: {field} of all loops"


def _places(assumption: Assumption) -> Iterator[Place]:
    for variant in (assumption.low, assumption.high):
        yield from () if variant is None else variant.settings


def _part_of(own: float, low: Variant, high: Variant) -> float:
    """How far ``own`` lies from the low to the high end, 0 to 1."""
    first, last = low.value, high.value
    if not isinstance(first, float) or not isinstance(last, float) or first == last:
        return 0.5
    if min(own, first, last) > 0.0:
        part = math.log(own / first) / math.log(last / first)
    else:
        part = (own - first) / (last - first)
    return min(max(part, 0.0), 1.0)
