"""An engine's operations given its others: known answers of three whose only unknown is one."""

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from benchmark_runs import imported

from numatwin.sim.run.model_error import THROUGHPUT, Class

MIDDLES_S = {"get": 4e-6, "incr": 3e-6, "mset": 13e-6}
SLOWER = 0.6  # instructions per cycle, of the middle


@pytest.fixture(scope="module")
def given() -> ModuleType:
    return imported("given_operations")


@pytest.fixture
def rows(given: Any) -> list[Any]:
    """Draws of instructions per cycle from a fifth to five times the middle; GET twice."""
    times = np.exp(np.linspace(-np.log(5.0), np.log(5.0), 4001))
    of = Class("tasks", "flow", "scan", THROUGHPUT)
    kinds = [(name, name, 1, of, middle_s) for name, middle_s in MIDDLES_S.items()]
    kinds.append(("get", "get-16", 1, of, 1e-6))
    return [given.Operation(*kind, times * kind[-1]) for kind in kinds]


def measured(rows: list[Any], *times: float) -> list[Any]:
    return [
        replace(row, measured_s=row.measured_s * each)
        for row, each in zip(rows, times, strict=True)
    ]


def test_the_others_tell_the_rate_of_an_engine(given: Any, rows: list[Any]) -> None:
    found = given.given_others(measured(rows, *[1.0 / SLOWER] * 4))
    for row, one in zip(rows, found, strict=True):
        middle, low, high = one.predicted_s
        true_s = row.measured_s / SLOWER
        assert middle == pytest.approx(true_s, rel=0.02)
        assert low < true_s < high
        assert 1.3 < high / low < 3.0  # before: 15
        assert 100.0 < one.effective < 2000.0


def test_neither_its_own_time_nor_one_of_its_command_counts(given: Any, rows: list[Any]) -> None:
    """Were GET's ten times as long, only the others would be predicted anew."""
    before = given.given_others(rows)
    after = given.given_others(measured(rows, 10.0, 1.0, 1.0, 10.0))
    same = [one == other for one, other in zip(before, after, strict=True)]
    assert same == [True, False, False, True]


def test_an_operation_is_evidence_once(given: Any, rows: list[Any]) -> None:
    more = [replace(rows[0], clients=count) for count in (8, 1, 2)]
    assert given.evidence_for(rows[1], more) == [more[1]]
    assert given.evidence_for(rows[0], more) == []


def test_draws_that_cannot_be_are_left_out(given: Any, rows: list[Any]) -> None:
    some = rows[0].drawn_s.copy()
    some[::2] = np.nan
    found = given.given_others([replace(rows[0], drawn_s=some), *rows[1:]])
    assert found[0].predicted_s[0] == pytest.approx(rows[0].measured_s, rel=0.02)
    assert np.isfinite(found[1].predicted_s).all()


def test_operations_differ_by_what_they_do_not_have_in_common(
    given: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ratios of 2 and 2.4 of one size, 3 and 3.6 of another: 1.2 apart in both."""
    times = [(1, 1, 2.0), (1, 1, 2.4), (9, 1, 3.0), (9, 1, 3.6), (9, 2, 99.0)]
    rows = [
        {"rows": size, "threads": threads, "counted_s": [ratio, 0.0, 9.0], "measured_s": 1.0}
        for size, threads, ratio in times
    ]
    file = tmp_path / "figures.json"
    file.write_text(json.dumps({"rows": rows}))
    monkeypatch.setattr(given, "ENGINES", [file])
    assert given.own_deviation.__wrapped__() == pytest.approx(np.log(1.2) / np.sqrt(2.0))
