"""Looks at the host's state: what counts as calm, and when a figure is taken again."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest

from numatwin.validate.measure import quiet
from numatwin.validate.measure.quiet import LOOKS_FIRST, Look, Probe, Quiet, mostly_calm

FULL, NEAR = Look(np.array([10.0, 10.0]), np.array([45.0])), 45.0
ONE_CORE = Look(np.array([5.0, 5.0]), np.array([30.0]))
NEIGHBOUR = Look(np.array([10.0, 7.0]), np.array([45.0]))
FAR = Look(np.array([10.0, 10.0]), np.array([210.0]))


class Host:
    """Plays looks, the last one for ever."""

    def __init__(self, *looks: Look) -> None:
        self._looks: Iterator[Look] = iter(looks)
        self._last = FULL

    def __call__(self) -> Look:
        self._last = next(self._looks, self._last)
        return self._last


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiet, "PAUSE_S", 0.0)
    monkeypatch.setattr(quiet, "FRESH_S", 0.0)  # no look is spared


def looks(*others: Look) -> list[bool]:
    """Whether each of the others is calm, after as many full ones as are wanted first."""
    told = Quiet(Host(*[FULL] * LOOKS_FIRST, *others), 1.0, 1.0)
    for _ in range(LOOKS_FIRST):
        assert told.look()
    return [told.look() for _ in others]


def test_a_look_is_calm_where_all_have_their_adders_and_are_near() -> None:
    assert looks(FULL, ONE_CORE, NEIGHBOUR, FAR, FULL) == [True, False, False, False, True]


def test_ups_and_downs_of_a_clock_are_calm() -> None:
    slower = Look(np.array([9.3, 9.5]), np.array([52.0]))
    assert looks(slower) == [True]


def test_cores_that_mostly_share_are_not_calm_once_the_best_was_seen() -> None:
    """Even where only every sixth look is undisturbed; the threads of one core are nearest."""
    told = Quiet(Host(*[FULL, *[ONE_CORE] * 5] * 10, FULL, ONE_CORE), 1.0, 1.0)
    for _ in range(60):
        told.look()
    assert told.look()
    assert not told.look()


def test_without_pairs_the_adders_decide() -> None:
    alone = Look(np.array([10.0]), np.empty(0))
    told = Quiet(Host(*[alone] * 30, Look(np.array([6.0]), np.empty(0))), 1.0, 1.0)
    assert all(told.look() for _ in range(30))
    assert not told.look()


def test_how_near_the_first_two_are_at_best_is_remembered() -> None:
    told = Quiet(Host(*[FAR] * 10, *[FULL] * 5, *[FAR] * 10), 1.0, 1.0)
    assert told.near_ns == float("inf")
    for _ in range(25):
        told.look()
    assert told.near_ns == NEAR
    assert Quiet(Host(Look(np.array([10.0]), np.empty(0))), 1.0, 1.0).near_ns == float("inf")


def test_a_figure_is_taken_again_until_the_looks_around_it_are_calm() -> None:
    # Before, after: calm, shared; then far once more before it is calm; calm, calm.
    host = Host(*[FULL] * LOOKS_FIRST, FULL, ONE_CORE, FAR, FULL, FULL)
    taken: list[int] = []

    def measure() -> int:
        taken.append(len(taken))
        return taken[-1]

    assert Quiet(host, 10.0, 10.0).take(measure) == (1, True)
    assert taken == [0, 1]


def test_without_patience_the_first_figure_is_kept_and_told_apart() -> None:
    host = Host(*[FULL] * LOOKS_FIRST, *[ONE_CORE] * 10)
    told = Quiet(host, 0.0, 1.0)
    assert told.take(lambda: 7) == (7, False)
    assert told.patience_s <= 0.0
    assert told.restless > 0.0


def slowly(host: Host) -> Probe:
    """Looks that take a millisecond at least."""

    def probe() -> Look:
        time.sleep(1e-3)
        return host()

    return probe


def test_one_figure_does_not_use_up_the_patience_of_all() -> None:
    told = Quiet(slowly(Host(*[FULL] * LOOKS_FIRST, ONE_CORE)), 1e6, 0.01)
    taken: list[int] = []
    # All its patience goes into the wait before: nothing is left to take it again.
    assert told.take(lambda: taken.append(1)) == (None, False)
    assert len(taken) == 1
    assert 0.0 < told.spent_s < 1e5


def test_waits_between_takes_use_up_the_patience_of_a_figure() -> None:
    """Never calm after, and seldom before: looks of 20 ms and a round of them, however short the
    figure itself is.
    """
    restless = [*[ONE_CORE] * 9, FULL]
    told = Quiet(slowly(Host(*[FULL] * LOOKS_FIRST, *restless * 100)), 1e6, 0.02)
    assert told.take(lambda: None) == (None, False)
    assert told.looks - LOOKS_FIRST <= 20 + len(restless) + 2


def test_what_tells_how_restless_a_host_is_chooses_no_moments() -> None:
    """Three times, two looks each: no restless one is waited out, no figure is taken again."""
    told = Quiet(Host(*[FULL] * LOOKS_FIRST, FULL, FULL, FULL, ONE_CORE, FAR, FULL), 9.0, 9.0)
    taken = iter("abc")
    assert list(told.watch(lambda: next(taken), 3)) == [("a", True), ("b", False), ("c", False)]
    assert told.spent_s == 0.0


def test_calm_figures_count_alone_where_they_are_the_most() -> None:
    assert mostly_calm([("a", True), ("b", False), ("c", True)]) == (["a", "c"], True)
    assert mostly_calm([("a", True), ("b", False)]) == (["a", "b"], False)
    assert mostly_calm([("a", False)]) == (["a"], False)
