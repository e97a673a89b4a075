"""Means of a binomially distributed number in parts, against SciPy's distribution."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from numatwin.sim._kernel import binomial_parts

trials = st.integers(1, 200) | st.integers(1, 1_000_000)
# Of the smallest numbers that are normal SciPy raises an OverflowError.
chances = st.floats(1e-290, 1.0) | st.sampled_from([1e-12, 0.5, 1.0 - 1e-12, 1.0])


@given(trials=trials, chance=chances, size=st.integers(1, 500))
def test_parts_are_the_sum_of_tails(trials: int, chance: float, size: int) -> None:
    """E ceil(N / size) is the sum of P(N > k size) over k >= 0."""
    parts, _, _ = binomial_parts(trials, size, np.array([chance]))
    starts = np.arange(0, trials, size)
    assert parts[0] == pytest.approx(stats.binom.sf(starts, trials, chance).sum(), rel=1e-9)


@given(trials=st.integers(1, 2_000), chance=chances, size=st.integers(1, 500))
def test_as_summed_over_all_numbers(trials: int, chance: float, size: int) -> None:
    number = np.arange(trials + 1)
    likely = stats.binom.pmf(number, trials, chance)
    full, rest = number // size, number % size
    expected = (
        likely @ (full + (rest > 0)),
        likely @ (full * float(size) ** 2 + rest**2),
        likely @ (rest > 0),
    )
    found = [float(means[0]) for means in binomial_parts(trials, size, np.array([chance]))]
    # SciPy's own error grows with the numbers that its logarithms cancel.
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_by_hand() -> None:
    """Two coins in parts of 2: none, one or both with 1/4, 1/2, 1/4; of chances 0 and 1 as well."""
    parts, squares, begun = binomial_parts(2, 2, np.array([0.0, 0.5, 1.0]))
    assert parts.tolist() == [0.0, 0.75, 1.0]
    assert squares.tolist() == [0.0, 1.5, 4.0]
    assert begun.tolist() == [0.0, 0.5, 0.0]


@pytest.mark.parametrize(
    ("trials", "size", "chance", "named"),
    [(0, 1, 0.5, "trials"), (1, 0, 0.5, "size"), (1, 1, 1.1, "chance"), (1, 1, np.nan, "chance")],
)
def test_refuses(trials: int, size: int, chance: float, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        binomial_parts(trials, size, np.array([chance]))
