"""``numatwin study frontier`` and ``explain``: what the runs of a study say."""

import shlex
import sys
from pathlib import Path

import pytest
from command_line import CommandLine, Refused

from numatwin.sim.run.replications import UNSETTLED, unsettled

sys.path.append(str(Path(__file__).parents[1] / "sim" / "studies"))
from study_files import SMALL, study_file


def test_frontier_and_explanation(numatwin: CommandLine, refused: Refused, tmp_path: Path) -> None:
    study_file(tmp_path)
    run = numatwin("study", "run", "study.yaml", "--exact", "--json").json()
    front = numatwin("study", "frontier", "study.yaml", "--exact", "--json").json()
    # All cost the same: the best one alone is at the front.
    assert [row["point"] for row in front["rows"]] == [run["best"][0]["point"]]
    assert front["rows"][0]["slack"]["utilisation.link.busiest < 80%"] > 0
    told = refused("study", "frontier", "study.yaml", "--least", "throughput.lookup")
    assert "a frontier of one figure: found 'throughput.lookup'" in told
    watts = numatwin(
        "study", "frontier", "study.yaml", "--least", "power_W", "--exact", "--json"
    ).json()
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
    # What factors bring is relative to where one starts, and adds up; one kind of minus.
    lines = printed.partition("relative to point 1\n")[2].partition("\n\n")[0].splitlines()
    shares = [float(line.split()[-1].replace("−", "-").rstrip("%")) for line in lines]
    by = float(printed.partition(", ×")[2].partition(".\n")[0]) - 1.0
    assert sum(shares) == pytest.approx(100 * by, abs=1.0)
    assert by < 0
    assert "-" not in "".join(line.replace("ht-full", "") for line in lines)
    assert "times." not in printed


SHORT = """\
name: short
scenario: eris-fig8-amd
set: {plane: event, horizon: 60 us, system.threads: 1}
factors: {system.nodes: [4, 8], system.buffer_commands: [16, 64]}
replications: 1
objective: maximise throughput.lookup
"""


def test_runs_that_did_not_settle_are_named(numatwin: CommandLine, tmp_path: Path) -> None:
    """By each command that judges runs, in the words of 'compare', and in its JSON."""
    study_file(tmp_path, SHORT)
    run = numatwin("study", "run", "study.yaml", "--exact", "--json").json()
    best = run["best"][0]
    assert not best["settled"]
    assert [row["point"] for row in run["best"] if not row["settled"]] == [
        row["point"] for row in run["best"] if row["point"] in run["unsettled"]
    ]
    for point in (1, best["point"]):
        shown = numatwin("study", "show", "study.yaml", "--point", str(point), "--json").json()
        own = numatwin(*shlex.split(shown["command"])[1:], "--exact", "--json").json()
        assert (unsettled(own["warnings"]) is not None) == (point in run["unsettled"])
    words = "warm-up: a pilot run of 60 µs does not settle"
    named = f"{best['point']}, the best): {words}"
    assert named in numatwin("study", "run", "study.yaml", "--exact").out
    assert named in numatwin("study", "frontier", "study.yaml", "--exact").out
    front = numatwin("study", "frontier", "study.yaml", "--exact", "--json").json()
    assert front["unsettled"] == run["unsettled"]
    assert not next(row for row in front["rows"] if row["point"] == best["point"])["settled"]
    ends = ("study", "explain", "study.yaml", "--from", "1")
    assert f"the last among them): {words}" in numatwin(*ends).out
    explained = numatwin(*ends, "--json").json()
    assert (explained["from_settled"], explained["to_settled"]) == (
        1 not in run["unsettled"],
        False,
    )
    assert 0 < explained["unsettled"] <= explained["runs"]
    numatwin("study", "report", "study.yaml", "--page", "page.html")
    page = Path("page.html").read_text()
    assert named in page
    assert ", of a run that did not settle" in page
    assert page.count("does not settle") > len(run["unsettled"])  # a cell each


def test_samples_and_sweeps_of_runs_that_did_not_settle(
    numatwin: CommandLine, tmp_path: Path
) -> None:
    pytest.importorskip("SALib")
    study_file(tmp_path, SHORT)
    ask = ("study", "sensitivity", "study.yaml", "--points", "2", "--method")
    found = numatwin(*ask, "morris", "--json").json()
    assert 0 < found["unsettled"] <= found["runs"] == 6
    words = "warm-up: a pilot run of 60 µs does not settle"
    assert f"Note ({found['unsettled']} of 6 runs): {words}" in numatwin(*ask, "morris").out
    assert f" of 8 runs): {words}" in numatwin(*ask, "sobol").out
    settings = ("horizon=40us", "system.threads=1", "system.buffer_commands=16", "system.nodes=4,8")
    sweep = ["sweep", "eris-fig8-amd", "--on", "event", "--replications", "1", "--exact"]
    sweep += [word for one in settings for word in ("--set", one)]
    shown = numatwin(*sweep).out
    assert "Note (rows 1 to 2): warm-up: a pilot run of 40 µs does not settle" in shown
    assert "lookup.low" not in shown.splitlines()[0]
    rows = numatwin(*sweep, "--json").json()["rows"]
    assert all(row["unsettled"].startswith(UNSETTLED) for row in rows)


def test_bad_input(refused: Refused, numatwin: CommandLine, tmp_path: Path) -> None:
    study_file(tmp_path)
    assert "no run yet" in refused("study", "frontier", "study.yaml")
    numatwin("study", "run", "study.yaml", "--limit", "2", "--exact")
    wrong = ("study", "frontier", "study.yaml", "--metric", "speed")
    assert "no run has such a figure: found 'speed'" in refused(*wrong)
    wrong = ("study", "frontier", "study.yaml", "--metric", "throughput.nope")
    assert "found 'throughput.nope', expected 'throughput.lookup'" in refused(*wrong)
    explain = ("study", "explain", "study.yaml", "--to")
    assert "no such point: found '18', expected 0 to 17" in refused(*explain, "18")
    told = "point 0 is both ends: expected two that differ: --from N and --to M"
    assert told in refused(*explain, "0")
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
    numatwin("study", "run", "study.yaml", "--exact")
    found = numatwin("study", "explain", "study.yaml", "--json").json()
    assert found["before"] > 0
    assert found["from"] > 0
    said = refused("study", "explain", "study.yaml", "--from", "0")
    assert "an intermediate run failed: " in said
    assert "(numatwin run eris-fig8-amd --set " in said
    assert "--set system.nodes=99)" in said
