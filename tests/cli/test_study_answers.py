"""``numatwin study frontier`` and ``explain``: what the runs of a study say."""

import sys
from pathlib import Path

import pytest
from command_line import CommandLine, Refused

sys.path.append(str(Path(__file__).parents[1] / "sim" / "studies"))
from study_files import SMALL, study_file


def test_frontier_and_explanation(numatwin: CommandLine, tmp_path: Path) -> None:
    study_file(tmp_path)
    run = numatwin("study", "run", "study.yaml", "--json").json()
    front = numatwin("study", "frontier", "study.yaml", "--json").json()
    # All cost the same: the best one alone is at the front.
    assert [row["point"] for row in front["rows"]] == [run["best"][0]["point"]]
    assert front["rows"][0]["slack"]["utilisation.link.busiest < 80%"] > 0
    watts = numatwin("study", "frontier", "study.yaml", "--least", "power_W", "--json").json()
    rising = [(row["power_W"], row["throughput.lookup"]) for row in watts["rows"]]
    assert len(rising) > 1
    assert rising == sorted(rising)
    found = numatwin("study", "explain", "study.yaml", "--json").json()
    parts = sum(step["part"] for step in found["steps"])
    assert parts == pytest.approx(found["after"] - found["before"], rel=1e-9)
    assert found["steps"][0]["path"] == "system.nodes"
    way = found["way"]
    assert [step["path"] for step in way] == [step["path"] for step in found["steps"]]
    assert way[-1]["figure"] == found["after"]
    chain = [found["bound_by"], *(step["then_bound_by"] for step in way)]
    assert [step["bound_by"] for step in way] == chain[:-1]
    assert all(chain)
    printed = numatwin("study", "explain", "study.yaml", "--from", "1", "--to", "0").out
    assert "1. system.nodes 8 → 4" in printed
    assert "bound by: " in printed
    assert "4 → " not in printed
    assert "8 → 4" in printed


def test_bad_input(refused: Refused, numatwin: CommandLine, tmp_path: Path) -> None:
    study_file(tmp_path)
    assert "no run yet" in refused("study", "frontier", "study.yaml")
    numatwin("study", "run", "study.yaml", "--limit", "2")
    wrong = ("study", "frontier", "study.yaml", "--metric", "speed")
    assert "no run has such a figure: found 'speed'" in refused(*wrong)
    explain = ("study", "explain", "study.yaml", "--to")
    assert "no such point: found '18', expected 0 to 17" in refused(*explain, "18")
    assert "factors that differ: found '0', expected 1 to 8" in refused(*explain, "0")
    sensitivity = ("study", "sensitivity", "study.yaml")
    assert "--points: found '6'" in refused(*sensitivity, "--points", "6")
    assert "has no uncertain facts" in refused(*sensitivity, "--facts")
    study_file(tmp_path, SMALL.replace("[4, 8]", "[4, 99]"))
    said = refused(*sensitivity, "--points", "2")
    assert "3 of 4 runs of the sample failed, the first: " in said
    assert "(numatwin run eris-fig8-amd --set " in said
    assert "--set system.nodes=99): expected ranges in which no run fails" in said


def test_explained_from_the_first_run_that_did_not_fail(
    numatwin: CommandLine, refused: Refused, tmp_path: Path
) -> None:
    study_file(tmp_path, SMALL.replace("[4, 8]", "[99, 4, 8]"))
    numatwin("study", "run", "study.yaml")
    found = numatwin("study", "explain", "study.yaml", "--json").json()
    assert found["before"] > 0
    assert found["from"] > 0
    said = refused("study", "explain", "study.yaml", "--from", "0")
    assert "an intermediate run failed: " in said
    assert "(numatwin run eris-fig8-amd --set " in said
    assert "--set system.nodes=99)" in said
