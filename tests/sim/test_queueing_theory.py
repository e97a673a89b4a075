"""The kernel's servers, delays and draws against queueing theory: known answers, laws, monotony.

Each figure is the mean of independent replications and must lie in its confidence interval
(Student's t, 99.9%, by SciPy) around the known answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import comb, factorial, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from simpy_queueing import Network, Station

from numatwin.sim._kernel import Durations, QueueingNetwork

MS = 10**9  # picoseconds: the unit of time below
REPLICATIONS = 12
CONFIDENCE = 0.999
SEED = 20


def times(mean: float) -> Durations:
    return Durations.exponential(mean * MS)


def replicate(
    network: Network,
    figures: Callable[[QueueingNetwork], Sequence[float]],
    warm_up: float,
    horizon: float,
) -> list[list[float]]:
    """Figures by replication, gathered from the warm-up to the horizon."""
    rows = []
    for replication in range(REPLICATIONS):
        kernel = replace(network, seed=SEED, replication=replication).kernel()
        kernel.run(round(warm_up * MS))
        kernel.reset_statistics()
        kernel.run(round(horizon * MS))
        rows.append([float(figure) for figure in figures(kernel)])
    return rows


def assert_means(rows: list[list[float]], expected: Sequence[float]) -> None:
    for values, known in zip(np.array(rows).T, expected, strict=True):
        mean, error = values.mean(), stats.sem(values)
        low, high = stats.t.interval(CONFIDENCE, len(values) - 1, loc=mean, scale=error)
        message = f"{known} not in {low} … {high}; seed {SEED}: .venv/bin/pytest {__file__}"
        assert low <= known <= high, message
        # An interval that tells nothing would pass with any answer.
        assert high - low <= 0.15 * abs(known), message


# Kleinrock, Queueing Systems I, 3.2 and 5.7 (Pollaczek-Khinchin): with utilisation r and squared
# coefficient of variation c2 of the service, the number in the system is
# r + r^2 (1 + c2) / (2 (1 - r)).
# The sojourn time of M/M/1 is exponential of mean 1 / (mu - lambda).
def test_mm1() -> None:
    station = Station("fifo", times(0.8), between=times(1.0))

    def figures(kernel: QueueingNetwork) -> Sequence[float]:
        sojourn = kernel.sojourn_ps(0)
        p50, p99 = (sojourn.quantile(q) / MS for q in (0.5, 0.99))
        return kernel.mean_number()[0], kernel.utilisation()[0], sojourn.mean / MS, p50, p99

    rows = replicate(Network((station,)), figures, 500, 250_000)
    assert_means(rows, [4.0, 0.8, 4.0, 4.0 * log(2), 4.0 * log(100)])


@pytest.mark.parametrize("servers", [1, 2])
def test_md1_and_the_like(servers: int) -> None:
    service = Durations.deterministic(round(0.8 * MS))
    station = Station("fifo", service, between=times(1.0))
    if servers == 2:  # half of the time each, of hyperexponential kind: c2 = E[S^2] / E[S]^2 - 1
        short, long = 0.2, 2.0
        weight = (long - 0.8) / (long - short)
        service = Durations.empirical([round(short * MS), round(long * MS)], [weight, 1 - weight])
        station = Station("fifo", service, between=times(1.0))
        c2 = (weight * short**2 + (1 - weight) * long**2) / 0.8**2 - 1
    else:
        c2 = 0.0
    number = 0.8 + 0.8**2 * (1 + c2) / (2 * 0.2)
    rows = replicate(
        Network((station,)), lambda k: (k.mean_number()[0], k.utilisation()[0]), 500, 60_000
    )
    assert_means(rows, [number, 0.8])


# Erlang's C formula: of c servers at load a, P(wait) = B / (1 - (a / c) (1 - B)) with Erlang's B;
# the mean wait is P(wait) / (c mu - lambda).
def erlang_b(servers: int, load: float) -> float:
    terms = [load**k / factorial(k) for k in range(servers + 1)]
    return terms[-1] / sum(terms)


def test_mmc() -> None:
    servers, load = 4, 3.2
    blocked = erlang_b(servers, load)
    waits = blocked / (1 - load / servers * (1 - blocked))
    wait = waits / (servers - load)  # in services
    station = Station("fifo", times(1.0), servers, between=times(1 / load))
    rows = replicate(
        Network((station,)),
        lambda k: (k.sojourn_ps(0).mean / MS, k.utilisation()[0]),
        200,
        30_000,
    )
    assert_means(rows, [1.0 + wait, load / servers])


def mean_value_analysis(
    demands: Sequence[float], delays: Sequence[bool], customers: int
) -> tuple[float, list[float]]:
    """Throughput and numbers of a closed network (Reiser and Lavenberg, JACM 1980)."""
    numbers = [0.0] * len(demands)
    throughput = 0.0
    for n in range(1, customers + 1):
        stay = [
            d * (1 if delay else 1 + q)
            for d, delay, q in zip(demands, delays, numbers, strict=True)
        ]
        throughput = n / sum(stay)
        numbers = [throughput * s for s in stay]
    return throughput, numbers


def test_closed_network_by_mean_value_analysis() -> None:
    # Per cycle: one think, 1 / 0.4 visits to the first station, of which 0.6 / 0.4 by the second.
    visits = [1.0, 2.5, 1.5]
    stations = (
        Station("delay", times(5.0), route=(0, 1.0, 0), customers=12),
        Station("fifo", times(0.4), route=(0.4, 0, 0.6)),
        Station("fifo", times(0.5), route=(0, 1.0, 0)),
    )
    demands = [5.0 * visits[0], 0.4 * visits[1], 0.5 * visits[2]]
    throughput, numbers = mean_value_analysis(demands, [True, False, False], 12)
    assert sum(numbers) == pytest.approx(12)
    rows = replicate(
        Network(stations),
        lambda k: (k.departures()[0] / 20_000, *k.mean_number()),
        500,
        20_500,
    )
    assert_means(rows, [throughput, *numbers])


# Machine repair: m machines fail after 1 / l each, c repairers take 1 / u. The chance of k broken
# is in proportion to C(m, k) r^k for k <= c, times k! / (c! c^(k-c)) beyond, r = l / u.
def test_machine_repair() -> None:
    machines, repairers, ratio = 8, 2, 0.3
    weights = [
        comb(machines, k)
        * ratio**k
        * (
            1
            if k <= repairers
            else factorial(k) / factorial(repairers) / repairers ** (k - repairers)
        )
        for k in range(machines + 1)
    ]
    chance = np.array(weights) / sum(weights)
    working = machines - float(chance @ np.arange(machines + 1))
    stations = (
        Station("delay", times(1.0), route=(0, 1.0), customers=machines),
        Station("fifo", times(ratio), repairers, route=(1.0, 0)),
    )

    def figures(kernel: QueueingNetwork) -> Sequence[float]:
        return kernel.mean_number()[0], kernel.arrivals()[1] / 20_000, kernel.utilisation()[1]

    rows = replicate(Network(stations), figures, 200, 20_200)
    assert_means(rows, [working, working, working * ratio / repairers])


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["fifo", "delay"]),
    st.floats(0.1, 0.9),
    st.integers(1, 3),
    st.integers(0, 1000),
)
def test_laws(kind: str, load: float, servers: int, seed: int) -> None:
    station = Station(kind, times(servers * load), servers, between=times(1.0))  # type: ignore[arg-type]
    kernel = Network((station,), seed=seed).kernel()
    kernel.run(2000 * MS)
    arrivals, departures = int(kernel.arrivals()[0]), int(kernel.departures()[0])
    # Who came has left or is there.
    assert arrivals == departures + kernel.customers
    assert kernel.response_ps().count == departures
    if kind != "delay":
        assert kernel.utilisation()[0] <= 1 + 1e-12
    # Little's law over a finite time: the integral of the number is the sum of all sojourns, of
    # which those still there have the least part.
    integral = kernel.mean_number()[0] * 2000
    left = kernel.sojourn_ps(0).mean * departures / MS
    assert left <= integral * (1 + 1e-12)
    if kernel.customers == 0:
        assert left == pytest.approx(integral)
    assert kernel.mean_customers == kernel.mean_number()[0]


# Common random numbers: with slower servers, no customer leaves a queue earlier.
@settings(max_examples=25, deadline=None)
@given(
    st.floats(0.1, 1.2),
    st.floats(1.0, 1.5),
    st.integers(1, 3),
    st.integers(0, 1000),
)
def test_slower_servers_make_it_no_faster(
    load: float, slower: float, servers: int, seed: int
) -> None:
    def number(mean: float) -> float:
        station = Station("fifo", times(mean), servers, between=times(1.0))
        kernel = Network((station,), seed=seed).kernel()
        kernel.run(300 * MS)
        return float(kernel.mean_number()[0])

    assert number(load * slower) >= number(load) * (1 - 1e-9)


def test_the_formulas_themselves() -> None:
    assert erlang_b(1, 1.0) == 0.5
    # Exponential service in both views: M/M/1 by Erlang C and by Pollaczek-Khinchin.
    blocked = erlang_b(1, 0.8)
    assert blocked / (1 - 0.8 * (1 - blocked)) == pytest.approx(0.8)
    assert mean_value_analysis([1.0], [False], 3)[0] == pytest.approx(1.0)
