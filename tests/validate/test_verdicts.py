"""Verdicts: the regions of an interval, known answers, how often they are wrong."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from numatwin.sim.run.statistics import Sample
from numatwin.validate.regress import (
    ALPHA,
    WELCH_MIN,
    Difference,
    confidence_of,
    judged,
    looks_up_to,
    sample,
    verdict_of,
)


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


@settings(deadline=None)
@given(st.floats(-1, 1, allow_nan=False), st.floats(0, 1), st.floats(0, 0.5), st.booleans())
def test_what_is_better_the_other_way_round_is_worse(
    middle: float, half: float, tolerance: float, higher: bool
) -> None:
    opposite = {"better": "worse", "worse": "better"}
    low, high = middle - half, middle + half
    verdict = verdict_of(low, high, tolerance)
    assert verdict_of(-high, -low, tolerance) == opposite.get(verdict, verdict)


def of(
    reference: Sample,
    value: Sample,
    tolerance: float = 0.0,
    *,
    higher: bool = True,
    paired: bool = False,
    grain: float = 0.0,
) -> Difference:
    """The verdict of one look of one check."""
    return judged(
        reference,
        value,
        higher_is_better=higher,
        tolerance=tolerance,
        confidence=confidence_of(1),
        paired=paired,
        grain=grain,
    )


def drawn(*values: float) -> Sample:
    return sample(values, False)


def test_exact_figures_have_exact_differences() -> None:
    found = of(Sample(100.0), Sample(97.0), 0.02)
    assert found.verdict == "worse"
    assert found.relative is not None
    assert found.relative.value == pytest.approx(-0.03)
    assert of(Sample(100.0), Sample(97.0), 0.02, higher=False).verdict == "better"


# Differences 1, 2, 3 of 100, 100, 100: mean 2%, standard error 1 / sqrt(3)%, t of 2 degrees.
def test_pairs_by_hand() -> None:
    found = of(drawn(100.0, 100.0, 100.0), drawn(101.0, 102.0, 103.0), paired=True)
    half = stats.t.ppf(1 - ALPHA / 2, 2) * 0.01 / math.sqrt(3)
    assert found.relative is not None
    assert found.relative.high == pytest.approx(0.02 + half, rel=1e-2)
    assert found.verdict == "undecided"


# Both have the variance 2.5 of five values, so that Welch's degrees of freedom are 8 and the
# difference 1 of 100 has the error sqrt(2.5 / 5 + 2.5 / 5) = 1 (of the ratio nearly so).
def test_two_samples_by_hand() -> None:
    first, second = drawn(98.0, 99.0, 100.0, 101.0, 102.0), drawn(99.0, 100.0, 101.0, 102.0, 103.0)
    found = of(first, second)
    assert found.relative is not None
    half = found.relative.high - found.relative.value
    assert half == pytest.approx(stats.t.ppf(1 - ALPHA / 2, 8) * 0.01, rel=2e-2)


def test_equal_pairs_are_equal() -> None:
    assert of(drawn(3.0, 5.0), drawn(3.0, 5.0), paired=True).verdict == "no difference"


def test_few_independent_values_tell_nothing() -> None:
    low, high = drawn(1.0, 1.0, 1.0, 1.0), drawn(2.0, 2.0, 2.0, 2.0)
    assert of(low, high).verdict == "undecided"
    assert of(low, high, paired=True).verdict == "better"


# Two replications that both fall one bin higher say nothing sure about half a bin.
def test_values_that_agree_are_no_surer_than_their_steps() -> None:
    before, after = drawn(100.0, 100.0), drawn(99.0, 99.0)
    assert of(before, after, paired=True).verdict == "worse"
    assert of(before, after, paired=True, grain=1.0).verdict == "undecided"
    assert of(before, after, paired=True, grain=0.5).verdict == "worse"
    assert of(before, before, 0.01, paired=True, grain=0.9).verdict == "no difference"


@pytest.mark.parametrize(
    ("value", "higher", "verdict"),
    [(1.0, True, "better"), (1.0, False, "worse"), (0.0, True, "no difference")],
)
def test_of_nothing_there_is_no_part(value: float, higher: bool, verdict: str) -> None:
    """What was 0 and is not any more is beyond each tolerance: a gate must not be blind there."""
    assert of(Sample(0.0), Sample(value), 0.5, higher=higher).verdict == verdict
    nothing, drawn_ = drawn(0.0, 0.0), drawn(value, value)
    assert of(nothing, drawn_, 0.5, higher=higher, paired=True).verdict == verdict


def test_of_nothing_a_step_is_nothing_sure() -> None:
    assert of(Sample(0.0), Sample(1.0), grain=1.0).verdict == "undecided"
    assert of(drawn(0.0, 0.0), drawn(0.0, 1.0), paired=True).verdict == "undecided"


def test_all_lost_is_worse() -> None:
    assert of(drawn(5.0, 6.0), drawn(0.0, 0.0), 0.5, paired=True).verdict == "worse"


@settings(deadline=None)
@given(
    st.lists(st.floats(1.0, 2.0), min_size=5, max_size=9),
    st.lists(st.floats(1.0, 2.0), min_size=5, max_size=9),
    st.floats(0, 0.5),
    st.integers(-30, 30),
)
def test_units_do_not_matter(
    first: list[float], second: list[float], tolerance: float, power: int
) -> None:
    unit = 2.0**power
    there = of(drawn(*first), drawn(*second), tolerance)
    scaled = of(
        drawn(*(unit * one for one in first)), drawn(*(unit * one for one in second)), tolerance
    )
    assert scaled.verdict == there.verdict


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.floats(1.0, 2.0), st.floats(1.0, 2.0)), min_size=2, max_size=9),
    st.floats(0, 0.5),
    st.integers(2, 50),
)
def test_more_checks_never_make_surer(
    pairs: list[tuple[float, float]], tolerance: float, checks: int
) -> None:
    first, second = (drawn(*side) for side in zip(*pairs, strict=True))

    def verdict(confidence: float) -> str:
        return judged(
            first,
            second,
            higher_is_better=True,
            tolerance=tolerance,
            confidence=confidence,
            paired=True,
        ).verdict

    of_many = verdict(confidence_of(3, checks))
    assert of_many in ("undecided", verdict(confidence_of(3)))


def test_looks_rise_up_to_the_last() -> None:
    assert looks_up_to(20) == [2, 3, 5, 8, 12, 18, 20]
    assert looks_up_to(20, 5) == [5, 8, 12, 18, 20]
    assert looks_up_to(2) == [2]
    assert looks_up_to(5_000)[-1] == 5_000


RUNS, MOST = 4_000, 20


def verdicts(generator: np.random.Generator, loss: float, tolerance: float) -> list[str]:
    """Of runs of the whole procedure on normal figures with a spread of 1%, not paired."""
    found: list[str] = []
    looks = looks_up_to(MOST, WELCH_MIN)
    for _ in range(RUNS):
        reference = generator.normal(100.0, 1.0, MOST)
        values = generator.normal(100.0 * (1 - loss), 1.0, MOST)
        for look in looks:
            verdict = judged(
                sample(list(reference), False),
                sample(list(values[:look]), False),
                higher_is_better=True,
                tolerance=tolerance,
                confidence=confidence_of(len(looks)),
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
