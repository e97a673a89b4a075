"""Servers, and clusters of equal ones on a switch, of the catalogue's processors and adapters."""

from dataclasses import dataclass

from ...inputs import InputError, Quantity
from ..schema import (
    Generator,
    Hub,
    LinkType,
    MachineDescription,
    Memory,
    Nic,
    NicPoint,
    NodeGroup,
    NodeType,
    ProcessorIdentity,
    Transport,
)
from ..schema_types import NODES_MAX
from .catalogue import Entry, facts, named
from .complete import complete
from .schema import Adapter, Origin, bounds

SOURCE = "numatwin machine build, from the catalogue of facts"
LINE_BYTES = 64.0
CORE_MEMORY_MIN_BYTES = 2**20  # a thread's stack, heap and buffers; a kernel starts in no less


@dataclass(frozen=True)
class Server:
    """A server; ``memory``: of all its processors. ``cores``: of one processor, where the
    catalogue does not know its model. ``expander``: memory of a CXL expander, none without.
    ``modules``: of a socket's memory, such as ``DDR4-2666``.
    """

    name: str
    processor: str
    memory: Quantity
    sockets: int = 1
    nodes_per_socket: int = 1
    cores: int | None = None
    expander: Quantity | None = None
    modules: str | None = None


@dataclass(frozen=True)
class Cluster:
    """What a cluster is made of; ``memory``: of each server. A server is one node.

    ``cores``: of one processor, where the catalogue does not know its model.
    """

    name: str
    servers: int
    processor: str
    adapter: str
    memory: Quantity
    sockets: int = 1
    ports: int = 1
    cores: int | None = None


def build_server(wanted: Server) -> MachineDescription:
    """The server's description; raises InputError for what the catalogue does not have."""
    entry = _entry(wanted)
    each, known = wanted.nodes_per_socket, entry.processor.nodes_per_socket
    if each not in known:
        raise InputError(
            f"wrong number of nodes of a socket of {entry.processor.title}",
            token=str(each),
            expected=" or ".join(map(str, known)),
        )
    cores, rest = divmod(entry.cores, each)
    if rest:
        raise InputError(
            f"the {entry.cores} cores of a socket are no {each} equal nodes",
            token=str(each),
            expected="nodes of equally many cores: describe others in a machine file",
        )
    count = wanted.sockets * each
    part = wanted.memory.value / count
    kinds = {
        "node": NodeType(
            processor=ProcessorIdentity(model_name=wanted.processor),
            cores=cores,
            threads_per_core=entry.threads_per_core,
            memory=Memory(size=Quantity.exact(part)),
        )
    }
    nodes = [NodeGroup(ids=f"0-{count - 1}", type="node", group="socket", group_size=each)]
    title = f"{wanted.sockets} × {wanted.processor}" + (f", {each} nodes a socket" * (each > 1))
    if wanted.expander is not None:
        kinds["expander"] = NodeType(cores=0, memory=Memory(size=wanted.expander, kind="CXL"))
        nodes.append(NodeGroup(id=count, type="expander"))
        title += ", a CXL memory expander as a node without cores"
    description = MachineDescription(
        name=wanted.name, title=title, source=SOURCE, node_types=kinds, nodes=tuple(nodes)
    )
    return complete(description, modules=wanted.modules).description


def build_cluster(wanted: Cluster) -> MachineDescription:
    """The cluster's description; raises InputError for what the catalogue does not have."""
    adapter = _adapter(wanted.adapter)
    entry = _entry(wanted)
    if not 2 <= wanted.servers <= NODES_MAX:
        raise InputError(
            "wrong number of servers", token=str(wanted.servers), expected=f"2 to {NODES_MAX:,}"
        )
    last = wanted.servers - 1
    kind = NodeType(
        processor=ProcessorIdentity(model_name=wanted.processor, packages=wanted.sockets),
        cores=entry.cores * wanted.sockets,
        threads_per_core=entry.threads_per_core,
        memory=Memory(size=wanted.memory),
    )
    description = MachineDescription(
        name=wanted.name,
        title=f"{wanted.servers} × server with {wanted.sockets} × {wanted.processor}, "
        f"{adapter.title}",
        source=SOURCE,
        notes=("A server is one node; no cache is coherent across servers.",),
        node_types={"server": kind},
        nodes=(NodeGroup(ids=f"0-{last}", type="server", group="server", group_size=1),),
        hubs=(Hub(id="switch", kind="switch"),),
        link_types={"network": _link_type(wanted, adapter)},
        generate=(Generator(shape="attach", link="network", hubs=("switch",)),),
        nics=(_nic(wanted, adapter, last),),
    )
    return complete(description).description


def _entry(wanted: Server | Cluster) -> Entry:
    """The catalogue's entry of a server's processors; checks their number, and the memory."""
    entry = named(wanted.processor, wanted.cores)
    alone = entry.name.startswith("epyc") and (entry.model_name or "").endswith("P")
    most = 1 if alone else entry.processor.sockets_max
    if wanted.sockets > most:
        raise InputError(
            f"wrong number of sockets of {entry.model_name if alone else entry.processor.title}",
            token=str(wanted.sockets),
            expected=f"1 to {most}" if most > 1 else "1",
        )
    cores = entry.cores * wanted.sockets
    least = cores * CORE_MEMORY_MIN_BYTES
    if wanted.memory.value < least:
        raise InputError(
            f"too little memory for a server of {cores} cores",
            token=f"{wanted.memory.value:,.0f} B",
            expected=f"{least // 2**20:,} MiB or more",
        )
    return entry


def _adapter(name: str) -> Adapter:
    known = facts().adapters
    if name not in known:
        raise InputError(
            "no such adapter in the catalogue of facts",
            token=name,
            expected=f"one of {', '.join(known)}",
        )
    return known[name]


def _link_type(wanted: Cluster, adapter: Adapter) -> LinkType:
    """Two traversals, to the switch and on, take what a small READ takes over local memory."""
    origin = Origin(wanted.adapter)
    low, high = bounds(adapter.payload)
    read_latency = adapter.read_latency
    whole = read_latency or Quantity(
        2 * adapter.latency.value, 2 * adapter.latency.low, 2 * adapter.latency.high
    )
    each = adapter.bandwidth.value * wanted.ports
    header = adapter.header.value * LINE_BYTES / adapter.packet.value
    return LinkType(
        bandwidth=origin.quantity(
            each * adapter.payload.value, each * low, each * high, adapter.payload.source
        ),
        latency=origin.quantity(
            whole.value / 2, whole.low / 2, whole.high / 2, adapter.latency.source
        ),
        data_header=origin.quantity(header, header, header, "its share of a packet's headers"),
        source=origin.text(adapter.source),
    )


def _nic(wanted: Cluster, adapter: Adapter, last: int) -> Nic:
    origin = Origin(wanted.adapter)
    low, high = bounds(adapter.payload)
    Bps = adapter.bandwidth.value
    small = Quantity(8.0, 8.0, 8.0)
    point = NicPoint(
        size=small,
        latency=origin.taken(adapter.latency),
        read_latency=None if adapter.read_latency is None else origin.taken(adapter.read_latency),
    )
    transport = Transport(
        bandwidth=origin.quantity(
            Bps * adapter.payload.value, Bps * low, Bps * high, adapter.payload.source
        ),
        points=(point,),
        cycles_per_message=origin.fact(adapter.cycles_per_message),
        header=origin.taken(adapter.header),
        packet=adapter.packet,
        source=origin.text(adapter.source),
    )
    return Nic(
        nodes=f"0-{last}",
        ports=wanted.ports,
        bandwidth=origin.taken(adapter.bandwidth, adapter.source),
        message_rate=None if adapter.message_rate is None else origin.taken(adapter.message_rate),
        transports={adapter.transport: transport},
    )
