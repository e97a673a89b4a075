"""``compare`` says by which settings two runs of one scenario differ."""

from io import StringIO
from typing import Any

from command_line import CommandLine
from rich.console import Console

from numatwin.cli.compare import settings_parts
from numatwin.cli.output import show

CLOCK = "machine.node_types.opteron-6274-die.clock"


def test_settings_that_differ(numatwin: CommandLine) -> None:
    """A fact with its source and one that was typed are both shown by their values."""
    numatwin("run", "eris-fig8-amd", "--exact", "--out", "a")
    numatwin(
        *("run", "eris-fig8-amd", "--set", f"{CLOCK}=2 GHz", "--set", "system.batch=64"),
        *("--set", "horizon=2 s", "--exact", "--out", "b"),
    )
    rows = numatwin("compare", "a", "b", "--json").json()["settings"]
    assert {"name": CLOCK, "values": ["2.2 GHz", "2 GHz"]} in rows
    assert {"name": "system.batch", "values": [128, 64]} in rows
    shown = numatwin("compare", "a", "b").out
    table = shown[shown.index("setting ") :].split("\n\n")[0].splitlines()
    assert [line.split() for line in table] == [
        ["setting", "A", "B"],
        [CLOCK, "2.2", "GHz", "2", "GHz"],
        ["system.batch", "128", "64"],
        ["horizon", "1", "s", "2", "s"],
        ["event_horizon", "20", "ms", "–"],
    ]


def test_nothing_is_said_twice(numatwin: CommandLine) -> None:
    """Machine and policy stand in the first table; of another scenario nearly all differs."""
    numatwin("run", "eris-fig8-amd", "--exact", "--out", "a")
    numatwin("run", "eris-fig8-amd", "--machine", "intel-4s-qpi", "--exact", "--out", "b")
    numatwin("run", "eris-fig8-amd-shared", "--exact", "--out", "c")
    (row,) = numatwin("compare", "a", "b", "--json").json()["settings"]
    assert row == {"name": "machine", "values": ["amd-8n-ht", "intel-4s-qpi"]}
    for other in "bc":
        assert "setting " not in numatwin("compare", "a", other).out
    assert numatwin("compare", "a", "c", "--json").json()["settings"]


def test_values_stay_on_a_narrow_terminal() -> None:
    text = StringIO()
    row = {"name": CLOCK, "values": ["2.2 GHz", "2 GHz"]}
    show(settings_parts([row], "AB"), Console(file=text, width=40))
    assert "2.2 GHz  2 GHz" in text.getvalue()
    assert max(map(len, text.getvalue().splitlines())) <= 40


def test_a_command_is_written_as_it_was_typed() -> None:
    text = StringIO()
    row = {"name": "command", "values": [["./t"], ["sh", "-c", "exit 3"]]}
    show(settings_parts([row], "AB"), Console(file=text, width=80))
    assert text.getvalue().splitlines()[-1].rstrip().endswith("./t  sh -c 'exit 3'")


def test_settings_of_another_policy_are_its_own() -> None:
    text = StringIO()
    rows: list[dict[str, Any]] = [
        {"name": "policies.balancing.policy", "values": ["none", "ma-8"]},
        {"name": "policies.balancing.threshold", "values": [None, 0.1]},
        {"name": "policies.stealing.period", "values": ["1000000 ns", "2000000 ns"]},
    ]
    show(settings_parts(rows, "AB"), Console(file=text, width=80))
    assert [line.split() for line in text.getvalue().split("\n") if line][1:] == [
        ["policies.stealing.period", "1", "ms", "2", "ms"]
    ]
