"""The compiled engine: ERIS and RSI on this host."""

import enum
from collections.abc import Sequence
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

HAS_UCX: bool
"""Whether UCX's headers were there when the module was built."""

class HostNode(TypedDict):
    id: int
    cpus: list[int]
    """Those that this process may use."""
    memory_bytes: int
    free_bytes: int
    may_allocate: bool
    """False: the cpuset forbids this node's memory."""

class HostFacts(TypedDict):
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

def host_facts() -> HostFacts:
    """What this host has for the engine, now."""

def pin_thread(cpu: int) -> None:
    """The calling thread runs on this CPU alone; ValueError if it may not."""

class Block:
    """A stretch of memory of one node (-1: any) to measure on; MemoryError, OSError if refused."""

    def __init__(self, size_bytes: int, node: int, huge_pages: bool) -> None: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def huge_bytes(self) -> int:
        """Bytes that lie in huge pages."""

    def arrange_cycle(self, size_bytes: int, seed: int) -> int:
        """Makes the first bytes a cycle of pointers in random order; returns its lines."""

class Work:
    """What a member of a team does; its amount is counted in the unit that its maker says."""

class Traffic(enum.Enum):
    """What a stream does with each line, and lines read and written at the memory controller."""

    READ = ...
    UPDATE = ...
    COPY = ...
    TRIAD = ...
    NON_TEMPORAL = ...
    NON_TEMPORAL_COPY = ...

def has_non_temporal_stores() -> bool:
    """Whether this processor has stores past the caches."""

def chase(block: Block, start_line: int, warm_loads: int) -> Work:
    """Dependent loads along the block's cycle, the first of which do not count."""

def random_reads(block: Block, lines: int) -> Work:
    """Independent loads of random lines; ``lines``, a power of two, is how many there are."""

def stream(block: Block, offset: int, size_bytes: int, traffic: Traffic, delay: int) -> Work:
    """Bytes loaded and stored in a part of the block; ``delay`` additions after each 4 KiB."""

def copies(source: Block, target: Block, size_bytes: int, spread: bool) -> Work:
    """memcpy, always the same, or from and to ever other places."""

def fetch_adds(block: Block, line: int) -> Work:
    """fetch-add on a counter on that line."""

def cas_increments(block: Block, line: int) -> Work:
    """Increments of the counter on that line by compare-and-swap."""

def ping_pong(block: Block, line: int, serve: bool) -> Work:
    """One end of an exchange of messages over that line; who serves counts those of both ends."""

def additions() -> Work:
    """Additions that wait for one another, one a cycle."""

def routing(targets: int, buffer_bytes: int) -> Work:
    """Commands of 16 bytes routed to so many targets, in batches, through buffers of that size."""

class MeasuredIndex:
    """A prefix tree of random 64-bit keys; MemoryError if it does not fit."""

    def __init__(self, keys: int) -> None: ...
    @property
    def keys(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    def lookups(self, batch: int) -> Work:
        """Keys looked up, so many at a time."""

    def upserts(self, batch: int) -> Work:
        """Values of known keys replaced, so many keys at a time."""

    def scans(self, pairs: int) -> Work:
        """Pairs read in order, so many from each key on."""

class Verb(enum.Enum):
    """What is asked of the other end of a fabric."""

    GET = ...
    PUT = ...
    COMPARE_AND_SWAP = ...
    FETCH_ADD = ...
    MESSAGE = ...

class FabricPair:
    """Two ends of a fabric for two threads; RuntimeError where there is no such transport."""

    def __init__(self, transports: str, direct: bool) -> None: ...
    def ask(self, verb: Verb, size_bytes: int) -> Work:
        """Requests, one after the other; of messages, those of both ways."""

    def answer(self) -> Work:
        """What the other end does meanwhile; amounts to nothing."""

def run_team(
    members: Sequence[tuple[int, Work]], wanted: int, window_ns: int, limit_ns: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """(windows, members) amounts and ns, (windows,) whether disturbed; each member on its CPU."""
