"""The schema of a machine file: nodes, hubs, links, pair tables, each number with its unit."""

from itertools import pairwise
from typing import Annotated, Literal, TypeVar

from pydantic import Field

from ..inputs.names import Name
from ..inputs.quantities import (
    Bandwidth,
    Duration,
    EnergyPerBit,
    Frequency,
    Power,
    Rate,
    Size,
    SizeOrZero,
)
from ..inputs.settings import AnyPart, OpenPart
from ..inputs.yaml_file import DescriptionError as DescriptionError
from ..inputs.yaml_file import Strict
from .copy_engines import CopyEngineFacts
from .measurements import HostState, Measurement
from .processes import ProcessFacts
from .schema_types import (
    Bits,
    Count,
    EndId,
    Fact,
    Misfit,
    NodeId,
    NodeOrRun,
    NodeRun,
    StreamStall,
    WriteTurnaround,
)
from .schema_types import ProcessorIdentity as ProcessorIdentity

Facts = TypeVar("Facts", bound=Strict)
DEFAULT_LINE_BYTES = 64.0


class Cache(Strict):
    """One level of cache, and how many cores share one instance of it. ``ways``: of each set."""

    level: Annotated[int, Field(strict=True, ge=1, le=4)]
    size: Size
    shared_by_cores: Count = 1
    line: Size | None = None
    ways: Count | None = None
    latency: Duration | None = None

    def _fits(self) -> None:
        line_bytes = DEFAULT_LINE_BYTES if self.line is None else self.line.value
        lines = int(self.size.value // line_bytes)
        if self.ways is not None and self.ways > lines:
            raise DescriptionError(("ways",), f"{self.ways}: expected at most its {lines:,} lines")


class Tlb(Strict):
    """A translation buffer: how many pages of one size a core, or some cores together, reach."""

    page: Size
    entries: Count
    shared_by_cores: Count = 1
    source: str | None = None


class MemorySideCache(Strict):
    """A cache in front of a node's memory, such as MCDRAM or DRAM before persistent memory."""

    size: Size
    line: Size | None = None


class Memory(Strict):
    """A node's memory. ``size`` 0 B is a node without memory; left out, the size is unknown.

    ``write_turnaround``: what a written line costs the controller beyond its transfer, in times of
    a line, as the memory's bus turns from reads to writes and back; negative, from -0.9 on, where
    reads have a path of their own that holds them at ``bandwidth``, while memory delivers more:
    reads and writes together, each in 1 + t/2 of a line's time.
    ``home_agent_entries``: outstanding reads that its home agents track, of all readers together; a
    line that waits for a link holds an entry, further reads wait in one queue. Left out, there is
    no limit.
    """

    size: SizeOrZero | None = None
    bandwidth: Bandwidth | None = None
    latency: Duration | None = None
    write_turnaround: WriteTurnaround | None = None
    home_agent_entries: Fact | None = None
    kind: Annotated[str, Field(max_length=32)] = "DRAM"
    side_caches: tuple[MemorySideCache, ...] = ()


class KernelFacts(Strict):
    """What the operating system's memory takes a core, beside what it takes others.

    ``page_fault``: the first touch of a page of 4 KiB, which is zeroed; ``huge_page_fault``: of one
    of 2 MiB; ``page_unmap``: giving a touched page back; ``mapping``: mapping a stretch of memory
    and unmapping it again, besides its pages; ``interrupt``: how much longer unmapping takes for
    each other processor that runs the process, which is interrupted to forget the addresses.
    """

    page_fault: Duration | None = None
    huge_page_fault: Duration | None = None
    page_unmap: Duration | None = None
    mapping: Duration | None = None
    interrupt: Duration | None = None


class NodeEnergy(Strict):
    """Power of a core at work and at rest, energy of a bit read from or written to memory."""

    core_active: Power
    core_idle: Power
    memory: EnergyPerBit | None = None


class NodeType(Strict):
    """Facts that many nodes share. ``cores`` 0 is a node without CPUs (a memory expander).

    Left out, ``cores`` is unknown, as after a tool that only measures memory: no work can be placed
    on such nodes.
    ``ipc``: instructions per cycle of index code whose data lie in the first caches;
    ``outstanding_misses``: cache lines that one core can have under way (its line-fill buffers);
    ``outstanding_misses_together``: the same of each core while all cores of the node do so;
    ``die_bandwidth``: what the cores of one die (``die_cores``, by default those that share a
    last-level cache) read at most of all memory together, over their link to the rest of the
    processor;
    ``streaming_misses``: the same when it streams, with what its prefetchers ask for;
    ``stream_stall``: of a core whose instructions for a stream take as long as its lines, what it
    waits for all the same, in parts of that time (0: all is hidden, 1: nothing);
    ``stream_uncovered``: what a core waits for each line of a stream besides, in parts of a line's
    latency, if it sees no further line itself, as its instructions for one fill its reorder window:
    prefetchers start anew at each page (not known: nothing);
    ``reorder_window``: instructions that one core looks ahead, which bounds how many independent
    lookups overlap. Measured, all of these are rates of lines times latency under the load that
    these lines make (Little's law), which planes divide them by. ``system_call``: a system call
    that does nothing, into the kernel and back.
    ``processor``: what its processors say of themselves; no plane reads it.
    """

    processor: ProcessorIdentity | None = None
    cores: Annotated[int, Field(strict=True, ge=0, le=4_096)] | None = None
    threads_per_core: Annotated[int, Field(strict=True, ge=1, le=16)] = 1
    clock: Frequency | None = None
    ipc: Fact | None = None
    outstanding_misses: Fact | None = None
    outstanding_misses_together: Fact | None = None
    die_bandwidth: Bandwidth | None = None
    die_cores: Count | None = None
    streaming_misses: Fact | None = None
    stream_stall: StreamStall | None = None
    stream_uncovered: StreamStall | None = None
    reorder_window: Fact | None = None
    system_call: Duration | None = None
    kernel: KernelFacts = KernelFacts()
    caches: tuple[Cache, ...] = ()
    tlbs: tuple[Tlb, ...] = ()
    memory: Memory
    energy: NodeEnergy | None = None
    source: str | None = None

    def _fits(self) -> None:
        levels = [cache.level for cache in self.caches]
        for index, level in enumerate(levels):
            if level in levels[:index]:
                raise DescriptionError(
                    ("caches", index),
                    f"level {level} is listed twice: expected one cache of each level",
                )


class NodeGroup(Strict):
    """One node (``id``) or a run of nodes (``ids: 0-7``) of one type.

    ``group`` names the package or blade; with ``group_size`` k, each k consecutive nodes of the run
    form a group of their own, named after ``group`` and counted from 0. ``cpus`` (``0-3,8``) are
    numbered in the order of the nodes where it is not given; they may be fewer than the hardware
    threads of all cores (some are off, or some cores have fewer). ``memory_size`` stands in for
    the size that the type gives.
    """

    id: NodeId | None = None
    ids: NodeRun | None = None
    type: Name
    group: Name | None = None
    group_size: Count | None = None
    cpus: str | None = None
    memory_size: SizeOrZero | None = None

    def _fits(self) -> None:
        if (self.id is None) == (self.ids is None):
            raise ValueError("expected either id or ids")
        if self.cpus is not None and self.id is None:
            raise ValueError("cpus: expected with id, not with ids")

    def id_range(self) -> tuple[int, int]:
        """The first and the last id, both included."""
        first, _, last = (self.ids or str(self.id)).partition("-")
        return int(first), int(last or first)


class Hub(Strict):
    """A vertex without cores or memory: a HARP, a switch. ``bandwidth`` bounds all that crosses."""

    id: Name
    kind: Name = "hub"
    group: Name | None = None
    bandwidth: Bandwidth | None = None


class LinkType(Strict):
    """Facts that many links share; every figure is for one direction.

    ``bandwidth`` is the raw rate; ``carried``, where known, what of it the link was seen to carry
    at most, headers included, however many nodes use it. A cache line costs its bytes plus
    ``data_header`` in the direction of the data; a request or a snoop costs ``request``, and what
    needs no address (answers without data, acknowledgements) ``response``, by default the same.
    ``latency`` is what one traversal adds to a memory access, there and back. ``splits``: the link
    is a part of a wider port, and is called ``<type>-dual`` where another link shares a port with
    it, else ``<type>-single``.
    """

    bandwidth: Bandwidth
    carried: Bandwidth | None = None
    latency: Duration | None = None
    data_header: SizeOrZero | None = None
    request: SizeOrZero | None = None
    response: SizeOrZero | None = None
    splits: bool = False
    energy: EnergyPerBit | None = None
    source: str | None = None


class Link(Strict):
    """Joins two ends, each a node (number) or hub (name); ``ports`` names the port at each."""

    ends: tuple[EndId, EndId]
    type: Name
    ports: tuple[str | int, str | int] | None = None


class Generator(Strict):
    """A regular graph among ``members``: all nodes (the default), a run of them (``0-63``), hubs.

    Hubs are meant by a pattern of their names (``harp*``), or any ends by a list.
    ``shape`` and its parameters: ``mesh`` and ``torus`` (``dimensions``), ``ring``, ``hypercube``,
    ``enhanced_hypercube`` (a hypercube plus, for each vertex, a link along each of ``diagonals``,
    sets of bits that flip together, such as ``011``; all bits by default), ``all_to_all``,
    ``fat_tree`` (two levels of switches that it makes itself: ``leaf_size`` members per leaf,
    ``spines`` spines, joined by ``spine_link``; their names begin with ``prefix``), ``attach``
    (equal runs of members, each run hanging on the next of ``hubs``).
    """

    shape: Literal[
        "mesh",
        "torus",
        "ring",
        "hypercube",
        "enhanced_hypercube",
        "all_to_all",
        "fat_tree",
        "attach",
    ]
    link: Name
    members: Annotated[tuple[EndId, ...], Field(min_length=1)] | str | None = None
    dimensions: Annotated[tuple[Count, ...], Field(min_length=1, max_length=10)] | None = None
    diagonals: Annotated[tuple[Bits, ...], Field(min_length=1)] | None = None
    leaf_size: Count | None = None
    spines: Count | None = None
    spine_link: Name | None = None
    prefix: Name | None = None
    hubs: Annotated[tuple[EndId, ...], Field(min_length=1)] | str | None = None


class DistanceClass(Strict):
    """Bandwidth and latency of the pairs whose route looks so; the first class that fits counts.

    ``route``: how many links of each kind the route has: a number, ``some`` (one or more) or
    ``any``; kinds that are not named must not occur; {} is the local class. ``hops``: links in all.
    ``bandwidth``: concurrent sequential reads by all cores of one node from one home node.
    """

    name: Annotated[str, Field(max_length=64)]
    route: dict[Name, Annotated[int, Field(strict=True, ge=0)] | Literal["some", "any"]]
    hops: Annotated[int, Field(strict=True, ge=0)] | None = None
    bandwidth: Bandwidth | None = None
    latency: Duration | None = None


class LoadedPoint(Strict):
    """Latency under a load: total read bandwidth of the machine, mean latency."""

    bandwidth: Bandwidth
    latency: Duration


DISTURBANCE_MIN_S, DISTURBANCE_MAX_S = 1e-9, 100_000.0
# Longer ones are turns of other programs, which no plane models (docs/model/one-host.md).
INTERRUPTION_MAX_S = 100e-6


class Interruption(Strict):
    """A kind of time for which the operating system, or a hypervisor, takes a CPU from its program:
    how long, and how long from the end of one to the next, on average."""

    length: Duration
    every: Duration

    def _fits(self) -> None:
        # Planes count whole picoseconds, and draw each one.
        if self.length.value > DISTURBANCE_MAX_S:
            raise ValueError(f"length: expected at most {DISTURBANCE_MAX_S:,.0f} s")
        if not DISTURBANCE_MIN_S <= self.every.value <= DISTURBANCE_MAX_S:
            raise ValueError(f"every: expected from 1 ns to {DISTURBANCE_MAX_S:,.0f} s")


class ReadWriteMix(Strict):
    """Peak bandwidth under a mix of reads and writes, as Intel MLC prints it."""

    name: Annotated[str, Field(max_length=64)]
    bandwidth: Bandwidth


class Coherence(Strict):
    """How caches agree: ``snoop`` asks every node, ``directory`` only those that hold the line.

    ``snoop_domain``: ``machine``, or ``group`` (snoops stay in the package or blade, a directory
    rules between groups). ``completion``: a reader tells the home when it has its line, with a
    response. ``replacement_probes``: the directory is a cache that is not told of lines that caches
    drop, so that for each line that memory delivers, sooner or later, the home asks the line's
    reader whether it still has it (as another line takes the entry, or another node reads the
    line), and is answered. ``owned``: a cache that has modified a line keeps it when another one
    reads it, and answers for it (MOESI); else it writes it back at once (MESI).
    ``directory_in_memory``: the home keeps with each line, in its memory, whether other nodes may
    have it: the line is written when another node reads it first, and when the home reads it and
    its snoops find that no other node has it any more. Systems of tasks model that. ``doubtful``:
    firmware chooses the protocol, and may have chosen the other one.
    """

    protocol: Literal["snoop", "directory"]
    snoop_domain: Literal["machine", "group"] = "machine"
    completion: bool | None = None
    replacement_probes: bool | None = None
    owned: bool | None = None
    directory_in_memory: bool | None = None
    doubtful: bool | None = None
    source: str | None = None


class NicPoint(Strict):
    """A message size, with the one-way latency and the bandwidth reached at that size.

    ``latency``: from the call that sends a message (a one-sided WRITE too) to the moment when all
    of it is in the target's memory, less what the processors spend on it. ``read_latency``: the
    same of a one-sided READ, from its request to the moment when the data are there. Between two
    points latency is linear in the size; beyond the last, bandwidth adds to it.
    """

    size: Size
    latency: Duration | None = None
    read_latency: Duration | None = None
    bandwidth: Bandwidth | None = None


class Transport(Strict):
    """A way to use a NIC (IPoEth, IPoIB, RDMA): its curve and its CPU cost per message.

    ``bandwidth``: of payload, at the most, through one port and direction. A message is cut into
    packets of at most ``packet`` payload, each with a ``header`` on the wire. Each side of a
    message costs ``cycles_per_message``, which grows in proportion to the size beyond ``window``
    (without one it does not). Up to ``inline_limit`` a payload goes with its request: the latency
    is that of the first point. ``interrupt_share``: of a receiver's cycles, what its kernel takes
    before the receiving thread runs (driver and protocol, in interrupts); on ``receive_queues``
    cores at the most, as each queue of the adapter interrupts one. Without the two any core does.
    """

    bandwidth: Bandwidth
    points: tuple[NicPoint, ...] = ()
    cycles_per_message: Fact | None = None
    window: Size | None = None
    inline_limit: Size | None = None
    header: SizeOrZero | None = None
    packet: Size | None = None
    interrupt_share: Fact | None = None
    receive_queues: Count | None = None
    source: str | None = None

    def _fits(self) -> None:
        if (self.interrupt_share is None) != (self.receive_queues is None):
            missing = "interrupt_share" if self.interrupt_share is None else "receive_queues"
            raise DescriptionError((missing,), "expected both interrupt_share and receive_queues")
        if self.interrupt_share is not None and not 0 <= self.interrupt_share.value <= 1:
            raise DescriptionError(("interrupt_share",), "expected a share from 0 to 1")
        for index, (point, next_) in enumerate(pairwise(self.points)):
            if next_.size.value <= point.size.value:
                raise DescriptionError(("points", index + 1, "size"), "expected rising sizes")


class Nic(Strict):
    """A network adapter on each of ``nodes``; ``bandwidth`` is of one port and direction.

    ``message_rate``: messages that the adapter handles per second and direction, over all ports; no
    limit where it is not given. Its links to a switch are ordinary links of the same nodes.
    """

    nodes: NodeOrRun
    ports: Count = 1
    bandwidth: Bandwidth
    message_rate: Rate | None = None
    transports: dict[Name, Transport] = Field(default_factory=dict)


class MachineDescription(Strict):
    """A machine file. Pair values come from ``distance_classes`` or from full matrices.

    Where neither gives a value and every link on the route has a latency, the pair's latency is the
    home's own plus that of each link. Matrices are square, in the order of the nodes, row the
    initiator, column the home, ``null`` where unknown; those of a pair are of reads, unless their
    name says writes. SLIT is a hint for people only. ``processes``: of a machine that is one host.
    ``engines``: by system, what an engine of it was measured to take on this machine; each system
    has the schema of its own part; ``engine_misfit``: of the profile that an engine's costs come
    from, by which predictions are less sure. No plane reads ``warnings``, ``host`` and
    ``measurements``, which come from ``numatwin machine measure``.
    """

    name: Name
    title: str = ""
    source: str | None = None
    notes: tuple[str, ...] = ()
    calibrated_on: tuple[str, ...] = ()
    node_types: dict[Name, NodeType]
    nodes: Annotated[tuple[NodeGroup, ...], Field(min_length=1)]
    hubs: tuple[Hub, ...] = ()
    link_types: dict[Name, LinkType] = Field(default_factory=dict)
    links: tuple[Link, ...] = ()
    generate: tuple[Generator, ...] = ()
    distance_classes: tuple[DistanceClass, ...] = ()
    pair_latency: tuple[tuple[Duration | None, ...], ...] | None = None
    pair_bandwidth: tuple[tuple[Bandwidth | None, ...], ...] | None = None
    slit: tuple[tuple[Annotated[int, Field(ge=0, le=255)], ...], ...] | None = None
    loaded_latency: tuple[LoadedPoint, ...] = ()
    read_write_mixes: tuple[ReadWriteMix, ...] = ()
    interruptions: tuple[Interruption, ...] = ()
    coherence: Coherence | None = None
    nics: tuple[Nic, ...] = ()
    copy_engines: tuple[CopyEngineFacts, ...] = ()
    processes: ProcessFacts | None = None
    engines: dict[Name, AnyPart] = Field(default_factory=dict)
    engine_misfit: Misfit | None = None
    warnings: tuple[str, ...] = ()
    host: HostState | None = None
    measurements: tuple[Measurement, ...] = ()

    def type_of_node(self) -> dict[int, str]:
        """The name of the type of each node, by its id."""
        found: dict[int, str] = {}
        for group in self.nodes:
            first, last = group.id_range()
            found |= dict.fromkeys(range(first, last + 1), group.type)
        return found

    def facts_of(self, engine: str, schema: type[Facts]) -> Facts | None:
        """What an engine was measured to take, as its ``schema`` reads it; None where it was not.

        Raises InputError with the place in the file.
        """
        part = self.engines.get(engine)
        return None if part is None else part.read_as(schema)

    def with_facts(self, engine: str, facts: Strict | None) -> "MachineDescription":
        """The same with other ``facts`` of an engine, or without any."""
        engines = {name: part for name, part in self.engines.items() if name != engine}
        if facts is not None:
            engines[engine] = OpenPart(facts)
        return self.model_copy(update={"engines": engines})
