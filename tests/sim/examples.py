"""How many examples Hypothesis draws where one takes long: few in `make test`, more in sweeps."""

import pytest


def few_and_many(few: int, many: int) -> pytest.MarkDecorator:
    """The test's argument ``examples``: `make test` draws the same ones each time."""
    return pytest.mark.parametrize("examples", [few, pytest.param(many, marks=pytest.mark.sweep)])
