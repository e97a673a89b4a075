"""Mean effects of factors, and Shapley's parts of a step from one run to another."""

from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from study_files import study_file

from numatwin.sim.studies.explanation import from_rows, level_effects, main_effects, shapley
from numatwin.sim.studies.results import Results, results_of
from numatwin.sim.studies.store import table_of
from numatwin.sim.studies.study import load_study


@given(st.lists(st.floats(-10, 10), min_size=8, max_size=8))
def test_shapley_by_its_definition(values: list[float]) -> None:
    """The mean of what a factor adds, over all orders in which the factors may come."""
    names = ["a", "b", "c"]

    def figure(chosen: frozenset[str]) -> float:
        return values[sum(1 << k for k, name in enumerate(names) if name in chosen)]

    expected = dict.fromkeys(names, 0.0)
    for order in permutations(names):
        for k, name in enumerate(order):
            gain = figure(frozenset(order[: k + 1])) - figure(frozenset(order[:k]))
            expected[name] += gain / 6
    found = shapley(names, figure)
    assert found == pytest.approx(expected, abs=1e-9)
    assert sum(found.values()) == pytest.approx(values[7] - values[0], abs=1e-9)


def product(tmp_path: Path) -> Results:
    """Throughput = nodes times buffers, bandwidth is no matter."""
    study = load_study(study_file(tmp_path))
    rows = []
    for point, (buffers, bandwidth, nodes) in study.design.points():
        names = dict(zip(study.runs.paths, (buffers, bandwidth, nodes), strict=True))
        rows.append({"point": point, **names, "throughput.lookup": float(buffers * nodes)})
    return results_of(study, table_of(rows))


def test_effects_of_a_product(tmp_path: Path) -> None:
    """Mean buffers 112, mean nodes 6: by nodes 4 and 8 the means are 448 and 896."""
    results = product(tmp_path)
    nodes = level_effects(results, "system.nodes", "throughput.lookup")
    assert [(e.value, e.mean, e.runs) for e in nodes] == [(4, 448.0, 9), (8, 896.0, 9)]
    effects = main_effects(results, "throughput.lookup")
    link = "machine.link_types.ht-full.bandwidth"
    assert list(effects) == ["system.buffer_commands", "system.nodes", link]
    low, high = effects["system.buffer_commands"]
    assert (low.value, low.mean, high.value, high.mean) == (16, 96.0, 256, 1536.0)


def test_a_step_explained_from_rows(tmp_path: Path) -> None:
    """16 · 4 = 64 to 256 · 8 = 2,048: nodes bring ((8-4)·16 + (8-4)·256) / 2 = 544."""
    results = product(tmp_path)
    found = from_rows(results, 0, 17, "throughput.lookup")
    assert found is not None
    changed, rows = found
    parts = shapley(changed, lambda chosen: rows[chosen]["throughput.lookup"])
    assert parts["system.nodes"] == pytest.approx(544.0)
    assert parts["system.buffer_commands"] == pytest.approx(1440.0)
    assert parts["machine.link_types.ht-full.bandwidth"] == pytest.approx(0.0)
    assert from_rows(Results(results.study, results.table.slice(0, 17)), 0, 16, "x") is None
