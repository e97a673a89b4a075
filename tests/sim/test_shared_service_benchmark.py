"""The benchmark of tasks that share a machine runs, tiny."""

import json
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "shared_service.py"


def test_it_plays_the_same_tasks_each_time() -> None:
    command = [sys.executable, str(BENCHMARK), "--cores", "12", "--nodes", "2"]
    runs = [
        subprocess.run(
            [*command, "--simulated-us", "3000"], capture_output=True, text=True, check=True
        )
        for _ in range(2)
    ]
    assert runs[0].stderr == runs[1].stderr
    assert int(runs[0].stderr.split()[1]) > 100
    found = {line["name"]: line for line in map(json.loads, runs[0].stdout.splitlines())}
    for mix in ("stolen_10", "any"):
        name = f"shared_service/tasks_12_cores_{mix}"
        assert found[name]["value"] > 0
        assert found[f"{name}/over_reference"]["ratio"] > 10
        assert found[f"{name}/over_one_by_one"]["ratio"] > 0
