"""``numatwin machine build``: a server, or a cluster of them, of the catalogue's parts."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..inputs import InputError, write_text_atomically
from ..inputs.file_names import without_endings
from .files import check_file
from .options import grouped, option

if TYPE_CHECKING:
    from ..inputs import Quantity
    from ..topologies.schema import MachineDescription

MEMORY = "256 GiB"
SERVERS_MAX = 1_024  # NODES_MAX of the machine files' schema, which help does not wait for

Cores = Annotated[
    int | None,
    option(
        "N",
        "Cores of one processor, where the catalogue does not know its model.",
        min=1,
        max=4_096,
    ),
]

Modules = Annotated[
    str | None,
    option(
        "TYPE",
        "Memory modules of a socket, such as DDR4-2666, or 2xDDR5-4400 where two channels have "
        "some.",
    ),
]


def _number(what: str) -> Any:
    return option("N", what, min=1, max=64)


@dataclass(frozen=True)
class Parts:
    """What a server is made of."""

    processor: Annotated[str, option("MODEL", "Its processor, such as 'EPYC 7763'.")]
    sockets: Annotated[int, _number("Processors of a server.")] = 1
    memory: Annotated[
        str | None, option("SIZE", "Memory of a server; 256 GiB where it is not given.")
    ] = None
    cores: Cores = None


@dataclass(frozen=True)
class Nodes:
    """What firmware, modules and expanders make of one server."""

    nodes_per_socket: Annotated[int, _number("NUMA nodes of a socket: 4 for NPS4, SNC4.")] = 1
    modules: Modules = None
    expander: Annotated[
        str | None, option("SIZE", "Memory of a CXL expander: a node without cores.")
    ] = None


@dataclass(frozen=True)
class Network:
    """What joins the servers of a cluster."""

    adapter: Annotated[
        str | None,
        option(
            "NAME",
            "For a cluster: the servers' network adapter, such as ethernet-100, roce-100, "
            "infiniband-hdr, efa-100.",
        ),
    ] = None
    servers: Annotated[
        int | None,
        option("N", "How many servers a cluster has; 2 by default.", min=2, max=SERVERS_MAX),
    ] = None
    ports: Annotated[int, _number("Ports of a server in use.")] = 1


@grouped
def build(
    out: Annotated[Path, option("FILE", "The machine file (.yaml) to write.")],
    parts: Parts,
    nodes: Nodes,
    network: Network,
) -> None:
    """Describe a server, or a cluster, of the catalogue's parts.

    The servers of a cluster are equal, and on one switch.
    """
    from ..topologies.export import machine_yaml
    from ..topologies.importers.source import machine_name

    check_file(out, ".yaml", ".yml")
    description = _described(machine_name(without_endings(out.name)), parts, nodes, network)
    write_text_atomically(out, machine_yaml(description))
    print(f"{out}: {description.title}")
    for note in description.notes:
        if note.startswith("Not known"):
            print(note)
    if parts.memory is None:
        print(f"Not given, so assumed: {MEMORY} of memory a server (--memory).")
    print("Its values are the catalogue's, most of them ranges: measure where you can.")
    print(f"'numatwin machine show {out}' shows it")


def _described(name: str, parts: Parts, nodes: Nodes, network: Network) -> "MachineDescription":
    from ..topologies.facts.clusters import Cluster, Server, build_cluster, build_server

    memory = _size(parts.memory or MEMORY)
    if network.adapter is not None:
        if nodes != Nodes():
            raise typer.BadParameter(
                "a cluster's server is one node: no --nodes-per-socket, --modules or --expander"
            )
        return build_cluster(
            Cluster(
                name,
                network.servers or 2,
                parts.processor,
                network.adapter,
                memory,
                sockets=parts.sockets,
                ports=network.ports,
                cores=parts.cores,
            )
        )
    if network != Network():
        raise typer.BadParameter("expected --adapter: what joins the servers")
    return build_server(
        Server(
            name,
            parts.processor,
            memory,
            sockets=parts.sockets,
            nodes_per_socket=nodes.nodes_per_socket,
            cores=parts.cores,
            expander=None if nodes.expander is None else _size(nodes.expander),
            modules=nodes.modules,
        )
    )


def _size(text: str) -> "Quantity":
    from ..inputs.quantities import read_quantity

    try:
        return read_quantity(text, "size")
    except ValueError as failure:
        raise InputError(f"not a size of memory: {failure}", token=text) from None
