"""The compiled routing of ERIS gives the trace of the reference, row for row, and the same Record;
a protocol that is broken gives another.
"""

from collections.abc import Generator
from typing import Any

import pytest
import simpy
from eris_pairs import US, Case, cases, difference, faults, kernel_trace, players
from examples import few_and_many
from hypothesis import given, settings
from refusals import told_by

from numatwin.sim.run.record import Record
from numatwin.sim.run.runner import run_scenario
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.systems.eris.reference import player as reference_player
from numatwin.sim.systems.eris.reference.routing import ErisRoutingReference
from numatwin.sim.systems.eris.reference.worker import Incoming, Worker

pytestmark = pytest.mark.kernel

# Four workers with room for one flush of four commands: most flushes meet another.
CROWDED = Case(
    "eris-fig5",
    100 * US,
    settings=(
        "system.nodes=2",
        "system.threads=2",
        "system.buffer_commands=4",
        "system.incoming_size=64 B",
        "workload.objects.index.keys=10_000_000",
    ),
)

STOPS = "{kind: stop, node: 1, at: 100 us, lasts: 60 us}"
SLOWS = "{kind: slow, node: 2, factor: 3, at: 20 us}"
HOST = (
    "machine=zen5-2c",
    "machine.engines.eris.message_read=40 ns",
    "system.faults=[{kind: slow, worker: 1, factor: 3, at: 150 us}]",
)


def check(case: Case) -> None:
    """Both planes do the same, whatever the times at which they stop, and lose no command."""
    both = compiled, plain = players(case)
    changes = [*faults(case), (case.until_ps // 3, None), (case.until_ps, None)]
    for until_ps, change in sorted(changes, key=lambda one: one[0]):
        for player in both if until_ps <= case.until_ps else ():
            assert player.model.run(until_ps)
            player.check()
            if change is not None:
                player.model.pace(change.workers, change.factor)
    assert (found := difference(compiled, plain)) is None, (
        f"seed {case.seed}: {found}\n{case.replay}"
    )


@few_and_many(25, 200)
def test_the_traces_and_counts_are_equal(examples: int) -> None:
    settings(max_examples=examples)(given(cases())(check))()


@pytest.mark.parametrize(
    ("scenario", "until_us", "more"),
    [
        ("eris-fig5", 300, ()),
        ("eris-fig5-raw", 200, ("system.buffer_commands=16",)),
        ("eris-fig8-amd-upsert", 200, ()),
        ("eris-mixed-amd", 200, ("system.batch=32",)),
        ("eris-fig8-intel", 200, ()),
        ("eris-fig5", 300, ("system.threads=1", f"system.faults=[{STOPS}, {SLOWS}]")),
        # On a host that was measured: what is written at once, stays cached, and is interrupted.
        ("host-lookup", 300, (*HOST, "system.buffer_commands=2")),
    ],
)
def test_bundled_scenarios(scenario: str, until_us: int, more: tuple[str, ...]) -> None:
    check(Case(scenario, until_us * US, settings=more))


def test_many_workers_whose_commands_are_drawn_ahead() -> None:
    """From 256 workers on the kernel draws a worker's commands before they are made."""
    settings = ("system.nodes=32", "system.threads=8", "system.buffer_commands=2")
    check(Case("eris-fig1", 5 * US, settings=settings))


def test_a_crowd_meets_all_that_the_protocol_has() -> None:
    """Retries, full buffers and sleepers; or the comparison would say little."""
    compiled, plain = players(CROWDED)
    compiled.model.run(CROWDED.until_ps)
    plain.model.run(CROWDED.until_ps)
    assert difference(compiled, plain) is None
    facts = compiled.counted().facts
    assert facts["retries_per_flush"] > 0.1
    assert facts["full_buffers_met_per_flush"] > 0.1
    assert (compiled.counted().busy_ps < CROWDED.until_ps).any()
    seen = {kind for _, kind, *_ in kernel_trace(compiled)}
    assert seen == {"round", "issued", "copied", "executed"}


def test_counting_from_a_time_on_forgets_what_was_before() -> None:
    """And nothing else: both planes count the same from there, and both parts make the whole."""
    compiled, plain = players(CROWDED)
    whole, _ = players(CROWDED)
    whole.model.run(CROWDED.until_ps)
    for player in (compiled, plain):
        player.model.run(CROWDED.until_ps // 3)
    before = compiled.counted()
    for player in (compiled, plain):
        player.start_counting()
        player.model.run(CROWDED.until_ps)
    assert difference(compiled, plain) is None
    after, both = compiled.counted(), whole.counted()
    assert after.since_ps == CROWDED.until_ps // 3
    for name in ("done", "executed", "busy_ps", "memory_ps", "link_ps"):
        parts = getattr(before, name) + getattr(after, name)
        assert parts.tolist() == getattr(both, name).tolist(), name
    assert kernel_trace(compiled) == kernel_trace(whole)


def test_seeds_and_replications_draw_differently() -> None:
    traces = []
    for seed in (1, 1, 2):
        compiled, _ = players(Case("eris-fig5", 50 * US, settings=CROWDED.settings, seed=seed))
        compiled.model.run(50 * US)
        traces.append(kernel_trace(compiled))
    assert traces[0] == traces[1]
    assert traces[0] != traces[2]


class WaitsForNoWriter(ErisRoutingReference):
    """Takes the commands of a buffer that others still copy into."""

    def await_writers(self, w: Worker, old: Incoming) -> Generator[simpy.Event, Any, None]:
        yield from ()


class ReservesUnseen(ErisRoutingReference):
    """Changes the descriptor without comparing it: what it read is a line's way old."""

    def reserve(
        self, w: Worker, to: int, count: int
    ) -> Generator[simpy.Event, Any, Incoming | None]:
        target = self.workers[to]
        buffer = target.incoming[target.writable]
        offset, writers = buffer.offset, buffer.writers
        yield self.flushing(w, self.handed(w.index, to))
        if not self.has_room(to, count):
            return None
        buffer.offset, buffer.writers = offset + count, writers + 1
        return buffer


class HasRoomForAll(ErisRoutingReference):
    """Writes beyond the end of a buffer."""

    def has_room(self, to: int, commands: int) -> bool:
        return True


BROKEN = {
    WaitsForNoWriter: "commands made",  # those that come after are lost
    ReservesUnseen: "commands made",  # those in a buffer that was taken meanwhile are lost
    HasRoomForAll: None,  # nothing is lost in a model that has no memory to write over
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_protocol_is_seen(
    broken: type[ErisRoutingReference], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference_player, "ErisRoutingReference", broken)
    compiled, plain = players(CROWDED)
    for player in (compiled, plain):
        player.model.run(40 * CROWDED.until_ps)
    compiled.check()
    found = difference(compiled, plain)
    assert found is not None
    assert found.startswith("row ")
    if (words := BROKEN[broken]) is None:
        capacity = 128
        amounts = [amount for _, kind, _, _, amount in plain.model.trace if kind == "round"]
        assert max(amounts) > capacity
        rows = kernel_trace(compiled)
        assert max(amount for _, kind, _, _, amount in rows if kind == "round") <= capacity
    else:
        with pytest.raises(RuntimeError, match=words):
            plain.check()


def run(name: str, plane: str, *more: str) -> Record:
    return run_scenario(
        load_scenario(
            name, plane=plane, settings=["horizon=200 µs", "statistics.replications=2", *more]
        ),
        workers=1,
    )


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("eris-fig8-intel", ("statistics.warm_up=50 µs",)),
        (
            "eris-mixed-amd",
            ("statistics.warm_up=0 ns", "system.nodes=6", "system.buffer_commands=8"),
        ),
        (
            "eris-fig8-intel",
            ("system.faults=[{kind: slow, node: 1, factor: 2, at: 90 us, lasts: 40 us}]",),
        ),
    ],
)
def test_both_planes_have_the_same_record(name: str, more: tuple[str, ...]) -> None:
    """But for the plane, and how long it took."""
    event, reference = (run(name, plane, *more).as_json() for plane in ("event", "reference"))
    differs = {"plane", "settings", "scenario_hash", "provenance", "wall_s"}
    for field in event.keys() | reference.keys():
        if field not in differs:
            assert event[field] == reference[field], f"{field} of {name}, seed 0"
    assert sum(event["throughput"].values()) > 0


@pytest.mark.parametrize(
    ("name", "more", "what"),
    [
        ("eris-fig8-amd-shared", (), "placement interleaved"),
        ("eris-fig12-scan", (), "scans"),
        ("eris-fig13", ("policies.balancing.policy=none",), "phases"),
        ("eris-fig8-amd", ("policies.balancing.policy=one-shot",), "balancing"),
        ("eris-fig8-amd", ("workload.clients={kind: open, arrival_rate: 1e6/s}",), "open clients"),
        ("eris-fig8-amd", ("workload.clients.think_time=1 µs",), "thinking clients"),
        ("eris-fig8-amd", ("system.result_size=8 B",), "answers"),
    ],
)
def test_what_the_reference_does_not_play(name: str, more: tuple[str, ...], what: str) -> None:
    assert told_by(run, name, "reference", *more) == (
        f"the reference plane does not play {what}: expected lookups and upserts on partitions, "
        "or another plane, such as event"
    )
