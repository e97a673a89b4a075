"""Calibrated intervals on the stored real runs hold what they say: in the flow plane."""

from benchmark_runs import printed_by


def test_flow_plane_on_stored_runs() -> None:
    """40 rows tell the share to ± 8% (a binomial's deviation times 1.64); the aim is ± 5%."""
    (line,), _ = printed_by("coverage", "--planes", "flow", "--jobs", "1")
    assert set(line) == {"name", "value", "unit", "versus", "ratio"}
    assert line["name"].startswith("coverage/throughput, 40 rows")
    assert 0.85 <= line["value"] <= 0.95
