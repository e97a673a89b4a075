"""``observe`` and ``cores``: what cannot be done is one line."""

from pathlib import Path

import pytest
from command_line import CommandLine, Refused


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["observe"], "expected --pid P"),
        (["observe", "--pid", "999999999"], "no process 999999999 runs"),
        (["observe", "--pid", "1", "--for", "fast"], "'fast'"),
        (["observe", "--pid", "1", "--for", "-1s"], "expected from 10 ms"),
        (["cores"], "expected either --pid P or --cgroup G"),
        (["cores", "--pid", "1", "--cgroup", "x"], "expected either --pid P or --cgroup G"),
        (["cores", "--pid", "999999999"], "no process 999999999 runs"),
        (["cores", "--cgroup", "no/such"], "no such control group"),
        (["cores", "--pid", "1", "--policy", "adaptiv"], "'adaptive'"),
        (["cores", "--pid", "1", "--policy", "none.py:P"], "none.py"),
    ],
)
def test_bad_input(refused: Refused, arguments: list[str], said: str) -> None:
    assert said in refused(*arguments)


def test_no_counters_of_links(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    from numatwin.engine_native.memory_traffic import NoCounters
    from numatwin.validate.live import observing

    def none() -> None:
        raise NoCounters("this host shows no counters of its links between sockets")

    monkeypatch.setattr(observing, "LinkTraffic", none)
    told = refused("cores", "--pid", "1", "--metric", "interconnect", "--dry-run")
    assert "no counters of its links between sockets" in told
    assert "expected load" in told


def test_observed_as_json(numatwin: CommandLine) -> None:
    plain = numatwin("observe", "--pid", "1", "--for", "20ms", "--json").json()
    assert (plain["plane"], plain["settings"]["pid"]) == ("observed", 1)
    assert plain["model"]["threads"] >= 1
