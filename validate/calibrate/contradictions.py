"""Contradictory measurements, reported before the fit."""

import math
from collections.abc import Iterator, Sequence

from ...inputs import InputError
from ...topologies.machine import Machine
from .observation import IDLE, LOADED, MACHINE_READ, MIX, READ, Measured, Observation
from .parameters import pair_classes

# Measurements agree within so many spreads; that of a session is believed to be at least this.
SPREADS, SESSION_SPREAD = 4.0, 0.02
# Loaded latency may lie so far below idle latency: another access pattern, another core.
BELOW_IDLE = 0.90
# Parts may exceed their whole by so much.
EXCESS = 1.10
# Figures of one parameter of the machine's file may differ by so much.
RATIO_MAX = 2.0
# Below this part of the peak, latency may be so many times that at a higher load. Near the peak,
# more requests may get less through.
LIGHT_LOAD_PART, FALLS_MAX = 0.5, 2.0


def check(sources: Sequence[Measured], machine: Machine) -> None:
    """Raises InputError for the first contradiction; each names the place of what is wrong. Also
    where a file has nothing that a calibration can use.
    """
    for source in sources:
        if not source.observations:
            reasons = "; ".join(f"{count} {reason}" for reason, count in source.unused.items())
            raise InputError(
                f"no measurement to calibrate on{f': {reasons}' if reasons else ''}",
                source.origin.file,
            )
    for source in sources:
        _check_nodes(source.observations, machine)
    for source in sources:
        for failure in (
            *_latencies(source.observations),
            *_bandwidths(source.observations),
            *_pairs(source.observations, machine),
        ):
            raise failure
    for failure in _between_sources(sources):
        raise failure


def _check_nodes(observations: Sequence[Observation], machine: Machine) -> None:
    """Every node that was measured is there, with what was measured of it."""
    nodes = {node.id: node for node in machine.nodes}
    ids = ", ".join(map(str, [*nodes][:8])) + " …" * (len(nodes) > 8)
    for one in observations:
        for node in (one.at[what] for what in ("node", "home") if what in one.at):
            if node not in nodes:
                what, expected = (
                    f"{machine.name} has no node {node}",
                    f"nodes of {machine.name}: {ids}",
                )
                raise one.error(f"{one.label}: {what}", expected)
        home, level = one.at.get("home"), one.at.get("level")
        if home is not None and nodes[home].memory_bytes == 0:
            raise one.error(f"{one.label}: node {home} of {machine.name} has no memory")
        if level is not None and nodes[one.at["node"]].cache(level) is None:
            raise one.error(f"{one.label}: {machine.name} tells of no L{level} cache there")


def _against(
    one: Observation,
    than: str,
    other: Observation | None = None,
    of: str = "",
    tail: str = "",
    expected: str | None = None,
) -> InputError:
    text = f"contradiction: {one.label} is {_written(one)}, {than}"
    if other is not None:
        text += f" {_written(other)}{of}" + (f" (line {other.line})" if other.line else "")
    return one.error(f"{text}{tail}", expected)


def _written(one: Observation) -> str:
    return f"{one.value * 1e9:.4g} ns" if one.unit == "s" else f"{one.value / 1e9:.4g} G{one.unit}"


def _pairs(observations: Sequence[Observation], machine: Machine) -> Iterator[InputError]:
    """What is one parameter of the machine was found to be about the same; no node is nearer to
    another's memory than that one.
    """
    index = {node.id: k for k, node in enumerate(machine.nodes)}
    classes = pair_classes(machine)
    first: dict[tuple[object, ...], Observation] = {}
    own = {o.at["home"]: o for o in observations if o.kind == IDLE and _is_own(o)}
    for one in (o for o in observations if o.kind in (IDLE, READ)):
        ends = index[one.at["node"]], index[one.at["home"]]
        of_class = next((c.name for c in classes if c.mask[ends]), ends)
        other = first.setdefault((one.kind, of_class, one.at.get("threads")), one)
        if not 1.0 / RATIO_MAX <= one.value / other.value <= RATIO_MAX:
            yield _against(
                one,
                f"but {other.label}",
                other,
                tail=f", which {machine.name} has as one parameter",
                expected="figures of about the same size, or another machine file",
            )
        near = own.get(one.at["home"])
        if one.kind == IDLE and near is not None and _below(one, near):
            of = f" that node {one.at['home']} takes to its own memory"
            yield _against(one, "less than the", near, of)


def _is_own(one: Observation) -> bool:
    return bool(one.at["node"] == one.at["home"])


def _below(one: Observation, other: Observation) -> bool:
    """Whatever their spreads."""
    return one.value < BELOW_IDLE * math.exp(-2.0 * (one.sigma + other.sigma)) * other.value


def _latencies(observations: Sequence[Observation]) -> Iterator[InputError]:
    """No load makes memory faster than none, or much faster than a lower one."""
    curve = sorted((o for o in observations if o.kind == LOADED), key=lambda o: o.at["load"])
    idle = [o for o in observations if o.kind == IDLE and _is_own(o)]
    least = min(idle, key=lambda o: o.value, default=None)
    for one in (o for o in observations if o.kind == LOADED and least is not None):
        if least is not None and _below(one, least):
            yield _against(one, "below the idle latency of", least)
    for index, one in enumerate(curve):
        less = min(curve[index:], key=lambda o: o.value)
        light = one.at["load"] < LIGHT_LOAD_PART * curve[-1].at["load"]
        if light and one.value > FALLS_MAX * less.value:
            yield _against(one, "but", less, f" at {less.at['load'] / 1e9:.4g} GB/s")


def _bandwidths(observations: Sequence[Observation]) -> Iterator[InputError]:
    """No node draws more from a memory than that memory gives; no whole is less than a part."""
    reads = [o for o in observations if o.kind == READ]
    # The most that a node was seen to draw: with fewer threads it is less.
    own = {o.at["home"]: o for o in sorted(filter(_is_own, reads), key=lambda o: o.value)}
    for one in reads:
        whole = own.get(one.at["home"])
        if whole is not None and _above(one, whole):
            of = f" that node {one.at['home']} draws from its own memory"
            yield _against(one, "more than the", whole, of)
    of_all = [o for o in observations if o.kind == MACHINE_READ]
    of_all += [o for o in observations if o.kind == MIX and not o.at["written"]]
    total, part = sum(o.value for o in own.values()), max(own.values(), key=_value, default=None)
    for one in (o for o in of_all if "node" not in o.at):
        if part is not None and _above(part, one):
            yield _against(part, "more than the", one, " of the whole machine")
        if len(own) > 1 and one.value > EXCESS * total:
            text = f"more than all nodes draw from their own memory: {total / 1e9:.4g} GB/s"
            yield _against(one, text)
    peak = max([total, *map(_value, of_all)])
    for one in (o for o in observations if o.kind == LOADED and own):
        if one.at["load"] > EXCESS * peak:
            yield _against(one, f"at more than the {peak / 1e9:.4g} GB/s of the whole machine")


def _value(one: Observation) -> float:
    return one.value


def _above(one: Observation, other: Observation) -> bool:
    return one.value > EXCESS * math.exp(2.0 * (one.sigma + other.sigma)) * other.value


def _between_sources(sources: Sequence[Measured]) -> Iterator[InputError]:
    """The same quantity from two files agrees within their spreads."""
    first: dict[tuple[object, ...], Observation] = {}
    for source in sources:
        calmest: dict[tuple[object, ...], Observation] = {}
        for one in sorted(source.observations, key=lambda o: -o.sigma):
            if one.kind != LOADED and "run" not in one.at:
                calmest[_same(one)] = one
        for key, here in calmest.items():
            there = first.setdefault(key, here)
            spread = math.hypot(max(here.sigma, SESSION_SPREAD), max(there.sigma, SESSION_SPREAD))
            if abs(math.log(here.value / there.value)) > SPREADS * spread:
                place = f"{there.origin.file}{f':{there.line}' if there.line else ''}"
                text = f"but {_written(there)} in {place}: they differ by more than their spreads"
                yield _against(here, text)


def _same(one: Observation) -> tuple[object, ...]:
    """Of one quantity, however many threads it took: all of them where it is unknown."""
    if one.kind == READ and one.at.get("threads") != 1:
        return (one.kind, one.at["node"], one.at["home"])
    return one.repetition_key
