"""Turns of others on processors: times by hand, both planes alike, and where they come from."""

from __future__ import annotations

import math

import pytest
from commit_clusters import US, reference
from test_commit_processors import WORK_PS, commits, host, there_and_back

from numatwin.inputs import InputError
from numatwin.sim.machine.disturbances.facts import Disturbances, Turns
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.systems.commits.build import commit_parameters
from numatwin.sim.systems.commits.model import KernelCommitModel
from numatwin.sim.systems.commits.processors import Processors

SLICE_PS = 10 * WORK_PS


@pytest.mark.parametrize("clients", [1, 2])
def test_what_others_take_is_missing(clients: int) -> None:
    """Processors are there for 5 of 7 parts of the time, in pieces longer and shorter than work.

    N turns of the mean length vary by √N of them, and so does what lies between them.
    """
    every_ps, lengths_ps = 5.0 * WORK_PS, (1.0 * WORK_PS, 3.0 * WORK_PS)
    turns = Turns(every_ps, lengths_ps, (0.5, 1.0))
    until = 20_000
    found = commits(host(clients, Processors(clients, SLICE_PS, turns=turns)), until * WORK_PS)
    met = clients * until / 7
    expected = clients * until * 5 / 7
    off = 4 * math.sqrt(met) * 2 * 5 / 7  # in units of work: lengths, and what is between them
    assert found == pytest.approx(expected, abs=off)


def test_those_who_wait_do_not_run_meanwhile() -> None:
    """With others' turns between, two that share a processor do together what one would alone."""
    turns = Turns(5.0 * WORK_PS, (2.0 * WORK_PS,), (1.0,))
    both = commits(
        host(2, Processors(1, SLICE_PS, tick_ps=SLICE_PS, turns=turns)), 20_000 * WORK_PS
    )
    one = commits(host(1, Processors(1, SLICE_PS, tick_ps=SLICE_PS, turns=turns)), 20_000 * WORK_PS)
    assert both == pytest.approx(one, rel=0.02)
    assert one == pytest.approx(20_000 * 5 / 7, rel=0.04)


def test_who_is_woken_meanwhile_waits_for_the_rest_of_it() -> None:
    """Messages there and back find each processor taken for a tenth of the time, for 10 µs: they
    wait for half of that, and for turns that begin while they are worked on (2 µs of work, that
    is a fiftieth of them each)."""
    turns = Turns(90.0 * US, (10.0 * US,), (1.0,))
    took = []
    for more in ({}, {"turns": turns}):
        model = KernelCommitModel(there_and_back(US, wake_ps=100 * US, **more), 1)
        model.run(2_000_000 * US)
        took.append(model.latency_total_ps / model.commits)
    # Six ways, each with a waking of 100 µs, which turns do not prolong, and 2 µs of work.
    each_ps = 0.1 * 5 * US + 2 / 90 * 10 * US
    assert took[1] - took[0] == pytest.approx(6 * each_ps, rel=0.15)


@pytest.mark.parametrize(("every", "p99"), [(2_000, 1), (50, 51)])
def test_the_slowest_hundredth_are_those_that_meet_one(every: int, p99: int) -> None:
    """A transaction is 1 part of work, a turn 50: one in 2,000 meets one, or one in 50."""
    turns = Turns(every * WORK_PS, (50.0 * WORK_PS,), (1.0,))
    model = KernelCommitModel(host(1, Processors(1, SLICE_PS, turns=turns)), 1)
    model.run(400_000 * WORK_PS)
    latency_ps = model.result().latency_ps
    assert latency_ps.p50 == pytest.approx(WORK_PS, rel=0.02)
    assert latency_ps.p99 == pytest.approx(p99 * WORK_PS, rel=0.02)


def test_draws_take_nothing_from_other_streams() -> None:
    """Which records are drawn does not depend on when others have the processors."""
    keys = []
    for turns in (None, Turns(5.0 * US, (US,), (1.0,))):
        parameters = host(1, Processors(1, 1000 * US, turns=turns))
        model = reference(parameters, 3)
        model.run(300 * US)
        keys.append([row[4] for row in model.trace() if row[1] == 1][:30])
    assert keys[0] == keys[1]


@pytest.mark.parametrize(
    ("every_ps", "length_ps", "share", "told_of"),
    [
        (0.0, (1.0,), (1.0,), "every_ps"),
        (999.0, (1.0,), (1.0,), "every_ps"),
        (math.inf, (1.0,), (1.0,), "every_ps"),
        (1e6, (1.0,), (0.5,), "share"),
        (1e6, (1.0, 1.0, 1.0), (0.9, 0.5, 1.0), "share"),
        (1e6, (1.0, 1.0), (1.5, 1.0), "share"),
        (1e6, (1.0, 1.0), (1.0,), "share"),
        (1e6, (), (), "share"),
        (1e6, (-1.0,), (1.0,), "length_ps"),
        (1e6, (1e18,), (1.0,), "length_ps"),
    ],
)
def test_what_are_no_turns_is_refused(
    every_ps: float, length_ps: tuple[float, ...], share: tuple[float, ...], told_of: str
) -> None:
    with pytest.raises(InputError, match=told_of):
        Turns(every_ps, length_ps, share)


def test_a_machine_file_may_have_interruptions_as_short_and_long_as_planes_count() -> None:
    for every, length in (("1 ns", "1 ns"), ("100000 s", "100000 s")):
        kinds = f"machine.interruptions=[{{length: {length}, every: {every}}}]"
        machine = load_scenario("host-commit", settings=[kinds]).machine
        assert Disturbances(machine.description).turns() is not None


def test_short_interruptions_of_a_host_are_in_its_tables_and_long_ones_are_turns() -> None:
    """Of a machine file: one that takes 0.1 ms or longer is drawn by the clock."""
    short, long = "{length: 20 us, every: 1 ms}", "{length: 400 us, every: 50 ms}"
    for kinds, expected in ((short, None), (f"{short}, {long}", (5e10, (4e8,), (1.0,)))):
        scenario = load_scenario("host-commit", settings=[f"machine.interruptions=[{kinds}]"])
        processors = commit_parameters(scenario)[0].processors
        assert processors is not None
        turns = processors.turns
        assert expected == (turns and (turns.every_ps, turns.length_ps, turns.share))
