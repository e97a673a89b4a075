"""Dicts that the compiled engine returns, by field."""

from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.uint64]
Floats = NDArray[np.float64]


class HostNode(TypedDict):
    """A node of the host."""

    id: int
    cpus: list[int]
    """Those that this process may use."""
    memory_bytes: int
    free_bytes: int
    may_allocate: bool
    """False: the cpuset forbids this node's memory."""


class HostFacts(TypedDict):
    """What the host has, now."""

    nodes: list[HostNode]
    """Those with memory or CPUs that this process may use."""
    available_bytes: int
    """What host and cgroups can still spare; 2^64 - 1 if unknown."""
    page_bytes: int
    huge_page_bytes: int
    """0: the host has none."""
    huge_pages_free: int
    transparent_huge_pages: str
    """always, madvise or never"""
    binding_refused: str
    """Why memory cannot be bound to nodes here; empty if it can."""


class Totals(TypedDict):
    """Sums since ``start``: [O, A] of operations and workers, [objects, A], [steps, A] or [A]."""

    time_s: float
    made: Counts
    """[O, A] commands; a scan is one."""
    executed: Counts
    """[O, A] commands; a scan counts for each worker that scans its part."""
    done: Counts
    """[O, A] whole operations."""
    latency_sum_ns: Counts
    """[O, A] of those done."""
    object_executed: Counts
    object_forwarded: Counts
    object_entries: Counts
    """[objects, A] keys or entries that each holds now."""
    object_execution_ns: Floats
    step_ns: Floats
    """[steps, A], see ``STEPS``."""
    busy_ns: Counts
    """[A] in rounds in which there was something to do."""
    rounds: Counts
    refused: Counts
    """[A] flushes that found no room."""
    retries: Counts
    """[A] exchanges of a descriptor that had to begin again."""
    flushes: Counts
    copied_bytes: Counts


class ObjectMemory(TypedDict):
    """Memory of an object, on all nodes."""

    reserved_bytes: int
    used_bytes: int
    huge_bytes: int
    transparent_bytes: int
    refusal: str
    """Why memory does not lie where it should; empty if it does."""
