"""Steps of series with known answers."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from numatwin.sim.kernel.arrays import Floats
from numatwin.sim.run.recovery import RARE, noise_of, steps


def even(values: Floats) -> Floats:
    return steps(values, np.ones(len(values)))


def test_without_noise_a_series_is_its_own_steps() -> None:
    values = np.array([3.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0])
    assert even(values) is values
    rising = np.linspace(0.0, 1.0, 50)
    assert even(rising) == pytest.approx(rising, abs=0.01)


def test_noise_is_found_beside_a_rise_and_a_step() -> None:
    """The standard deviation is 2 in all three."""
    draws, each = 2.0 * np.random.default_rng(1).standard_normal(4_000), np.ones(4_000)
    assert noise_of(draws, each) == pytest.approx(2.0, rel=0.1)
    assert noise_of(draws + np.linspace(0.0, 900.0, 4_000), each) == pytest.approx(2.0, rel=0.1)
    assert noise_of(draws + 50.0 * (np.arange(4_000) > 3_000), each) == pytest.approx(2.0, rel=0.1)


def test_what_settles_is_exact() -> None:
    values = np.array([1.0, 5.0, 2.0, 8.0, 3.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0])
    assert noise_of(values, np.ones(11)) == 0.0
    # In time, a single value is the second half.
    assert noise_of(values[:6], np.array([1.0, 1.0, 1.0, 1.0, 1.0, 9.0])) == 0.0
    assert noise_of(values[:6], np.ones(6)) == 0.0


def test_steps_are_the_means_of_their_values() -> None:
    rng = np.random.default_rng(2)
    values = np.repeat([10.0, 20.0, 15.0], [10, 30, 40]) + 0.5 * rng.standard_normal(80)
    found = even(values)
    assert np.flatnonzero(np.diff(found)).tolist() == [9, 39]
    means = [values[:10].mean(), values[10:40].mean(), values[40:].mean()]
    assert found == pytest.approx(np.repeat(means, [10, 30, 40]))


def test_values_count_by_their_lengths() -> None:
    rng = np.random.default_rng(3)
    values = 10.0 + rng.standard_normal(40)
    lengths = rng.uniform(0.5, 2.0, 40)
    assert steps(values, lengths) == pytest.approx(np.average(values, weights=lengths))


@pytest.mark.parametrize("seed", range(20))
def test_no_other_steps_cost_less(seed: int) -> None:
    """Against all ways to cut 10 values."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(10) + 8.0 * (np.arange(10) > rng.integers(0, 10))
    lengths = rng.uniform(0.5, 2.0, 10)
    weights = lengths / lengths.mean()
    each = RARE * 2.0 * noise_of(values, lengths) ** 2 * np.log(10)

    def cost(heights: Floats, count: int) -> float:
        return float((weights * (values - heights) ** 2).sum() + each * count)

    def cut(at: tuple[int, ...]) -> float:
        edges = (0, *at, 10)
        heights = np.concatenate(
            [
                np.full(b - a, np.average(values[a:b], weights=weights[a:b]))
                for a, b in pairwise(edges)
            ]
        )
        return cost(heights, len(at) + 1)

    least = min(cut(at) for count in range(10) for at in combinations(range(1, 10), count))
    found = steps(values, lengths)
    assert cost(found, 1 + int(np.count_nonzero(np.diff(found)))) == pytest.approx(least)
