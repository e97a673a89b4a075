"""Which of a study's runs is the best, which are at the front, and which did not settle."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from study_files import SMALL, study_file

from numatwin.sim.run.replications import UNSETTLED as WARNING
from numatwin.sim.studies.evaluate import UNSETTLED
from numatwin.sim.studies.results import Results, results_of, rounded, spans
from numatwin.sim.studies.store import table_of
from numatwin.sim.studies.study import load_study

CHEAPEST = SMALL.replace("maximise throughput.lookup per cost", "minimise cost")
MACHINE = {"machine.nodes": 4, "machine.cores": 8, "machine.memory_GB": 64.0, "machine.ports": 0}
SHORT = f"{WARNING}a pilot run of 1 ms does not settle"


def made(folder: Path, text: str, rows: list[dict[str, Any]]) -> Results:
    """Results of rows that hold the constraint, a point each."""
    study = load_study(study_file(folder, text))
    whole = [
        {"point": k, "utilisation.link.busiest": 0.5, **MACHINE, **row}
        for k, row in enumerate(rows)
    ]
    return results_of(study, table_of(whole))


def figures(rate: float, power_W: float, **other: Any) -> dict[str, Any]:
    return {"throughput.lookup": rate, "power_W": power_W, **other}


def test_of_equal_cost_the_faster_run_is_the_best(tmp_path: Path) -> None:
    """And of as fast ones that of less power; what breaks a constraint is none, however fast."""
    dear = {"machine.nodes": 8}
    rows = [
        figures(1e9, 300.0),
        figures(2e9, 400.0),
        figures(2e9, 300.0),
        figures(9e9, 300.0, **dear),
        figures(9e9, 100.0, **{"utilisation.link.busiest": 0.9}),
    ]
    results = made(tmp_path, CHEAPEST, rows)
    assert results.best(9) == [2, 1, 0, 3]
    assert results.front("cost", "throughput.lookup") == [2, 3]


def test_what_differs_by_rounding_is_equal(tmp_path: Path) -> None:
    """As fast to nine digits: the one of less power, though its figure ends in less."""
    text = SMALL.replace("maximise throughput.lookup per cost", "maximise throughput.lookup")
    results = made(tmp_path, text, [figures(1e9 * (1 + 1e-12), 400.0), figures(1e9, 300.0)])
    assert results.best(2) == [1, 0]
    assert results.front("power_W", "throughput.lookup") == [1]
    values = np.array([0.0, np.nan, np.inf, -1.23456789012, 1.23456789012e-9])
    expected = [0.0, np.nan, np.inf, -1.23456789, 1.23456789e-9]
    assert np.allclose(rounded(values), expected, rtol=1e-15, atol=0, equal_nan=True)


def test_the_front_of_a_latency_is_of_short_ones(tmp_path: Path) -> None:
    path = "latency_ns.lookup.p99"
    text = SMALL.replace("maximise throughput.lookup per cost", f"minimise {path}")
    rows = [
        figures(1e9, 300.0, **{path: 50.0}),
        figures(1e9, 400.0, **{path: 40.0}),
        figures(1e9, 500.0, **{path: 60.0}),
    ]
    results = made(tmp_path, text, rows)
    assert results.main == path
    assert results.wants_less(path)
    assert results.front("power_W", path) == [0, 1]
    assert results.best() == [1]


def test_runs_that_did_not_settle(tmp_path: Path) -> None:
    rows = [figures(k * 1e9, 300.0, **({} if k == 1 else {UNSETTLED: SHORT})) for k in range(1, 5)]
    results = made(tmp_path, SMALL, rows)
    assert results.unsettled_points == [1, 2, 3]
    assert results.notes == [f"Note (points 1 to 3, among them 3, the best): {SHORT}"]
    rows[3].pop(UNSETTLED)
    assert made(tmp_path, SMALL, rows).notes == [f"Note (points 1 to 2): {SHORT}"]
    assert made(tmp_path, SMALL, rows[:1]).notes == []
    lengths = [row | {UNSETTLED: f"{WARNING}of {k} ms"} for k, row in enumerate(rows)]
    notes = made(tmp_path, SMALL, lengths).notes
    assert notes[0] == f"Note (point 3, the best): {WARNING}of 3 ms"
    assert notes[-1] == "Note: 1 more such notes, of runs of other lengths"
    assert len(notes) == 4


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([4], "point 4"),
        ([1, 0, 2, 7], "points 0 to 2, 7"),
        ([*range(0, 40, 2), 40, 41], "points 0, 2, 4, 6, 8, 10 and 16 more"),
    ],
)
def test_spans(numbers: list[int], text: str) -> None:
    assert spans(numbers, "point") == text
