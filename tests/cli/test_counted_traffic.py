"""Counted traffic in words."""

import pytest

from numatwin.cli.output import show
from numatwin.cli.record_facts import predicted_parts


def test_placements_say_what_they_are_parts_of(capsys: pytest.CaptureFixture[str]) -> None:
    predicted = {
        "time_s": 2.0,
        "interval_s": [1.0, 3.0],
        "binding": {"instructions": 0.8},
        "placements_s": {"all local": 2.004, "interleaved": 4.0},
    }
    show(predicted_parts(predicted))
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "data all local 2.004 s, 100.2% of that" in lines
    assert "data interleaved 4 s, 200.0% of that" in lines
    assert any("all local: each node's misses go to its own memory" in line for line in lines)
