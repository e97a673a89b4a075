"""Faults of a scenario, for real: who dies at a step, who stops and goes on, what cannot fail."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from commit_runs import ROWS, small_run, until

from numatwin.engine_native import _engine, transports
from numatwin.engine_native.systems.commits import plane as native_plane
from numatwin.engine_native.systems.commits.cluster import CommitCluster
from numatwin.engine_native.systems.commits.plane import NativeCommits, native_commits
from numatwin.engine_native.systems.commits.setup import CommitPlan, commit_plan
from numatwin.inputs import InputError
from numatwin.sim.run.scenario import Scenario, load_scenario
from numatwin.sim.systems.commits.history import (
    ABORT,
    BEGIN,
    DIED,
    INSTALL,
    MESSAGE,
    OUTCOME,
    snapshot_isolation_violations,
)
from numatwin.sim.systems.commits.parameters import RSI_STEPS, TWO_PHASE_STEPS
from numatwin.sim.systems.commits.plane import KernelCommitModel

RSI, TWO_PHASE = "nam-fig6-rsi", "nam-fig6-two-sided"
CASES = [(RSI, step) for step in RSI_STEPS] + [(TWO_PHASE, step) for step in TWO_PHASE_STEPS]
needs_ucx = pytest.mark.skipif(not _engine.HAS_UCX, reason="needs libucx-dev")


# Paths that are down. Clients 0 to 2 are on nodes of these numbers, records on 4 and 5, the
# timestamp server is on 6.
CUTS = [
    (RSI, "link, between: [1, 4]"),
    (RSI, "partition, group: [1, 2]"),
    (TWO_PHASE, "partition, group: [1, 2]"),
    (TWO_PHASE, "link, between: [4, 6]"),
]
REMEDIES = ["lease=20 ms", "skip_after=5 ms", "versions=4", "send_queue=1"]
S_PS = 10**12


def failing(name: str, fault: str, *more: str) -> Scenario:
    system = (*more, f"faults=[{fault}]", "clients=3", "storage_nodes=2")
    settings = ["native_horizon=1500 ms", "statistics.warm_up=0 s"]
    settings += [f"system.{setting}" for setting in system]
    return load_scenario(name, plane="native", scale=0.005, settings=settings)


def last_transaction(rows: np.ndarray[Any, np.dtype[np.int64]], client: int) -> set[int]:
    """Kinds of what a client that died did last."""
    own = rows[(rows[:, 2] == client) & (rows[:, 1] != MESSAGE)]
    died = own[own[:, 1] == DIED]
    assert len(died) == 1
    return set(own[own[:, 3] == died[0, 3], 1].tolist())


@needs_ucx
@pytest.mark.parametrize(("name", "step"), CASES)
def test_who_dies_at_a_step_leaves_what_the_simulator_says(name: str, step: str) -> None:
    """Kinds of rows, and its last transaction is neither committed nor aborted, but unknown."""
    plan = commit_plan(failing(name, f"{{kind: client, client: 1, at: 5 ms, step: {step}}}"), 1)
    with CommitCluster(plan.settings | {"trace_rows": ROWS}, "shm") as cluster:
        cluster.start()
        assert until(lambda: cluster.board.killed()[1] != 0, cluster.check)
        cluster.stop()
        rows = np.asarray(cluster.board.trace())
    model = KernelCommitModel(plan.parameters, 1, traced=True)
    model.run(20_000_000_000)
    found = last_transaction(rows, 1)
    assert found == last_transaction(np.array(model.trace()), 1)
    assert not found & {OUTCOME, ABORT}
    assert snapshot_isolation_violations(rows) == []
    assert (INSTALL in found) == (step == "bit")


@needs_ucx
@pytest.mark.parametrize("name", [RSI, TWO_PHASE])
def test_nobody_commits_while_a_server_stops(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(transports.VARIABLE, "tcp")
    scenario = failing(name, "{kind: stop, server: 4, at: 300 ms, lasts: 500 ms}")
    with native_commits() as make:
        plane = make(scenario, 1)
        assert isinstance(plane, NativeCommits)
        plane.advance(1.5)
        ended_ps = (rows := np.asarray(plane.cluster.board.trace()))[rows[:, 1] == OUTCOME, 0]
        outcome = plane.outcome()
    facts = outcome.model["checkout"]
    assert "findings" not in facts
    assert [event.text for event in outcome.events] == ["node 4 stops", "node 4 is back"]
    assert facts["availability"]["before_per_s"] > 0
    assert facts["availability"]["lowest_per_s"] == 0
    assert ended_ps.max() > 0.8e12
    assert facts["checked_s"] > 1.0
    assert any("SIGSTOP" in warning for warning in outcome.warnings)


def told(rows: np.ndarray[Any, np.dtype[np.int64]], second_ps: int) -> list[tuple[set[int], bool]]:
    """Of clients 0 to 2, whose paths are down from 0.3 s to 1.3 s: of which kinds their answers are
    in the second half of that (BEGIN: none, as it is unknown), and whether they commit later."""
    found = []
    for client in range(3):
        own = rows[(rows[:, 2] == client) & np.isin(rows[:, 1], (OUTCOME, ABORT))]
        meanwhile = (own[:, 0] > 0.8 * second_ps) & (own[:, 0] < 1.3 * second_ps)
        later = (own[:, 0] > 1.3 * second_ps) & (own[:, 1] == OUTCOME)
        found.append((set(own[meanwhile, 1].tolist()) or {BEGIN}, bool(later.any())))
    return found


def advanced(plane: NativeCommits, clients: tuple[int, ...]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Until 1.3 s are over and these clients have committed since."""
    plane.advance(1.3)
    for _ in range(120):
        plane.advance(plane.time_s + 0.5)
        rows = np.asarray(plane.cluster.board.trace())
        if all(told(rows, S_PS)[client][1] for client in clients):
            break
    return rows


@needs_ucx
@pytest.mark.parametrize(("name", "path"), CUTS)
def test_who_is_cut_off_is_told_what_the_simulator_says(
    name: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commit, abort or nothing, in whose time all is a hundred times faster."""
    monkeypatch.setenv(transports.VARIABLE, "tcp")
    faster = failing(
        name,
        f"{{kind: {path}, at: 3 ms, lasts: 10 ms}}",
        "retransmission={timeout: 2 ms, growth: 2}",
    )
    model = KernelCommitModel(commit_plan(faster, 1).parameters, 1, traced=True)
    model.run(30 * S_PS // 1000)
    with native_commits() as make:
        plane = make(failing(name, f"{{kind: {path}, at: 300 ms, lasts: 1 s}}"), 1)
        assert isinstance(plane, NativeCommits)
        found = told(advanced(plane, (0, 1, 2)), S_PS)
        outcome = plane.outcome()
    expected = told(np.array(model.trace()), S_PS // 100)
    assert found[1] == ({BEGIN}, True)
    if name == TWO_PHASE:  # where others abort by chance alone
        found, expected = (
            [(kinds - {ABORT}, later) for kinds, later in f] for f in (found, expected)
        )
    assert found == expected
    facts = outcome.model["checkout"]
    assert "findings" not in facts
    assert [event.text[-4:] for event in outcome.events] == ["down", "back"]
    assert facts["availability"]["kept"] < 1
    assert any("TCP sends again" in warning for warning in outcome.warnings)


@needs_ucx
@pytest.mark.parametrize("more", ["", ", {kind: client, client: 1, at: 400 ms}"])
def test_locks_of_who_is_cut_off_do_not_stay(more: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its leases end, or it unlocks later; what it had sent when it was killed never arrives."""
    monkeypatch.setenv(transports.VARIABLE, "tcp")
    fault = "{kind: port, node: 1, at: 300 ms, lasts: 1 s}" + more
    with native_commits() as make:
        plane = make(failing(RSI, fault, *REMEDIES), 1)
        assert isinstance(plane, NativeCommits)
        found = told(advanced(plane, (0, 2)), S_PS)
        assert "findings" not in plane.outcome().model["checkout"]
    assert found[0][1]
    assert found[2][1]
    assert found[1][0] == {BEGIN}


def test_a_broken_history_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a bug that takes locks whatever version stands there."""
    broken = {"sabotage": "no-validation", "records": 8, "inserts": 0, "versions": 8}

    def sabotaged(*args: Any) -> CommitPlan:
        plan = commit_plan(*args)
        return replace(plan, settings=plan.settings | broken)

    monkeypatch.setattr(native_plane, "commit_plan", sabotaged)
    scenario = failing(RSI, "{kind: client, client: 2, at: 100 ms, step: snapshot}")
    for _ in range(20):
        plane = NativeCommits(scenario, 1, "threads")
        plane.advance(0.3)
        outcome = plane.outcome()
        if "findings" in outcome.model["checkout"]:
            assert any("snapshot isolation is broken: " in text for text in outcome.warnings)
            return
    pytest.fail("nothing was found")


@pytest.mark.parametrize(
    ("fault", "transport", "told"),
    [
        ("{kind: link, between: [4, 5], at: 1 ms, loss: 0.5}", "tcp", "down or whole"),
        ("{kind: port, node: 4, at: 1 ms, lasts: 1 ms, slow: 2}", "tcp", "down or whole"),
        ("{kind: partition, group: [0], at: 1 ms, late: 0.1, delay: 1 ms}", "tcp", "down or whole"),
        ("{kind: port, node: 4, at: 1 ms, lasts: 1 ms}", "shm", "without paths.*TRANSPORT=tcp"),
        ("{kind: stop, server: 4, at: 1 ms, lasts: 1 ms, memory: lost}", "tcp", "memory: kept"),
        ("{kind: stop, server: 4, at: 1 ms, lasts: 1 ms}", "shm", "NUMATWIN_TRANSPORT=tcp"),
        ("{kind: stop, server: 4, at: 1 ms, lasts: 1 ms}", "threads", "NUMATWIN_TRANSPORT=tcp"),
    ],
)
def test_what_cannot_fail_here_is_refused_in_one_line(
    fault: str, transport: str, told: str
) -> None:
    with pytest.raises(InputError, match=told) as raised:
        commit_plan(failing(RSI, fault), 1, transport)
    assert "--on event" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_trace_ends_where_a_role_has_no_room() -> None:
    """As if all had ended there: what is known of it is whole."""
    with CommitCluster(small_run(2, trace_rows=100), "threads") as cluster:
        cluster.start()
        assert until(lambda: cluster.board.counts()["commits"] > 1_000, cluster.check)
        cluster.stop()
        rows = np.asarray(cluster.board.trace())
    assert 100 <= len(rows) <= 500
    assert snapshot_isolation_violations(rows) == []
