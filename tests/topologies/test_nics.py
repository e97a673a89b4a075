"""What messages cost on a network adapter, against the facts of the source's cluster (nam.md)."""

import pytest

from numatwin.inputs.yaml_file import DescriptionError, parse_yaml
from numatwin.sim.run.scenario import load_scenario
from numatwin.topologies import load_machine, machine_from_document
from numatwin.topologies.nics import MessageCurve, message_curve

CLUSTER = load_machine("ib-fdr-8n")
RDMA, IPOIB, IPOETH = (message_curve(CLUSTER, 0, name) for name in ("RDMA", "IPoIB", "IPoEth"))


@pytest.mark.parametrize(
    ("curve", "size", "latency_s"),
    [
        (RDMA, 8, 1e-6),
        (RDMA, 256, 1e-6),  # goes inline
        (RDMA, 1_024, 1e-6),
        (RDMA, 2**20, 161e-6),
        (IPOIB, 8, 20e-6),
        (IPOIB, 2**20, 393e-6),
        (IPOETH, 8, 30e-6),
    ],
)
def test_latencies_of_the_source_come_out(
    curve: MessageCurve, size: float, latency_s: float
) -> None:
    assert curve.latency_s(size) == pytest.approx(latency_s, rel=1e-12)


def test_a_read_takes_both_ways() -> None:
    assert RDMA.read_latency_s(8) == pytest.approx(2e-6)
    assert RDMA.read_latency_s(2**20) - RDMA.latency_s(2**20) == pytest.approx(1e-6)
    # Where the file has no READ: there and back.
    assert IPOIB.read_latency_s(2**20) == pytest.approx(413e-6)


def test_latency_is_linear_between_points() -> None:
    half = (1_024 + 2**20) / 2
    assert RDMA.latency_s(half) == pytest.approx(81e-6)


def test_beyond_the_last_point_bandwidth_counts() -> None:
    """1 KB on 1 Gb/s Ethernet: 1,016 B more than the one point, in the same packet."""
    assert IPOETH.latency_s(1_024) - IPOETH.latency_s(8) == pytest.approx(1_016 / 0.125e9)
    more_packets = IPOETH.latency_s(2_896) - IPOETH.latency_s(1_448)
    assert more_packets == pytest.approx((1_448 + 90) / 0.125e9)


@pytest.mark.parametrize("size", [0, 8, 100, 256, 257, 1_024, 1_500, 2_048, 7_500, 2**17, 2**20])
@pytest.mark.parametrize("curve", [RDMA, IPOIB, IPOETH])
def test_a_message_is_never_faster_than_its_bytes(curve: MessageCurve, size: float) -> None:
    assert curve.latency_s(size) >= curve.occupancy_s(size)


def test_what_a_direction_is_taken_for() -> None:
    assert RDMA.occupancy_s(8) == pytest.approx(1 / 137e6)  # the adapter's message rate
    assert RDMA.occupancy_s(2_048) == pytest.approx((2_048 + 26) / 13.6e9)
    assert RDMA.occupancy_s(7_500) == pytest.approx((7_500 + 4 * 26) / 13.6e9)
    one_port = message_curve(CLUSTER, 0, "RDMA", ports=1)
    assert one_port.occupancy_s(2_048) == pytest.approx(2 * RDMA.occupancy_s(2_048))
    # TCP's own peak is below the adapter's.
    assert IPOIB.occupancy_s(2**20) == pytest.approx(2**20 / (2 * 3.5e9))
    assert IPOETH.occupancy_s(1_024) == pytest.approx((1_024 + 90) / 0.125e9)


def test_full_bandwidth_from_2_kb_on() -> None:
    """The source's 6.8 GB/s through one port, less the headers that its figure holds too."""
    one_port = message_curve(CLUSTER, 0, "RDMA", ports=1)
    assert 2_048 / one_port.occupancy_s(2_048) == pytest.approx(6.8e9, rel=0.02)
    assert 512 / one_port.occupancy_s(512) < 0.96 * 6.8e9


def test_cycles_grow_beyond_the_window() -> None:
    assert [RDMA.cycles(size) for size in (8, 2**20)] == [450, 450]
    assert IPOETH.cycles(1_488) == 7_544
    assert IPOETH.cycles(4 * 1_488) == pytest.approx(4 * 7_544)
    assert IPOIB.cycles(21_888) == 13_264
    assert IPOIB.cycles(2 * 21_888) == pytest.approx(2 * 13_264)


PLAIN = """\
name: m
node_types: {a: {cores: 1, clock: 1 GHz, memory: {size: 1 GiB}}}
nodes: [{ids: 0-1, type: a}]
"""
NIC = "nics: [{nodes: 0, bandwidth: 1 GB/s, transports: {T: {bandwidth: 1 GB/s%s}}}]\n"
POINT = ", points: [{size: 8 B, latency: 1 µs}]"


@pytest.mark.parametrize(
    ("nics", "node", "transport", "ports", "told"),
    [
        ("", 0, "T", None, "node 0 of machine 'm' has no adapter for T: it has no adapter at all"),
        (NIC % "", 0, "X", None, "has no adapter for X: its adapters are for T"),
        (NIC % "", 1, "T", None, "node 1 of machine 'm' has no adapter for T"),
        (NIC % "", 0, "T", None, "transport T of machine 'm' lacks cycles_per_message"),
        (NIC % ", cycles_per_message: 1", 0, "T", None, "lacks a point with its latency"),
        (NIC % (", cycles_per_message: 1" + POINT), 0, "T", 2, "has 1 ports: expected at most 1"),
    ],
)
def test_facts_that_are_missing_are_told(
    nics: str, node: int, transport: str, ports: int | None, told: str
) -> None:
    machine = machine_from_document(parse_yaml(PLAIN + nics, "m.yaml"))
    with pytest.raises(DescriptionError) as caught:
        message_curve(machine, node, transport, ports)
    assert told in str(caught.value)


def test_points_bound_what_a_transport_gets() -> None:
    """4 KiB at 2 GB/s and 64 KiB at 4 GB/s, though transport and adapter have 8: lines between;
    before the first point the transport's own."""
    points = (
        "[{size: 8 B, latency: 1 us}, {size: 4 KiB, bandwidth: 2 GB/s}, "
        "{size: 64 KiB, bandwidth: 4 GB/s}]"
    )
    scenario = load_scenario(
        "nam-fig6-rsi",
        settings=[
            "machine.nics.0.bandwidth=8 GB/s",
            "machine.nics.0.transports.RDMA.bandwidth=8 GB/s",
            f"machine.nics.0.transports.RDMA.points={points}",
        ],
    )
    curve = message_curve(scenario.machine, 0, "RDMA", 1)
    for size, bandwidth_Bps in ((4096, 2e9), (34 * 1024, 3e9), (65536, 4e9), (2**20, 4e9)):
        assert curve.occupancy_s(size) == pytest.approx(size / bandwidth_Bps, rel=1e-3)
    assert curve.occupancy_s(2048) == pytest.approx(2048 / 8e9, rel=0.05)
