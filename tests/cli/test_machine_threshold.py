"""``numatwin machine threshold``: what it prints, and the machine file it writes."""

from pathlib import Path

import pytest
from command_line import CommandLine, Refused

from numatwin.topologies import load_machine


def test_it_writes_a_machine_file(numatwin: CommandLine) -> None:
    lines = numatwin("machine", "threshold", "xeon-4s-ivb", "--out", "mine.yaml").out.splitlines()
    assert lines[0].split()[0] == "n"
    assert lines[-2].startswith("Threshold: ")
    assert lines[-1] == "Machine: mine.yaml"
    plain = numatwin("machine", "threshold", "xeon-4s-ivb", "--json").json()
    low, high = plain["interval_Bps"]
    assert low <= plain["threshold_Bps"] <= high
    facts = load_machine("mine.yaml").description.engines["tasks"].plain
    written = facts["stealing_threshold"]
    assert written["value"] == f"{plain['threshold_Bps'] / 1e9:g} GB/s"
    assert written["range"] == [f"{bound / 1e9:g} GB/s" for bound in (low, high)]
    # In place, and used by stealing: adaptive.
    numatwin("machine", "threshold", "mine.yaml", "--out", "mine.yaml")
    again = load_machine("mine.yaml").description.engines["tasks"].plain
    assert again["stealing_threshold"] == written


def test_on_the_event_plane(numatwin: CommandLine) -> None:
    found = numatwin("machine", "threshold", "xeon-4s-ivb", "--on", "event", "--json").json()
    assert found["on"] == "event"
    assert found["crossings"][0]["nodes"] == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("zen5-2c",), "fewer than two nodes with cores and memory"),
        (("xeon-4s-ivb", "--out", "mine.txt"), "extension .yaml"),
    ],
)
def test_bad_input(refused: Refused, arguments: tuple[str, ...], message: str) -> None:
    assert message in refused("machine", "threshold", *arguments)
    assert not Path("mine.txt").exists()
