"""The one exception for bad input: what its line says, all the way to the user."""

import copy
import pickle

import pytest
import simpy

from numatwin.inputs import InputError


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (InputError("wrong"), "wrong"),
        (InputError("wrong", "a.yaml"), "a.yaml: wrong"),
        (InputError("wrong", "a.yaml", 3, 4), "a.yaml:3:4: wrong"),
        (InputError("wrong", token="x", expected="y"), "wrong: found 'x', expected y"),
        (InputError("wrong", "a.yaml", expected="y"), "a.yaml: wrong: expected y"),
        (InputError("two\nlines\x1b[1m", token="x" * 99), f"two lines [1m: found '{'x' * 59}…'"),
    ],
)
def test_one_line(error: InputError, line: str) -> None:
    assert str(error) == line
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert again == error
        assert str(again) == line


def test_whole_through_a_simulation() -> None:
    """SimPy raises a copy of what a process raises."""

    def process(env: simpy.Environment) -> simpy.events.ProcessGenerator:
        yield env.timeout(1)
        raise InputError("wrong", "a.py", 2, token="x", expected="a list")

    env = simpy.Environment()
    env.process(process(env))
    with pytest.raises(InputError, match=r"^a.py:2: wrong: found 'x', expected a list$"):
        env.run()
