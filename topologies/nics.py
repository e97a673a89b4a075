"""Costs of a message on a node's network adapter: time on the wire, cycles of a processor."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .machine import Machine
from .schema import DescriptionError, Nic, Transport


@dataclass(frozen=True)
class MessageCurve:
    """One transport of an adapter, over some of its ports; sizes are payload in bytes.

    A direction of the adapter is one server: ``occupancy_s`` is how long a message takes it. The
    latency of a message that meets no other is what the machine file says; it holds the time at
    the receiving direction.
    """

    nic: Nic
    transport: Transport
    ports: int

    @property
    def bandwidth_Bps(self) -> float:
        """Of a direction, all of ``ports`` in use: what the transport gets of the adapter's."""
        return min(self.nic.bandwidth.value, self.transport.bandwidth.value) * self.ports

    @property
    def capped(self) -> bool:
        """Whether it is the transport that bounds the bandwidth: the adapter alone has more."""
        return self.transport.bandwidth.value < self.nic.bandwidth.value

    def wire_bytes(self, size: float) -> float:
        """Bytes on the wire: the payload, and a header for each packet."""
        header, packet = self.transport.header, self.transport.packet
        packets = 1 if packet is None else max(math.ceil(size / packet.value), 1)
        return size + (0.0 if header is None else packets * header.value)

    def occupancy_s(self, size: float) -> float:
        """Time that a direction is taken: the longest of what limits it.

        These are the adapter's message rate, its bandwidth with all headers on the wire, and the
        transport's own bandwidth.
        """
        rate = self.nic.message_rate
        return max(0.0 if rate is None else 1.0 / rate.value, self._port_s(size) / self.ports)

    def _port_s(self, size: float) -> float:
        """Time on one port."""
        return max(
            self.wire_bytes(size) / self.nic.bandwidth.value, size / self._transport_Bps(size)
        )

    def _transport_Bps(self, size: float) -> float:
        """What the transport gets with messages of ``size``: at most its own bandwidth; from the
        first point on that has one, what the points say, with lines between them."""
        known = [(p.size.value, p.bandwidth.value) for p in self.transport.points if p.bandwidth]
        most = self.transport.bandwidth.value
        if not known or size < known[0][0]:
            return most
        sizes, bandwidths = zip(*known, strict=True)
        return min(most, float(np.interp(size, sizes, bandwidths)))

    @cached_property
    def _latencies(self) -> tuple[list[float], list[float]]:
        """Sizes of the points that have a latency, and these in seconds."""
        points = [(p.size.value, p.latency.value) for p in self.transport.points if p.latency]
        return [size for size, _ in points], [latency_s for _, latency_s in points]

    def latency_s(self, size: float) -> float:
        """From end to end with no other message about: the points, and lines between them."""
        sizes, latencies_s = self._latencies
        inline = self.transport.inline_limit
        if inline is not None:
            # What goes inline is as fast as the smallest; the next line begins where that ends.
            inside = sum(size <= inline.value for size in sizes)
            sizes = [*sizes[:inside], inline.value, *sizes[inside:]]
            latencies_s = [
                *latencies_s[:inside],
                latencies_s[max(inside - 1, 0)],
                *latencies_s[inside:],
            ]
        beyond_s = self._port_s(max(size, sizes[-1])) - self._port_s(sizes[-1])
        return float(np.interp(size, sizes, latencies_s)) + beyond_s

    def read_latency_s(self, size: float) -> float:
        """Of a one-sided READ, there and back.

        What the file says of one size, and by how much a message of ``size`` is slower than one of
        that size; both ways where it says nothing.
        """
        for point in self.transport.points:
            if point.read_latency is not None:
                slower_s = self.latency_s(size) - self.latency_s(point.size.value)
                return point.read_latency.value + slower_s
        return self.latency_s(0.0) + self.latency_s(size)

    def cycles(self, size: float) -> float:
        """Processor cycles of one side: constant up to the window, in proportion beyond it."""
        window = self.transport.window
        times = 1.0 if window is None else max(size / window.value, 1.0)
        cycles = self.transport.cycles_per_message
        return 0.0 if cycles is None else cycles.value * times

    def interrupt_cycles(self, size: float) -> float:
        """Of ``cycles`` of a receiver, those of its kernel on one of ``receive_queues`` cores."""
        share = self.transport.interrupt_share
        return 0.0 if share is None else share.value * self.cycles(size)


def message_curve(
    machine: Machine, position: int, transport: str, ports: int | None = None
) -> MessageCurve:
    """How messages go by ``transport`` at the node of that position, by all its ports or fewer.

    Raises DescriptionError where the node's adapters do not have that.
    """
    node, description = machine.nodes[position], machine.description
    of_node = [nic for nic in description.nics if _holds(nic, node.id)]
    for nic in of_node:
        found = nic.transports.get(transport)
        if found is None:
            continue
        if ports is not None and ports > nic.ports:
            raise DescriptionError(
                ("ports",),
                f"the adapter for {transport} at node {node.id} of machine '{machine.name}' has "
                f"{nic.ports} ports: expected at most {nic.ports}",
            )
        for field, value in (
            ("cycles_per_message", found.cycles_per_message),
            ("a point with its latency", next((p for p in found.points if p.latency), None)),
        ):
            if value is None:
                raise DescriptionError(
                    (), f"transport {transport} of machine '{machine.name}' lacks {field}"
                )
        return MessageCurve(nic, found, ports or nic.ports)
    known = sorted({name for nic in of_node for name in nic.transports})
    raise DescriptionError(
        (),
        f"node {node.id} of machine '{machine.name}' has no adapter for {transport}: "
        + (f"its adapters are for {', '.join(known)}" if known else "it has no adapter at all"),
    )


def message_curves(
    machine: Machine, positions: Iterable[int], transport: str, ports: int | None = None
) -> list[MessageCurve]:
    """``message_curve`` at each of these positions: one for all nodes of the same adapters."""
    spans = [_span(nic) for nic in machine.description.nics]
    known: dict[tuple[int, ...], MessageCurve] = {}
    found = []
    for position in positions:
        node_id = machine.nodes[position].id
        held = tuple(k for k, (first, last) in enumerate(spans) if first <= node_id <= last)
        if held not in known:
            known[held] = message_curve(machine, position, transport, ports)
        found.append(known[held])
    return found


def with_adapter(machine: Machine) -> list[int]:
    """The positions of the nodes that have a network adapter: servers of a cluster."""
    return [
        position
        for position, node in enumerate(machine.nodes)
        if any(_holds(nic, node.id) for nic in machine.description.nics)
    ]


def _holds(nic: Nic, node_id: int) -> bool:
    first, last = _span(nic)
    return first <= node_id <= last


def _span(nic: Nic) -> tuple[int, int]:
    """The first and the last id of its nodes."""
    first, _, last = str(nic.nodes).partition("-")
    return int(first), int(last or first)
