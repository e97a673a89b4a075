"""``numatwin published``: a row for each result, with its error."""

import pytest
from command_line import CommandLine, Refused

KEYS = {"id", "published", "predicted", "unit", "relative_error", "plane", "calibrated_on"}


def test_rows(numatwin: CommandLine) -> None:
    rows = numatwin("published", "--json").json()["rows"]
    assert {row["id"] for row in rows} >= {
        "eris-fig1",
        "eris-fig8-intel",
        "eris-fig8-amd",
        "eris-fig9",
        "eris-fig12-scan",
        "eris-fig11",
        "eris-fig13",
    }
    for row in rows:
        assert row.keys() >= KEYS
        assert row["plane"] == "flow"
        # A result is never an input of its own prediction.
        assert row["id"] not in row["calibrated_on"]
        if isinstance(row["published"], float):
            error = row["predicted"] / row["published"] - 1
            assert row["relative_error"] == pytest.approx(error)


def test_one_row_as_text(numatwin: CommandLine) -> None:
    (row,) = numatwin("published", "--id", "eris-fig9", "--json").json()["rows"]
    done = numatwin("published", "--id", "eris-fig9", "--on", "flow")
    assert (done.status, done.err) == (0, "")
    line = done.out.splitlines()[1].split()
    assert line[:2] == ["eris-fig9", f"{row['published']:g}"]
    assert line[3] == f"{100 * row['relative_error']:+.1f}%"


def test_refuses(refused: Refused) -> None:
    assert "eris-fig9" in refused("published", "--id", "eris-fig99")
    assert "native is not in this version" in refused("published", "--on", "native")
