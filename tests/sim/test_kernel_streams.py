"""The kernel's random streams and draws: equal to NumPy's and to those of workloads/."""

from collections.abc import Callable
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from numatwin.sim._kernel import Durations, KeyDraws, Stream
from numatwin.sim.kernel.streams import stream
from numatwin.workloads.keys import HotRange, KeyDistribution, MovingHotRange, Recorded, Uniform
from numatwin.workloads.zipf import Zipf

pytestmark = pytest.mark.kernel

SEED = 7
words = st.integers(0, 2**64 - 1)


@settings(max_examples=50)
@given(words, words)
def test_words_and_uniforms_are_those_of_numpy(key0: int, key1: int) -> None:
    philox = np.random.Philox(key=np.array([key0, key1], dtype=np.uint64))
    ours = Stream(key0, key1)
    assert [ours.bits() for _ in range(9)] == philox.random_raw(9).tolist()
    philox = np.random.Philox(key=np.array([key0, key1], dtype=np.uint64))
    numbers = np.random.Generator(philox).random(20).tolist()
    ours = Stream(key0, key1)
    assert [ours.uniform() for _ in range(10)] + ours.uniforms(10).tolist() == numbers


def test_named_streams_differ_and_repeat() -> None:
    def first(*name: object) -> int:
        return stream(*name).bits()  # type: ignore[arg-type]

    names = [(1, 0, "a"), (2, 0, "a"), (1, 1, "a"), (1, 0, "b")]
    assert len({first(*name) for name in names}) == 4
    assert first(1, 0, "a") == first(1, 0, "a")


@given(words, st.integers(0, 13), st.integers(0, 13))
def test_words_that_are_taken_back_come_again(key: int, kept: int, back: int) -> None:
    draws = Stream(key, 1)
    words = [draws.bits() for _ in range(kept + back)]
    draws.take_back(back)
    assert [draws.bits() for _ in range(back)] == words[kept:]
    with pytest.raises(ValueError, match="count: expected at most what was drawn"):
        draws.take_back(kept + back + 1)


def uniforms(count: int) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    return stream(SEED, 0, "draws").uniforms(count)


# The kernel's own logarithm against NumPy's: a unit in the last place, each.
def test_exponential_is_the_logarithm_of_the_uniform() -> None:
    draws = stream(SEED, 0, "draws")
    ours = np.array([draws.exponential(1.0) for _ in range(100_000)])
    exact = -np.log1p(-uniforms(100_000))
    assert np.all(np.abs(ours - exact) <= np.spacing(exact) * 2)
    assert Stream(1, 2).exponential(8.0) == 8.0 * Stream(1, 2).exponential()


def test_below_is_even() -> None:
    draws = stream(SEED, 0, "below")
    counts = np.bincount([draws.below(7) for _ in range(70_000)], minlength=7)
    assert stats.chisquare(counts).pvalue > 1e-4, f"seed {SEED}"
    assert draws.below(1) == 0
    with pytest.raises(ValueError, match="n: expected at least 1"):
        draws.below(0)


@pytest.mark.parametrize(
    ("durations", "cdf"),
    [
        (Durations.exponential(1e9), stats.expon(scale=1e9).cdf),
        (Durations.uniform(10**6, 3 * 10**9), stats.uniform(1e6, 3e9 - 1e6).cdf),
    ],
)
def test_durations_have_their_distribution(
    durations: Durations, cdf: Callable[[float], float]
) -> None:
    draws = stream(SEED, 0, "durations")
    found = [durations.draw(draws) for _ in range(20_000)]
    assert stats.kstest(found, cdf).pvalue > 1e-4, f"seed {SEED}"
    error = stats.sem(found)
    assert abs(np.mean(found) - durations.mean_ps) < 4 * error


def test_durations_that_are_always_the_same_take_no_word() -> None:
    fixed = Durations.deterministic(42)
    before = Stream(3, 4)
    assert [fixed.draw(before), fixed.draw(before)] == [42, 42]
    assert before.bits() == Stream(3, 4).bits()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Durations.deterministic(-1), "from 0 to 2"),
        (lambda: Durations.exponential(float("nan")), "from 0 to 2"),
        (lambda: Durations.exponential(1e30), "from 0 to 2"),
        (lambda: Durations.uniform(5, 4), "high_ps"),
        (lambda: KeyDraws.zipf(0, 1.0), "keys"),
        (lambda: KeyDraws.zipf(5, 0.0), "exponent"),
        (lambda: KeyDraws.piecewise(np.array([0, 5, 5]), np.array([0.5, 0.5])), "breaks"),
        (lambda: KeyDraws.piecewise(np.array([0, 5]), np.array([0.0])), "mass"),
        (lambda: KeyDraws.zipf(5, 1.0).at(np.array([1.0])), "uniforms"),
    ],
)
def test_values_out_of_range_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def key_draws(keys: KeyDistribution, time_s: float = 0.0) -> KeyDraws:
    if isinstance(keys, Zipf):
        return KeyDraws.zipf(keys.keys, keys.exponent, scattered=keys.scattered)
    density = keys.density(time_s)
    return KeyDraws.piecewise(density.breaks, density.mass)


PIECEWISE: list[KeyDistribution] = [
    Uniform(1000),
    Uniform(10**12),
    HotRange(10**6, 1000, 5000, 0.8),
    HotRange(100, 0, 10, 1.0),
    HotRange(100, 90, 100, 0.5),
    MovingHotRange(1000, 100, 200, step=10, every_s=1.0),
    Recorded(100, np.array([3, 10, 50]), np.array([5, 20, 51]), np.array([1.0, 0.0, 4.0])),
]


@pytest.mark.parametrize("keys", PIECEWISE)
def test_piecewise_keys_are_those_of_the_workload(keys: KeyDistribution) -> None:
    edges = [0.0, 0.1, 0.2, 0.5, 0.8, np.nextafter(1.0, 0.0)]
    numbers = np.concatenate([uniforms(20_000), edges])
    found = key_draws(keys, time_s=2.0).at(numbers)
    assert found.tolist() == keys.draw(numbers, 2.0).tolist()


@pytest.mark.parametrize("keys", [1, 2, 1023, 1024, 1025, 5000, 10**6, 10**9])
@pytest.mark.parametrize("exponent", [0.2, 0.99, 1.0, 1.3, 2.0, 6.0])
def test_zipf_ranks_are_those_of_the_workload(keys: int, exponent: float) -> None:
    numbers = np.concatenate([uniforms(20_000), [0.0, np.nextafter(1.0, 0.0)]])
    zipf = Zipf(keys, exponent, scattered=False)
    found, expected = key_draws(zipf).at(numbers), zipf.draw(numbers)
    # The two sum with different roundings: a step may lie elsewhere by 1e-13, relative.
    below, above = (zipf.draw(np.clip(numbers * f, 0, 1)) for f in (1 - 1e-13, 1 + 1e-13))
    assert np.all((below <= found) & (found <= above))
    assert np.mean(found != expected) <= 1e-3
    # The greatest number below 1 is that close to many steps, where the exponent is large.
    assert np.max(np.abs(found - expected)[:-1]) <= 1


# At the steps themselves, from both sides: the table's end, and ranks far beyond it.
@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**7 - 2), st.sampled_from([0.3, 0.8, 1.0, 1.1, 1.6]))
def test_zipf_steps_lie_where_the_sums_say(rank: int, exponent: float) -> None:
    keys = 10**7
    zipf = Zipf(keys, exponent, scattered=False)
    step = float(zipf.shares([0, rank + 1])[0])  # ranks 0 … rank lie below
    found = key_draws(zipf).at(np.array([step * (1 - 1e-12), min(step * (1 + 1e-12), 1 - 1e-16)]))
    width = float(zipf.shares([rank, rank + 1])[0])
    if width > 1e-11 * step:
        assert found.tolist() == [rank, rank + 1]


def test_scattered_zipf_keys_are_those_of_the_workload() -> None:
    for keys in (1, 2, 3, 1000, 10**6 + 7):
        zipf = Zipf(keys, 0.9)
        assert key_draws(zipf).at(uniforms(5000)).tolist() == zipf.draw(uniforms(5000)).tolist()


def test_drawn_keys_have_the_shares_of_the_workload() -> None:
    zipf = Zipf(10**5, 1.0, scattered=False)
    draws, numbers = key_draws(zipf), stream(SEED, 0, "keys")
    found = np.array([draws.draw(numbers) for _ in range(50_000)])
    bounds = np.array([0, 1, 2, 5, 20, 100, 1000, 1024, 1025, 3000, 10**4, 10**5])
    counts = np.histogram(found, bounds)[0]
    expected = zipf.shares(bounds) * len(found)
    seen = expected > 5
    merged = np.append(counts[seen], counts[~seen].sum())
    known = np.append(expected[seen], expected[~seen].sum())
    assert stats.chisquare(merged, known, sum_check=False).pvalue > 1e-4, f"seed {SEED}"
    assert ceil(found.max()) < draws.keys
