"""What processes and cores of a host cost each other, as calibration fits it: messages by transport
and operation, copies of blocks, atomic operations, a cache line from core to core.

A machine file has tables of single steps for these (``processes``, ``engines.commits``). Sizes and
counts of a table were measured together, in one state of the host; what differs from session to
session is the level. So one factor is fitted for each transport and operation, and for each step on
blocks; a line and an atomic operation are numbers of their own.

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
from ...sim.systems.commits.facts import EndCost, HostFacts, host_facts
from ...sim.systems.commits.host_steps import BlockCosts
from ...topologies.machine import Machine
from .candidate import Candidate
from .observation import ATOMIC, BLOCK, LINE, MESSAGE, Measured, Observation
from .parameters import Key, Parameter

LINE_KEY: Key = ("line",)
ATOMIC_KEY: Key = ("atomic",)
PARTS = ("post", "serve", "complete")
BLOCK_STEPS = ("get", "update", "insert")


def process_parameters(machine: Machine) -> list[Parameter]:
    """The parameters of these tables; none where the machine has none."""
    costs = host_facts(machine.description)
    if costs is None:
        return []
    found = [
        Parameter(("blocks", step), f"{step} of blocks in shared memory", "×", 1.0, 1e-3, 1e3)
        for step in BLOCK_STEPS
    ]
    for transport, of in costs.engine.transports.items():
        found += [
            Parameter(
                ("messages", transport, operation), f"{operation} over {transport}", "×",
                1.0, 1e-3, 1e3,
            )
            for operation in dict.fromkeys(end.operation for end in of.ends)
        ]  # fmt: skip
    found.append(
        Parameter(
            ATOMIC_KEY, "an atomic operation", "s", costs.processes.word_add.value, 1e-11, 1e-5
        )
    )
    if costs.processes.line is not None:
        found.append(
            Parameter(
                LINE_KEY, "a line from core to core", "s", costs.processes.line.value, 1e-10, 1e-4
            )
        )
    return found


def line_s(candidate: Candidate, of: Observation) -> float:
    """A message between two cores, or an atomic operation of several on one line."""
    costs = host_facts(candidate.base.description)
    if costs is None or costs.processes.line is None:
        return float("nan")
    line = candidate.values.get(LINE_KEY, costs.processes.line.value)
    each = candidate.values.get(ATOMIC_KEY, costs.processes.word_add.value)
    operation, threads = of.at["operation"], of.at["threads"]
    return line if operation == "message" else contended_s(operation, threads, line, each)


def contended_s(operation: str, threads: int, line_s: float, alone_s: float) -> float:
    """Time of an atomic operation as each of several threads sees it; see above."""
    hand_over_s = line_s / 2.0
    held_s = hand_over_s if operation == "fetch-add" and threads == 2 else 0.0
    return threads * (hand_over_s + held_s) / (1.0 + held_s / alone_s)


def atomic_s(candidate: Candidate, of: Observation) -> float:
    """An atomic operation on a word that the core has."""
    costs = host_facts(candidate.base.description)
    start = float("nan") if costs is None else costs.processes.word_add.value
    return candidate.values.get(ATOMIC_KEY, start)


def block_s(candidate: Candidate, of: Observation) -> float:
    """A step on a block among others."""
    costs = host_facts(candidate.base.description)
    if costs is None:
        return float("nan")
    step = of.at["step"]
    known = BlockCosts(costs.engine.blocks).seconds(step, of.at["size"], of.at["region"])
    return known * candidate.values.get(("blocks", step), 1.0)


def message_s(candidate: Candidate, of: Observation) -> float:
    """What an end does for each of so many requests; NaN for one that the machine's table lacks."""
    costs = host_facts(candidate.base.description)
    ends: Iterable[EndCost] = ()
    if (
        costs is not None
        and (transport := costs.engine.transports.get(of.at["transport"])) is not None
    ):
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
    unused = {**measured.unused, f"{machine.name} has no such cost among those of processes": lost}
    return replace(measured, observations=tuple(used), unused=unused)


def fitted_processes(facts: HostFacts, quantities: Mapping[Key, Quantity]) -> HostFacts:
    """The facts with what was fitted of them: factors times their own values."""
    found = {"word_add": quantities.get(ATOMIC_KEY), "line": quantities.get(LINE_KEY)}
    processes = facts.processes.model_copy(
        update={name: value for name, value in found.items() if value is not None}
    )
    changes: dict[str, Any] = {}
    changes["blocks"] = tuple(
        block.model_copy(
            update={
                step: _times(getattr(block, step), quantities.get(("blocks", step)))
                for step in BLOCK_STEPS
            }
        )
        for block in facts.engine.blocks
    )
    changes["transports"] = {
        name: of.model_copy(
            update={
                "ends": tuple(
                    _end(end, quantities.get(("messages", name, end.operation))) for end in of.ends
                )
            }
        )
        for name, of in facts.engine.transports.items()
    }
    return HostFacts(processes, facts.engine.model_copy(update=changes))


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
