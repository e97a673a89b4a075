"""The page of a validation: every figure in it, nothing of others' text comes alive."""

import json
import re
from dataclasses import replace
from pathlib import Path

import plotly.graph_objects as go
import pytest
from browser_page import open_page
from page_text import visible

from numatwin.reports.predicted_measured import (
    Cell,
    Row,
    Table,
    Validation,
    validation_html,
    write_validation,
)

HOSTILE = """<script>document.title='got in'</script><img src=x onerror="boom()"><b>"%{x}'</b>"""


def row(name: str, unit: str, measured: float, predicted: float, size: float | None) -> Row:
    return Row(
        label=f"{name} run",
        group=name,
        set="test",
        unit=unit,
        measured=measured,
        predicted=predicted,
        measured_interval=(0.9 * measured, 1.1 * measured),
        predicted_interval=(predicted, predicted),
        size=size,
    )


def page_of(text: str) -> Validation:
    """Two rates, of two sizes, and a time, of none: five pictures."""
    return Validation(
        title=f"Title {text}",
        path=f"path {text}",
        answer=f"answer {text}",
        version="1",
        rows=[
            row(text, "/s", 1e6, 1.1e6, 2.0**20),
            row(text, "/s", 2e6, 1.9e6, 2.0**24),
            row(text, "s", 1e-6, 1.2e-6, None),
        ],
        summaries=[Table(f"Summary {text}", ("of", "error"), [[Cell(text), Cell("5%", text)]])],
        tables=[
            Table("Rows", ("a", "b"), [[Cell("one"), Cell("two", bad=True)]], note=text),
            Table("Empty", ("a",), []),
        ],
        doubts=[f"noisy {text}"],
        facts=[("machine", text)],
    )


def test_everything_is_said() -> None:
    page = validation_html(page_of("plain"))
    text = visible(page)
    for part in (
        "Title plain",
        "answer plain",
        "Summary plain",
        "noisy plain",
        "one two",
        "machine",
    ):
        assert part in text
    assert "Empty" not in text  # a table without rows
    assert "Predicted and measured rates" in text
    assert "Predicted and measured times" in text
    pictures = re.findall(r'<script type="application/json" [^>]*>(.*?)</script>', page)
    assert len(pictures) == 5
    for picture in pictures:
        go.Figure(json.loads(picture))


def test_sets_have_pictures_of_their_own_where_asked() -> None:
    page = page_of("plain")
    fitted = replace(row("plain", "/s", 1e6, 1e6, 2.0**20), set="calibration")
    text = visible(validation_html(replace(page, rows=[*page.rows, fitted], figures_by_set=True)))
    titles = re.findall(r"\w+ set: predicted and measured \w+", text)
    assert titles == [
        "Test set: predicted and measured rates",
        "Test set: predicted and measured times",
        "Calibration set: predicted and measured rates",
    ]


def test_text_of_others_stays_text() -> None:
    page = validation_html(page_of(HOSTILE))
    assert "<img src=x" not in page
    assert "<script>document.title" not in page
    assert "&lt;script&gt;document.title" in page


def test_without_rows_there_is_a_page_all_the_same(tmp_path: Path) -> None:
    path = write_validation(Validation("Nothing", "", "No row.", "1", []), tmp_path / "page.html")
    assert "No row." in path.read_text()


@pytest.mark.browser
def test_in_a_browser(tmp_path: Path) -> None:
    opened = open_page(write_validation(page_of(HOSTILE), tmp_path / "page.html"))
    assert opened.root["data-failed"] == "0"
    assert opened.root["data-drawn"] == opened.root["data-plots"] == "5"
    assert opened.console == []
    assert not any(tag == "img" for tag, _ in opened.elements)
