"""Verdicts: the regions of an interval, known answers, how often they are wrong."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from numatwin.sim.statistics import Sample
from numatwin.validate.verdicts import ALPHA, judged, looks_up_to, sample, verdict_of


@pytest.mark.parametrize(
    ("low", "high", "tolerance", "verdict"),
    [
        (-0.05, -0.03, 0.02, "worse"),
        (0.03, 0.05, 0.02, "better"),
        (-0.01, 0.015, 0.02, "no difference"),
        (-0.02, 0.02, 0.02, "no difference"),
        (-0.03, 0.0, 0.02, "undecided"),
        (-0.03, -0.02, 0.02, "undecided"),
        (-0.03, 0.03, 0.02, "undecided"),
        (0.0, 0.0, 0.0, "no difference"),
        (-1e-9, -1e-9, 0.0, "worse"),
    ],
)
def test_regions(low: float, high: float, tolerance: float, verdict: str) -> None:
    assert verdict_of(low, high, tolerance) == verdict


@given(st.floats(-1, 1, allow_nan=False), st.floats(0, 1), st.floats(0, 0.5), st.booleans())
def test_what_is_better_the_other_way_round_is_worse(
    middle: float, half: float, tolerance: float, higher: bool
) -> None:
    opposite = {"better": "worse", "worse": "better"}
    low, high = middle - half, middle + half
    verdict = verdict_of(low, high, tolerance)
    assert verdict_of(-high, -low, tolerance) == opposite.get(verdict, verdict)


def test_exact_figures_have_exact_differences() -> None:
    found = judged(
        Sample(100.0), Sample(97.0), higher_is_better=True, tolerance=0.02, looks=1, paired=False
    )
    assert found.verdict == "worse"
    assert found.relative is not None
    assert found.relative.value == pytest.approx(-0.03)
    less = judged(
        Sample(100.0), Sample(97.0), higher_is_better=False, tolerance=0.02, looks=1, paired=False
    )
    assert less.verdict == "better"


# Differences 1, 2, 3 of 100, 100, 100: mean 2%, standard error 1 / sqrt(3)%, t of 2 degrees.
def test_pairs_by_hand() -> None:
    found = judged(
        sample([100.0, 100.0, 100.0], False),
        sample([101.0, 102.0, 103.0], False),
        higher_is_better=True,
        tolerance=0.0,
        looks=1,
        paired=True,
    )
    half = stats.t.ppf(1 - ALPHA / 2, 2) * 0.01 / math.sqrt(3)
    assert found.relative is not None
    assert found.relative.high == pytest.approx(0.02 + half, rel=1e-2)
    assert found.verdict == "undecided"


def test_equal_pairs_are_equal() -> None:
    values = sample([3.0, 5.0], False)
    found = judged(values, values, higher_is_better=True, tolerance=0.0, looks=9, paired=True)
    assert found.verdict == "no difference"


def test_no_reference_no_verdict() -> None:
    found = judged(
        Sample(0.0), Sample(1.0), higher_is_better=True, tolerance=0.1, looks=1, paired=False
    )
    assert found.verdict == "undecided"
    both = judged(
        Sample(0.0), Sample(0.0), higher_is_better=True, tolerance=0.1, looks=1, paired=False
    )
    assert both.verdict == "no difference"


def test_looks_rise_up_to_the_last() -> None:
    assert looks_up_to(20) == [2, 3, 5, 8, 12, 18, 20]
    assert looks_up_to(2) == [2]
    assert looks_up_to(5_000)[-1] == 5_000


RUNS, MOST = 4_000, 20


def verdicts(generator: np.random.Generator, loss: float, tolerance: float) -> list[str]:
    """Of runs of the whole procedure on normal figures with a spread of 1%, not paired."""
    found: list[str] = []
    looks = looks_up_to(MOST)
    for _ in range(RUNS):
        reference = generator.normal(100.0, 1.0, MOST)
        values = generator.normal(100.0 * (1 - loss), 1.0, MOST)
        for look in looks:
            verdict = judged(
                sample(list(reference), False),
                sample(list(values[:look]), False),
                higher_is_better=True,
                tolerance=tolerance,
                looks=len(looks),
                paired=False,
            ).verdict
            if verdict != "undecided":
                break
        found.append(verdict)
    return found


@pytest.mark.parametrize("loss", [0.0, 0.02])
def test_a_loss_within_the_tolerance_seldom_closes_the_gate(loss: float) -> None:
    """The worst true loss that must not count is the tolerance itself: at most ALPHA wrong."""
    wrong = verdicts(np.random.default_rng(1), loss, 0.02).count("worse")
    assert stats.binomtest(wrong, RUNS, ALPHA, alternative="greater").pvalue > 1e-3, wrong


def test_a_loss_of_3_percent_is_found() -> None:
    found = verdicts(np.random.default_rng(2), 0.03, 0.01).count("worse")
    assert stats.binomtest(found, RUNS, 0.95, alternative="less").pvalue > 1e-3, found
