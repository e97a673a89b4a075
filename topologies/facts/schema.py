"""What the catalogue of facts may say: memory, interconnects, cores, processors, and guesses.

Values taken from the catalogue, each with where it comes from and how far it may be off.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator

from ...inputs import Quantity
from ...inputs.names import Name
from ...inputs.quantities import Bandwidth, Duration, Frequency, Rate, Size, SizeOrZero, rounded
from ...inputs.yaml_file import Strict
from ..schema import Coherence, Tlb
from ..schema_types import Count, Fact


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as failure:
        raise ValueError(f"not a regular expression: {failure}") from None
    return text


Pattern = Annotated[str, AfterValidator(_pattern)]
Number = Annotated[int, Field(strict=True, ge=0, le=0xFFFF)]


class MemoryType(Strict):
    """A kind of memory: transfers per second of a channel, and data bytes a transfer."""

    transfers: Rate
    width: Size = Field(default=Quantity.exact(8.0))
    source: str

    @property
    def channel_Bps(self) -> float:
        """Peak bandwidth of a channel."""
        return self.transfers.value * self.width.value


class MemoryNode(Strict):
    """Memory of a node without CPUs: what reads reach of it, and its latency from nearby."""

    bandwidth: Bandwidth
    latency: Duration


class Interconnect(Strict):
    """A kind of link: data bytes a transfer and direction, and what messages cost on it.

    ``reached``: the part of the rate that lines and their headers were seen to reach.
    ``data_header`` and ``request`` are as in a machine's link types.
    """

    width: Size
    reached: Fact
    data_header: SizeOrZero
    request: SizeOrZero
    source: str


class CoreCache(Strict):
    """A cache of a core, or of some cores: size, cycles of a hit."""

    size: Size
    cycles: Fact
    shared_by_cores: Count = 1


class Core(Strict):
    """A microarchitecture; the facts are those of a machine's node type. ``caches``: L1, L2.

    ``threads``: hardware threads of a core, where a model has no fewer.
    """

    source: str
    threads: Count = 1
    ipc: Fact
    outstanding_misses: Fact
    streaming_misses: Fact | None = None
    reorder_window: Fact | None = None
    line: Size = Field(default=Quantity.exact(64.0))
    caches: tuple[CoreCache, ...] = ()
    tlbs: tuple[Tlb, ...] = ()


class ModelName(Strict):
    """A regular expression that is found in the names of some models, and one such name."""

    pattern: Pattern
    example: str


class CpuId(Strict):
    """What CPUID says; without ``models`` all of the family. ``steppings``: first and last."""

    vendor: str
    family: Number
    models: tuple[Number, ...] = ()
    steppings: tuple[Number, Number] | None = None


class Midr(Strict):
    """What Arm's main ID register says; without ``parts`` all of the implementer."""

    implementer: Number
    parts: tuple[Number, ...] = ()


class LastLevel(Strict):
    """The last-level caches of a socket: together ``size``. ``cores``: that share one; all of the
    socket where it is left out. ``each``: size of one, where those of the model are unknown.
    ``on_die``: how many are on one die.
    """

    size: Size
    latency: Duration
    cores: Count | None = None
    each: Size | None = None
    on_die: Count = 1


class MemoryOfSocket(Strict):
    """Memory channels of a socket, and the part of their peak that reads reach.

    ``type``: the fastest supported; ``slowest``: what is still usual to find. ``per``: ``node``
    where the channels are those of a node, however many processors it has. ``data_sheet``: peak as
    the vendor states it, to check the product of the others with.
    """

    channels: Count
    type: Name
    slowest: Name | None = None
    share: Fact
    per: Literal["socket", "node"] = "socket"
    data_sheet: Bandwidth | None = None


class Latencies(Strict):
    """Idle latency to the node's own memory, to another node of the socket, to the next socket."""

    local: Duration
    neighbour: Duration | None = None
    remote: Duration | None = None


class Links(Strict):
    """Links of a socket (or die) to others. ``fewest``: models or boards with fewer use so many;
    ``io``: of ``count``, how many lead to devices only. ``sockets``: how many they join at most, of
    any model, without node controllers."""

    type: Name
    count: Count
    sockets: Count | None = None
    fewest: Count | None = None
    io: Annotated[int, Field(strict=True, ge=0)] = 0
    rate: Rate


class Model(Strict):
    """What differs for one model; anything left out is that of its family. ``cache``: of all
    last-level caches of a socket; ``caches``: how many these are, where fewer cores share one.
    ``threads``: of a core.
    """

    clock: Frequency | None = None
    turbo: Frequency | None = None
    cores: Count | None = None
    threads: Count | None = None
    cache: Size | None = None
    caches: Count | None = None
    memory: Name | None = None
    links: Count | None = None
    link_rate: Rate | None = None


class Processor(Strict):
    """A family of processors that share their facts.

    Found by ``names``, else by ``cpuid``, ``midr`` or ``pvr`` (the upper 16 bits); where several
    have one of these, by the maker of the ``board``. ``cores``: the most of any model. ``clock``:
    base clocks. ``within``: how nodes of a socket are joined, by a ``mesh`` or ``io-die``, or as
    ``dies`` with links of their own (``die_link``). ``die_bandwidth``: as in a machine's node type.
    ``nodes_per_socket``: all that firmware offers.
    """

    title: str
    source: str
    core: Name
    names: tuple[ModelName, ...] = ()
    cpuid: tuple[CpuId, ...] = ()
    midr: tuple[Midr, ...] = ()
    pvr: tuple[Number, ...] = ()
    board: str | None = None
    cores: Count
    clock: Frequency
    last_level: LastLevel | None = None
    memory: MemoryOfSocket
    latency: Latencies
    links: Links | None = None
    within: Literal["mesh", "io-die", "dies"] = "mesh"
    die_link: Links | None = None
    die_bandwidth: Bandwidth | None = None
    nodes_per_socket: tuple[Count, ...] = (1,)
    coherence: Coherence
    models: dict[str, Model] = Field(default_factory=dict)

    def _fits(self) -> None:
        if (self.within == "dies") != (self.die_link is not None):
            raise ValueError("expected die_link where nodes are dies, and only there")
        if self.links is not None and self.links.sockets is None:
            raise ValueError("expected sockets in links: how many they join at most")

    @property
    def sockets_max(self) -> int:
        """The most sockets of a machine without node controllers."""
        return (self.links and self.links.sockets) or 1


class Adapter(Strict):
    """A network adapter and how it is used; ``bandwidth`` is of one port and direction.

    ``latency``: of a small message, one way, from the call to the data in the other's memory, over
    one switch; ``read_latency``: of a small one-sided READ, there and back (none over TCP).
    ``payload``: the part of the bandwidth that payload reaches in large messages. The rest is as in
    a machine's transports.
    """

    title: str
    source: str
    bandwidth: Bandwidth
    transport: Literal["TCP", "RDMA"]
    latency: Duration
    read_latency: Duration | None = None
    payload: Fact
    header: SizeOrZero
    packet: Size
    cycles_per_message: Fact
    message_rate: Rate | None = None


class Guess(Strict):
    """What is said of a processor that is not in the catalogue; no ``vendors`` fits all.

    ``link_share``: of a node's memory bandwidth, what its links to other nodes carry.
    """

    title: str
    vendors: tuple[str, ...] = ()
    core: Name
    clock: Frequency
    last_level_latency: Duration
    bandwidth_per_core: Bandwidth
    latency: Latencies
    link_share: Fact


class Facts(Strict):
    """One file of the catalogue, or all of them together."""

    memory_types: dict[Name, MemoryType] = Field(default_factory=dict)
    memory_nodes: dict[Name, MemoryNode] = Field(default_factory=dict)
    interconnects: dict[Name, Interconnect] = Field(default_factory=dict)
    cores: dict[Name, Core] = Field(default_factory=dict)
    processors: dict[Name, Processor] = Field(default_factory=dict)
    adapters: dict[Name, Adapter] = Field(default_factory=dict)
    guesses: tuple[Guess, ...] = ()

    @field_validator("processors")
    @classmethod
    def _examples_match(cls, processors: dict[str, Processor]) -> dict[str, Processor]:
        for name, processor in processors.items():
            for known in processor.names:
                if not re.search(known.pattern, known.example, re.IGNORECASE):
                    raise ValueError(f"{name}: its pattern does not match its example")
        return processors


@dataclass(frozen=True)
class Origin:
    """Whose values they are: an entry of the catalogue, or a guess for what is not in it."""

    label: str
    guessed: bool = False

    def text(self, source: str | None) -> str:
        """What stands in the source of a value."""
        head = f"{'guessed' if self.guessed else 'catalogue'} ({self.label})"
        return f"{head}: {source}" if source else head

    def quantity(
        self, value: float, low: float, high: float, source: str | None, *, sure: bool = False
    ) -> Quantity:
        """The quantity, rounded; one with a range is uncertain, as the machine's own is unknown."""
        value, low, high = map(rounded, (value, low, high))
        doubtful = self.guessed or (not sure and low < high)
        return Quantity(value, min(low, value), max(high, value), self.text(source), doubtful)

    def taken(self, known: Quantity, source: str | None = None) -> Quantity:
        """A quantity of the catalogue."""
        return self.quantity(known.value, known.low, known.high, known.source or source)

    def fact(self, known: Fact, source: str | None = None) -> Fact:
        """A number of the catalogue."""
        doubtful = self.guessed or known.range is not None
        return Fact(
            value=known.value,
            range=known.range,
            source=self.text(known.source or source),
            doubtful=doubtful,
        )


def bounds(fact: Fact) -> tuple[float, float]:
    """The range of a number, both its value where it has none."""
    return fact.range or (fact.value, fact.value)
