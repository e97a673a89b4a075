"""Nodes whose cores stop while queries are answered."""

import pytest

from numatwin import InputError, load_scenario, run_scenario
from numatwin.sim.planes.availability import Look, availability
from numatwin.sim.planes.outcome import ControlEvent
from numatwin.sim.run.record import Record

BASE = ["horizon=200 ms", "scale=0.1", "policies.cores=none", "statistics.replications=1"]
NODES = ["system.nodes=2", "system.placement=[0, 1]", "statistics.warm_up=0 s"]
STOPS = "{kind: stop, node: 1, at: 50 ms, lasts: 100 ms}"


def ran(plane: str, *faults: str, stealing: str = "none", more: tuple[str, ...] = ()) -> Record:
    settings = [f"system.faults=[{', '.join(faults)}]", f"policies.stealing={stealing}"]
    settings = [*BASE, *NODES, *settings, *more]
    return run_scenario(load_scenario("short-and-long", plane=plane, settings=settings))


@pytest.mark.parametrize("stealing", ["none", "always"])
@pytest.mark.parametrize("affinity", ["core", "none"])
def test_planes_agree(stealing: str, affinity: str) -> None:
    more = (f"system.affinity={affinity}",)
    flow, event, reference = (
        ran(plane, STOPS, stealing=stealing, more=more) for plane in ("flow", "event", "reference")
    )
    assert event.operations == reference.operations
    costs = [record.model["queries"]["availability"] for record in (flow, event, reference)]
    assert costs[1] == costs[2]
    for cost in costs:  # half of the nodes answer half of the queries
        assert cost["kept"] == pytest.approx(0.5, abs=0.1)
        assert cost["recovery_s"] < 0.05
    assert [e.text for e in event.control_events] == [e.text for e in flow.control_events]
    played = sum(event.operations.values())
    assert sum(flow.operations.values()) == pytest.approx(played, rel=0.15)


def test_what_faults_cost_where_looks_are_off_by_rounding() -> None:
    """By hand: 100/s for 5 s, half as many for 2 s, 100/s again."""
    times, done = (0.0, 5.0 - 1e-12, 7.0 - 1e-12, 12.0), (0.0, 500.0, 600.0, 1_100.0)
    looks = [Look(*one) for one in zip(times, done, strict=True)]
    events = [ControlEvent(5.0, "fault", ""), ControlEvent(7.0, "recovery", "")]
    found = availability(looks, events)
    figures = [found[f"{name}_per_s"] for name in ("before", "during", "lowest", "after")]
    assert figures == pytest.approx([100.0, 50.0, 50.0, 100.0])
    assert (found["kept"], found["recovery_s"]) == (pytest.approx(0.5), 0.0)


def test_its_queries_go_on_elsewhere() -> None:
    """Tasks that would wait there wait at the next node, which they share with others."""

    def rate(fault: str) -> float:
        settings = [f"system.faults=[{fault}]", "policies.placer=none", "horizon=1 s"]
        settings += ["policies.stealing=none", "statistics.warm_up=500 ms"]
        scenario = load_scenario("hana-fig10", plane="flow", settings=settings)
        return run_scenario(scenario).throughput["select-TBL3"]

    assert 0.3 < rate("{kind: stop, node: 1, at: 500 ms}") / rate("") < 0.7


@pytest.mark.parametrize(
    ("faults", "told"),
    [
        (["{kind: stop, node: 9, at: 1 ms}"], "no workers on node 9: expected one of 0, 1"),
        (["{kind: stop, node: 1, at: 1 s}"], "after the horizon: expected less than 0.2 s"),
        ([STOPS, "{kind: stop, node: 1, at: 60 ms}"], "node 1 has another fault at 0.06 s, before"),
        ([f"{{kind: stop, node: {k}, at: 1 ms}}" for k in (0, 1)], "no workers are left at"),
    ],
)
def test_bad_input(faults: list[str], told: str) -> None:
    with pytest.raises(InputError, match=told) as raised:
        ran("flow", *faults)
    assert "system.faults" in str(raised.value)
    with pytest.raises(InputError, match="a policy of cores, which may take cores"):
        ran("flow", STOPS, more=("policies.cores=dense",))
