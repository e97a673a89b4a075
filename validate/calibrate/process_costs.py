"""What processes and cores of a host cost each other, as calibration fits it: messages by transport
and operation, copies of blocks, atomic operations, a cache line from core to core.

A machine file has a table of single steps for these (``processes``). Sizes and counts of the table
were measured together, in one state of the host; what differs from session to session is the level.
So one factor is fitted for each transport and operation, and for each step on blocks; a line and an
atomic operation are numbers of their own.

Atomic operations of several threads on one line are made of both. A message is two hand-overs of
the line (the writer takes it back, the reader fetches it), so that one takes h = line / 2. Who
increments by compare-and-swap loads the word first; the line goes round, and each thread succeeds
once a round: n h. Who adds at once does so when the line arrives, and again, in ``word_add`` each,
until the next one's request arrives: with two threads that has to be made first, and takes h; with
more of them, one waits already. Of a thread that holds the line for t, an addition takes
n (h + t) / (1 + t / word_add): t is h with two threads, and 0 with more. (Written with figures of
two threads in sight; more were never measured.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ...inputs import Quantity
from ...sim.systems.commits.host_steps import BlockCosts
from ...topologies.machine import Machine
from ...topologies.processes import EndCost, ProcessCosts
from .candidate import Candidate
from .observation import ATOMIC, BLOCK, LINE, MESSAGE, Measured, Observation
from .parameters import Key, Parameter

LINE_KEY: Key = ("line",)
ATOMIC_KEY: Key = ("atomic",)
PARTS = ("post", "serve", "complete")
BLOCK_STEPS = ("get", "update", "insert")


def process_parameters(machine: Machine) -> list[Parameter]:
    """The parameters of the part ``processes``; none where the machine has no such part."""
    costs = machine.description.processes
    if costs is None:
        return []
    found = [
        Parameter(("blocks", step), f"{step} of blocks in shared memory", "×", 1.0, 1e-3, 1e3)
        for step in BLOCK_STEPS
    ]
    for transport, of in costs.transports.items():
        found += [
            Parameter(
                ("messages", transport, operation), f"{operation} over {transport}", "×",
                1.0, 1e-3, 1e3,
            )
            for operation in dict.fromkeys(end.operation for end in of.ends)
        ]  # fmt: skip
    found.append(
        Parameter(ATOMIC_KEY, "an atomic operation", "s", costs.word_add.value, 1e-11, 1e-5)
    )
    if costs.line is not None:
        found.append(
            Parameter(LINE_KEY, "a line from core to core", "s", costs.line.value, 1e-10, 1e-4)
        )
    return found


def line_s(candidate: Candidate, of: Observation) -> float:
    """A message between two cores, or an atomic operation of several on one line."""
    costs = candidate.base.description.processes
    if costs is None or costs.line is None:
        return float("nan")
    line = candidate.values.get(LINE_KEY, costs.line.value)
    each = candidate.values.get(ATOMIC_KEY, costs.word_add.value)
    operation, threads = of.at["operation"], of.at["threads"]
    return line if operation == "message" else contended_s(operation, threads, line, each)


def contended_s(operation: str, threads: int, line_s: float, alone_s: float) -> float:
    """Time of an atomic operation as each of several threads sees it; see above."""
    hand_over_s = line_s / 2.0
    held_s = hand_over_s if operation == "fetch-add" and threads == 2 else 0.0
    return threads * (hand_over_s + held_s) / (1.0 + held_s / alone_s)


def atomic_s(candidate: Candidate, of: Observation) -> float:
    """An atomic operation on a word that the core has."""
    costs = candidate.base.description.processes
    start = float("nan") if costs is None else costs.word_add.value
    return candidate.values.get(ATOMIC_KEY, start)


def block_s(candidate: Candidate, of: Observation) -> float:
    """A step on a block among others."""
    costs = candidate.base.description.processes
    if costs is None:
        return float("nan")
    step = of.at["step"]
    known = BlockCosts(costs.blocks).seconds(step, of.at["size"], of.at["region"])
    return known * candidate.values.get(("blocks", step), 1.0)


def message_s(candidate: Candidate, of: Observation) -> float:
    """What an end does for each of so many requests; NaN for one that the machine's table lacks."""
    costs = candidate.base.description.processes
    ends: Iterable[EndCost] = ()
    if costs is not None and (transport := costs.transports.get(of.at["transport"])) is not None:
        ends = transport.ends
    for end in ends:
        if (end.operation, end.size.value, end.count) == (
            of.at["operation"], of.at["size"], of.at["count"],
        ):  # fmt: skip
            part: Quantity = getattr(end, of.at["part"])
            key = ("messages", of.at["transport"], of.at["operation"])
            return part.value * candidate.values.get(key, 1.0)
    return float("nan")


PREDICTIONS = {LINE: line_s, ATOMIC: atomic_s, BLOCK: block_s, MESSAGE: message_s}


def without_costs_unknown(measured: Measured, machine: Machine) -> Measured:
    """What was measured, less what ``machine`` has no cost of that could be fitted.

    A factor on a cost of 0 moves nothing: such steps take less than a clock tells.
    """
    own = Candidate(machine, (), {})
    used = [
        one
        for one in measured.observations
        if one.kind not in PREDICTIONS or PREDICTIONS[one.kind](own, one) > 0
    ]
    lost = len(measured.observations) - len(used)
    if not lost:
        return measured
    unused = {**measured.unused, f"{machine.name} has no such cost in its part 'processes'": lost}
    return replace(measured, observations=tuple(used), unused=unused)


def fitted_processes(costs: ProcessCosts, quantities: Mapping[Key, Quantity]) -> ProcessCosts:
    """The part with what was fitted of it: factors times its own values."""
    changes: dict[str, Any] = {}
    if (found := quantities.get(ATOMIC_KEY)) is not None:
        changes["word_add"] = found
    if (found := quantities.get(LINE_KEY)) is not None:
        changes["line"] = found
    changes["blocks"] = tuple(
        block.model_copy(
            update={
                step: _times(getattr(block, step), quantities.get(("blocks", step)))
                for step in BLOCK_STEPS
            }
        )
        for block in costs.blocks
    )
    changes["transports"] = {
        name: of.model_copy(
            update={
                "ends": tuple(
                    _end(end, quantities.get(("messages", name, end.operation))) for end in of.ends
                )
            }
        )
        for name, of in costs.transports.items()
    }
    return costs.model_copy(update=changes)


def _end(end: EndCost, factor: Quantity | None) -> EndCost:
    return end.model_copy(update={part: _times(getattr(end, part), factor) for part in PARTS})


def _times(value: Quantity, factor: Quantity | None) -> Quantity:
    """The value with a fitted factor on it, and the range of that."""
    if factor is None:
        return value
    fitted, low, high = (
        float(f"{value.value * f:.4g}") for f in (factor.value, factor.low, factor.high)
    )
    return Quantity(fitted, low, high, factor.source)
