"""Checks that measurements are of the machine to calibrate: its processors and memory.

A fit bends any machine to any figures. What no fit should bend is looked at before: which
processors there are, how many channels of memory they have, and what these reach by the data sheet
and by the machine file; and how many nodes there are.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from ...inputs import InputError
from ...topologies import Machine
from ...topologies.facts.catalogue import Entry, facts, find
from ...topologies.schema import ProcessorIdentity
from .observation import LOADED, MACHINE_READ, MIX, READ, Measured, Observation

FORCE = "--force to fit to them all the same"
# Figures so many times smaller, or larger, than the machine's are another machine's: a file may
# state a peak, of which reads reach some half; nothing reaches more, and little more than measured.
FACTOR, BEYOND = 2.0, 1.25
# What a measurement may exceed a data sheet by: rounding, and modules a little beyond it.
ROUNDING = 1.03


def check_same(sources: Sequence[Measured], machine: Machine) -> None:
    """Raises InputError, in one line, for the first source that another machine was measured for;
    the message says all that differs.
    """
    own, homes = machine.description.host, sum(node.memory_bytes != 0 for node in machine.nodes)
    here = (own.cpu_model if own is not None else None) or ""
    for source in sources:
        there, nodes = source.cpu_model, len(source.homes)
        if here and there and here != there:
            expected = f"{here}, as {machine.name} has it, or {FORCE}"
            raise InputError(
                "measured on another machine", source.origin.file, token=there, expected=expected
            )
        if 0 < nodes < homes or (source.cpu_model and nodes != homes):
            raise InputError(
                f"measured on another machine: {nodes} node{'s' * (nodes != 1)} with memory",
                source.origin.file,
                expected=f"the {homes} of {machine.name}, or {FORCE}",
            )
        found = [*_processors(source, machine), *_bandwidth(source, machine)]
        if found:
            raise InputError(
                f"measured on another machine than {machine.name}: {'; '.join(found)}",
                source.origin.file,
                expected=f"measurements of {machine.name}, or {FORCE}",
            )


def doubts(sources: Sequence[Measured], machine: Machine) -> tuple[str, ...]:
    """Of measurements that may be of the machine: what is less than its data sheet lets expect.

    A server of which some channels are empty reads as little as one of the generation before: by
    bandwidth and latency alone these cannot be told from each other, so it is no error.
    """
    entry, peak_Bps = _processor(machine), _peak_Bps(machine)
    if entry is None or peak_Bps is None:
        return ()
    memory, kinds = entry.processor.memory, facts().memory_types
    slowest = kinds[memory.slowest or memory.type].channel_Bps / kinds[memory.type].channel_Bps
    (low, high) = memory.share.range or (memory.share.value, memory.share.value)
    least_Bps = min(slowest, 1.0) * low * peak_Bps
    found = []
    for source in sources:
        most_Bps = max(map(_Bps, _own_reads(source)), default=least_Bps)
        if most_Bps < least_Bps:
            found.append(
                f"{source.origin.file}: {most_Bps / 1e9:.4g} GB/s a node, where all "
                f"{memory.channels} channels of {entry.processor.title} read "
                f"{least_Bps / 1e9:.3g} to {high * peak_Bps / 1e9:.3g} GB/s: are some of them "
                "empty, or was another machine measured?"
            )
    return tuple(found)


def _own_reads(source: Measured) -> list[Observation]:
    """Reads of nodes of their own memory."""
    return [o for o in source.observations if o.kind == READ and o.at["node"] == o.at["home"]]


def _processors(source: Measured, machine: Machine) -> Iterator[str]:
    own, other = _processor(machine), find(ProcessorIdentity(model_name=source.cpu_model))
    if own is None or other is None or own.label == other.label:
        return
    yield f"{other.processor.title}, not {own.processor.title}"
    a, b = other.processor.memory, own.processor.memory
    if a.per == b.per and a.channels != b.channels:
        yield f"{a.channels} channels of memory a socket, not {b.channels}"


def _processor(machine: Machine) -> Entry | None:
    """The catalogue's entry of the machine's processors."""
    for kind in machine.description.node_types.values():
        if kind.cores != 0 and kind.processor is not None:
            return find(kind.processor)
    return None


def _bandwidth(source: Measured, machine: Machine) -> Iterator[str]:
    """The most that was read of one node, and of all; against peaks, and against the file."""
    of_all = [
        one
        for one in source.observations
        if one.kind in (LOADED, MACHINE_READ)
        or (one.kind == MIX and one.at.get("written", 1.0) == 0.0)
    ]
    homes = sum(node.memory_bytes != 0 for node in machine.nodes)
    origins = ((_stated_Bps(machine), "in its file"), (_peak_Bps(machine), "of its data sheet"))
    for ones, scale, each in ((_own_reads(source), 1, "a node"), (of_all, homes, "in all")):
        most = max(map(_Bps, ones), default=math.nan)
        for (known_Bps, origin), beyond in zip(
            (*origins[1:], *origins), (ROUNDING, BEYOND, BEYOND), strict=True
        ):
            ratio = math.nan if known_Bps is None else most / (scale * known_Bps)
            near = ratio < 1.0 and beyond > ROUNDING
            if ratio > beyond or (near and ratio <= 1.0 / FACTOR):
                yield (
                    f"{most / 1e9:.4g} GB/s {each}, {'not near' if ratio < 1.0 else 'over'} the "
                    f"{scale * (known_Bps or 0.0) / 1e9:.4g} GB/s {origin}"
                )
                return


def _Bps(observation: Observation) -> float:
    return float(observation.at["load"]) if observation.kind == LOADED else observation.value


def _stated_Bps(machine: Machine) -> float | None:
    """What the machine file says of the memory of its fastest node, where it is not in doubt."""
    if any("bandwidth" in path for path in machine.doubtful):
        return None
    known = [*np.diag(machine.bandwidth_Bps).tolist()]
    known += [node.memory_bandwidth_Bps or np.nan for node in machine.nodes]
    return max((Bps for Bps in known if not np.isnan(Bps)), default=None)


def _peak_Bps(machine: Machine) -> float | None:
    """The data sheet's peak of a node's memory; None where the catalogue lacks the processor."""
    entry = _processor(machine)
    if entry is None:
        return None
    memory = entry.processor.memory
    each = facts().memory_types[entry.model.memory or memory.type].channel_Bps
    if memory.per == "node":
        return memory.channels * each
    node = next(node for node in machine.nodes if node.cores)
    kinds = machine.description.node_types.values()
    packages = next((kind.processor.packages for kind in kinds if kind.processor is not None), 1)
    together = sum(bool(other.cores) and other.group == node.group for other in machine.nodes)
    return memory.channels * each * packages / (1 if node.group is None else max(1, together))
