"""Clusters under faults: both planes do the same, histories are checked, planted bugs are found."""

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pytest
from commit_clusters import US, cluster, same_trace
from examples import few_and_many
from refusals import told_by

from numatwin.sim._kernel import ClockFault, HistoryChecker, PathFault, Transport
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.systems.commits.build import commit_parameters
from numatwin.sim.systems.commits.history import (
    KINDS,
    MESSAGE,
    OUTCOME,
    REJOINED,
    RETURNED,
    STOPPED,
    UNDONE,
)
from numatwin.sim.systems.commits.parameters import Death, Stop
from numatwin.sim.systems.commits.plane import KernelCommitModel
from numatwin.sim.systems.commits.shaking import ENDS, Case, case_of, described, findings_of, shrunk

pytestmark = pytest.mark.kernel

RSI = cluster("rsi", lease_ps=100 * US, skip_after_ps=100 * US)
BASES = [cluster("two-sided"), cluster("ipoeth"), RSI]
TRANSPORT = Transport(timeout_ps=10 * US, retries=3, reconnect_ps=20 * US)


@few_and_many(25, 300)
def test_the_planes_do_the_same_under_faults(examples: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(examples):
        case = case_of(BASES, seed)
        seen += same_trace(case.parameters, seed, (ENDS + 5) * case.unit_ps)
    for kind in (STOPPED, RETURNED, OUTCOME, REJOINED):
        assert seen[KINDS[kind]] > 0, seen


def test_2pc_blocks_while_its_coordinator_is_gone_and_resolves_from_its_log() -> None:
    """The TM stops from 2 to 4 ms: nothing commits; then all goes on, and no lock has stayed."""
    stop = Stop(machine=5, at_ps=2_000 * US, returns_ps=4_000 * US)
    parameters = cluster(
        "two-sided",
        8,
        records=100,
        versions=2,
        stops=(stop,),
        transport=TRANSPORT,
        rest_ps=6_000 * US,
    )
    rows = same_trace(parameters, 1, 8_000 * US)
    assert rows["outcome"] > 50
    model = KernelCommitModel(parameters, 1, traced=True)
    model.run(8_000 * US)
    known_ps = [row[0] for row in model.trace() if row[1] == OUTCOME]
    assert not [at for at in known_ps if 2_100 * US < at < 4_000 * US]
    assert [at for at in known_ps if at > 4_100 * US]
    assert model.result().aborts["stopped"] > 0
    assert (model.busy_clients, model.locked_records) == ([], [])


def test_a_fenced_client_s_half_installed_writes_are_undone() -> None:
    """Client 0 cannot reach one server while it installs: fenced, it has written at the others."""
    cut = PathFault(from_ps=50 * US, until_ps=400 * US, side=[1, 0, 2, 0, 0, 0], loss=1.0)
    seen: Counter[str] = Counter()
    for seed in range(5):
        parameters = cluster(
            "rsi",
            6,
            records=20,
            versions=3,
            send_queue=1,
            lease_ps=30 * US,
            undoes=True,
            skip_after_ps=30 * US,
            path_faults=(cut,),
            transport=TRANSPORT,
        )
        seen += same_trace(parameters, seed, 600 * US)
    assert seen[KINDS[UNDONE]] > 0, seen


def test_what_is_late_comes_twice() -> None:
    """The first message is handed over at 3 us, takes 30.01 us, and 3 us to be received.

    late by 100 us:  33 us: nobody knows that it comes; 43 us: sent again
                     76.01 us: received; 136.01 us: the late one is received, and dropped
    """
    late = PathFault(from_ps=0, until_ps=4 * US, side=[1, 2, 2, 2, 2, 2], loss=0.0)
    late = late.replaced(late=0.999_999, late_ps=100 * US)
    parameters = cluster("ipoeth", 1, path_faults=(late,), transport=TRANSPORT, rest_ps=1)
    assert same_trace(parameters, 1, 1_000 * US)["begin"] == 1
    model = KernelCommitModel(parameters, 1, traced=True)
    model.run(1_000 * US)
    asked_ps = [row[0] for row in model.trace() if row[1] == MESSAGE and row[4] == 0]
    assert asked_ps == [76_010_000, 136_010_000]


def test_a_clock_that_is_fast_lets_no_two_owners_in() -> None:
    """Clients 1 and 3 take any lock for an expired one. Whom they have fenced is undone; were it
    not, as nobody writes after half a lease, snapshots would be broken.
    """
    clock = ClockFault(machine=1, from_ps=0, until_ps=2_000 * US, ahead_ps=200 * US)
    parameters = replace(
        RSI,
        records=30,
        versions=3,
        send_queue=1,
        undoes=True,
        clock_faults=(clock,),
        transport=TRANSPORT,
        rest_ps=2_000 * US,
    )
    rows = same_trace(parameters, 0, 3_000 * US)
    assert min(rows["fenced"], rows["undone"]) > 0, rows
    assert same_trace(replace(parameters, clock_faults=()), 0, 3_000 * US)["fenced"] == 0
    assert not findings_of(Case(parameters, 0, 100 * US))
    assert findings_of(Case(parameters, 0, 100 * US), plant=6)


@pytest.mark.parametrize("step", ["snapshot", "read", "lock", "write", "bit"])
def test_a_client_dies_at_each_step(step: str) -> None:
    parameters = cluster("rsi", 3, records=20, deaths=(Death(0, 30 * US, step),))
    assert same_trace(parameters, 2, 100 * US)["died"] == 1


@pytest.mark.parametrize(
    ("plant", "what"),
    [
        (1, "stays locked"),
        (2, "CID"),
        (3, "not installed"),
        (4, "not decided any more|not installed|lost update|after|rolled back"),
        (5, "stays locked"),
        (6, "some of it is installed|not decided any more"),
        (7, "its snapshot|lost update|after"),
    ],
    ids=[
        "lock-kept",
        "timestamp-reused",
        "early-acknowledgement",
        "short-lease",
        "doubled-prepare",
        "clocks-trusted",
        "nothing-copied",
    ],
)
def test_a_planted_bug_is_found_and_shrunk(plant: int, what: str) -> None:
    """Each within 2,000 runs; without it the same seed is fine."""
    import re

    bases = [RSI] if plant == 4 else BASES
    seed = next(s for s in range(2_000) if findings_of(case_of(bases, s), plant))
    case = case_of(bases, seed)
    assert findings_of(case) == []
    small = shrunk(case, plant)
    assert re.search(what, findings_of(small, plant)[0]), findings_of(small, plant)
    assert len(described(small)) <= len(described(case))


@few_and_many(1_000, 20_000)
def test_nothing_is_found_without_one(examples: int) -> None:
    for seed in range(examples):
        found = findings_of(case_of(BASES, seed))
        assert found == [], f"seed {seed}: {found} {described(case_of(BASES, seed))}"


def test_the_checker_s_memory_is_bounded() -> None:
    parameters = replace(BASES[1], records=1_000)
    model = KernelCommitModel(parameters, 1, traced=True)
    model.run(5_000 * US)
    checker = HistoryChecker(4, 1_000, 1)
    checker.add(model._kernel.trace())
    assert (checker.findings, checker.unchecked_reads) == ([], 0)
    assert checker.held <= 3 * 4


def test_the_command_says_what_it_found() -> None:
    command = [sys.executable, "-m", "numatwin", "shake", "nam-fig6-rsi", "--runs", "40", "--json"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["finding"] is None


TIMED = ("at: 20 us", "at: 30 us"), ("at: 20 us", "rate: 9 k/s, stream: a")
RATED = ("stream: a", "stream: b"), ("rate: 9 k/s", "rate: 8 k/s"), ("lasts: 9 us", "lasts: 8 us")
LOST = ("lasts: 9 us", "memory: lost, lasts: 9 us")
PATH = (
    ("lasts: 9 us", "loss: 0.5, lasts: 9 us"),
    ("lasts: 9 us", "slow: 2, lasts: 9 us"),
    ("lasts: 9 us", "late: 0.5, delay: 1 us, lasts: 9 us"),
)
CLOCK = (
    *TIMED,
    ("node: 4", "node: 0"),
    ("ahead: 1 ms", "ahead: 2 ms"),
    ("ahead: 1 ms", "drift: 0.1"),
    ("lasts: 9 us", "lasts: 8 us"),
)


@pytest.mark.parametrize(
    ("fault", "changes"),
    [
        (
            "kind: stop, server: 4, at: 20 us, lasts: 9 us",
            (*TIMED, ("server: 4", "server: 5"), LOST),
        ),
        ("kind: stop, server: 4, rate: 9 k/s, stream: a, lasts: 9 us", RATED),
        ("kind: link, between: [0, 4], at: 20 us, lasts: 9 us", (*TIMED, *PATH, ("0, 4", "1, 4"))),
        ("kind: port, node: 4, at: 20 us, lasts: 9 us", (*TIMED, *PATH, ("node: 4", "node: 0"))),
        ("kind: partition, group: [0], at: 20 us, lasts: 9 us", (*TIMED, *PATH, ("[0]", "[1]"))),
        ("kind: clock, node: 4, at: 20 us, lasts: 9 us, ahead: 1 ms", CLOCK),
        (
            "kind: client, client: 1, at: 20 us",
            (TIMED[0], ("at", "step: read, at"), ("t: 1", "t: 2")),
        ),
    ],
)
def test_each_field_of_a_fault_acts(fault: str, changes: tuple[tuple[str, str], ...]) -> None:
    def found(settings: str, more: str = "{timeout: 1 us}") -> str:
        words = [f"system.faults=[{{{settings}}}]", f"system.retransmission={more}"]
        if "clock" in settings:
            words += ["system.lease=1 ms", "system.versions=2", "system.send_queue=1"]
        scenario = load_scenario("nam-fig6-rsi", settings=["horizon=3 ms", *words])
        shown = repr(commit_parameters(scenario)[0])
        assert "object at" not in shown  # an address, which differs whatever the fields are
        return shown

    for old, new in changes:
        assert found(fault.replace(old, new, 1)) != found(fault), new
    for field in ("growth: 2", "longest: 9 us", "retries: 3", "reconnect: 1 us"):
        assert found(fault, f"{{timeout: 1 us, {field}}}") != found(fault), field
    assert found(fault, "{timeout: 2 us}") != found(fault)


@pytest.mark.parametrize(
    ("fault", "expected"),
    {
        ("rsi", "port, node: 4, late: 0.1"): "late: messages that are late: expected 'delay', too",
        ("rsi", "port, node: 4, delay: 1 us"): "delay: messages that are late: "
        "expected 'late', too",
        ("two-sided", "port, node: 4, late: 0.1, delay: 9 us"): "RDMA delivers each message once",
        ("two-sided", "clock, node: 4, ahead: 1 us"): "2PC goes by no clock",
        ("rsi", "clock, node: 4, ahead: 1 us"): "nobody goes by a clock: expected lease or",
        ("rsi", "clock, node: 4"): "a clock that is right: expected ahead or drift",
    }.items(),
)
def test_late_messages_and_clocks_that_cannot_be(fault: tuple[str, str], expected: str) -> None:
    architecture, kind = fault
    settings = [f"system.faults=[{{kind: {kind}, at: 1 us, lasts: 5 us}}]"]
    settings += ["system.retransmission={timeout: 5 us}", "horizon=1 ms"]
    if "right" in expected:
        settings += ["system.lease=1 ms", "system.versions=2", "system.send_queue=1"]
    assert expected in told_by(load_scenario, f"nam-fig6-{architecture}", settings=settings)


def test_shaking_is_the_same_each_time() -> None:
    first, again = (case_of(BASES, 7) for _ in range(2))
    assert first == again
    assert isinstance(first, Case)
