"""ERIS's compiled routing on machines of a few workers, against times worked out by hand."""

from itertools import pairwise

import numpy as np
import pytest
from eris_machines import (
    COPY,
    FAR,
    FLUSH,
    ISSUE,
    LINE,
    NEAR,
    RECEIVE,
    SWAP,
    WALK,
    Latencies,
    machine,
    routing,
    rows,
)
from scipy import stats

from numatwin.sim._kernel import ErisRouting
from numatwin.sim.kernel.streams import stream
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.systems.eris.costs import ErisCosts
from numatwin.sim.systems.eris.engine import Eris
from numatwin.sim.systems.eris.event_model import machine_of
from numatwin.sim.systems.eris.players import RoutedPlayer

ALL_TO_THE_SECOND = [[0.0, 1.0]]
US, MS = 10**6, 10**9
COMMAND_BYTES = 16


def test_a_flush_that_meets_another_and_an_owner_that_waits_for_its_writers() -> None:
    """Two workers make a command in a round; all go to the second.

    ==== ====================================== ==================================================
    at   the first                              the second
    ==== ====================================== ==================================================
    0    makes a command: 1000                  makes a command: 1000
    1000 reads the descriptor, 400 away         reads it, 50 away
    1050                                        exchanges it; copies: 2000 + 100
    1400 it has changed: reads it again
    1800 exchanges it: two writers; copies
    3150                                        has copied; takes itself off in 50
    3200                                        next round, two commands; swaps: 300
    3500                                        one writer is left: waits
    3900 has copied; takes itself off in 400
    4300 next round, a command more: 1000       takes two commands: 2 * 500
    5300 reads the descriptor of the new buffer makes a command: 1000
    5700 exchanges it; copies: 2100
    6300                                        executes both: 2 * 700
    7800 has copied                             (7700) has executed
    ==== ====================================== ==================================================
    """
    model = routing(machine(), ALL_TO_THE_SECOND)
    model.run(8_000)
    assert rows(model) == [
        (0, "round", 0, 0, 0),
        (0, "round", 1, 0, 0),
        (1_000, "issued", 0, -1, 1),
        (1_000, "issued", 1, -1, 1),
        (3_150, "copied", 1, 1, 1),
        (3_200, "round", 1, 0, 2 * COMMAND_BYTES),
        (3_900, "copied", 0, 1, 1),
        (4_300, "round", 0, 0, 0),
        (5_300, "issued", 0, -1, 1),
        (6_300, "issued", 1, -1, 1),
        (7_700, "executed", 1, 0, 2),
        (7_800, "copied", 0, 1, 1),
    ]
    counts = model.counts()
    assert (counts["retries"], counts["full"], counts["flushes"], counts["rounds"]) == (1, 0, 2, 4)
    assert counts["executed"].tolist() == [0, 2]
    # Both were made as time began, and are told from there.
    latency = Latencies(model)
    assert (latency.count, latency.mean) == (2, 7_700)
    assert latency.least == latency.greatest
    model.check()


def test_no_exchange_fails_where_the_descriptor_comes_to_be_written() -> None:
    """The same, but what the first has got at 1400 nobody changes before its exchange: both copies
    are in the first buffer, which is swapped at 3200 and has its last writer until 3900. The next
    command is made by 4900, copied by 7400, delivered at 7800.
    """
    model = routing(machine(exchanged_at_once=True), ALL_TO_THE_SECOND)
    model.run(8_000)
    copied = [(at, worker) for at, _, worker, *_ in rows(model, "copied")]
    assert copied == [(3_150, 1), (3_500, 0), (7_400, 0)]
    counts = model.counts()
    assert (counts["retries"], counts["flushes"]) == (0, 3)
    model.check()


def test_who_pays_for_what_is_handed_over_on_a_host_that_was_measured() -> None:
    """Two workers of one node make a command in a round; all go to the second. A round costs 100, a
    batch who executes it 200, a flush its reader three waits of 50. A line that is written costs 40
    beside the instructions, one that is read 20: a quarter of that for a command.

    ==== ====================================== ==================================================
    at   the first                              the second
    ==== ====================================== ==================================================
    0    a round: 100; makes a command: 1000    the same
    1100 gets the descriptor, 50 away           its own: exchanges it at once, copies: 2100
    1150 exchanges it; copies: 2100 + 10
    3200                                        has copied; next round; swaps: 300
    3260 has copied; takes itself off in 50
    3310 next round: 100; a command: 1000
    3500                                        the round: 100; takes two commands: 2 * 500 + 5;
                                                waits: 150
    4410 gets the descriptor; copies: 50 + 2110
    4755                                        makes a command: 1000
    5755                                        executes both: 200 + 2 * 700
    6570 has copied; takes itself off in 50
    6620 next round                             (7355) has executed
    ==== ====================================== ==================================================
    """
    of = machine(
        [0, 0], own_cached=True, exchanged_at_once=True, handed_additive=True, read_waits=3.0,
        round_ps=[100.0] * 2, batch_ps=[200.0] * 2, stream_slots=[1.25] * 2, read_slots=[2.5] * 2,
    )  # fmt: skip
    model = routing(of, ALL_TO_THE_SECOND)
    model.run(7_400)
    assert rows(model) == [
        (0, "round", 0, 0, 0),
        (0, "round", 1, 0, 0),
        (1_100, "issued", 0, -1, 1),
        (1_100, "issued", 1, -1, 1),
        (3_200, "copied", 1, 1, 1),
        (3_200, "round", 1, 0, 2 * COMMAND_BYTES),
        (3_260, "copied", 0, 1, 1),
        (3_310, "round", 0, 0, 0),
        (4_410, "issued", 0, -1, 1),
        (5_755, "issued", 1, -1, 1),
        (6_570, "copied", 0, 1, 1),
        (6_620, "round", 0, 0, 0),
        (7_355, "executed", 1, 0, 2),
    ]
    model.check()


def test_a_full_buffer_may_wait_for_the_next_command_that_goes_there() -> None:
    """Four commands a round, in buffers of two: the second two go when the round ends."""
    orders = []
    for late in (False, True):
        of = machine([0], buffer_commands=2, round_commands=4, flushed_late=late)
        model = routing(of, [[1.0]])
        model.run(MS)
        found = [(kind, amount) for _, kind, _, _, amount in rows(model)]
        begins = [k for k, row in enumerate(found) if row[0] == "round"]
        orders.append(found[begins[-2] + 1 : begins[-1]])
    made, copied, executed = ("issued", 2), ("copied", 2), ("executed", 4)
    assert orders == [
        [made, copied, made, copied, executed],
        [made, copied, made, executed, copied],
    ]


def test_a_batch_is_handed_over_at_one_time() -> None:
    """One worker, two batches of 16 a round, both in one flush.

    A batch is executed a round later, after the batch made before it in that round: both batches
    take as long, and so do all commands.
    """
    model = routing(machine([0], batch=16, buffer_commands=40, round_commands=32), [[1.0]])
    model.run(10 * MS)
    model.start_counting()
    model.run(20 * MS)
    cycle = SWAP + 32 * (RECEIVE + ISSUE + WALK + COPY) + NEAR + FLUSH + NEAR
    latency = Latencies(model)
    assert latency.count > 1_000
    assert latency.least == latency.greatest
    assert latency.mean == cycle + 16 * (ISSUE + WALK)


def test_a_buffer_that_fills_does_not_end_a_batch() -> None:
    """Of the second batch of 16, four fill a buffer of 20: the others are made before anything is
    executed, and count from when the batch was begun."""
    model = routing(machine([0], batch=16, buffer_commands=20, round_commands=32), [[1.0]])
    model.run(10 * MS)
    found = [(kind, amount) for _, kind, _, _, amount in rows(model)]
    steady = [
        ("round", 32 * COMMAND_BYTES),
        *(("issued", 16), ("executed", 16), ("issued", 4), ("copied", 20), ("issued", 12)),
        *(("executed", 16), ("copied", 12)),
    ]
    begins = [k for k, row in enumerate(found) if row[0] == "round"]
    assert found[begins[-3] : begins[-1]] == 2 * steady
    cycle = SWAP + 32 * (RECEIVE + ISSUE + WALK + COPY) + 2 * (NEAR + FLUSH + NEAR)
    # The four go with the first batch, and are executed with the rest of theirs.
    beyond = 16 * (ISSUE + WALK)
    model.start_counting()
    model.run(20 * MS)
    longest = cycle + beyond + 2 * NEAR + FLUSH + 20 * COPY
    assert Latencies(model).least == pytest.approx(cycle + beyond, rel=1 / 128)
    assert Latencies(model).greatest == pytest.approx(longest, rel=1 / 128)


def test_a_full_buffer_turns_its_writer_back_and_wakes_it_after_the_swap() -> None:
    """Buffers of one command; the second worker makes its own command for 10 µs.

    The first copies a command there at once, then finds the buffer full: when it has made the next
    one and at the end of that round, and twice more in the round in which it has drawn another.
    Then it sleeps, until the owner swaps; it hears of that 400 ps later, and the flush goes on.
    """
    slow = 10 * US
    of = machine(buffer_commands=1, incoming_commands=1, issue_ps=[ISSUE, slow])
    model = routing(of, ALL_TO_THE_SECOND)
    first = ISSUE + FAR + FLUSH + COPY + FAR  # made, and delivered
    asleep = first + ISSUE + 4 * FAR
    # The owner's own command finds its buffer full twice, too.
    swap = slow + 2 * NEAR
    model.run(swap)
    assert model.counts()["full"] == 6 - 1  # its second attempt ends at `swap`
    assert model.counts()["busy"].tolist() == [asleep, swap]
    model.run(swap + FAR + FAR + FLUSH + COPY + 1)
    assert [row for row in rows(model) if row[0] > first] == [
        (first + ISSUE, "issued", 0, 1, 1),
        (first + ISSUE + 2 * FAR, "round", 0, 0, 0),
        (slow, "issued", 1, 1, 1),
        (swap, "round", 1, 0, COMMAND_BYTES),
        (swap + FAR, "round", 0, 0, 0),
        (swap + SWAP + RECEIVE + WALK, "executed", 1, 0, 1),
        # Its own command does not fit behind the one that comes.
        (swap + SWAP + RECEIVE + WALK + NEAR, "round", 1, 0, COMMAND_BYTES),
        (swap + FAR + FAR + FLUSH + COPY, "copied", 0, 1, 1),
    ]
    assert model.counts()["busy"][0] == model.now_ps - (swap - asleep)
    model.check()


def test_who_is_behind_makes_no_commands() -> None:
    """What waits fills more than half a buffer: it is executed first."""
    of = machine([0], buffer_commands=64, round_commands=64, incoming_commands=100, batch=64)
    model = routing(of, [[1.0]])
    model.run(MS)
    trace = rows(model)
    behind = [at for at, row in enumerate(trace) if row[1] == "round" and row[4] > 50 * 16]
    assert behind
    for at in behind:
        executed = next(k for k in range(at, len(trace)) if trace[k][1] == "executed")
        assert all(row[1] != "issued" for row in trace[at:executed])
    others = [at for at, row in enumerate(trace[:-2]) if row[1] == "round" and at not in behind]
    assert any(trace[at + 1][1] == "issued" for at in others)


LINES = 8_192


def scanned(model: ErisRouting) -> tuple[int, float]:
    """Scans that are done, and passes over the column that this took."""
    done, counts = Latencies(model).count, model.counts()
    assert done <= counts["progress"].sum() < done + 3  # with parts of scans
    return done, float(counts["memory_lines"].sum()) / LINES


@pytest.mark.parametrize("seed", range(4))
def test_scans_that_wait_together_are_one_pass(seed: int) -> None:
    """A worker may have three scans under way. Those of its first round are one pass; while it is
    under way the worker asks for the others, and so these two groups take turns.
    """
    model = routing(machine([0], round_commands=3, scans_max=3), [], [[LINES]], seed)
    model.run(10 * MS)
    first = int(3 * stream(seed, 1, "worker 0 commands").uniform()) + 1
    groups = 1 if first == 3 else 2
    done, passes = scanned(model)
    assert done > 1_000
    assert passes / groups == pytest.approx(done / 3, abs=1), f"seed {seed}"
    # Instructions are each scan's own: a pass takes as long as its scans would one by one.
    assert Latencies(model).least > LINES * LINE * min(first, 3 - first or 3)


def test_scans_one_at_a_time_share_nothing() -> None:
    model = routing(machine([0], round_commands=3), [], [[LINES]])
    model.run(10 * MS)
    done, passes = scanned(model)
    assert done <= passes <= done + 1
    # A closed client's scan begins when it may.
    assert Latencies(model).least > LINES * LINE
    assert Latencies(model).greatest < 1.2 * LINES * LINE


def test_one_scan_reaches_every_holder_once() -> None:
    """Only two of four workers hold lines; a scan is done when both have read theirs."""
    model = routing(machine([0, 0, 1, 1]), [], [[0, LINES, 0, 2 * LINES]])
    model.run(20 * MS)
    counts = model.counts()
    done = Latencies(model).count
    assert done > 10
    executed = counts["executed"].tolist()
    assert executed[0] == executed[2] == 0
    assert {executed[1] - done, executed[3] - done} <= {0, 1}
    assert Latencies(model).least > 2 * LINES * LINE  # the longer part, and its way


def test_scans_and_lookups_share_the_buffers() -> None:
    model = routing(machine(round_commands=40), [[0.6, 0.3]], [[LINES, 0], [0, 64]], seed=3)
    model.run(50 * MS)
    model.check()
    counts = model.counts()
    done = [Latencies(model, k).count for k in range(3)]
    assert min(done) > 10
    assert done[0] == counts["done"][0]
    # A scan is done when its only holder has read all lines.
    assert counts["executed"].reshape(3, 2)[1:].tolist() == [[done[1], 0], [0, done[2]]]


def bytes_taken(model: ErisRouting, worker: int) -> int:
    """Of all incoming buffers that the worker has swapped."""
    return sum(row[4] for row in rows(model, "round", worker))


def test_every_command_has_an_answer() -> None:
    """No command goes to the first worker: what it takes are answers to its own."""
    silent = routing(machine(), ALL_TO_THE_SECOND)
    silent.run(100 * US)
    assert bytes_taken(silent, 0) == 0
    model = routing(machine(answers=True, answer_lines=0.125), ALL_TO_THE_SECOND)
    model.run(100 * US)
    asked = sum(row[4] for row in rows(model, "copied", 0))
    answered = bytes_taken(model, 0) / COMMAND_BYTES
    assert asked > 100
    # All but what is under way: in a buffer, or in its target's hands.
    assert asked - 16 <= answered <= asked
    model.check()


@pytest.mark.parametrize("capacity", [4, 5, 8])
def test_commands_and_answers_that_fit_only_one_after_the_other(capacity: int) -> None:
    """An incoming buffer that holds a full outgoing one, but not as many answers at once."""
    model = routing(
        machine(answers=True, round_commands=16, incoming_commands=capacity), [[0.5, 0.5]]
    )
    before = 0
    for until in range(100 * US, 1_100 * US, 100 * US):
        model.run(until)
        done = int(model.counts()["done"].sum())
        assert done > before + 50
        before = done
    model.check()


def test_more_kinds_of_scans_than_a_buffer_holds() -> None:
    """Three references wait for a buffer of one command: they go one after the other."""
    of = machine(buffer_commands=1, incoming_commands=1, round_commands=3)
    model = routing(of, [], [[64, 64]] * 3)
    model.run(3 * MS)
    assert min(Latencies(model, k).count for k in range(3)) > 100


@pytest.mark.parametrize("batch", [8, 64])
def test_thinking_clients_wait_for_their_answers(batch: int) -> None:
    """A client sends a batch, waits for all of it, thinks: for Z + R each, of which Z dominates.

    Answers that one flush cannot take, four at a time, must not wait for other work to come.
    """
    think, until = 100 * US, 2_000 * MS
    of = machine(think_ps=think, batch=batch, answers=True, round_commands=1_000)
    model = routing(of, [[0.5, 0.5]], seed=1)
    model.run(until)
    counts = model.counts()
    made = int(counts["made"])
    assert made % batch == 0
    assert counts["in_flight"] <= 2 * batch
    cycles = made / batch
    # R: nobody waits longer than both batches take, made, flushed, taken and executed in turn,
    # there and back.
    most = 2 * batch * (ISSUE + 2 * RECEIVE + WALK + 2 * COPY) + 4 * batch * (
        FLUSH + 2 * FAR + SWAP
    )
    spread = stats.norm.ppf(0.9995) * cycles**0.5
    assert 2 * until / (think + most) - spread < cycles < 2 * until / think + spread + 2, "seed 1"


def test_open_arrivals_are_poisson_and_all_are_served() -> None:
    mean, until = 100 * US, 2_000 * MS
    model = routing(machine(arrival_ps=mean, round_commands=1_000), [[0.5, 0.5]], seed=2)
    model.run(until)
    counts = model.counts()
    least, most = stats.poisson.interval(0.999, 2 * until / mean)
    assert least <= counts["made"] <= most, "seed 2"
    assert counts["made"] - counts["done"].sum() == counts["in_flight"] <= 3
    # Few meet: most are alone from their arrival on.
    near, far = (ISSUE + 2 * way + FLUSH + COPY + SWAP + RECEIVE + WALK for way in (NEAR, FAR))
    p50 = Latencies(model).quantile(0.5)
    assert 15 / 16 * (SWAP + RECEIVE + WALK) < p50 <= far
    assert near <= Latencies(model).greatest
    # Asleep but for its own commands, and for those that come.
    assert counts["busy"].max() < 0.2 * until
    model.check()


def rates(scenario: str, sizes: tuple[int, ...]) -> dict[int, float]:
    """Commands per second by the size of the outgoing buffer, once all is under way."""
    found = {}
    for size in sizes:
        compiled = kernel_player(scenario, f"system.buffer_commands={size}")
        compiled.model.run(2 * MS)
        compiled.start_counting()
        compiled.model.run(6 * MS)
        compiled.check()
        found[size] = compiled.counted().done.sum() / 4e-3
    return found


def kernel_player(scenario: str, *settings: str) -> RoutedPlayer:
    loaded = load_scenario(scenario, settings=settings)
    return RoutedPlayer(Eris(loaded), ErisCosts(loaded.machine), loaded, 1)


def test_a_greater_buffer_routes_more_but_never_twice_as_much() -> None:
    """Figure 5: what a flush costs is shared by its commands; what a command costs remains.

    A worker's time per command is c + f / k with k commands in a flush: a line over 1 / k.
    """
    sizes = (1, 2, 4, 8, 16, 32, 64)
    raw = rates("eris-fig5-raw", sizes)
    steps = [raw[b] / raw[a] for a, b in pairwise(sizes)]
    assert all(1.05 < step < 2 for step in steps)
    assert steps[2:] == sorted(steps[2:], reverse=True)
    lookups = rates("eris-fig5", (8, 32, 128, 256))
    assert lookups[8] < lookups[32] < lookups[128]
    assert lookups[256] < 1.03 * lookups[128]  # the top is flat
    assert all(lookups[size] < raw[size] for size in (8, 32))


def flush_over_its_parts(threads: int) -> float:
    """What a flush takes, with so many threads a node, over its parts where nothing waits."""
    settings = ["system.buffer_commands=4", f"system.threads={threads}"]
    scenario = load_scenario("eris-fig5-raw", settings=settings)
    player = RoutedPlayer(Eris(scenario), ErisCosts(scenario.machine), scenario, 1)
    player.model.run(4 * MS)
    counts = player.model.counts()
    of = machine_of(player.demands, scenario.workload.description.clients)
    ways, flushes = 2 + counts["retries"] / counts["flushes"], counts["flushes"]
    node = np.array(of.node)
    way = np.array(of.handed_ps).reshape(8, 8)[np.ix_(node, node)].mean()
    size = counts["flushed"] / flushes
    expected = ways * way + of.flush_ps[0] + size * of.copy_ps[0]
    return float(counts["flush"].sum() / flushes / expected)


def test_what_a_flush_takes() -> None:
    """Two ways of the descriptor's line, one for each retry, instructions, and its commands."""
    alone = flush_over_its_parts(1)
    assert alone == pytest.approx(1, rel=0.05)  # retries are nearer than the mean
    # Links, at a tenth of what they can, hold few copies back.
    assert 1 < flush_over_its_parts(8) / alone < 1.02
