"""Searches: they find what the grid finds, in fewer runs; they go on; what they find is checked."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from refusals import told_by
from study_files import SMALL, study_file

from numatwin.inputs import InputError
from numatwin.inputs.shared_work import SharedWork
from numatwin.sim.studies import engine
from numatwin.sim.studies.evaluate import Row, Runs, rows_of
from numatwin.sim.studies.results import load_results
from numatwin.sim.studies.run_study import run_study
from numatwin.sim.studies.search import search, verify
from numatwin.sim.studies.study import load_study

pytest.importorskip("optuna")

WIDE = """\
name: wide
scenario: eris-fig8-amd
factors:
  machine: [intel-4s-qpi, amd-8n-ht, xeon-4s-ivb]
  system.buffer_commands: {from: 8, to: 1024, steps: 8, scale: log}
  workload.objects.index.keys: {from: 30_000_000, to: 1_000_000_000, steps: 4, scale: log}
constraints: ["utilisation.link.busiest < 12.5%"]
objective: maximise throughput.lookup
"""


@pytest.mark.slow
def test_finds_the_best_of_the_grid(tmp_path: Path) -> None:
    """In half as many runs, the constraint binds: no unconstrained search finds this point."""
    study = load_study(study_file(tmp_path, WIDE))
    run_study(study, tmp_path / "grid", jobs=1)
    grid = load_results(study, tmp_path / "grid")
    assert grid.objective is not None
    best = grid.objective[grid.best()[0]]
    assert best < grid.objective.max()
    found = search(study, tmp_path / "search", jobs=1, seed=1)
    assert found.results.objective is not None
    assert len(found.results.table) <= study.design.count // 2
    assert found.results.objective[found.best[0]] == pytest.approx(best, rel=0.01)
    points = [tuple(row[path] for path in study.runs.paths) for row in found.results.rows]
    assert len(set(points)) == len(points)


def test_goes_on_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    study = load_study(study_file(tmp_path))
    whole = search(study, tmp_path / "whole", runs_max=12, jobs=1)
    first = search(study, tmp_path / "parts", runs_max=5, jobs=2)
    assert (first.new, len(first.results.table)) == (5, 5)
    rest = search(study, tmp_path / "parts", runs_max=12, jobs=2)
    wall = ["wall_s"]
    assert len(rest.results.table) == 12
    assert rest.new == 7
    assert search(study, tmp_path / "whole", runs_max=12).new == 0
    assert rest.results.table.drop_columns(wall).equals(whole.results.table.drop_columns(wall))
    every = search(study, tmp_path / "whole", runs_max=100)
    assert (len(every.results.table), every.stopped) == (18, "every point was run")


def test_rounds_have_their_work_in_common(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one run has read and built, those of later rounds find."""
    shared: list[SharedWork] = []

    def played(runs: Runs, points: Any, work: SharedWork) -> list[Row]:
        shared.append(work)
        return rows_of(runs, points, work)

    monkeypatch.setattr(engine, "rows_of", played)
    study = load_study(study_file(tmp_path))
    search(study, tmp_path / "rows", runs_max=18, jobs=1)
    assert len(shared) == 18
    assert all(work is shared[0] for work in shared)
    parts = list((tmp_path / "rows" / "rows").glob("*.parquet"))
    assert len(parts) == 1


def test_samples_search_the_whole_range(tmp_path: Path) -> None:
    """Between the levels of a grid, and failed runs are never the best."""
    text = SMALL.replace("[4, 8]", "[4, 8, 99]").replace("per cost", "")
    study = load_study(study_file(tmp_path, text + "design: {kind: sobol, points: 8}\n"))
    found = search(study, tmp_path / "rows", runs_max=24, jobs=1)
    rows = found.results.rows
    assert len({row["machine.link_types.ht-full.bandwidth"] for row in rows}) > 10
    assert any("error" in row for row in rows)
    assert all("error" not in rows[at] for at in found.best)


@pytest.mark.slow
def test_verified_on_the_event_plane(tmp_path: Path) -> None:
    """The point that is found is played message by message; then rows are there for good."""
    text = """\
name: event
scenario: eris-fig8-amd
set: {machine: intel-4s-qpi, event_horizon: 100 us, workload.objects.index.keys: 1_000_000}
factors: {system.buffer_commands: [16, 64]}
constraints: ["throughput.lookup > 1 M/s"]
objective: maximise throughput.lookup
"""
    study = load_study(study_file(tmp_path, text))
    found = search(study, tmp_path / "rows", jobs=1)
    told: list[float] = []
    (checked,) = list(verify(study, found, tmp_path / "rows", 2, told.append))
    assert told == sorted(told)
    assert told[-1] == 1.0
    at, results = checked
    row = results.rows[0]
    assert (at, row["plane"]) == (found.best[0], "event")
    assert results.feasible[0]
    assert row["throughput.lookup"] != found.results.rows[at]["throughput.lookup"]
    ((_, again),) = verify(study, found, tmp_path / "rows")
    assert again.rows == results.rows


def test_bad_input(tmp_path: Path) -> None:
    study = load_study(study_file(tmp_path))
    assert "no objective" in told_by(search, replace(study, objective=None), tmp_path / "rows")
    search(study, tmp_path / "rows", runs_max=2, jobs=1)
    assert "rows of a search of this study" in told_by(run_study, study, tmp_path / "rows")
    with pytest.raises(InputError, match="the study has changed since: search"):
        search(study, tmp_path / "rows", seed=1)
    assert search(study, tmp_path / "rows", runs_max=2, seed=1, jobs=1, restart=True).new == 2
