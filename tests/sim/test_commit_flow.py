"""The flow plane of commits against the event plane: every bundled scenario, faults, conflicts."""

from functools import cache

import numpy as np
import pytest
from commit_clusters import US, cluster
from hypothesis import given, settings
from hypothesis import strategies as st

from numatwin.sim.run.runner import bare_record, run_scenario
from numatwin.sim.run.scenario import load_scenario, scenario_names
from numatwin.sim.run.what_if import Predictor, first_moment
from numatwin.sim.systems.commits.build import commit_parameters
from numatwin.sim.systems.commits.flow import CommitFlow
from numatwin.sim.systems.commits.parameters import KeyDraw
from numatwin.sim.systems.commits.plane import KernelCommitModel
from numatwin.sim.systems.commits.routes import CLIENT, Chances, Routes
from numatwin.sim.systems.commits.spec import CommitSystem
from numatwin.sim.systems.commits.tries import Snapshots, TryModel, fresh, popularity, undisturbed

BUNDLED = [
    name for name in scenario_names() if isinstance(load_scenario(name).system, CommitSystem)
]
# Whose servers share processors with clients.
ON_HOST = ("host-commit-tcp",)


@cache
def played(scenario: str, *settings: str) -> tuple[float, float, float]:
    """Commits per second, mean latency in ns and abort rate of the event plane: means of a few
    replications, without what is left out at the beginning."""
    chosen = load_scenario(scenario, settings=settings)
    parameters, _ = commit_parameters(chosen)
    commits = latency_ns = aborts = 0.0
    replications = 1 if parameters.machines > 100 else 3
    for replication in range(1, replications + 1):
        model = KernelCommitModel(parameters, chosen.seed, replication)
        model.run(round((chosen.statistics.warm_up_s or 0.0) * 1e12))
        began_ps, before = model.now_ps, model.result()
        model.run(round(chosen.horizon_s * 1e12))
        after = model.result()
        commits += after.commits - before.commits
        latency_ns += after.latencies_ns.total - before.latencies_ns.total
        aborts += sum(after.aborts.values()) - sum(before.aborts.values())
    seconds = replications * (model.now_ps - began_ps) * 1e-12
    return commits / seconds, latency_ns / commits, aborts / (aborts + commits)


def flows(scenario: str, *settings: str) -> CommitFlow:
    """At the end of the scenario."""
    chosen = load_scenario(scenario, settings=settings)
    plane = CommitFlow(chosen)
    plane.advance(chosen.horizon_s)
    return plane


@pytest.mark.parametrize("name", BUNDLED)
def test_every_bundled_scenario_is_within_a_tenth(name: str) -> None:
    rate, latency_ns, abort_rate = played(name)
    outcome = flows(name).outcome()
    (operation,) = outcome.throughput
    assert outcome.throughput[operation] == pytest.approx(rate, rel=0.1)
    of_operation = outcome.latency_ns[operation]
    assert of_operation is not None
    assert of_operation["mean"] == pytest.approx(latency_ns, rel=0.1)
    assert of_operation["p99"] is None
    assert outcome.model[operation]["abort_rate"] == pytest.approx(abort_rate, abs=0.04)
    assert any("share processors" in text for text in outcome.warnings) == (name in ON_HOST)


@pytest.mark.parametrize("clients", [1, 10, 20, 30, 40, 50, 60, 70])
@pytest.mark.parametrize("name", ["nam-fig6-two-sided", "nam-fig6-rsi"])
def test_by_the_number_of_clients(name: str, clients: int) -> None:
    setting = f"system.clients={clients}"
    rate, _, _ = played(name, setting, "horizon=2ms", "statistics.warm_up=500us")
    outcome = flows(name, setting).outcome()
    assert outcome.throughput["checkout"] == pytest.approx(rate, rel=0.1)


@pytest.mark.parametrize("servers", [1, 2])
@pytest.mark.parametrize("clients", [1, 2, 3, 4, 8])
def test_processes_of_a_host_by_the_number_of_clients(clients: int, servers: int) -> None:
    """One alone pays for each waking; the more there are, the fewer sleep when a message comes, and
    the more messages a look finds."""
    system = (f"system.clients={clients}", f"system.storage_nodes={servers}")
    name = "host-commit-tcp"
    rate, latency_ns, _ = played(name, *system, "horizon=300ms", "statistics.warm_up=50ms")
    outcome = flows(name, *system).outcome()
    assert outcome.throughput["checkout"] == pytest.approx(rate, rel=0.1)
    of_operation = outcome.latency_ns["checkout"]
    assert of_operation is not None
    assert of_operation["mean"] == pytest.approx(latency_ns, rel=0.1)


@pytest.mark.parametrize("name", ["nam-fig6-rsi", "nam-fig6-ipoib", "nam-bound-cpu"])
def test_what_binds_and_its_gain_are_those_of_the_event_plane(name: str) -> None:
    event = run_scenario(load_scenario(name, replications=1), workers=1)
    flow = run_scenario(load_scenario(name, plane="flow"))
    (operation,) = event.throughput
    assert flow.why[operation].resource == event.why[operation].resource
    bare = bare_record(load_scenario(name, plane="flow")).why[operation]  # as studies have it
    assert (bare.resource, bare.gains) == (flow.why[operation].resource, ())
    gains, known = flow.why[operation].gains, event.why[operation].gains
    assert gains[0].resource == known[0].resource
    assert gains[0].gain_per_10pct == pytest.approx(known[0].gain_per_10pct, abs=0.02)
    for found, use in zip(flow.resources, event.resources, strict=True):
        assert (found.name, found.kind, found.node) == (use.name, use.kind, use.node)
        assert found.utilisation == pytest.approx(use.utilisation, abs=0.03), found.name
        assert found.Bps == (None if use.Bps is None else pytest.approx(use.Bps, rel=0.3, abs=3e8))


def test_a_record_of_the_flow_plane() -> None:
    record = run_scenario(load_scenario("nam-rsi-dead-client", plane="flow"))
    series = record.series
    assert series["duration_s"].sum() == pytest.approx(0.01)
    rates = series["throughput/checkout"]
    mean = (rates * series["duration_s"]).sum() / 0.01
    assert mean == pytest.approx(record.throughput["checkout"])
    assert rates[0] > 3 * rates[-1]  # locks stay, and so does the snapshot
    assert [event.kind for event in record.control_events] == ["fault"]
    assert record.latency_ns["checkout"] is not None
    assert set(record.why) == {"checkout"}
    again = run_scenario(load_scenario("nam-rsi-dead-client", plane="flow"))
    assert again.throughput == record.throughput


def test_the_event_plane_is_still_the_default_and_asks_flows_what_facts_decide() -> None:
    scenario = load_scenario("nam-fig6-rsi")
    assert scenario.plane == "event"
    assert Predictor(scenario).plane == "flow"
    assert first_moment(scenario).costs is None


def test_no_jump_where_another_server_is_the_fullest() -> None:
    """Near 15.2 B message threads become fuller than the manager's adapter: convoys stay."""
    rates = []
    for size in (14.4, 15.0, 15.5, 16.0, 17.6):
        scenario = load_scenario("nam-fig6-two-sided", settings=[f"system.record_header={size} B"])
        rates.append(first_moment(scenario).commits)
    assert rates == sorted(rates, reverse=True)
    assert rates[0] < 1.01 * rates[-1]


def test_timestamps_run_out_behind_a_dead_client() -> None:
    """A lap is 100 timestamps of each of 70 clients: once the run stands they last 4 ms."""
    bits = "system.timestamp_bits=7000"
    plane = flows("nam-rsi-dead-client", bits)
    rates = [(p.time_s, p.tries.commits_per_s if p.tries else 0.0) for p in plane.pieces]
    ended = next(time_s for time_s, rate in rates if rate == 0.0)
    assert 0.002 < ended < 0.008
    rate, _, _ = played("nam-rsi-dead-client", bits)
    assert plane.outcome().throughput["checkout"] == pytest.approx(rate, rel=0.15)


@pytest.mark.parametrize(
    "settings",
    [
        ("system.clients=100",),
        ("system.versions=2", "workload=checkout-zipf"),
        ("system.prepare=holders", "system.architecture=two-sided"),
        ("system.managers=storage-nodes", "system.architecture=two-sided"),
        ("workload.clients.think_time=50us",),
        ("system.snapshot_every=10",),
        ("system.replicas=1",),
        ("system.replicas=1", "system.architecture=two-sided"),
        ("system.ports=1", "machine.nics.0.bandwidth=2 GB/s"),
    ],
)
def test_other_settings(settings: tuple[str, ...]) -> None:
    rate, latency_ns, _ = played("nam-fig6-rsi", *settings)
    outcome = flows("nam-fig6-rsi", *settings).outcome()
    assert outcome.throughput["checkout"] == pytest.approx(rate, rel=0.15)
    of_operation = outcome.latency_ns["checkout"]
    assert of_operation is not None
    assert of_operation["mean"] == pytest.approx(latency_ns, rel=0.15)


def test_the_work_of_a_try_is_what_the_event_plane_counts() -> None:
    """Nothing is approximated but waits: busy times of each server per commit are those played."""
    for name in ("nam-fig6-two-sided", "nam-fig6-ipoeth", "nam-fig6-rsi"):
        parameters, _ = commit_parameters(load_scenario(name, settings=["system.clients=4"]))
        model = KernelCommitModel(parameters, 1)
        model.run(round((0.4 if name.endswith("eth") else 0.01) * 1e12))
        tries = TryModel(parameters).solve(Snapshots(4.0))
        busy_ps = np.array(model.busy_ps(), dtype=float) / model.commits
        threads = np.array([1] * 16 + [node.threads for node in parameters.nodes] + [4])
        use = TryModel(parameters).use_of_servers(tries) * threads / tries.commits_per_s * 1e12
        assert use == pytest.approx(busy_ps, rel=0.04, abs=2e4), name


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(["ipoeth", "ipoib", "two-sided", "rsi"]),
    st.integers(1, 12),
    st.integers(1, 4),
    st.integers(1, 3),
)
def test_one_client_takes_what_it_takes(
    architecture: str, clients: int, servers: int, updates: int
) -> None:
    """Alone there is nothing to wait for; more clients never make less."""
    parameters = cluster(
        architecture, clients=clients, servers=servers, updates=updates, records=10**6
    )
    model = TryModel(parameters)
    alone, all_of_them = model.solve(Snapshots(1.0)), model.solve(Snapshots(float(clients)))
    kernel = KernelCommitModel(
        cluster(architecture, clients=1, servers=servers, updates=updates, records=10**6), 1
    )
    kernel.run(20_000 * US if architecture != "rsi" else 2_000 * US)
    known = kernel.commits / kernel.now_ps * 1e12
    assert alone.commits_per_s == pytest.approx(known, rel=0.05)
    assert all_of_them.commits_per_s >= alone.commits_per_s * (1 - 1e-6)
    assert all_of_them.solution.use.max() <= 1 + 1e-9


def test_records_that_were_written_are_no_longer_fresh() -> None:
    """Of a standing snapshot: three records for each commit."""
    keys = popularity(KeyDraw("zipf", 0.9), 10_000)
    assert keys.weight.sum() == pytest.approx(1.0)
    assert keys.count.sum() == 10_000
    known = fresh(keys, 3, 700.0, standing=True)
    assert (keys.count * (1.0 - known.of_bin)).sum() == pytest.approx(2_100, rel=1e-3)
    assert known.mean < 0.7  # popular ones first


def test_popular_records_are_weighted_as_they_are_drawn() -> None:
    ranks = np.arange(1, 1_000_001) ** -0.9
    ranks /= ranks.sum()
    keys = popularity(KeyDraw("zipf", 0.9), 1_000_000)
    assert keys.chance[:100] == pytest.approx(ranks[:100], rel=1e-4)
    assert (keys.count * keys.chance**2).sum() == pytest.approx((ranks**2).sum(), rel=1e-3)


@given(st.floats(0.0, 5e3), st.booleans(), st.integers(1, 8))
def test_freshness_falls_with_what_is_missing(commits: float, standing: bool, updates: int) -> None:
    for form in (
        KeyDraw(),
        KeyDraw("zipf", 0.9),
        KeyDraw("hot", hot_records=20, hot_probability=0.5),
    ):
        keys = popularity(form, 100_000)
        less = fresh(keys, updates, commits, standing=standing)
        more = fresh(keys, updates, 1.5 * commits + 1.0, standing=standing)
        assert 0.0 < more.mean <= less.mean <= 1.0
        apart = undisturbed(keys, less, updates, 10.0)
        assert 0.0 <= undisturbed(keys, less, updates, 20.0) <= apart <= 1.0


def test_what_others_take_meanwhile_by_hand() -> None:
    """10 commits of 2 records each among 1,000: one of mine is taken with 1 - e^-0.02."""
    keys = popularity(KeyDraw(), 1_000)
    none = fresh(keys, 2, 0.0, standing=False)
    assert undisturbed(keys, none, 2, 10.0) == pytest.approx(np.exp(-0.02) ** 2)


def test_how_often_the_stages_of_a_try_come() -> None:
    routes = Routes(cluster(clients=2, snapshot_every=4, retries=1))
    names = [stage.name for stage in routes.cycle.stages]
    often = dict(zip(names, routes.often(Chances(0.8, 0.5, 0.3)), strict=True))
    assert often["reads"] == often["posting: reads"] == often["bit"] == 1.0
    assert often["locks"] == often["own work"] == 0.8
    assert often["writes"] == pytest.approx(0.4)
    assert often["undoing"] == pytest.approx(0.4)
    assert often["snapshot"] == pytest.approx(0.4 / 4 + 0.6)
    assert (often["thinking"], often["backing off"]) == (0.7, 0.3)
    assert CLIENT not in routes.processors
