"""Choosers of access paths: what they see and order, models and their files, bad input."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from numatwin import topologies
from numatwin.inputs import InputError
from numatwin.sim.machine.costs import CostModel
from numatwin.sim.run.record import Record
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.systems.tasks.access_path import AccessModel, Tree, load_access_model
from numatwin.sim.systems.tasks.access_training import (
    Observations,
    observe,
    scores,
    train,
    train_on,
)
from numatwin.sim.systems.tasks.program import Background
from numatwin.sim.systems.tasks.single_scans import EventScans, FlowScans, plain_scan
from numatwin.topologies import load_machine

PATH = "workload.operations.scan.operators.scan.path"
SMALL = ("workload.objects.column.rows=4194304", "horizon=50 ms", "statistics.replications=1")
MACHINE = "sgi-uv300h-8s"
BUNDLED = Path(topologies.__file__).with_name(f"{MACHINE}.yaml")


def ran(*settings: str, policy: str | None = None, plane: str = "flow") -> Record:
    scenario = load_scenario("gru-scan", settings=(*SMALL, *settings), policy=policy, plane=plane)
    return run_scenario(scenario, workers=1)


def rate(*settings: str, policy: str | None = None, plane: str = "flow") -> float:
    return sum(ran(*settings, policy=policy, plane=plane).throughput.values())


@pytest.mark.parametrize("plane", ["flow", "event", "reference"])
def test_a_policy_does_what_a_scan_may_say(plane: str) -> None:
    """It is first asked after 1 ms, and a scan that is under way goes on by CPU."""
    asked = rate(f"{PATH}=null", policy="access-path=copy-engine", plane=plane)
    assert asked == pytest.approx(rate(f"{PATH}=copy-engine", plane=plane), rel=0.2)
    assert asked > 2.0 * rate(f"{PATH}=cpu", plane=plane)


def test_the_oracle_takes_the_faster_path() -> None:
    """Off the blade the engine, on the own node the CPU; never copies that may be stale."""
    found = ran(f"{PATH}=null", policy="access-path=oracle")
    assert [event.text for event in found.control_events] == [
        "oracle: scan/scan of node 4 by copy-engine"
    ]
    near = ran(f"{PATH}=null", "system.tables.column=0", policy="access-path=oracle")
    assert not near.control_events


@pytest.mark.parametrize("plane", ["flow", "event", "reference"])
def test_a_scan_that_says_its_path_is_left_alone_and_that_is_told(plane: str) -> None:
    told = (
        "policy access-path=copy-engine chooses nothing: "
        "no scan by pinned threads leaves its path open"
    )
    record = ran(f"{PATH}=cpu", policy="access-path=copy-engine", plane=plane)
    assert not record.control_events
    assert any(warning.startswith(told) for warning in record.warnings)
    for settings in ((f"{PATH}=null",), ()):
        record = ran(*settings, policy="access-path=copy-engine" if settings else None, plane=plane)
        assert not any("chooses nothing" in warning for warning in record.warnings)


@pytest.mark.parametrize("plane", ["flow", "event"])
def test_background_work_takes_the_engine(plane: str) -> None:
    busy = "system.background=[{kind: copy-engine, node: 0, home: 4, workers: 2}]"
    alone = rate(f"{PATH}=copy-engine", plane=plane)
    disturbed = rate(f"{PATH}=copy-engine", busy, plane=plane)
    assert disturbed == pytest.approx(alone / 3.0, rel=0.1)
    assert rate(f"{PATH}=cpu", busy, plane=plane) > 0.8 * rate(f"{PATH}=cpu", plane=plane)


@pytest.mark.parametrize(
    ("settings", "policy", "message"),
    [
        ((f"{PATH}=copy-engine-noncoherent",), None, "table 'column' may change"),
        ((f"{PATH}=null",), "access-path=copy-engine-noncoherent", "^access path .*may be stale"),
        ((f"{PATH}=copy-engine", "machine.copy_engines=[]"), None, "has no copy engine"),
        (
            (f"{PATH}=null", "machine.copy_engines=[]"),
            "access-path=copy-engine",
            "has no copy engine",
        ),
        (("machine.copy_engines.0.largest=64 KiB",), None, "copy at most 0.0625 MiB at a time"),
        (("system.chunk=1 TiB",), None, "824.6 GB left for two buffers of each"),
        (("system.chunk=200 GB", "system.threads=4"), None, r"threads \(4\)"),
        (("system.unchanging=[rows]",), None, "no such table"),
        (
            ("system.background=[{kind: copy-engine, node: 0, home: 4, workers: 32}]",),
            None,
            "expected at most 31",
        ),
        ((f"{PATH}=null",), "access-path=tree", "needs a file of 'numatwin train'"),
        ((f"{PATH}=null",), "access-path=engine", "unknown policy"),
    ],
)
def test_what_cannot_be_is_refused(
    settings: tuple[str, ...], policy: str | None, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        ran(*settings, policy=policy)


def test_without_coherence_where_data_cannot_change() -> None:
    hidden = "machine.node_types.e7-8890-v2.stream_stall=0"
    free = rate(f"{PATH}=copy-engine-noncoherent", "system.unchanging=[column]", hidden)
    assert free > 1.05 * rate(f"{PATH}=copy-engine", hidden)


@pytest.mark.parametrize("home", [0, 1, 4])
@pytest.mark.parametrize("path", ["cpu", "copy-engine"])
@pytest.mark.parametrize("wires", [0, 2])
@pytest.mark.parametrize("copies", [0, 1])
def test_single_scans_as_flows_and_event_by_event(
    home: int, path: Any, wires: int, copies: int
) -> None:
    costs = CostModel(load_machine(MACHINE))
    stage = plain_scan(costs, 0.01, 512 * 1024.0)
    pieces = [Background("interconnect", 0, home, 1)] * wires
    pieces += [Background("copy-engine", 0, home, 1)] * copies
    events = EventScans(costs, 0, [stage], pieces)
    state = events.state(range(len(pieces)))
    entries = np.array([1e5, 1e7])
    count = np.ones(2, dtype=np.int64)
    played = events.seconds(state * count, 0 * count, home * count, entries, path)
    background = (
        Background("interconnect", 0, home, wires),
        Background("copy-engine", 0, home, copies),
    )
    flowed = FlowScans(costs, 0).rate(stage, home, path, background).seconds(entries)
    assert flowed == pytest.approx(played, rel=0.12)


def test_a_single_scan_is_one_of_the_event_plane() -> None:
    costs = CostModel(load_machine(MACHINE))
    events = EventScans(costs, 0, [plain_scan(costs, 0.0001, 512 * 1024.0)], ())
    one = np.zeros(1, dtype=np.int64)
    (seconds,) = events.seconds(
        one + events.state(()), one, one + 4, np.array([4_194_304.0]), "copy-engine"
    )
    found = ran(f"{PATH}=copy-engine", plane="event").latency_ns["scan"]
    assert found is not None
    mean_ns = found["mean"]
    assert mean_ns is not None
    assert seconds == pytest.approx(mean_ns / 1e9, rel=1e-3)


@pytest.fixture(scope="module")
def model(observed: Observations) -> AccessModel:
    return train(load_machine(MACHINE), observed, 1)


def test_training_scores_and_files(
    model: AccessModel, observed: Observations, tmp_path: Path
) -> None:
    assert model == train(load_machine(MACHINE), observed, 1)
    for value, low, high in model.scores.values():
        assert low <= value <= high
    best = min(model.scores[f"always_{path}_loss"][0] for path in ("cpu", "engine"))
    assert model.scores["regression_loss"][0] < best
    assert model.scores["tree_loss"][0] < best
    file = tmp_path / "model.json"
    model.save(file)
    assert load_access_model(file) == model


def test_a_tree_is_that_of_the_library() -> None:
    tree = Tree(
        feature=(1, -1, 0, -1, -1),
        threshold=(5.0, 0.0, 2.0, 0.0, 0.0),
        below=(1, 0, 3, 0, 0),
        above=(2, 0, 4, 0, 0),
        engine=(False, True, False, False, True),
    )
    rows = np.array([[0, 5, 0, 0, 0], [2, 6, 0, 0, 0], [3, 6, 0, 0, 0]], dtype=np.float64)
    assert tree.chosen(rows).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "version 2.*expected version 1"),
        ({"features": ["hops"]}, "other features: hops"),
        ({"features": 5}, "other features: 5"),
        ({"features": {"hops": 1}}, "other features"),
        ({"version": [1]}, "version 1"),
        ({"format": "pickle"}, "not a model"),
        ({"cpu": {"weights": [1.0], "intercept": 0.0}}, "cpu.weights"),
    ],
)
def test_models_for_something_else_are_refused(
    model: AccessModel, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    file = tmp_path / "model.json"
    model.save(file)
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(InputError, match=message):
        ran(f"{PATH}=null", f"policies.access-path={{policy: tree, model: {file}}}")


def test_models_choose(model: AccessModel, tmp_path: Path) -> None:
    file = tmp_path / "model.json"
    model.save(file)
    for name in ("regression", "tree"):
        policy = f"policies.access-path={{policy: {name}, model: {file}}}"
        (event,) = ran(
            f"{PATH}=null", policy, "workload.objects.column.rows=33554432"
        ).control_events
        assert event.text == f"{name}: scan/scan of node 4 by copy-engine"


def test_a_model_says_how_it_does_elsewhere() -> None:
    """Engines differ, and no feature says so: worse than the best fixed path there."""
    machine, other = load_machine(MACHINE), load_machine("xeon-2s-spr-snc4")
    carried = train_on(machine, 1_000, 1, "flow", also=other).scores["carried"]
    assert carried["machine"] == other.name
    assert carried["regression_loss"][0] > carried["always_cpu_loss"][0]


def test_a_model_carries_over_where_only_latency_differs(
    model: AccessModel, tmp_path: Path
) -> None:
    """Locality is a latency in ns, so that another one is nothing new: better than either path
    alone on a machine whose other blade is nearer."""
    far, near = ("value: 500 ns, range: [300 ns", "value: 350 ns, range: [300 ns")
    text = BUNDLED.read_text("utf-8")
    assert far in text
    (tmp_path / "nearer.yaml").write_text(text.replace(far, near))
    elsewhere = observe(load_machine(str(tmp_path / "nearer.yaml")), 1_000, 1)
    carried = scores(model, elsewhere, 1)
    best = min(carried[f"always_{path}_loss"][0] for path in ("cpu", "engine"))
    for chooser in ("regression", "tree"):
        assert carried[f"{chooser}_loss"][0] < 0.25 * best
