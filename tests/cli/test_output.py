"""Tables where lines have no end: off a terminal."""

from __future__ import annotations

import pytest

from numatwin.cli.output import console, print_whole, progress_bar, table


def test_off_a_terminal_a_table_of_long_cells_is_not_wrapped(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cells = ["in the middle of words " * 4] * 5
    print_whole(console(), table(("a", "b", "c", "d", "e"), [cells, cells], left=2))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[1].count("in the middle of words") == 20


def test_progress_belongs_to_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("simulating") as progress:
        progress(0.5)  # quick work is not told of
    assert capsys.readouterr().err == ""
