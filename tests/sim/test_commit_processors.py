"""Processors that clients and servers share: both planes do the same, and known answers."""

from dataclasses import replace
from typing import Any

import pytest
import simpy
from commit_clusters import (
    RSI_MESSAGES,
    US,
    cluster,
    configurations,
    on_one_machine,
    reference,
    same_trace,
    traces,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refusals import told_by

from numatwin.sim._kernel import MessageCost, ProcessorSetup
from numatwin.sim.machine.reference.processors import SharedProcessors
from numatwin.sim.machine.reference.run_queues import Process
from numatwin.sim.systems.commits.messages import ONE_SIDED_MESSAGES, TWO_PHASE_MESSAGES
from numatwin.sim.systems.commits.parameters import CommitParameters, Death, Node
from numatwin.sim.systems.commits.plane import KernelCommitModel

TIMES = st.sampled_from((0, 1, 1000, 300_000, US))


@st.composite
def hosts(draw: st.DrawFn) -> CommitParameters:
    """The crowded little clusters, all of their processes on one host."""
    drawn = draw(configurations())
    clients = len(drawn.client_machine)
    parts = st.sampled_from((1, 1, 2))
    costs = {
        name: tuple(cost.replaced(parts=draw(parts)) for cost in of_type)
        for name, of_type in drawn.costs.items()
    }
    count = draw(st.integers(1, 4))
    return replace(
        drawn,
        costs=costs,
        machines=1,
        client_machine=(0,) * clients,
        nodes=tuple(Node(0) for _ in drawn.nodes),
        timestamp_reach=draw(st.sampled_from((None, 1, 5))),
        doorbell=draw(st.booleans()),
        in_step=not drawn.has_remedy and draw(st.booleans()),
        poll_ps=5 * US,  # they wait for timestamps all the time
        start_ps=draw(st.sampled_from(((), tuple(300_000 * k for k in range(clients))))),
        processors=ProcessorSetup(
            count=count,
            groups=draw(st.sampled_from(((), [0] * count, [k % 2 for k in range(count)]))),
            slice_ps=draw(st.sampled_from((50_000, US, 10 * US))),
            switch_ps=draw(TIMES),
            look_ps=draw(TIMES),
            connection_ps=tuple(draw(st.lists(TIMES, max_size=3))),
            spin_ps=draw(TIMES),
            sleep_ps=draw(TIMES),
            wake_ps=draw(TIMES),
            across_ps=draw(TIMES),
            notify_ps=draw(TIMES),
            interrupt_ps=draw(TIMES),
            yield_ps=draw(TIMES),
            gives_way=draw(st.booleans()),
            tick_ps=draw(st.sampled_from((20_000, US, 30 * US))),
            awake_ps=draw(TIMES),
        ),
    )


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(hosts(), st.integers(0, 2**64 - 1))
def test_the_traces_are_equal_and_keep_snapshot_isolation(
    parameters: CommitParameters, seed: int
) -> None:
    same_trace(parameters, seed, 40 * US)


def test_who_dies_as_an_answer_comes_goes_no_further() -> None:
    """Found by Hypothesis: a snapshot that costs nothing, and a death at the same instant."""
    costs = dict.fromkeys(RSI_MESSAGES, (MessageCost(),)) | {"read": (MessageCost(send_ps=1),)}
    parameters = replace(
        host(1, ProcessorSetup(count=1, slice_ps=WORK_PS)),
        costs=costs,
        records=2,
        deaths=(Death(0, 0),),
    )
    plain, compiled = traces(parameters, 0, 40 * US)
    assert plain == compiled
    assert len(plain) == 3


@settings(deadline=None, max_examples=20, suppress_health_check=list(HealthCheck))
@given(hosts(), st.integers(0, 2**64 - 1))
def test_both_count_the_same_time_on_processors(parameters: CommitParameters, seed: int) -> None:
    plain, compiled = reference(parameters, seed), KernelCommitModel(parameters, seed)
    for until_ps in (7 * US, 30 * US):
        plain.run(until_ps)
        compiled.run(until_ps)
        expected, found = plain.result(), compiled.result()
        assert found.busy_ps.tolist() == expected.busy_ps.tolist(), f"seed {seed}"
        assert parameters.processors is not None
        on_ps = found.busy_ps[2 * parameters.machines :].sum()
        assert on_ps <= parameters.processors.count * until_ps


WORK_PS = 1_000_000
COMMITS = 400


def host(clients: int, processors: ProcessorSetup, **more: Any) -> CommitParameters:
    """RSI by loads and stores: a transaction is WORK_PS of its client's time, and nobody meets."""
    made: CommitParameters = on_one_machine(
        clients, WORK_PS, records=2 * 10**9, timestamp_bits=2**20, processors=processors, **more
    )
    return made


def commits(parameters: CommitParameters, until_ps: int) -> int:
    model = KernelCommitModel(parameters, 1)
    model.run(until_ps)
    return model.result().commits


@pytest.mark.parametrize(("clients", "count"), [(1, 1), (1, 4), (2, 2), (4, 4), (3, 8)])
def test_with_processors_for_all_nobody_waits(clients: int, count: int) -> None:
    parameters = host(clients, ProcessorSetup(count=count, slice_ps=10 * WORK_PS))
    assert commits(parameters, COMMITS * WORK_PS + 1) == pytest.approx(clients * COMMITS, abs=2)


@pytest.mark.parametrize("clients", [2, 3, 5, 8])
@pytest.mark.parametrize("count", [1, 2])
def test_processors_are_shared_evenly_and_switches_cost(clients: int, count: int) -> None:
    """Whoever runs does so for a slice, then a switch is paid: count · slice/(slice + switch)."""
    slice_ps, switch_ps = 20 * WORK_PS, 5 * WORK_PS
    setup = ProcessorSetup(count=count, slice_ps=slice_ps, tick_ps=slice_ps, switch_ps=switch_ps)
    parameters = host(clients, setup)
    # Clients have processors in turn; a slice holds the switch, where there is one.
    alone = [1 if len(range(at, clients, count)) == 1 else 0 for at in range(min(clients, count))]
    shares = [1.0 if one else (slice_ps - switch_ps) / slice_ps for one in alone]
    found = commits(parameters, 4_000 * WORK_PS)
    assert found == pytest.approx(sum(shares) * 4_000, rel=0.02)


@pytest.mark.parametrize(("parts", "ps"), [(1, 100), (2, 30), (3, 30), (9, 30)])
def test_a_connection_costs_by_what_came_over_it(parts: int, ps: int) -> None:
    """There and back, one message at a time: each look finds one, of so many parts."""
    times = []
    for connection_ps in ((), (100_000, 30_000)):
        parameters = there_and_back(US, connection_ps=connection_ps)
        costs = {
            name: tuple(cost.replaced(parts=parts) for cost in of_type)
            for name, of_type in parameters.costs.items()
        }
        model = KernelCommitModel(replace(parameters, costs=costs), 1)
        model.run(2_000 * US)
        times.append(model.latency_total_ps / model.commits)
    # Snapshot, read and commit: each is found by the server, its answer by the client.
    assert times[1] - times[0] == pytest.approx(6 * ps * 1_000, rel=0.01)


def test_each_connection_of_a_look_costs() -> None:
    """A server finds messages of three clients at once, two of them from one of these."""
    env = simpy.Environment()
    setup = ProcessorSetup(count=4, slice_ps=WORK_PS, look_ps=7, connection_ps=(100, 1_000))
    shared = SharedProcessors(env, setup)
    server, *clients = (Process(place) for place in range(4))
    shared.work(server, 10_000)  # busy meanwhile
    env.run(1)
    for client in (*clients, clients[0]):
        done = shared.work(server, 10, client)
    env.run(done)
    assert env.now == 10_000 + 7 + 1_000 + 2 * 100 + 4 * 10


def test_messages_of_one_look_share_its_cost() -> None:
    """A server that has more to do than it can looks less often than there are messages."""
    costs = dict.fromkeys(TWO_PHASE_MESSAGES, (MessageCost(send_ps=100_000, receive_ps=100_000),))

    def rate(clients: int, look_ps: int) -> float:
        parameters = cluster(
            "two-sided",
            clients,
            1,
            machines=1,
            client_machine=(0,) * clients,
            nodes=(Node(0), Node(0)),
            costs=costs,
            records=1_000_000,
            processors=ProcessorSetup(count=64, slice_ps=WORK_PS, look_ps=look_ps, spin_ps=10**12),
        )
        return commits(parameters, 3_000 * US)

    # Alone each message is looked for; with many clients the busy servers' looks find several.
    alone, many = (rate(c, 1_000_000) / rate(c, 0) for c in (1, 24))
    assert alone < 0.25
    assert many > 2 * alone


def there_and_back(message_ps: int, **processors: Any) -> CommitParameters:
    """One client and one server, on a processor each, with one message under way at a time."""
    made: CommitParameters = cluster(
        "two-sided",
        1,
        1,
        machines=1,
        client_machine=(0,),
        nodes=(Node(0),),
        storage=(0,),
        managers=(0,),
        timestamps=0,
        costs=dict.fromkeys(
            TWO_PHASE_MESSAGES, (MessageCost(send_ps=message_ps, receive_ps=message_ps),)
        ),
        reads=1,
        updates=1,
        inserts=0,
        records=1_000_000,
        processors=ProcessorSetup(count=2, slice_ps=1000 * US, **processors),
    )
    return made


def test_who_sleeps_is_woken_later() -> None:
    """One message there and back after another: each wakes its receiver, on another processor."""
    times = []
    for wake_ps in (0, 2 * US):
        parameters = there_and_back(100_000, wake_ps=wake_ps)
        model = KernelCommitModel(parameters, 1)
        model.run(2_000 * US)
        times.append(model.latency_total_ps / model.commits)
    # Snapshot, read and commit: each wakes the server, and then the client.
    assert times[1] - times[0] == pytest.approx(6 * 2 * US, rel=0.01)


@pytest.mark.parametrize(("notify_ps", "later_ps"), [(US, 0), (3 * US, 0), (9 * US, 3 * US)])
def test_who_wakes_another_one_is_busy_with_it_at_once(notify_ps: int, later_ps: int) -> None:
    """One message there and back after another: to send and to receive it take 1 µs each.

    A sleeper runs 2 µs after it was sent for, so there and back take 8 µs, and the answer comes
    4 µs after the question was sent: if whoever sent that is done with waking the server by then,
    it takes no longer. If not (9 µs), the answer waits, and need not wake it: 1 + 9 + 1 µs.
    """
    models = []
    for each_ps in (0, notify_ps):
        parameters = there_and_back(US, wake_ps=2 * US, notify_ps=each_ps)
        models.append(KernelCommitModel(parameters, 1))
        models[-1].run(2_000 * US)
    took, took_more = (model.latency_total_ps / model.commits for model in models)
    assert (took, took_more - took) == pytest.approx((3 * 8 * US, 3 * later_ps), rel=0.01)


@pytest.mark.parametrize(
    ("change", "told_of"),
    [
        ({"machines": 2}, "machines"),
        ({"nodes": (Node(0, 2), Node(0))}, "threads"),
        ({"processors": ProcessorSetup(count=0, slice_ps=1)}, "processors"),
        ({"processors": ProcessorSetup(count=1, slice_ps=0)}, "slice_ps"),
        ({"start_ps": (1, 2, 3)}, "start_ps"),
        ({"costs": dict.fromkeys(ONE_SIDED_MESSAGES, (MessageCost(send_ps=1, parts=0),))}, "parts"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], told_of: str) -> None:
    assert told_of in told_by(replace, host(2, ProcessorSetup(count=1, slice_ps=WORK_PS)), **change)
