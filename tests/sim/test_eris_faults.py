"""Workers of ERIS that stop, or are slow, for a time: times by hand, and planes alike."""

from math import inf

import numpy as np
import pytest
from eris_machines import COPY, FLUSH, ISSUE, NEAR, RECEIVE, SWAP, WALK, machine, routing
from refusals import told_by

from numatwin import load_scenario, run_scenario
from numatwin.sim.run.record import Record

ROUND = ISSUE + NEAR + FLUSH + COPY + NEAR + SWAP + RECEIVE + WALK
SMALL = ("system.nodes=2", "system.threads=4", "workload.objects.index.keys=2_000_000")
STOP = "{kind: stop, node: 1, at: 2 ms, lasts: 6 ms}"
SLOW = "{kind: slow, worker: 3, factor: 3, at: 2 ms, lasts: 14 ms}"
SLOW_NODE, LONG_STOP = SLOW.replace("worker: 3", "node: 1"), STOP.replace("6 ms", "14 ms")
PLAN = ("horizon=20 ms", "statistics.replications=1", "statistics.warm_up=0 s")


def ran(plane: str, fault: str, *more: str, name: str = "eris-fig5") -> Record:
    settings = [*SMALL, *PLAN, f"system.faults=[{fault}]", *more]
    return run_scenario(load_scenario(name, plane=plane, settings=settings))


def rate(record: Record, from_s: float, until_s: float) -> float:
    """Operations per second between two times."""
    begins_s, done = record.series["time_s"], record.series["throughput/lookup"]
    ends_s = np.minimum(begins_s + record.series["duration_s"], until_s)
    inside_s = np.maximum(ends_s - np.maximum(begins_s, from_s), 0.0)
    return float(done @ inside_s) / (until_s - from_s)


def kept(record: Record) -> float:
    """Of what it did in the first tenth, how much it did from the middle on to four fifths."""
    end_s = record.horizon_s
    return rate(record, 0.5 * end_s, 0.8 * end_s) / rate(record, 1e-3, 0.1 * end_s)


def test_one_worker_by_hand() -> None:
    """It makes, sends itself and executes a command in each round of its loop."""
    model = routing(machine([0]), [[1.0]])
    for until, pace in ((10 * ROUND, inf), (30 * ROUND, 1.0), (40 * ROUND, 2.0), (60 * ROUND, 1.0)):
        model.run(until)
        model.pace([0], pace)
    model.run(70 * ROUND)
    model.check()
    counts = model.counts()
    assert counts["executed"].sum() == pytest.approx(10 + 10 + 20 / 2 + 10, abs=2)
    assert counts["busy"].sum() == pytest.approx(50 * ROUND, abs=2 * ROUND)


def test_who_sends_to_a_stopped_worker_stops_as_buffers_are_full() -> None:
    """16 commands are in its incoming buffer, and 4 in the outgoing one to it."""
    model = routing(machine(incoming_commands=16), [[0.5, 0.5]], seed=3)
    model.pace([1], inf)
    done = []
    for rounds in (1000, 2000, 3000):
        model.run(rounds * ROUND)
        model.check()
        done.append(model.counts()["executed"].sum())
        if rounds == 2000:
            assert model.counts()["in_flight"] == 20
            model.pace([1], 1.0)
    assert done[0] == done[1] < done[2] - 1000


def test_a_stop_of_closed_clients() -> None:
    """All wait in the end, on the flow plane at once."""
    flow, event = (ran(plane, STOP) for plane in ("flow", "event"))
    for record in (flow, event):
        assert rate(record, 7e-3, 8e-3) == 0
        assert "nothing is done until it is back" in " ".join(record.warnings)
        cost = record.model["operations"]["availability"]
        assert (cost["lowest_per_s"], cost["recovery_s"]) == (0, pytest.approx(0, abs=1e-3))
    assert flow.model["operations"]["availability"]["kept"] == 0
    assert rate(flow, 2e-3, 8e-3) == 0
    assert rate(event, 12e-3, 20e-3) == pytest.approx(rate(flow, 12e-3, 20e-3), rel=0.05)
    keys = "{distribution: hot_range, from: 0, to: 1000, share: 1}"  # of the other node's
    assert rate(ran("flow", STOP, f"workload.operations.lookup.keys={keys}"), 7e-3, 8e-3) > 0


def test_open_clients_have_a_backlog_that_is_caught_up_with() -> None:
    clients = "workload.clients={kind: open, arrival_rate: 20e6/s}"
    flow, event = (ran(plane, STOP, clients) for plane in ("flow", "event"))
    assert rate(flow, 2e-3, 8e-3) == rate(event, 7e-3, 8e-3) == 0
    assert rate(event, 8e-3, 10e-3) > 30e6
    assert event.operations["lookup"] == pytest.approx(20e6 * 20e-3, rel=0.01)


@pytest.mark.parametrize(
    ("fault", "name"),
    [(fault, "eris-fig5") for fault in (SLOW, SLOW_NODE)]
    + [(fault, "eris-fig8-amd-shared") for fault in (LONG_STOP, SLOW_NODE)],
)
def test_slow_and_shared_workers_settle_as_flows_say(fault: str, name: str) -> None:
    found = [kept(ran(plane, fault, name=name)) for plane in ("flow", "event")]
    assert found[1] == pytest.approx(found[0], abs=0.05)
    assert 0.4 < found[0] < 0.8


@pytest.mark.parametrize("plane", ["flow", "event"])
def test_a_policy_moves_keys_away_from_a_slow_worker(plane: str) -> None:
    """Eight workers, one of which does a third: 22/24 of what they did before."""
    fault = SLOW.replace("2 ms", "6 ms").replace("14 ms", "42 ms")
    kind, period = "policies.balancing.policy=one-shot", "policies.balancing.period=3 ms"
    assert kept(ran(plane, fault, "horizon=60 ms")) < 0.7
    policy = ran(plane, fault, "horizon=60 ms", kind, period)
    assert kept(policy) == pytest.approx(22 / 24, abs=0.03)


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("{kind: stop, node: 9, at: 1 ms}", "faults.0.node: no workers on node 9: expected one of"),
        ("{kind: stop, worker: 8, at: 1 ms}", "there is no worker 8: expected 0 to 7"),
        ("{kind: stop, at: 1 ms}", "expected 'node' or 'worker', one of the two"),
        ("{kind: slow, node: 1, at: 1 ms, factor: 1}", "0.factor: found '1', expected above 1"),
        ("{kind: slow, node: 1, at: 1 ms}", "slow: expected a factor"),
        ("{kind: stop, node: 1, at: 1 s}", "after the horizon: expected less than 0.02 s"),
        (f"{STOP}, {SLOW.replace('3,', '5,', 1)}", "worker 5 has another fault at 0.002 s, before"),
    ],
)
def test_bad_input(fault: str, told: str) -> None:
    assert told in told_by(ran, "flow", fault)


def test_real_workers_are_refused() -> None:
    told = told_by(ran, "native", STOP.replace("1,", "0,", 1), "system.nodes=1", "system.threads=1")
    assert told.startswith("system.faults: the native engine's workers do not stop")
