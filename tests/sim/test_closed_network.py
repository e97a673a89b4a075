"""Closed networks by approximate mean value analysis: exact answers, bounds, convoys by hand."""

from collections.abc import Callable, Generator
from math import inf
from typing import Any

import numpy as np
import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from numatwin.sim.planes.closed_network import (
    Branch,
    ClosedNetwork,
    Cycle,
    Solution,
    Stage,
    Station,
    Visit,
)


def always(station: int | None, service_s: float, often: float = 1.0) -> Visit:
    return Visit(station, often, service_s, service_s**2)


def exponential(station: int, service_s: float) -> Visit:
    return Visit(station, 1.0, service_s, 2.0 * service_s**2)


def solved(
    stations: list[Station], stages: list[Stage], customers: int, varies_s: float = -1.0
) -> Solution:
    cycle = Cycle(stations, stages)
    return ClosedNetwork(cycle, [1.0] * len(stages), customers, varies_s).solve()


def in_turn(demands_s: list[float], think_s: float, customers: int) -> Solution:
    """One server after another, exponential, then a pause."""
    stages = [Stage(f"at {k}", (Branch((exponential(k, s),)),)) for k, s in enumerate(demands_s)]
    stages.append(Stage("pause", (Branch((), think_s),)))
    return solved([Station(f"server {k}") for k in range(len(demands_s))], stages, customers)


def exact(demands_s: list[float], think_s: float, customers: int) -> float:
    """Mean value analysis of Reiser and Lavenberg (JACM 27, 1980): R_k(n) = D_k (1 + Q_k(n - 1)),
    X(n) = n / (Z + sum of R_k), Q_k(n) = X(n) R_k(n)."""
    demands, queues, rate = np.array(demands_s), np.zeros(len(demands_s)), 0.0
    for n in range(1, customers + 1):
        responses = demands * (1.0 + queues)
        rate = n / (think_s + responses.sum())
        queues = rate * responses
    return rate


@pytest.mark.parametrize("customers", [1, 2, 3, 5, 10, 30, 100])
@pytest.mark.parametrize(
    ("demands_s", "think_s"),
    [([1.0], 5.0), ([1.0, 1.0], 0.0), ([1.0, 0.5, 0.3], 2.0), ([1.0, 0.9, 0.8, 0.7], 10.0)],
)
def test_against_exact_mean_value_analysis(
    demands_s: list[float], think_s: float, customers: int
) -> None:
    """Bard and Schweitzer's approximation is exact for one customer and for very many; where the
    fullest server just gets full it is up to 6% too low."""
    known = exact(demands_s, think_s, customers)
    found = in_turn(demands_s, think_s, customers).rate
    assert found == pytest.approx(known, rel=1e-6 if customers == 1 else 0.065)


@pytest.mark.parametrize("use", [0.3, 0.7, 0.9])
@pytest.mark.parametrize("steady", [True, False])
def test_many_customers_that_think_long_are_as_arrivals_at_random(use: float, steady: bool) -> None:
    """Pollaczek and Khinchine: W = rate E[S^2] / (2 (1 - use))."""
    customers, think_s = 100_000, 100_000 / use
    visit = always(0, 1.0) if steady else exponential(0, 1.0)
    stages = [Stage("served", (Branch((visit,)),)), Stage("pause", (Branch((), think_s),))]
    found = solved([Station("server")], stages, customers)
    waits_s = use * (1.0 if steady else 2.0) / (2.0 * (1.0 - use))
    assert found.waits_s[0] == pytest.approx(waits_s, rel=2e-3)


@pytest.mark.parametrize("servers", [2, 10])
def test_several_servers_against_erlang(servers: int) -> None:
    """Wait of M/M/c at 90%: Erlang's C over c mu - lambda (Sakasegawa is within 3%)."""
    load = 0.9 * servers
    blocked = 1.0
    for k in range(1, servers + 1):
        blocked = load * blocked / (k + load * blocked)
    waits_s = blocked / (1.0 - 0.9 * (1.0 - blocked)) / (servers - load)
    customers = 100_000
    pause = Stage("pause", (Branch((), customers / load),))
    served = Stage("served", (Branch((exponential(0, 1.0),)),))
    found = solved([Station("servers", servers)], [served, pause], customers)
    assert found.waits_s[0] == pytest.approx(waits_s, rel=0.03)


@pytest.mark.parametrize("customers", [2, 5, 12])
def test_against_simpy(customers: int) -> None:
    """Two servers, one in order of arrival with steady service, one exponential, and a pause."""
    env, rng = simpy.Environment(), np.random.default_rng(seed=1)
    servers = [simpy.Resource(env), simpy.Resource(env)]
    draws: list[Callable[[], float]] = [lambda: 1.0, lambda: rng.exponential(0.7)]
    left = 0

    def customer() -> Generator[simpy.Event, Any, None]:
        nonlocal left
        while True:
            for server, draw in zip(servers, draws, strict=True):
                with server.request() as turn:
                    yield turn
                    yield env.timeout(draw())
                left += server is servers[0]
            yield env.timeout(rng.exponential(2.0))

    for _ in range(customers):
        env.process(customer())
    env.run(until=20_000)
    played = left / 20_000 * 1e6
    stages = [
        Stage("a", (Branch((always(0, 1e-6),)),)),
        Stage("b", (Branch((exponential(1, 0.7e-6),)),)),
        Stage("pause", (Branch((), 2e-6),)),
    ]
    found = solved([Station("a"), Station("b")], stages, customers)
    assert found.rate == pytest.approx(played, rel=0.05)


def test_a_fork_by_hand() -> None:
    """Three at once to one server: each second of them waits for those before; alone no more."""
    fork = Stage("fork", (Branch((always(0, 2.0),), delay_s=5.0, count=3),))
    assert solved([Station("server")], [fork], 1).rate == pytest.approx(1.0 / (5.0 + 3 * 2.0))
    spread = solved(
        [Station("servers", 1, 3, drawn=True)],
        [Stage("fork", (Branch((always(0, 2.0),), delay_s=5.0, count=3),))],
        1,
    )
    assert spread.rate == pytest.approx(1.0 / (5.0 + 2.0 + 2.0 * 2 / 3))
    own = Stage("fork", (Branch((always(None, 2.0), always(0, 0.5)), count=3),))
    assert solved([Station("server")], [own], 1).rate == pytest.approx(1.0 / (2.5 + 2 * 2.0))


def test_a_convoy_by_hand() -> None:
    """Ten customers. A short visit of ``a`` (0) comes behind all long ones: they go as one.

    | begins | what |
    | --- | --- |
    | 0 | long visits of a, 1 s each, until 10; the first goes on to the pause at 1 |
    | 6 | the first is back, and waits behind the others until 10 for its short visit |
    | 10 | all short visits, at once; then long ones again, after another 5 s: the cycle takes 15 |
    """
    stages = [
        Stage("long", (Branch((always(0, 1.0),)),)),
        Stage("there", (Branch((), 5.0),)),
        Stage("short", (Branch((always(0, 1e-9),)),)),
        Stage("back", (Branch((), 5.0),)),
    ]
    found = solved([Station("a")], stages, 10, varies_s=0.0)
    assert found.in_step == pytest.approx(10 / 15, rel=1e-6)
    assert found.rate == pytest.approx(found.in_step, rel=1e-6)
    assert found.at_random > 0.75
    some, more = (solved([Station("a")], stages, 10, varies_s=s) for s in (0.3, 3.0))
    assert some.in_step < some.rate < more.rate < found.at_random
    assert solved([Station("a")], stages, 10).rate == found.at_random


@given(
    st.lists(st.floats(0.01, 10.0), min_size=1, max_size=4),
    st.floats(0.0, 100.0),
    st.integers(1, 50),
    st.floats(-1.0, 5.0),
)
def test_bounds_and_the_law_of_little(
    demands_s: list[float], think_s: float, customers: int, varies_s: float
) -> None:
    stations = [Station(f"server {k}", 1 + k % 2) for k in range(len(demands_s))]
    stages = [Stage(f"at {k}", (Branch((always(k, s),)),)) for k, s in enumerate(demands_s)]
    stages += [
        Stage("again", (Branch((always(0, 0.1 * demands_s[0]),)),)),
        Stage("pause", (Branch((), think_s),)),
    ]
    found = solved(stations, stages, customers, varies_s)
    more = solved(stations, stages, customers + 1, varies_s)
    alone_s = 1.1 * demands_s[0] + sum(demands_s[1:]) + think_s
    assert 0 < found.rate <= customers / alone_s * (1 + 1e-6)
    assert (found.use <= 1 + 1e-9).all()
    assert found.in_step <= found.at_random
    assert found.at_random <= more.at_random * (1 + 1e-6)
    assert found.rate * sum(found.stages_s.values()) == pytest.approx(customers, rel=1e-4)


def test_nothing_to_wait_for_has_no_bound() -> None:
    cycle = Cycle([Station("idle")], [Stage("pause", (Branch((), 2.0),))])
    network = ClosedNetwork(cycle, [1.0], 4)
    assert network.bound == inf
    assert network.solve().rate == pytest.approx(2.0)
