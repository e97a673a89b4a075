"""What a policy may order: every wrong command is told in one line that names the policy."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from known import known
from policy_cases import column, index, observed
from refusals import told_by

from numatwin.inputs import InputError
from numatwin.sim.control.family import decide
from numatwin.sim.control.policy import NoPolicy
from numatwin.sim.systems.eris.balancing import BALANCING, MovingAverage, OneShot
from numatwin.sim.systems.eris.commands import BalancingObservation, Rebalance, check_commands
from numatwin.sim.systems.registry import systems

SEEN = observed(
    index=index([1.0, 2.0, 3.0]),  # bounds 0 100 200 300
    column=column([10.0, 20.0]),
    busy=index([1.0, 2.0], balancing=True),
)
ANY: Any = None


def test_policies_by_name() -> None:
    assert list(BALANCING.titles) == ["none", "one-shot", "ma-1", "ma-8"]
    assert all(BALANCING.titles.values())
    families = {one.name: [family.name for family in one.families] for one in systems()}
    assert families == {
        "eris": ["balancing"],
        "commits": [],
        "tasks": ["placer", "stealing", "cores", "access-path"],
        "joins": ["operator"],
    }


@pytest.mark.parametrize("name", BALANCING.titles)
def test_every_name_that_is_listed_can_be_made(name: str) -> None:
    assert BALANCING.bundled(name, {}).decide(observed()) == ()


def test_names_and_options_reach_the_policy() -> None:
    assert BALANCING.bundled("none", {"threshold": 0.2}) == NoPolicy()
    assert BALANCING.bundled("one-shot", {"threshold": 0.2}) == OneShot(0.2)
    assert BALANCING.bundled("ma-12", {"threshold": 0.2}) == MovingAverage(0.2, 12)
    assert BALANCING.bundled("ma-8", {}) == MovingAverage(k=8)


@pytest.mark.parametrize("name", ["ma-0", "ma-", "ma", "ma-1.5", "ma--1", "ma-08", "MA-8", "", "x"])
def test_unknown_name(name: str) -> None:
    assert f"unknown policy: found {name!r}, expected" in told_by(BALANCING.bundled, name, {})


def test_commands_that_fit() -> None:
    wanted_bounds, wanted_sizes = np.array([0, 0, 150, 300]), np.array([29.5, 0.5])
    commands = check_commands(
        [Rebalance("index", bounds=wanted_bounds), Rebalance("column", sizes=wanted_sizes)],
        SEEN,
        "P",
    )
    assert [command.object for command in commands] == ["index", "column"]
    assert commands[0].bounds is not None
    assert commands[0].bounds.tolist() == [0, 0, 150, 300]
    assert commands[0].bounds.dtype == np.int64
    assert commands[1].sizes is not None
    assert commands[1].sizes.tolist() == [29.5, 0.5]
    # A policy that goes on using its arrays changes nothing.
    wanted_bounds[1] = 99
    wanted_sizes[0] = 99
    assert commands[0].bounds[1] == 0
    assert commands[1].sizes[0] == 29.5


def test_lists_and_whole_floats_will_do() -> None:
    bounds: Any = [0.0, 100, 1.5e2, 300]
    sizes: Any = (15, 15)
    commands = check_commands(
        (Rebalance("index", bounds=bounds), Rebalance("column", sizes=sizes)), SEEN, "P"
    )
    assert known(commands[0].bounds).tolist() == [0, 100, 150, 300]
    assert known(commands[1].sizes).dtype == np.float64


def test_sums_may_be_off_by_rounding() -> None:
    third = 30.0 / 7
    sizes = np.array([3 * third, 4 * third + 1e-9])
    assert len(check_commands([Rebalance("column", sizes=sizes)], SEEN, "P")) == 1


def _bounds(*values: Any) -> list[Rebalance]:
    return [Rebalance("index", bounds=values)]  # type: ignore[arg-type]


def _sizes(*values: Any) -> list[Rebalance]:
    return [Rebalance("column", sizes=values)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("commands", "message"),
    [
        (None, "decide returned NoneType: expected a list of Rebalance"),
        (7, "decide returned int: expected a list"),
        ("index", "decide returned str: expected a list"),
        ({"index": [0]}, "decide returned dict: expected a list"),
        (Rebalance("index"), "decide returned Rebalance: expected a list"),
        ([None], "decide returned a NoneType in its list: expected Rebalance"),
        ([Rebalance("idx")], "unknown object 'idx': expected one of index, column, busy"),
        ([Rebalance(ANY)], "unknown object None: expected"),
        ([Rebalance(["index"])], "unknown object"),  # type: ignore[arg-type]
        ([*_sizes(15, 15), *_sizes(20, 10)], "object 'column': two commands: expected at most one"),
        (
            [Rebalance("busy", bounds=np.array([0, 100, 200]))],
            "object 'busy': still being balanced: expected no command until 'balancing' is False",
        ),
        ([Rebalance("index")], "object 'index': no bounds: expected 4 bounds"),
        ([Rebalance("column")], "object 'column': no sizes: expected 2 sizes"),
        ([Rebalance("index", sizes=np.ones(3))], "an index has sizes by its bounds"),
        ([Rebalance("column", bounds=np.arange(3))], "a column has no bounds"),
        (_bounds(0, 300), "bounds of shape (2,): expected (4,)"),
        ([Rebalance("index", bounds=np.zeros((2, 2)))], "bounds of shape (2, 2): expected"),  # type: ignore[arg-type]
        (_bounds(0, [1], 2, 300), "bounds that are no numbers: expected an array of 4 numbers"),
        (_bounds(0, "a", 2, 300), "bounds that are no numbers"),
        (_bounds(False, True, True, True), "bounds that are no numbers"),
        (_bounds(0, 100.5, 200, 300), "bounds between two keys: expected whole numbers"),
        (_bounds(0, float("nan"), 200, 300), "bounds that are not finite"),
        (_bounds(0, 100, 200, float("inf")), "bounds that are not finite"),
        (_bounds(0, 200, 100, 300), "bounds fall after position 1: expected an order"),
        (_bounds(1, 100, 200, 300), "bounds from 1 to 300: expected from 0 to 300"),
        (_bounds(0, 100, 200, 299), "bounds from 0 to 299: expected from 0 to 300"),
        (_bounds(0, 100, 400, 300), "bounds fall after position 2"),
        (_sizes(-1, 31), "a size below 0"),
        (_sizes(15, 16), "sizes that sum to 31: expected 30, as before"),
        (_sizes(float("nan"), 30), "sizes that are not finite"),
        (_sizes(10, 10, 10), "sizes of shape (3,): expected (2,)"),
    ],
)
def test_commands_that_cannot_be_done(commands: Any, message: str) -> None:
    told = told_by(check_commands, commands, SEEN, "Mine")
    assert told.startswith("policy Mine: ")
    assert message in told


class _Returns:
    def __init__(self, answer: Callable[[], Any]) -> None:
        self.answer = answer

    def decide(self, observation: BalancingObservation) -> Any:
        return self.answer()


def test_commands_may_be_a_generator() -> None:
    def commands() -> Iterator[Rebalance]:
        yield from _sizes(15, 15)

    (command,) = decide(BALANCING, _Returns(commands), SEEN)
    assert command.object == "column"


def test_a_generator_that_raises_is_the_policys_own_fault() -> None:
    def commands() -> Iterator[Rebalance]:
        yield from _sizes(15, 15)
        raise KeyError("late")

    with pytest.raises(InputError) as caught:
        decide(BALANCING, _Returns(commands), SEEN)
    assert caught.value.message == "policy _Returns raised KeyError: 'late'"


def test_where_a_policy_went_wrong() -> None:
    """A raise names its line; a bad command, the line where decide begins."""
    source = Path(__file__).read_text(encoding="utf-8").splitlines()

    def divide() -> Any:
        return 1 / 0  # here

    with pytest.raises(InputError) as caught:
        decide(BALANCING, _Returns(divide), SEEN)
    assert caught.value.file == __file__
    assert caught.value.line is not None
    assert source[caught.value.line - 1].endswith("# here")
    assert caught.value.message == "policy _Returns raised ZeroDivisionError: division by zero"
    with pytest.raises(InputError) as caught:
        decide(BALANCING, _Returns(lambda: [Rebalance("none")]), SEEN)
    assert source[known(caught.value.line) - 1].strip().startswith("def decide(")


class _BrokenError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (SystemExit(3), "raised SystemExit: 3"),
        (RuntimeError(), "raised RuntimeError"),
        (_BrokenError(), "raised _BrokenError"),
        (InputError("a\nb"), "raised InputError: a b"),
    ],
)
def test_whatever_is_raised(failure: BaseException, message: str) -> None:
    def fail() -> Any:
        raise failure

    assert told_by(decide, BALANCING, _Returns(fail), SEEN).endswith(f"policy _Returns {message}")


def test_an_interrupt_is_no_fault() -> None:
    def interrupt() -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        decide(BALANCING, _Returns(interrupt), SEEN)


def test_what_a_policy_prints_is_no_result(capsys: pytest.CaptureFixture[str]) -> None:
    decide(BALANCING, _Returns(lambda: print("seen") or []), SEEN)
    assert capsys.readouterr() == ("", "seen\n")


def test_a_bug_of_a_bundled_policy_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(OneShot, "decide", fail)
    with pytest.raises(ZeroDivisionError):
        decide(BALANCING, OneShot(), SEEN)


def test_a_policy_cannot_change_what_it_sees() -> None:
    """Its view is for reading only; the plane's own array is not."""
    sizes = np.array([1.0, 2.0])
    seen = column(sizes)
    assert np.shares_memory(seen.sizes, sizes)
    with pytest.raises(ValueError, match="read-only"):
        seen.sizes[0] = 5.0
    with pytest.raises(ValueError, match="read-only"):
        index([1.0]).bounds[0] = 1  # type: ignore[index]
    sizes[0] = 5.0
