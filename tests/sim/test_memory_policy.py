"""Linux's policies of memory: on every plane, with nodes that are full, from numactl's options."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import told_by

from numatwin.inputs import DescriptionError, InputError
from numatwin.sim.machine.memory_policy import MemoryPolicy, Room, zone_list
from numatwin.sim.run.numactl import numactl_settings
from numatwin.sim.run.record import Record
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.studies.search import search
from numatwin.sim.studies.study import load_study
from numatwin.sim.systems.eris.spec import Shards
from numatwin.topologies import load_machine
from numatwin.validate.decision_cases import FOLDER

ONCE = "statistics={replications: 1, warm_up: 0 s}"
CXL = FOLDER / "ddr5-cxl.yaml"  # node 0 has processors, node 1 memory alone
SCENARIO = f"""
name: scan
machine: {CXL}
horizon: 200 ms
system: {{kind: tasks, memory: {{policy: bind, nodes: 0}}}}
workload:
  name: scan
  objects:
    t: {{kind: table, rows: 30_000_000, parts: 64, columns: {{v: {{distinct: 9, encoded: false,
      value_size: 8 B}}}}}}
  operations:
    q: {{kind: query, share: 1, operators: {{s: {{kind: custom, table: t, instructions: 1,
      read: 8 B, results: 0}}}}}}
  clients: {{kind: closed, count: 2}}
"""


@pytest.fixture
def scan(tmp_path: Path) -> str:
    path = tmp_path / "scan.yaml"
    path.write_text(SCENARIO)
    return str(path)


def memory_Bps(record: Record) -> np.ndarray:
    return np.array([r.Bps for r in record.resources if r.name.startswith("memory of node")])


# numactl's options, and the part of all traffic that node 1 gets.
POLICIES = {
    "--membind=0": 0.0,
    "--membind=1 --cpunodebind=0": 1.0,
    "--preferred 1": 1.0,
    "--interleave=all": 0.5,
    "-w 0:9,1:1": 0.1,
    "-l": 0.0,
}


@pytest.mark.parametrize("plane", ["flow", "event", "reference"])
@pytest.mark.parametrize("options", POLICIES)
def test_traffic_goes_where_the_policy_says(scan: str, options: str, plane: str) -> None:
    settings = [*numactl_settings(options), ONCE, "horizon=10 ms"]
    Bps = memory_Bps(run_scenario(load_scenario(scan, plane=plane, settings=settings)))
    assert Bps[1] / Bps.sum() == pytest.approx(POLICIES[options], abs=1e-3)


def test_event_and_reference_agree_on_two_spreads(scan: str) -> None:
    setting = (
        'system.memory={policy: interleave, objects: {t: {policy: weighted, weights: "0:3,1:1"}}}'
    )
    event, reference = (
        run_scenario(load_scenario(scan, plane=plane, settings=[setting, ONCE, "horizon=10 ms"]))
        for plane in ("event", "reference")
    )
    assert event.throughput == reference.throughput
    np.testing.assert_allclose(memory_Bps(event), memory_Bps(reference), rtol=1e-12)


def test_weights_as_the_bandwidths_use_both(scan: str) -> None:
    """All in DRAM is held by 208.5 GB/s, 9:1 by 208.5 / 0.9; 1:1 by 2 x 24.4 GB/s."""
    found = [
        run_scenario(load_scenario(scan, plane="flow", settings=numactl_settings(o)))
        for o in ("-m 0", "-w 0:9,1:1", "-i 0,1")
    ]
    rates = [memory_Bps(record).sum() for record in found]
    assert rates[1] / rates[0] == pytest.approx(1 / 0.9, rel=0.02)
    assert rates[2] == pytest.approx(2 * 24.4e9, rel=0.01)


@pytest.mark.parametrize("plane", ["flow", "event"])
@pytest.mark.parametrize(
    ("base", "policy", "far"),
    [
        ("eris-fig9-interleaved", "{policy: bind, nodes: 3}", [3]),
        ("eris-fig9-interleaved", "{policy: interleave, nodes: [1, 2]}", [1, 2]),
        ("eris-fig9", "{policy: bind, nodes: 5}", [5]),
    ],
)
def test_eris_reads_what_the_policy_binds(
    base: str, policy: str, far: list[int], plane: str
) -> None:
    settings = [f"system.memory={policy}", "system.nodes=4", "horizon=1 ms", "event_horizon=1 ms"]
    settings += ["workload.objects.column.entries=80000000", ONCE]
    Bps = memory_Bps(run_scenario(load_scenario(base, plane=plane, settings=settings)))
    assert np.flatnonzero(Bps > 0.01 * Bps.sum()).tolist() == far


def test_shards_keep_what_their_workers_use(tmp_path: Path) -> None:
    """One shard is the shared index; of two no line of the index crosses between the halves."""
    settings = ["system.nodes=4", "horizon=1 ms", "event_horizon=400 us"]
    settings += ["workload.objects.index.keys=100000000", ONCE.replace("0 s", "100 us")]

    def run(placement: str, plane: str = "flow") -> Record:
        further = [*settings, f"system.placement={placement}"]
        return run_scenario(load_scenario("eris-fig8-amd", plane=plane, settings=further))

    rates = {p: run(p).throughput["lookup"] for p in ("interleaved", "{shards: 1}")}
    assert rates["interleaved"] == rates["{shards: 1}"]
    whole, halves, each = (run(f"{{shards: {n}}}") for n in (1, 2, "node"))
    assert whole.throughput["lookup"] < halves.throughput["lookup"] < each.throughput["lookup"]
    assert each.bandwidth_Bps["links"] == 0.0
    event = run("{shards: node}", "event").throughput["lookup"]
    assert event == pytest.approx(each.throughput["lookup"], rel=0.1)


@pytest.mark.parametrize("machine", ["epyc-2s-nps4", "kunpeng-2s-4n"])
def test_sockets_are_told_by_groups_of_nodes(machine: str) -> None:
    described = load_machine(machine)
    nodes = range(len(described.nodes))
    halves = [2 * node // len(nodes) for node in nodes]
    assert Shards(shards="socket").groups(described, nodes).tolist() == halves
    with pytest.raises(DescriptionError, match="nor a SLIT"):  # a blade has two
        Shards(shards="socket").groups(load_machine("sgi-uv2000-64n"), range(4))


@pytest.mark.parametrize(
    ("shards", "told"),
    [
        ("3", "a number that divides them"),
        ("core", "placement"),
        ("rack", "shards: found 'rack', expected 'worker', 'core', 'node' or 'socket'"),
    ],
)
def test_shards_that_do_not_fit(shards: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        load_scenario("eris-fig8-amd", settings=[f"system.placement={{shards: {shards}}}"])


def test_first_touch_overflows_and_the_run_says_so(scan: str) -> None:
    """12.5 GB, touched first on a node of 8 GB."""
    settings = ["system.memory={policy: local}", "workload.objects.t.rows=1562500000"]
    small = "machine.node_types.socket.memory={size: 8 GB, bandwidth: 208.5 GB/s, latency: 110 ns}"
    record = run_scenario(load_scenario(scan, settings=[*settings, small]))
    (said,) = [text for text in record.warnings if text.startswith("memory:")]
    assert "t: 4.5 GB went to node 1" in said
    bound = "system.memory={policy: bind, nodes: 0}"
    with pytest.raises(InputError, match=r"of 12.5 GB .* nodes 0 .* hold 8 GB.*overflow: yes"):
        load_scenario(scan, settings=[bound, *settings[1:], small])
    allowed = "system.memory={policy: bind, nodes: 0, overflow: yes}"
    assert load_scenario(scan, settings=[allowed, *settings[1:], small])


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("{policy: weighted, weights: [0, 0]}", "all weights are 0"),
        ("{policy: weighted, weights: [-1, 1]}", "from 0 to 255"),
        ("{policy: weighted, weights: [1, 1, 1]}", "3 for 2 nodes"),
        ("{policy: weighted}", "missing field 'weights'"),
        ("{policy: bind}", "missing field 'nodes'"),
        ("{policy: bind, nodes: 7}", "node 7 of machine 'ddr5-cxl' does not exist"),
        ("{policy: local, nodes: 1}", "policy local: expected none"),
        ("{objects: {u: {policy: local}}}", "no such object: expected one of t"),
        ("{policy: striped}", "striped"),
    ],
)
def test_policies_without_sense(scan: str, policy: str, message: str) -> None:
    with pytest.raises(InputError, match="memory") as failure:
        load_scenario(scan, settings=[f"system.memory={policy}"])
    assert message in str(failure.value)


@pytest.mark.parametrize("base", ["nam-fig6-rsi", "join", "eris-fig9"])
def test_systems_refuse_what_they_cannot_place(base: str) -> None:
    with pytest.raises(InputError, match=r"system\.memory"):
        load_scenario(base, settings=["system.memory={policy: interleave}"])


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ("numactl -N0-1 -m1", ["system.nodes=[0, 1]", "system.memory={policy: bind, nodes: [1]}"]),
        ("-P 0,2-3", ["system.memory={policy: preferred, nodes: [0, 2, 3]}"]),
        ("-w 0:9,1:1", ['system.memory={policy: weighted, weights: "0:9,1:1"}']),
        ("--cpunodebind all --localalloc", ["system.memory={policy: local}"]),
    ],
)
def test_numactl_in_fields(options: str, settings: list[str]) -> None:
    assert numactl_settings(options) == settings


@pytest.mark.parametrize(
    "options", ["-C 0-3", "--balancing", "-m", "-m x", "-m 0 -i 1", "ls -l", "", "-w 0,1", "-p 0,1"]
)
def test_numactl_without_meaning(options: str) -> None:
    assert "--numactl" in told_by(numactl_settings, options)


MACHINE = load_machine(str(CXL))


@given(
    st.sampled_from(["bind", "interleave", "weighted", "preferred", "local"]),
    st.lists(st.integers(1, 90), min_size=1, max_size=5),
    st.integers(0, 9),
)
def test_nothing_is_lost_or_too_much(policy: str, sizes: list[int], weight: int) -> None:
    fields: dict[str, object] = {"policy": policy}
    if policy in ("bind", "preferred"):
        fields["nodes"] = [1]
    if policy == "weighted":
        fields["weights"] = [1, weight]
    room, whole = Room(MACHINE), np.array([n.memory_bytes for n in MACHINE.nodes], dtype=float)
    placed = np.zeros(2)
    for k, size in enumerate(sizes):
        try:
            shares = room.put(f"o{k}", size * 1e9, MemoryPolicy.model_validate(fields), 0)
        except DescriptionError:
            assert policy in ("bind", "weighted", "interleave") or sum(sizes) * 1e9 > whole.sum()
            return
        assert shares.sum() == pytest.approx(1.0)
        placed += shares * size * 1e9
    np.testing.assert_allclose(placed, whole - room.left)
    assert (placed <= whole * (1 + 1e-9)).all()


def test_zone_lists_go_by_slit_and_memory_alone_first(tmp_path: Path) -> None:
    assert zone_list(MACHINE, 1) == [1, 0]
    # A Threadripper with memory on two of its four nodes: each is the next one of another.
    slit = [[10 if a == b else 12 for b in range(4)] for a in range(4)]
    file = tmp_path / "four.yaml"
    file.write_text(
        "name: four\nnode_types: {bare: {cores: 6, memory: {size: 0 B}}, full: {cores: 6, memory: "
        "{size: 64 GiB}}}\nnodes: [{id: 0, type: bare}, {id: 1, type: full}, {id: 2, type: full}, "
        f"{{id: 3, type: bare}}]\nslit: {slit}"
    )
    four = load_machine(str(file))
    assert [zone_list(four, k) for k in range(4)] == [[1, 2], [1, 2], [2, 1], [2, 1]]


def test_a_search_over_placements_finds_the_best(scan: str, tmp_path: Path) -> None:
    """Of memory on either node and both, weights as the bandwidths are win: 208.5 and 24.4 GB/s."""
    pytest.importorskip("optuna")
    study = tmp_path / "tiers.yaml"
    policies = "{policy: bind, nodes: 0}, {policy: bind, nodes: 1}, {policy: interleave}"
    study.write_text(
        f"name: tiers\nscenario: {scan}\nfactors:\n  system.memory: [{policies}, "
        "{policy: weighted, weights: [9, 1]}]\nobjective: maximise throughput.q\n"
    )
    found = search(load_study(str(study)), tmp_path / "out", jobs=1, seed=1)
    best = found.results.rows[found.best[0]]
    assert json.loads(best["system.memory"]) == {"policy": "weighted", "weights": [9, 1]}
