"""More clients than hardware threads: threads of the operating system that share them."""

from dataclasses import replace
from pathlib import Path

import pytest
from commit_clusters import US, cluster, configurations, traces, verbs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from known import known

from numatwin.inputs import InputError
from numatwin.sim._kernel import ProcessorSetup
from numatwin.sim.machine.processors import SHARES_NONE
from numatwin.sim.run.record import Record
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.systems.commits.build import commit_parameters
from numatwin.sim.systems.commits.parameters import CommitParameters
from numatwin.sim.systems.commits.plane import KernelCommitModel

SHORT = ("statistics.replications=2", "horizon=3 ms", "statistics.warm_up=1 ms")


def ran(clients: int, *more: str, plane: str = "event", name: str = "nam-fig6-rsi") -> Record:
    given = (f"system.clients={clients}", *SHORT, *more)
    return run_scenario(load_scenario(name, plane=plane, settings=given))


def latency_ns(record: Record, figure: str) -> float:
    found = known((record.latency_ns["checkout"] or {})[figure])
    return found


@st.composite
def crowded(draw: st.DrawFn) -> CommitParameters:
    """Crowded little clusters, some of whose clients share processors of one or two groups."""
    drawn = draw(configurations())
    count = draw(st.integers(1, 4))
    home = st.sampled_from((SHARES_NONE, *range(count)))
    times = st.sampled_from((0, 1, 300_000, US))
    switch_ps = draw(times)
    return replace(
        drawn,
        processors=ProcessorSetup(
            count=count,
            slice_ps=draw(st.sampled_from((US, 10 * US))),
            tick_ps=30 * US,
            switch_ps=switch_ps,
            sleep_ps=draw(times),
            wake_ps=draw(times),
            awake_ps=0,
            homes=(
                *(draw(home) for _ in drawn.client_machine),
                *(SHARES_NONE for _ in drawn.nodes),
            ),
            groups=tuple(draw(st.integers(0, 1)) for _ in range(count)),
        ),
    )


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(crowded(), st.integers(0, 2**64 - 1))
def test_both_planes_have_the_same_trace(parameters: CommitParameters, seed: int) -> None:
    plain, compiled = traces(parameters, seed, 40 * US)
    assert compiled == plain, f"seed {seed}, {parameters}"


def test_idle_processors_serve_clients_of_busy_ones() -> None:
    """Two clients, both at home on the first of two processors: in one group they run at the same
    time, else by turns. Their transactions are work of their own alone."""
    busy = cluster(clients=2, costs=verbs(US, 0, 0), records=2_000_000_000)

    def commits(*groups: int) -> int:
        homes = (0, 0, *(SHARES_NONE,) * len(busy.nodes))
        shared = ProcessorSetup(count=2, slice_ps=100 * US, homes=homes, groups=groups, awake_ps=0)
        model = KernelCommitModel(replace(busy, processors=shared))
        model.run(20_000 * US)
        return model.result().commits

    assert commits(0, 0) == pytest.approx(2 * commits(0, 1), rel=0.01)
    assert commits(0, 1) == commits()


def test_up_to_its_threads_clients_share_nothing() -> None:
    for clients, expected in ((80, None), (81, 20), (82, 40), (84, 80), (1000, 80)):
        scenario = load_scenario("nam-fig6-rsi", settings=[f"system.clients={clients}"])
        shared = commit_parameters(scenario)[0].processors
        assert (shared and shared.count) == expected, clients
        if shared is None:
            continue
        # Round robin over four nodes: each has as many as its processors, or one more.
        homes = [home for home in shared.homes if home != SHARES_NONE]
        each = [homes.count(home) for home in range(shared.count)]
        assert max(each) - min(each) <= 1
        assert len(shared.homes) == clients + 4  # three servers and the timestamps
        assert set(shared.homes[clients:]) == {SHARES_NONE}


@pytest.mark.parametrize("name", ["nam-fig6-rsi", "nam-fig6-two-sided"])
def test_many_clients_are_answered_and_obey_littles_law(name: str) -> None:
    """With the network full, eight times the clients wait eight times as long."""
    few, many = (ran(clients, name=name) for clients in (100, 800))
    for record, clients in ((few, 100), (many, 800)):
        # Ends and begins at the edges of what is counted leave some room.
        in_flight = record.throughput["checkout"] * latency_ns(record, "mean") * 1e-9
        assert in_flight == pytest.approx(clients, rel=0.1)
    assert many.throughput["checkout"] >= 0.95 * few.throughput["checkout"]
    assert latency_ns(many, "p99") > 5 * latency_ns(few, "p99")


def test_processors_of_the_clients_bound_them() -> None:
    """200 clients on one node: its 20 hardware threads are busy, whatever they wait for."""
    one_node = ("system.client_nodes=1", "system.thread_switch=20 us")
    record = ran(200, *one_node, "horizon=10 ms")
    busy = next(use for use in record.resources if use.name == "threads of the clients")
    assert busy.utilisation > 0.98
    assert record.why["checkout"].resource == "threads of the clients"
    assert record.throughput["checkout"] < 0.5 * ran(200, "horizon=10 ms").throughput["checkout"]


def test_the_planes_say_the_same_of_many_clients() -> None:
    brief = ("statistics.replications=1", "statistics.warm_up=0 s", "horizon=300 us")
    event, reference = (ran(100, *brief, plane=plane) for plane in ("event", "reference"))
    assert event.throughput == reference.throughput
    assert event.latency_ns == reference.latency_ns


def test_a_switch_is_the_scenarios_the_machines_or_the_default(tmp_path: Path) -> None:
    def switch_ps(*more: str) -> int:
        scenario = load_scenario("nam-fig6-rsi", settings=["system.clients=100", *more])
        shared = known(commit_parameters(scenario)[0].processors)
        return shared.switch_ps

    assert switch_ps() == 1_500_000
    assert switch_ps("system.thread_switch=3 us") == 3_000_000
    with pytest.raises(InputError, match="layout host: expected none"):
        load_scenario("host-commit", settings=["system.thread_switch=3 us"])
