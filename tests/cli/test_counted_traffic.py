"""Counted traffic in words."""

from io import StringIO

from rich.console import Console

from numatwin.cli.counted_traffic import print_predicted


def test_placements_say_what_they_are_parts_of() -> None:
    text = StringIO()
    print_predicted(
        {
            "time_s": 2.0,
            "interval_s": [1.0, 3.0],
            "binding": {"instructions": 0.8},
            "placements_s": {"all local": 2.004, "interleaved": 4.0},
        },
        Console(file=text, width=120),
    )
    lines = [" ".join(line.split()) for line in text.getvalue().splitlines()]
    assert "data all local 2.004 s, 100.2% of that" in lines
    assert "data interleaved 4 s, 200.0% of that" in lines
    assert any("all local: each node's misses go to its own memory" in line for line in lines)
