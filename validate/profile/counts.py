"""What was counted of a program: by function, with who calls whom, and as a whole."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ...inputs import InputError
from ...sim.kernel.arrays import Floats as Floats
from ...sim.kernel.arrays import Ints

DEPTH_MAX = 200  # of calls from an operator's functions
SETTLED = 1e-9
COUNT_MOST = 2.0**64  # of what processors and programs count with


def count(text: str, source: str, line: int | None = None) -> float:
    """A count as a tool printed it, digits alone; raises InputError of one that is none."""
    if not (found := float(text)) <= COUNT_MOST:
        raise InputError("too many", source, line, None, text, "a count of 64 bits")
    return found


@dataclass(frozen=True)
class CallGraph:
    """Counts of F functions, E events each.

    ``own`` (F, E): in the function itself; ``caller``, ``callee``, ``called`` (C,): instructions of
    each function in calls by another. ``caches``: bytes of the simulated first and last cache, and
    ``code_cache`` of the first one of instructions; 0 where none was. ``prefetched``: whether the
    last one has a prefetcher.
    """

    source: str
    events: tuple[str, ...]
    names: tuple[str, ...]
    own: Floats
    caller: Ints
    callee: Ints
    called: Floats
    caches: tuple[float, float] = (0.0, 0.0)
    code_cache: float = 0.0
    prefetched: bool = False
    notes: tuple[str, ...] = field(default=())

    def of(self, *events: str) -> Floats:
        """(F,) sums of these events in each function itself; 0 of events that were not counted."""
        found = np.zeros(len(self.names))
        for event in events:
            if event in self.events:
                found += self.own[:, self.events.index(event)]
        return found

    @cached_property
    def position(self) -> Mapping[str, int]:
        """Of each function."""
        return {name: k for k, name in enumerate(self.names)}

    def shares(self, roots: Sequence[Sequence[int]], weights: Sequence[float] = ()) -> Floats:
        """(F, R) the part of each function that works for each of R groups of root functions.

        A function works for its callers, in proportion to its instructions in their calls (as gprof
        has it), and a root for its own group, whoever calls it; one of several groups for each by
        its weight.
        """
        from scipy.sparse import coo_array

        functions = len(self.names)
        fixed = np.zeros((functions, len(roots)))
        for k, group in enumerate(roots):
            fixed[list(group), k] = weights[k] if weights else 1.0
        is_root = np.asarray(fixed.sum(axis=1) > 0)
        fixed[is_root] /= fixed[is_root].sum(axis=1, keepdims=True)
        loops = self.caller == self.callee
        weight = np.where(loops, 0.0, np.maximum(self.called, 1e-3))
        into = np.bincount(self.callee, weight, minlength=functions)
        each = weight / np.where(into > 0, into, 1.0)[self.callee]
        by = coo_array((each, (self.callee, self.caller)), shape=(functions, functions)).tocsr()
        found = fixed
        for _ in range(DEPTH_MAX):
            before, found = found, np.where(is_root[:, None], fixed, by @ found)
            if np.abs(found - before).max(initial=0.0) < SETTLED:
                break
        return found


@dataclass(frozen=True)
class Totals:
    """Counts of a whole program, by the usual names of perf's events."""

    source: str
    counts: Mapping[str, float]
