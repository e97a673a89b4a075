"""The compiled engine: ERIS and RSI on this host."""

from typing import TypedDict

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
