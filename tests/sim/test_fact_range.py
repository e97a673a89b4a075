"""The range over uncertain facts: each corner is simulated, and tells how far it is."""

from itertools import pairwise
from pathlib import Path

import pytest
from small_scenarios import CACHE, LOOKUP, NODE, small_file

from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario

UNCERTAIN = f"{NODE}memory.latency={{value: 90 ns, range: [80 ns, 120 ns], doubtful: true}}"


def test_progress_covers_the_corners(tmp_path: Path) -> None:
    """Three runs of one length: the scenario itself, longer latency, shorter latency."""
    seen: list[float] = []
    path = small_file(tmp_path, LOOKUP, caches=CACHE)
    record = run_scenario(load_scenario(path, settings=[UNCERTAIN]), progress=seen.append)
    low, high = record.fact_range["throughput"]["lookup"]
    assert low < record.throughput["lookup"] < high
    assert len(record.fact_range["corners"]) == 2
    assert all(one <= other for one, other in pairwise(seen))
    assert {round(run / 3, 9) for run in (1, 2, 3)} <= {round(part, 9) for part in seen}
    assert seen[-1] == pytest.approx(1.0)
