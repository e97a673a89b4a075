"""Runs of both protocols by threads and by processes: isolation holds, and nothing is left."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator

import commit_runs
import pytest
from commit_runs import LONGEST_S, ROWS, is_running, played, segments, small_run, until

from numatwin.engine_native import _engine
from numatwin.engine_native.systems.commits import setup as commit_setup
from numatwin.engine_native.systems.commits.cluster import CommitCluster
from numatwin.engine_native.transports import UCX, ucx_settings
from numatwin.inputs import InputError
from numatwin.sim.systems.commits.history import (
    BROKEN,
    DIED,
    OUTCOME,
    snapshot_isolation_violations,
)

needs_ucx = pytest.mark.skipif(not _engine.HAS_UCX, reason="needs libucx-dev")
# Whoever holds locks and waits for a processor for longer than that is shut out, too.
LEASE_NS = 1_000_000_000
TRANSPORTS = ["threads", *(["shm", "tcp"] if _engine.HAS_UCX else [])]


@pytest.fixture
def nothing_left() -> Iterator[list[int]]:
    """Append processes to it: at the end none of them runs, and no segment is left of theirs."""
    before = segments()
    pids: list[int] = []
    yield pids
    assert until(lambda: not any(map(is_running, pids))), [*filter(is_running, pids)]
    assert until(lambda: segments() <= before), segments() - before


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("one_sided", [True, False])
@pytest.mark.parametrize("clients", [1, 4])
def test_snapshot_isolation_holds(transport: str, one_sided: bool, clients: int) -> None:
    counts, rows = played(small_run(clients, one_sided=one_sided), transport, 150)
    assert snapshot_isolation_violations(rows) == []
    assert counts["commits"] > 10
    assert counts["torn"] == 0
    assert sum(counts["latencies"]) == counts["commits"]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_isolation_holds_through_ucx_calls_and_single_words(transport: str) -> None:
    settings = small_run(3, snapshot_bytes=8, versions=1, records=3_000)
    counts, rows = played(settings | {"direct": False}, transport, 150)
    assert snapshot_isolation_violations(rows) == []
    assert counts["commits"] > 10


@pytest.mark.parametrize(
    ("sabotage", "told"), [("no-validation", "lost update"), ("bit-before-write", "")]
)
def test_a_broken_protocol_is_found_out(sabotage: str, told: str) -> None:
    """A checker that finds nothing in these would find nothing anywhere."""
    settings = small_run(4, records=8, versions=8, sabotage=sabotage, inserts=0)
    for _ in range(20):
        found = snapshot_isolation_violations(played(settings, "threads", 3_000, 1.0)[1])
        if any(told in line for line in found):
            return
    pytest.fail(f"nothing was found: {found[:3]}")


@needs_ucx
@pytest.mark.parametrize("transport", ["shm", "sysv", "tcp"])
def test_processes_end_with_the_run(transport: str, nothing_left: list[int]) -> None:
    with CommitCluster(small_run(2), transport) as cluster:
        cluster.start()
        nothing_left += [*cluster.pids(), cluster.parent_pid or 0]
        assert all(map(is_running, nothing_left))
        cluster.wait_until(0.05)
        cluster.stop()


@needs_ucx
@pytest.mark.parametrize("transport", ["shm", "tcp"])
@pytest.mark.parametrize("server", [0, 2])
def test_a_killed_server_is_told(transport: str, server: int, nothing_left: list[int]) -> None:
    name = "storage server 0" if server == 0 else "the timestamp server"
    with CommitCluster(small_run(2), transport) as cluster:
        cluster.start()
        nothing_left += [*cluster.pids(), cluster.parent_pid or 0]
        cluster.wait_until(0.02)
        os.kill(cluster.pids()[2 + server], signal.SIGKILL)
        with pytest.raises(InputError, match=rf"{name} died \(Killed\)"):
            cluster.wait_until(LONGEST_S)


@needs_ucx
@pytest.mark.parametrize("transport", ["shm", "tcp"])
@pytest.mark.parametrize("one_sided", [True, False])
def test_others_go_on_when_clients_are_killed(
    transport: str, one_sided: bool, nothing_left: list[int]
) -> None:
    """Over TCP each such death ended a server in one of four cases, before connections were kept
    (fabric/kept_connections.hpp). Over shared memory one in a hundred strikes in the middle of a
    message, which ends the run with a line (systems/commits/stall_watch.hpp); RSI's clients hardly
    send any."""
    # Without a skip of dead clients' timestamps those who died without a lock would stop the others
    # once each record has a version that no snapshot reaches: within milliseconds.
    settings = small_run(
        6,
        one_sided=one_sided,
        records=20_000,
        lease_ns=LEASE_NS * one_sided,
        skip_after_ns=5_000_000 * one_sided,
    )
    with CommitCluster(settings, transport) as cluster:
        cluster.start()
        nothing_left += [*cluster.pids(), cluster.parent_pid or 0]
        cluster.wait_until(0.02)
        for client in 1, 2, 3, 5:
            os.kill(cluster.pids()[client], signal.SIGKILL)
            assert until(lambda dead=client: cluster.board.killed()[dead] == signal.SIGKILL)  # type: ignore[misc]
            before = cluster.board.counts()["commits"]
            seen: list[int] = []

            def more(enough: int = before + 5, seen: list[int] = seen) -> bool:
                seen.append(cluster.board.counts()["commits"])
                return seen[-1] > enough

            ended: InputError | None = None
            try:
                assert until(more, cluster.check)
            except InputError as failure:
                ended = failure
            if ended is not None:
                # The one way in which it may end, and only where nobody commits any more.
                assert transport == "shm"
                assert not one_sided
                assert re.search(STALLED, str(ended)), ended
                assert len(set(seen[-100:])) == 1
                return
        cluster.stop()


STALLED = (
    r"^the native run failed: client \d died \(Killed\), .*, and no transaction of the others has "
    r"ended for 5 s: .* half sent in shared memory, .*; .* NUMATWIN_TRANSPORT=tcp, .*$"
)


@needs_ucx
@pytest.mark.parametrize("stopped", ["servers", "all but the dead"])
def test_a_run_that_stands_still_since_a_client_was_killed_ends(
    stopped: str, nothing_left: list[int]
) -> None:
    """Servers that wait for the rest of a message do as these: nothing."""
    with CommitCluster(small_run(3, one_sided=False), "shm") as cluster:
        cluster.start()
        pids = cluster.pids()
        nothing_left += [*pids, cluster.parent_pid or 0]
        assert until(lambda: cluster.board.counts()["commits"] > 0, cluster.check)
        for pid in pids[3:] if stopped == "servers" else [pids[0], *pids[2:]]:
            os.kill(pid, signal.SIGSTOP)
        if stopped == "servers":  # nobody is missed as long as all live
            cluster.wait_until(cluster.board.now_ns * 1e-9 + 6.0)
        os.kill(pids[1], signal.SIGKILL)
        with pytest.raises(InputError, match=STALLED) as raised:
            cluster.wait_until(cluster.board.now_ns * 1e-9 + 60.0)
        assert "client 1 died" in str(raised.value)
        assert "\n" not in str(raised.value)


@needs_ucx
@pytest.mark.parametrize("one_sided", [True, False])
@pytest.mark.parametrize("transport", ["shm", "tcp"])
def test_a_run_without_a_client_left_ends(
    transport: str, one_sided: bool, nothing_left: list[int]
) -> None:
    with CommitCluster(small_run(2, one_sided=one_sided), transport) as cluster:
        cluster.start()
        nothing_left += [*cluster.pids(), cluster.parent_pid or 0]
        for client in 0, 1:
            os.kill(cluster.pids()[client], signal.SIGKILL)
        told = (
            r"client \d died \(Killed\), the last of 2 that the scenario does not ask for, and no "
            "client is left to commit"
        )
        with pytest.raises(InputError, match=told):
            cluster.wait_until(60.0)


@needs_ucx
def test_a_death_holding_locks_and_its_lease() -> None:
    """The client dies by SIGKILL where it holds locks; these are broken, and isolation holds."""
    settings = small_run(
        3,
        records=30,
        think_ns=100_000,  # so that the trace has room for the lease and longer
        death_client=[1],
        death_ns=[100_000_000],
        death_step=[-1],
        lease_ns=LEASE_NS,
        skip_after_ns=5_000_000,
        trace_rows=ROWS,
    )
    with CommitCluster(settings, "shm") as cluster:
        cluster.start()
        assert until(lambda: cluster.board.killed()[1] == signal.SIGKILL, cluster.check)
        assert until(lambda: BROKEN in cluster.board.trace()[:, 1], cluster.check)
        enough = cluster.board.counts()["commits"] + 3_000
        assert until(lambda: cluster.board.counts()["commits"] > enough, cluster.check), (
            "the others do not go on"
        )
        cluster.stop()
        rows = [tuple(row) for row in cluster.board.trace().tolist()]
    kinds = [row[1] for row in rows]
    assert snapshot_isolation_violations(rows) == []
    assert kinds.index(BROKEN) > kinds.index(DIED)
    # The survivors commit from the first broken lock on.
    after = rows[kinds.index(BROKEN) :]
    assert {0, 2} <= {row[2] for row in after if row[1] == OUTCOME}


@needs_ucx
def test_a_killed_parent_of_the_run_is_told(nothing_left: list[int]) -> None:
    with CommitCluster(small_run(2), "shm") as cluster:
        cluster.start()
        nothing_left += cluster.pids()
        os.kill(cluster.parent_pid or 0, signal.SIGKILL)
        with pytest.raises(InputError, match="the run's processes are gone"):
            cluster.wait_until(30.0)


RUN_AND_WAIT = """
import sys, time
sys.path.insert(0, sys.argv[1])
from commit_runs import small_run
from numatwin.engine_native.systems.commits.cluster import CommitCluster
with CommitCluster(small_run(2), sys.argv[2]) as cluster:
    cluster.start()
    print(*cluster.pids(), cluster.parent_pid, flush=True)
    time.sleep(600)
"""


@needs_ucx
@pytest.mark.parametrize(
    ("transport", "with_signal"),
    [*((one, signal.SIGKILL) for one in ("shm", "sysv", "tcp")), ("sysv", signal.SIGINT)],
)
def test_nothing_outlives_who_asked_for_the_run(
    transport: str, with_signal: signal.Signals, nothing_left: list[int]
) -> None:
    folder = os.path.dirname(commit_runs.__file__)
    command = [sys.executable, "-c", RUN_AND_WAIT, folder, transport]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=commit_runs.environment(),
    ) as asking:
        assert asking.stdout is not None
        nothing_left += map(int, asking.stdout.readline().split())
        assert len(nothing_left) == 6
        assert all(map(is_running, nothing_left))
        asking.send_signal(with_signal)
        asking.wait(900.0)


def test_without_ucx_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_engine, "HAS_UCX", False)
    with pytest.raises(InputError, match="without UCX") as raised:
        CommitCluster(small_run(1), "shm")
    assert "libucx-dev" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert ucx_settings("threads") == {}


def test_an_unknown_transport_is_refused() -> None:
    with pytest.raises(InputError, match="carrier pigeon"):
        CommitCluster(small_run(1), "carrier pigeon")


@needs_ucx
def test_a_transport_that_this_host_lacks_is_told(
    monkeypatch: pytest.MonkeyPatch, nothing_left: list[int]
) -> None:
    monkeypatch.setitem(UCX, "tcp", ("tcp,self", "no-such-device"))
    with CommitCluster(small_run(1), "tcp") as cluster:
        nothing_left.append(cluster.parent_pid or 0)
        with pytest.raises(InputError, match="the native run failed: UCX"):
            cluster.start()


def test_room_is_rounded_down() -> None:
    assert commit_setup._rounded_down(0.1299) == pytest.approx(0.12)
    assert commit_setup._rounded_down(0.5) == pytest.approx(0.5)
