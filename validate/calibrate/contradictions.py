"""Contradictory measurements, reported before the fit."""

from __future__ import annotations

import math
from collections.abc import Sequence

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
    """Raises InputError for the first contradiction; each names the place of what is wrong."""
    for source in sources:
        _check_nodes(source.observations, machine)
    for source in sources:
        _check_loaded(source.observations)
        _check_curve(source.observations)
        _check_bandwidths(source.observations)
        _check_pairs(source.observations, machine)
    _check_sources(sources)


def _check_nodes(observations: Sequence[Observation], machine: Machine) -> None:
    """Every node that was measured is there, with what was measured of it."""
    nodes = {node.id: node for node in machine.nodes}
    for observation in observations:
        for what in ("node", "home"):
            node = observation.at.get(what)
            if node is not None and node not in nodes:
                raise observation.error(
                    f"{observation.label}: {machine.name} has no node {node}",
                    f"nodes of {machine.name}: {_listed(list(nodes))}",
                )
        home = observation.at.get("home")
        if home is not None and nodes[home].memory_bytes == 0:
            raise observation.error(
                f"{observation.label}: node {home} of {machine.name} has no memory"
            )
        level = observation.at.get("level")
        if level is not None and nodes[observation.at["node"]].cache(level) is None:
            raise observation.error(
                f"{observation.label}: {machine.name} tells of no L{level} cache there"
            )


def _listed(ids: list[int]) -> str:
    shown = ", ".join(map(str, ids[:8]))
    return f"{shown} …" if len(ids) > 8 else shown


def _check_pairs(observations: Sequence[Observation], machine: Machine) -> None:
    """What is one parameter of the machine was found to be about the same; no node is nearer to
    another's memory than that one.
    """
    index = {node.id: k for k, node in enumerate(machine.nodes)}
    classes = pair_classes(machine)
    first: dict[tuple[object, ...], Observation] = {}
    own = {o.at["home"]: o for o in observations if o.kind == IDLE and o.at["node"] == o.at["home"]}
    for observation in (o for o in observations if o.kind in (IDLE, READ)):
        ends = index[observation.at["node"]], index[observation.at["home"]]
        of_class = next((c for c in classes if c.mask[ends]), None)
        other = first.setdefault(
            (observation.kind, of_class.name if of_class else ends, observation.at.get("threads")),
            observation,
        )
        if not 1.0 / RATIO_MAX <= observation.value / other.value <= RATIO_MAX:
            raise observation.error(
                f"contradiction: {observation.label} is {_written(observation)}, but {other.label} "
                f"{_written(other)}{_line(other)}, which {machine.name} has as one parameter",
                "figures of about the same size, or another machine file",
            )
        near = own.get(observation.at["home"])
        if (
            observation.kind == IDLE
            and near is not None
            and observation.value < _far_least(observation, near)
        ):
            raise observation.error(
                f"contradiction: {observation.label} is {_ns(observation)}, "
                f"less than the {_ns(near)} that node "
                f"{observation.at['home']} takes to its own memory{_line(near)}"
            )


def _far_least(one: Observation, other: Observation) -> float:
    """Less than this is below ``other``, whatever their spreads."""
    return BELOW_IDLE * math.exp(-2.0 * (one.sigma + other.sigma)) * other.value


def _check_loaded(observations: Sequence[Observation]) -> None:
    """No load makes memory faster than none."""
    local = [o for o in observations if o.kind == IDLE and o.at["node"] == o.at["home"]]
    if not local:
        return
    least = min(local, key=lambda o: o.value)
    for observation in observations:
        if observation.kind == LOADED and observation.value < _far_least(observation, least):
            raise observation.error(
                f"contradiction: {observation.label} is {_ns(observation)}, "
                f"below the idle latency of "
                f"{_ns(least)}{_line(least)}"
            )


def _check_curve(observations: Sequence[Observation]) -> None:
    """No load makes memory much faster than a lower one."""
    curve = sorted((o for o in observations if o.kind == LOADED), key=lambda o: o.at["load"])
    for index, observation in enumerate(curve):
        less = min(curve[index:], key=lambda o: o.value)
        if (
            observation.at["load"] < LIGHT_LOAD_PART * curve[-1].at["load"]
            and observation.value > FALLS_MAX * less.value
        ):
            raise observation.error(
                f"contradiction: {observation.label} is {_ns(observation)}, but {_ns(less)} at "
                f"{less.at['load'] / 1e9:.4g} GB/s{_line(less)}"
            )


def _check_bandwidths(observations: Sequence[Observation]) -> None:
    """No node draws more from a memory than that memory gives; no whole is less than a part."""
    reads = [o for o in observations if o.kind == READ]
    local = [o for o in reads if o.at["node"] == o.at["home"]]
    # The most that a node was seen to draw: with fewer threads it is less.
    own = {o.at["home"]: o for o in sorted(local, key=lambda o: o.value)}
    for observation in reads:
        whole = own.get(observation.at["home"])
        if whole is not None and observation.value > _room(observation, whole) * whole.value:
            raise observation.error(
                f"contradiction: {observation.label} is {_rate(observation)}, "
                f"more than the {_rate(whole)} that "
                f"node {observation.at['home']} draws from its own memory{_line(whole)}"
            )
    of_all = [o for o in observations if o.kind == MACHINE_READ]
    of_all += [o for o in observations if o.kind == MIX and not o.at["written"]]
    total = sum(o.value for o in own.values())
    for observation in (o for o in of_all if "node" not in o.at):
        part = max(own.values(), key=lambda o: o.value, default=None)
        if part is not None and part.value > _room(part, observation) * observation.value:
            raise part.error(
                f"contradiction: {part.label} is {_rate(part)}, "
                f"more than the {_rate(observation)} of the "
                f"whole machine{_line(observation)}"
            )
        if own and len(own) > 1 and observation.value > EXCESS * total:
            raise observation.error(
                f"contradiction: {observation.label} is {_rate(observation)}, "
                f"more than all nodes draw from their "
                f"own memory: {total / 1e9:.4g} GB/s"
            )
    for observation in (o for o in observations if o.kind == LOADED):
        peak = max([total, *(o.value for o in of_all)], default=0.0)
        if own and peak and observation.at["load"] > EXCESS * peak:
            raise observation.error(
                f"contradiction: latency under {observation.at['load'] / 1e9:.4g} GB/s, "
                f"more than the "
                f"{peak / 1e9:.4g} GB/s of the whole machine"
            )


def _room(one: Observation, other: Observation) -> float:
    return EXCESS * math.exp(2.0 * (one.sigma + other.sigma))


def _check_sources(sources: Sequence[Measured]) -> None:
    """The same quantity from two files agrees within their spreads."""
    first: dict[tuple[object, ...], list[Observation]] = {}
    for source in sources:
        same_conditions: dict[tuple[object, ...], list[Observation]] = {}
        for observation in source.observations:
            if observation.kind != LOADED and "run" not in observation.at:
                same_conditions.setdefault(_same(observation), []).append(observation)
        for key, ones in same_conditions.items():
            here = _calmest(ones)
            if key not in first:
                first[key] = ones
                continue
            there = _calmest(first[key])
            spread = math.hypot(max(here.sigma, SESSION_SPREAD), max(there.sigma, SESSION_SPREAD))
            if abs(math.log(here.value / there.value)) > SPREADS * spread:
                raise here.error(
                    f"contradiction: {here.label} is {_written(here)}, but {_written(there)} in "
                    f"{there.origin.file}{f':{there.line}' if there.line else ''}: they differ "
                    "by more than their spreads"
                )


def _same(observation: Observation) -> tuple[object, ...]:
    """Of one quantity, however many threads it took: all of them where it is unknown."""
    if observation.kind == READ and observation.at.get("threads") != 1:
        return (observation.kind, observation.at["node"], observation.at["home"])
    return observation.repetition_key


def _calmest(ones: Sequence[Observation]) -> Observation:
    return min(ones, key=lambda observation: observation.sigma)


def _written(observation: Observation) -> str:
    return _ns(observation) if observation.unit == "s" else _rate(observation)


def _ns(observation: Observation) -> str:
    return f"{observation.value * 1e9:.4g} ns"


def _rate(observation: Observation) -> str:
    return f"{observation.value / 1e9:.4g} G{observation.unit}"


def _line(observation: Observation) -> str:
    return f" (line {observation.line})" if observation.line else ""


def check_any(sources: Sequence[Measured]) -> None:
    """Raises InputError where a file has nothing that a calibration can use."""
    for source in sources:
        if not source.observations:
            reasons = "; ".join(f"{count} {reason}" for reason, count in source.unused.items())
            raise InputError(
                f"no measurement to calibrate on{f': {reasons}' if reasons else ''}",
                source.origin.file,
            )
