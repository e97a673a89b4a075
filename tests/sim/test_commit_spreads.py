"""Steps that take now longer, now shorter: known answers, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from commit_clusters import UNEVEN, US, cluster, reference

from numatwin.inputs import InputError
from numatwin.sim.kernel.streams import stream
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.systems.commits.build import commit_parameters
from numatwin.sim.systems.commits.facts import ENGINE, QUANTILES, BlockSpread, CommitFacts
from numatwin.sim.systems.commits.model import KernelCommitModel
from numatwin.sim.systems.commits.parameters import (
    ONE_SIDED_MESSAGES,
    CommitParameters,
    MessageCost,
    Node,
)
from numatwin.sim.systems.commits.processors import Processors
from numatwin.sim.systems.commits.spread import Spread, measured, mixed, shifted, summed

WORK_PS = 1_000_000
# One in fifty takes ten times as long as the others.
RARE = 0.02
LOW = 1 / (1 - RARE + 10 * RARE)
TWO_POINTS = Spread((0.0, 1 - RARE, 1 - RARE + 1e-12, 1.0), (LOW, LOW, 10 * LOW, 10 * LOW))


def alone(**more: Any) -> CommitParameters:
    """One client, whose transaction is WORK_PS to read and as much to write, and nothing else."""
    costs = dict.fromkeys(ONE_SIDED_MESSAGES, (MessageCost(),))
    costs["read"] = costs["write"] = (MessageCost(send_ps=WORK_PS),)
    settings: dict[str, Any] = {
        "machines": 1,
        "client_machine": (0,),
        "nodes": (Node(0), Node(0)),
        "costs": costs,
        "reads": 1,
        "updates": 1,
        "inserts": 0,
        "timestamp_bits": 2**20,
    }
    made: CommitParameters = cluster("rsi", 1, 1, **(settings | more))
    return made


def latencies_ps(parameters: CommitParameters, commits: int = 20_000) -> np.ndarray:
    """Of the reference; the compiled model counts the same."""
    until_ps = commits * 2 * WORK_PS
    plain, compiled = reference(parameters, 1), KernelCommitModel(parameters, 1)
    plain.run(until_ps)
    compiled.run(until_ps)
    assert compiled.commits == plain.commits
    assert compiled.latency_total_ps == sum(plain.latencies_ps)
    return np.array(plain.latencies_ps)


def test_two_points_give_the_quantiles_of_their_mixture() -> None:
    """Of reads and writes 1 - 0.98² = 4% have a long one or two: the 99th of a hundred is one."""
    found = latencies_ps(alone(spreads={"read": TWO_POINTS, "write": TWO_POINTS}))
    short, long = 2 * LOW * WORK_PS, 11 * LOW * WORK_PS
    assert np.median(found) == pytest.approx(short, abs=2)
    assert np.quantile(found, 0.99) == pytest.approx(long, abs=2)
    share, expected = np.mean(found > 1.01 * short), 1 - (1 - RARE) ** 2
    assert share == pytest.approx(expected, abs=4 * math.sqrt(expected / len(found)))


def test_the_mean_stays_and_without_spreads_nothing_varies() -> None:
    steady = latencies_ps(alone())
    assert set(steady.tolist()) == {2 * WORK_PS}
    found = latencies_ps(alone(spreads={"write": UNEVEN}))
    standard_error = found.std() / math.sqrt(len(found))
    assert found.mean() == pytest.approx(2 * WORK_PS, abs=4 * standard_error)
    assert found.std() > 0.2 * WORK_PS


def test_draws_take_nothing_from_other_streams() -> None:
    """Which records a client draws does not depend on how long its steps take."""
    parameters = cluster(clients=2, records=1_000_000, think="exponential", think_ps=US)
    traces = []
    for spreads in ({}, {"read": UNEVEN}):
        model = reference(replace(parameters, spreads=spreads), 3)
        model.run(300 * US)
        reads = [(row[2], row[4]) for row in model.trace() if row[1] == 1]
        traces.append([key for client, key in reads if client == 0][:30])
    assert traces[0] == traces[1]


def test_waking_varies() -> None:
    """A client that sleeps until its answer comes: there and back, two are woken."""
    costs = dict.fromkeys(ONE_SIDED_MESSAGES, (MessageCost(),))
    costs["read"] = (MessageCost(send_ps=1, receive_ps=1),)
    costs["record"] = (MessageCost(receive_ps=1),)
    processors = Processors(2, 1000 * US, wake_ps=WORK_PS, homes=(0, 1, 1))
    parameters = alone(costs=costs, processors=processors, wake_spread=TWO_POINTS)
    found = latencies_ps(parameters, 4_000)[1:]  # at first the client sleeps too
    waits = np.round(found / (LOW * WORK_PS)).astype(int)
    assert set(waits.tolist()) <= {2, 11, 20}
    assert np.mean(waits > 2) == pytest.approx(0.04, abs=0.015)


# -- tables ---------------------------------------------------------------------------------------


def test_a_measured_table_has_mean_1_and_keeps_its_quantiles() -> None:
    factors = (0.5, 0.8, 0.9, 1.0, 1.1, 1.3, 2.0, 5.0, 20.0)
    spread = measured(factors)
    assert spread.mean == pytest.approx(1.0)
    scale = spread.at(np.array([0.5]))[0]
    for share, factor in zip(QUANTILES, factors, strict=False):
        assert spread.at(np.array([share]))[0] / scale == pytest.approx(factor)
    # The slowest thousandth are 20 on average.
    beyond = np.linspace(0.999 + 0.5e-9, 1.0 - 0.5e-9, 1_000_000)
    assert spread.at(beyond).mean() / scale == pytest.approx(20.0)


def test_the_slowest_follow_a_power_law() -> None:
    """Of a last quantile 5 and a mean of 15 beyond: a part r takes more than 5 ÷ r^(2/3)."""
    spread = measured((0.5, 0.8, 0.9, 1.0, 1.1, 1.3, 2.0, 5.0, 15.0))
    scale = spread.at(np.array([0.5]))[0]
    for parts, off in ((np.array([0.5, 0.25, 1 / 16]), 1e-9), (np.array([0.7, 0.3, 0.05]), 0.07)):
        found = spread.at(1 - 0.001 * parts) / scale
        assert found == pytest.approx(5 / parts ** (2 / 3), rel=off)  # on lines between halves
    # Where none is slower than the last quantile, all of them are as slow.
    assert set(measured((1.0,) * 9).factors) == {1.0}


def test_draws_follow_the_table() -> None:
    draws = UNEVEN.draws()
    numbers = stream(1, 1, "steps")
    found = np.array([draws.draw(1_000_000, numbers) for _ in range(40_000)]) / 1e6
    assert found.mean() == pytest.approx(1.0, abs=4 * found.std() / 200)
    assert np.mean(found <= 0.5 + 1e-9) == pytest.approx(0.5, abs=0.01)
    assert np.quantile(found, [0.7, 0.95]) == pytest.approx([0.75, 4.5], rel=0.05)


def test_independent_steps_add_up() -> None:
    """The variance of a sum is that of its parts, and so are quantiles of drawn sums."""
    one = measured((0.5, 0.8, 0.9, 1.0, 1.1, 1.3, 2.0, 5.0, 8.0))
    whole = summed([(2.0, one), (1.0, one), (1.0, None)])
    assert whole is not None
    shares = (np.arange(1_000_000) + 0.5) / 1_000_000
    generator = np.random.default_rng(1)
    drawn = (2 * one.at(generator.random(400_000)) + one.at(generator.random(400_000)) + 1) / 4
    factors = whole.at(shares)
    assert whole.mean == pytest.approx(1.0)
    assert factors.var() == pytest.approx(drawn.var(), rel=0.05)
    for share in (0.1, 0.5, 0.9, 0.99, 0.999):
        assert np.quantile(factors, share) == pytest.approx(np.quantile(drawn, share), rel=0.03)
    assert summed([(1.0, None)]) is None


def test_one_step_or_another() -> None:
    steady = Spread((0.0, 1.0), (1.0, 1.0))
    both = mixed([(0.9, 1.0, steady), (0.1, 11.0, steady)])
    assert both.at(np.array([0.5, 0.97])) == pytest.approx([0.5, 5.5], rel=0.02)
    assert mixed([(1.0, 7.0, UNEVEN)]) is UNEVEN


def test_a_part_varies_as_much_as_the_whole() -> None:
    part = shifted(UNEVEN, 10.0, 5.0)
    assert part.at(np.array([0.95]))[0] == pytest.approx(1 + 2 * (4.5 - 1))
    # No part takes less than nothing; the mean stays.
    small = shifted(UNEVEN, 10.0, 1.0)
    assert min(small.factors) == 0.0
    assert small.mean == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("shares", "factors"),
    [
        ((0.0, 0.5), (1.0, 1.0)),
        ((0.0, 0.7, 0.7, 1.0), (1.0, 1.0, 1.0, 1.0)),
        ((0.0, 1.0), (1.5, 0.5)),
        ((0.0, 1.0), (1.0,)),
        ((0.0, 1.0), (1.0, 2.0)),
    ],
)
def test_what_is_no_spread_is_refused(
    shares: tuple[float, ...], factors: tuple[float, ...]
) -> None:
    with pytest.raises(InputError, match="spread"):
        Spread(shares, factors)


def test_only_messages_vary_that_there_are() -> None:
    with pytest.raises(InputError, match="spread of messages"):
        cluster("rsi", spreads={"vote": UNEVEN})


# -- from a machine file --------------------------------------------------------------------------

CALM = (1.0,) * 9
WILD = (0.5, 0.6, 0.7, 0.9, 1.1, 1.5, 3.0, 8.0, 30.0)


def on_host(transport: str, clients: int = 1) -> CommitParameters:
    """On the bundled host, with tables: what lies in 256 MiB varies, what lies in 256 KiB not."""
    scenario = load_scenario(
        "host-commit", settings=[f"system.host_transport={transport}", f"system.clients={clients}"]
    )
    description = scenario.machine.description
    costs = description.facts_of(ENGINE, CommitFacts)
    assert costs is not None
    blocks = tuple(
        BlockSpread.model_validate(
            {"region": region, "get": table, "write": table, "insert": CALM, "get_together": CALM}
        )
        for region, table in (("256 KiB", CALM), ("256 MiB", WILD))
    )
    transports = {
        name: of.model_copy(update={"end_spread": WILD, "sleeper_spread": WILD})
        for name, of in costs.transports.items()
    }
    costs = costs.model_copy(
        update={"begin_spread": CALM, "block_spreads": blocks, "transports": transports}
    )
    machine = replace(scenario.machine, description=description.with_facts(ENGINE, costs))
    return commit_parameters(replace(scenario, machine=machine))[0]


def test_over_shared_memory_steps_vary_with_the_memory_they_go_to() -> None:
    found = on_host("shm")
    assert set(found.spreads) == {"snapshot-read", "read", "write"}
    assert found.wake_spread is None
    at = np.array([0.99])
    # 300,000 records of 1 KiB: as measured in 256 MiB; three at a time are one step.
    assert found.spreads["read"].at(at)[0] == pytest.approx(measured(WILD).at(at)[0], rel=0.02)
    assert found.spreads["snapshot-read"].at(at)[0] == pytest.approx(1.0)
    # Of writes a part is what is created, which does not vary.
    assert 1.1 < found.spreads["write"].at(at)[0] < found.spreads["read"].at(at)[0]
    assert on_host("shm", 2).spreads["read"].at(at)[0] == pytest.approx(1.0)
    assert all(spread.mean == pytest.approx(1.0) for spread in found.spreads.values())


def test_over_tcp_either_end_varies_and_waking() -> None:
    found = on_host("tcp")
    assert set(found.spreads) >= set(found.message_types)
    assert found.wake_spread is not None
    assert found.wake_spread.mean == pytest.approx(1.0)
    assert found.wake_spread.factors[-1] > measured(WILD).factors[-1]


def test_a_machine_without_tables_has_steady_steps() -> None:
    found = commit_parameters(load_scenario("host-commit"))[0]
    assert (found.spreads, found.wake_spread) == ({}, None)


@pytest.mark.parametrize("slowest", [2.0, 900.0, 1e5])
def test_one_step_may_take_longer_than_all_others_together(slowest: float) -> None:
    found = measured([0.9, 0.95, 0.98, 1.0, 1.02, 1.05, 1.2, 2.0, slowest])
    assert found.mean == pytest.approx(1.0)
    assert found.draws() is not None  # the kernel takes it
