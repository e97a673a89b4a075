"""What is said of inputs that are refused."""

from collections.abc import Callable
from typing import ParamSpec

import pytest

from numatwin.inputs import InputError

P = ParamSpec("P")


def told_by(call: Callable[P, object], *words: P.args, **options: P.kwargs) -> str:
    """The one line in which the call refuses what it is given."""
    with pytest.raises(InputError) as caught:
        call(*words, **options)
    told = str(caught.value)
    assert "\n" not in told
    return told
