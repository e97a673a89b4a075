"""The best run of a study under doubt, by hand, and of a small study."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numatwin.sim.run.decision import ratio_errors
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.run.uncertainty import DRAWS
from numatwin.sim.studies.regret import Doubted, choices


def test_two_points_by_hand() -> None:
    """
    draw          1    2    3    4   regret, of a best of (120 + 110 + 105 + 125) / 4 = 115
    point 3     100  110   90  100   (20 +  0 + 15 + 25) / 4 = 15
    point 5     120   80  105  125   ( 0 + 30 +  0 +  0) / 4 = 7.5
    """
    found = choices([3, 5], np.array([[100.0, 110, 90, 100], [120, 80, 105, 125]]), least=False)
    assert [one.point for one in found] == [5, 3]
    assert [one.probability for one in found] == [0.75, 0.25]
    assert [one.regret for one in found] == pytest.approx([7.5 / 115, 15 / 115])
    least = choices([3, 5], np.array([[100.0, 110, 90, 100], [120, 80, 105, 125]]), least=True)
    assert [one.point for one in least] == [3, 5]


def test_the_best_on_average_need_not_be_the_most_probable() -> None:
    """One that is a little better in three draws of four, and far worse in the last."""
    found = choices([0, 1], np.array([[102.0, 102, 102, 10], [100, 100, 100, 100]]), least=False)
    assert [(one.point, one.probability) for one in found] == [(1, 0.25), (0, 0.75)]


def test_the_models_error_alone_puts_no_run_before_a_better_one() -> None:
    """Each is off by the same errors in an order of its own: on average only values differ."""
    record = run_scenario(load_scenario("eris-fig8-amd", plane="flow"))
    sure, exact, values = np.ones(DRAWS), np.zeros(1), (99.9, 100.0, 99.0)
    drawn = [Doubted(k, v, sure, exact, np.ones(1), record).drawn for k, v in enumerate(values)]
    mean = np.exp(ratio_errors(record, "lookup") / 2.0**0.5).mean()
    assert [one.mean() for one in drawn] == pytest.approx([mean * value for value in values])
    found = choices([0, 1, 2], np.array(drawn), least=False)
    assert [one.point for one in found] == [1, 0, 2]
    assert 1 / 3 < found[0].probability < 1 / 2


@given(st.lists(st.lists(st.floats(1, 100), min_size=4, max_size=4), min_size=1, max_size=5))
def test_laws(values: list[list[float]]) -> None:
    found = choices(list(range(len(values))), np.array(values), least=False)
    assert sum(one.probability for one in found) == pytest.approx(1.0)
    assert all(one.regret >= 0.0 for one in found)
    assert [one.regret for one in found] == sorted(one.regret for one in found)
