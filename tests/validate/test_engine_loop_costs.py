"""Costs of the engine's loop from what its steps took: figures of known costs give them back."""

from collections.abc import Iterator

import numpy as np
import pytest
from measured_hosts import figure

from numatwin.sim.systems.eris.facts import ErisFacts
from numatwin.sim.systems.eris.routing import batches_per_command, flushes_per_command, part_headers
from numatwin.topologies.measurements import Measurement
from numatwin.validate.systems.eris.engine_loop import (
    ARRAY_KEYS,
    BATCHES,
    BATCHES_A_ROUND,
    KINDS,
    NODE_KEYS,
    RANKED_KEYS,
    SMALL,
    SPLIT_BATCHES,
    TOGETHER,
    engine_facts,
)
from numatwin.validate.systems.eris.engine_runs import BATCH

# In ns: a key drawn, its target found of one and of two; a flush and each of its lines; a level of
# the tree and the rest of a key, of which gathering is a part.
DRAW, ONE, TWO, FLUSH, LINE, LEVEL, ENTRY, GATHER = 1.0, 0.5, 1.5, 10.0, 0.5, 1.0, 3.0, 0.6
RECEIVE = 0.1
# Of a header of a part of a batch, and of an operation beyond a round's first.
HEADER, GROUP = 12.0, 30.0
# Of a batch: making it, walking, and what lies between steps; of a round: receiving, and between.
MADE, WALKED, BETWEEN, TAKEN, LOOPED = 50.0, 40.0, 20.0, 5.0, 35.0
# Between two cores: the writer's waits in a flush; the reader's each time that it takes some, and
# for a header of a part of a batch; of a line that is written and read.
WRITER, READER, APART, WRITTEN, READ = 90.0, 55.0, 35.0, 2.0, 0.8


def loop(operation: str, keys: int, batch: int, **steps: float) -> Iterator[Measurement]:
    for step, time_ns in steps.items():
        yield figure(
            "loop", time_ns * 1e-9, "time", operation=operation, keys=keys, batch=batch, step=step
        )


def alone(
    operation: str, keys: int, batch: int, walk: float, batches: int = 1
) -> Iterator[Measurement]:
    """A worker that makes so many batches in each round, in one flush."""
    commands = batch * batches
    flushes = FLUSH + LINE * max(commands / 4, 1.0)
    steps = {
        "issue": DRAW + ONE + MADE / batch,
        "flush": flushes / commands,
        "receive": RECEIVE + TAKEN / commands,
        "walk": walk + WALKED / batch,
    }
    between = BETWEEN / batch + LOOPED / commands
    whole = sum(steps.values()) + between
    return loop(operation, keys, batch, **steps, all=whole, flushes=flushes)


def together(size: int) -> Iterator[Measurement]:
    """Two workers with buffers of so many commands, of which one waits for lines of the other's."""
    flushes = flushes_per_command(2 * size, size, np.array([0.5, 0.5]))
    wrote = DRAW + TWO + LINE / 4 + MADE / min(BATCH, 2 * size)
    wrote += flushes * (FLUSH + WRITER / 2) + WRITTEN / 8
    rounds = (1.0 - 0.5 ** (2 * size)) / (2 * size)
    parts = part_headers(min(BATCH, 2 * size), size, np.array([0.5]))[0]
    read = RECEIVE + GATHER + (TAKEN + LOOPED) / (2 * size) + rounds * READER
    read += (WALKED + BETWEEN) * batches_per_command(2 * size, BATCH, 2, np.ones(1))
    read += READ / 8 + parts * (2 * HEADER + APART)
    # However much of it is done while commands are made.
    return loop("route-together", ARRAY_KEYS, size, issue=0.9 * wrote, flush=0.1 * wrote,
                all=wrote + read)  # fmt: skip


def whole_and_split() -> Iterator[Measurement]:
    """Commands of one operation, and of two, each with batches of its own in a round."""
    yield from alone("route-rounds", ARRAY_KEYS, BATCH, GATHER, SPLIT_BATCHES)
    shares = np.full(KINDS, 1.0 / KINDS)
    batches = batches_per_command(SPLIT_BATCHES * BATCH, BATCH, 1, shares)
    more = HEADER * KINDS / BATCH + WALKED * (batches - 1 / BATCH)
    yield from alone("route-split", ARRAY_KEYS, BATCH, GATHER + more, SPLIT_BATCHES)


def figures(*, rounds: bool = True) -> Iterator[Measurement]:
    yield from alone("lookup", ARRAY_KEYS, BATCH, ENTRY + LEVEL)
    for batch in BATCHES:
        yield from alone("lookup", NODE_KEYS, batch, ENTRY + 2 * LEVEL)
    if rounds:
        yield from alone("lookup-rounds", NODE_KEYS, SMALL, ENTRY + 2 * LEVEL, BATCHES_A_ROUND)
    yield from alone("route", RANKED_KEYS, BATCH, GATHER)
    yield from whole_and_split()
    yield from alone("lookup-handed", ARRAY_KEYS, BATCH, ENTRY + LEVEL + READ / 4)
    walk = ENTRY + 2 * LEVEL
    # Upserts take 4 more; a mix of both has two batches where others have one.
    yield from alone("upsert", NODE_KEYS, BATCH, walk + 4)
    more = (KINDS * HEADER + GROUP + WALKED) / BATCH
    yield from alone("mixed", NODE_KEYS, BATCH, walk + 2 + more)
    yield figure("draw", DRAW * 1e-9, "time")
    flushed = (FLUSH + LINE * 4112 / 64) / 256
    yield figure("routing", (TWO + flushed) * 1e-9, "time", targets=2, buffer="4112 B")
    for size in TOGETHER:
        yield from together(size)


def times_ns(costs: ErisFacts, *names: str) -> list[float]:
    return [1e9 * getattr(costs, name).value for name in names]


def test_known_costs_come_back() -> None:
    found = engine_facts(list(figures()))
    assert found is not None
    own = times_ns(found, "generate", "flush_fixed", "flush_line", "receive", "tree_level")
    assert own == pytest.approx([DRAW, FLUSH, LINE, RECEIVE, LEVEL], rel=1e-3)
    assert times_ns(found, "tree_entry", "gather") == pytest.approx([ENTRY, GATHER], rel=1e-3)
    looped = times_ns(found, "batch", "batch_executed", "round")
    assert looped == pytest.approx([MADE, WALKED + BETWEEN, TAKEN + LOOPED], rel=1e-3)
    assert times_ns(found, "part", "group") == pytest.approx([HEADER, GROUP], rel=1e-3)
    assert [point.targets for point in found.route] == [1, 2]
    routed = [1e9 * point.time.value for point in found.route]
    assert routed == pytest.approx([ONE, TWO], rel=1e-3)


def test_each_side_of_a_hand_over_has_its_part() -> None:
    found = engine_facts(list(figures()))
    assert found is not None
    waits = times_ns(found, "message", "message_read", "part_read")
    assert waits == pytest.approx([WRITER / 2, READER, APART], rel=0.01)
    lines = times_ns(found, "handed_line", "handed_line_read")
    assert lines == pytest.approx([WRITTEN + READ, READ], rel=0.02)


def test_without_rounds_of_several_batches_a_batch_has_all() -> None:
    found = engine_facts(list(figures(rounds=False)))
    assert found is not None
    assert (found.round, found.batch_executed) == (None, None)
    # What each side pays cannot be told then.
    assert (found.message_read, found.handed_line) == (None, None)
    whole = MADE + WALKED + BETWEEN + TAKEN + LOOPED
    assert times_ns(found, "batch") == pytest.approx([whole], rel=1e-3)
