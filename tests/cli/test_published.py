"""``numatwin published``: a row for each result, with its error."""

import re
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine, Refused
from published_page import page, write_page

from numatwin.validate import published

KEYS = {"id", "published", "predicted", "unit", "relative_error", "plane", "calibrated_on"}
DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.sweep
def test_rows_and_their_page(numatwin: CommandLine) -> None:
    found = numatwin("published", "--json").json()
    write_page(found["rows"], Path("page.md"))
    check_page()
    assert {row["id"] for row in found["rows"]} == published.PUBLISHED.keys()
    check_rows(found["rows"])


# Of each system some that take a second at most.
QUICK = (
    "eris-fig8-amd",
    "eris-fig9",
    "eris-fig12-lookup-links",
    "nam-bound-10gbe",
    "nam-fig7-semijoin",
    "gru-fig4-cpu-blade",
    "hana-fig10",
)


def test_quick_rows_are_those_of_the_page(
    numatwin: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    published.given_others()  # of all, before there are only these
    quick = {name: published.PUBLISHED[name] for name in QUICK}
    monkeypatch.setattr(published, "PUBLISHED", quick)
    rows = numatwin("published", "--json").json()["rows"]
    assert [row["id"] for row in rows] == [*QUICK]
    check_rows(rows)
    stored = (DOCS / "published.md").read_text()
    for line in page(rows).splitlines():
        if line.startswith("| `") and line.split("`")[1] in QUICK:
            assert f"{line}\n" in stored, "'make docs' renews it"


def check_rows(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        assert row.keys() >= KEYS
        on_event = row["id"].startswith(("nam-bound", "nam-fig6", "eris-fig5"))
        assert row["plane"] == ("event" if on_event else "flow")
        assert row["about"]
        assert row["machines"]
        for machine in row["machines"]:
            assert machine["calibrated_on"] == []  # else the row would be, too
        # A result is never an input of its own prediction.
        assert row["id"] not in row["calibrated_on"]
        if isinstance(row["published"], float):
            error = row["predicted"] / row["published"] - 1
            assert row["relative_error"] == pytest.approx(error)
        elif row["published"] is None:  # predicted in advance
            assert row["predicted"] > 0
            assert (row["relative_error"], row["holds"]) == (None, None)


def test_results_that_the_papers_are_known_for_have_a_row() -> None:
    assert published.PUBLISHED.keys() >= {
        *("eris-fig1", "eris-fig8-intel", "eris-fig8-amd", "eris-fig9", "eris-fig12-scan"),
        *("eris-fig11", "eris-fig13", "nam-bound-cpu", "nam-bound-10gbe", "nam-fig6-rsi"),
        *("nam-fig6-ipoeth", "nam-fig6-ipoib-70", "nam-fig6-two-sided-1", "gru-fig4-cpu-blade"),
    }


def check_page() -> None:
    """The page in the documents, and its pictures, are as they would be written now."""
    page = Path("page.md").read_text()
    pictures = re.findall(r"\((pictures/[\w-]+\.svg)\)", page)
    assert len(pictures) == 2
    for name in pictures:
        assert (DOCS / name).read_text() == Path(name).read_text(), "'make docs' renews it"
    assert (DOCS / "published.md").read_text() == page, "'make docs' renews it"


def test_one_row_as_text(numatwin: CommandLine) -> None:
    (row,) = numatwin("published", "--id", "eris-fig9", "--json").json()["rows"]
    line = numatwin("published", "--id", "eris-fig9", "--on", "flow").said().splitlines()[1].split()
    assert line[:3] == ["eris-fig9", "flow", f"{row['published']:g}"]
    assert line[4] == f"{100 * row['relative_error']:+.1f}%"


def test_rows_that_a_plane_cannot_predict_are_left_out(
    numatwin: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = ("eris-fig9", "nam-fig6-rsi", "nam-bound-cpu", "eris-fig8-amd")
    monkeypatch.setattr(published, "PUBLISHED", {name: published.PUBLISHED[name] for name in some})
    done = numatwin("published", "--on", "flow", "--json")
    on_flow = [name for name in some if "flow" in published.PUBLISHED[name].planes]
    assert 0 < len(on_flow) < len(some)
    assert [(row["id"], row["plane"]) for row in done.json()["rows"]] == [
        (name, "flow") for name in on_flow
    ]
    assert "plane flow cannot predict" in done.err
    assert "nam-fig6-rsi" in done.err


def test_refuses(refused: Refused) -> None:
    told = refused("published", "--id", "nam-fig6-rsi", "--on", "flow")
    assert "plane flow does not predict nam-fig6-rsi: expected event or reference" in told
    assert "eris-fig9" in refused("published", "--id", "eris-fig99")
    assert "plane native predicts nothing: it measures this host" in refused(
        "published", "--on", "native"
    )


def test_decisions_of_one_case_are_those_of_the_page(numatwin: CommandLine) -> None:
    found = numatwin("decisions", "--id", "cxl-triad", "--json").json()
    text = (DOCS / "decisions.md").read_text(encoding="utf-8")
    for row in found["rows"]:
        cells = [row["alternative"], row["verdict"], f"{row['relative_error']:+.1%}"]
        (line,) = [one for one in text.splitlines() if f"| `cxl-triad` | {cells[0]} |" in one]
        assert all(f"| {cell} |" in line for cell in cells)
    said = numatwin("decisions", "--id", "shuffle-or-broadcast")
    assert "not modelled here: a join that sends" in said.out
