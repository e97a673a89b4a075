"""The way of a message in the reference, by hand.

The kernel's twin does the same in drawn clusters: test_commit_traces.py.
"""

from collections.abc import Sequence

import numpy as np
import pytest

from numatwin.sim._kernel import MessageCost
from numatwin.sim.machine.reference import message_path as reference

# Places: machine, threads and factor. Sends: when, type, sender, receiver, the receiver's work.
Places = Sequence[tuple[int, int, int]]
Sends = Sequence[tuple[int, int, int, int, int]]


def received(places: Places, costs: Sequence[MessageCost], sends: Sends) -> list[int]:
    """When each message was received, in ps."""
    path = reference.MessagePath(
        1 + max(machine for machine, _, _ in places),
        {str(type_): (cost,) for type_, cost in enumerate(costs)},
    )
    made = [
        reference.Place(k, path.adapters[machine], reference.Servers(path.env, threads), factor)
        for k, (machine, threads, factor) in enumerate(places)
    ]
    received = [-1] * len(sends)

    def play(at: int) -> reference.Process:
        at_ps, type_, sender, receiver, work_ps = sends[at]
        yield path.env.timeout(at_ps)
        yield from path.message(str(type_), made[sender], made[receiver], 0, work_ps)
        received[at] = path.env.now

    for at in range(len(sends)):
        path.env.process(play(at))
    path.env.run()
    return received


COST = MessageCost(send_ps=10, out_ps=100, wire_ps=1000, in_ps=80, receive_ps=20)


def test_one_message() -> None:
    """The sender's thread takes 10, its adapter 100 from 10 on; the wire 1,000. First bits are
    there at 1010, the last ones at 1110, which is later than what the incoming side takes; the
    receiver's thread takes 20, and 7 for what the message asks of it.
    """
    assert received([(0, 1, 1), (1, 1, 1)], [COST], [(0, 0, 0, 1, 7)]) == [1110 + 27]


def test_places_on_one_machine_need_no_network() -> None:
    """Threads' time alone; to itself, the work alone. The receiver is three times as slow."""
    places = [(0, 1, 1), (0, 1, 3)]
    sends = [(0, 0, 0, 1, 0), (500, 0, 1, 1, 5)]
    assert received(places, [COST], sends) == [10 + 3 * 20, 500 + 3 * 5]


def test_messages_queue_at_each_part() -> None:
    """Three messages at once, of two senders on machines of their own, to one of one thread.

    message  posted  leaves      first, last bits  received by adapter  by thread
    a (0→2)  10      10 … 110    1010, 1110        1010 + 80, not before 1110    1130
    b (1→2)  10      10 … 110    1010, 1110        1170 (the incoming side had a)  1190
    c (0→2)  20      110 … 210   1110, 1210        1250                           1270
    """
    places = [(0, 1, 1), (1, 1, 1), (2, 1, 1)]
    sends = [(0, 0, 0, 2, 0), (0, 0, 1, 2, 0), (0, 0, 0, 2, 0)]
    assert received(places, [COST], sends) == [1130, 1190, 1270]


@pytest.mark.parametrize(
    ("out_ps", "bytes_", "limit"),
    [(500, 64, "message rate"), (4096, 4096, "bytes")],
    ids=["message rate", "bytes"],
)
def test_throughput_at_the_limit_of_the_adapter(out_ps: int, bytes_: int, limit: str) -> None:
    """An adapter of 2 messages/ns and 1 B/ps takes max(500 ps, bytes) for each; threads are faster.

    Of 1,000 messages at once, each is received that much after the one before it.
    """
    assert out_ps == max(500, bytes_), limit
    cost = MessageCost(send_ps=10, out_ps=out_ps, wire_ps=9_000, in_ps=out_ps, receive_ps=10)
    found = received([(0, 4, 1), (1, 4, 1)], [cost], [(0, 0, 0, 1, 0)] * 1_000)
    assert set(np.diff(found)) == {out_ps}
    assert found[0] == 10 + out_ps + 9_000 + 10


def test_waits_at_an_adapter_are_those_of_md1() -> None:
    """Poisson arrivals at load 0.7, constant service s: the mean wait is 0.7 s / (2 · 0.3), by
    Pollaczek and Khinchine. Within three standard errors of the means of 20 runs.
    """
    service_ps, load, count = 1_000, 0.7, 4_000
    cost = MessageCost(out_ps=service_ps, wire_ps=0, in_ps=0)
    waits = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        at = np.cumsum(rng.exponential(service_ps / load, count)).astype(int).tolist()
        found = received([(0, 1, 1), (1, 1, 1)], [cost], [(t, 0, 0, 1, 0) for t in at])
        waits.append(float(np.mean(np.array(found) - np.array(at))) - service_ps)
    expected = load * service_ps / (2.0 * (1.0 - load))
    error = float(np.std(waits, ddof=1) / np.sqrt(len(waits)))
    assert abs(float(np.mean(waits)) - expected) < 3.0 * error + 0.01 * expected


def test_costs_are_values() -> None:
    assert COST.replaced() == COST
    assert COST.replaced(parts=2) != COST
    assert repr(MessageCost(send_ps=3)).startswith("MessageCost(send_ps=3, receive_ps=0")
    with pytest.raises(TypeError, match="no field 'bytes'"):
        COST.replaced(bytes=3)
    with pytest.raises(TypeError, match="parts"):
        COST.replaced(parts=-1)
