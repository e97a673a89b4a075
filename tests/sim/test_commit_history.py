"""The checker of snapshot isolation finds what breaks it: traces by hand, broken protocols."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from commit_clusters import US, cluster, reference

from numatwin.sim.machine.reference.message_path import Process
from numatwin.sim.systems.commits.history import (
    ABORT,
    BEGIN,
    COMMIT,
    INSTALL,
    OUTCOME,
    READ,
    ROLLED_BACK,
    WRITE,
    Row,
    snapshot_isolation_violations,
)
from numatwin.sim.systems.commits.reference.commits import CommitModel
from numatwin.sim.systems.commits.reference.one_sided import OneSidedModel, Request
from numatwin.sim.systems.commits.reference.places import GRANTED, Node, compare_and_lock
from numatwin.sim.systems.commits.reference.two_phase import TwoPhaseModel

Maker = Callable[[Any], CommitModel]
# Two clients write record 7, one after the other: the second has seen the first one's version.
HEALTHY = [
    (0, BEGIN, 0, 0, 0, 0),
    (1, READ, 0, 0, 7, 0),
    (2, WRITE, 0, 0, 7, 1),
    (3, INSTALL, 0, 0, 7, 1),
    (4, OUTCOME, 0, 0, 1, 0),
    (5, COMMIT, 0, 0, 1, 0),
    (6, BEGIN, 1, 0, 1, 0),
    (7, READ, 1, 0, 7, 1),
    (8, WRITE, 1, 0, 7, 2),
    (9, INSTALL, 1, 0, 7, 2),
    (10, OUTCOME, 1, 0, 2, 0),
    (11, COMMIT, 1, 0, 2, 0),
]


def changed(at: int, *row: Row) -> list[Row]:
    """HEALTHY with other rows in place of one."""
    return [*HEALTHY[:at], *row, *HEALTHY[at + 1 :]]


def moved(source: int, target: int) -> list[Row]:
    """HEALTHY with one row elsewhere."""
    rows = list(HEALTHY)
    rows.insert(target, rows.pop(source))
    return rows


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (HEALTHY, None),
        (changed(6, (6, BEGIN, 1, 0, 0, 0)), "a lost update"),
        (changed(7, (7, READ, 1, 0, 7, 0)), "its snapshot 1 holds 1"),
        (changed(7, (7, READ, 1, 0, 7, -1)), "without a version"),
        (changed(1, (1, READ, 0, 0, 7, 2)), "its snapshot 0 holds 0"),
        (changed(3), "is not installed"),
        (moved(3, 5), "is not installed"),
        (moved(3, 6), "is not installed"),
        (changed(4, (4, ABORT, 0, 0, 1, 0)), "aborted after it was decided"),
        (changed(5, (5, ROLLED_BACK, 0, 0, 1, 0)), "was told committed, then rolled back"),
        (changed(2), "not decided any more"),
        (changed(9, (9, INSTALL, 1, 0, 7, 1)), "not decided any more"),
        (changed(9, HEALTHY[9], (9, INSTALL, 1, 0, 8, 2)), "which it does not write"),
        (
            [*HEALTHY[:8], (8, WRITE, 1, 0, 7, 1), (9, INSTALL, 1, 0, 7, 1)],
            "which snapshot 1 covers already",
        ),
        ([*HEALTHY[:6], (6, BEGIN, 1, 0, 2, 0), *HEALTHY[7:]], "which snapshot 2 covers already"),
        ([HEALTHY[0], (4, OUTCOME, 0, 0, 1, 0)], "wrote nothing"),
    ],
)
def test_traces_by_hand(rows: list[Row], told: str | None) -> None:
    found = snapshot_isolation_violations(rows)
    if told is None:
        assert found == []
    else:
        assert any(told in line for line in found), found


# One fault each, planted in the reference protocols.


class NoValidation(OneSidedModel):
    """A CAS that looks at the lock bit only."""

    def lock(self, client: Any, key: int, node: Node, expected: int) -> Request:
        now_ps = self.env.now

        def effect() -> tuple[Any, ...]:
            record = node.record(key)
            found = compare_and_lock(record, client.number, record.versions[0], now_ps)
            return *found, key, node

        return Request("cas", node, effect)


class BitBeforeInstall(OneSidedModel):
    """The timestamp's bit does not wait for the blocks."""

    def complete(self, client: Any, batch: Any, *, one_by_one: bool = False) -> Process:
        if batch[0].kind == "write":
            cid = self.own[client.number].next_cid
            self.vector.set(cid)
            self.log(COMMIT, client, cid)
        return (yield from super().complete(client, batch, one_by_one=one_by_one))


class ReadsNewest(OneSidedModel):
    """Reads what is newest, committed or not."""

    def look(self, client: Any, key: int, rid: int) -> Request:
        node = self.holder(key)
        return Request("read", node, lambda: (node.record(key).versions[0], rid))


class InstallsAborted(OneSidedModel):
    """What was locked is installed though another CAS failed."""

    def undo(self, client: Any, words: list[Any]) -> Process:
        for status, _, _, key, node in words:
            if status == GRANTED:
                self.write(client, key, node, self.own[client.number].next_cid).effect()
        yield from super().undo(client, words)


class IgnoresCids(TwoPhaseModel):
    """Prepare looks at locks only."""

    def check(self, managed: Any, share: Any) -> int:
        return super().check(replace(managed, rid=2**60), share)


class FinishesEarly(TwoPhaseModel):
    """The timestamp service counts a CID as done once it has handed it out."""

    def fetch_timestamp(self, managed: Any) -> Process:
        yield from super().fetch_timestamp(managed)
        self.service.finish(managed.cid)


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (NoValidation, "a lost update"),
        (BitBeforeInstall, "is not installed"),
        (ReadsNewest, "its snapshot"),
        (InstallsAborted, "not decided any more"),
        (IgnoresCids, "a lost update"),
        (FinishesEarly, "not decided any more"),
    ],
)
def test_a_broken_protocol_is_caught(model: type[CommitModel], told: str) -> None:
    assert violations("rsi" if issubclass(model, OneSidedModel) else "two-sided") == []
    found = violations("rsi" if issubclass(model, OneSidedModel) else "two-sided", model)
    assert any(told in line for line in found), found[:5]


@cache
def violations(architecture: str, model: Maker = reference) -> list[str]:
    run = model(cluster(architecture, clients=16, records=80, versions=4))
    run.run((600 if architecture == "rsi" else 15_000) * US)
    assert run.result().commits > 50
    return snapshot_isolation_violations(run.trace())
