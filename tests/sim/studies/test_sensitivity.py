"""Sensitivity indices against a function whose indices are known, and of studies."""

import math
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from refusals import told_by
from study_files import study_file

import numatwin
from numatwin.inputs import InputError
from numatwin.sim.studies.base import Base
from numatwin.sim.studies.designs import Factor
from numatwin.sim.studies.levels import Levels
from numatwin.sim.studies.sensitivity import (
    _analysed,
    _problem,
    _salib,
    _Sample,
    _screened,
    _with_pairs,
    fact_factors,
    screening,
    sensitivity,
)
from numatwin.sim.studies.study import load_study

pytest.importorskip("SALib")


@pytest.mark.filterwarnings("ignore")
def test_ishigami() -> None:
    """sin x1 + 7 sin² x2 + 0.1 x3⁴ sin x1 on [-π, π]: S = 0.314, 0.442, 0; ST = 0.558, 0.442, 0.244
    (Ishigami and Homma, ISUMA 1990).
    """
    sample, analyze = _salib()
    problem = {"num_vars": 3, "names": ["a", "b", "c"], "bounds": [[0.0, 1.0]] * 3}
    x = (2 * sample.sample(problem, 4096, calc_second_order=False, seed=1) - 1) * math.pi
    figures = np.sin(x[:, 0]) * (1 + 0.1 * x[:, 2] ** 4) + 7 * np.sin(x[:, 1]) ** 2
    found = {index.path: index for index in _analysed("y", problem, figures, analyze, 1).indices}
    for name, first, total in (("a", 0.314, 0.558), ("b", 0.442, 0.442), ("c", 0.0, 0.244)):
        assert abs(found[name].first - first) < max(2 * found[name].first_half, 0.01)
        assert abs(found[name].total - total) < max(2 * found[name].total_half, 0.01)
        assert found[name].first_half < 0.1


def test_screening_of_a_known_function() -> None:
    """y = 6 a - 2 b + 0 c: a step of two thirds of the range brings 4, -4/3 and 0, everywhere."""
    from SALib.analyze import morris as analyze
    from SALib.sample import morris as sample

    problem = _problem([Factor(name, Levels((0, 1))) for name in "abc"])
    parts = np.asarray(sample.sample(problem, 8, num_levels=4, seed=1))
    found = _screened("y", problem, parts, 6 * parts[:, 0] - 2 * parts[:, 1], analyze, 1)
    assert [one.path for one in found.effects] == ["a", "b", "c"]
    assert [one.size for one in found.effects] == pytest.approx([4, 4 / 3, 0])
    assert [one.mean for one in found.effects] == pytest.approx([4, -4 / 3, 0])
    assert all(one.deviation is not None and one.deviation < 1e-9 for one in found.effects)
    assert max(one.size_half for one in found.effects) < 1e-9


@pytest.mark.filterwarnings("ignore")
def test_screening_of_a_study(tmp_path: Path) -> None:
    """The factor that Sobol indices put last is last here too, in fewer runs."""
    study = load_study(study_file(tmp_path))
    found = screening(study, study.factors, "throughput.lookup", trajectories=6, jobs=1)
    assert found.runs == 6 * 4
    last, first = found.effects[-1], found.effects[0]
    assert last.path == "machine.link_types.ht-full.bandwidth"
    assert last.size + last.size_half < first.size - first.size_half


UNORDERED = """\
name: unordered
scenario: eris-fig8-amd
factors:
  machine: [amd-8n-ht, intel-4s-qpi, epyc-2s-nps4]
  system.buffer_commands: [256, 16]
"""


@pytest.mark.filterwarnings("ignore")
def test_what_has_no_order_has_no_sign(tmp_path: Path) -> None:
    """A machine's effect has a size alone, which does not depend on the order in the file; numbers
    are taken by size: 256 buffers are better than 16 though the file has them first.
    """
    turned = UNORDERED.replace(
        "amd-8n-ht, intel-4s-qpi, epyc-2s-nps4", "epyc-2s-nps4, amd-8n-ht, intel-4s-qpi"
    )
    studies = (load_study(study_file(tmp_path, text)) for text in (UNORDERED, turned))
    found, other = (
        screening(one, one.factors, "throughput.lookup", trajectories=4, jobs=1).effects
        for one in studies
    )
    assert found == other
    machine, buffers = found
    assert (machine.path, machine.mean, machine.deviation) == ("machine", None, None)
    assert machine.size > 0
    assert buffers.mean is not None
    assert buffers.mean > 0


def test_each_pair_of_values_without_order_may_be_compared() -> None:
    """Two thirds of a list of five would never reach the third one."""
    factor = Factor("machine", Levels(tuple("abcde")))
    parts = np.tile([[0.0], [2 / 3]], (200, 1))
    drawn = factor.drawn(_with_pairs([factor], parts, 2, 1)[:, 0])
    pairs = {frozenset(drawn[k : k + 2]) for k in range(0, 400, 2)}
    assert pairs == set(map(frozenset, combinations("abcde", 2)))


@pytest.mark.filterwarnings("ignore")
def test_of_a_study(tmp_path: Path) -> None:
    """Cores decide, links that are far from full do not."""
    study = load_study(study_file(tmp_path))
    found = sensitivity(study, study.factors, "throughput.lookup", base_points=16, jobs=1)
    assert found.runs == 16 * 5
    assert found.low < found.mean < found.high
    assert found.indices[-1].path == "machine.link_types.ht-full.bandwidth"
    assert found.indices[-1].total < 0.01 < found.indices[0].total
    again = sensitivity(study, study.factors, "throughput.lookup", base_points=16, jobs=2)
    assert again == found


# Keys fill the memory of node 0 at 2.86·10^9: the upper hundredth of the range fails.
FAILING = """\
name: failing
scenario: eris-fig8-amd
factors:
  workload.objects.index.keys: {from: 1_000_000, to: 2_900_000_000, steps: 5}
  machine.link_types.ht-full.bandwidth: {from: 4 GB/s, to: 12 GB/s, steps: 3}
"""


@pytest.mark.filterwarnings("ignore")
def test_failed_runs_are_counted_or_left_out(tmp_path: Path) -> None:
    study = load_study(study_file(tmp_path, FAILING))
    metric = "throughput.lookup"
    asked = partial(sensitivity, study, study.factors, metric, base_points=32, jobs=1)
    with pytest.raises(InputError) as failure:
        asked()
    assert failure.value.message.startswith("4 of 128 runs of the sample failed, the first: the da")
    assert "(numatwin run eris-fig8-amd --set workload.objects.index.keys=" in failure.value.message
    assert failure.value.expected == (
        "narrower ranges: none of 124 failed with workload.objects.index.keys below 2.873e+09, or "
        "--leave-out-failed, without 2 of 32 base points"
    )
    found = asked(leave_out_failed=True)
    assert (found.left_out, found.runs) == (2, 120)
    assert found.indices[0].path == "workload.objects.index.keys"


def test_few_trajectories_may_be_left_out() -> None:
    parts = np.linspace(0.0, 1.0, 60).reshape(60, 1)
    sampled = _Sample("morris", "trajectories", parts, 3)  # 20 of them
    figures = np.ones(60)
    assert sampled.kept(figures, leave_out_failed=False).all()
    sampled._first = 4, "no room", "numatwin run x"
    figures[[4, 5, 59]] = np.nan
    kept = sampled.kept(figures, leave_out_failed=True)
    assert sampled.left_out(kept) == 2
    assert np.flatnonzero(~kept).tolist() == [3, 4, 5, 57, 58, 59]
    figures[30] = np.nan  # a third one is more than a tenth
    assert "no room" in told_by(sampled.kept, figures, leave_out_failed=True)


@pytest.mark.filterwarnings("ignore")
def test_a_sample_that_fails_ends_early(tmp_path: Path) -> None:
    text = FAILING.replace("2_900_000_000", "6_000_000_000")
    study = load_study(study_file(tmp_path, text))
    with pytest.raises(InputError, match=r"of \d\d runs of the sample failed"):
        sensitivity(study, study.factors, "throughput.lookup", base_points=64, jobs=1)


def test_doubtful_facts_are_factors() -> None:
    factors = fact_factors(Base("eris-fig8-amd", {"machine": "xeon-8s-ivb"}))
    assert factors
    for factor in factors:
        assert factor.path.startswith("machine.")
        low, high = factor.levels.values
        assert low < high
        assert factor.drawn(np.array([0.0, 1.0])) == pytest.approx([low, high])
    assert "has no uncertain facts with a range" in told_by(fact_factors, Base("eris-fig8-amd"))


def test_from_python(tmp_path: Path) -> None:
    table = numatwin.study(study_file(tmp_path), jobs=1, limit=4)
    assert table.num_rows == 4
    assert min(table["throughput.lookup"].to_pylist()) > 0
    assert numatwin.study(study_file(tmp_path), out=tmp_path / "rows", jobs=1).num_rows == 18
    assert (tmp_path / "rows" / "study.json").exists()
