"""The compiled engine: ERIS and RSI on this host."""

from typing import Any, ClassVar, TypedDict

import numpy as np
import numpy.typing as npt

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

class CommitRun:
    """What a run of a commit protocol is made with: rsi/run_setup.hpp."""

    one_sided: bool
    clients: int
    nodes: int
    storage: list[int]
    managers: list[int]
    timestamps: int
    records: int
    record_bytes: int
    changed_bytes: int
    insert_ring: int
    reads: int
    updates: int
    inserts: int
    keys: str
    exponent: float
    hot_records: int
    hot_probability: float
    think_ns: int
    think_exponential: bool
    streams: list[int]
    retries: int
    backoff_ns: int
    poll_ns: int
    every_rm: bool
    versions: int
    timestamp_bits: int
    send_queue: int
    snapshot_every: int
    snapshot_bytes: int
    factors: list[int]
    deaths: list[tuple[int, int]]
    lease_ns: int
    skip_after_ns: int
    crowded: bool
    trace_rows: int
    transports: str
    devices: str
    direct: bool
    sabotage: str
    @property
    def block_bytes(self) -> int: ...
    @property
    def blocks(self) -> int: ...
    @property
    def board_bytes(self) -> int: ...

class Phase:
    """Of a run, in this order."""

    starting: ClassVar[Phase]
    running: ClassVar[Phase]
    stopping: ClassVar[Phase]
    finished: ClassVar[Phase]

class CommitBoard:
    """What the roles of a run share: clients, then nodes."""

    phase: Phase
    def __init__(self, run: CommitRun, descriptor: int) -> None: ...
    def begin(self) -> None:
        """Clients begin; time counts from now."""
    @property
    def now_ns(self) -> int: ...
    @property
    def all_connected(self) -> bool: ...
    @property
    def clients_done(self) -> bool: ...
    @property
    def failure(self) -> str:
        """Empty where nothing failed."""
    def counts(self) -> dict[str, Any]:
        """Sums over all roles; ``busy_ns`` by role, ``latencies`` by the kernel's buckets (ps)."""
    def trace(self) -> npt.NDArray[np.int64]:
        """(rows, 6): as in sim/commits/history.py."""
    def killed(self) -> list[int]:
        """By role: the signal that ended it, or 0."""
    def pid(self, role: int) -> int: ...
    def installing(self, role: int) -> bool:
        """Whether it is, or died, in the middle of an install."""

class ThreadCommits:
    """A run by threads of this process."""

    def __init__(self, run: CommitRun) -> None: ...
    @property
    def board(self) -> CommitBoard: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...

def launch_commits(run: CommitRun, board: int, control: int) -> None:
    """Runs all roles as children of this process: rsi/launcher.hpp."""

def measure_fabric(run: CommitRun, sizes: list[int], seconds: float) -> list[dict[str, Any]]:
    """Forks: see commit_cluster.measure_fabric."""

def measure_commit(run: CommitRun, commits: int) -> dict[str, Any]:
    """Forks: see benchmarks/native_commits.py."""
