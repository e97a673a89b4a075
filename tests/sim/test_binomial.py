"""The binomial distribution against SciPy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from numatwin.sim.kernel.binomial import binomial

trials = st.integers(1, 200) | st.integers(1, 1_000_000)
# Of the smallest numbers that are normal SciPy raises an OverflowError.
chances = st.floats(1e-290, 1.0) | st.sampled_from([0.0, 1e-12, 0.5, 1.0 - 1e-12, 1.0])


@given(trials=trials, chance=chances)
def test_as_scipy_has_it(trials: int, chance: float) -> None:
    number, likely = binomial(trials, chance)
    assert likely.sum() == pytest.approx(1.0, rel=1e-14)
    expected = stats.binom.pmf(number, trials, chance)
    # SciPy's own error grows with the numbers that its logarithms cancel.
    assert likely == pytest.approx(expected, rel=1e-9, abs=1e-15)
    left_out = stats.binom.cdf(number[0] - 1, trials, chance)
    left_out += stats.binom.sf(number[-1], trials, chance)
    assert left_out < 1e-20


@given(trials=st.integers(1, 100_000), chance=st.floats(1e-6, 1.0), size=st.integers(1, 500))
def test_means_of_full_and_begun_buffers(trials: int, chance: float, size: int) -> None:
    """E ceil(N / size) is the sum of P(N > k size) over k >= 0."""
    number, likely = binomial(trials, chance)
    starts = np.arange(0, trials, size)
    expected = stats.binom.sf(starts, trials, chance).sum()
    assert float(likely @ -(-number // size)) == pytest.approx(expected, rel=1e-12)
