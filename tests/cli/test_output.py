"""Tables where lines have no end: off a terminal."""

from __future__ import annotations

import pytest

from numatwin.cli.output import console, table


def test_off_a_terminal_no_table_is_wrapped(capsys: pytest.CaptureFixture[str]) -> None:
    cells = ["in the middle of words " * 4] * 5
    console().print(table(("a", "b", "c", "d", "e"), [cells, cells], left=2))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[1].count("in the middle of words") == 20
