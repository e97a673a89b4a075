"""What the model is wrong by: laws, known answers, and evidence that belongs to this version."""

import json
import math
from dataclasses import replace
from pathlib import Path
from shutil import copyfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student

from numatwin import load_scenario, run_scenario
from numatwin.inputs import write_json
from numatwin.sim.run.model_error import (
    DEGREES,
    EVIDENCE,
    THROUGHPUT,
    Class,
    Evidence,
    class_of,
    kind_of,
    known_error,
    known_evidence,
    model_error,
    student_below,
)
from numatwin.sim.run.uncertainty import with_uncertainty
from numatwin.topologies.catalogue import CATALOGUE
from numatwin.validate.decision_cases import case_files
from numatwin.validate.trust import coverage, holds, intervals, page_of, trust

OF = Class("eris", "flow", "scan", THROUGHPUT)


def rows_of(errors: list[float], source: str = "paper {}", of: Class = OF) -> list[Evidence]:
    """Predictions of 100, off by so much as logarithms, each by another source unless it says."""
    return [
        Evidence(f"e{k}", source.format(k), of, (100.0 * math.exp(e),) * 2, 100.0)
        for k, e in enumerate(errors)
    ]


Q95 = float(student.ppf(0.95, DEGREES))


def test_the_distribution_in_closed_form() -> None:
    scores = np.linspace(-30.0, 30.0, 601)
    assert student_below(scores) == pytest.approx(student.cdf(scores, DEGREES), abs=1e-12)


def test_much_evidence_is_the_quantile_of_its_scale() -> None:
    """400 errors of scale 0.2: 90% of further ones are within ± 2.13 · 0.2."""
    errors = (0.2 * student.ppf((np.arange(400) + 0.5) / 400, DEGREES)).tolist()
    found = model_error(OF, rows_of(errors))
    assert (found.rows, found.sources) == (400, 400)
    assert math.log(found.factor()) == pytest.approx(Q95 * 0.2, rel=0.03)
    assert found.quantiles([0.5])[0] == pytest.approx(0.0, abs=1e-3)


def test_what_facts_explain_is_no_error_of_the_model() -> None:
    """The same errors, all of which facts of ± 1.645 · 0.2 explain."""
    errors = (0.2 * student.ppf((np.arange(400) + 0.5) / 400, DEGREES)).tolist()
    factor = math.exp(1.645 * 0.2)
    explained = [replace(row, facts=(1 / factor, factor)) for row in rows_of(errors)]
    assert model_error(OF, explained).factor() < 1.15
    one_sided = [replace(row, facts=(0.8, 1.0)) for row in rows_of([math.log(0.9)] * 50)]
    assert (
        model_error(OF, one_sided).factor()
        < model_error(OF, rows_of([math.log(0.9)] * 50)).factor()
    )


def test_little_or_other_evidence_is_wide() -> None:
    nothing = model_error(OF, []).factor()
    near = rows_of([0.01, -0.02, 0.015])
    assert nothing > 2.0
    assert 1.05 < model_error(OF, near).factor() < 1.4
    other = Class("commits", "event", "commits", THROUGHPUT)
    of_others, of_many = (model_error(other, count * near) for count in (1, 1000))
    assert (of_others.rows, of_others.sources) == (0, 0)
    assert model_error(OF, near).factor() < of_many.factor() < of_others.factor() < nothing


def test_rows_of_one_source_err_together() -> None:
    """Nine rows of one source count as three of three."""
    one = model_error(OF, rows_of([0.1] * 9, "one"))
    three = model_error(OF, rows_of([0.1] * 3))
    assert one.factor() == pytest.approx(three.factor())
    assert (one.rows, one.sources) == (9, 1)


@given(errors=st.lists(st.floats(-1.0, 1.0), max_size=12), part=st.floats(0.01, 0.49))
def test_laws(errors: list[float], part: float) -> None:
    """Symmetric, rising quantiles; a larger error never makes it narrower."""
    found = model_error(OF, rows_of(errors))
    low, middle, high = found.quantiles([part, 0.5, 1.0 - part])
    assert low <= middle <= high
    assert low == pytest.approx(-high, abs=2e-3)
    more = model_error(OF, rows_of([*errors[:-1], 2.0 * errors[-1]] if errors else []))
    assert more.factor() >= found.factor() * (1.0 - 1e-6)


def test_intervals_hold_as_often_as_they_say() -> None:
    """Sources whose errors have a scale of 0.3: of 300 left-out figures 90% are held."""
    rng = np.random.default_rng(7)
    errors = 0.3 * rng.standard_t(DEGREES, 300)
    scale = float(student.fit(errors, fdf=DEGREES, floc=0.0)[2])
    rows = rows_of(errors.tolist())
    (everything, *_) = coverage(rows)
    assert everything.held == pytest.approx(0.9, abs=0.05)
    assert everything.width == pytest.approx(math.exp(2 * Q95 * scale), rel=0.02)


def test_no_source_is_evidence_for_itself() -> None:
    """A wild error widens the intervals of all others, and not its own."""
    calm = rows_of([0.01] * 8, "calm {}")
    wild = rows_of([2.0], "wild")
    own = list(intervals([*calm, *wild]))[-1]
    (alone,) = intervals([*calm, *rows_of([0.0], "wild")][-1:])
    assert own == pytest.approx(list(intervals([*calm, *rows_of([0.0], "wild")]))[-1])
    assert not holds(wild[0], own)
    assert alone != own
    for row in known_evidence()[:3]:
        assert known_error(row.of, row.source).rows < known_error(row.of).rows


def test_an_interval_of_a_run_has_the_model_s_error() -> None:
    scenario = load_scenario("eris-fig9")
    record = with_uncertainty(run_scenario(scenario), scenario)
    of = class_of(record, "scan") if "scan" in record.throughput else class_of(record, None)
    found = {one["figure"]: one for one in record.uncertainty["model"]}
    error = known_error(of)
    for name, rate in record.throughput.items():
        assert found[f"throughput.{name}"]["factor"] == pytest.approx(error.factor())
        low, high = record.uncertainty["throughput"][name]
        shifts = record.uncertainty["shifts"]["throughput"][name]
        assert low < rate * min(shifts)
        assert high > rate * max(shifts)


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        ({"kind": "upsert"}, "lookup"),
        ({"kind": "transaction"}, "commits"),
        ({"kind": "query", "operators": {"a": {"kind": "scan"}}}, "scan"),
        ({"kind": "query", "operators": {"a": {"kind": "scan"}, "b": {"kind": "sum"}}}, "queries"),
        ({"kind": "aggregate"}, "joins"),
    ],
)
def test_kinds(operation: dict[str, object], kind: str) -> None:
    assert kind_of(operation) == kind


def test_the_file_is_evidence() -> None:
    """Each row once, with a source; factors of facts around or beside 1; figures above 0."""
    text = json.loads(EVIDENCE.read_text())
    assert text["by"] == "python benchmarks/model_error.py --write"
    rows = known_evidence()
    assert len({(row.id, row.of.plane) for row in rows}) == len(rows)
    for row in rows:
        assert row.source
        assert 0.0 < row.measured[0] <= row.measured[1]
        assert row.predicted > 0.0
        assert 0.0 < row.facts[0] <= row.facts[1]
    told = trust(rows)
    assert sum(one.rows for one in told) == len(rows)
    assert all(1.0 <= one.median <= one.largest for one in told)


def test_stored_evidence_is_what_this_version_predicts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the bytes that were counted, all; of decisions, one case; the whole is 'make bench's."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    import model_error as benchmark

    known = {(row.id, row.of.plane): row for row in known_evidence()}
    again = [*benchmark.counted(), *benchmark.decided(case_files(id_="cxl-triad"))]
    assert len(again) >= 140
    for row in again:
        stored = known[row.id, row.of.plane]
        assert (stored.of, stored.measured) == (row.of, row.measured), row.id
        assert stored.predicted == pytest.approx(row.predicted, rel=1e-3), row.id
        assert stored.facts == pytest.approx(row.facts, rel=1e-2), row.id


def test_own_tasks_become_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    import model_error as benchmark

    row = {"scenario": "scan-small: 1, 1", "metric": "throughput.select", "values": [900.0, 800.0]}
    write_json(tmp_path / "rows.json", {"suite": "tasks", "interrupted": False, "rows": [row]})
    machine = copyfile(CATALOGUE.path("zen5-2c"), tmp_path / "machine.yaml")
    benchmark.store(tmp_path, tmp_path / "own")
    (case,) = json.loads((tmp_path / "own" / "tasks" / "cases.json").read_text())
    (row_of,) = benchmark._of_case(case, "flow", machine, "own")
    assert (row_of.measured, row_of.of.kind) == ((800.0, 900.0), "scan")


def test_the_page_is_current() -> None:
    """``numatwin trust --page docs/trust.md`` writes it."""
    page = Path(__file__).parents[2] / "docs" / "trust.md"
    assert page.read_text(encoding="utf-8") == page_of(known_evidence())
