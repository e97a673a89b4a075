"""The stateless max-min solver: cases worked by hand, laws, and an exact reference."""

from math import inf

import numpy as np
import pytest
from flow_problems import Flow, positive, problems, solve, solve_exactly
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from numatwin.sim._kernel import solve_max_min

# What the solver promises: rounding of a few units in the last place per entry.
TOLERANCE = 1e-12


def link(*resources: int, cap: float = inf, weight: float = 1.0) -> Flow:
    return Flow(tuple((resource, 1.0) for resource in resources), cap, weight)


# One resource, three flows
#   x + y + z <= 6        ->  x = y = z = 2
def test_equal_shares() -> None:
    shares = solve([6.0], [link(0), link(0), link(0)])
    assert_allclose(shares.rate, [2, 2, 2], rtol=TOLERANCE)
    assert shares.binding.tolist() == [0, 0, 0]
    assert_allclose(shares.use, [6], rtol=TOLERANCE)


# A line network: one long flow, one short flow a link
#   x + y      <= 1       ->  x = y = 1/2  (link 0)
#   x     + z  <= 2       ->  z = 3/2      (link 1)
def test_line() -> None:
    shares = solve([1.0, 2.0], [link(0, 1), link(0), link(1)])
    assert_allclose(shares.rate, [0.5, 0.5, 1.5], rtol=TOLERANCE)
    assert shares.binding.tolist() == [0, 0, 1]
    assert_allclose(shares.use, [1, 2], rtol=TOLERANCE)


# Weights: y rises three times as fast as x
#   x + y <= 8            ->  level 2: x = 2, y = 6
def test_weights() -> None:
    shares = solve([8.0], [link(0), link(0, weight=3)])
    assert_allclose(shares.rate, [2, 6], rtol=TOLERANCE)


# A cap frees capacity for the others
#   x + y + z <= 9,  x <= 1   ->  x = 1 (own cap), y = z = 4
def test_cap() -> None:
    shares = solve([9.0], [link(0, cap=1), link(0), link(0)])
    assert_allclose(shares.rate, [1, 4, 4], rtol=TOLERANCE)
    assert shares.binding.tolist() == [-1, 0, 0]


# A weighted flow meets its cap at level cap / weight
#   x + y <= 10,  x <= 2, weight of x is 4   ->  level 1/2: x = 2; then y = 8
def test_cap_of_a_weighted_flow() -> None:
    shares = solve([10.0], [link(0, cap=2, weight=4), link(0)])
    assert_allclose(shares.rate, [2, 8], rtol=TOLERANCE)
    assert shares.binding.tolist() == [-1, 0]


# Coefficients: each unit of x takes 3 units of resource 0 (one read moves 3 lines)
#   3 x + y <= 8          ->  x = y = 2
#       x   <= 9
def test_coefficients() -> None:
    shares = solve([8.0, 9.0], [Flow(((0, 3.0), (1, 1.0))), link(0)])
    assert_allclose(shares.rate, [2, 2], rtol=TOLERANCE)
    assert_allclose(shares.use, [8, 2], rtol=TOLERANCE)


# A resource that appears twice adds up (a route that crosses a hub twice)
#   (1 + 2) x + y <= 8    ->  x = y = 2
def test_repeated_resource() -> None:
    shares = solve([8.0], [Flow(((0, 1.0), (0, 2.0))), link(0)])
    assert_allclose(shares.rate, [2, 2], rtol=TOLERANCE)
    assert_allclose(shares.use, [8], rtol=TOLERANCE)


# A dead resource stops its users and no one else
#   x     <= 0            ->  x = 0 (resource 0)
#   x + y <= 5            ->  y = 5 (resource 1)
def test_zero_capacity() -> None:
    shares = solve([0.0, 5.0], [link(0, 1), link(1)])
    assert shares.rate.tolist() == [0, 5]
    assert shares.binding.tolist() == [0, 1]


# A coefficient of zero does not use the resource, not even a dead one
#   0 x <= 0,  x <= 2     ->  x = 2
def test_zero_coefficient() -> None:
    assert solve([0.0], [Flow(((0, 0.0),), cap=2)]).rate.tolist() == [2]


# An infinite capacity never binds
#   x <= inf,  x + y <= 4   ->  x = y = 2
def test_infinite_capacity() -> None:
    shares = solve([inf, 4.0], [link(0, 1), link(1)])
    assert_allclose(shares.rate, [2, 2], rtol=TOLERANCE)
    assert shares.binding.tolist() == [1, 1]


# No resource: the cap alone.   x <= 3   ->  x = 3
def test_no_resource() -> None:
    shares = solve([1.0], [Flow((), cap=3)])
    assert shares.rate.tolist() == [3]
    assert shares.binding.tolist() == [-1]
    assert shares.use.tolist() == [0]


# Ties: cap before resource, lower index before higher
#   x <= 2 = own cap;  y on two resources of 2   ->  bindings -1 and 1
def test_ties() -> None:
    shares = solve([2.0, 2.0, 2.0], [link(0, cap=2), link(2, 1)])
    assert shares.rate.tolist() == [2, 2]
    assert shares.binding.tolist() == [-1, 1]


def test_nothing_to_share() -> None:
    shares = solve([], [])
    assert shares.rate.shape == shares.binding.shape == shares.use.shape == (0,)


# Weights over 24 decades: the heavy flow leaves; what is left is summed afresh, not subtracted.
#   x + y + z <= 1 with weights 1e12, 1e-12, 3e-12 and x <= 1/2   ->  y = 1/8, z = 3/8
def test_weights_far_apart() -> None:
    flows = [link(0, cap=0.5, weight=1e12), link(0, weight=1e-12), link(0, weight=3e-12)]
    assert_allclose(solve([1.0], flows).rate, [0.5, 0.125, 0.375], rtol=TOLERANCE)


@given(problems())
def test_equals_exact_reference(problem: tuple[list[float], list[Flow]]) -> None:
    capacity, flows = problem
    expected = [float(rate) for rate in solve_exactly(capacity, flows)]
    # A rate is a difference of capacities: its error is relative to those.
    largest = max([*capacity, *(flow.cap for flow in flows if flow.cap < inf)])
    assert_allclose(solve(capacity, flows).rate, expected, rtol=1e-9, atol=TOLERANCE * largest)


@given(problems())
def test_feasible_and_every_flow_has_a_bottleneck(problem: tuple[list[float], list[Flow]]) -> None:
    capacity, flows = problem
    shares = solve(capacity, flows)
    level = shares.rate / np.array([flow.weight for flow in flows])
    users: list[set[int]] = [set() for _ in capacity]
    use = np.zeros(len(capacity))
    for f, flow in enumerate(flows):
        for resource, coefficient in flow.uses:
            users[resource].add(f)
            use[resource] += coefficient * shares.rate[f]
    assert_allclose(shares.use, use, rtol=TOLERANCE)
    assert np.all(use <= np.array(capacity) * (1 + TOLERANCE))
    for f, (flow, binding) in enumerate(zip(flows, shares.binding.tolist(), strict=True)):
        assert shares.rate[f] <= flow.cap * (1 + TOLERANCE)
        if binding == -1:
            assert shares.rate[f] == flow.cap
            continue
        assert f in users[binding]
        assert_allclose(use[binding], capacity[binding], rtol=1e-10)
        assert all(level[other] <= level[f] * (1 + 1e-9) for other in users[binding])


@given(problems(), st.floats(1e-6, 1e6), st.floats(0.01, 100.0))
def test_scaled_capacities_and_caps_scale_rates_and_scaled_weights_do_not(
    problem: tuple[list[float], list[Flow]], factor: float, heavier: float
) -> None:
    capacity, flows = problem
    alone = solve(capacity, flows).rate
    scaled = [Flow(flow.uses, flow.cap * factor, flow.weight) for flow in flows]
    found = solve([limit * factor for limit in capacity], scaled).rate
    assert_allclose(found, alone * factor, rtol=1e-9, atol=1e-10 * factor)
    weighted = [Flow(flow.uses, flow.cap, flow.weight * heavier) for flow in flows]
    assert_allclose(solve(capacity, weighted).rate, alone, rtol=1e-9, atol=1e-10)


# Each single rate may fall when capacity is added elsewhere; the least normalised one may not.
@given(problems(), st.integers(0, 7), positive())
def test_more_capacity_never_lowers_the_least_level(
    problem: tuple[list[float], list[Flow]], index: int, more: float
) -> None:
    capacity, flows = problem
    if not flows:
        return
    weight = np.array([flow.weight for flow in flows])
    before = (solve(capacity, flows).rate / weight).min()
    capacity[index % len(capacity)] += more
    assert (solve(capacity, flows).rate / weight).min() >= before * (1 - TOLERANCE)


@given(problems(), st.randoms(use_true_random=False))
def test_order_of_flows_does_not_matter(
    problem: tuple[list[float], list[Flow]], random: object
) -> None:
    capacity, flows = problem
    order = list(range(len(flows)))
    random.shuffle(order)  # type: ignore[attr-defined]
    assert_allclose(
        solve(capacity, [flows[f] for f in order]).rate,
        solve(capacity, flows).rate[order],
        rtol=1e-9,
        atol=1e-10,
    )


@given(problems())
def test_twice_gives_the_same_bits(problem: tuple[list[float], list[Flow]]) -> None:
    first, second = solve(*problem), solve(*problem)
    assert first.rate.tobytes() == second.rate.tobytes()
    assert first.binding.tobytes() == second.binding.tobytes()
    assert first.use.tobytes() == second.use.tobytes()


# An interleaved scan touches every controller and most links: 2,000 flows of 300 resources each.
def test_large_problem_is_feasible_and_bound() -> None:
    rng = np.random.default_rng(7)
    flows, resources, entries = 2000, 640, 300
    capacity = rng.uniform(1, 2, resources)
    resource = rng.integers(0, resources, flows * entries)
    coefficient = rng.uniform(0.1, 1, flows * entries)
    row_ptr = np.arange(flows + 1) * entries
    cap = np.where(rng.random(flows) < 0.5, rng.uniform(0, 0.003, flows), inf)
    rate, binding, use = solve_max_min(
        capacity, row_ptr, resource, coefficient, cap, rng.uniform(0.5, 2, flows)
    )
    assert np.all(use <= capacity * (1 + TOLERANCE))
    assert np.all(rate[binding == -1] == cap[binding == -1])
    full = np.unique(binding[binding >= 0])
    assert full.size > 0
    assert_allclose(use[full], capacity[full], rtol=1e-10)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"capacity": [-1.0]}, r"capacity\[0\]: expected at least 0"),
        ({"capacity": [np.nan]}, r"capacity\[0\]"),
        ({"row_ptr": [0]}, "row_ptr: expected 2 entries, got 1"),
        ({"row_ptr": [1, 1]}, r"row_ptr\[0\]: expected 0"),
        ({"row_ptr": [0, 2]}, r"row_ptr\[1\]"),
        ({"row_ptr": [0, -1]}, r"row_ptr\[1\]: expected an ascending index"),
        ({"resource": [1]}, r"resource\[0\]: expected an index into capacity"),
        ({"resource": [-1]}, r"resource\[0\]"),
        ({"coefficient": [-1.0]}, r"coefficient\[0\]"),
        ({"coefficient": [inf]}, r"coefficient\[0\]"),
        ({"coefficient": [1.0, 1.0]}, "coefficient: expected 1 entries, got 2"),
        ({"cap": [-1.0]}, r"cap\[0\]"),
        ({"cap": [np.nan]}, r"cap\[0\]"),
        ({"weight": [0.0]}, r"weight\[0\]"),
        ({"weight": [inf]}, r"weight\[0\]"),
        ({"weight": []}, "weight: expected 1 entries, got 0"),
        ({"cap": [[1.0]]}, "cap: expected one dimension, got 2"),
        ({"coefficient": [1e200], "weight": [1e200]}, r"coefficient\[0\]: expected one that"),
        ({"coefficient": [1e-200], "weight": [1e-200]}, r"coefficient\[0\]: expected one that"),
        ({"cap": [1e200], "weight": [1e-200]}, r"weight\[0\]: expected one that"),
        ({"capacity": [inf]}, "flow 0 is unbounded"),
        ({"coefficient": [0.0]}, "flow 0 is unbounded"),
    ],
)
def test_bad_input_is_named(change: dict[str, list[float]], message: str) -> None:
    good = {
        "capacity": np.array([1.0]),
        "row_ptr": np.array([0, 1]),
        "resource": np.array([0]),
        "coefficient": np.array([1.0]),
        "cap": np.array([inf]),
        "weight": np.array([1.0]),
    }
    bad = {name: np.array(values, good[name].dtype) for name, values in change.items()}
    with pytest.raises(ValueError, match=message):
        solve_max_min(**{**good, **bad})


def test_indices_of_a_wrong_type_are_refused() -> None:
    one = np.array([1.0])
    with pytest.raises(TypeError):
        solve_max_min(one, np.array([0, 1]), np.array([0.5]), one, one, one)
