"""Designs: which points a study has, and that samples fill their space evenly."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import told_by
from study_files import study_file

from numatwin.sim.studies import designs
from numatwin.sim.studies.designs import Distribution, Factor
from numatwin.sim.studies.levels import Levels
from numatwin.sim.studies.study import load_study


def listed(*counts: int) -> list[Factor]:
    return [Factor(f"f{k}", Levels(tuple(range(count)))) for k, count in enumerate(counts)]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_a_grid_has_each_combination_once(counts: list[int]) -> None:
    design = designs.grid(listed(*counts))
    assert [values for _, values in design.points()] == list(
        itertools.product(*(range(count) for count in counts))
    )


def test_one_at_a_time() -> None:
    design = designs.one_at_a_time(listed(3, 1, 2))
    points = [design.of(k) for k in range(design.count)]
    assert points == [(0, 0, 0), (1, 0, 0), (2, 0, 0), (0, 0, 1)]


def spread(kind: str, low: float, high: float) -> Factor:
    return Factor("x", Levels((low, high)), Distribution(kind, low, high))


@pytest.mark.parametrize("sample", [designs.latin_hypercube, designs.sobol])
def test_samples_fill_their_space(sample: type) -> None:
    """Of 64 points each has one 64th of each factor's probability for itself."""
    factors = [spread("uniform", 2.0, 6.0), spread("loguniform", 1.0, 1e6)]
    found = sample(factors, 64, 7)
    first, second = (np.array(column) for column in found.columns)
    assert sorted(((first - 2.0) / 4.0 * 64).astype(int)) == list(range(64))
    assert sorted((np.log10(second) / 6.0 * 64).astype(int)) == list(range(64))
    assert sample(factors, 64, 7).columns == found.columns
    assert sample(factors, 64, 8).columns != found.columns


@pytest.mark.parametrize(
    ("distribution", "mean", "deviation"),
    [
        (Distribution("uniform", 0.0, 12.0), 6.0, 12.0 / 12**0.5),
        (Distribution("triangular", 0.0, 6.0, mode=0.0), 2.0, 2.0**0.5),
        (Distribution("normal", mean=5.0, deviation=2.0), 5.0, 2.0),
        (Distribution("lognormal", mean=1.0, deviation=0.5), np.exp(1.125), None),
    ],
)
def test_distributions(distribution: Distribution, mean: float, deviation: float | None) -> None:
    drawn = distribution.quantiles((np.arange(20_000) + 0.5) / 20_000)
    assert drawn.mean() == pytest.approx(mean, rel=0.01)
    if deviation is not None:
        assert drawn.std() == pytest.approx(deviation, rel=0.01)
    assert (np.diff(drawn) > 0).all()


def test_normal_within_its_ends() -> None:
    cut = Distribution("normal", low=4.0, high=5.5, mean=5.0, deviation=2.0)
    drawn = cut.quantiles(np.linspace(0.0, 1.0, 101))
    assert drawn[0] == pytest.approx(4.0)
    assert drawn[-1] == pytest.approx(5.5)


STUDY = """\
name: s
scenario: eris-fig8-amd
factors: {FACTORS}
design: {DESIGN}
"""


def study(folder: Path, factors: str, design: str) -> designs.Design:
    text = STUDY.replace("{FACTORS}", factors).replace("{DESIGN}", design)
    return load_study(study_file(folder, text)).design


def test_a_table(tmp_path: Path) -> None:
    (tmp_path / "points.csv").write_text(
        "system.nodes,workload.clients.think_time,note\n2,1 us,a\n4,500 ns,b\n\n8,1 us,c\n"
    )
    factors = "{system.nodes: [1], workload.clients.think_time: [1 us]}"
    found = study(tmp_path, factors, "{kind: table, file: points.csv}")
    assert [found.of(k) for k in range(found.count)] == [(2, 1.0), (4, 0.5), (8, 1.0)]
    assert [factor.unit for factor in found.factors] == ["", "us"]


def test_samples_of_a_study(tmp_path: Path) -> None:
    factors = "{system.buffer_commands: {from: 1, to: 100}, machine: [amd-8n-ht, intel-4s-qpi]}"
    found = study(tmp_path, factors, "{kind: sobol, points: 40, seed: 3}")
    buffers, machines = zip(*(found.of(k) for k in range(40)), strict=True)
    assert all(isinstance(value, int) and 1 <= value <= 100 for value in buffers)
    assert 15 <= machines.count("amd-8n-ht") <= 25


@pytest.mark.parametrize(
    ("factors", "design", "message"),
    [
        ("{system.nodez: [1, 2]}", "grid", "study.yaml:3:11: factors.system.nodez: unknown field"),
        ("{seed: []}", "grid", "study.yaml:3:11: factors.seed.values: an empty list"),
        ("{seed: {from: 5, to: 1}}", "grid", "factors.seed: an empty range: found '5 to 1'"),
        ("{seed: {from: 5}}", "grid", "factors.seed: expected values, or a range 'from' and 'to'"),
        ("{seed: '1:5:0'}", "grid", "factors.seed: an empty range: found '0 values'"),
        ("{horizon: {from: 1 s, to: 1 GB/s}}", "grid", "units that do not fit each other"),
        ("{seed: [1]}", "sobol", "design.points: expected 'points'"),
        ("{seed: [1]}", "{kind: grid, points: 5}", "design.points: a grid has none"),
        ("{seed: [1]}", "{kind: best}", "design.kind: found 'best'"),
        ("{seed: [1]}", "{kind: table, file: none.csv}", "none.csv: cannot be read"),
        ("{horizon: {distribution: normal, mean: 1 s}}", "grid", "expected mean and deviation"),
    ],
)
def test_refused(tmp_path: Path, factors: str, design: str, message: str) -> None:
    assert message in told_by(study, tmp_path, factors, design)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", "an empty table"),
        ("system.node\n1\n", "points.csv:1: no column 'system.nodes'"),
        ("system.nodes,b\n1\n", "points.csv:2:1: wrong row: found '1', expected 2 fields"),
        ("system.nodes,b\n1,2\n,3\n", "points.csv:3: an empty cell"),
    ],
)
def test_tables_refused(tmp_path: Path, table: str, message: str) -> None:
    (tmp_path / "points.csv").write_text(table)
    of_table = "{kind: table, file: points.csv}"
    assert message in told_by(study, tmp_path, "{system.nodes: [1]}", of_table)
