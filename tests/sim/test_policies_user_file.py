"""A user's policy in a file: it loads and runs, or one line says which line of it is wrong."""

import dataclasses
import sys
from pathlib import Path
from typing import Any

import pytest
from known import known
from policy_cases import index, observed
from refusals import told_by

from numatwin.inputs import InputError
from numatwin.sim.control.family import decide
from numatwin.sim.control.policy import AnyPolicy
from numatwin.sim.control.user_policy import user_policy
from numatwin.sim.systems.eris.balancing import BALANCING

GOOD = '''\
from dataclasses import dataclass, field

import numpy as np

from numatwin import BalancingObservation, Rebalance
from numatwin.sim.systems.eris.balancing import OneShot

print("hello")


@dataclass
class EvenKeys:
    """As many keys for each; remembers how often it was asked."""

    step: int = 1
    asked: list[float] = field(default_factory=list)

    def decide(self, observation: BalancingObservation) -> list[Rebalance]:
        self.asked.append(observation.time_s)
        return [
            Rebalance(name, bounds=np.linspace(seen.bounds[0], seen.bounds[-1], 3).round())
            for name, seen in observation.objects.items()
        ]


class Inherits(OneShot):
    pass


class Wrong(OneShot):
    def decide(self, observation):
        commands = super().decide(observation)
        return sixth_size(commands)


def sixth_size(commands):
    return commands[0].sizes[5]


class NoDecide:
    decide = 5


class Constructor:
    def __init__(self, gain):
        self.gain = 1 / gain

    def decide(self, observation):
        return []


def function():
    pass
'''


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "my policy.py"
    path.write_text(GOOD, encoding="utf-8")
    return path


def _load(path: Path, name: str, **options: Any) -> AnyPolicy:
    return user_policy(path, name, options)()


def _line(text: str) -> int:
    return GOOD.splitlines().index(text) + 1


def test_a_policy_from_a_file(good: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy: Any = _load(good, "EvenKeys", step=2)
    assert (policy.step, dataclasses.is_dataclass(policy)) == (2, True)
    (command,) = decide(BALANCING, policy, observed(index=index([1.0, 2.0], [0, 10, 90])))
    assert known(command.bounds).tolist() == [0, 45, 90]
    assert policy.asked == [0.5]
    assert capsys.readouterr() == ("", "hello\n")  # the file ran once, and not onto the results


def test_every_run_has_a_policy_of_its_own(good: Path) -> None:
    make = user_policy(good, "EvenKeys", {})
    first: Any = make()
    first.decide(observed())
    second: Any = make()
    assert (first.asked, second.asked) == ([0.5], [])


def test_two_files_of_one_name(tmp_path: Path) -> None:
    policies = []
    for k in range(2):
        path = tmp_path / str(k) / "mine.py"
        path.parent.mkdir()
        path.write_text(
            f"class P:\n    number = {k}\n    def decide(self, o):\n        return []\n"
        )
        policies.append(_load(path, "P"))
    assert [getattr(policy, "number", None) for policy in policies] == [0, 1]
    assert len({type(policy).__module__ for policy in policies}) == 2
    assert all(type(policy).__module__ in sys.modules for policy in policies)


def test_a_class_may_build_on_a_bundled_one(good: Path) -> None:
    seen = observed(index=index([1.0, 3.0]))
    (command,) = decide(BALANCING, _load(good, "Inherits", threshold=0.2), seen)
    assert known(command.bounds).tolist() == [0, 133, 200]


def test_the_innermost_line_of_the_users_file(good: Path) -> None:
    seen = observed(index=index([1.0, 3.0]))
    assert told_by(decide, BALANCING, _load(good, "Wrong"), seen) == (
        f"{good}:{_line('    return commands[0].sizes[5]')}: "
        "policy Wrong raised TypeError: 'NoneType' object is not subscriptable"
    )


@pytest.mark.parametrize(
    ("name", "options", "line", "message"),
    [
        ("Constructor", {"gain": 0}, "        self.gain = 1 / gain", "raised ZeroDivisionError"),
        (
            "Constructor",
            {},
            "    def decide(self, observation):",
            "raised TypeError: Constructor.__init__() missing 1 required positional argument",
        ),
        (
            "Inherits",
            {"treshold": 1},
            "class Inherits(OneShot):",
            "raised TypeError: OneShot.__init__() got an unexpected keyword argument 'treshold'",
        ),
        (
            "NoDecide",
            {},
            "class NoDecide:",
            "class NoDecide has no method decide: expected decide(self, observation)",
        ),
        ("EvenKey", {}, None, "no such class: found 'EvenKey', expected 'EvenKeys'"),
        ("Zzz", {}, None, "no such class: found 'Zzz', expected 'EvenKeys'"),
        ("function", {}, None, "not a class: found 'function'"),
    ],
)
def test_a_class_that_will_not_do(
    good: Path, name: str, options: dict[str, Any], line: str | None, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        user_policy(good, name, options)
    error = caught.value
    assert (error.file, message in str(error)) == (str(good), True), str(error)
    if line is None:
        assert error.line is None
    elif name == "Constructor" and not options:
        # A call that never enters the constructor: where the class's decide begins.
        assert error.line == GOOD.splitlines().index(line, _line("class Constructor:")) + 1
    else:
        assert error.line == _line(line)


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"x = 1\ndef f(:\n", 2, "not Python: invalid syntax"),
        (b"class P\n    pass\n", 1, "not Python: expected ':'"),
        (b"x = 1\n  y = 2\n", 2, "not Python: unexpected indent"),
        (b"a = 1\0\n", None, "not Python: source code"),
        (b"\xff\xfe\n", None, "not Python: "),
        (b"(" * 10_000, 1, "not Python: too many nested parentheses"),
        (b"x = " + b"-" * 200_000 + b"1\n", None, "not Python: nested too deeply"),
        (b"x = 1\nimport no_such_module\n", 2, "policy file raised ModuleNotFoundError: No module"),
        (b"def f():\n    return 1 / 0\n\n\nf()\n", 2, "policy file raised ZeroDivisionError"),
        (b"raise SystemExit\n", 1, "policy file raised SystemExit"),
        (b"", None, "no such class: found 'P', expected a class with a method decide"),
    ],
)
def test_a_file_that_will_not_do(
    tmp_path: Path, content: bytes, line: int | None, message: str
) -> None:
    path = tmp_path / "bad.py"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        user_policy(path, "P", {})
    error = caught.value
    assert (error.file, message in str(error)) == (str(path), True), str(error)
    if line is not None:
        assert error.line == line
    assert "\n" not in str(error)


@pytest.mark.parametrize("name", ["missing.py", "", "a\0b.py"])
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    assert "cannot be read: " in told_by(user_policy, tmp_path / name, "P", {})
