"""A tiny run of the benchmark of the first answer, and what a first answer does without."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmark_runs import printed_by
from fresh_processes import loads_none


def test_tiny_run_prints_the_whole_and_its_parts() -> None:
    rows, _ = printed_by("first_answer", "gru-fig4-cpu", "--repeat", "1")
    judged = [row for row in rows if row["ratio"] is not None]
    assert [row["name"] for row in judged] == [
        "first answer of gru-fig4-cpu, in all",
        "first answer of gru-fig4-cpu, until the answer",
    ]
    whole, answer = (row["value"] for row in judged)
    assert judged[0]["ratio"] == pytest.approx(whole / 0.6, abs=0.01)
    parts = [row["value"] for row in rows if row["ratio"] is None]
    assert len(parts) == 10
    assert sum(parts[:6]) == pytest.approx(answer, abs=0.005)  # each is rounded to a millisecond


def test_the_answer_comes_before_what_nobody_waits_for(tmp_path: Path) -> None:
    """Neither record nor report, nor the effects of assumptions that only these two show."""
    code = (
        "import sys; import numatwin.cli.run as run; from numatwin.cli import main;"
        "whole = run._with_effects; steps = [];"
        "run._with_effects = lambda *of: (steps.append('effects'), whole(*of))[1];"
        "shown = run._print; run._print = lambda *of: (steps.append('answer'), shown(*of));"
        f"main(['run', 'gru-fig4-cpu', '--out', {str(tmp_path)!r}, *sys.argv[1:]]);"
        "print(*steps)"
    )
    for words, order in (((), "answer effects"), (("--assumptions",), "effects answer")):
        command = [sys.executable, "-c", code, *words]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.stdout.splitlines()[-1] == order, done.stderr
        rows = json.loads((tmp_path / "record.json").read_text())["assumptions"]
        assert any(row["low"]["throughput"] for row in rows if row["low"])


@pytest.mark.parametrize("scenario", ["eris-mixed-amd", "hana-part-worst", "nam-fig6-rsi"])
def test_a_steady_run_and_its_report_load_nothing_slow(scenario: str, tmp_path: Path) -> None:
    """Each of these takes as long to import as the prediction takes."""
    run = f"assert not main(['run', '{scenario}', '--on', 'flow', '--out', {str(tmp_path)!r}])"
    slow = "scipy", "plotly", "pint", "networkx", "sklearn"
    loads_none(f"from numatwin.cli import main; {run}", *slow)
