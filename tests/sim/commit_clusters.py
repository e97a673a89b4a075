"""Small clusters for tests of the commit protocols: costs, configurations, both planes."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from numatwin.sim._kernel import MessageCost, RecordWork
from numatwin.sim.systems.commits.history import KINDS, Row, snapshot_isolation_violations
from numatwin.sim.systems.commits.messages import (
    ONE_SIDED_MESSAGES,
    REMEDY_MESSAGES,
    TWO_PHASE_MESSAGES,
)
from numatwin.sim.systems.commits.parameters import (
    Architecture,
    CommitParameters,
    Death,
    KeyDraw,
    Node,
    Straggler,
)
from numatwin.sim.systems.commits.plane import KernelCommitModel
from numatwin.sim.systems.commits.reference.commits import CommitModel
from numatwin.sim.systems.commits.reference.one_sided import OneSidedModel
from numatwin.sim.systems.commits.reference.two_phase import TwoPhaseModel

US = 1_000_000  # ps
TIMES = [name for name in MessageCost.FIELDS if name.endswith("_ps")]
RSI_MESSAGES = ONE_SIDED_MESSAGES + REMEDY_MESSAGES
ONE_SIDED_REQUESTS = frozenset(
    ("snapshot-read", "read", "cas", "write", "unlock", "bit", "claim", "break")
)
TWO_SIDED_REMEDIES = frozenset(("complaint", "complaint-done", "revoke", "revoked"))


def message_cost(send_ps: int, receive_ps: int, nic_ps: int, wire_ps: int) -> MessageCost:
    """Both sides of the network cards take as long."""
    return MessageCost(
        send_ps=send_ps, receive_ps=receive_ps, out_ps=nic_ps, wire_ps=wire_ps, in_ps=nic_ps
    )


def sockets(thread_ps: int = 3 * US, wire_ps: int = 30 * US, nic_ps: int = 10_000) -> Costs:
    """Every message costs both threads the same."""
    cost = message_cost(thread_ps, thread_ps, nic_ps, wire_ps)
    return dict.fromkeys(TWO_PHASE_MESSAGES, (cost,))


def verbs(thread_ps: int = 200_000, wire_ps: int = US, nic_ps: int = 10_000) -> Costs:
    """Requests cost the client's thread as much to post as to complete, and no server's thread."""
    costs = {}
    for name in RSI_MESSAGES:
        both = name in TWO_SIDED_REMEDIES
        send = thread_ps if both or name in ONE_SIDED_REQUESTS else 0
        receive = thread_ps if both or name not in ONE_SIDED_REQUESTS else 0
        costs[name] = (message_cost(send, receive, nic_ps, wire_ps),)
    return costs


Costs = Mapping[str, tuple[MessageCost, ...]]


def cluster(architecture: Any = "rsi", clients: int = 4, servers: int = 3, **more: Any) -> Any:
    """Two machines of clients, one for each server, one for the timestamp service and the TM."""
    settings: dict[str, Any] = {
        "architecture": architecture,
        "machines": servers + 3,
        "client_machine": tuple(client % 2 for client in range(clients)),
        "nodes": tuple(Node(2 + n) for n in range(servers + 1)),
        "storage": tuple(range(servers)),
        "timestamps": servers,
        "managers": (servers,),
        "costs": verbs() if architecture == "rsi" else sockets(),
    }
    return CommitParameters(**{**settings, **more})


def on_one_machine(clients: int, read_ps: int, write_ps: int = 0, **more: Any) -> Any:
    """RSI by loads and stores, where nothing but these reads and writes takes time."""
    costs = dict.fromkeys(ONE_SIDED_MESSAGES, (MessageCost(),))
    costs |= {"read": (MessageCost(send_ps=read_ps),), "write": (MessageCost(send_ps=write_ps),)}
    where: dict[str, Any] = {"client_machine": (0,) * clients, "nodes": (Node(0), Node(0))}
    more = where | {"machines": 1, "costs": costs, "reads": 1, "updates": 1, "inserts": 0} | more
    return cluster("rsi", clients, 1, **more)


def reference(parameters: CommitParameters, seed: int = 0) -> CommitModel:
    """The reference model of these parameters."""
    return (OneSidedModel if parameters.one_sided else TwoPhaseModel)(parameters, seed)


def traces(parameters: CommitParameters, seed: int, until_ps: int) -> tuple[list[Row], list[Row]]:
    """Of the reference, and of the kernel."""
    plain, compiled = reference(parameters, seed), KernelCommitModel(parameters, seed, traced=True)
    plain.run(until_ps)
    compiled.run(until_ps // 3)  # a run may be stopped and continued
    compiled.run(until_ps)
    return plain.trace(), compiled.trace()


def told(row: Row) -> str:
    """A row in words."""
    time_ps, kind, client, transaction, a, b = row
    return f"{time_ps} ps: {KINDS[kind]} client {client} transaction {transaction} a {a} b {b}"


def same_trace(parameters: CommitParameters, seed: int, until_ps: int) -> Counter[str]:
    """Both planes do the same, and it is snapshot isolation; how often each kind of row came."""
    plain, compiled = traces(parameters, seed, until_ps)
    replay = f"seed {seed}, {parameters}"
    for at, (expected, found) in enumerate(itertools.zip_longest(plain, compiled)):
        assert found == expected, (
            f"row {at}: the kernel has {found and told(found)}, "
            f"the reference {expected and told(expected)}: {replay}"
        )
    assert snapshot_isolation_violations(plain) == [], replay
    return Counter(KINDS[row[1]] for row in plain)


@st.composite
def configurations(draw: st.DrawFn) -> CommitParameters:
    """Crowded little clusters: conflicts, deaths, stragglers, few timestamps, remedies."""
    architecture: Architecture = draw(st.sampled_from(("two-sided", "rsi")))
    one_sided = architecture == "rsi"
    clients = draw(st.integers(1, 7))
    machines = draw(st.integers(1, 5))
    some_machine = st.integers(0, machines - 1)
    nodes = draw(st.lists(st.builds(Node, some_machine, st.integers(1, 3)), min_size=1, max_size=5))
    indices = list(range(len(nodes)))
    roles = st.lists(st.sampled_from(indices), min_size=1, unique=True).map(tuple)
    times = st.sampled_from((0, 1, 1000, 300_000, US))
    cost = st.builds(MessageCost, **dict.fromkeys(TIMES, times))
    types = RSI_MESSAGES if one_sided else TWO_PHASE_MESSAGES
    costs = {
        name: tuple(draw(st.lists(cost, min_size=1, max_size=1 if one_sided else 3)))
        for name in types
    }
    costs["read"] = (costs["read"][0].replaced(send_ps=draw(st.integers(200_000, US))),)
    reads = draw(st.integers(1, 4))
    updates = draw(st.integers(0, reads))
    records = draw(st.integers(2 * reads, 30))
    keys = draw(
        st.one_of(
            st.just(KeyDraw()),
            st.builds(KeyDraw, st.just("zipf"), exponent=st.sampled_from((0.5, 0.99, 1.0, 1.5))),
            st.builds(
                KeyDraw,
                st.just("hot"),
                hot_records=st.just(reads),
                hot_probability=st.sampled_from((0.0, 0.5, 0.9)),
            ),
        )
    )
    storage = draw(roles)
    own = st.tuples(*[st.sampled_from(indices)] * (len(storage) * clients))
    some_clients = st.lists(st.integers(0, clients - 1), max_size=2, unique=True)
    long_times = st.sampled_from((0, 1000, 2 * US, 20 * US))
    return CommitParameters(
        architecture=architecture,
        machines=machines,
        client_machine=tuple(draw(st.tuples(*[some_machine] * clients))),
        nodes=tuple(nodes),
        storage=storage,
        own_storage=() if one_sided else draw(st.one_of(st.just(()), own)),
        managers=draw(roles),
        timestamps=draw(st.sampled_from(indices)),
        costs=costs,
        records=records,
        reads=reads,
        updates=updates,
        inserts=draw(st.integers(0 if updates else 1, 3)),
        keys=keys,
        think_ps=draw(long_times),
        think=draw(st.sampled_from(("constant", "exponential"))),
        compute_ps=draw(long_times),
        compute_spread=draw(st.sampled_from([0.0, 0.3, 1.0])),
        retries=draw(st.integers(0, 2)),
        backoff_ps=draw(long_times),
        poll_ps=draw(st.sampled_from((1000, 5 * US))),
        work=RecordWork(**{name: draw(times) for name in RecordWork.FIELDS}),
        every_rm=draw(st.booleans()),
        own_managers=draw(st.booleans()),
        versions=draw(st.integers(1, 4)),
        timestamp_bits=draw(st.sampled_from((clients, 3 * clients + 1, 60_000))),
        send_queue=draw(st.integers(1, 4)),
        snapshot_every=draw(st.integers(1, 3)),
        deaths=tuple(
            Death(client, draw(st.integers(0, 100 * US))) for client in draw(some_clients)
        ),
        stragglers=tuple(
            Straggler(client, draw(st.sampled_from((2, 30)))) for client in draw(some_clients)
        ),
        lease_ps=draw(st.sampled_from((None, 30 * US))) if one_sided else None,
        skip_after_ps=draw(st.sampled_from((None, 2 * US, 30 * US))) if one_sided else None,
    )
