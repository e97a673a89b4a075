"""Workers whose cores are taken from them now and then: times by hand, and both planes alike."""

from __future__ import annotations

import pytest
from eris_machines import COPY, FLUSH, ISSUE, NEAR, RECEIVE, SWAP, WALK, machine, routing
from eris_pairs import US, Case, difference, players

from numatwin.inputs import InputError
from numatwin.sim.scenario import load_scenario

MS = 1000 * US
# Of one worker that makes, sends itself and executes a command in each round.
ROUND = ISSUE + NEAR + FLUSH + COPY + NEAR + SWAP + RECEIVE + WALK


def interrupted(length: float, every: float, until: int, seed: int = 0) -> tuple[int, int]:
    """Commands done until then, and time held up, of one worker; lengths of 0: never."""
    more = {"interrupt_every_ps": every, "interrupt_ps": [length], "interrupt_share": [1.0]}
    model = routing(machine([0], **(more if length else {})), [[1.0]], seed=seed)
    model.run(until)
    model.check()
    counts = model.counts()
    return int(counts["executed"].sum()), until - int(counts["busy"].sum())


def test_time_that_is_taken_is_missing() -> None:
    """Of 20 ms, 4 us are taken every 10 us that the worker has: it does 10 / 14 of the work.

    That many interruptions, 1,400 or so, vary by 3%, and what they take by as much.
    """
    until, length, every = 20 * MS, 4 * US, 10 * US
    whole, none = interrupted(0, 0, until)
    assert whole == pytest.approx(until / ROUND, abs=1)
    assert none == 0
    done, held_up = interrupted(length, every, until)
    assert done == pytest.approx(whole * every / (every + length), rel=0.03)
    # What is taken on a line's way, which is not the worker's own time, is not held up.
    assert held_up == pytest.approx(until * length / (every + length), rel=0.08)


def test_what_is_taken_while_there_is_nothing_to_do_costs_nothing() -> None:
    """A command a millisecond; interruptions take a third of the time, but few meet one."""
    more = {"interrupt_every_ps": 10 * US, "interrupt_ps": [5 * US], "interrupt_share": [1.0]}
    of = machine([0], arrival_ps=MS, round_commands=1_000, **more)
    model = routing(of, [[1.0]])
    model.run(1_000 * MS)
    latency = model.latency(0)
    assert 900 < latency.count < 1_100
    # It waits for the rest of an interruption, 2.5 us on average, with probability a third; another
    # one begins in the 5 us that it takes with probability a third or so.
    mean = latency.mean
    assert ROUND + 0.5 * US < mean < ROUND + 5 * US


def test_a_backlog_is_longer_than_the_interruption() -> None:
    """Two workers send each other half of what they make: while one stands still, commands for it
    pile up. So far more commands are late than are made in the time that is taken."""
    until, length, every = 20 * MS, 20 * US, MS
    lengths = {"interrupt_every_ps": every, "interrupt_ps": [length], "interrupt_share": [1.0]}
    of = {"buffer_commands": 128, "round_commands": 256, "incoming_commands": 2048}
    late = []
    for more in ({}, lengths):
        model = routing(machine([0, 0], **of, **more), [[0.5, 0.5]])
        model.run(until)
        latency = model.latency(0)
        begins, counts = latency.buckets()
        late.append(counts[begins > 2 * latency.quantile(0.5)].sum() / counts.sum())
    assert late[0] < 0.001
    assert late[1] > 2 * 2 * length / every


@pytest.mark.parametrize("seed", range(5))
def test_the_reference_is_interrupted_alike(seed: int) -> None:
    compiled, plain = players(
        Case(
            "eris-fig5",
            100 * US,
            settings=(
                "machine.interruptions=[{length: 1 us, every: 9 us}, {length: 5 us, every: 40 us}]",
                "system.nodes=2",
                "system.threads=2",
                "system.buffer_commands=16",
                "workload.objects.index.keys=10_000_000",
            ),
            seed=seed,
        )
    )
    compiled.run(100 * US)
    plain.run(100 * US)
    compiled.check()
    assert (found := difference(compiled, plain)) is None, found
    assert compiled.counted().facts["commands_per_flush"] > 0


def test_shares_end_at_one() -> None:
    of = machine([0], interrupt_every_ps=1.0, interrupt_ps=[1.0], interrupt_share=[0.5])
    with pytest.raises(ValueError, match="interrupt_share"):
        routing(of, [[1.0]])


def test_a_bare_length_is_refused() -> None:
    with pytest.raises(InputError, match="every"):
        load_scenario("eris-fig5", settings=["machine.interruptions=[{length: 1 us, every: 3}]"])
