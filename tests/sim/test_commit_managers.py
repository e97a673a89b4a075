"""Managers that are threads of the operating system; cores that take interrupts."""

from dataclasses import replace

import pytest
from commit_clusters import US, traces

from numatwin.inputs import InputError
from numatwin.sim.machine.processors import SHARES_NONE
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.systems.commits.build import commit_parameters
from numatwin.sim.systems.commits.flow import CommitFlow
from numatwin.sim.systems.commits.parameters import CommitParameters
from numatwin.sim.systems.commits.plane import KernelCommitModel

OWN = "system.manager_threads=per-client"
STORAGE = "system.storage_threads=per-client"
NAME = "nam-fig6-two-sided"
CYCLE_PS = 1e12 / 2.2e9


def parameters(name: str, *settings: str) -> CommitParameters:
    return commit_parameters(load_scenario(name, settings=settings))[0]


def rate(clients: int, *settings: str) -> tuple[float, float]:
    """Commits per second and abort rate over 30 ms, without the first 10."""
    model = KernelCommitModel(parameters(NAME, OWN, f"system.clients={clients}", *settings), 1)
    model.run(10_000 * US)
    before = model.commits
    model.run(40_000 * US)
    return (model.commits - before) / 30e-3, model.result().abort_rate


def test_a_manager_for_each_client() -> None:
    found = parameters(NAME, OWN, "system.clients=50")
    assert len(found.nodes) == 4 + 50
    assert found.managers == tuple(range(4, 54))
    assert {found.nodes[at].machine for at in found.managers} == {found.nodes[3].machine}
    assert found.processors is not None
    assert found.processors.count == 20
    homes = found.processors.homes
    assert set(homes[:54]) == {SHARES_NONE}
    assert homes[54:] == [client % 20 for client in range(50)]


@pytest.mark.parametrize(("settings", "servers", "rows"), [((), 1, 1_000), ((STORAGE,), 4, 200)])
def test_the_traces_are_equal(settings: tuple[str, ...], servers: int, rows: int) -> None:
    """Polling threads of six clients on two hardware threads of the timestamp server, or of storage
    servers too, with slices that a short run sees many of."""
    found = parameters(NAME, OWN, *settings, "system.clients=6")
    assert found.processors is not None
    polling = [2 * at + client % 2 for at in range(servers) for client in range(6)]
    shared = found.processors.replaced(
        count=2 * servers,
        slice_ps=10 * US,
        tick_ps=30 * US,
        homes=(*(SHARES_NONE,) * 10, *polling),
        groups=[at for at in range(servers) for _ in range(2)],
    )
    plain, compiled = traces(replace(found, processors=shared, records=50), 1, 1_000 * US)
    assert plain == compiled
    assert len(plain) > rows


def test_beyond_its_hardware_threads_a_server_takes_no_more_clients() -> None:
    """Twenty managers run, the others wait for a slice: with locks that others then meet."""
    twenty, alone = rate(20)
    assert alone < 0.001
    for clients in (40, 70):
        found, aborts = rate(clients)
        assert found == pytest.approx(twenty, rel=0.06)
        assert aborts > 0.02
    plane = CommitFlow(load_scenario(NAME, settings=[OWN, "horizon=30ms"]))
    plane.advance(0.03)
    outcome = plane.outcome()
    assert outcome.throughput["checkout"] == pytest.approx(found, rel=0.06)
    uses = {use.name: use.utilisation for use in outcome.resources}
    assert uses["manager of client 0 on node 7"] == pytest.approx(20 / 70)


def test_a_thread_for_each_client_on_storage_servers() -> None:
    found = parameters(NAME, OWN, STORAGE, "system.clients=30")
    assert len(found.nodes) == 4 + 4 * 30
    assert found.managers == tuple(range(4, 34))
    assert found.own_storage == tuple(range(34, 124))
    for server in range(3):
        threads = found.own_storage[server * 30 : (server + 1) * 30]
        machine = found.nodes[found.storage[server]].machine
        assert {found.nodes[at].machine for at in threads} == {machine}
    assert found.processors is not None
    assert found.processors.count == 80
    assert found.processors.groups == [0] * 20 + [1] * 20 + [2] * 20 + [3] * 20
    homes = found.processors.homes[34:]
    assert homes == [20 * at + client % 20 for at in range(4) for client in range(30)]


def test_clients_go_on_while_all_their_threads_run() -> None:
    """Of 28 clients on 20 hardware threads each of four servers runs the thread of one in 0.71 of
    the time, and all four in 0.26 where they take turns of their own: of 7.3 clients' worth.
    """
    twenty, _ = rate(20, STORAGE)
    assert twenty == pytest.approx(rate(20)[0], rel=0.06)
    found, _ = rate(28, STORAGE)
    assert found < 0.5 * rate(28)[0]
    assert found == pytest.approx(twenty * 28 / 20 * (20 / 28) ** 4, rel=0.3)


def test_flows_of_clients_with_threads_on_storage_servers() -> None:
    """By independent turns; beyond the hardware threads a warning says that they are not."""
    for clients, within in ((20, 0.1), (28, 0.4)):
        settings = [OWN, STORAGE, f"system.clients={clients}", "horizon=30ms"]
        plane = CommitFlow(load_scenario(NAME, settings=settings))
        plane.advance(0.03)
        outcome = plane.outcome()
        found, _ = rate(clients, STORAGE)
        assert outcome.throughput["checkout"] == pytest.approx(found, rel=within)
        assert any("time-sliced" in text for text in outcome.warnings) == (clients > 20)
    assert outcome.why["checkout"].gains
    uses = {use.name: use.utilisation for use in outcome.resources}
    assert uses["connection of client 3 on node 4"] == pytest.approx(20 / 28)


def test_pollers_are_no_bottleneck_as_such() -> None:
    settings = [OWN, "system.clients=4", "statistics.replications=1"]
    record = run_scenario(load_scenario(NAME, settings=settings))
    pollers = [use.utilisation for use in record.resources if use.kind == "pollers"]
    assert pollers == pytest.approx([1.0] * 4, abs=0.01)
    assert record.why["checkout"].resource.startswith("the time that each transaction takes")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (("system.architecture=rsi", OWN), "per-client: of 2PC with its managers on the timestamp"),
        (("system.managers=storage-nodes", OWN), "per-client: of 2PC with its managers on the"),
        (("system.clients=100", OWN), "per-client: expected at most 80 clients"),
        ((STORAGE,), "expected manager_threads that are, too"),
    ],
)
def test_where_there_is_no_such_manager(settings: tuple[str, ...], told: str) -> None:
    with pytest.raises(InputError, match=told):
        load_scenario(NAME, settings=settings)


def test_interrupts_are_a_part_of_the_receiver_and_take_no_longer() -> None:
    """Half of 13,264 cycles, on the one core; alone a message takes as long as without."""
    queue = "machine.nics.0.transports.IPoIB"
    one = parameters("nam-fig6-ipoib").costs
    more = parameters("nam-fig6-ipoib", f"{queue}.receive_queues=4").costs
    half_ps = 0.5 * 13_264 * CYCLE_PS
    for name in ("vote", "snapshot", "commit-request"):
        found, other = one[name][0], more[name][0]
        assert found.in_ps == pytest.approx(half_ps, abs=1)
        assert found.receive_ps == other.receive_ps == pytest.approx(half_ps, abs=1)
        assert other.in_ps == pytest.approx(max(half_ps / 4, other.out_ps), abs=1)
        for cost in (found, other):
            whole_ps = cost.wire_ps + max(cost.in_ps, cost.out_ps) + cost.receive_ps
            assert whole_ps == pytest.approx(20e6 + 2 * half_ps, rel=0.05)


def test_one_core_bounds_what_a_server_receives() -> None:
    """Eight messages of a transaction reach the manager: 8 x 3 us make 41 k/s; with more queues
    its threads are the limit again."""
    model = KernelCommitModel(parameters("nam-fig6-ipoib"), 1)
    model.run(40_000 * US)
    bound = 0.04 * 1e12 / (8 * 0.5 * 13_264 * CYCLE_PS)  # in 40 ms
    assert model.result().commits == pytest.approx(bound, rel=0.02)
    queue = "machine.nics.0.transports.IPoIB.receive_queues"
    model = KernelCommitModel(parameters("nam-fig6-ipoib", f"{queue}=20"), 1)
    model.run(40_000 * US)
    assert model.result().commits > 2.0 * bound


def test_both_facts_or_none() -> None:
    with pytest.raises(InputError, match="expected both interrupt_share and receive_queues"):
        load_scenario(
            "nam-fig6-ipoeth", settings=["machine.nics.1.transports.IPoEth.receive_queues=2"]
        )


def test_a_core_for_interrupts_gains_by_processors_not_by_the_network() -> None:
    plane = CommitFlow(load_scenario("nam-fig6-ipoib"))
    plane.advance(0.01)
    why = plane.outcome().why["checkout"]
    assert "incoming messages interrupt 1 core" in why.resource
    assert why.gains[0].resource == "processor speed"
    assert why.gains[0].gain_per_10pct == pytest.approx(0.1, abs=0.005)
