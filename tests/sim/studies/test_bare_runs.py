"""A run inside a study: the figures that it keeps are those of ``numatwin run``."""

import pytest

from numatwin.inputs.shared_work import SharedWork, shared
from numatwin.sim.run.runner import bare_record, run_scenario
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.studies.base import Base
from numatwin.sim.studies.evaluate import Metrics, Runs, figures, rows_of

EVERYTHING = {"throughput", "operations", "latency_ns", "bandwidth_Bps", "power_W", "energy_J"}
CLOCK = "machine.node_types.opteron-6274-die.clock"
UNLIKE = {"point": None, "wall_s": None}
EVERYTHING |= {"utilisation", "resources", "model", "machine", "warm_up_s"}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("eris-fig8-amd", ["workload.clients.think_time=3 us"]),
        ("eris-fig9", []),
        ("eris-fig13-small", ["horizon=200 ms"]),
        ("eris-fig8-amd", ["plane=event", "event_horizon=100 us", "statistics.replications=2"]),
        ("nam-fig6-rsi", ["event_horizon=2 ms", "statistics.replications=2"]),
    ],
)
def test_same_figures(name: str, settings: list[str]) -> None:
    scenario = load_scenario(name, settings=settings)
    whole, bare = run_scenario(scenario, workers=1), bare_record(scenario)
    assert dict(figures(bare, scenario, EVERYTHING)) == dict(figures(whole, scenario, EVERYTHING))
    assert {op: why.resource for op, why in bare.why.items()} == {
        op: why.resource for op, why in whole.why.items()
    }
    assert bare.confidence == whole.confidence
    with_gains = bare_record(scenario, gains=True)
    assert with_gains.why == whole.why


def test_shared_work_changes_nothing() -> None:
    """Machines, workloads and files that are made once give the same scenarios."""
    cases = [
        ["machine=intel-4s-qpi"],
        ["machine.node_types.opteron-6274-die.clock=2 GHz"],
        ["machine.node_types.opteron-6274-die.clock=3 GHz", "workload.objects.index.keys=1000"],
        ["workload.clients.think_time=1 us"],
        [],
    ]
    alone = [load_scenario("eris-fig8-amd", settings=case) for case in cases]
    with shared(SharedWork()):
        for _ in range(2):
            for case, before in zip(cases, alone, strict=True):
                again = load_scenario("eris-fig8-amd", settings=case)
                assert (again.hash, again.settings) == (before.hash, before.settings)


@pytest.mark.parametrize("name", ["eris-fig8-amd", "eris-fig8-amd-shared"])
def test_rows_are_those_of_single_runs(name: str) -> None:
    """To the last digit, whatever runs before have left: machines, costs, caches of them."""
    paths = ("system.nodes", "workload.objects.index.keys", CLOCK, "system.buffer_commands")
    points = [(8, 1_000_000, 2.0, 64), (4, 100_000_000, 2.0, 64), (8, 100_000_000, 3.0, 8)]
    points += [(4, 1_000_000, 3.0, 512), points[0]]
    kept = Metrics((*EVERYTHING, *(f"{root}.*" for root in (*EVERYTHING, "bottleneck"))))
    runs = Runs(Base(name), paths, ("", "", "GHz", ""), kept)
    rows = rows_of(runs, list(enumerate(points)), SharedWork())
    for (at, values), row in zip(enumerate(points), rows, strict=True):
        scenario = load_scenario(name, settings=runs.settings(at, values)[0])
        assert row["scenario_hash"] == scenario.hash
        alone = kept.of(run_scenario(scenario), scenario)
        assert {name: row[name] for name in alone} == alone
        assert len(alone) > 100
    assert rows[0] | UNLIKE == rows[-1] | UNLIKE


def test_own_seeds() -> None:
    brief = ("event_horizon=100 us", "statistics.replications=2")
    base = Base("eris-fig8-amd", {"plane": "event"}, brief)
    rows = rows_of(
        Runs(base, (), (), Metrics(), own_seeds=True), [(0, ()), (1, ()), (0, ())], SharedWork()
    )
    first, other, again = (row["throughput.lookup"] for row in rows)
    assert first == again != other
