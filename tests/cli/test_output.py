"""Tables where lines have no end: off a terminal."""

import pytest

from numatwin.cli.output import facts, progress_bar, show, table, whole_table


def test_off_a_terminal_a_table_of_long_cells_is_not_wrapped(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cells = ["in the middle of words " * 4] * 5
    show([whole_table(("a", "b", "c", "d", "e"), [cells, cells], left=2)])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[1].count("in the middle of words") == 20


def test_off_a_terminal_no_line_ends_in_blanks(capsys: pytest.CaptureFixture[str]) -> None:
    cells = table(("a", "b"), [("1", "a long cell"), ("2", "short")], left=2)
    show([cells, facts([("name", "value"), ("other", "a longer value")])])
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["a  b", "1  a long cell", "2  short", "name   value", "other  a longer value"]


def test_a_long_name_is_broken_before_whole_values(capsys: pytest.CaptureFixture[str]) -> None:
    name, values = "node_types.e7-8880-v2.memory.latency" * 3, ["117 ns: no change"] * 3
    show([table(("assumed", *"abc"), [(name, *values)], long_names=True, whole=True)])
    out = capsys.readouterr().out
    assert out.count("117 ns: no change") == 3
    assert name in out.replace("\n", "").replace("  117 ns: no change", "")


def test_progress_belongs_to_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("simulating") as progress:
        progress(0.5)  # quick work is not told of
    assert capsys.readouterr().err == ""
