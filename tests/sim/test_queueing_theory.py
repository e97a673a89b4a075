"""The kernel's servers, delays and draws against queueing theory: known answers, laws, monotony.

Each figure is the mean of independent replications and must lie in its confidence interval
(Student's t, 99.9%, by SciPy) around the known answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import comb, factorial, log

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from simpy_queueing import ARRIVE, DEPART, Network, Rows, Station, Times, kernel_rows

MS = 10**9  # picoseconds: the unit of time below
REPLICATIONS = 12
CONFIDENCE = 0.999
SEED = 20
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def times(mean: float) -> Times:
    return Times("exponential", (mean * MS,))


@dataclass(frozen=True)
class Seen:
    """What a trace says of stations from one time to another, in ms."""

    network: Network
    rows: Rows
    start: float
    end: float

    def levels(self, station: int) -> tuple[Floats, Ints]:
        """How long, within these times, each number of customers was there, and which."""
        rows = self.rows[self.rows[:, 2] == station]
        at = np.clip(np.append(rows[:, 0] / MS, self.end), self.start, self.end)
        number = np.cumsum(np.where(rows[:, 1] == ARRIVE, 1, -1))
        return np.diff(at), number

    def number(self, station: int = 0) -> float:
        """Customers, on average."""
        lasted, number = self.levels(station)
        return float(lasted @ number) / (self.end - self.start)

    def utilisation(self, station: int = 0) -> float:
        """Of the servers."""
        servers = self.network.stations[station].servers
        lasted, number = self.levels(station)
        return float(lasted @ np.minimum(number, servers)) / servers / (self.end - self.start)

    def sojourns(self, station: int = 0) -> Floats:
        """Of those who left, in ms."""
        rows = self.rows[self.rows[:, 2] == station]
        rows = rows[np.argsort(rows[:, 3], kind="stable")]  # each customer: come, gone, come, …
        gone = np.flatnonzero((rows[:, 1] != ARRIVE) & (rows[:, 0] >= self.start * MS))
        return np.asarray(rows[gone, 0] - rows[gone - 1, 0]) / MS

    def counted(self, event: int, station: int = 0) -> int:
        """Arrivals or departures."""
        at, what, where, _ = self.rows.T
        return int(((at >= self.start * MS) & (what == event) & (where == station)).sum())


def seen(network: Network, start: float, end: float) -> Seen:
    return Seen(network, kernel_rows(network, round(end * MS)), start, end)


def replicate(
    network: Network,
    figures: Callable[[Seen], Sequence[float]],
    warm_up: float,
    horizon: float,
) -> list[list[float]]:
    """Figures by replication, gathered from the warm-up to the horizon."""
    runs = (replace(network, seed=SEED, replication=k) for k in range(REPLICATIONS))
    return [[float(f) for f in figures(seen(run, warm_up, horizon))] for run in runs]


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

    def figures(run: Seen) -> Sequence[float]:
        stayed = run.sojourns()
        p50, p99 = np.quantile(stayed, (0.5, 0.99))
        return run.number(), run.utilisation(), stayed.mean(), p50, p99

    rows = replicate(Network((station,)), figures, 500, 250_000)
    assert_means(rows, [4.0, 0.8, 4.0, 4.0 * log(2), 4.0 * log(100)])


@pytest.mark.parametrize("servers", [1, 2])
def test_md1_and_the_like(servers: int) -> None:
    service = Times("deterministic", (round(0.8 * MS),))
    station = Station("fifo", service, between=times(1.0))
    if servers == 2:  # half of the time each, of hyperexponential kind: c2 = E[S^2] / E[S]^2 - 1
        short, long = 0.2, 2.0
        weight = (long - 0.8) / (long - short)
        values = round(short * MS), round(long * MS), weight, 1 - weight
        service = Times("empirical", values)
        station = Station("fifo", service, between=times(1.0))
        c2 = (weight * short**2 + (1 - weight) * long**2) / 0.8**2 - 1
    else:
        c2 = 0.0
    number = 0.8 + 0.8**2 * (1 + c2) / (2 * 0.2)
    rows = replicate(
        Network((station,)), lambda run: (run.number(), run.utilisation()), 500, 60_000
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
        lambda run: (run.sojourns().mean(), run.utilisation()),
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
        lambda run: (run.counted(DEPART) / 20_000, *map(run.number, range(3))),
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

    def figures(run: Seen) -> Sequence[float]:
        return run.number(), run.counted(ARRIVE, 1) / 20_000, run.utilisation(1)

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
    run = seen(Network((station,), seed=seed), 0, 2000)
    number = run.levels(0)[1]
    assert (number >= 0).all()
    # Who came has left or is there.
    there = int(number[-1])
    assert run.counted(ARRIVE) == run.counted(DEPART) + there
    gone = run.rows[run.rows[:, 1] == DEPART, 3]
    if kind == "fifo" and servers == 1:  # in the order in which they came
        assert gone.tolist() == list(range(len(gone)))
    # Little's law over a finite time: the integral of the number is the sum of all sojourns, of
    # which those still there have the least part.
    integral, left = run.number() * 2000, run.sojourns().sum()
    assert left <= integral * (1 + 1e-12)
    if there == 0:
        assert left == pytest.approx(integral)


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
        return seen(Network((station,), seed=seed), 0, 300).number()

    assert number(load * slower) >= number(load) * (1 - 1e-9)


def test_the_formulas_themselves() -> None:
    assert erlang_b(1, 1.0) == 0.5
    # Exponential service in both views: M/M/1 by Erlang C and by Pollaczek-Khinchin.
    blocked = erlang_b(1, 0.8)
    assert blocked / (1 - 0.8 * (1 - blocked)) == pytest.approx(0.8)
    assert mean_value_analysis([1.0], [False], 3)[0] == pytest.approx(1.0)
