"""What a unit of work demands of a machine, in the form that all planes use.

Cores are the C cores in use, nodes the n nodes of the machine; a core's demand is for the part of
the unit that falls to it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np

from ..kernel.arrays import Floats, Ints


@dataclass(frozen=True)
class Reads:
    """Cache lines that miss every cache: a core on node v reads ``weight`` (C,) times row v of
    ``lines`` (n, n), a number for each home node, per unit of work.

    ``stream``: one after the other, so that prefetchers help; else at random, in a batch.
    ``cached``: another cache sends them, as it has modified them, and no memory; the core writes
    them, too.
    """

    weight: Floats
    lines: Floats
    stream: bool = False
    cached: bool = False


@dataclass(frozen=True)
class Step:
    """A step of a worker's loop. Within a step, instructions and misses overlap; steps do not.

    ``core_s`` (C,): time that the core executes instructions. ``hit_s`` (C,): time that its miss
    slots hold what its caches deliver. ``reads``: what memory delivers. ``slot_factor`` (C,): the
    time that a random read holds a miss slot, over its latency.
    """

    name: str
    core_s: Floats
    hit_s: Floats
    reads: tuple[Reads, ...]
    slot_factor: Floats | float = 1.0


Waits = Callable[[Floats], Callable[[Floats, Floats], Floats]]
"""Of (C,) each core's workers: what tells, from (C,) each core's share in making messages, and the
part of what it receives that is not its own, the waits of each core for a line of a maker's, per
unit of work."""


@dataclass(frozen=True)
class Gathered:
    """How workers loop while few messages come: how many they hand over together, and find
    together, how often they look for some, per message, and the units of work per second that all
    this is for."""

    messages: float
    found: float
    looks: float
    units_per_s: float


@dataclass(frozen=True)
class Exchange:
    """Messages that one core makes and another receives, per unit of work.

    Who makes them is not given: any worker that has time does.
    """

    names: tuple[str, str]
    """Of the steps that this adds to a worker's loop: making messages, and receiving them."""
    received: Floats
    """(C,) share of the messages that each core receives; the sum is 1."""
    make_s: Floats
    """(n,) core time of making all messages of a unit on one node."""
    send_s: Floats
    """(n,) core time of handing them over."""
    receive_s: Floats
    """(n,) core time of receiving all messages of a unit on one node."""
    more_s: Floats
    """(C,) core time of receiving that comes on top, such as that of headers."""
    home: Ints
    """(n,) nodes whose memory has the lines of each node's receivers."""
    lines: float
    """Cache lines that go from maker to receiver, in the receiver's memory."""
    answer_lines: float
    """Cache lines that go back, in the maker's memory."""
    atomics: float
    """Atomic operations that a maker does on the receiver's memory, one after the other."""
    bursts: float
    """Hand-overs, each of which moves its lines at once."""
    burst_square: float
    """Mean square of the lines that each of them moves."""
    waits: Waits
    """Of receivers, for lines of makers."""
    passed_on: float
    """Lines that makers get from who made a message before, per line handed over."""
    gathers: int = 1
    """Messages that a worker makes before it hands them over, at most."""
    gathering: "Callable[[Gathered], Exchange] | None" = None
    """The same of workers that hand over fewer at a time."""


@dataclass(frozen=True)
class Demand:
    """F flows that do the same work in different places: one of all workers, or one per node.

    ``flow_of`` (n,): the flow that the cores of each node work for; what a step says of a core is
    per unit of that flow. With an ``exchange`` (of a single flow) workers have two more steps in
    their loop: making and receiving messages.
    """

    flow_of: Ints
    steps: tuple[Step, ...]
    writes: tuple[Reads, ...]
    """Lines written back, likewise: of ``lines`` (n, n) to each home; nobody waits for these."""
    batch: float
    """Operations of a group, whose misses can overlap."""
    miss_instructions: float
    """From a random read to the next one that does not wait for it."""
    contended: float = 0.0
    """Atomic writes to one and the same cache line, which goes from core to core for these."""
    serial_s: float = 0.0
    """Time of a unit under a lock that all workers take: it is held like that line."""
    exchange: Exchange | None = None
    offered_per_s: float = float("inf")
    """Units per second that clients ask for, all flows together."""
    sent: Floats | None = None
    """(n, n) lines that cores of node i hand over to cores of j, of a single flow: traffic of links
    that no step waits for."""
    customers: float | None = None
    """Closed clients, each with one unit under way; by default every worker has a batch."""
    delay_s: float = 0.0
    """Time that a unit spends between workers, such as in messages; closed clients wait for it."""
    asking: float = 1.0
    """Part of the clients that ask: all others wait for workers who have stopped."""
    pace: Floats | float = 1.0
    """(C,) times that workers of each core take as long: others take part of it."""
    variation: float = 1.0
    """Squared coefficient of variation of a unit's time in its worker; 0: all take the same."""

    @property
    def flows(self) -> int:
        """F."""
        return int(self.flow_of.max()) + 1


@dataclass(frozen=True)
class TransferDemand:
    """T copies between nodes; every array is (T,), and per unit (key or entry) that moves.

    ``source``, ``target``: positions of cores; ``source_home``, ``target_home``: of the nodes that
    have their data; ``source_s``, ``target_s``: what they execute.
    The source reads ``source_lines`` of its own memory, the target reads ``lines`` from the source
    and has ``written_lines`` to fetch for ownership and to write back.
    """

    source: Ints
    target: Ints
    source_home: Ints
    target_home: Ints
    source_s: Floats
    target_s: Floats
    source_lines: Floats
    lines: Floats
    written_lines: Floats

    @staticmethod
    def joined(parts: "Sequence[TransferDemand]") -> "TransferDemand":
        """All of ``parts``, in their order."""
        return TransferDemand(
            *(
                np.concatenate([getattr(part, f.name) for part in parts])
                for f in fields(TransferDemand)
            )
        )
