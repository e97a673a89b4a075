"""What a message costs the threads and adapters at both its ends, in whole picoseconds."""

from collections.abc import Iterable, Sequence

from ...topologies.nics import MessageCurve
from .._kernel import MessageCost
from ..kernel.picoseconds import PS_PER_S

# Extended headers of verbs (InfiniBand Architecture Specification, volume 1, section 9.2).
RETH, ATOMIC, AETH, ATOMIC_ACK = 16.0, 28.0, 4.0, 8.0


def message_cost(
    curve: MessageCurve,
    size: float,
    clocks_Hz: Sequence[float | None],
    request: float | None = None,
) -> MessageCost:
    """Of a message of ``size`` bytes; ``clocks_Hz``: of the sender's and the receiver's core, None
    where no thread takes part, as with one-sided verbs; ``request``: the size of the one that it
    answers, of a READ.

    On its way alone it takes wire_ps and then in_ps: together the latency of the machine file. The
    way back of a READ takes what the way there has left of a READ's latency. Where few cores take a
    receiver's interrupts, their work is a part of in_ps, as all messages of the machine queue for
    them, and none of receive_ps; a message alone takes as long as without.
    """
    cycles, occupancy_s = curve.cycles(size), curve.occupancy_s(size)
    send_ps, receive_ps = (round(cycles / clock * PS_PER_S) if clock else 0 for clock in clocks_Hz)
    latency_s = curve.latency_s(size)
    if request is not None:
        latency_s = curve.read_latency_s(size) - curve.latency_s(request)
    occupancy_ps = in_ps = round(occupancy_s * PS_PER_S)
    interrupt_ps, receiver_Hz = 0, clocks_Hz[1]
    if receiver_Hz and (queues := curve.transport.receive_queues) is not None:
        interrupt_ps = round(curve.interrupt_cycles(size) / receiver_Hz * PS_PER_S)
        in_ps = max(occupancy_ps, interrupt_ps // queues)
    return MessageCost(
        send_ps=send_ps,
        receive_ps=receive_ps - interrupt_ps,
        out_ps=occupancy_ps,
        wire_ps=max(round(latency_s * PS_PER_S) + interrupt_ps - in_ps, 0),
        in_ps=in_ps,
    )


def interpolated(
    points: Iterable[tuple[float, float]], place: float, *, floor: bool = False
) -> float:
    """Piecewise linear through the points; beyond them the last two extrapolate, before them the
    first two (with ``floor``: constant)."""
    known = list(points)
    if len(known) == 1 or (floor and place <= known[0][0]):
        return known[0][1]
    upper = next((k for k in range(1, len(known)) if place <= known[k][0]), len(known) - 1)
    (x0, y0), (x1, y1) = known[upper - 1], known[upper]
    return max(y0 + (y1 - y0) * (place - x0) / (x1 - x0), 0.0)
