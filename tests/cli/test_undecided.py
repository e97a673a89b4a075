"""Estimates that cannot yet be distinguished from zero, and how many points would do."""

import pytest

from numatwin.cli.study_answers import Undecided


def undecided(*rows: tuple[str, float, float]) -> Undecided:
    return Undecided(128, 0.01, {"alone": list(rows)})


def test_errors_fall_with_the_root_of_points() -> None:
    """An error of three times the index takes 9 times the points: 1,152, so 2,048."""
    found = undecided(("a", 0.5, 0.1), ("b", -0.02, 0.06))
    assert found.as_json() == {"alone": ["b"], "points": 2048}


def test_an_index_of_nearly_nothing_need_not_be_told_from_zero() -> None:
    assert undecided(("a", 0.5, 0.1), ("b", 0.001, 0.009)).as_json() is None
    found = undecided(("b", 0.0, 0.02))
    assert found.enough == 512


@pytest.mark.parametrize(("half", "enough"), [(0.1, None), (0.2, 128), (0.2000001, 256)])
def test_at_the_bound(half: float, enough: int | None) -> None:
    found = undecided(("a", 0.2, half))
    assert found.as_json() == (
        {"alone": ["a"], "points": enough} if enough and half > 0.2 else None
    )
