"""Joins between processes of one host: from measured passes to a query's time; what is refused."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from numatwin.inputs import InputError, Quantity
from numatwin.sim._kernel import ExchangeModel
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import Scenario, load_scenario
from numatwin.sim.systems.joins.facts import ExchangeCost, JoinFacts, PassCost
from numatwin.sim.systems.joins.flow import FlowModel
from numatwin.sim.systems.joins.host import PassCosts
from numatwin.sim.systems.joins.plane import ReferenceModel
from numatwin.sim.systems.joins.setup import play_of

NS, US = 1e-9, 1e-6
# By step: of each tuple or group in ns, whatever the size.
TIMES = {
    "count": 1.0, "partition": 2.0, "gather": 3.0, "take": 4.0, "build": 5.0, "join": 11.0,
    "new-group": 7.0, "same-group": 8.0, "send-group": 9.0, "result-group": 10.0,
    "new-cached": 12.0, "same-cached": 13.0,
    "filter-add": 14.0, "filter-hit": 15.0, "filter-miss": 16.0,
}  # fmt: skip
EXCHANGES = {
    transport: [
        {"operation": operation, "size": "64 B", "time": f"{first} us"}
        for operation, first in (("message", 1 + slow), ("put", 2 + slow))
    ]
    for transport, slow in (("shm", 0), ("tcp", 10))
}
MACHINE: dict[str, Any] = {
    "name": "host",
    "node_types": {
        "node": {
            "cores": 2,
            "clock": "3 GHz",
            "caches": [
                {"level": 2, "size": "1 MiB"},
                {"level": 3, "size": "32 MiB", "shared_by_cores": 2},
            ],
            "memory": {"size": "16 GiB", "bandwidth": "40 GB/s", "latency": "100 ns"},
        }
    },
    "nodes": [{"id": 0, "type": "node"}],
    "engines": {
        "joins": {
            "passes": [
                {"step": step, "at": 16, "time": f"{ns} ns"}
                | ({"buffer": "2 KiB"} if step == "partition" else {})
                for step, ns in TIMES.items()
            ],
            "exchanges": EXCHANGES,
        }
    },
}
RECORDS = 100_000
SETTINGS = (
    f"workload.objects.inner.records={RECORDS}",
    f"workload.objects.outer.records={4 * RECORDS}",
)
AGGREGATE = (
    "workload.operations={total: {kind: aggregate, object: outer, groups: 3_000, "
    "keys: {distribution: uniform}, result_size: 24 B}}",
)


# Passes that each operator makes.
STEPS_OF = {
    "rrj": ("partition", "build", "join"),
    "ghj": ("gather", "take", "count", "partition", "build", "join"),
    "rdma-ghj": ("partition", "count"),
    "ghj-bloom": ("filter-add", "filter-hit", "filter-miss"),
    "aggregation": ("new-group", "same-group", "send-group", "result-group"),
    "rdma-aggregation": ("new-cached", "same-cached", "partition", "result-group"),
}


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    path = tmp_path / "host.yaml"
    path.write_text(yaml.safe_dump(MACHINE))
    return path


def scenario(machine: Path, *settings: str, plane: str = "event") -> Scenario:
    return load_scenario(
        "host-join", machine=str(machine), plane=plane, settings=(*SETTINGS, *settings)
    )


def query_s(machine: Path, *settings: str) -> float:
    return FlowModel(play_of(scenario(machine, *settings), 1)).query_s(0)


def test_a_radix_join_over_shared_memory_is_its_passes(machine: Path) -> None:
    """Of each node half of both tables: partitioned, then built, and looked up (11 - 5 ns)."""
    inner, outer = RECORDS / 2, 4 * RECORDS / 2
    expected = (2.0 * (inner + outer) + 5.0 * inner + 6.0 * outer) * NS
    assert query_s(machine) == pytest.approx(expected, rel=0.02)


def test_over_tcp_each_put_is_made_and_taken(machine: Path) -> None:
    """Half of the tuples go to the other node, 128 of 16 B at a time, each put 12 us."""
    puts = 5 * RECORDS / 2 / 2 / 128
    more_s = query_s(machine, "system.host_transport=tcp") - query_s(machine)
    assert more_s == pytest.approx(12 * US * puts, rel=0.02)


def test_a_grace_join_gathers_takes_and_partitions(machine: Path) -> None:
    """Messages: half a microsecond to send one, and half to receive one."""
    inner, outer = RECORDS / 2, 4 * RECORDS / 2
    passes_ns = 3.0 + 4.0 + 1.0 + 2.0
    messages = (inner + outer) / 2 / 128
    expected = (passes_ns * (inner + outer) + 5.0 * inner + 6.0 * outer) * NS + messages * 1 * US
    assert query_s(machine, "system.operator=ghj") == pytest.approx(expected, rel=0.03)


def test_filters_let_fewer_through_and_take_their_time(machine: Path) -> None:
    few = "workload.operations.join.selectivity=0.01"
    settings = (few, "system.host_transport=tcp", "system.buffer=64 B")
    filtered = query_s(machine, *settings, "system.operator=ghj-bloom")
    assert filtered < query_s(machine, *settings, "system.operator=ghj")
    # Over shared memory, and with large messages, looking keys up takes longer than sending them.
    assert query_s(machine, few, "system.operator=ghj-bloom") > query_s(
        machine, few, "system.operator=ghj"
    )


def test_an_aggregation_adds_to_groups_that_are_there(machine: Path) -> None:
    """3,000 groups, 200,000 tuples a node; each node's groups: 9 ns sent, 8 or 7 and 10 merged."""
    tuples, groups = 2 * RECORDS, 3_000
    scan = 7.0 * groups + 8.0 * (tuples - groups)
    merge = 9.0 * groups + (7.0 + 10.0) * groups / 2 + 8.0 * groups / 2
    messages = groups / 2 / (2048 // 24)
    expected = (scan + merge) * NS + messages * US
    found = query_s(machine, *AGGREGATE, "system.operator=aggregation")
    assert found == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("transport", ["shm", "tcp"])
@pytest.mark.parametrize("operator", STEPS_OF)
def test_both_models_of_events_have_one_trace(operator: str, transport: str, machine: Path) -> None:
    small = ("workload.objects.inner.records=3000", "workload.objects.outer.records=9000")
    of_kind = AGGREGATE if "aggregation" in operator else ()
    chosen = (*of_kind, f"system.operator={operator}", f"system.host_transport={transport}")
    setup = play_of(scenario(machine, *small, *chosen), 1).setup
    event: Any = ExchangeModel(setup, 1, 1)
    reference = ReferenceModel(setup, 1, 1)
    event.keep_trace()
    event.run(3_000_000_000)
    reference.run(3_000_000_000)
    rows = [tuple(map(int, row)) for row in event.trace()]
    assert rows
    assert rows == [tuple(row) for row in reference.trace().tolist()]
    queries = event.counts()["latencies_ps"]
    assert len(queries) > 0
    # Flow and events agree where nodes have the same to do.
    flow_s = FlowModel(play_of(scenario(machine, *small, *chosen), 1)).query_s(0)
    assert float(queries.mean()) * 1e-12 == pytest.approx(flow_s, rel=0.35)


@pytest.mark.parametrize(
    ("operator", "step"), [(name, step) for name, steps in STEPS_OF.items() for step in steps]
)
def test_each_pass_that_an_operator_makes_counts(
    operator: str, step: str, machine: Path, tmp_path: Path
) -> None:
    slower = yaml.safe_load(yaml.safe_dump(MACHINE))
    for one in slower["engines"]["joins"]["passes"]:
        if one["step"] == step:
            one["time"] = "100 ns"
    other = tmp_path / "slower.yaml"
    other.write_text(yaml.safe_dump(slower))
    chosen = (*(AGGREGATE if "aggregation" in operator else ()), f"system.operator={operator}")
    assert query_s(other, *chosen) > query_s(machine, *chosen)


def test_costs_between_measured_points() -> None:
    def seconds(value: float) -> Quantity:
        return Quantity(value, value, value)

    def cost(at: int, value: float, size: float | None) -> PassCost:
        buffer = None if size is None else seconds(size)
        return PassCost.model_construct(
            step="partition" if size else "build", at=at, buffer=buffer, time=seconds(value)
        )

    def message(size: float, value: float) -> ExchangeCost:
        return ExchangeCost.model_construct(
            operation="message", size=seconds(size), time=seconds(value)
        )

    passes = [cost(at, value, size) for size in (256.0, 4096.0) for at, value in ((4, 1), (64, 3))]
    passes += [cost(10, 1.0, None), cost(1_000, 3.0, None)]
    exchanges = {"shm": (message(64, 1.0), message(1_064, 2.0))}
    costs = PassCosts(JoinFacts(passes=tuple(passes), exchanges=exchanges))
    assert costs.seconds("build", 100.0) == pytest.approx(2.0)
    assert [costs.seconds("build", at) for at in (1.0, 1e6)] == [1.0, 3.0]
    assert costs.seconds("partition", 16.0, 1024.0) == pytest.approx(2.0)
    assert costs.exchange_s("shm", "message", 8.0) == 1.0
    assert costs.exchange_s("shm", "message", 564.0) == pytest.approx(1.5)
    assert costs.exchange_s("shm", "message", 2_064.0) == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("system.nodes=3",), "2 processors on its first node"),
        (("system.nodes=[0]",), "expected how many processes"),
        (("system.workers=2",), "expected 1, a thread of a process"),
        (("system.queue=central",), "layout host: expected none"),
        (("system.stragglers=[{node: 0, factor: 2}]",), "layout host: expected none"),
        (("system.ports=1",), "layout host: expected none"),
        (("system.host_transport=smoke",), "host_transport"),
        (("system.layout=cluster", "system.host_transport=tcp"), "only for layout host"),
        (
            ("workload.objects.inner.record_size=8 B", "workload.objects.outer.record_size=8 B"),
            "expected 16 B",
        ),
    ],
)
def test_what_a_host_cannot_be_is_refused(
    settings: tuple[str, ...], words: str, machine: Path
) -> None:
    with pytest.raises(InputError, match=words) as caught:
        scenario(machine, *settings)
    assert "\n" not in str(caught.value)


def test_a_machine_that_was_not_measured_is_refused() -> None:
    with pytest.raises(InputError, match="has no times of passes over tuples"):
        load_scenario("host-join", machine="amd-8n-ht")


def test_a_transport_that_was_not_measured_is_refused(tmp_path: Path) -> None:
    without = yaml.safe_load(yaml.safe_dump(MACHINE))
    del without["engines"]["joins"]["exchanges"]["tcp"]
    path = tmp_path / "host.yaml"
    path.write_text(yaml.safe_dump(without))
    with pytest.raises(InputError, match="no times of messages by tcp: expected one of shm"):
        scenario(path, "system.host_transport=tcp")


def test_threads_that_never_wait_are_busy_all_the_time_and_no_longer(machine: Path) -> None:
    """A put takes 12 us: the end of the run comes in the middle of one."""
    played = scenario(
        machine, "system.host_transport=tcp", "horizon=5.0043 ms", "statistics.replications=1"
    )
    uses = {use.name: use.utilisation for use in run_scenario(played).resources}
    assert set(uses) == {"workers of node 0", "workers of node 1"}
    assert all(0.9 < use <= 1.0 for use in uses.values())
