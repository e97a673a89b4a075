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


def failing(name: str, fault: str) -> Scenario:
    settings = ["native_horizon=1500 ms", "statistics.warm_up=0 s", f"system.faults=[{fault}]"]
    settings += ["system.clients=3", "system.storage_nodes=2"]
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
        ("{kind: link, between: [4, 5], at: 1 ms, lasts: 1 ms}", "tcp", "paths do not fail"),
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
