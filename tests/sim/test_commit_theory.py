"""The commit models against known answers: counts, bounds, latencies by hand, conflicts, laws."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from commit_clusters import US, cluster, sockets, verbs
from scipy.stats import binomtest

from numatwin.sim._kernel import MessageCost, RecordWork
from numatwin.sim.systems.commits.history import COMMIT, MESSAGE, OUTCOME
from numatwin.sim.systems.commits.messages import TWO_PHASE_MESSAGES
from numatwin.sim.systems.commits.parameters import CommitParameters, Node
from numatwin.sim.systems.commits.plane import KernelCommitModel
from numatwin.sim.systems.commits.result import CommitResult

FREE = (MessageCost(),)
READS = ("snapshot-request", "snapshot", "read", "record")
POSTED = (MessageCost(send_ps=1),)  # a read takes a picosecond: time has to pass


def counted(parameters: CommitParameters, until_ps: int, seed: int = 0) -> CommitResult:
    """What a run has counted by then."""
    model = KernelCommitModel(parameters, seed)
    model.run(until_ps)
    return model.result()


@pytest.mark.parametrize("servers", [1, 2, 3, 7])
def test_messages_of_a_2pc_commit(servers: int) -> None:
    """TM and n RMs receive 2 + 4n messages a transaction and send 3 + 4n (nam.md)."""
    timestamps, manager = servers, servers + 1
    parameters = cluster(
        "two-sided",
        clients=1,
        servers=servers,
        nodes=(*(Node(2 + n) for n in range(servers + 1)), Node(0)),
        timestamps=timestamps,
        managers=(manager,),
        think_ps=1000 * US,
    )
    model = KernelCommitModel(parameters, traced=True)
    model.run(20_000 * US)  # the client is thinking
    commits = model.result().commits
    assert commits > 10
    reads = {parameters.message_types.index(name) for name in READS}
    inside = {1 + node for node in (*range(servers), manager)}
    sent, received = 0, 0
    for _, kind, sender, receiver, message_type, _ in model.trace():
        if kind == MESSAGE and message_type not in reads:
            sent += sender in inside
            received += receiver in inside
    assert sent == (3 + 4 * servers) * commits
    assert received == (2 + 4 * servers) * commits


@pytest.mark.parametrize("managers", [(3,), (0, 1, 2)])
def test_messages_of_every_type(managers: tuple[int, ...]) -> None:
    """One TM that is the timestamp service too, or any RM as TM: no message to oneself."""
    parameters = cluster("two-sided", clients=1, managers=managers, think_ps=1000 * US)
    result = counted(parameters, 20_000 * US)
    per_commit = {name: count / result.commits for name, count in result.messages.items()}
    own = managers == (3,)
    assert per_commit == {
        **{"snapshot-request": 1, "snapshot": 1, "read": 3, "record": 3},
        **{"commit-request": 1, "outcome": 1, "rollback": 0},
        **dict.fromkeys(("timestamp-request", "timestamp", "finished"), 0 if own else 1),
        **dict.fromkeys(("prepare", "vote", "install", "installed"), 3 if own else 2),
    }


def test_messages_of_rsi() -> None:
    """A CAS and a WRITE per record written, a WRITE per record created, one unsignaled bit."""
    parameters = cluster(clients=1, think_ps=100 * US, send_queue=4, snapshot_every=3)
    result = counted(parameters, 12_050 * US)
    commits = result.commits
    sent = Counter(result.messages)
    assert commits > 100
    assert sent["snapshot-read"] == sent["snapshot-data"] == -(-commits // 3)
    pairs = (("read", "record", 3), ("cas", "cas-result", 3), ("write", "write-done", 7))
    for request, answer, count in pairs:
        assert sent[request] == sent[answer] == count * commits
    assert sent["bit"] == commits
    assert sent["bit-done"] == sent["unlock"] == 0  # a READ in between vouches for three bits
    sent = Counter(counted(replace(parameters, snapshot_every=50), 12_050 * US).messages)
    assert 0 < sent["bit"] // 4 - sent["bit-done"] <= sent["snapshot-read"]


def test_latency_of_2pc_by_hand() -> None:
    """Four one-way delays until the client knows, six until all see it; before, four for reads."""
    wire_ps = 10 * US
    parameters = cluster(
        "ipoib",
        clients=1,
        costs={**sockets(0, wire_ps, 0), "read": (MessageCost(send_ps=1, wire_ps=wire_ps),)},
        managers=(0,),
        nodes=(Node(2), Node(3), Node(4), Node(5)),
    )
    model = KernelCommitModel(parameters, traced=True)
    model.run(8 * wire_ps + 4)
    assert model.latency_total_ps == 8 * wire_ps + 3  # three reads, a picosecond each
    model.run(20 * wire_ps)
    times = {row[1]: row[0] for row in reversed(model.trace()) if row[1] in (OUTCOME, COMMIT)}
    request_ps = 4 * wire_ps + 3
    assert times == {OUTCOME: request_ps + 4 * wire_ps, COMMIT: request_ps + 6 * wire_ps}


def test_latency_of_rsi_by_hand() -> None:
    """Snapshot, reads, CAS and WRITEs: a round trip each; the client's thread works in between."""
    thread_ps, wire_ps = 200_000, US
    parameters = cluster(clients=1, costs=verbs(thread_ps, wire_ps, 0))
    model = KernelCommitModel(parameters, traced=True)
    model.run(30 * US)
    steps = (1, 3, 3, 7)  # requests that are posted together, and completed one after another
    known_ps = sum(2 * count * thread_ps + 2 * wire_ps for count in steps) + thread_ps
    assert model.latency_total_ps == known_ps * model.commits
    times = {row[1]: row[0] for row in reversed(model.trace()) if row[1] in (OUTCOME, COMMIT)}
    assert times == {OUTCOME: known_ps, COMMIT: known_ps + wire_ps}


def test_a_message_by_hand() -> None:
    """Thread, card out, wire, card in, thread; cut-through, but no sooner than the last bits."""
    costs = {
        **sockets(0, 0, 0),
        "read": (MessageCost(send_ps=5, receive_ps=7, out_ps=100, wire_ps=1000, in_ps=40),),
        "record": (MessageCost(send_ps=3, receive_ps=2, out_ps=40, wire_ps=1000, in_ps=100),),
    }
    parameters = cluster(
        "ipoeth", clients=1, servers=1, costs=costs, reads=2, updates=1, work=RecordWork(read_ps=11)
    )
    model = KernelCommitModel(parameters, traced=True)
    model.run(10_000)
    types = parameters.message_types
    received = [row[0] for row in model.trace() if row[1] == MESSAGE and types[row[4]] == "read"]
    # Out: from 5 to 105 and, posted at 10, to 205. The last bits come 1000 later; then 7 + 11.
    assert received[:2] == [105 + 1000 + 18, 205 + 1000 + 18]
    answered = [row[0] for row in model.trace() if row[1] == MESSAGE and types[row[4]] == "record"]
    # In: 1000 after the outgoing side took it up, for 100; then 2.
    assert answered[:2] == [1123 + 3 + 1000 + 100 + 2, 1223 + 3 + 1000 + 100 + 2]


@pytest.mark.parametrize(("others", "bound_per_s"), [(3, 647_000), (4, 634_000)])
def test_the_cpu_bound(others: int, bound_per_s: float) -> None:
    """c · f · (n + 1) / ((5 + 8n) · cycles): nam-bound-cpu, 8 cores of 2.2 GHz, 3,750 cycles.

    n + 1 servers, each of which is TM in turn; all but thread time of TM and RMs is free.
    """
    message_ps = round(3750 / 2.2e9 * 1e12)
    exact_per_s = 8 * 2.2e9 * (others + 1) / ((5 + 8 * others) * 3750)
    assert exact_per_s == pytest.approx(bound_per_s, rel=1e-3)
    sent_by_others = ("timestamp", "commit-request")
    received_by_others = ("timestamp-request", "finished", "outcome")
    costs = {
        name: (
            MessageCost(
                send_ps=0 if name in sent_by_others else message_ps,
                receive_ps=0 if name in received_by_others else message_ps,
            ),
        )
        for name in TWO_PHASE_MESSAGES
    }
    costs |= {**dict.fromkeys(READS, FREE), "read": POSTED}
    servers = others + 1
    parameters = cluster(
        "two-sided",
        clients=300,
        servers=servers,
        nodes=tuple(Node(2 + n, 8) for n in range(servers + 1)),
        managers=tuple(range(servers)),
        costs=costs,
        updates=0,
        inserts=3,
    )
    before, after = (counted(parameters, ps) for ps in (2000 * US, 102_000 * US))
    commits_per_s = (after.commits - before.commits) / 100e-3
    in_flight = len(parameters.client_machine) / 100e-3  # begun before, or not yet ended
    assert commits_per_s <= exact_per_s + in_flight
    assert commits_per_s == pytest.approx(exact_per_s, rel=0.01)
    busy_ps = (after.busy_ps - before.busy_ps)[2 * parameters.machines : -1]
    assert busy_ps.max() <= 8 * 100_000 * US


def test_the_bandwidth_bound() -> None:
    """nam-bound-10gbe: 3 records of 1 KiB read and 3 written, in all through 10 · 2^30 bit/s.

    The bound counts both directions of one server's link together; they carry the same, so half of
    the bandwidth is each direction's. Clients think for random times: else they go through the card
    in step, all reading, then all writing, and leave a quarter of it idle.
    """
    bound_per_s = 10 * 2**30 / 8 / (6 * 1024)
    assert bound_per_s == pytest.approx(218_500, rel=1e-3)
    record_ps = round(1024 / (10 * 2**30 / 8 / 2) * 1e12)
    costs: dict[str, tuple[MessageCost, ...]] = dict.fromkeys(TWO_PHASE_MESSAGES, FREE)
    costs["read"] = POSTED
    costs["record"] = (MessageCost(out_ps=record_ps),)
    costs["commit-request"] = tuple(MessageCost(in_ps=k * record_ps) for k in range(4))
    parameters = cluster(
        "ipoeth",
        clients=200,
        servers=1,
        managers=(0,),
        costs=costs,
        inserts=0,
        records=10**6,
        think_ps=200 * US,
        think="exponential",
    )
    before, after = (counted(parameters, ps) for ps in (5000 * US, 55_000 * US))
    commits_per_s = (after.commits - before.commits) / 50e-3
    assert commits_per_s <= bound_per_s + 200 / 50e-3
    assert commits_per_s == pytest.approx(bound_per_s, rel=0.01)
    assert after.busy_ps[parameters.machines + 2] <= after.time_ps


@pytest.mark.parametrize("updates", [1, 3])
def test_conflicts_of_2pc(updates: int) -> None:
    """P(conflict) = 1 - (1 - 6 λ t)^n: a record is taken for six one-way delays t (nam.md).

    Two of them pass from snapshot to prepare where reading takes no time, and four from the lock
    until the timestamp service counts the CID as done. λ: commits per second that write a record.
    """
    wire_ps, records, clients = 10 * US, 3000 * updates, 60
    costs = {**sockets(0, wire_ps, 0), **dict.fromkeys(READS, FREE), "read": POSTED}
    parameters = cluster(
        "two-sided",
        clients=clients,
        costs=costs,
        managers=(0,),
        every_rm=False,
        records=records,
        updates=updates,
        inserts=0,
        think_ps=60 * US,
        think="exponential",
        versions=8,
    )
    result = counted(parameters, 60_000 * US, seed := 3)
    attempts = result.commits + sum(result.aborts.values())
    per_record_ps = result.commits * updates / records / result.time_ps
    expected = 1 - (1 - 6 * per_record_ps * wire_ps) ** updates
    assert 0.002 < expected < 0.1  # where the formula holds: locks are rarely met
    conflicts = attempts - result.commits
    interval = binomtest(conflicts, attempts).proportion_ci(0.999)
    assert interval.low <= expected <= interval.high, (
        f"{conflicts / attempts} of {attempts}, expected {expected}, seed {seed}"
    )


@pytest.mark.parametrize("architecture", ["two-sided", "ipoib", "ipoeth", "rsi"])
@pytest.mark.parametrize("clients", [1, 12])
def test_littles_law(architecture: str, clients: int) -> None:
    """Clients = throughput × (latency + think time), but for one transaction under way each."""
    think_ps, until_ps = 20 * US, 20_000 * US
    parameters = cluster(
        architecture, clients=clients, updates=0, inserts=2, think_ps=think_ps, versions=8
    )
    model = KernelCommitModel(parameters)
    model.run(until_ps)
    result = model.result()
    spent_ps = model.latency_total_ps + result.commits * think_ps
    longest_ps = 2e3 * result.latencies_ns.quantile(0.999) + think_ps
    assert clients * (until_ps - longest_ps) <= spent_ps <= clients * (until_ps + think_ps)
    assert sum(result.aborts.values()) == 0


def test_servers_of_rsi_are_idle_and_clients_are_not() -> None:
    parameters = cluster(clients=10, records=10**6)
    result = counted(parameters, 1000 * US)
    out_ps, _, nodes_ps, (clients_ps,) = np.split(result.busy_ps, [6, 12, 16])
    assert set(nodes_ps) == {0}
    assert out_ps.sum() == pytest.approx(10_000 * sum(result.messages.values()), rel=1e-3)
    assert 0 < clients_ps < 10 * result.time_ps
