"""Workers whose cores go now slower, now faster: times by hand, and all planes alike."""

from __future__ import annotations

import numpy as np
import pytest
from eris_machines import COPY, FLUSH, ISSUE, NEAR, RECEIVE, SWAP, WALK, machine, routing
from eris_pairs import US, difference, disturbed, players
from hypothesis import given
from hypothesis import strategies as st

from numatwin.inputs import InputError
from numatwin.sim._kernel import ErisDemands
from numatwin.sim.machine.disturbances.facts import Disturbances, Paces
from numatwin.sim.run.runner import flow_plane
from numatwin.sim.run.scenario import Scenario, load_scenario

NS = 1000
# Of one worker that makes, sends itself and executes a command in each round; work, without the
# line's way.
WORK = ISSUE + FLUSH + COPY + RECEIVE + WALK
ROUND = WORK + 2 * NEAR + SWAP
# Half of the time twice as long.
HALF = {"pace_share": [0.0, 0.5, 0.500001, 1.0], "pace_slowdown": [2.0, 2.0, 1.0, 1.0]}
LASTS = {"pace_lasts_ps": 50.0 * NS, **HALF, "pace_memory_slowdown": [1.0] * 4}
PACED = (
    "machine.paces={lasts: 2 us, cached: [0.5, 0.6, 0.7, 0.7, 0.8, 0.9, 1.0, 1.1], "
    "memory: [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.05]}"
)


def done(until: int, **more: object) -> int:
    """Commands of one worker until then."""
    model = routing(machine([0], **more), [[1.0]])
    model.run(until)
    model.check()
    return int(model.counts()["executed"].sum())


def test_a_core_that_is_slow_half_of_the_time() -> None:
    """In 2 ms its pace changes 40,000 times: 3/4 of the work is done, but for the line's way."""
    until = 2_000 * US
    assert done(until) == pytest.approx(until / ROUND, rel=0.001)
    slow = ROUND + WORK  # twice the work in a round
    expected = 0.5 * until / ROUND + 0.5 * until / slow
    assert done(until, **LASTS) == pytest.approx(expected, rel=0.02)


def test_a_usual_pace_changes_nothing() -> None:
    usual = {**LASTS, "pace_slowdown": [1.0] * 4}
    assert done(20 * US, **usual) == done(20 * US)


@pytest.mark.parametrize(("lasts", "played_ps"), [("2 us", 1e6), ("1 s", 4e9)])
def test_processors_of_commits_have_the_same_paces(lasts: str, played_ps: float) -> None:
    """Half as long as seen from within, and not so long that a short run would not meet all."""
    paced = PACED.replace("2 us", lasts)
    found = Disturbances(load_scenario("host-lookup", settings=[paced]).machine.description)
    for of_memory, slowdown in ((0.0, 1 / 0.5), (0.5, 8 / 3), (1.0, 1 / 0.3)):
        paces = found.processor_paces(of_memory)
        assert paces is not None
        assert paces.lasts_ps == pytest.approx(played_ps)
        assert (paces.share[0], paces.share[-1]) == (0.0, 1.0)
        assert paces.slowdown[0] == pytest.approx(slowdown)
    usual = Disturbances(load_scenario("host-lookup").machine.description)
    assert usual.processor_paces(1.0) is None


def of_memory() -> ErisDemands:
    """A scan of 1,000 lines of which one comes every ns, and takes 0.01 ns to look at."""
    return ErisDemands(
        core_ps=[10.0],
        hit_ps=[0.0],
        surely_ps=[0.0],
        lines=[1.0],
        slots=[100.0],  # a latency of 100 ns
        memory_lines=[1.0],
        written=[0.0],
        scan_lines=[1000.0],
    )


def test_what_waits_for_memory_has_a_pace_of_its_own() -> None:
    """Whatever makes instructions take twice as long is none of its business."""

    def scans(**more: object) -> float:
        model = routing(machine([0], scans_max=1, **more), [], [[1000.0]])
        model.update(of_memory())
        model.run(400 * US)
        return float(model.counts()["executed"].sum())

    usual, only_work = scans(), scans(**LASTS)
    memory = scans(**{**LASTS, "pace_slowdown": [1.0] * 4, "pace_memory_slowdown": [2.0] * 4})
    assert usual > 300
    assert only_work == pytest.approx(usual, rel=0.02)
    assert memory == pytest.approx(usual / 2, rel=0.03)


def test_the_tail_of_latencies_comes_from_them() -> None:
    """Two workers send each other half of what they make, and each is slow for a tenth of the time:
    most commands are none the later, one in a hundred is."""
    slow = {"pace_share": [0.0, 0.1, 0.100001, 1.0], "pace_slowdown": [2.0, 2.0, 1.0, 1.0]}
    paces = {**LASTS, **slow, "pace_lasts_ps": 20.0 * US}
    of = {"buffer_commands": 128, "round_commands": 256, "incoming_commands": 2048}
    p50, p99 = [], []
    for more in ({}, paces):
        model = routing(machine([0, 0], **of, **more), [[0.5, 0.5]])
        model.run(4_000 * US)
        p50.append(model.latency(0).quantile(0.5))
        p99.append(model.latency(0).quantile(0.99))
    assert p50[1] == pytest.approx(p50[0], rel=0.15)
    assert p99[0] < 2 * p50[0]
    assert p99[1] > 1.5 * p99[0]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("more", [(), ("machine.interruptions=[{length: 1 us, every: 9 us}]",)])
def test_the_reference_goes_at_the_same_paces(seed: int, more: tuple[str, ...]) -> None:
    compiled, plain = players(disturbed(PACED, *more, keys=200_000_000, seed=seed))
    compiled.run(100 * US)
    plain.run(100 * US)
    compiled.check()
    assert (found := difference(compiled, plain)) is None, found
    assert compiled.counted().facts["commands_per_flush"] > 0


slowdowns = st.lists(st.floats(0.5, 20.0), min_size=10, max_size=10)


@given(slowdowns)
def test_the_mean_pace_is_that_of_the_slowdowns(values: list[float]) -> None:
    slowdown = np.array(values)
    share = np.array([0.0, 0.002, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.9, 1.0])
    mean = Paces(1e-3, share, slowdown, slowdown).mean(slowdown)
    assert 1.0 / slowdown.max() - 1e-12 <= mean <= 1.0 / slowdown.min() + 1e-12
    middles = (np.arange(200_000) + 0.5) / 200_000
    assert mean == pytest.approx(
        float((1.0 / np.interp(middles, share, slowdown)).mean()), rel=1e-4
    )


def lookups(*settings: str) -> Scenario:
    fixed = ("system.nodes=1", "system.threads=1", "workload.objects.index.keys=10_000")
    return load_scenario("eris-fig5", settings=[*fixed, *settings])


def test_the_flow_plane_loses_what_they_take() -> None:
    """An index in the caches: all of its time is work of the core's own."""
    paced = lookups(PACED, "machine.interruptions=[{length: 1 us, every: 9 us}]")
    left = Disturbances(paced.machine.description).left
    assert 0.8 < left < 0.9
    usual, slower = (sum(flow_plane(one).rates().flows) for one in (lookups(), paced))
    assert slower == pytest.approx(left * usual, rel=0.005)


@pytest.mark.parametrize(
    ("paces", "expected"),
    [
        ("{lasts: 1 ms, cached: [1.0], memory: [1.0]}", "cached"),
        ("{lasts: 1 ms, cached: [0, 1, 1, 1, 1, 1, 1, 1], memory: [1, 1, 1, 1, 1, 1, 1, 1]}", "0"),
        ("{lasts: 1, cached: [1, 1, 1, 1, 1, 1, 1, 1], memory: [1, 1, 1, 1, 1, 1, 1, 1]}", "lasts"),
    ],
)
def test_paces_of_another_kind_are_refused(paces: str, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        lookups(f"machine.paces={paces}")


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"pace_share": [0.0]}, "pace_share"),
        ({"pace_share": [0.0, 0.5, 0.4, 1.0]}, "pace_share"),
        ({"pace_share": [0.1, 0.4, 0.5, 1.0]}, "pace_share"),
        ({"pace_slowdown": [1.0]}, "pace_slowdown"),
        ({"pace_memory_slowdown": [0.0] * 4}, "pace_slowdown"),
    ],
)
def test_the_kernel_refuses_other_shapes(more: dict[str, list[float]], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        routing(machine([0], **{**LASTS, **more}), [[1.0]])
