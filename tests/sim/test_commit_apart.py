"""Processors that are now near each other, now far apart: by hand, and from a machine file."""

from __future__ import annotations

from dataclasses import replace

import pytest
from commit_clusters import US
from test_commit_processors import WORK_PS, commits, host

from numatwin.inputs import InputError
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.systems.commits.apart import ApartCosts
from numatwin.sim.systems.commits.build import commit_parameters
from numatwin.sim.systems.commits.model import KernelCommitModel
from numatwin.sim.systems.commits.parameters import CommitParameters, MessageCost
from numatwin.sim.systems.commits.processors import Processors

SLICE_PS = 10 * WORK_PS
HOST = "host-commit"
ROW = "size: 1032 B, region: {region} MiB, get: 100 ns, update: 150 ns, insert: 60 ns"
TOGETHER = "get_together: 110 ns, update_together: 170 ns, insert_together: 70 ns"
FAR = "get_apart: 310 ns, update_apart: 470 ns, insert_apart: 270 ns"


def with_apart(parameters: CommitParameters, near_ps: float, apart_ps: float) -> CommitParameters:
    """The same; a transaction takes three times as long while processors are apart."""
    costs = dict(parameters.costs) | {"read": (MessageCost(send_ps=3 * WORK_PS),)}
    return replace(parameters, apart=ApartCosts(near_ps, apart_ps, costs))


@pytest.mark.parametrize(("near", "apart"), [(300.0, 100.0), (200.0, 800.0)])
def test_transactions_take_so_long_as_where_processors_are(near: float, apart: float) -> None:
    """In N times apart of a mean length, and as many near, the share varies by some 1/√N of it."""
    parameters = with_apart(host(2, Processors(2, SLICE_PS)), near * WORK_PS, apart * WORK_PS)
    until = 400_000
    share = apart / (near + apart)
    expected = 2 * until * ((1 - share) + share / 3)
    times = until / (near + apart)
    off = 4 * 2 * until * share * (1 - share) * (2 / 3) * (2 / times) ** 0.5
    assert commits(parameters, until * WORK_PS) == pytest.approx(expected, abs=off)


def test_the_slowest_are_those_that_ran_apart() -> None:
    model = KernelCommitModel(
        with_apart(host(1, Processors(1, SLICE_PS)), 900.0 * WORK_PS, 100.0 * WORK_PS), 1
    )
    model.run(200_000 * WORK_PS)
    latency_ps = model.result().latency_ps
    assert latency_ps.p50 == pytest.approx(WORK_PS, rel=0.02)
    assert latency_ps.p99 == pytest.approx(3 * WORK_PS, rel=0.02)


@pytest.mark.parametrize(
    ("near_ps", "apart_ps", "told_of"),
    [(0.0, 1e6, "near_ps"), (1e6, 0.0, "apart_ps"), (1e6, float("nan"), "apart_ps")],
)
def test_times_that_cannot_be_are_refused(near_ps: float, apart_ps: float, told_of: str) -> None:
    with pytest.raises(InputError, match=told_of):
        with_apart(host(1, Processors(1, SLICE_PS)), near_ps, apart_ps)


def test_costs_of_all_messages_are_wanted() -> None:
    parameters = host(1, Processors(1, SLICE_PS))
    with pytest.raises(InputError, match="costs of message"):
        replace(parameters, apart=ApartCosts(1e6, 1e6, {"read": parameters.costs["read"]}))


def of_host(*settings: str, clients: int = 2, far: bool = True) -> CommitParameters:
    """Of a machine file whose facts of blocks are those above."""
    rows = ", ".join(
        "{" + ROW.format(region=region) + f", {TOGETHER}" + (f", {FAR}" if far else "") + "}"
        for region in (1, 64)
    )
    facts = [f"machine.engines.commits.blocks=[{rows}]", f"system.clients={clients}"]
    return commit_parameters(load_scenario(HOST, settings=[*facts, *settings]))[0]


LINES = "line: 30 ns, line_apart: 160 ns"
APART = ("machine.apart={near: 0.75, lasts: 1 ms, " + LINES + "}",)


def test_a_hosts_clients_take_what_was_measured_apart() -> None:
    parameters = of_host(*APART)
    found = parameters.apart
    assert found is not None
    # In the middle of one that ends at random it lasts twice as long as on average.
    assert found.apart_ps == 0.5e9
    assert found.near_ps == pytest.approx(1.5e9)
    # 1 KiB of 1,032 B at a time, and of that in both tables.
    assert parameters.costs["read"][0].send_ps == pytest.approx(110e3, rel=1e-6)
    assert found.costs["read"][0].send_ps == pytest.approx(310e3, rel=1e-6)
    # One line of the other's, for a timestamp's bit.
    scenario = load_scenario(HOST)
    assert scenario.machine.description.processes is not None
    line = scenario.machine.description.processes.line
    assert line is not None
    more_ps = found.costs["bit"][0].send_ps - parameters.costs["bit"][0].send_ps
    assert more_ps == pytest.approx(160e3 - line.value * 1e12, abs=2)


def test_who_is_always_apart_is_so_all_the_time() -> None:
    found = of_host("machine.apart={near: 0, lasts: 1 ms, " + LINES + "}").apart
    assert found is not None
    assert found.near_ps <= 1e-5 * found.apart_ps


def test_long_times_apart_are_played_as_several() -> None:
    found = of_host("machine.apart={near: 0.5, lasts: 400 ms, " + LINES + "}").apart
    assert found is not None
    assert found.apart_ps == found.near_ps == 500 * US


@pytest.mark.parametrize(
    ("settings", "clients", "far"),
    [
        (APART, 1, True),  # one processor is near itself
        (APART, 2, False),
        (("machine.apart={near: 1, lasts: 1 ms, " + LINES + "}",), 2, True),
        (("system.host_transport=tcp", *APART), 2, True),
    ],
)
def test_where_nothing_is_known_of_it_or_nothing_matters_none_is_apart(
    settings: tuple[str, ...], clients: int, far: bool
) -> None:
    assert of_host(*settings, clients=clients, far=far).apart is None


@pytest.mark.parametrize(
    "apart", ["near: 1.5, lasts: 1 ms", "near: -1, lasts: 1 ms", "near: 0.5, lasts: 1 ps"]
)
def test_what_is_no_distance_is_refused_in_one_line(apart: str) -> None:
    with pytest.raises(InputError, match="apart") as refused:
        load_scenario(HOST, settings=[f"machine.apart={{{apart}, {LINES}}}"])
    assert "\n" not in str(refused.value)
