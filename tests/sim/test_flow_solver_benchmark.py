"""A tiny run of the flow solver's benchmark, and its comparison with SimGrid."""

import functools
import json
import os
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from benchmark_runs import imported
from numpy.testing import assert_allclose

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "flow_solver.py"

pytestmark = pytest.mark.skipif(
    shutil.which(os.environ.get("CXX", "g++")) is None, reason="no C++ compiler"
)


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    module = imported("flow_solver")
    # Each contender is compiled once for all tests here.
    program = functools.cache(
        functools.partial(module.Program, tmp_path_factory.mktemp("programs"))
    )
    vars(module)["Program"] = lambda folder, *words: program(*words)
    return module


# The same on every machine: only + - * / of doubles.
HASH = "e5f69afd3284826b"


def test_tiny_run_prints_figures_and_a_hash(
    benchmark: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    words = [str(SCRIPT), "--windows", "20", "--flows", "600", "--repeat", "1"]
    monkeypatch.setattr(sys, "argv", words)
    benchmark.main()
    printed = capfd.readouterr()
    assert printed.err == f"flow_solver/hypercube64/20_flows: result {HASH}\n"
    lines = [json.loads(line) for line in printed.out.splitlines()]
    assert len(lines) >= 1
    for line in lines:
        assert set(line) == {"name", "value", "unit", "versus", "ratio"}
        assert line["value"] > 0
        assert line["ratio"] > 0


# Node 5 = 000101 to node 3 = 000011: bit 1 and bit 2 differ. Bit 1 first, from 5; then bit 2, from
# 7 = 000111.
def test_routes_are_e_cube(benchmark: ModuleType) -> None:
    flows = benchmark.hypercube_flows(2000, seed=2)
    for f in range(len(flows.volume)):
        at = flows.source[f]
        for link in flows.resource[flows.row_ptr[f] : flows.row_ptr[f + 1]]:
            node, dimension = divmod(int(link), 6)
            differs = int(at ^ flows.target[f])
            assert (node, dimension) == (at, (differs & -differs).bit_length() - 1)
            at ^= 1 << dimension
        assert at == flows.target[f]
    assert 5 * 6 + 1 in flows.resource
    assert_allclose(np.diff(flows.row_ptr).mean(), 6 * 32 / 63, rtol=0.05)


@pytest.fixture(scope="module")
def simgrid(benchmark: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> object:
    if not benchmark.has_simgrid():
        pytest.skip("SimGrid's headers are not installed (Debian: libsimgrid-dev)")
    return benchmark.Program(tmp_path_factory.mktemp("simgrid"), "flow_solver_simgrid", "-lsimgrid")


@pytest.mark.simgrid
@pytest.mark.parametrize("window", [100, 1000])
def test_completion_times_are_those_of_simgrid(
    benchmark: ModuleType, simgrid: Any, tmp_path: Path, window: int
) -> None:
    flows = benchmark.hypercube_flows(3000, seed=3)
    theirs = simgrid.run(flows, window)
    classes = benchmark.on_kernel(tmp_path, "flow_solver_classes", "class_sharing.cpp")
    ours = classes.run(flows, window)
    # A closed loop is chaotic: see COMPARED_PER_PLACE.
    first = slice(benchmark.COMPARED_PER_PLACE * window)
    assert np.all(theirs.times[first] > 0)
    assert_allclose(ours.times[first], theirs.times[first], rtol=1e-6)
