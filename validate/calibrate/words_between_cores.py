"""Words and lines that cores share, as calibration fits them: an atomic operation, and a cache line
from core to core.

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

from collections.abc import Mapping

from ...inputs import Quantity
from ...topologies.machine import Machine
from ...topologies.processes import ProcessFacts
from .engine_calibration import Tried
from .observation import Observation
from .parameters import Key, Parameter

LINE_KEY: Key = ("line",)
ATOMIC_KEY: Key = ("atomic",)
KEYS = (LINE_KEY[0], ATOMIC_KEY[0])


def word_parameters(machine: Machine) -> list[Parameter]:
    """Both; none where the machine file does not have them."""
    costs = machine.description.processes
    if costs is None:
        return []
    add_s = costs.word_add.value
    found = [Parameter(ATOMIC_KEY, "an atomic operation", "s", add_s, 1e-11, 1e-5)]
    if costs.line is not None:
        line_s = costs.line.value
        found.append(Parameter(LINE_KEY, "a line from core to core", "s", line_s, 1e-10, 1e-4))
    return found


def line_s(tried: Tried, observation: Observation) -> float:
    """A message between two cores, or an atomic operation of several on one line."""
    costs = tried.base.description.processes
    if costs is None or costs.line is None:
        return float("nan")
    line = tried.values.get(LINE_KEY, costs.line.value)
    each = tried.values.get(ATOMIC_KEY, costs.word_add.value)
    operation, threads = observation.at["operation"], observation.at["threads"]
    return line if operation == "message" else contended_s(operation, threads, line, each)


def contended_s(operation: str, threads: int, line_s: float, alone_s: float) -> float:
    """Time of an atomic operation as each of several threads sees it; see above."""
    hand_over_s = line_s / 2.0
    held_s = hand_over_s if operation == "fetch-add" and threads == 2 else 0.0
    return threads * (hand_over_s + held_s) / (1.0 + held_s / alone_s)


def atomic_s(tried: Tried, observation: Observation) -> float:
    """An atomic operation on a word that the core has."""
    costs = tried.base.description.processes
    start = float("nan") if costs is None else costs.word_add.value
    return tried.values.get(ATOMIC_KEY, start)


def fitted_processes(
    facts: ProcessFacts | None, quantities: Mapping[Key, Quantity]
) -> ProcessFacts | None:
    """The facts with what was fitted of them."""
    if facts is None:
        return None
    found = {"word_add": quantities.get(ATOMIC_KEY), "line": quantities.get(LINE_KEY)}
    return facts.model_copy(
        update={name: value for name, value in found.items() if value is not None}
    )
