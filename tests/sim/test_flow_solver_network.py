"""The stateful network: cases worked by hand over time, and what it refuses."""

import threading
from math import inf

import numpy as np
import pytest
from numpy.testing import assert_allclose

from numatwin.sim._kernel import FlowNetwork

RELATIVE = 1e-12


def network(*capacity: float) -> FlowNetwork:
    return FlowNetwork(np.array(capacity, float))


def log(completions: tuple[np.ndarray, np.ndarray]) -> list[tuple[float, int]]:
    times, flows = completions
    return [(round(float(time), 9), int(flow)) for time, flow in zip(times, flows, strict=True)]


# --- Cases worked by hand: the system over time, then the completions. ---------------------------


# x and y share a link of 10: 5 each. x (20) ends at 4; y (30) has 10 left, now at 10: ends at 5.
def test_survivor_speeds_up() -> None:
    net = network(10)
    x, y = net.start_flow([0], 20), net.start_flow([0], 30)
    assert log(net.advance()) == [(4, x)]
    assert net.rates([y]).tolist() == [10]
    assert log(net.advance()) == [(5, y)]
    assert net.active == 0
    assert log(net.advance()) == []
    assert net.now == 5


# x alone at 10 until 1 (10 of 20 left); then y joins: 5 each. x ends at 3; y (20) has 10 left and
# ends at 4.
def test_late_start() -> None:
    net = network(10)
    x = net.start_flow([0], 20)
    assert log(net.advance(until=1)) == []
    assert_allclose(net.remaining([x]), [10], rtol=RELATIVE)
    y = net.start_flow([0], 20)
    assert log(net.advance(until=10)) == [(3, x), (4, y)]
    assert net.now == 10


# Latency 2: y takes nothing until 2. x (30) at 10 has 10 left then, at 5 it ends at 4; y (20) has
# 10 left and ends at 5.
def test_latency_comes_before_the_share() -> None:
    net = network(10)
    x, y = net.start_flow([0], 30), net.start_flow([0], 20, latency=2)
    assert net.rates([x, y]).tolist() == [10, 0]
    assert net.bindings([x, y]).tolist() == [0, -1]
    assert net.next_event() == 2
    assert log(net.advance(until=2)) == []
    assert net.rates([x, y]).tolist() == [5, 5]
    assert log(net.advance(until=9)) == [(4, x), (5, y)]


# Two links: x crosses both, y the first, z the second (10 and 4): x = z = 2, y = 8. When z is
# cancelled at 1 with 8 left, x rises to 4 and y falls to 6. x (26) has 24 left: ends at 7;
# y (20) has 12 left: ends at 3, after which x stays at 4.
def test_cancel() -> None:
    net = network(10, 4)
    x, y, z = net.start_flow([0, 1], 26), net.start_flow([0], 20), net.start_flow([1], 10)
    assert_allclose(net.rates([x, y, z]), [2, 8, 2], rtol=RELATIVE)
    assert net.bindings([x, y, z]).tolist() == [1, 0, 1]
    net.advance(until=1)
    assert_allclose(net.cancel(z), 8, rtol=RELATIVE)
    assert_allclose(net.rates([x, y]), [4, 6], rtol=RELATIVE)
    assert_allclose(net.uses(), [10, 4], rtol=RELATIVE)
    assert log(net.advance(until=10)) == [(3, y), (7, x)]


# A link of 10 fails at 1 and is back at half at 3: x (20) does 10, nothing, then 10 at 5: ends at 5
def test_capacity_changes() -> None:
    net = network(10)
    x = net.start_flow([0], 20)
    net.advance(until=1)
    net.set_capacity(0, 0)
    assert net.rates([x]).tolist() == [0]
    assert net.next_event() == inf
    assert log(net.advance()) == []
    net.advance(until=3)
    net.set_capacity(0, 5)
    assert log(net.advance()) == [(5, x)]


# Cap 2, coefficient 2 and weight 3 at once on a link of 12: x <= 2, 2 y + 3-weighted z:
#   level t: x = t (cap 2), y = t (uses 2 t), z = 3 t   ->  6 t = 12, t = 2: x = 2, y = 2, z = 6
# x (2) ends at 1; y (4), z (12) go on with 5 t = 12: y = 2.4, z = 7.2; y has 2 left, z 6: both
# end at 1 + 1/1.2
def test_caps_coefficients_and_weights() -> None:
    net = network(12)
    x = net.start_flow([0], 2, cap=2)
    y = net.start_flow([0], 4, coefficients=[2])
    z = net.start_flow([0], 12, weight=3)
    assert_allclose(net.rates([x, y, z]), [2, 2, 6], rtol=RELATIVE)
    assert log(net.advance()) == [(1, x)]
    assert_allclose(net.rates([y, z]), [2.4, 7.2], rtol=RELATIVE)
    times, flows = net.advance(until=5)
    assert sorted(flows.tolist()) == [y, z]
    assert_allclose(times, 1 + 1 / 1.2, rtol=RELATIVE)


# Flows that end at one time come together, in the order of their slots.
def test_simultaneous_completions_come_together() -> None:
    net = network(4)
    flows = net.start_flows(np.arange(5), np.zeros(4, np.int64), np.full(4, 3.0))
    assert log(net.advance()) == [(3, flow) for flow in flows.tolist()]


def test_no_volume_ends_at_once_even_without_a_rate() -> None:
    net = network(0)
    x, y = net.start_flow([0], 0), net.start_flow([0], 0, latency=1)
    assert log(net.advance()) == [(0, x)]
    assert log(net.advance()) == [(1, y)]


def test_cancelled_before_its_latency_has_passed() -> None:
    net = network(1)
    x = net.start_flow([0], 5, latency=3)
    net.advance(until=1)
    assert net.cancel(x) == 5
    assert net.next_event() == inf
    assert net.uses().tolist() == [0]


def test_started_and_cancelled_at_one_time() -> None:
    net = network(6)
    x = net.start_flow([0], 12)
    net.cancel(net.start_flow([0], 1, cap=1))
    assert net.rates([x]).tolist() == [6]
    assert net.uses().tolist() == [6]


def test_resource_added_later() -> None:
    net = FlowNetwork()
    index = net.add_resource(3)
    assert net.resources == 1
    assert log(net.advance(until=1)) == []
    assert net.start_flow([index], 3) == 0
    assert log(net.advance()) == [(2, 0)]


def test_an_id_is_not_used_again() -> None:
    net = network(1)
    x = net.start_flow([0], 1)
    net.advance()
    y = net.start_flow([0], 1)
    assert y != x
    with pytest.raises(IndexError, match=f"no flow {x} is active"):
        net.cancel(x)
    assert net.rates([y]).tolist() == [1]


# --- Closed loop. --------------------------------------------------------------------------------


# Window 2 on a link of 2: flows of 1, 2, 3. At 1 each the first ends at 1, the third starts; the
# second ends at 2; the third has 2 left, at 2: ends at 3.
def test_replay() -> None:
    net = network(2)
    ends = net.replay(2, np.arange(4), np.zeros(3, np.int64), np.array([1.0, 2.0, 3.0]))
    assert_allclose(ends, [1, 2, 3], rtol=RELATIVE)
    assert net.active == 0


def test_replay_of_a_flow_that_cannot_end() -> None:
    net = network(1, 0)
    ends = net.replay(2, np.arange(4), np.array([1, 0, 0]), np.ones(3))
    assert ends.tolist() == [inf, 1, 2]
    assert net.active == 1


# --- What is refused. ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"resources": [1]}, "resource: expected the index"),
        ({"resources": [-1]}, "resource: expected the index"),
        ({"resources": [[0]]}, "resources: expected one dimension, got 2"),
        ({"volume": -1.0}, "volume"),
        ({"volume": inf}, "volume"),
        ({"coefficients": [-1.0]}, "coefficient"),
        ({"coefficients": [1.0, 1.0]}, "coefficients: expected 1 entries, got 2"),
        ({"cap": -1.0}, "cap"),
        ({"cap": np.nan}, "cap"),
        ({"weight": 0.0}, "weight"),
        ({"latency": -1.0}, "latency"),
        ({"latency": inf}, "latency"),
        ({"coefficients": 1e200, "weight": 1e200}, "coefficient: expected one that"),
        ({"cap": 1e200, "weight": 1e-200}, "weight: expected one that"),
        ({"resources": []}, "flow: expected a finite cap or a resource"),
        ({"coefficients": 0.0}, "flow: expected a finite cap or a resource"),
    ],
)
def test_bad_flow_is_refused_and_changes_nothing(change: dict[str, object], message: str) -> None:
    net = network(1)
    arguments: dict[str, object] = {"resources": [0], "volume": 1.0, **change}
    with pytest.raises(ValueError, match=message):
        net.start_flow(**arguments)  # type: ignore[arg-type]
    assert net.active == 0
    assert net.next_event() == inf


def test_one_bad_flow_of_a_table_starts_none() -> None:
    net = network(1)
    with pytest.raises(ValueError, match="volume"):
        net.start_flows(np.arange(3), np.zeros(2, np.int64), np.array([1.0, -1.0]))
    assert net.active == 0


@pytest.mark.parametrize("row_ptr", [[0], [0, 2], [1, 1], [0, 1, 1], [0, -1]])
def test_bad_rows_are_refused(row_ptr: list[int]) -> None:
    with pytest.raises(ValueError, match="row_ptr: expected 2 ascending indices from 0 to 1"):
        network(1).start_flows(np.array(row_ptr), np.zeros(1, np.int64), np.ones(1))


@pytest.mark.parametrize("capacity", [-1.0, inf, np.nan])
def test_bad_capacity_is_refused(capacity: float) -> None:
    with pytest.raises(ValueError, match="capacity"):
        network(capacity)
    with pytest.raises(ValueError, match="capacity"):
        network(1).set_capacity(0, capacity)


def test_time_does_not_go_back() -> None:
    net = network(1)
    net.advance(until=2)
    for until in (1.0, inf, np.nan):
        with pytest.raises(ValueError, match="until"):
            net.advance(until)


def test_replay_needs_an_idle_network_and_a_window() -> None:
    net = network(1)
    columns = (np.arange(2), np.zeros(1, np.int64), np.ones(1))
    with pytest.raises(ValueError, match="window"):
        net.replay(0, *columns)
    net.start_flow([0], 1)
    with pytest.raises(ValueError, match="without active flows"):
        net.replay(1, *columns)


# A long replay releases the GIL: this thread goes on, and is kept out of the network meanwhile.
def test_a_second_thread_is_kept_out() -> None:
    net, count = network(1), 500_000
    columns = (np.arange(count + 1), np.zeros(count, np.int64), np.ones(count))
    replay = threading.Thread(target=net.replay, args=(100, *columns))
    replay.start()
    refused = 0
    while replay.is_alive():
        try:
            net.next_event()
        except RuntimeError as error:
            assert "another thread" in str(error)  # noqa: PT017
            refused += 1
    replay.join()
    assert refused > 0
    assert_allclose(net.now, count, rtol=1e-9)
