"""The benchmark of tasks runs, tiny."""

import json
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "tasks.py"


def test_it_plays_the_same_tasks_each_time() -> None:
    sizes = ["--workers", "16", "--nodes", "4", "--simulated-ms", "2", "--reference-ms", "1"]
    sizes += ["--runs", "hana_fig10_flow", "tpch_100_event", "--part", "0.002"]
    runs = [
        subprocess.run(
            [sys.executable, str(BENCHMARK), *sizes], capture_output=True, text=True, check=True
        )
        for _ in range(2)
    ]
    assert runs[0].stderr == runs[1].stderr
    assert int(runs[0].stderr.split()[1]) > 100
    found = [json.loads(line) for line in runs[0].stdout.splitlines()]
    assert [line["name"] for line in found] == [
        "tasks/event_16_workers",
        "tasks/event_versus_reference",
        "tasks/hana_fig10_flow",
        "tasks/tpch_100_event",
    ]
