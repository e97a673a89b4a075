"""numatwin's compiled kernel (C++20): max-min fair shares, random streams, event models."""

# Written by tools/stubs.py ('make stubs') from the compiled module: not to be edited.

from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

_Floats: TypeAlias = NDArray[np.float64]
_Indices: TypeAlias = NDArray[np.int64]
_AnyFloats: TypeAlias = NDArray[np.floating[Any]] | Sequence[float]
_AnyIndices: TypeAlias = _Indices | Sequence[int]

def binomial_parts(trials: int, size: int, chances: _AnyFloats | float) -> tuple[Any, ...]:
    """Means of a binomially distributed number in parts: (parts[N], squares[N], begun[N]).

    Of the successes in so many trials of each chance, put into parts of the size one after another: how
    many parts there are on average, the mean sum of the squares of what they hold, and how likely the
    last one is not full.

    Raises ValueError for trials or a size below 1, and for a chance that is not 0 to 1.
    """

class RecordWork:
    """Thread time of a server on records."""

    FIELDS: ClassVar[tuple[str, ...]]
    read_ps: int
    """per record read"""
    check_ps: int
    """per record checked and locked, or unlocked"""
    install_ps: int
    """per record installed"""
    def __init__(
        self, *, read_ps: int = ..., check_ps: int = ..., install_ps: int = ...
    ) -> None: ...
    def replaced(self, **kwargs: Any) -> RecordWork:
        """A copy with these values in place of its own."""

class CommitSetup:
    """What a commit protocol is run with: sim/systems/commits/parameters.py, in plain numbers."""

    FIELDS: ClassVar[tuple[str, ...]]
    machines: int
    """how many"""
    client_machine: list[int]
    """of each client"""
    client_factor: list[int]
    """how much longer a client's own time takes"""
    node_machine: list[int]
    """of each node"""
    node_threads: list[int]
    """of each node, for messages"""
    storage: list[int]
    """indices of the nodes that hold records"""
    own_storage: list[int]
    """of each of these and each client, the one that takes its messages (2PC); empty: itself"""
    managers: list[int]
    """and of those that run transactions (2PC)"""
    timestamps: int
    """and of the timestamp service"""
    costs: list[MessageCost]
    """by message type, then by records aboard"""
    cost_entries: int
    """of each type; more records aboard: the last"""
    records: int
    """at the beginning"""
    reads: int
    """distinct records that a transaction reads"""
    updates: int
    """how many of them it writes"""
    inserts: int
    """records that it creates"""
    backoff_ps: int
    """before a retry"""
    poll_ps: int
    """between two looks at the snapshot (RSI)"""
    retries: int
    """of an aborted transaction, before it is given up"""
    work: RecordWork
    """of a server, beside its messages (2PC)"""
    every_rm: bool
    """every storage server prepares (2PC)"""
    own_managers: bool
    """client c always has the c-th manager (2PC)"""
    versions: int
    """that a record keeps"""
    timestamp_bits: int
    """length of the bit vector (RSI)"""
    send_queue: int
    """of a client: one bit of so many is signaled"""
    snapshot_every: int
    """transactions per fetch of the snapshot"""
    death_client: list[int]
    """who dies"""
    death_ps: list[int]
    """and when"""
    lease_ps: int
    """of a lock; below 0: without this remedy"""
    skip_after_ps: int
    """of timestamps that hold up; below 0: without this remedy"""
    start_ps: list[int]
    """by client; empty: all at once"""
    timestamp_reach: int
    """above the highest committed one; 0: a lap"""
    in_step: bool
    """timestamps of clients keep together (RSI)"""
    doorbell: bool
    """requests of one step are posted together (RSI)"""
    processors: ProcessorSetup
    """that places share, or none"""
    streams: list[int]
    """[4 * clients] Philox keys of keys, of thinking"""
    traced: bool
    """keep the trace"""
    def __init__(
        self,
        *,
        machines: int = ...,
        client_machine: _AnyIndices = ...,
        client_factor: _AnyIndices = ...,
        node_machine: _AnyIndices = ...,
        node_threads: _AnyIndices = ...,
        storage: _AnyIndices = ...,
        own_storage: _AnyIndices = ...,
        managers: _AnyIndices = ...,
        timestamps: int = ...,
        costs: Sequence[MessageCost] = ...,
        cost_entries: int = ...,
        records: int = ...,
        reads: int = ...,
        updates: int = ...,
        inserts: int = ...,
        backoff_ps: int = ...,
        poll_ps: int = ...,
        retries: int = ...,
        work: RecordWork = ...,
        every_rm: bool = ...,
        own_managers: bool = ...,
        versions: int = ...,
        timestamp_bits: int = ...,
        send_queue: int = ...,
        snapshot_every: int = ...,
        death_client: _AnyIndices = ...,
        death_ps: _AnyIndices = ...,
        lease_ps: int = ...,
        skip_after_ps: int = ...,
        start_ps: _AnyIndices = ...,
        timestamp_reach: int = ...,
        in_step: bool = ...,
        doorbell: bool = ...,
        processors: ProcessorSetup = ...,
        streams: _AnyIndices = ...,
        traced: bool = ...,
    ) -> None: ...

class TwoPhaseCommits:
    """Snapshot isolation by 2PC."""
    def __init__(
        self,
        setup: CommitSetup,
        keys: KeyDraws,
        think: Durations,
        compute: Durations,
        seed: int = 0,
        replication: int = 0,
    ) -> None:
        """Raises ValueError for a setup that does not fit together."""
    def run(self, until_ps: int | None = None) -> bool:
        """Handles all events before until_ps, or all; False where it halts before.

        Releases the GIL; Ctrl-C raises KeyboardInterrupt, and the next run goes on from there.
        Raises ModelError.
        """
    @property
    def now_ps(self) -> int:
        """The time reached."""
    @property
    def events(self) -> int:
        """Events handled."""
    @property
    def pending(self) -> int:
        """Events to come."""
    def trace(self) -> _Indices:
        """[rows, 6]: see numatwin.sim.systems.commits.history."""
    @property
    def commits(self) -> int:
        """Transactions whose clients know that they committed."""
    @property
    def given_up(self) -> int:
        """Transactions that aborted once too often."""
    @property
    def aborts(self) -> list[int]:
        """By cause."""
    @property
    def sent(self) -> list[int]:
        """Messages by type."""
    @property
    def touched_records(self) -> int:
        """Records that are held: those that were read or written."""
    @property
    def outgoing_busy_ps(self) -> list[int]:
        """By machine, up to now."""
    @property
    def incoming_busy_ps(self) -> list[int]:
        """By machine, up to now."""
    @property
    def threads_busy_ps(self) -> list[int]:
        """By place, clients first, then nodes, up to now."""
    @property
    def latency_buckets(self) -> list[int]:
        """Counts of latencies by bucket of a Histogram, from 0 on."""
    @property
    def latency_total_ps(self) -> int:
        """Sum, from each transaction's first begin to its client's knowing that it committed."""
    def latency_quantile_ps(self, q: float) -> int:
        """Within 0.39%."""

class OneSidedCommits:
    """RSI: snapshot isolation with one-sided verbs."""
    def __init__(
        self,
        setup: CommitSetup,
        keys: KeyDraws,
        think: Durations,
        compute: Durations,
        seed: int = 0,
        replication: int = 0,
    ) -> None:
        """Raises ValueError for a setup that does not fit together."""
    def run(self, until_ps: int | None = None) -> bool:
        """Handles all events before until_ps, or all; False where it halts before.

        Releases the GIL; Ctrl-C raises KeyboardInterrupt, and the next run goes on from there.
        Raises ModelError.
        """
    @property
    def now_ps(self) -> int:
        """The time reached."""
    @property
    def events(self) -> int:
        """Events handled."""
    @property
    def pending(self) -> int:
        """Events to come."""
    def trace(self) -> _Indices:
        """[rows, 6]: see numatwin.sim.systems.commits.history."""
    @property
    def commits(self) -> int:
        """Transactions whose clients know that they committed."""
    @property
    def given_up(self) -> int:
        """Transactions that aborted once too often."""
    @property
    def aborts(self) -> list[int]:
        """By cause."""
    @property
    def sent(self) -> list[int]:
        """Messages by type."""
    @property
    def touched_records(self) -> int:
        """Records that are held: those that were read or written."""
    @property
    def outgoing_busy_ps(self) -> list[int]:
        """By machine, up to now."""
    @property
    def incoming_busy_ps(self) -> list[int]:
        """By machine, up to now."""
    @property
    def threads_busy_ps(self) -> list[int]:
        """By place, clients first, then nodes, up to now."""
    @property
    def latency_buckets(self) -> list[int]:
        """Counts of latencies by bucket of a Histogram, from 0 on."""
    @property
    def latency_total_ps(self) -> int:
        """Sum, from each transaction's first begin to its client's knowing that it committed."""
    def latency_quantile_ps(self, q: float) -> int:
        """Within 0.39%."""

class Disturbances:
    """What others do to cores, none by default: see Interruptions in
    machine/disturbances/facts.py. keys: a Philox key for each core. Raises ValueError where
    every_ps is not above 0, a length_ps is below 0, or share does not end at 1.
    """
    def __init__(
        self,
        every_ps: float = 0.0,
        length_ps: Sequence[float] = ...,
        share: Sequence[float] = ...,
        keys: Sequence[tuple[int, int]] = ...,
    ) -> None: ...
    def stretched(self, core: int, now_ps: int, end_ps: int) -> int:
        """When work of a core ends that begins now and would end at end_ps. Asked as time
        goes on.
        """

class Durations:
    """A distribution of times in whole picoseconds, up to 2^55 (ten hours).

    Inverse transforms: a draw takes one word of its stream (none if all times are the same), and
    a larger word gives no shorter time. Raises ValueError for values out of range.
    """
    @staticmethod
    def deterministic(time_ps: int) -> Durations:
        """Always the same."""
    @staticmethod
    def exponential(mean_ps: float) -> Durations:
        """Rounded to the nearest picosecond."""
    @staticmethod
    def uniform(low_ps: int, high_ps: int) -> Durations:
        """All from low to high, both included."""
    @staticmethod
    def empirical(times_ps: _AnyIndices, weight: _AnyFloats | float = 1.0) -> Durations:
        """Recorded times [N], each in proportion to its weight, [N] or one for all."""
    @property
    def mean_ps(self) -> float:
        """The mean, exact but for rounding."""
    def draw(self, stream: Stream) -> int:
        """A time in picoseconds, with the next word of the stream."""

class KeyDraws:
    """Keys of a workload; see key_draws in kernel/streams.py. Raises ValueError for bad ones."""
    @staticmethod
    def piecewise(breaks: _AnyIndices, mass: _AnyFloats | float) -> KeyDraws:
        """Mass[i] lies evenly on the keys breaks[i]:breaks[i + 1]; breaks [M + 1], mass [M].

        Equal to PiecewiseKeys.draw of workloads/ for the same uniform.
        """
    @staticmethod
    def zipf(keys: int, exponent: float, *, scattered: bool = True) -> KeyDraws:
        """As Zipf of workloads/.

        Equal to its draws but where the uniform lies within 1e-13, relative, of a step between two
        ranks.
        """
    @property
    def keys(self) -> int:
        """Of the domain: keys are from 0 to keys - 1."""
    def draw(self, stream: Stream) -> int:
        """A key, with the next word of the stream."""
    def at(self, uniforms: _AnyFloats | float) -> _Indices:
        """The keys of numbers in [0, 1): [N]."""

class SparseRows:
    """Rows of which few entries are not 0: those of row i are first[i] … first[i + 1] - 1."""
    def __init__(
        self, first: Sequence[int], column: Sequence[int], value: Sequence[float]
    ) -> None: ...
    def row(self, row: int) -> list[Any]:
        """(column, value) of each entry of a row."""

class ErisMachine:
    """Costs of a machine in ps, and its buffers.

    A workers on cores of n nodes with 2L directed links; arrays are flat, row by row.
    """

    FIELDS: ClassVar[tuple[str, ...]]
    node: list[int]
    """[A] of each worker"""
    core: list[int]
    """[A] of each worker, among the cores in use"""
    home: list[int]
    """[n] the node whose memory a node's workers use"""
    issue_ps: list[float]
    """[n] make a command and route it to its target's buffer"""
    receive_ps: list[float]
    """[n] take a command from the incoming buffer"""
    flush_ps: list[float]
    """[n] instructions of a flush, whatever its size"""
    copy_ps: list[float]
    """[n] and for each command in it"""
    batch_ps: list[float]
    """[n] execute a batch, whatever its size"""
    round_ps: list[float]
    """[n] go through the loop once"""
    swap_ps: list[float]
    """[n] exchange the incoming buffers"""
    stream_slots: list[float]
    """[n] lines that a core gets from others at a time to write"""
    read_slots: list[float]
    """[n] and to read"""
    handed_ps: list[int]
    """[n, n] a line that a core of i gets from a core of j"""
    own_cached: bool
    """a worker's commands to itself stay in its own cache"""
    exchanged_at_once: bool
    """a descriptor comes to be written: no exchange fails"""
    handed_additive: bool
    """lines of other cores add to the time of instructions, not overlapped"""
    flushed_late: bool
    """a full buffer, when the next command for it comes"""
    read_waits: float
    """waits for a line of who takes what others have sent"""
    part_ps: list[float]
    """[n] take a header of a part of a batch"""
    part_waits: float
    """and waits for a line, where another sent it"""
    memory_idle_ps: list[float]
    """[n] latency of a node's home memory"""
    memory_line_ps: list[float]
    """[n] how long a line takes a controller; 0: not limited"""
    memory_write_ps: list[float]
    """[n] and one that is written"""
    load: list[float]
    """of a memory controller, for load_ratio"""
    load_ratio: list[float]
    """loaded latency over idle, by load"""
    lines_per_command: float
    """cache lines of a command"""
    answer_lines: float
    """of what is sent back for a command"""
    link_data_ps: list[int]
    """[2L] wire time of a line with its header"""
    link_request_ps: list[int]
    """[2L] wire time of a request"""
    handed_fetched: float
    """lines that come to be written"""
    handed_passed: float
    """lines of a flush that come from other writers: nobody waits"""
    handed_passed_messages: float
    """and messages for them, each way"""
    handed_back: float
    """and lines that go back once more, written back"""
    handed_messages: float
    """messages each way, in times of a request"""
    handed_read: float
    """lines that the reader's memory delivers"""
    handed_written: float
    """lines that are written back to it"""
    line_data_ps: SparseRows
    """[n, 2L] wire time of data of a line from memory"""
    line_control_ps: SparseRows
    """[n, 2L] and of control messages"""
    line_bytes: SparseRows
    """[n, 2L] bytes of both"""
    entering: list[int]
    """[n, v] directed link into vertex v on the way from node i"""
    predecessor: list[int]
    """[n, v] and the vertex that it comes from"""
    vertices: int
    """v: nodes and hubs"""
    buffer_commands: int
    """of an outgoing buffer"""
    round_commands: int
    """that a worker makes in a round of its loop, at most"""
    incoming_commands: int
    """of each of the two incoming buffers"""
    command_bytes: int
    """of a command"""
    batch: int
    """commands that are executed together"""
    answers: bool
    """whether each command sends one back"""
    think_ps: float
    """a worker waits for its batch, then thinks; 0: never"""
    arrival_ps: float
    """mean time between a worker's arrivals; 0: closed"""
    scans_max: int
    """scans of an operation under way at a time"""
    scan_chunk_lines: int
    """after so many lines others get their turn"""
    disturbances: Disturbances
    """of the workers' cores, one for each worker"""
    def __init__(
        self,
        *,
        node: _AnyIndices = ...,
        core: _AnyIndices = ...,
        home: _AnyIndices = ...,
        issue_ps: _AnyFloats = ...,
        receive_ps: _AnyFloats = ...,
        flush_ps: _AnyFloats = ...,
        copy_ps: _AnyFloats = ...,
        batch_ps: _AnyFloats = ...,
        round_ps: _AnyFloats = ...,
        swap_ps: _AnyFloats = ...,
        stream_slots: _AnyFloats = ...,
        read_slots: _AnyFloats = ...,
        handed_ps: _AnyIndices = ...,
        own_cached: bool = ...,
        exchanged_at_once: bool = ...,
        handed_additive: bool = ...,
        flushed_late: bool = ...,
        read_waits: float = ...,
        part_ps: _AnyFloats = ...,
        part_waits: float = ...,
        memory_idle_ps: _AnyFloats = ...,
        memory_line_ps: _AnyFloats = ...,
        memory_write_ps: _AnyFloats = ...,
        load: _AnyFloats = ...,
        load_ratio: _AnyFloats = ...,
        lines_per_command: float = ...,
        answer_lines: float = ...,
        link_data_ps: _AnyIndices = ...,
        link_request_ps: _AnyIndices = ...,
        handed_fetched: float = ...,
        handed_passed: float = ...,
        handed_passed_messages: float = ...,
        handed_back: float = ...,
        handed_messages: float = ...,
        handed_read: float = ...,
        handed_written: float = ...,
        line_data_ps: SparseRows = ...,
        line_control_ps: SparseRows = ...,
        line_bytes: SparseRows = ...,
        entering: _AnyIndices = ...,
        predecessor: _AnyIndices = ...,
        vertices: int = ...,
        buffer_commands: int = ...,
        round_commands: int = ...,
        incoming_commands: int = ...,
        command_bytes: int = ...,
        batch: int = ...,
        answers: bool = ...,
        think_ps: float = ...,
        arrival_ps: float = ...,
        scans_max: int = ...,
        scan_chunk_lines: int = ...,
        disturbances: Disturbances = ...,
    ) -> None: ...

class ErisDemands:
    """What each operation demands of each worker: per command, or per line that a scan reads."""

    FIELDS: ClassVar[tuple[str, ...]]
    core_ps: list[float]
    """[O, A] instructions"""
    hit_ps: list[float]
    """[O, A] what caches deliver, slots of a core"""
    lines: list[float]
    """[O, A] lines that memory delivers"""
    slots: list[float]
    """[O, A] lines that a core has under way"""
    line_max_ps: list[float]
    """[O, A] a line takes no longer than this; 0: no such limit"""
    memory_lines: list[float]
    """[O, A] lines that the home's controller reads and writes"""
    written: list[float]
    """[O, A] how many of them it writes"""
    scan_lines: list[float]
    """[O, A] lines of a whole scan, 0 for operations by key"""
    def __init__(
        self,
        *,
        core_ps: _AnyFloats = ...,
        hit_ps: _AnyFloats = ...,
        lines: _AnyFloats = ...,
        slots: _AnyFloats = ...,
        line_max_ps: _AnyFloats = ...,
        memory_lines: _AnyFloats = ...,
        written: _AnyFloats = ...,
        scan_lines: _AnyFloats = ...,
    ) -> None: ...

class ErisTransfer:
    """A part of an index or column on its way to another worker; per unit."""

    FIELDS: ClassVar[tuple[str, ...]]
    source: int
    """the worker that has it"""
    target: int
    """and the one that gets it"""
    volume: float
    """units"""
    source_ps: float
    """instructions of the source"""
    target_ps: float
    """and of the target"""
    source_lines: float
    """lines read at the source"""
    lines: float
    """sent"""
    written_lines: float
    """written"""
    source_slots: float
    """lines that the source has under way"""
    target_slots: float
    """and the target"""
    across_ps: float
    """latency of a line between them"""
    chunk: float
    """units of a message"""
    def __init__(
        self,
        *,
        source: int = ...,
        target: int = ...,
        volume: float = ...,
        source_ps: float = ...,
        target_ps: float = ...,
        source_lines: float = ...,
        lines: float = ...,
        written_lines: float = ...,
        source_slots: float = ...,
        target_slots: float = ...,
        across_ps: float = ...,
        chunk: float = ...,
    ) -> None: ...

class ErisRouting:
    """ERIS, every buffer and every exchange of a descriptor (systems/eris/kernel/routing.hpp)."""
    def __init__(
        self,
        machine: ErisMachine,
        operations: int,
        keyed: int,
        keys: Sequence[tuple[int, int]],
        seed: int,
        replication: int,
    ) -> None:
        """``keyed``: of the operations, the first ones, by key; the others are scans. ``keys``:
        Philox keys of each worker's commands, then of what each forwards.
        """
    def update(self, of: ErisDemands) -> None:
        """Other demands from now on."""
    def route(
        self,
        sum: Sequence[float],
        guide: Sequence[int],
        moves: Sequence[tuple[int, int, int, float]],
    ) -> None:
        """Another table. ``moves``: (operation, from, to, part of what was left there)."""
    def start(self) -> None:
        """Lets all workers begin."""
    def start_counting(self) -> None:
        """Forgets what was counted."""
    def check(self) -> None:
        """Raises RuntimeError where commands were lost or done twice, or a server did too much."""
    def call(self, who: Sequence[int]) -> None:
        """Lets these workers meet; then the run halts."""
    @property
    def gathered(self) -> bool:
        """Whether they have met."""
    def dismiss(self, ps: Sequence[int]) -> None:
        """Lets them go on; each [A] has so much to do first."""
    def begin(self, more: Sequence[ErisTransfer]) -> None:
        """More transfers; none at all forgets those that are done."""
    def halt_after(self, units: float) -> None:
        """Halts each time that so many units more, or all of a transfer, have been rebuilt."""
    @property
    def rebuilt(self) -> _Floats:
        """Units of each transfer that have arrived."""
    def counts(self) -> dict[str, Any]:
        """What was counted since start_counting, by name; arrays are copies."""
    def latency(self, operation: int) -> Histogram:
        """Latencies of an operation, in ps."""
    tracing: bool
    """Whether the trace is kept."""
    def trace(self) -> _Indices:
        """[rows, 5]: time, kind, worker, other, amount.

        Kinds: 0 round, 3 executed, 4 issued, 6 copied.
        """
    def run(self, until_ps: int | None = None) -> bool:
        """Handles all events before until_ps, or all; False where it halts before.

        Releases the GIL; Ctrl-C raises KeyboardInterrupt, and the next run goes on from there.
        Raises ModelError.
        """
    @property
    def now_ps(self) -> int:
        """The time reached."""
    @property
    def events(self) -> int:
        """Events handled."""
    @property
    def pending(self) -> int:
        """Events to come."""

class SharedStep:
    """A step of a worker's loop, per operation of the mix that it does."""

    FIELDS: ClassVar[tuple[str, ...]]
    core_ps: list[float]
    """[n] instructions"""
    held_ps: list[float]
    """[n] slots of a core: what caches deliver, and memory at no load"""
    memory: SparseRows
    """[n, n] waits at controllers: slots' time per ps of wait"""
    links: SparseRows
    """[n, 2L] waits at links, likewise"""
    streamed: SparseRows
    """[n, n] lines read one after the other, by home"""
    ways: SparseRows
    """[streamed entries, 2L] links that each of these takes"""
    slots: list[float]
    """[n] of these, so many at a time"""
    line_max_ps: list[float]
    """[streamed entries] at the most; 0: no such limit"""
    idle_ps: list[float]
    """[streamed entries] latency at no load"""
    def __init__(
        self,
        *,
        core_ps: _AnyFloats = ...,
        held_ps: _AnyFloats = ...,
        memory: SparseRows = ...,
        links: SparseRows = ...,
        streamed: SparseRows = ...,
        ways: SparseRows = ...,
        slots: _AnyFloats = ...,
        line_max_ps: _AnyFloats = ...,
        idle_ps: _AnyFloats = ...,
    ) -> None: ...

class SharedSetup:
    """Workers on data that all share."""

    FIELDS: ClassVar[tuple[str, ...]]
    node: list[int]
    """[A] of each worker"""
    core: list[int]
    """[A] of each worker, among the cores in use"""
    steps: list[SharedStep]
    """of the loop"""
    memory_ps: SparseRows
    """[n, n] work of controllers per operation of a node's worker"""
    memory_lines: SparseRows
    """[n, n] and its lines"""
    link_data_ps: SparseRows
    """[n, 2L] wire time of data, likewise"""
    link_control_ps: SparseRows
    """[n, 2L] and of control messages"""
    link_bytes: SparseRows
    """[n, 2L] bytes of both"""
    limit_ps: list[float]
    """[n] work of the fullest limit of the node's transfers"""
    line_ps: list[float]
    """[n] work of the line that all write to"""
    memory_idle_ps: list[float]
    """[n] latency of each node's own memory"""
    link_line_ps: list[float]
    """[2L] wire time of a line; half is the mean wait"""
    load: list[float]
    """of a memory controller, for load_ratio"""
    load_ratio: list[float]
    """loaded latency over idle, by load"""
    link_load_max: float
    """a link's load, at the most"""
    shares: list[float]
    """[O] of the operations"""
    batch: int
    """operations that a worker begins together"""
    chunks: int
    """of a scan, where nothing else is done; else 0"""
    think_ps: float
    """a worker waits for its batch, then thinks; 0: never"""
    arrival_ps: float
    """mean time between a worker's arrivals; 0: closed"""
    def __init__(
        self,
        *,
        node: _AnyIndices = ...,
        core: _AnyIndices = ...,
        steps: Sequence[SharedStep] = ...,
        memory_ps: SparseRows = ...,
        memory_lines: SparseRows = ...,
        link_data_ps: SparseRows = ...,
        link_control_ps: SparseRows = ...,
        link_bytes: SparseRows = ...,
        limit_ps: _AnyFloats = ...,
        line_ps: _AnyFloats = ...,
        memory_idle_ps: _AnyFloats = ...,
        link_line_ps: _AnyFloats = ...,
        load: _AnyFloats = ...,
        load_ratio: _AnyFloats = ...,
        link_load_max: float = ...,
        shares: _AnyFloats = ...,
        batch: int = ...,
        chunks: int = ...,
        think_ps: float = ...,
        arrival_ps: float = ...,
    ) -> None: ...

class ErisShared:
    """ERIS's baselines, event by event (systems/eris/kernel/shared.hpp)."""
    def __init__(
        self, setup: SharedSetup, keys: Sequence[tuple[int, int]], seed: int, replication: int
    ) -> None:
        """``keys``: the Philox key of each worker."""
    def update(self, of: SharedSetup) -> None:
        """Other demands from now on, for the same workers."""
    def start(self) -> None:
        """Lets all workers begin."""
    def start_counting(self) -> None:
        """Forgets what was counted."""
    def check(self) -> None:
        """Raises RuntimeError where commands were lost or done twice, or a server did too much."""
    def counts(self) -> dict[str, Any]:
        """What was counted since start_counting, by name; arrays are copies."""
    def latency(self, operation: int) -> Histogram:
        """Latencies of an operation, in ps."""
    def run(self, until_ps: int | None = None) -> bool:
        """Handles all events before until_ps, or all; False where it halts before.

        Releases the GIL; Ctrl-C raises KeyboardInterrupt, and the next run goes on from there.
        Raises ModelError.
        """
    @property
    def now_ps(self) -> int:
        """The time reached."""
    @property
    def events(self) -> int:
        """Events handled."""
    @property
    def pending(self) -> int:
        """Events to come."""

class ExchangeStep:
    """A step of an operator on a cluster."""

    FIELDS: ClassVar[tuple[str, ...]]
    central: bool
    """workers fetch pieces from one queue; else each node has its own"""
    gated: bool
    """a node begins it when all rows sent to it before have been taken in"""
    checked: bool
    """its pieces contain each row once that steps marked as input sent"""
    input: bool
    """sends rows that a later step checks"""
    piece_home: list[int]
    """[K] node where its lines are"""
    piece_lines: list[float]
    """[K] units of work"""
    piece_rows: list[int]
    """[K] rows in it, of a checked step"""
    instructions_ps: list[float]
    """[n] of a line, by node of the worker"""
    read: float
    """lines of memory a line"""
    written: float
    """lines of memory a line"""
    rows: list[list[int]]
    """[n, P] that pieces of a home send to each partition; empty: it sends none"""
    rows_of_buffer: int
    """that fill a buffer"""
    row_lines: float
    """lines of a row"""
    def __init__(
        self,
        *,
        central: bool = ...,
        gated: bool = ...,
        checked: bool = ...,
        input: bool = ...,
        piece_home: _AnyIndices = ...,
        piece_lines: _AnyFloats = ...,
        piece_rows: _AnyIndices = ...,
        instructions_ps: _AnyFloats = ...,
        read: float = ...,
        written: float = ...,
        rows: Sequence[list[int]] = ...,
        rows_of_buffer: int = ...,
        row_lines: float = ...,
    ) -> None: ...

class ExchangeOperator:
    """A distributed operator."""

    FIELDS: ClassVar[tuple[str, ...]]
    one_sided: bool
    """rows are written to remote memory; else sent, received, copied"""
    steps: list[ExchangeStep]
    """one after another on each node"""
    costs: list[MessageCost]
    """of a buffer, by how many of so many parts are full"""
    def __init__(
        self,
        *,
        one_sided: bool = ...,
        steps: Sequence[ExchangeStep] = ...,
        costs: Sequence[MessageCost] = ...,
    ) -> None: ...

class ExchangeSetup:
    """A cluster that joins, and its operators."""

    FIELDS: ClassVar[tuple[str, ...]]
    machine: ServiceMachine
    """without links: nodes have adapters"""
    slots: list[float]
    """[n] lines that a thread reads at a time"""
    copy_ps: list[float]
    """[n] of a thread that puts a received line in its place"""
    worker_core: list[int]
    """[W]"""
    slow: list[int]
    """[n] all that workers do takes so many times as long"""
    operators: list[ExchangeOperator]
    """that can be chosen"""
    chosen: int
    """of them, at first"""
    fetch: list[MessageCost]
    """to the queue and back, to a chunk's home and back"""
    queue_node: int
    """with the central queue"""
    send_buffers: int
    """of each worker and partition, for one-sided verbs"""
    signal_every: int
    """requests of a worker to a node, at the latest"""
    taken_at_once: int
    """messages that a worker receives in a row"""
    think_ps: int
    """between two queries"""
    def __init__(
        self,
        *,
        machine: ServiceMachine = ...,
        slots: _AnyFloats = ...,
        copy_ps: _AnyFloats = ...,
        worker_core: _AnyIndices = ...,
        slow: _AnyIndices = ...,
        operators: Sequence[ExchangeOperator] = ...,
        chosen: int = ...,
        fetch: Sequence[MessageCost] = ...,
        queue_node: int = ...,
        send_buffers: int = ...,
        signal_every: int = ...,
        taken_at_once: int = ...,
        think_ps: int = ...,
    ) -> None: ...

class ExchangeModel:
    """A cluster that joins, event by event."""
    def __init__(self, setup: ExchangeSetup, seed: int, replication: int) -> None: ...
    def choose(self, chosen: int) -> None:
        """Queries that begin from now on take this operator."""
    def counts(self) -> dict[str, Any]:
        """What was counted since the start, by name; arrays are copies."""
    def keep_trace(self) -> None:
        """From now on."""
    def trace(self) -> NDArray[np.void]:
        """Rows (time_ps, event, subject, data) of what happened."""
    def run(self, until_ps: int | None = None) -> bool:
        """Handles all events before until_ps, or all; False where it halts before.

        Releases the GIL; Ctrl-C raises KeyboardInterrupt, and the next run goes on from there.
        Raises ModelError.
        """
    @property
    def now_ps(self) -> int:
        """The time reached."""
    @property
    def events(self) -> int:
        """Events handled."""
    @property
    def pending(self) -> int:
        """Events to come."""

def link_rows(
    link: _AnyIndices,
    start: _AnyIndices,
    end: _AnyIndices,
    nodes: int,
    links: int,
    factor: _AnyFloats | float,
    value: _AnyFloats | float,
) -> _Floats:
    """What each link carries for each of n rows: total[links * n].

    In row r, factor[i * n + r] * value[j * n + r] goes from node i to node j. Use k says that the
    route from start[k] to end[k] takes link[k]; products are added up in the order of the uses.

    Raises ValueError for arrays that do not fit together, and for indices out of range.
    """

class Core:
    """A core: its hardware threads take turns and share its miss slots.

    See sim/machine/reference/core.py, which has the same calls.
    """
    def __init__(self, threads: int) -> None: ...
    def begin(self, now: int, work: tuple[float, float, float]) -> tuple[int, int]: ...
    @property
    def held(self) -> float: ...
    def start_counting(self, now: int) -> None: ...

class MemoryController:
    """Serves lines in order of arrival, and answers the later the busier it is.

    See sim/machine/reference/memory_controller.py, which has the same calls.
    """
    def __init__(self, read_ps: float, write_ps: float, idle_ps: float) -> None: ...
    def serve(self, now: int, lines: float, written: float = 0.0) -> int: ...
    def wait_ps(self, now: int, curve: tuple[Sequence[float], Sequence[float]]) -> float: ...
    @property
    def lines(self) -> float: ...
    @property
    def arrived(self) -> int: ...
    def done(self, now: int) -> int: ...
    def start_counting(self, now: int) -> None: ...

class Interconnect:
    """All links of a machine, and the routes over them.

    See sim/machine/reference/interconnect.py, which has the same calls.
    """
    def __init__(
        self,
        data_ps: Sequence[int],
        request_ps: Sequence[int],
        routes: tuple[Sequence[int], Sequence[int], int],
    ) -> None: ...
    def send_lines(self, now: int, start: int, end: int, lines: float, done: int) -> int: ...
    def use_memory(
        self,
        now: int,
        paths: tuple[SparseRows, SparseRows, SparseRows],
        node: int,
        lines: float,
        done: int,
    ) -> int: ...
    @property
    def lines(self) -> _Floats: ...
    @property
    def requests(self) -> _Floats: ...
    @property
    def bytes(self) -> _Floats: ...
    def done(self, now: int) -> _Indices: ...
    def start_counting(self, now: int) -> None: ...

class Adapter:
    """A network adapter: an outgoing and an incoming side, cut-through.

    See sim/machine/reference/adapter.py, which has the same calls.
    """
    def __init__(self) -> None: ...
    def send(self, now: int, out_ps: int, wire_ps: int) -> tuple[int, int]: ...
    def receive(self, now: int, in_ps: int, last_bits: int) -> int: ...

def solve_max_min(
    capacity: _AnyFloats | float,
    row_ptr: _AnyIndices,
    resource: _AnyIndices,
    coefficient: _AnyFloats | float,
    cap: _AnyFloats | float,
    weight: _AnyFloats | float,
) -> tuple[Any, ...]:
    """Share resources among flows, max-min fair: (rate[F], binding[F], use[R]).

    Flow f uses coefficient[k] * rate[f] of resource[k], for k in row_ptr[f]:row_ptr[f + 1]; a
    resource that appears twice adds up. All rate / weight rise together; a flow stops when one of
    its resources is full (binding: that resource's index) or at its cap (binding: -1). Ties go to
    caps first, then to the lowest index.

    Shapes: capacity [R], row_ptr [F + 1], resource and coefficient [NNZ], cap and weight [F].
    Units are the caller's: cap and rate share one, capacity is coefficient * rate. A capacity may
    be 0 (then its users rest) or infinite; a cap may be 0 or infinite; a weight is above 0.
    The result is exact but for rounding: no resource is overused by more than 1e-12 of itself.
    Releases the GIL; float64 and int64 arrays are read without a copy.

    Raises ValueError, naming the first wrong value, for shapes and values out of range and for a
    flow with neither a finite cap nor a resource of finite capacity.
    """

class MessageCost:
    """What one message of a type costs, in ps; its size is in the numbers.

    A part of 0 of a thread takes none. The adapters' sides take the larger of 1 / message rate and bytes / bandwidth; cut-through: the incoming side starts when the first bits come, wire_ps after the outgoing side started.
    """

    FIELDS: ClassVar[tuple[str, ...]]
    send_ps: int
    """of the sender's thread; 0: none takes part"""
    receive_ps: int
    """of the receiver's thread, likewise"""
    out_ps: int
    """of the outgoing side of the sender's adapter"""
    wire_ps: int
    """on its way"""
    in_ps: int
    """of the incoming side of the receiver's adapter"""
    parts: int
    """messages of a transport that it is made of"""
    def __init__(
        self,
        *,
        send_ps: int = ...,
        receive_ps: int = ...,
        out_ps: int = ...,
        wire_ps: int = ...,
        in_ps: int = ...,
        parts: int = ...,
    ) -> None: ...
    def replaced(self, **kwargs: Any) -> MessageCost:
        """A copy with these values in place of its own."""

class MessagePath:
    """Messages between places on machines.

    See sim/machine/reference/message_path.py.
    """
    def __init__(
        self, machines: int, places: Sequence[tuple[int, int, int]], costs: Sequence[MessageCost]
    ) -> None:
        """places: machine, threads and factor of each; costs: by type."""
    def run(self, until_ps: int | None = None) -> bool:
        """Handles all events before until_ps, or all; False where it halts before.

        Releases the GIL; Ctrl-C raises KeyboardInterrupt, and the next run goes on from there.
        Raises ModelError.
        """
    @property
    def now_ps(self) -> int:
        """The time reached."""
    @property
    def events(self) -> int:
        """Events handled."""
    @property
    def pending(self) -> int:
        """Events to come."""
    def send(self, at_ps: int, type: int, sender: int, receiver: int, work_ps: int = 0) -> None:
        """Raises ValueError for what there is none of."""
    @property
    def received_ps(self) -> list[int]:
        """Of each message, in the order of their sending."""

class OsDomain:
    """Processors among which load is balanced."""

    FIELDS: ClassVar[tuple[str, ...]]
    level: int
    """0 a core, 1 a cache, 2 a node, 3 beyond"""
    groups: list[list[int]]
    """processors"""
    places_new_threads: bool
    """new threads are placed over it, and woken ones near who wakes them"""
    spreads: bool
    """a group with room takes from one that has more (SD_PREFER_SIBLING of the level below)"""
    spare: int
    """threads that may stay together in a group beyond a node (imb_numa_nr)"""
    def __init__(
        self,
        *,
        level: int = ...,
        groups: Sequence[list[int]] = ...,
        places_new_threads: bool = ...,
        spreads: bool = ...,
        spare: int = ...,
    ) -> None: ...

class OsSetup:
    """Processors, their domains and threads: sim/machine/os_scheduler.py."""

    FIELDS: ClassVar[tuple[str, ...]]
    core: list[int]
    """[C] of each processor"""
    cache: list[int]
    """[C]"""
    node: list[int]
    """[C]"""
    domains: list[OsDomain]
    """in which load is balanced"""
    domains_of: list[list[int]]
    """[C] positions, from the inside out"""
    tick_ps: int
    """from tick to tick"""
    slice_ps: int
    """of a thread, where others wait"""
    hot_ps: int
    """a thread that ran so recently is not moved"""
    begin: list[int]
    """[T] processor of each thread before it first runs"""
    own: list[list[int]]
    """[T] affinity masks, as processors"""
    def __init__(
        self,
        *,
        core: _AnyIndices = ...,
        cache: _AnyIndices = ...,
        node: _AnyIndices = ...,
        domains: Sequence[OsDomain] = ...,
        domains_of: Sequence[list[int]] = ...,
        tick_ps: int = ...,
        slice_ps: int = ...,
        hot_ps: int = ...,
        begin: _AnyIndices = ...,
        own: Sequence[list[int]] = ...,
    ) -> None: ...
    def replaced(self, **kwargs: Any) -> OsSetup:
        """A copy with these values in place of its own."""

class OsScheduler:
    """Threads of the operating system on processors, by Linux's rules: sim/machine/reference/os_scheduler.py."""
    def __init__(self, setup: OsSetup) -> None: ...
    def on(self, thread: int) -> int: ...
    def changed(self) -> list[int]: ...
    def next_tick(self, now: int) -> int | None: ...
    def wake(self, now: int, thread: int, waker: int = -1) -> None: ...
    def sleep(self, now: int, thread: int) -> None: ...
    def tick(self, now: int) -> None: ...
    def use(self, now: int, allowed: Sequence[int]) -> None: ...
    @property
    def migrations(self) -> list[int]: ...

class ProcessorSetup:
    """Processors of one host that processes share by Linux's rules (EEVDF), and what that costs them, in their own time: sim/machine/reference/processors.py."""

    FIELDS: ClassVar[tuple[str, ...]]
    count: int
    """of processors; 0: every process has one of its own"""
    slice_ps: int
    """that a process has before others that wait have theirs"""
    tick_ps: int
    """from one look at slices to the next"""
    switch_ps: int
    """of its time, as a process takes over from another one"""
    look_ps: int
    """as it finds messages, however many"""
    connection_ps: list[int]
    """[K] for each process that these are from, by their parts, from 1 on; beyond: the last"""
    spin_ps: int
    """that a process without work looks for more"""
    sleep_ps: int
    """for falling asleep and being woken"""
    wake_ps: int
    """from being woken on an idle processor until it runs"""
    across_ps: int
    """for each part of a message from another processor"""
    notify_ps: int
    """of the waker's time, for one on another processor"""
    interrupt_ps: int
    """for being woken from there while others run here"""
    yield_ps: int
    """for giving way"""
    gives_way: bool
    """whether a process that waits for others lets them run"""
    awake_ps: int
    """the end of a pause, which is not slept through; nor are pauses of up to twice that"""
    homes: list[int]
    """by process; empty: in turn; -1: shares none and is not simulated here"""
    groups: list[int]
    """[count] idle processors of a group serve all of it; empty: nobody moves"""
    def __init__(
        self,
        *,
        count: int = ...,
        slice_ps: int = ...,
        tick_ps: int = ...,
        switch_ps: int = ...,
        look_ps: int = ...,
        connection_ps: _AnyIndices = ...,
        spin_ps: int = ...,
        sleep_ps: int = ...,
        wake_ps: int = ...,
        across_ps: int = ...,
        notify_ps: int = ...,
        interrupt_ps: int = ...,
        yield_ps: int = ...,
        gives_way: bool = ...,
        awake_ps: int = ...,
        homes: _AnyIndices = ...,
        groups: _AnyIndices = ...,
    ) -> None: ...
    def replaced(self, **kwargs: Any) -> ProcessorSetup:
        """A copy with these values in place of its own."""

class SharedProcessors:
    """Processors that processes share (EEVDF), given work and moved from outside.

    See sim/machine/reference/processors.py.
    """
    def __init__(self, setup: ProcessorSetup, processes: int) -> None: ...
    def submit(self, process: int, ps: int, job: int, sender: int = -1) -> None: ...
    def move(self, process: int, to: int) -> None: ...
    @property
    def ended(self) -> list[tuple[int, int]]: ...
    def busy_ps(self) -> list[float]: ...
    def processors_busy_ps(self) -> list[float]: ...
    def run(self, until_ps: int | None = None) -> bool:
        """Handles all events before until_ps, or all; False where it halts before.

        Releases the GIL; Ctrl-C raises KeyboardInterrupt, and the next run goes on from there.
        Raises ModelError.
        """
    @property
    def now_ps(self) -> int:
        """The time reached."""
    @property
    def events(self) -> int:
        """Events handled."""
    @property
    def pending(self) -> int:
        """Events to come."""

class ModelError(RuntimeError): ...

class ScanPlays:
    """Single scans beside settled background work."""
    def __init__(self, setup: TaskSetup) -> None:
        """The stages are what scans may be; the first worker scans."""
    def state(self, pieces: Sequence[int]) -> int:
        """The number of a state in which these pieces of the background go on."""
    def rates(self, state: int) -> list[float]:
        """Units per ps of each of its pieces."""
    def play(
        self,
        state: _AnyIndices,
        stage: _AnyIndices,
        home: _AnyIndices,
        entries: _AnyFloats | float,
        path: int,
    ) -> _Floats:
        """How long each scan takes, in ps."""

class QueueSetup:
    """Batches of tasks, the kinds that run, and who asks for them."""

    FIELDS: ClassVar[tuple[str, ...]]
    query: list[int]
    """(B) that a batch belongs to"""
    home: list[int]
    """(B) node of the queue"""
    group: list[int]
    """(B) step of a query"""
    stealable: list[int]
    """(B) 1: across nodes"""
    group_query: list[int]
    """(G)"""
    kind_batch: list[int]
    """(F)"""
    kind_node: list[int]
    """(F) of the worker"""
    kind_share: list[float]
    """(F) where threads are moved, else empty"""
    workers: list[float]
    """(n) of each node's"""
    room: list[float]
    """(n) that run on each node at most"""
    able: list[int]
    """nodes with workers"""
    nearest: list[int]
    """(n, n) nodes by distance from each"""
    distance: list[float]
    """(n, n) of equally far nodes thieves take in turn"""
    population: list[float]
    """(K) clients that may ask for a query"""
    mixed: list[int]
    """(K) 1: asked for by clients of the mix"""
    shares: list[float]
    """(K) of the mix; else 1"""
    blocked: list[int]
    """(K) 1: its clients wait for a part"""
    mix_clients: float
    """that are not stuck"""
    think_s: float
    """of closed clients"""
    arrivals_per_s: float
    """of open ones; 0: clients are closed"""
    damping: float
    """part of a step that is gone"""
    tolerance: float
    """of rates, in parts of the largest"""
    rounds_max: int
    """of one search"""
    def __init__(
        self,
        *,
        query: _AnyIndices = ...,
        home: _AnyIndices = ...,
        group: _AnyIndices = ...,
        stealable: _AnyIndices = ...,
        group_query: _AnyIndices = ...,
        kind_batch: _AnyIndices = ...,
        kind_node: _AnyIndices = ...,
        kind_share: _AnyFloats = ...,
        workers: _AnyFloats = ...,
        room: _AnyFloats = ...,
        able: _AnyIndices = ...,
        nearest: _AnyIndices = ...,
        distance: _AnyFloats = ...,
        population: _AnyFloats = ...,
        mixed: _AnyIndices = ...,
        shares: _AnyFloats = ...,
        blocked: _AnyIndices = ...,
        mix_clients: float = ...,
        think_s: float = ...,
        arrivals_per_s: float = ...,
        damping: float = ...,
        tolerance: float = ...,
        rounds_max: int = ...,
    ) -> None: ...

class SettledQueues:
    """Queues of tasks in steady state."""
    def __init__(self, setup: QueueSetup) -> None:
        """Raises ValueError where columns do not fit together."""
    def settle(
        self, tasks: _AnyFloats | float, local_s: _AnyFloats | float, task_s: _AnyFloats | float
    ) -> _Floats:
        """(F,) tasks that run where a task of each batch takes ``local_s`` (B,) on its own node and ``task_s`` (F,) as each kind; goes on from where the last call ended."""
    @property
    def rates(self) -> _Floats: ...
    @property
    def present(self) -> _Floats: ...
    @property
    def response_s(self) -> _Floats: ...
    @property
    def fit(self) -> _Floats: ...

class ServiceSetup:
    """Kinds of tasks that run, and the parts of the machine they share."""

    FIELDS: ClassVar[tuple[str, ...]]
    idle_s: list[float]
    """(n) latency of each node's own memory"""
    curve_under_way: list[float]
    """(P) lines under way, in parts of full load's"""
    curve_ratio: list[float]
    """(P) latency with these, in parts of the idle one"""
    entries: list[float]
    """(n) of home agents; 0: no limit. Empty: nowhere"""
    held_most_s: list[float]
    """(n) that lines hold an entry without links, at most"""
    capacity: list[float]
    """(n + L) lines, bytes per second"""
    update_lines: list[float]
    """(n) controller's time of a directory update, in lines read. Empty: none in memory"""
    crosses: list[int]
    """(n, L, n) 1: lines to a node take a link from home"""
    cores: list[float]
    """(n) of each node"""
    node: list[int]
    """(F) of the worker"""
    latency_s: list[float]
    """(F, n) of each home without load"""
    read: list[float]
    """(F, n) lines by threads, per entry"""
    use: list[float]
    """(F, n + L) of resources, per line"""
    per_line: list[float]
    """(F) lines of an entry that count for fair shares"""
    instructions_s: list[float]
    """(F) of an entry"""
    separate_s: list[float]
    """(F) of an entry"""
    slots: list[float]
    """(F) lines under way at a time"""
    on_core: list[int]
    """(F) 1: shares cores with others"""
    engine: list[int]
    """(F) that copies for it, -1: none. Empty: no kind's"""
    engine_s: list[float]
    """(F) of the engine, per entry"""
    copied: list[float]
    """(F, n) lines read by engines, per entry"""
    copied_slots: list[float]
    """(F) lines under way of a copy"""
    copied_latency_s: list[float]
    """(F, n) of each home to the engine"""
    contexts: list[float]
    """(E) copies that an engine does at a time"""
    tolerance_s: float
    """of waits"""
    rounds_max: int
    """of one search"""
    newton_rounds: int
    """those at first that may step by Newton's method"""
    def __init__(
        self,
        *,
        idle_s: _AnyFloats = ...,
        curve_under_way: _AnyFloats = ...,
        curve_ratio: _AnyFloats = ...,
        entries: _AnyFloats = ...,
        held_most_s: _AnyFloats = ...,
        capacity: _AnyFloats = ...,
        update_lines: _AnyFloats = ...,
        crosses: _AnyIndices = ...,
        cores: _AnyFloats = ...,
        node: _AnyIndices = ...,
        latency_s: _AnyFloats = ...,
        read: _AnyFloats = ...,
        use: _AnyFloats = ...,
        per_line: _AnyFloats = ...,
        instructions_s: _AnyFloats = ...,
        separate_s: _AnyFloats = ...,
        slots: _AnyFloats = ...,
        on_core: _AnyIndices = ...,
        engine: _AnyIndices = ...,
        engine_s: _AnyFloats = ...,
        copied: _AnyFloats = ...,
        copied_slots: _AnyFloats = ...,
        copied_latency_s: _AnyFloats = ...,
        contexts: _AnyFloats = ...,
        tolerance_s: float = ...,
        rounds_max: int = ...,
        newton_rounds: int = ...,
    ) -> None: ...

class SettledService:
    """How fast tasks are, in steady state."""
    def __init__(self, setup: ServiceSetup) -> None:
        """Raises ValueError where columns do not fit together."""
    def solve(self, count: _AnyFloats | float) -> None:
        """When ``count`` (F,) tasks of each kind run; waits are looked for from the last ones."""
    @property
    def entry_s(self) -> _Floats: ...
    @property
    def entries_per_s(self) -> _Floats: ...
    @property
    def held_s(self) -> _Floats: ...
    @property
    def copy_s(self) -> _Floats: ...
    @property
    def work_s(self) -> _Floats: ...
    @property
    def load(self) -> _Floats: ...
    @property
    def used(self) -> _Floats: ...
    @property
    def wait_s(self) -> _Floats: ...
    @property
    def entry_wait_s(self) -> _Floats: ...

class ServiceMachine:
    """What long pieces of work share; times in ps."""

    FIELDS: ClassVar[tuple[str, ...]]
    read_ps: list[float]
    """[n] of a line at the controller; 0: not limited"""
    write_ps: list[float]
    """[n] the same of a line written"""
    latency_ps: list[float]
    """[n, n] of a line of node j's memory on node i, without load"""
    load: list[float]
    """[K] of a controller, rising"""
    load_ratio: list[float]
    """[K] latency at that load over latency without"""
    core_node: list[int]
    """[C]"""
    core_threads: list[int]
    """[C] pieces that run on a core at most"""
    data_ps: list[float]
    """[2L] wire time of a line"""
    request_ps: list[float]
    """[2L] and of a request for one"""
    entering: list[int]
    """[n, v] last link on the way from a node to a vertex"""
    predecessor: list[int]
    """[n, v] vertex before it"""
    vertices: int
    """v"""
    smt_throughput: float
    """of a core that runs several threads, over that of one"""
    entries: list[float]
    """[n] lines under way at home agents; none, 0: not limited"""
    directory_in_memory: bool
    """its updates are writes"""
    answer_ps: list[float]
    """[2L] wire time of a message without data; none: as request_ps"""
    limits: int
    """of transfers, which messages take behind the links"""
    snooping: int
    """m: the first nodes, whose reads make the messages below"""
    message_first: list[int]
    """[m*m + 1] first message for a line that a node reads of one"""
    message_link: list[int]
    """[M] that it crosses, or 2L + the limit that it takes"""
    message_ps: list[float]
    """[M] time there, for each line read"""
    def __init__(
        self,
        *,
        read_ps: _AnyFloats = ...,
        write_ps: _AnyFloats = ...,
        latency_ps: _AnyFloats = ...,
        load: _AnyFloats = ...,
        load_ratio: _AnyFloats = ...,
        core_node: _AnyIndices = ...,
        core_threads: _AnyIndices = ...,
        data_ps: _AnyFloats = ...,
        request_ps: _AnyFloats = ...,
        entering: _AnyIndices = ...,
        predecessor: _AnyIndices = ...,
        vertices: int = ...,
        smt_throughput: float = ...,
        entries: _AnyFloats = ...,
        directory_in_memory: bool = ...,
        answer_ps: _AnyFloats = ...,
        limits: int = ...,
        snooping: int = ...,
        message_first: _AnyIndices = ...,
        message_link: _AnyIndices = ...,
        message_ps: _AnyFloats = ...,
    ) -> None: ...
    def replaced(self, **kwargs: Any) -> ServiceMachine:
        """A copy with these values in place of its own."""

class MemoryHome:
    """How long lines of a node's memory wait; times in ps.

    sim/machine/reference/memory_home.py has the same calls.
    """
    def __init__(self, machine: ServiceMachine, node: int) -> None: ...
    def use(self, lines: tuple[int, float, float, float], units: float, near: bool) -> None: ...
    def wait_for_link(self, lines: float, wait_ps: float) -> None: ...
    def settle_directory(self) -> bool: ...
    def settle_waits(self) -> bool: ...
    @property
    def controller_wait_ps(self) -> float: ...
    @property
    def entry_wait_ps(self) -> float: ...
    @property
    def room(self) -> float: ...
    @property
    def updating(self) -> int: ...

class SharedService:
    """Long pieces of work that share a machine max-min fair; times in ps.

    demand: the fields of PieceDemand in sim/machine/reference/service_machine.py; shared_service.py there has the same calls.
    """
    def __init__(self, machine: ServiceMachine) -> None: ...
    def demand(
        self, demand: tuple[float, float, Sequence[tuple[int, float, float, float]]]
    ) -> int: ...
    def start(self, now: int, core: int, demand: int, units: float, job: int) -> int: ...
    def move(self, now: int, name: int, core: int) -> None: ...
    def cancel(self, now: int, name: int) -> float: ...
    def next_change(self) -> int: ...
    def finish(self, now: int) -> int | None: ...
    def rate(self, name: int) -> float: ...
    def remaining(self, name: int) -> float: ...
    def wait_ps(self, node: int) -> float: ...
    def entry_wait_ps(self, node: int) -> float: ...
    def count(self, now: int) -> None: ...
    def lines_read(self, node: int) -> float: ...
    def lines_written(self, node: int) -> float: ...
    def lines(self, node: int, home: int) -> float: ...
    def controller_ps(self, node: int) -> float: ...
    def link_ps(self, link: int) -> float: ...
    def core_busy(self, core: int) -> int: ...

def play_closed_tasks(
    machine: ServiceMachine,
    demands: Sequence[tuple[float, float, Sequence[tuple[int, float, float, float]]]],
    by_node: Sequence[Sequence[tuple[float, int]]],
    until_ps: int,
) -> int:
    """How many tasks end before until_ps, where each core does one after the other.

    by_node: units and the demand's position of those that its cores do, in turn, again and again. Releases the GIL.
    """

class Histogram:
    """Streaming quantiles of whole numbers from 0 to 2^63 - 1.

    Counts are kept in buckets whose width is 2^-7 of their power of two: a quantile is off by at
    most ``relative_error`` of itself. Count, mean, least and greatest are exact. Raises ValueError
    for values out of range.
    """
    def __init__(self) -> None: ...
    relative_error: ClassVar[float]
    def add(self, value: int, count: int = 1) -> None:
        """Add a value so many times."""
    def add_even(self, low: int, high: int, count: int) -> None:
        """Spread a count evenly over all values from low to high, both included."""
    def add_all(self, values: _AnyIndices) -> None:
        """Add values [N]."""
    def merge(self, other: Histogram) -> None:
        """Add all that the other has seen."""
    def quantile(self, q: float) -> int:
        """The value of rank ceil(q * count), from 1; q from 0 to 1. 0 if there is none."""
    def buckets(self) -> tuple[Any, ...]:
        """(where a bucket begins, its count), for the buckets that have one."""
    @property
    def count(self) -> int: ...
    @property
    def mean(self) -> float: ...
    @property
    def least(self) -> int: ...
    @property
    def greatest(self) -> int: ...

class Stream:
    """A Philox4x64-10 stream, the same numbers as numpy.random.Philox(key=[key0, key1]).

    Each draw takes one word. Whoever is handed a stream draws from a copy, from where it stands.
    """
    def __init__(self, key0: int, key1: int) -> None: ...
    def bits(self) -> int:
        """The next 64 bits."""
    def uniform(self) -> float:
        """The next number in [0, 1): that of numpy.random.Generator.random()."""
    def uniforms(self, count: int) -> _Floats:
        """The next so many numbers in [0, 1): [count]."""
    def take_back(self, count: int) -> None:
        """Takes back the last words, at most all that were drawn: they come again."""
    def below(self, n: int) -> int:
        """A whole number from 0 to n - 1, all alike to within n * 2^-64."""
    def exponential(self, mean: float = 1.0) -> float:
        """-mean * log(1 - uniform), the same bits on any machine, within 1 ulp."""

class StageSetup:
    """A stage of a query."""

    FIELDS: ClassVar[tuple[str, ...]]
    task_class: int
    """of its tasks"""
    table: int
    """whose parts its tasks work on; -1: none"""
    counted: int
    """the table that parts_min is about; -1: none"""
    inputs: list[int]
    """stages that come before it"""
    followers: list[int]
    """stages that come after it"""
    pipelined: bool
    """each task follows one of its input's"""
    kept: bool
    """a later stage follows the nodes of its tasks"""
    parts_min: int
    """with fewer parts it is left out"""
    concurrency: int
    """tasks at most; 0: as the system says"""
    per_row: float
    """entries"""
    per_part: float
    """entries"""
    per_input_task: float
    """entries"""
    constant: float
    """entries"""
    most: float
    """entries at most, in all"""
    instructions_ps: list[float]
    """[n] per entry, by node of the thread"""
    separate_ps: list[float]
    """[n] per entry: overlaps with nothing"""
    slots: list[float]
    """[n] lines under way"""
    place: list[int]
    """[m] of memory: 0 with the part, 1 local, 2 interleaved"""
    read: list[float]
    """[m] lines per entry"""
    written: list[float]
    """[m] lines per entry"""
    lines: float
    """per entry, in all"""
    chunk_entries: float
    """that a copy engine copies at a time; 0: none does"""
    warm_lines: list[float]
    """[n] in the core's own cache"""
    warm_ps: list[float]
    """[n] to read them from the last-level cache"""
    def __init__(
        self,
        *,
        task_class: int = ...,
        table: int = ...,
        counted: int = ...,
        inputs: _AnyIndices = ...,
        followers: _AnyIndices = ...,
        pipelined: bool = ...,
        kept: bool = ...,
        parts_min: int = ...,
        concurrency: int = ...,
        per_row: float = ...,
        per_part: float = ...,
        per_input_task: float = ...,
        constant: float = ...,
        most: float = ...,
        instructions_ps: _AnyFloats = ...,
        separate_ps: _AnyFloats = ...,
        slots: _AnyFloats = ...,
        place: _AnyIndices = ...,
        read: _AnyFloats = ...,
        written: _AnyFloats = ...,
        lines: float = ...,
        chunk_entries: float = ...,
        warm_lines: _AnyFloats = ...,
        warm_ps: _AnyFloats = ...,
    ) -> None: ...
    def replaced(self, **kwargs: Any) -> StageSetup:
        """A copy with these values in place of its own."""

class EngineSetup:
    """A copy engine."""

    FIELDS: ClassVar[tuple[str, ...]]
    core: int
    """of the machine"""
    contexts: int
    """copies at a time"""
    setup_ps: float
    """of a thread, before its first request"""
    request_ps: float
    """of a thread, for each"""
    line_ps: float
    """of a line"""
    free_line_ps: float
    """likewise, not coherent; 0: it makes no such copies"""
    slots: float
    """lines that it asks for at a time"""
    def __init__(
        self,
        *,
        core: int = ...,
        contexts: int = ...,
        setup_ps: float = ...,
        request_ps: float = ...,
        line_ps: float = ...,
        free_line_ps: float = ...,
        slots: float = ...,
    ) -> None: ...
    def replaced(self, **kwargs: Any) -> EngineSetup:
        """A copy with these values in place of its own."""

class BackgroundSetup:
    """What goes on without end besides queries."""

    FIELDS: ClassVar[tuple[str, ...]]
    core: int
    """of the machine"""
    engine: int
    """whose context it holds; -1: none"""
    instructions_ps: float
    """of a line"""
    read: list[float]
    """[n] lines read from each home"""
    written: list[float]
    """[n] likewise written"""
    slots: float
    """lines under way"""
    def __init__(
        self,
        *,
        core: int = ...,
        engine: int = ...,
        instructions_ps: float = ...,
        read: _AnyFloats = ...,
        written: _AnyFloats = ...,
        slots: float = ...,
    ) -> None: ...
    def replaced(self, **kwargs: Any) -> BackgroundSetup:
        """A copy with these values in place of its own."""

class TaskSetup:
    """What tasks run with, in plain numbers: sim/systems/tasks/parameters.py makes it."""

    FIELDS: ClassVar[tuple[str, ...]]
    machine: ServiceMachine
    """the engines and what copies parts are cores of it"""
    worker_core: list[int]
    """[W]"""
    worker_node: list[int]
    """[W] of whose pool each is"""
    os: OsSetup
    """threads that are moved; without processors: they are pinned"""
    switch_ps: float
    """of a thread that takes over a processor in the middle of a task"""
    one_queue: bool
    """of the whole machine"""
    copy_core: list[int]
    """[n] of copying threads"""
    copy_slots: list[float]
    """[n] lines under way of copying threads"""
    near: list[int]
    """[n, n] nodes by distance from each, itself first"""
    spreads: list[float]
    """[S, n] of what lies on several nodes: by what to divide it for each one's; 0: nothing"""
    classes: int
    """of tasks"""
    stages: list[StageSetup]
    """of all queries"""
    query_first: list[int]
    """first stage of each query, and the end of the last one"""
    cumulative: list[float]
    """shares of the mix, by query"""
    last_of_mix: int
    """the last query that is drawn; -1: none"""
    part_rows: list[list[int]]
    """of each table's parts"""
    part_node: list[list[int]]
    """likewise; -1 - s: on those of spread s in turn"""
    client_query: list[int]
    """of each closed client; -1: it draws from the mix"""
    concurrency: int
    """tasks of a stage; 0: as workers are free"""
    task_ps: float
    """of taking and ending a task"""
    look_ps: int
    """for work, before a worker sleeps"""
    wake_ps: int
    """until a woken worker runs"""
    queue_per_worker: bool
    """tasks of a node are dealt to its workers"""
    think_ps: float
    """of closed clients, on average"""
    arrival_ps: float
    """between queries of open clients, on average; 0: none"""
    engines: list[EngineSetup]
    """that copy for scans"""
    engine_of_node: list[int]
    """[n] the engine that threads of a node use; -1, empty: none"""
    background: list[BackgroundSetup]
    """besides queries"""
    paths: list[int]
    """[stages, n + 1] by stage and home, on all nodes first: path 0 (CPU), 1, 2 (copies)"""
    def __init__(
        self,
        *,
        machine: ServiceMachine = ...,
        worker_core: _AnyIndices = ...,
        worker_node: _AnyIndices = ...,
        os: OsSetup = ...,
        switch_ps: float = ...,
        one_queue: bool = ...,
        copy_core: _AnyIndices = ...,
        copy_slots: _AnyFloats = ...,
        near: _AnyIndices = ...,
        spreads: _AnyFloats = ...,
        classes: int = ...,
        stages: Sequence[StageSetup] = ...,
        query_first: _AnyIndices = ...,
        cumulative: _AnyFloats = ...,
        last_of_mix: int = ...,
        part_rows: Sequence[list[int]] = ...,
        part_node: Sequence[list[int]] = ...,
        client_query: _AnyIndices = ...,
        concurrency: int = ...,
        task_ps: float = ...,
        look_ps: int = ...,
        wake_ps: int = ...,
        queue_per_worker: bool = ...,
        think_ps: float = ...,
        arrival_ps: float = ...,
        engines: Sequence[EngineSetup] = ...,
        engine_of_node: _AnyIndices = ...,
        background: Sequence[BackgroundSetup] = ...,
        paths: _AnyIndices = ...,
    ) -> None: ...
    def replaced(self, **kwargs: Any) -> TaskSetup:
        """A copy with these values in place of its own."""

class TaskModel:
    """Queries as tasks of a machine's workers."""
    def __init__(
        self,
        setup: TaskSetup,
        keys: Sequence[tuple[int, int]],
        seed: int = 0,
        replication: int = 0,
        traced: bool = False,
    ) -> None:
        """keys: Philox keys, two of each closed client (the mix, thinking) and two of open ones (the mix, arrivals).

        Raises ValueError for a setup that does not fit together.
        """
    def run(self, until_ps: int | None = None) -> bool:
        """Handles all events before until_ps, or all; False where it halts before.

        Releases the GIL; Ctrl-C raises KeyboardInterrupt, and the next run goes on from there.
        Raises ModelError.
        """
    @property
    def now_ps(self) -> int:
        """The time reached."""
    @property
    def events(self) -> int:
        """Events handled."""
    @property
    def pending(self) -> int:
        """Events to come."""
    def copy(self, number: int, source: int, target: int, pages: int, page_ps: float) -> None:
        """A copying thread begins; source -1: on all nodes. The run halts when it has arrived."""
    def set_parts(self, table: int, rows: Sequence[int], nodes: Sequence[int]) -> None:
        """The table is in these parts, for queries that are asked from now on."""
    def block(self, table: int, part: int) -> None:
        """The part begins to move: its tasks wait."""
    def place(self, table: int, part: int, node: int) -> None:
        """The part has arrived: its tasks are queued there."""
    def allow(self, classes: Sequence[bool], within_node: bool = True) -> None:
        """Whether tasks of each class may be stolen from now on, and whether those dealt to a worker may be taken by others of its node."""
    def use(self, workers: Sequence[bool]) -> None:
        """Whether each worker takes tasks from now on."""
    def set_mix(self, cumulative: Sequence[float]) -> None:
        """Shares of the queries, added up."""
    def set_paths(self, paths: Sequence[int]) -> None:
        """Of scans that begin from now on: see TaskSetup.paths."""
    def take_arrived(self) -> list[int]:
        """Numbers of the copies that have arrived since this was last asked."""
    def trace(self) -> _Indices:
        """[rows, 6]: see numatwin.sim.systems.tasks.history."""
    def class_counts(self) -> _Indices:
        """[classes, 5] tasks made, done, waiting, running, stolen."""
    def class_bytes_per_ps(self) -> _Floats:
        """[classes] of a task, exponential averages; below 0 before the first has ended."""
    def answered(self) -> _Indices:
        """[queries] that have been answered."""
    def latency_totals_ps(self) -> _Floats:
        """[queries] sums of latencies."""
    def latency_buckets(self, query: int) -> list[int]:
        """Counts of latencies by bucket of a Histogram, from 0 on."""
    def node_use(self) -> tuple[_Indices, _Floats]:
        """[n] CPU time in ps and bytes of local tasks."""
    def part_use(self) -> tuple[_Indices, _Floats]:
        """The same of all parts that ever were, by number."""
    def parts(self, table: int) -> list[int]:
        """Numbers of the table's parts now."""
    def traffic(self) -> _Floats:
        """[n, n] bytes that threads of a node have read and written at a home; of ended tasks."""
    def migrations(self) -> list[int]:
        """Of threads to another processor: of the core, the cache, the node, beyond."""
    def looked_ps(self) -> _Indices:
        """[n] time of idle workers that looked for work."""
    def waiting(self) -> _Indices:
        """[n] tasks in queues."""
    def idle(self) -> _Indices:
        """[n] workers in use that have no task."""
    @property
    def parts_waiting(self) -> int:
        """Tasks that wait for parts that move."""
    @property
    def asked(self) -> int:
        """Queries."""
    def service_use(self) -> tuple[_Floats, _Floats, _Floats, _Floats, _Floats]:
        """Lines read [n], written [n], controllers' [n], links' [2L] and cores' [C] busy ps."""

def water_filling(height: _AnyFloats | float, cost: _AnyFloats | float) -> _Floats:
    """Shares of 1 that raise columns to one level: share[N].

    Column k stands at height[k], and rises by cost[k] for each unit that it gets. The lowest ones are
    filled up to a common level; columns above it get nothing. The sum is 1 but for rounding.

    Raises ValueError for no column, for arrays of different lengths, for a cost that is not above 0
    and for a height that is no number.
    """
