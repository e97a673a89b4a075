"""The native plane of joins: scenarios run on this host, and time that is that of their queries."""

from typing import Any

import pytest

from numatwin import InputError, load_scenario, run_scenario
from numatwin.engine_native import _engine
from numatwin.engine_native.systems.joins import plane as joins_plane
from numatwin.engine_native.systems.joins.cluster import JoinRounds, NodeFigures
from numatwin.engine_native.systems.joins.plane import NativeJoins, join_plan
from numatwin.engine_native.transports import VARIABLE
from numatwin.sim.run.scenario import Scenario

SMALL = (
    "workload.objects.inner.records=5_000",
    "workload.objects.outer.records=20_000",
    "system.nodes=2",
    "system.workers=1",
    "native_horizon=20 ms",
    "statistics.replications=1",
)
AGGREGATE = (
    *SMALL,
    "workload.operations={total: {kind: aggregate, object: outer, groups: 3_000, "
    "keys: {distribution: zipf, exponent: 0.8}, result_size: 24 B}}",
)
QUERY_S = 0.010


def scenario(*more: str, base: tuple[str, ...] = SMALL) -> Scenario:
    return load_scenario("join", plane="native", settings=(*base, *more))


@pytest.mark.parametrize(
    ("base", "operator", "rows"),
    [
        (SMALL, "rrj", 20_000),
        (SMALL, "ghj", 20_000),
        (SMALL, "ghj-bloom", 20_000),
        (SMALL, "rdma-ghj", 20_000),
        (AGGREGATE, "aggregation", 3_000),
        (AGGREGATE, "rdma-aggregation", 3_000),
    ],
)
def test_queries_of_a_scenario_are_answered(
    base: tuple[str, ...], operator: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "threads")
    record = run_scenario(
        scenario(f"system.operator={operator}", "native_horizon=400 ms", base=base)
    )
    ((name, rate),) = record.throughput.items()
    assert rate > 0
    facts = record.model[name]
    assert facts["operator"] == operator
    # Each outer tuple has one partner; not each of the rarest groups has a tuple.
    assert 0.9 * rows <= facts["rows_per_query"] <= rows
    mean_ns = (record.latency_ns[name] or {})["mean"] or 0.0
    assert 0 < mean_ns <= record.horizon_s * 1e9
    assert sum(record.why[name].demands.values()) == pytest.approx(mean_ns, rel=0.2)


@pytest.mark.skipif(not _engine.HAS_UCX, reason="needs libucx-dev")
def test_nodes_are_processes_that_share_memory_unless_they_use_sockets() -> None:
    assert join_plan(scenario(), 1).transport in ("shm", "ib")
    sockets = scenario("system.transport=IPoIB", "system.operator=ghj")
    assert join_plan(sockets, 1).transport == "tcp"


@pytest.mark.skipif(not _engine.HAS_UCX, reason="needs libucx-dev")
@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_processes_of_a_host_use_the_transport_that_is_set(transport: str) -> None:
    chosen = f"system.host_transport={transport}"
    plan = join_plan(load_scenario("host-join", plane="native", settings=(chosen,)), 1)
    assert (plan.transport, plan.nodes) == (transport, 2)


def rounds_of(settings: dict[str, Any], transport: str) -> JoinRounds:
    """Of an engine whose queries take 10 ms, the first one of each run three times as long."""
    del transport

    def node(seconds: float) -> NodeFigures:
        return NodeFigures(0.0, seconds, (seconds, 0.0, 0.0), (seconds / 2, 0.0, 0.0), 10, 10, 160)

    each = [3 * QUERY_S, *[QUERY_S] * (settings["rounds"] - 1)]
    nodes = settings["nodes"]
    return JoinRounds(tuple((node(seconds),) * nodes for seconds in each), None, 0.0)


@pytest.mark.parametrize("step_s", [0.1, 0.003])
def test_time_is_that_of_queries_whatever_the_steps(
    step_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Queries end at 10, 20 … 100 ms; those from 30 ms on are counted."""
    monkeypatch.setattr(joins_plane, "run_operator", rounds_of)
    plane = NativeJoins(scenario())
    for begin_s, end_s in ((0.0, 0.0301), (0.0301, 0.1)):
        plane.start_counting()
        at_s = begin_s
        while at_s < end_s:
            at_s = min(at_s + step_s, end_s)
            plane.advance(at_s)
    outcome = plane.outcome()
    assert outcome.operations == {"join": pytest.approx(7.0, abs=1.0)}
    assert outcome.latencies_ns["join"].mean == pytest.approx(QUERY_S * 1e9)
    assert [use.utilisation for use in outcome.resources] == pytest.approx([0.5, 0.5], rel=0.2)
    assert outcome.bandwidth_Bps["network"] == pytest.approx(2 * 160 / QUERY_S, rel=0.2)


def test_who_thinks_between_queries_asks_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joins_plane, "run_operator", rounds_of)
    plane = NativeJoins(scenario("workload.clients.think_time=10 ms"))
    plane.advance(0.2)
    assert plane.outcome().operations == {"join": pytest.approx(10.0, abs=1.0)}


def test_a_policy_chooses_among_the_engines_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joins_plane, "run_operator", rounds_of)
    chosen = load_scenario("join", plane="native", policy="operator=ghj", settings=SMALL)
    plane = NativeJoins(chosen)
    seen = plane.observe("operator")
    assert set(seen.predicted_s) == {"rrj", "ghj", "ghj-bloom", "rdma-ghj"}
    record = run_scenario(chosen)
    assert record.model["join"]["operator"] == "ghj"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("system.queue=central", "no central queue"),
        ("system.stragglers=[{node: 1, factor: 3}]", "does not support stragglers"),
        ("workload.objects.outer.record_size=24 B", "tuples have 8 or 16 bytes"),
        (
            "workload.operations.join.keys={distribution: hot_range, from: 0, to: 1000, "
            "share: 0.9}",
            "expected uniform or zipf keys",
        ),
    ],
)
def test_what_the_engine_lacks_is_said_in_one_line(change: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        join_plan(scenario(change), 1)


def test_tables_that_do_not_fit_are_refused_with_a_scale_that_would(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(joins_plane, "free_bytes", lambda: 31 << 20)
    with pytest.raises(InputError, match=r"expected --scale 0\.0?[0-9]+ or less"):
        join_plan(scenario("workload.objects.outer.records=10_000_000"), 1)
