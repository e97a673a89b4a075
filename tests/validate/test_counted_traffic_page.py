"""The tables of counted against predicted traffic in docs/model/counted-traffic.md."""

import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))


def row(case: str, plane: str, error: float) -> dict[str, object]:
    return {"scenario": case, "metric": "links", "plane": plane, "relative_error": error}


def test_cases_counted_again_take_the_place_of_those_before() -> None:
    import counted_traffic

    known = [row("m one", "flow", 0.1), row("m one", "event", 0.1), row("m two", "flow", 0.3)]
    again = counted_traffic.merged(known, [row("m one", "flow", -0.02), row("m three", "flow", 0)])
    errors = [(one["scenario"], one["relative_error"]) for one in again]
    assert errors == [("m one", -0.02), ("m two", 0.3), ("m three", 0)]
    lines = counted_traffic.table(again).splitlines()
    assert lines[2:5] == [
        "| `m` one | –, – | –, – | -2%, – | –, – |",
        "| `m` two | –, – | –, – | **+30%**, – | –, – |",
        "| `m` three | –, – | –, – | +0%, – | –, – |",
    ]
    assert lines[-1] == (
        "Of 3 rows the median error is 2.0% (aim: 5%); 1 are further off than 20% (aim: none)."
    )


def test_the_document_has_the_stored_rows() -> None:
    import counted_traffic

    page = counted_traffic.PAGE.read_text(encoding="utf-8")
    assert counted_traffic.written(page, json.loads(counted_traffic.ROWS.read_text())) == page
