"""What commits on a cluster assume of adapters and memory that the machine file does not state."""

from collections.abc import Iterator

from ...machine.assumptions import Assumption, Place, Variant
from ...planes.plane import Experiment
from .spec import CommitSystem


def adapters_assumed(experiment: Experiment) -> Iterator[Assumption]:
    """Of the adapters and servers in use; nothing on one host, where all is measured."""
    machine, system = experiment.machine, experiment.system
    assert isinstance(system, CommitSystem)
    if system.layout == "host":
        return
    roles = system.roles(machine)
    curve = system.curve(machine, roles)
    index = machine.description.nics.index(curve.nic)
    nic: Place = ("machine", "nics", index)
    if curve.nic.message_rate is None:
        low, high = (
            Variant(f"{rate} a second", {(*nic, "message_rate"): rate})
            for rate in ("10 M/s", "200 M/s")
        )
        source = "Not known; 10 M/s to 200 M/s on the adapters of the catalogue of facts"
        yield Assumption("message rate of adapters", "not limited", "", source, low, high)
    if curve.transport.header is None:
        place: Place = (*nic, "transports", system.transport_on(machine), "header")
        low, high = (Variant(size, {place: f"{size:g} B"}) for size in (0.0, 64.0))
        source = "Not known: none counted; 30 B of InfiniBand to 78 B of TCP over Ethernet"
        yield Assumption("header of a packet", 0.0, "B", source, low, high)
    if not any(point.read_latency for point in curve.transport.points):
        source = "Not known: a READ takes a message there and a message back"
        yield Assumption("latency of a READ", "that of two messages", "", source)
    first = machine.nodes[roles.storage[0]]
    if first.memory_latency_ns is None:
        kind = machine.description.type_of_node()[first.id]
        memory: Place = ("machine", "node_types", kind, "memory", "latency")
        low, high = (Variant(ns, {memory: f"{ns:g} ns"}) for ns in (1e-3, 100.0))
        source = "Not known: none counted for a record's first word; servers take 60 to 130 ns"
        yield Assumption("latency of memory", 0.0, "ns", source, low, high)
