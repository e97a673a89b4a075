"""The compiled commit models give the trace of the reference ones, row for row, and keep SI."""

from collections import Counter

import numpy as np
import pytest
from commit_clusters import RSI_MESSAGES, US, cluster, configurations, reference, same_trace
from examples import few_and_many
from hypothesis import given, settings
from hypothesis import strategies as st

from numatwin.sim._kernel import MessageCost
from numatwin.sim.systems.commits.history import BROKEN, DIED, FENCED, KINDS, SKIPPED
from numatwin.sim.systems.commits.parameters import (
    CommitParameters,
    Death,
    KeyDraw,
    Node,
    Straggler,
)
from numatwin.sim.systems.commits.plane import KernelCommitModel

pytestmark = pytest.mark.kernel


@few_and_many(30, 200)
def test_the_traces_are_equal_and_keep_snapshot_isolation(examples: int) -> None:
    @settings(max_examples=examples)
    @given(configurations(), st.integers(0, 2**64 - 1))
    def check_one(parameters: CommitParameters, seed: int) -> None:
        same_trace(parameters, seed, 100 * US)

    check_one()


def test_a_bit_that_lands_as_its_client_begins_again() -> None:
    """Both take 1,000 ps from the bit's posting: first the client begins, then the bit is set."""
    costs = dict.fromkeys(RSI_MESSAGES, (MessageCost(send_ps=200_000, in_ps=1000),))
    parameters = cluster(
        clients=1,
        servers=1,
        nodes=(Node(1),),
        managers=(0,),
        timestamps=0,
        costs=costs,
        records=2,
        reads=1,
        updates=0,
        inserts=1,
        think_ps=1000,
        send_queue=2,
        snapshot_every=2,
        timestamp_bits=1,
        poll_ps=1000,
    )
    assert same_trace(parameters, 0, 100 * US)["commit"] > 20


@few_and_many(15, 60)
def test_the_planes_count_the_same(examples: int) -> None:
    drawn = given(configurations(), st.integers(0, 2**64 - 1))
    settings(max_examples=examples)(drawn(check_counts))()


def check_counts(parameters: CommitParameters, seed: int) -> None:
    plain, compiled = reference(parameters, seed), KernelCommitModel(parameters, seed)
    for until_ps in (7 * US, 50 * US, 100 * US):
        plain.run(until_ps)
        compiled.run(until_ps)
    expected, found = plain.result(), compiled.result()
    for name in ("time_ps", "given_up", "aborts", "messages"):
        assert getattr(found, name) == getattr(expected, name), f"{name}, seed {seed}"
    assert found.busy_ps.tolist() == expected.busy_ps.tolist(), f"seed {seed}"
    buckets = (np.trim_zeros(one.latencies_ns.counts, "b").tolist() for one in (found, expected))
    assert next(buckets) == next(buckets), f"seed {seed}"
    assert found.latencies_ns.total == expected.latencies_ns.total


@pytest.mark.parametrize("architecture", ["ipoeth", "ipoib", "two-sided", "rsi"])
@pytest.mark.parametrize("versions", [1, 3])
def test_crowded(architecture: str, versions: int) -> None:
    parameters = cluster(
        architecture,
        clients=20,
        records=60,
        versions=versions,
        keys=KeyDraw("zipf", 0.9),
        retries=3,
        timestamp_bits=200,
    )
    rows = same_trace(parameters, 1, (500 if architecture == "rsi" else 20_000) * US)
    assert rows["outcome"] > 50
    assert rows["abort"] > 50


def test_what_the_remedies_do_is_the_same() -> None:
    seen: Counter[str] = Counter()
    for seed in range(4):
        parameters = cluster(
            clients=8,
            records=30,
            versions=3,
            timestamp_bits=800,
            deaths=(Death(1, 60 * US + 1_300_000 * seed), Death(2, 300 * US + 1_700_000 * seed)),
            stragglers=(Straggler(0, 10),),
            lease_ps=20 * US,
            skip_after_ps=5 * US,
            retries=2,
        )
        seen += same_trace(parameters, seed, 700 * US)
    for kind in (DIED, FENCED, BROKEN, SKIPPED):
        assert seen[KINDS[kind]] > 0, (KINDS[kind], seen)


def test_a_client_that_is_slower_than_half_its_lease_gives_up() -> None:
    parameters = cluster(
        clients=4,
        records=1000,
        stragglers=(Straggler(0, 5),),
        lease_ps=20 * US,
        skip_after_ps=5 * US,
    )
    same_trace(parameters, 1, 500 * US)
    model = KernelCommitModel(parameters, 1)
    model.run(500 * US)
    assert model.result().aborts["lease"] > 0


def test_one_seed_gives_one_trace_however_often_it_is_stopped() -> None:
    parameters = cluster(clients=5, records=20)
    whole, parts = (KernelCommitModel(parameters, 5, traced=True) for _ in range(2))
    whole.run(300 * US)
    for until_ps in range(0, 301 * US, US):
        parts.run(until_ps)
        assert parts.now_ps == until_ps
    assert parts.trace() == whole.trace()
    other = KernelCommitModel(parameters, 6, traced=True)
    other.run(300 * US)
    assert other.trace() != whole.trace()
