"""The page on published results: every row once, sorted by how well it came out; pictures."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from published_page import page, pictures
from published_pictures import Bar, bars_svg

from numatwin.validate.published import PUBLISHED, given_others
from numatwin.validate.systems.commits.validation import CLIENTS, CURVES

SYSTEMS = Path(__file__).parents[3] / "shared" / "systems"


def row(id_: str, **fields: Any) -> dict[str, Any]:
    machine = {"name": "amd", "source": "a table", "calibrated_on": []}
    return {
        **{"id": id_, "about": "what", "published": 2.0, "predicted": 1.0, "unit": "B/s"},
        **{"relative_error": -0.5, "holds": None, "plane": "flow", "calibrated_on": []},
        **{"machines": [machine], "note": f"why {id_}"},
        **fields,
    }


def words(id_: str, holds: bool) -> dict[str, Any]:
    return row(id_, published="said | so", predicted="seen", relative_error=None, holds=holds)


ADVANCE = [
    row(f"{curve}-{n}", published=None, relative_error=None, unit="transactions/s", predicted=5e3)
    for curve in CURVES
    for n in CLIENTS
]
ROWS = [
    row("far"),
    row("near", relative_error=0.05, calibrated_on=["fig5"]),
    row("fair", relative_error=-0.2),
    words("right", True),
    words("wrong", False),
    *ADVANCE,
]


def test_a_reason_is_told_once() -> None:
    reason = f"A reason that rows have in common{' and that is long' * 5}."
    text = page([row("far", note=f"{reason} More."), row("also", note=f"Less. {reason}"), *ADVANCE])
    assert text.count(reason) == 1
    assert "- `also`: Less. See `far`." in text


def test_well_badly_and_why() -> None:
    text = page(ROWS)
    assert "Of 3 results in numbers 1 are predicted within 10%, 1 more within 25%, 1" in text
    assert "Of 2 in words 1 are as published, 0 more" in " ".join(text.split())
    far, fair, near = (
        text.index(f"### {title}") for title in ("Further", "Within 25", "Within 10")
    )
    for id_, first, last in (
        *(("far", far, fair), ("wrong", far, fair), ("fair", fair, near)),
        *(("near", near, len(text)), ("right", near, len(text))),
    ):
        assert first < text.index(f"- `{id_}`: why {id_}") < last
    assert "said \\| so" in text  # a bar would end the cell
    assert "| `near` | what | 2 B/s | 1 B/s | +5.0% | flow | `amd` |" in text
    assert "`near` comes from `fig5`" in text
    assert "| `amd` | a table | nothing | 21 |" in text


def test_three_columns() -> None:
    """Of results whose draws are stored: what they mean stands above."""
    found = given_others()["eris-fig9"]
    text = page([*ROWS, row("eris-fig9", published=6.6, unit="ratio", relative_error=0.05)])
    low, high = found.before
    assert f"| `eris-fig9` | 6.6 | 1 | {low:.3g} to {high:.3g} | {found.value:.3g} |" in text
    assert text.index("| **before evidence** |") < text.index("| `eris-fig9` | 6.6 |")
    assert "| `near` | 2 B/s | 1 B/s | " not in text


def test_rows_with_the_same_reason_share_its_line() -> None:
    text = page([row("one", note="alike"), row("other", note="alike"), *ADVANCE])
    assert text.count("alike") == 1
    assert "- `one`, `other`: alike" in text


def test_every_result_says_what_it_is_of() -> None:
    assert all(result.about for result in PUBLISHED.values())


def test_every_result_of_the_sources_is_answered() -> None:
    """One of several figures has its id and what it is of: ``gru-fig4-cpu-node``."""
    if not SYSTEMS.is_dir():
        pytest.skip("needs ../shared/systems")
    ids = {
        found[1]
        for path in SYSTEMS.glob("*.md")
        for found in re.finditer(r"^\| ([a-z]+-[a-z0-9-]+) \|", path.read_text(), re.MULTILINE)
    }
    assert len(ids) > 25
    assert [one for one in ids if not any(name.startswith(one) for name in PUBLISHED)] == []


def test_pictures_hold_every_row() -> None:
    errors, advance = (ElementTree.fromstring(text) for text in pictures(ROWS).values())
    told = [element.text for element in errors.iter() if element.tag.endswith("text")]
    assert {"near", "fair", "far", "+5.0%", "-20.0%", "-50.0%"} <= {*told}
    assert sum(one.tag.endswith("circle") for one in advance.iter()) == len(ADVANCE)


def boxes(svg: str) -> list[tuple[float, float]]:
    root = ElementTree.fromstring(svg)
    width, height = float(root.get("width", "")), float(root.get("height", ""))
    found = []
    for element in root.iter():
        for x, y in (("x", "y"), ("x1", "y1"), ("x2", "y2"), ("cx", "cy")):
            if element.get(x) is not None:
                found.append((float(element.get(x, "")), float(element.get(y, ""))))
                assert 0 <= found[-1][0] <= width
                assert 0 <= found[-1][1] <= height
    return found


@settings(deadline=None)
@given(st.lists(st.floats(-1, 3), min_size=1, max_size=30))
def test_bars_stay_in_the_picture(errors: list[float]) -> None:
    assert boxes(bars_svg([Bar(f"r{k}", error, 0) for k, error in enumerate(errors)], "error"))


@pytest.mark.parametrize("name", ["<&>", "é"])
def test_names_are_text(name: str) -> None:
    assert name in [e.text for e in ElementTree.fromstring(bars_svg([Bar(name, 0, 2)], "")).iter()]
