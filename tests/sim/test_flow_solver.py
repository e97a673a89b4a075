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


# Worked by hand: capacities, flows; rates, what binds them (-1: the own cap), use of resources.
HAND = {
    # One resource:  x + y + z <= 6  ->  x = y = z = 2
    "equal shares": ([6.0], [link(0)] * 3, [2, 2, 2], [0, 0, 0], [6]),
    # One long flow, one short flow a link:  x + y <= 1,  x + z <= 2  ->  x = y = 1/2, z = 3/2
    "a line": ([1.0, 2.0], [link(0, 1), link(0), link(1)], [0.5, 0.5, 1.5], [0, 0, 1], [1, 2]),
    # y rises three times as fast as x:  x + y <= 8  ->  level 2: x = 2, y = 6
    "weights": ([8.0], [link(0), link(0, weight=3)], [2, 6], [0, 0], [8]),
    # Frees capacity for the others:  x + y + z <= 9,  x <= 1  ->  x = 1, y = z = 4
    "a cap": ([9.0], [link(0, cap=1), link(0), link(0)], [1, 4, 4], [-1, 0, 0], [9]),
    # Met at level cap / weight:  x + y <= 10,  x <= 2, weight of x is 4  ->  level 1/2; y = 8
    "cap and weight": ([10.0], [link(0, cap=2, weight=4), link(0)], [2, 8], [-1, 0], [10]),
    # One read moves 3 lines:  3 x + y <= 8,  x <= 9  ->  x = y = 2
    "coefficients": ([8.0, 9.0], [Flow(((0, 3.0), (1, 1.0))), link(0)], [2, 2], [0, 0], [8, 2]),
    # A route that crosses a hub twice adds up:  (1 + 2) x + y <= 8  ->  x = y = 2
    "a resource twice": ([8.0], [Flow(((0, 1.0), (0, 2.0))), link(0)], [2, 2], [0, 0], [8]),
    # A dead resource stops its users and no one else:  x <= 0,  x + y <= 5  ->  x = 0, y = 5
    "no capacity": ([0.0, 5.0], [link(0, 1), link(1)], [0, 5], [0, 1], [0, 5]),
    # Does not use the resource, not even a dead one:  0 x <= 0,  x <= 2  ->  x = 2
    "a coefficient of zero": ([0.0], [Flow(((0, 0.0),), cap=2)], [2], [-1], [0]),
    # Never binds:  x <= inf,  x + y <= 4  ->  x = y = 2
    "infinite capacity": ([inf, 4.0], [link(0, 1), link(1)], [2, 2], [1, 1], [2, 4]),
    # The cap alone:  x <= 3  ->  x = 3
    "no resource": ([1.0], [Flow((), cap=3)], [3], [-1], [0]),
    # Cap before resource, lower index before higher:  x <= 2 = own cap;  y on two resources of 2
    "ties": ([2.0] * 3, [link(0, cap=2), link(2, 1)], [2, 2], [-1, 1], [2, 2, 2]),
    "nothing to share": ([], [], [], [], []),
}


@pytest.mark.parametrize("name", HAND)
def test_worked_by_hand(name: str) -> None:
    capacity, flows, *expected = HAND[name]
    shares = solve(capacity, flows)
    assert [shares.rate.tolist(), shares.binding.tolist(), shares.use.tolist()] == expected


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
