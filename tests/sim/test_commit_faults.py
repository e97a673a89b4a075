"""RSI's weak spots, measured with and without their remedies; 2PC has neither."""

from dataclasses import replace

from commit_clusters import US, cluster

from numatwin.sim.systems.commits.history import BROKEN, WRITE, snapshot_isolation_violations
from numatwin.sim.systems.commits.parameters import CommitParameters, Death, Straggler
from numatwin.sim.systems.commits.plane import KernelCommitModel

FROM, UNTIL = 2_000 * US, 12_000 * US


def commits_late(parameters: CommitParameters, seed: int = 1) -> int:
    """Commits from FROM to UNTIL; the history is checked."""
    model = KernelCommitModel(parameters, seed, traced=True)
    model.run(FROM)
    before = model.result().commits
    model.run(UNTIL)
    assert snapshot_isolation_violations(model.trace()) == []
    return model.result().commits - before


def dies_holding_locks(parameters: CommitParameters, seed: int = 1) -> CommitParameters:
    """The same, but client 0 dies a picosecond before its card is handed the first WRITEs of some
    transaction, all of whose records it has locked."""
    model = KernelCommitModel(parameters, seed, traced=True)
    model.run(FROM)
    written_ps = [row[0] for row in model.trace() if row[1] == WRITE and row[2] == 0]
    return replace(parameters, deaths=(Death(0, written_ps[-1] - 1),))


def test_a_client_that_dies_holding_locks() -> None:
    """Without the lease the others stand still for good: its locks stay, and so does the snapshot,
    which waits for its timestamps. With the lease they lose little more than its share."""
    parameters = cluster(clients=8, records=500, versions=2)
    healthy = commits_late(parameters)
    stuck = commits_late(dies_holding_locks(parameters))
    remedied = dies_holding_locks(replace(parameters, lease_ps=100 * US))
    leased = commits_late(remedied)
    print(f"commits in 10 ms: healthy {healthy}, dead {stuck}, with lease {leased}")
    assert healthy > 2000
    assert stuck < 0.1 * healthy
    assert leased > 0.75 * healthy
    model = KernelCommitModel(remedied, 1, traced=True)
    model.run(UNTIL)
    assert any(row[1] == BROKEN for row in model.trace())


def test_a_client_that_dies_between_transactions_holds_up_the_snapshot() -> None:
    """No lock to meet: its unclaimed timestamps are skipped."""
    parameters = cluster(clients=8, records=500, versions=2, think_ps=20 * US)
    healthy = commits_late(parameters)
    model = KernelCommitModel(parameters, 1, traced=True)
    model.run(FROM)
    written_ps = [row[0] for row in model.trace() if row[1] == WRITE and row[2] == 0]
    dead = replace(parameters, deaths=(Death(0, written_ps[-1] + 10 * US),))
    stuck = commits_late(dead)
    skipped = commits_late(replace(dead, skip_after_ps=20 * US))
    print(f"commits in 10 ms: healthy {healthy}, dead {stuck}, with skip {skipped}")
    assert stuck < 0.1 * healthy
    assert skipped > 0.5 * healthy


def test_a_straggler_holds_back_the_snapshot() -> None:
    """All clients take turns in the leading run: without the remedy they go at its pace."""
    parameters = cluster(clients=8, records=10_000, versions=2, timestamp_bits=80)
    healthy = commits_late(parameters)
    slow = replace(parameters, stragglers=(Straggler(0, 100),))
    held_back = commits_late(slow)
    skipped = commits_late(replace(slow, skip_after_ps=20 * US))
    print(f"commits in 10 ms: healthy {healthy}, straggler {held_back}, with skip {skipped}")
    assert held_back < 0.25 * healthy
    assert skipped > 0.7 * healthy


def test_2pc_needs_no_remedy() -> None:
    """A TM ends what a client began, and hands out timestamps in the order of commits."""
    parameters = cluster("two-sided", clients=8, records=5000, versions=2)
    healthy = commits_late(parameters)
    assert commits_late(dies_holding_locks(parameters)) > 0.8 * healthy
    slow = replace(parameters, stragglers=(Straggler(0, 100),))
    assert commits_late(slow) > 0.8 * healthy
