"""The compiled model of joins and SimPy's give one trace, on clusters drawn at random."""

from typing import Any

import numpy as np
import pytest
from examples import few_and_many
from hypothesis import given, settings
from hypothesis import strategies as st

from numatwin.sim._kernel import ExchangeModel
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.systems.joins.plane import Model, ReferenceModel
from numatwin.sim.systems.joins.setup import play_of

SMALL = (
    "workload.objects.inner.records=3000",
    "workload.objects.outer.records=9000",
    "system.chunk=8 KiB",
)
AGGREGATE = (
    "workload.objects.inner.records=20000",
    "workload.operations={a: {kind: aggregate, object: inner, groups: 3000, "
    "keys: {distribution: zipf, exponent: 0.8}}}",
    "system.chunk=8 KiB",
)


def both(scenario_settings: tuple[str, ...], until_ps: int) -> tuple[Model, Model]:
    """Played until then, with their traces."""
    scenario = load_scenario("join", plane="event", settings=scenario_settings)
    setup = play_of(scenario, 1).setup
    event: Any = ExchangeModel(setup, scenario.seed, 1)
    reference: Any = ReferenceModel(setup, scenario.seed, 1)
    event.keep_trace()
    event.run(until_ps)
    reference.run(until_ps)
    return event, reference


def check_same(event: Model, reference: Model) -> None:
    rows = [tuple(map(int, row)) for row in event.trace()]
    assert rows == [tuple(row) for row in reference.trace().tolist()]
    ours, theirs = event.counts(), reference.counts()
    assert ours.keys() == theirs.keys()
    for name, values in ours.items():
        np.testing.assert_allclose(values, theirs[name], rtol=1e-12, err_msg=name)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[str, ...]:
    join = draw(st.booleans())
    one_sided = draw(st.booleans())
    if join:
        operator = draw(st.sampled_from(["rrj", "rdma-ghj"] if one_sided else ["ghj", "ghj-bloom"]))
        exponent = draw(st.sampled_from([0.1, 1.0, 1.5]))
        keys = f"workload.operations.join.keys={{distribution: zipf, exponent: {exponent}}}"
        sel = f"workload.operations.join.selectivity={draw(st.sampled_from([0.0, 0.3, 1.0]))}"
        found = [*SMALL, keys, sel]
    else:
        operator = "rdma-aggregation" if one_sided else "aggregation"
        found = list(AGGREGATE)
    central = draw(st.booleans())
    transport = "RDMA" if one_sided or central else draw(st.sampled_from(["IPoIB", "IPoEth"]))
    if central:
        found.append("system.queue=central")
    if draw(st.booleans()):
        found.append("system.stragglers=[{node: 1, factor: 3}]")
    return (
        *found,
        f"system.operator={operator}",
        f"system.transport={transport}",
        f"system.nodes={draw(st.integers(2, 4))}",
        f"system.workers={draw(st.integers(1, 3))}",
        f"system.send_buffers={draw(st.integers(1, 3))}",
        f"system.signal_every={draw(st.integers(1, 5))}",
        f"system.buffer={draw(st.sampled_from([256, 2048]))} B",
    )


@few_and_many(2, 30)
def test_both_models_give_one_trace(examples: int) -> None:
    @settings(max_examples=examples)
    @given(cluster=clusters())
    def check(cluster: tuple[str, ...]) -> None:
        event, reference = both(cluster, 20_000_000_000)
        assert len(event.counts()["latencies_ps"])
        check_same(event, reference)

    check()


@pytest.mark.parametrize("operators", [(1, 0), (3, 2)])
def test_operators_change_between_queries(operators: tuple[int, ...]) -> None:
    chosen = load_scenario("join", plane="event", policy="operator=cheapest", settings=SMALL)
    setup = play_of(chosen, 1).setup
    models: list[Any] = [ExchangeModel(setup, 1, 1), ReferenceModel(setup, 1, 1)]
    models[0].keep_trace()
    for model in models:
        for k, operator in enumerate(operators):
            model.choose(operator)
            model.run((k + 1) * 2_000_000_000)
    check_same(*models)
    assert set(models[0].counts()["operators"]) == set(operators)
