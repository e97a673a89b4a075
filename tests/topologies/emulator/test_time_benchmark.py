"""A tiny run of the benchmark of times that counts predict."""

import pytest
from benchmark_runs import printed_by
from emulator_needed import needs_emulator


@needs_emulator
@pytest.mark.sweep
def test_tiny_run_predicts_a_chase() -> None:
    tiny = "--machine intel-4s-qpi --mebibytes 1 --runs 1 --programs chase"
    (row,), _ = printed_by("emulator_time", *tiny.split())
    least, most = row["interval_s"]
    assert 0 < least <= row["value"] <= most
