"""Workers whose cores are now near each other, now far apart: by hand, and all planes alike."""

from __future__ import annotations

from typing import Any

import pytest
from eris_machines import FAR, NEAR, machine, routing
from eris_pairs import US, difference, disturbed, players

from numatwin.sim.machine.disturbances.facts import Disturbances
from numatwin.sim.run.runner import flow_plane, run_scenario
from numatwin.sim.run.scenario import Scenario, load_scenario

MOVED = "machine.apart={{near: {near}, lasts: {lasts}, line: 30 ns, line_apart: 150 ns}}"
SETTINGS = ("workload.objects.index.keys=1_000_000", "system.buffer_commands=16")


def moved(near: float, lasts: str = "200 ms") -> str:
    return MOVED.format(near=near, lasts=lasts)


def done(until: int, nodes: tuple[int, ...] = (0, 0), **more: Any) -> int:
    """Commands of workers who send each other all that they make."""
    model = routing(machine(nodes, **more), [[0.5, 0.5]])
    model.run(until)
    model.check()
    return int(model.counts()["executed"].sum())


def test_a_line_from_farther_is_like_a_longer_line() -> None:
    """Half of the time ten times as long: as many commands as with the one and the other."""
    until = 4_000 * US
    apart: dict[str, Any] = {"near_ps": 20.0 * US, "apart_ps": 20.0 * US, "apart_times": 10.0}
    near = done(until)
    far = done(until, handed_ps=[10 * NEAR, FAR, FAR, 10 * NEAR])
    assert far < 0.9 * near
    # Of 100 times of either kind the share varies by 1/14 of a half, and it is the difference.
    assert done(until, **apart) == pytest.approx((near + far) / 2, abs=4 * (near - far) / 28)


def test_nodes_stay_as_far_from_each_other_as_they_are() -> None:
    apart: dict[str, Any] = {"near_ps": 1.0, "apart_ps": 1_000.0 * US, "apart_times": 10.0}
    assert done(200 * US, (0, 1), own_cached=True, **apart) == done(
        200 * US, (0, 1), own_cached=True
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("more", [(), ("machine.interruptions=[{length: 1 us, every: 9 us}]",)])
def test_the_reference_is_apart_at_the_same_times(seed: int, more: tuple[str, ...]) -> None:
    case = disturbed(moved(0.6, "10 us"), *more, keys=200_000, seed=seed)
    compiled, plain = players(case)
    compiled.run(100 * US)
    plain.run(100 * US)
    compiled.check()
    assert (found := difference(compiled, plain)) is None, f"{found}: {case.replay}"
    usual, _ = players(disturbed(*more, keys=200_000, seed=seed))
    usual.run(100 * US)
    assert usual.events != compiled.events


def host(*settings: str) -> Scenario:
    """Routing alone on a host of two cores."""
    return load_scenario("eris-fig5-raw", machine="zen5-2c", settings=[*SETTINGS, *settings])


def rate(*settings: str) -> float:
    return float(sum(flow_plane(host(*settings)).rates().flows))


def test_the_flow_plane_does_the_mean_of_what_it_does_near_and_apart() -> None:
    near, apart = rate(), rate(moved(0.0))
    assert apart < 0.8 * near
    for share in (0.1, 0.5, 0.9):
        expected = share * near + (1.0 - share) * apart
        assert rate(moved(share)) == pytest.approx(expected, rel=0.005)
    assert rate(moved(1.0)) == near


def test_farther_is_never_better() -> None:
    rates = [rate(moved(share)) for share in (1.0, 0.8, 0.3, 0.0)]
    assert rates == sorted(rates, reverse=True)


def test_event_and_flow_agree_on_it() -> None:
    loss = []
    for plane in ("flow", "event"):
        usual, apart = (
            run_scenario(
                load_scenario(
                    "eris-fig5-raw",
                    machine="zen5-2c",
                    plane=plane,
                    settings=[*SETTINGS, *settings, "horizon=20 ms", "event_horizon=20 ms"],
                )
            ).throughput["route"]
            for settings in ((), (moved(0.5),))
        )
        loss.append(apart / usual)
    assert loss[0] < 0.9
    assert loss[1] == pytest.approx(loss[0], rel=0.05)


def test_lines_are_never_nearer_than_near() -> None:
    odd = "machine.apart={near: 0.5, lasts: 1 ms, line: 150 ns, line_apart: 30 ns}"
    found = Disturbances(host(odd).machine.description).apart
    assert found is not None
    assert found.times == 1.0


@pytest.mark.parametrize(
    ("more", "expected"),
    [({"apart_ps": 1.0}, "apart"), ({"apart_times": 0.5}, "apart_times")],
)
def test_the_kernel_refuses_what_cannot_be(more: dict[str, float], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        routing(machine([0], **more), [[1.0]])
