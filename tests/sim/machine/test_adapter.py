"""Network adapters, by hand; messages by both models stand in test_message_path.py."""

from numatwin.sim.machine.reference.message_path import Adapter


def test_messages_cut_through() -> None:
    """Out 100, wire 1000, in 80: of a message at 0 the first bits are there at 1000, the last ones
    at 1100. A second one at 30 leaves from 100 to 200.

    message  leaves       first bits  last bits  received
    a        0 … 100      1000        1100       1000 + 80, not before 1100
    b        100 … 200    1100        1200       1200
    c        500 … 510    1500        1510       1500 + 80: the incoming side is the slow one
    """
    sender, receiver = Adapter(), Adapter()
    assert sender.send(0, 100, 1000) == (1000, 1100)
    assert sender.send(30, 100, 1000) == (1100, 1200)
    assert sender.send(500, 10, 1000) == (1500, 1510)
    assert receiver.receive(1000, 80, 1100) == 1100
    assert receiver.receive(1100, 80, 1200) == 1200
    assert receiver.receive(1500, 80, 1510) == 1580


def test_messages_of_several_senders_wait_at_the_receiver() -> None:
    """Three messages of which the first bits come at 1000, each of 80."""
    receiver = Adapter()
    assert [receiver.receive(1000, 80, 1080) for _ in range(3)] == [1080, 1160, 1240]


def test_both_sides_work_at_once() -> None:
    one = Adapter()
    assert one.receive(0, 100, 0) == 100
    assert one.send(0, 50, 10) == (10, 60)
