"""Open arrivals that fill ERIS's buffers only in part: the flow plane counts what that costs."""

import numpy as np
import pytest

from numatwin.sim.run.record import Record
from numatwin.sim.run.runner import bare_record
from numatwin.sim.run.scenario import load_scenario
from numatwin.sim.run.what_if import flow_plane

SCENARIO = "eris-mixed-amd"
OF_EVENTS = ("horizon=1 ms", "statistics.warm_up=500 us", "statistics.replications=1")


def ran(machine: str, arrivals_per_s: float, plane: str) -> Record:
    settings = [
        "workload.clients.kind=open",
        f"workload.clients.arrival_rate={arrivals_per_s / 1e6} M/s",
        *(OF_EVENTS if plane == "event" else ()),
    ]
    return bare_record(load_scenario(SCENARIO, machine=machine, plane=plane, settings=settings))


def mean_use(record: Record, kind: str) -> float:
    return float(np.mean([use.utilisation for use in record.resources if use.kind == kind]))


@pytest.mark.parametrize(
    ("machine", "arrivals_per_s"),
    [
        ("xeon-2s-spr-snc4", 78e6),
        ("xeon-2s-spr-snc4", 260e6),
        ("xeon-2s-spr-snc4", 560e6),
        ("epyc-2s-nps4", 157e6),
        ("epyc-2s-nps4", 523e6),
        ("epyc-2s-nps4", 784e6),
        ("amd-8n-ht", 71e6),
        ("amd-8n-ht", 155e6),
        ("amd-8n-ht", 357e6),
    ],
)
def test_use_is_that_of_the_event_plane(machine: str, arrivals_per_s: float) -> None:
    """Full buffers would take a fifth of the cores where they are busy nearly all the time."""
    flow, event = (ran(machine, arrivals_per_s, plane) for plane in ("flow", "event"))
    assert sum(flow.throughput.values()) == pytest.approx(arrivals_per_s, rel=2e-3)
    for kind in ("cores", "memory"):
        assert mean_use(flow, kind) == pytest.approx(mean_use(event, kind), rel=0.1), kind
    assert any("messages at a time" in warning for warning in flow.warnings)


@pytest.mark.parametrize("machine", ["amd-8n-ht", "xeon-2s-spr-snc4"])
@pytest.mark.parametrize("think", ["200 us", "1 ms"])
def test_clients_that_think_hand_over_a_batch_at_a_time(machine: str, think: str) -> None:
    """Full buffers would take less than half of the cores' time, and an operation would be answered
    before the rest of its batch is made."""
    settings = [f"workload.clients.think_time={think}"]
    of_events = ["horizon=12 ms", "statistics.warm_up=2 ms", "statistics.replications=1"]
    flow, event = (
        bare_record(load_scenario(SCENARIO, machine=machine, plane=plane, settings=more))
        for plane, more in (("flow", settings), ("event", settings + of_events))
    )
    totals = [sum(record.throughput.values()) for record in (flow, event)]
    assert totals[0] == pytest.approx(totals[1], rel=0.1)
    assert mean_use(flow, "memory") == pytest.approx(mean_use(event, "memory"), rel=0.1)
    assert mean_use(flow, "cores") == pytest.approx(mean_use(event, "cores"), rel=0.15)


@pytest.mark.parametrize("think", ["20 us", "100 us"])
def test_a_worker_does_its_batch_by_itself_where_all_share_the_data(think: str) -> None:
    """As if each operation were answered at once, flows did 238 and 82 M/s: 1.2 times as many."""
    settings = [f"workload.clients.think_time={think}"]
    of_events = ["horizon=5 ms", "statistics.warm_up=1 ms", "statistics.replications=1"]
    flow, event = (
        sum(
            bare_record(
                load_scenario("eris-fig8-amd-shared", plane=plane, settings=more)
            ).throughput.values()
        )
        for plane, more in (("flow", settings), ("event", settings + of_events))
    )
    assert flow == pytest.approx(event, rel=0.05)


def test_more_arrivals_than_it_can_take_fill_all_buffers() -> None:
    """Then it is as if clients waited for nothing."""
    closed = flow_plane(load_scenario(SCENARIO))
    most = float(closed.rates().flows.sum())
    open_ = ran("amd-8n-ht", 2.0 * most, "flow")
    assert sum(open_.throughput.values()) == pytest.approx(most)
    assert not any("messages at a time" in warning for warning in open_.warnings)


def test_use_grows_with_arrivals() -> None:
    uses = [mean_use(ran("amd-8n-ht", per_s, "flow"), "cores") for per_s in (1e6, 1e7, 4e7, 8e7)]
    assert uses == sorted(uses)
    assert uses[1] == pytest.approx(10 * uses[0], rel=0.1)
