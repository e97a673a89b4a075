"""Records as tables: frames, one table of many runs, and a comparison in a notebook."""

from dataclasses import replace

import pytest
from refusals import told_by

from numatwin import compare_records, load_scenario, run_scenario, run_scenarios
from numatwin.sim.run.record import Record


@pytest.fixture(scope="module")
def record() -> Record:
    return run_scenario(load_scenario("eris-fig12-scan"))


def test_a_row_of_figures(record: Record) -> None:
    pytest.importorskip("pandas")
    frame = record.to_frame()
    assert len(frame) == 1
    assert frame["throughput.scan"][0] == record.throughput["scan"]
    assert frame["bottleneck.resource"][0] == record.why["scan"].resource
    between = {"throughput": {"scan": [1.0, 2.0]}}
    sure = replace(record, confidence=between).to_frame()
    assert (sure["throughput.scan.low"][0], sure["throughput.scan.high"][0]) == (1.0, 2.0)


def test_the_time_series(record: Record) -> None:
    pytest.importorskip("pandas")
    frame = record.to_frame(series=True)
    assert list(frame.columns) == list(record.series)
    assert list(frame["throughput/scan"]) == list(record.series["throughput/scan"])


def test_several_scenarios_in_one_table(record: Record) -> None:
    other = load_scenario("eris-fig12-scan", settings=["system.nodes=2"])
    table = run_scenarios([other, "eris-fig12-scan", "eris-fig5-raw"], settings=["seed=3"])
    assert table["seed"].to_pylist() == [0, 3, 3]
    scans = table["throughput.scan"].to_pylist()
    assert scans[0] < scans[1] == record.throughput["scan"]
    assert scans[2] is None


def test_a_comparison_shows_itself(record: Record) -> None:
    slow = replace(record, title="<b>slow</b>", throughput={"scan": record.throughput["scan"] / 2})
    comparison = compare_records(record, slow)
    row = next(row for row in comparison.rows if row["metric"] == "throughput.scan")
    assert row["ratios"] == [1.0, 0.5]
    html = comparison._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;slow&lt;/b&gt;" in html
    assert "×0.50" in html
    assert html.count("<tr>") == 1 + len(comparison.rows)
    assert "two records or more" in told_by(compare_records, record)


def test_a_comparison_as_a_frame(record: Record) -> None:
    pytest.importorskip("pandas")
    frame = compare_records(record, record).to_frame()
    known = frame["ratio_1"].dropna()
    assert len(known) > 3
    assert (known == 1.0).all()
