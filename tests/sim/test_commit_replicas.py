"""Replicas of records: what they cost, who answers after a stop, and that no commit is lost."""

from dataclasses import replace
from typing import Any

import pytest
from commit_clusters import US, cluster, reference, same_trace

from numatwin.inputs import InputError
from numatwin.sim._kernel import Transport
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.systems.commits.history import (
    FAILED_OVER,
    INSTALL,
    KINDS,
    OUTCOME,
    READ,
    REJOINED,
    snapshot_isolation_violations,
)
from numatwin.sim.systems.commits.parameters import Stop
from numatwin.sim.systems.commits.plane import KernelCommitModel
from numatwin.sim.systems.commits.reference.one_sided import OneSidedModel
from numatwin.sim.systems.commits.reference.places import Node

pytestmark = pytest.mark.kernel
TRANSPORT = Transport(timeout_ps=10 * US, retries=3, reconnect_ps=20 * US)
GONE = Stop(machine=2, at_ps=1_000 * US)  # for good
BACK = replace(GONE, returns_ps=1_100 * US)
LATE = replace(GONE, returns_ps=1_500 * US)


def replicated(architecture: str, **more: Any) -> Any:
    """Three servers, the first of which stops; RSI with its remedies."""
    remedies = {"lease_ps": 300 * US, "skip_after_ps": 100 * US, "undoes": True}
    settings: dict[str, Any] = {
        "records": 60,
        "versions": 3,
        "send_queue": 1,
        "transport": TRANSPORT,
    }
    settings |= {"replicas": 1, "failover_ps": 200 * US, "stops": (GONE,), "transport": TRANSPORT}
    settings |= remedies if architecture == "rsi" else {}
    return cluster(architecture, 6, **(settings | more))


@pytest.mark.parametrize("architecture", ["rsi", "two-sided"])
@pytest.mark.parametrize(
    "stop", [GONE, BACK, replace(BACK, empty=True), LATE, replace(LATE, empty=True)]
)
def test_the_planes_do_the_same(architecture: str, stop: Stop) -> None:
    parameters = replicated(architecture, stops=(stop,))
    rows = same_trace(parameters, 1, 2_000 * US)
    assert rows[KINDS[FAILED_OVER]] == int(stop.returns_ps != BACK.returns_ps or stop.empty), rows
    assert rows[KINDS[REJOINED]] == int(stop not in (GONE, BACK)), rows
    same_trace(replace(parameters, replicas=0, failover_ps=None), 1, 2_000 * US)


@pytest.mark.parametrize("architecture", ["rsi", "two-sided"])
def test_replicas_answer_for_a_server_that_is_gone(architecture: str) -> None:
    """Nothing commits while all wait for it; then all goes on without it."""

    def commits(parameters: Any) -> tuple[int, int]:
        model = KernelCommitModel(parameters, 1, traced=True)
        model.run(8_000 * US)
        known_ps = [row[0] for row in model.trace() if row[1] == OUTCOME]
        return sum(at < 1_000 * US for at in known_ps), sum(at > 2_000 * US for at in known_ps)

    before, after = commits(replicated(architecture))
    assert after > before
    assert commits(replicated(architecture, replicas=0, failover_ps=None))[1] == 0


@pytest.mark.parametrize("architecture", ["rsi", "two-sided"])
@pytest.mark.parametrize(("empty", "copied"), [(True, 40), (False, 0)])
def test_a_server_that_comes_back_is_the_replica_again(
    architecture: str, empty: bool, copied: int
) -> None:
    """It stops at 1,000 us, when nobody is in a transaction, and is back at 1,500 us; of 60 records
    it has 40, its own and its neighbour's, which take 1 us each where they are lost."""
    stop = replace(LATE, empty=empty)
    parameters = replicated(architecture, stops=(stop,), rest_ps=500 * US, copy_ps=US)
    assert same_trace(parameters, 1, 2_000 * US)[KINDS[REJOINED]] == 1
    for model in (KernelCommitModel(parameters, 1, checked=True), reference(parameters, 1)):
        model.run(2_000 * US)
        assert [*model.rejoins] == [((1_500 + copied) * US, 2)]
        assert model.degraded_ps == (500 + copied) * US


class WritesOne(OneSidedModel):
    """Replicas are not written while a record's own server is there."""

    def holders(self, key: int) -> list[Node]:
        return super().holders(key)[:1]


def test_a_commit_that_is_lost_is_found() -> None:
    parameters = replicated("rsi")
    for kind, finds in ((OneSidedModel, False), (WritesOne, True)):
        model = kind(parameters, 1)
        model.run(3_000 * US)
        found = snapshot_isolation_violations(model.trace())
        assert any("its snapshot" in line for line in found) == finds, found


@pytest.mark.parametrize("architecture", ["rsi", "two-sided"])
def test_a_server_that_comes_back_empty_has_lost_its_records(architecture: str) -> None:
    stop = replace(BACK, empty=True)
    model = reference(replicated(architecture, replicas=0, failover_ps=None, stops=(stop,)), 1)
    model.run(4_000 * US)
    late = [row for row in model.trace() if row[0] > 1_100 * US]
    # A block that was locked before is written whole.
    again = {row[4] for row in late if row[1] == INSTALL}
    lost = {row[4] for row in late if row[1] == READ and row[5] < 0} - again
    read = {row[4] for row in late if row[1] == READ} - again
    assert lost == {key for key in read if key % 3 == 0} != set()


STOPS = "{kind: stop, server: 4, at: 50 us"
EMPTY = f"system.faults=[{STOPS}, lasts: 20 us, memory: lost}}]"
SOON = "system.retransmission={timeout: 5 us}"


@pytest.mark.parametrize("plane", ["event", "flow"])
def test_the_run_tells_what_is_lost(plane: str) -> None:
    once = "statistics={warm_up: 0 ns, replications: 1}"
    settings = [f"plane={plane}", "horizon=400 us", once, EMPTY, SOON]
    record = run_scenario(load_scenario("nam-fig6-two-sided", settings=settings))
    assert any("records: they have no replicas" in note for note in record.warnings)
    kept = run_scenario(
        load_scenario(
            "nam-fig6-two-sided", settings=[*settings, "system.replicas=1", "system.failover=10 us"]
        )
    )
    assert not any("no replicas" in note for note in kept.warnings)
    aborts = [found.model["checkout"]["abort_rate"] for found in (kept, record)]
    assert aborts[0] < 0.1 < 0.3 < aborts[1]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (("storage_nodes=1", "replicas=1"), "replicas.* a replica on its own server: expected 0"),
        (("replicas=2",), "replicas"),
        (("failover=1 ms",), "failover.* expected replicas: 1"),
        (("replicas=1", f"faults=[{STOPS}}}]"), "failover.* expected a time, after which"),
        (("replicas=1", "managers=storage-nodes"), "managers on storage nodes: expected 0"),
        (
            (f"faults=[{STOPS}, lasts: 1 us, memory: lost}}]".replace("4", "7"),),
            "memory.* without timestamps nobody goes on: expected kept",
        ),
    ],
)
def test_replicas_that_cannot_be(settings: tuple[str, ...], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        load_scenario("nam-fig6-two-sided", settings=[f"system.{line}" for line in settings])
