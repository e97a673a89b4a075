"""Links and routes over them, by hand; whole traces of ERIS hold the kernel to them."""

from numatwin.sim._kernel import SparseRows
from numatwin.sim.machine.reference.interconnect import Interconnect, MemoryPaths, Routes

NS = 1000
US = 1_000_000
# Nodes 0 and 1 and a hub 2 between them: links 0 -> 2, 2 -> 0, 1 -> 2, 2 -> 1 are 0 to 3.
ROUTES = Routes(entering=(-1, 3, 0, 1, -1, 2), predecessor=(-1, 2, 0, 2, -1, 1), vertices=3)
DATA_PS, REQUEST_PS = (5 * NS, 5 * NS, 5 * NS, 10 * NS), (1 * NS,) * 4


def test_lines_take_every_link_on_the_way() -> None:
    """From node 0 to node 1: link 0 (5 ns a line), then link 3 (10 ns); requests come back on links
    2 and 1.

    time    lines   link 0       link 3        across
    0       4       0 … 20 ns    0 … 40 ns     40 ns
    10 ns   2       20 … 30 ns   40 … 60 ns    60 ns
    100 ns  1       … 105 ns     … 110 ns      no earlier than 500 ns, as the caller says
    """
    links = Interconnect(DATA_PS, REQUEST_PS, ROUTES)
    assert links.send_lines(0, 0, 1, 4, 0) == 40 * NS
    assert links.send_lines(10 * NS, 0, 1, 2, 0) == 60 * NS
    assert links.send_lines(100 * NS, 0, 1, 1, 500 * NS) == 500 * NS
    assert list(links.lines) == [7, 0, 0, 7]
    assert list(links.requests) == [0, 7, 7, 0]
    assert list(links.done(200 * NS)) == [35 * NS, 7 * NS, 7 * NS, 70 * NS]


def test_within_a_node_nothing_is_sent() -> None:
    links = Interconnect(DATA_PS, REQUEST_PS, ROUTES)
    assert links.send_lines(7, 1, 1, 100, 9) == 9
    assert list(links.lines) == [0, 0, 0, 0]


def test_requests_leave_data_the_rest_of_the_wire() -> None:
    """In the first 100 µs requests take 60 µs of link 1: from then on data on it take 1 / 0.4 as
    long. Requests themselves wait for other requests only."""
    links = Interconnect(DATA_PS, REQUEST_PS, ROUTES)
    assert links.send_lines(0, 0, 1, 60_000, 0) == 600 * US  # 10 ns each on link 3
    assert links.send_lines(100 * US, 1, 0, 100, 0) == 100 * US + round(2.5 * 500 * NS)


def test_lines_of_memory_take_data_and_snoops() -> None:
    """Node 1's core uses memory of node 0: of each line 5 ns of data on link 0 and 10 ns on link 3,
    a snoop of 2 ns on link 2; 80 bytes on links 0 and 3."""
    paths = MemoryPaths(
        SparseRows([0, 0, 2], [0, 3], [5.0 * NS, 10.0 * NS]),
        SparseRows([0, 0, 1], [2], [2.0 * NS]),
        SparseRows([0, 0, 2], [0, 3], [80.0, 80.0]),
    )
    links = Interconnect(DATA_PS, REQUEST_PS, ROUTES)
    assert links.use_memory(0, paths, 0, 3, 11) == 11  # node 0 uses its own
    assert links.use_memory(0, paths, 1, 3, 11) == 30 * NS
    assert links.use_memory(1 * NS, paths, 1, 0.5, 0) == 35 * NS
    assert list(links.bytes) == [280, 0, 0, 280]
    assert list(links.done(100 * NS)) == [17_500, 0, 7 * NS, 35 * NS]
    links.start_counting(32 * NS)
    assert list(links.bytes) == [0] * 4
    assert list(links.done(100 * NS)) == [0, 0, 0, 3 * NS]
