"""Published results given the other results of their source: never by their own figure."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from numatwin.validate import published
from numatwin.validate.published import PUBLISHED, given_others, shares, source_of, stored
from numatwin.validate.results import Condition

RESULT = "hana-thresholds-32s"


def test_a_figure_has_no_part_in_its_own_prediction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were it ten times as much, only the other results of its source would be predicted anew."""
    before = given_others()
    result = PUBLISHED[RESULT]
    assert isinstance(result.value, float)
    monkeypatch.setitem(PUBLISHED, RESULT, replace(result, value=10.0 * result.value))
    after = given_others.__wrapped__()
    moved = {id_ for id_ in after if after[id_] != before[id_]}
    assert RESULT not in moved
    assert {source_of(id_) for id_ in moved} == {source_of(RESULT)}


def test_stored_draws_are_of_all_results_in_numbers() -> None:
    numbers = {id_ for id_, one in PUBLISHED.items() if isinstance(one.value, float)}
    assert numbers - stored().keys() <= {"eris-fig12-scan-links"}  # predicted as 0
    assert all(one.interval[1] <= 1 for k, one in given_others().items() if PUBLISHED[k].at_most)
    assert all(np.isfinite(one.draws).sum() >= 24 for one in stored().values())
    assert 0.8 <= shares()["in the interval, given the others"] <= 1.0


def test_words_weigh_the_other_words_of_their_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand: draws that have another one wrong count a ninth."""
    words = {"x-a": [1.0, 1.0, 0.0, 0.0], "x-b": [1.0, 1.0, 0.0, 0.0], "y-c": [0.0, 1.0, 1.0, 1.0]}
    monkeypatch.setattr(published, "stored", dict)
    monkeypatch.setattr(
        published, "stored_words", lambda: {id_: np.array(one) for id_, one in words.items()}
    )
    found = published.words_given.__wrapped__()
    assert found["x-a"] == pytest.approx((0.5, 0.9))
    assert found["y-c"] == pytest.approx((0.75, 0.75))


def test_draws_take_what_a_source_leaves_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    from published_draws import DrawnRuns

    choices = {size: (f"system.page_size={size}",) for size in ("4 KiB", "2 MiB")}
    open_ = Condition(name="pages", choices=choices, scenarios="eris-fig1.*")
    runs = DrawnRuns("flow", [open_], 8)
    assert runs.chosen("pages", "as usual") == "as usual"
    taken = []
    for runs.draw in range(8):
        taken.append(runs.chosen("pages", "as usual"))
        expected = [f"system.page_size={taken[-1]}"]
        assert list(runs._settings("eris-fig11")) == expected
        assert list(runs._settings("eris-fig9")) == []
    assert taken.count("4 KiB") == 4
