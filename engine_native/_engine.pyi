"""Engines on this host: real threads, real memory, real time."""

# Written by tools/stubs.py ('make stubs') from the compiled module: not to be edited.

from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .typed import HostFacts, ObjectMemory, Totals

_Floats: TypeAlias = NDArray[np.float64]
_Indices: TypeAlias = NDArray[np.int64]
_AnyFloats: TypeAlias = NDArray[np.floating[Any]] | Sequence[float]
_AnyIndices: TypeAlias = _Indices | Sequence[int]

def measure_copied_scan(
    column_bytes: int,
    chunk_bytes: int,
    rounds: int,
    scanner_cpu: int,
    copier_cpu: int,
    queue: str = "",
) -> dict[str, Any]:
    """By round: a column scanned where it lies, copied in chunks, as many chunks scanned in a
    cache, and scanned while it is copied: storage/chunk_copier.hpp. Each a time and whether
    a processor was taken from one of both meanwhile. CPUs: negative for any. The data streaming
    accelerator of a queue's file copies, a thread where there is none. Raises ValueError, and
    RuntimeError where two ways find different values, or the accelerator fails.
    """

class KeyDraws:
    """A key distribution: ``mass`` (m,) lies evenly on the keys breaks[i]:breaks[i+1]; where
    ``scattered`` these are ranks of popularity, which a fixed permutation (that of
    workloads/zipf.py) spreads over all keys. ValueError for breaks that do not rise from 0.
    """
    def __init__(
        self, breaks: Sequence[int], mass: Sequence[float], scattered: bool = False
    ) -> None: ...
    @staticmethod
    def zipf(keys: int, exponent: float, scattered: bool = False) -> KeyDraws: ...
    @property
    def keys(self) -> int: ...
    def draw(self, seed: int, worker: int, count: int) -> NDArray[np.uint64]: ...

class EngineSetup:
    """What an engine is made of; its clients are on once there is a phase."""

    FIELDS: ClassVar[tuple[str, ...]]
    node: list[int]
    """[A] of each AEU: its node in the scenario"""
    cpu: list[int]
    """[A] and the CPU that it is pinned to; -1: none"""
    host_node: list[int]
    """[nodes of the scenario] the host's node whose memory stands for it; -1: any"""
    home: int
    """the node that holds all data, where one does"""
    buffer_commands: int
    """of an outgoing buffer"""
    round_commands: int
    """0: as many as an AEU's outgoing buffers hold"""
    incoming_commands: int
    """0: four times what all send in a round"""
    command_bytes: int
    """on its way: at least 8, an upsert's at least 16"""
    result_bytes: int
    """of an answer; 0 where it goes by callback"""
    batch: int
    """commands that are executed together"""
    scans_max: int
    """of an operation under way at a time"""
    huge_pages: bool
    """for the data"""
    limit_bytes: int
    """of each memory manager: one for each node and object"""
    clients: bool
    """whether AEUs make commands; else they do what execute hands them"""
    think_ns: float
    """mean time that a client thinks between its batches; 0: never"""
    arrival_ns: float
    """mean time between arrivals at each AEU; 0: closed"""
    seed: int
    """of all draws"""
    def __init__(
        self, node: Sequence[int], cpu: Sequence[int], host_node: Sequence[int]
    ) -> None: ...
    def add_index(
        self, name: str, keys: int, key_bits: int = 64, prefix_bits: int = 8, value_bytes: int = 8
    ) -> None: ...
    def add_column(self, name: str, entries: int) -> None: ...
    def add_operation(
        self, name: str, kind: str, object: int, selectivity: float = 0.0, result: str = "sum"
    ) -> None: ...
    def set_phase(self, shares: Sequence[float], keys: Sequence[KeyDraws | None]) -> None: ...
    placement: str

class CycleReport:
    """A balancing cycle that is over; times in seconds since ``start``."""
    @property
    def object(self) -> int: ...
    @property
    def links(self) -> int: ...
    @property
    def copies(self) -> int: ...
    @property
    def copied_bytes(self) -> int: ...
    @property
    def began_s(self) -> float: ...
    @property
    def ended_s(self) -> float: ...

class Engine:
    """ERIS on this host, or its baselines: ``load``, ``start``, …, ``stop``.

    Where a worker fails, all halt, and the next call raises what it raised: MemoryError,
    RuntimeError. ValueError for what does not fit together. Nothing is left running when the engine
    is gone.
    """
    def __init__(self, setup: EngineSetup) -> None: ...
    def begin_load(self) -> None: ...
    def wait_loaded(self, seconds: float) -> bool:
        """Waits so long at most; whether all is loaded."""
    def load(self) -> None:
        """Both; a signal ends it."""
    @property
    def loaded(self) -> int:
        """Keys and entries loaded so far, of ``to_load``."""
    @property
    def to_load(self) -> int: ...
    def start(self) -> None: ...
    def set_phase(self, shares: Sequence[float], keys: Sequence[KeyDraws | None]) -> None: ...
    def set_making(self, on: bool) -> None:
        """Clients pause, or go on."""
    def rebalance(self, object: int, wanted: Sequence[int]) -> bool:
        """New bounds [A + 1] of an index, or entries [A] of a column; False: nothing to move."""
    def balancing(self, object: int) -> bool: ...
    def cycles(self) -> list[CycleReport]: ...
    def bounds(self, object: int) -> list[int]:
        """[A + 1]; empty of a column."""
    def execute(
        self, kinds: ArrayLike, objects: ArrayLike, keys: ArrayLike, values: ArrayLike
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]:
        """Does commands as if one after the other: kinds 0 lookup (key), 1 upsert (key, value),
        2 scan (entries from key to value), 3 append (value).

        Returns values (of a scan, the sum), found (of a scan, the matches), and how often each was
        answered.
        """
    def totals(self) -> Totals: ...
    def plain_totals(self) -> dict[str, Any]:
        """Lists in place of arrays: for processes without NumPy."""
    def latencies(self, operation: int) -> NDArray[np.uint64]:
        """Counts by bucket, in ps, as ``Histogram.of_kernel`` takes them."""
    def plain_latencies(self, operation: int) -> list[int]:
        """As a list."""
    def memory(self) -> list[ObjectMemory]: ...
    def stop(self, patience_s: float = 60.0) -> None:
        """Lets all that was made be done, then ends. RuntimeError where commands were lost."""
    def cancel(self) -> None:
        """Ends at once."""
    def check(self) -> None:
        """Raises what a worker failed with."""
    @property
    def running(self) -> bool: ...
    @property
    def time_s(self) -> float: ...

STEPS: tuple[str, ...]

HAS_UCX: bool

def host_facts() -> HostFacts:
    """What this host has for the engine, now."""

def pin_thread(cpu: int) -> None:
    """The calling thread runs on this CPU alone; ValueError if it may not."""

class JoinRun:
    """What a run of a distributed operator is made with."""

    FIELDS: ClassVar[tuple[str, ...]]
    name: str
    """of the operator: see operator_names"""
    nodes: int
    """each is a process (or thread) with its share of the tables"""
    tuple_bytes: int
    """8 or 16: half is the key, half the payload"""
    inner: int
    """tuples of all nodes with keys of their own; joins only"""
    outer: int
    """tuples of all nodes, which look for these, or are aggregated"""
    selectivity: float
    """share of outer tuples with a partner; joins only"""
    groups: int
    """keys of an aggregation"""
    exponent: float
    """Zipf's, of the outer tuples' keys; 0: uniform"""
    partitions: int
    """of each table, a power of two"""
    buffer_bytes: int
    """of a partition, written as soon as it is full"""
    streaming: bool
    """past the caches, where memory can be written at once"""
    signal_every: int
    """of requests to a node, the last one is signaled"""
    message_bytes: int
    """of ghj, ghj-bloom and aggregation"""
    window: int
    """messages to a node that it has not yet acknowledged"""
    filter_error: float
    """of ghj-bloom: what filters let through without a partner"""
    table_bytes: int
    """of rdma-aggregation: a table that stays in a cache"""
    rounds: int
    """so often the same, one after another"""
    keep_rows: bool
    """the last round's result, on the board"""
    streams: list[int]
    """four words a node: Philox keys of both tables"""
    cpus: list[int]
    """by node: the processor that it runs on; empty: any"""
    def __init__(
        self,
        *,
        name: str = ...,
        nodes: int = ...,
        tuple_bytes: int = ...,
        inner: int = ...,
        outer: int = ...,
        selectivity: float = ...,
        groups: int = ...,
        exponent: float = ...,
        partitions: int = ...,
        buffer_bytes: int = ...,
        streaming: bool = ...,
        signal_every: int = ...,
        message_bytes: int = ...,
        window: int = ...,
        filter_error: float = ...,
        table_bytes: int = ...,
        rounds: int = ...,
        keep_rows: bool = ...,
        streams: _AnyIndices = ...,
        cpus: _AnyIndices = ...,
    ) -> None: ...
    transports: str
    devices: str
    direct: bool
    def check(self) -> None:
        """Raises ValueError where a field is not as it must be."""
    @property
    def board_bytes(self) -> int: ...

class JoinBoard:
    """What the nodes of a run share."""
    def __init__(self, run: JoinRun, descriptor: int) -> None: ...
    def rows(self) -> NDArray[np.uint64]:
        """(rows, 3): key and both payloads of a join; key, tuples and sum of a group. In no
        order.
        """

def join_tables(run: JoinRun, node: int) -> tuple[Any, ...]:
    """A node's inner and outer table, (tuples, 2) each: keys and payloads."""

def join_by_threads(run: JoinRun) -> tuple[list[Any], NDArray[np.uint64]]:
    """All nodes as threads of this process. By round and node its figures; the rows that were
    kept. Raises RuntimeError, also where a tuple was lost or taken twice.
    """

def join_by_processes(run: JoinRun, descriptor: int) -> list[Any]:
    """Forks: see systems/joins/cluster.py. By round and node its figures."""

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

    ...

def chase(block: Block, start_line: int, warm_loads: int) -> Work:
    """Dependent loads along the block's cycle, the first of which do not count."""

def random_reads(block: Block, lines: int) -> Work:
    """Independent loads of random lines; ``lines``, a power of two, is how many there are."""

def spaced_reads(block: Block, lines: int, additions: int) -> Work:
    """The same with 32 or 64 additions between two loads, which wait for nothing either."""

AROUND_ADDITIONS: int

def system_calls() -> Work:
    """System calls that do nothing."""

class Traffic:
    """What a stream does with each line, and lines read and written at the memory controller."""

    READ: ClassVar[Traffic]
    UPDATE: ClassVar[Traffic]
    COPY: ClassVar[Traffic]
    TRIAD: ClassVar[Traffic]
    NON_TEMPORAL: ClassVar[Traffic]
    NON_TEMPORAL_COPY: ClassVar[Traffic]
    @property
    def name(self) -> str: ...
    @property
    def value(self) -> int: ...

def has_non_temporal_stores() -> bool:
    """Whether this processor has stores past the caches."""

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

def free_additions() -> Work:
    """Additions that do not: as many a cycle as the core has adders, less what others take."""

def routing(targets: int, buffer_bytes: int) -> Work:
    """Commands of 16 bytes routed to so many targets, in batches, through buffers of that size."""

class MeasuredIndex:
    """A prefix tree of random 64-bit keys, or of the keys from 0 on (``dense``: no scans).

    MemoryError if it does not fit.
    """
    def __init__(self, keys: int, dense: bool = False) -> None: ...
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

class Verb:
    """What is asked of the other end of a fabric."""

    GET: ClassVar[Verb]
    PUT: ClassVar[Verb]
    COMPARE_AND_SWAP: ClassVar[Verb]
    FETCH_ADD: ClassVar[Verb]
    MESSAGE: ClassVar[Verb]
    @property
    def name(self) -> str: ...
    @property
    def value(self) -> int: ...

class FabricPair:
    """Two ends of a fabric for two threads; RuntimeError where there is no such transport."""
    def __init__(self, transports: str, direct: bool) -> None: ...
    def ask(self, verb: Verb, size_bytes: int) -> Work:
        """Requests, one after the other; of messages, those of both ways."""
    def answer(self) -> Work:
        """What the other end does meanwhile; amounts to nothing."""
    def exchange(self, verb: Verb, size_bytes: int, batch: int, leads: bool) -> Work:
        """Messages or puts both ways at once, so many at a time; those of one way. One end leads."""

def count_tuples(partitions: int) -> Work:
    """Tuples counted by partition."""

def partition_tuples(partitions: int, buffer_bytes: int) -> Work:
    """Tuples appended to buffers of their partitions, and these written past the caches."""

def gather_tuples(message_bytes: int) -> Work:
    """Tuples put into a message for their owner."""

def take_tuples(message_bytes: int) -> Work:
    """Tuples of messages copied behind what came before."""

def join_partitions(inner: int, probe: bool) -> Work:
    """Inner tuples of partitions, each a hash table built, and looked up for as many others."""

def add_groups(groups: int, again: bool) -> Work:
    """Groups added to an empty table that grows; or tuples of the groups that it has."""

def read_groups(groups: int, result: bool) -> Work:
    """Groups of a table put into messages; or summed up."""

def cache_groups(table_bytes: int, again: bool) -> Work:
    """Groups added to a table until it is full, read and emptied; or tuples of its groups."""

def add_to_filter(bytes: int) -> Work:
    """Keys added to a Bloom filter."""

def probe_filter(bytes: int, hit: bool) -> Work:
    """Keys looked up that a Bloom filter has, or has not."""

def gaps(cpus: Sequence[int], seconds: float, least_ns: float) -> list[list[float]]:
    """[cpus] ns of each time in which a program on that CPU stood still for ``least_ns`` or longer;
    OSError where a CPU may not be used.
    """

def run_team(
    members: Sequence[tuple[int, Work]], wanted: int, window_ns: int, limit_ns: int
) -> tuple[_Floats, _Floats, NDArray[np.bool_]]:
    """(windows, members) amounts and ns, (windows,) whether disturbed; each member on its CPU."""

class CommitRun:
    """What a run of a commit protocol is made with; times are real."""

    FIELDS: ClassVar[tuple[str, ...]]
    one_sided: bool
    """RSI; else 2PC"""
    clients: int
    """how many; each has a role of its own"""
    nodes: int
    """servers, after the clients"""
    storage: list[int]
    """indices of the nodes that hold records"""
    managers: list[int]
    """and of those that run transactions (2PC)"""
    timestamps: int
    """and of the timestamp server"""
    records: int
    """at the beginning"""
    record_bytes: int
    """payload of each record, a multiple of 8"""
    changed_bytes: int
    """what an update carries to a server with a processor"""
    insert_ring: int
    """records that a server keeps of each client's inserts"""
    reads: int
    """distinct records that a transaction reads"""
    updates: int
    """how many of them it writes"""
    inserts: int
    """records that it creates"""
    keys: str
    """uniform, zipf or hot"""
    exponent: float
    """of zipf"""
    hot_records: int
    """of hot: the first ones"""
    hot_probability: float
    """and how often they are drawn"""
    think_ns: int
    """from an outcome to the client's next transaction"""
    think_exponential: bool
    """exponentially distributed; else always the same"""
    streams: list[int]
    """four words a client: Philox keys of keys, thinking"""
    retries: int
    """of an aborted transaction, before it is given up"""
    backoff_ns: int
    """before a retry"""
    poll_ns: int
    """between two looks at the snapshot (RSI)"""
    every_rm: bool
    """every storage server prepares (2PC)"""
    versions: int
    """that a record keeps"""
    timestamp_bits: int
    """length of the bit vector (RSI)"""
    send_queue: int
    """of a client: one bit of so many is signaled"""
    snapshot_every: int
    """transactions per fetch of the snapshot"""
    snapshot_bytes: int
    """0: the whole bit vector"""
    factors: list[int]
    """by client: 1, or how much slower it is; empty: all 1"""
    lease_ns: int
    """of a lock; 0: without this remedy"""
    skip_after_ns: int
    """of timestamps that hold up; 0: without this remedy"""
    cpus: list[int]
    """by role: the processor that its process runs on; empty: any"""
    crowded: bool
    """more threads than processors: who waits lets them run"""
    trace_rows: int
    """rows that each role keeps; 0: no trace"""
    def __init__(
        self,
        *,
        one_sided: bool = ...,
        clients: int = ...,
        nodes: int = ...,
        storage: _AnyIndices = ...,
        managers: _AnyIndices = ...,
        timestamps: int = ...,
        records: int = ...,
        record_bytes: int = ...,
        changed_bytes: int = ...,
        insert_ring: int = ...,
        reads: int = ...,
        updates: int = ...,
        inserts: int = ...,
        keys: str = ...,
        exponent: float = ...,
        hot_records: int = ...,
        hot_probability: float = ...,
        think_ns: int = ...,
        think_exponential: bool = ...,
        streams: _AnyIndices = ...,
        retries: int = ...,
        backoff_ns: int = ...,
        poll_ns: int = ...,
        every_rm: bool = ...,
        versions: int = ...,
        timestamp_bits: int = ...,
        send_queue: int = ...,
        snapshot_every: int = ...,
        snapshot_bytes: int = ...,
        factors: _AnyIndices = ...,
        lease_ns: int = ...,
        skip_after_ns: int = ...,
        cpus: _AnyIndices = ...,
        crowded: bool = ...,
        trace_rows: int = ...,
    ) -> None: ...
    transports: str
    devices: str
    direct: bool
    deaths: list[tuple[int, int]]
    populate: bool
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
    @property
    def name(self) -> str: ...
    @property
    def value(self) -> int: ...

class CommitBoard:
    """What the roles of a run share: clients, then nodes."""
    def __init__(self, run: CommitRun, descriptor: int) -> None: ...
    phase: Phase
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
    def plain_counts(self) -> dict[str, Any]:
        """The same, with lists in place of arrays."""
    def trace(self) -> _Indices:
        """(rows, 6): as in sim/systems/commits/history.py."""
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

def measure_fabric(run: CommitRun, sizes: Sequence[int], seconds: float) -> list[Any]:
    """Forks: see commit_cluster.measure_fabric."""

def measure_commit(run: CommitRun, commits: int) -> dict[str, Any]:
    """Forks: see benchmarks/native_commits.py."""

def measure_blocks(
    run: CommitRun,
    sizes: Sequence[int],
    regions: Sequence[int],
    cpus: Sequence[int],
    windows: int,
    window_ns: int,
) -> list[Any]:
    """Forks: see systems/commits/measure_steps.hpp; here and below, samples_ns of each name and
    size.
    """

def measure_ends(
    run: CommitRun, sizes: Sequence[int], counts: Sequence[int], windows: int, window_ns: int
) -> list[Any]:
    """See systems/commits/measure_steps.hpp."""

def measure_turns(
    run: CommitRun, bytes: int, cpus: Sequence[int], windows: int, window_ns: int
) -> list[Any]:
    """Forks: see systems/commits/measure_steps.hpp."""

def launch_commits(run: CommitRun, board: int, control: int) -> None:
    """Runs all roles as children of this process: systems/commits/launcher.hpp."""
