"""Servers and delays of the kernel, alone and in networks, against plain SimPy: the whole trace."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from simpy_queueing import (
    ARRIVE,
    DEPART,
    Network,
    Station,
    Times,
    kernel_rows,
    kernel_trace,
    simpy_trace,
)

pytestmark = pytest.mark.kernel

MEAN_PS = 10**9  # so that two events of one picosecond are hardly ever met
KINDS = ["fifo", "delay"]

# All without ties: what happens in one picosecond in which order is another test.
durations = st.one_of(
    st.integers(1, 4).map(lambda k: Times("exponential", (k * MEAN_PS / 2,))),
    st.integers(1, 4).map(lambda k: Times("uniform", (k, k * MEAN_PS))),
)


@st.composite
def networks(draw: st.DrawFn, kinds: list[str] = KINDS) -> Network:
    count = draw(st.integers(1, 3))
    stations = []
    for _ in range(count):
        servers = draw(st.integers(1, 3))
        quarters = draw(
            st.lists(st.integers(0, 4), min_size=count, max_size=count).filter(
                lambda parts: sum(parts) <= 4
            )
        )
        stations.append(
            Station(
                kind=draw(st.sampled_from(kinds)),
                service=draw(durations),
                servers=servers,
                route=tuple(q / 4 for q in quarters),
                between=draw(st.one_of(st.none(), durations)),
                customers=draw(st.integers(0, servers)),
            )
        )
    assume(any(s.between is not None or s.customers for s in stations))
    return Network(tuple(stations), seed=draw(st.integers(0, 2**32)))


def replay(network: Network) -> str:
    return f"replay with the network {network!r}"


@pytest.mark.parametrize("kind", KINDS)
def test_traces_of_a_single_kind_are_those_of_simpy(kind: str) -> None:
    @settings(max_examples=60, deadline=None)
    @given(networks([kind]))
    def check(network: Network) -> None:
        until = 100 * MEAN_PS
        assert kernel_trace(network, until) == simpy_trace(network, until), replay(network)

    check()


@settings(max_examples=150, deadline=None)
@given(networks())
def test_traces_of_networks_are_those_of_simpy(network: Network) -> None:
    until = 100 * MEAN_PS
    assert kernel_trace(network, until) == simpy_trace(network, until), replay(network)


@settings(max_examples=30, deadline=None)
@given(networks(), st.lists(st.integers(0, 100 * MEAN_PS), max_size=5))
def test_stopping_changes_nothing(network: Network, stops: list[int]) -> None:
    until = 100 * MEAN_PS
    assert kernel_trace(network, *sorted(stops), until) == kernel_trace(network, until)


# Two customers take 10 ps each of one server, in turn, with nothing between. What is due at one
# time comes in the order in which it was scheduled; what is due at the end comes later.
def test_equal_times_come_in_the_order_of_scheduling() -> None:
    station = Station("fifo", Times("deterministic", (10,)), route=(1.0,), customers=2)
    rows = [(0, ARRIVE, 0, 0), (0, ARRIVE, 0, 1)]
    for time, customer in ((10, 0), (20, 1)):
        rows += [(time, DEPART, 0, customer), (time, ARRIVE, 0, customer)]
    assert [tuple(row) for row in kernel_rows(Network((station,)), 30).tolist()] == rows
