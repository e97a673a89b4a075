"""Workers whose cores are taken from them now and then: times by hand, and both planes alike."""

import math

import pytest
from eris_machines import COPY, FLUSH, ISSUE, NEAR, RECEIVE, SWAP, WALK, Latencies, machine, routing
from eris_pairs import US, Case, difference, players
from refusals import told_by

from numatwin.sim._kernel import Disturbances
from numatwin.sim.kernel.streams import stream_key
from numatwin.sim.machine.disturbances import facts
from numatwin.sim.machine.disturbances.facts import Interruptions
from numatwin.sim.run.scenario import load_scenario

NS = 1000
DISTURBED = (
    "machine.interruptions=[{length: 1 us, every: 9 us}, {length: 5 us, every: 40 us}]",
    "system.nodes=2",
    "system.threads=2",
    "system.buffer_commands=16",
    "workload.objects.index.keys=10_000_000",
)
# Of one worker that makes, sends itself and executes a command in each round.
ROUND = ISSUE + NEAR + FLUSH + COPY + NEAR + SWAP + RECEIVE + WALK


def disturbances(length: float, every: float, cores: int = 1, seed: int = 0) -> Disturbances:
    """Of so many cores; lengths of 0: none."""
    if not length:
        return Disturbances()
    keys = [stream_key(seed, 1, f"worker {k} interruptions") for k in range(cores)]
    return Disturbances(every, [length], [1.0], keys)


def interrupted(length: float, every: float, until: int, seed: int = 0) -> tuple[int, int]:
    """Commands done until then, and time held up, of one worker; lengths of 0: never."""
    of = disturbances(length, every, seed=seed)
    model = routing(machine([0], disturbances=of), [[1.0]], seed=seed)
    model.run(until)
    model.check()
    counts = model.counts()
    return int(counts["executed"].sum()), until - int(counts["busy"].sum())


def test_time_that_is_taken_is_missing() -> None:
    """Of 200 us, 40 ns are taken every 100 ns that the worker has: it does 10 / 14 of the work.

    That many interruptions, 1,400 or so, vary by 3%, and what they take by as much.
    """
    until, length, every = 200 * US, 40 * NS, 100 * NS
    whole, none = interrupted(0, 0, until)
    assert whole == pytest.approx(until / ROUND, abs=2)
    assert none == 0
    done, held_up = interrupted(length, every, until)
    assert done == pytest.approx(whole * every / (every + length), rel=0.03)
    # What is taken on a line's way, which is not the worker's own time, is not held up.
    assert held_up == pytest.approx(until * length / (every + length), rel=0.08)


def test_what_is_taken_while_there_is_nothing_to_do_costs_nothing() -> None:
    """A command a microsecond; interruptions of 50 ns take a third of the time.

    A command waits for the rest of one, 25 ns on average, with probability a third, and for those
    that begin while it is on its way: 10 to 11 ns in all.
    """
    of = disturbances(50 * NS, 100 * NS)
    model = routing(machine([0], arrival_ps=US, round_commands=1_000, disturbances=of), [[1.0]])
    model.run(1_000 * US)
    latency = Latencies(model)
    assert 900 < latency.count < 1_100
    assert ROUND + 8 * NS < latency.mean < ROUND + 14 * NS


def test_the_tail_of_latencies_comes_from_them() -> None:
    """Two workers send each other half of what they make. What piles up while one stands still, for
    7% of the time, makes few commands late, but those very much."""
    until, length, every = 2_000 * US, 3 * US, 40 * US
    of = {"buffer_commands": 128, "round_commands": 256, "incoming_commands": 2048}
    p50, p99 = [], []
    for one in (Disturbances(), disturbances(length, every, cores=2)):
        model = routing(machine([0, 0], **of, disturbances=one), [[0.5, 0.5]])
        model.run(until)
        p50.append(Latencies(model).quantile(0.5))
        p99.append(Latencies(model).quantile(0.99))
    assert p50[1] == pytest.approx(p50[0], rel=0.15)
    assert p99[0] < 2 * p50[0]
    assert p99[1] > 2 * p99[0]


@pytest.mark.parametrize("seed", range(5))
def test_the_reference_is_interrupted_alike(seed: int) -> None:
    compiled, plain = players(Case("eris-fig5", 100 * US, settings=DISTURBED, seed=seed))
    compiled.model.run(100 * US)
    plain.model.run(100 * US)
    compiled.check()
    assert (found := difference(compiled, plain)) is None, found
    assert compiled.counted().facts["commands_per_flush"] > 0


@pytest.mark.parametrize(
    ("length", "every", "told_of"),
    [
        ("1 us", "0.01 ps", "every: expected from 1 ns"),
        ("1 us", "100000000 s", "every: expected from 1 ns to 100,000 s"),
        ("100000000 s", "1 ms", "length: expected at most 100,000 s"),
        ("1 us", "3", "every"),
    ],
)
def test_what_no_plane_can_count_is_refused(length: str, every: str, told_of: str) -> None:
    kinds = f"machine.interruptions=[{{length: {length}, every: {every}}}]"
    assert told_of in told_by(load_scenario, "eris-fig5", settings=[kinds])


def test_disturbances_of_another_number_of_workers_are_refused() -> None:
    with pytest.raises(ValueError, match="disturbances: expected one for each worker"):
        routing(machine([0, 0], disturbances=disturbances(1.0, 1.0)), [[0.5, 0.5]])


REFUSED = [  # by the kernel, too
    (0.0, [1.0], [1.0], "every_ps"),
    (math.nan, [1.0], [1.0], "every_ps"),
    (1e6, [-1.0], [1.0], "length_ps"),
    (1e6, [math.inf], [1.0], "length_ps"),
    (1e6, [1.0], [0.5], "share"),
    (1e6, [1.0, 2.0], [1.0], "share"),
    (1e6, [], [], "share"),
]


@pytest.mark.parametrize(
    "case",
    [
        *REFUSED,
        (999.0, [1.0], [1.0], "every_ps"),
        (math.inf, [1.0], [1.0], "every_ps"),
        (1e6, [1.0, 1.0, 1.0], [0.9, 0.5, 1.0], "share"),
        (1e6, [1.0, 1.0], [1.5, 1.0], "share"),
        (1e6, [1e18], [1.0], "length_ps"),
    ],
)
def test_what_are_no_interruptions_is_refused(
    case: tuple[float, list[float], list[float], str],
) -> None:
    every_ps, length_ps, share, told_of = case
    assert told_of in told_by(Interruptions, every_ps, tuple(length_ps), tuple(share))
    if case in REFUSED:
        with pytest.raises(ValueError, match=told_of):
            Disturbances(every_ps, length_ps, share, [(1, 2)])


def test_a_machine_file_may_have_interruptions_as_short_and_rare_as_planes_count() -> None:
    for every, length in (("1 ns", "1 ns"), ("100000 s", "99 us")):
        kinds = f"machine.interruptions=[{{length: {length}, every: {every}}}]"
        machine = load_scenario("host-lookup", settings=[kinds]).machine
        assert facts.Disturbances(machine.description).interruptions is not None
