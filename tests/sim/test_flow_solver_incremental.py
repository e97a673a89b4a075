"""Incremental sharing equals a full solve, and time passes as in a loop that solves afresh."""

from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
from flow_problems import Flow, positive, solve
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from numatwin.sim._kernel import FlowNetwork

EQUAL = 1e-9
Change = tuple[Any, ...]

flows_of = st.builds(
    Flow,
    st.lists(st.tuples(st.integers(0, 99), positive()), min_size=1, max_size=5).map(tuple),
    st.one_of(st.just(inf), st.just(inf), st.just(0.0), positive()),
    st.one_of(st.just(1.0), positive()),
)
capacities = st.one_of(st.just(0.0), positive(), positive(), st.floats(1e-6, 1e6))
# What may happen at a moment; an index counts modulo what there is.
changes = st.one_of(
    st.tuples(st.just("start"), flows_of),
    st.tuples(st.just("start"), flows_of),
    st.tuples(st.just("cancel"), st.integers(0, 99)),
    st.tuples(st.just("capacity"), st.integers(0, 99), capacities),
    st.tuples(st.just("share")),
)


@dataclass
class Mirror:
    """A network, and beside it the plain list of its capacities and flows."""

    capacity: list[float]
    net: FlowNetwork = field(init=False)
    flows: dict[int, Flow] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.net = FlowNetwork(np.array(self.capacity))

    def start(self, flow: Flow, volume: float = 1e30, latency: float = 0.0) -> int:
        uses = tuple((resource % len(self.capacity), need) for resource, need in flow.uses)
        resources, coefficients = [r for r, _ in uses], [need for _, need in uses]
        id_ = self.net.start_flow(
            resources,
            volume,
            coefficients=coefficients,
            cap=flow.cap,
            weight=flow.weight,
            latency=latency,
        )
        self.flows[id_] = Flow(uses, flow.cap, flow.weight)
        return id_

    def change(self, change: Change) -> None:
        match change:
            case ("start", flow):
                self.start(flow)
            case ("cancel", index) if self.flows:
                id_ = list(self.flows)[index % len(self.flows)]
                self.net.cancel(id_)
                del self.flows[id_]
            case ("capacity", index, capacity):
                self.capacity[index % len(self.capacity)] = capacity
                self.net.set_capacity(index % len(self.capacity), capacity)
            case ("share",):
                self.check()

    def check(self) -> None:
        expected = solve(self.capacity, list(self.flows.values()))
        rates = self.net.rates(list(self.flows))
        # Rates are differences of capacities: what is 1e-12 of those counts as nothing.
        nothing = 1e-12 * max(self.capacity)
        assert_allclose(rates, expected.rate, rtol=EQUAL, atol=nothing)
        assert_allclose(self.net.uses(), expected.use, rtol=EQUAL, atol=100 * nothing)
        bindings = self.net.bindings(list(self.flows)).tolist()
        for flow, rate, binding in zip(self.flows.values(), rates, bindings, strict=True):
            if binding == -1:
                assert rate == flow.cap
            else:  # it may name another one of several that fill at one level
                assert binding in {resource for resource, _ in flow.uses}
                use, capacity = expected.use[binding], self.capacity[binding]
                assert_allclose(use, capacity, rtol=EQUAL, atol=100 * nothing)


@settings(max_examples=300)
@given(st.lists(capacities, min_size=1, max_size=12), st.lists(changes, max_size=40))
def test_equals_a_full_solve_after_any_changes(
    capacity: list[float], sequence: list[Change]
) -> None:
    mirror = Mirror(capacity)
    for change in sequence:
        mirror.change(change)
    mirror.check()


# Whole numbers: many resources fill at one level, many flows tie.
@settings(max_examples=300)
@given(
    st.lists(st.sampled_from([0.0, 1.0, 2.0, 6.0]), min_size=1, max_size=8),
    st.lists(
        st.one_of(
            st.tuples(
                st.just("start"),
                st.builds(
                    Flow,
                    st.lists(
                        st.tuples(st.integers(0, 7), st.just(1.0)), min_size=1, max_size=4
                    ).map(tuple),
                    st.sampled_from([inf, inf, 1.0]),
                ),
            ),
            st.tuples(st.just("cancel"), st.integers(0, 99)),
            st.tuples(
                st.just("capacity"), st.integers(0, 7), st.sampled_from([0.0, 1.0, 2.0, 3.0])
            ),
            st.tuples(st.just("share")),
        ),
        max_size=60,
    ),
)
def test_equals_a_full_solve_with_many_ties(capacity: list[float], sequence: list[Change]) -> None:
    mirror = Mirror(capacity)
    for change in sequence:
        mirror.change(change)
        mirror.check()


# Larger: 400 flows of 1 to 8 of 60 resources, one flow replaced at a time; a few resources are
# used by most flows, so that many changes reach far and some are worked in by filling afresh.
def test_equals_a_full_solve_at_size() -> None:
    rng = np.random.default_rng(3)
    mirror = Mirror(rng.uniform(1, 100, 60).tolist())

    def draw() -> Flow:
        resources = np.minimum(rng.geometric(0.04, rng.integers(1, 9)), 60) - 1
        cap = inf if rng.random() < 0.7 else rng.uniform(0, 2)
        uses = tuple((int(r), float(rng.uniform(0.1, 2))) for r in resources)
        return Flow(uses, cap, float(rng.uniform(0.1, 10)))

    for _ in range(400):
        mirror.start(draw())
    for step in range(300):
        mirror.change(("cancel", int(rng.integers(1 << 30))))
        mirror.start(draw())
        if step % 10 == 0:
            mirror.change(("capacity", int(rng.integers(60)), float(rng.uniform(0, 100))))
        mirror.check()


# Very unlike weights, coefficients and capacities in one network: 12 decades each.
def test_equals_a_full_solve_over_many_decades() -> None:
    rng = np.random.default_rng(4)

    def size() -> float:
        return float(10 ** rng.uniform(-6, 6))

    for _ in range(30):
        net_capacity = [size() for _ in range(6)]
        net = FlowNetwork(np.array(net_capacity))
        flows: dict[int, Flow] = {}
        for _ in range(60):
            if len(flows) > 8:
                id_ = list(flows)[rng.integers(len(flows))]
                net.cancel(id_)
                del flows[id_]
            # One resource each: levels span the decades, yet no rate is a small difference.
            flow = Flow(((int(rng.integers(6)), size()),), weight=size())
            resource, coefficient = flow.uses[0]
            id_ = net.start_flow([resource], 1e30, coefficients=coefficient, weight=flow.weight)
            flows[id_] = flow
            expected = solve(net_capacity, list(flows.values())).rate
            assert_allclose(net.rates(list(flows)), expected, rtol=EQUAL)


def play_afresh(
    capacity: list[float], starts: list[tuple[float, Flow, float, float]]
) -> list[float]:
    """When each (start time, flow, volume, latency) ends, with a full solve at each event."""
    now = 0.0
    left = [volume for _, _, volume, _ in starts]
    ready = [time + latency for time, _, _, latency in starts]
    end = [inf] * len(starts)
    running: list[int] = []
    waiting = sorted(range(len(starts)), key=lambda f: ready[f])
    while running or waiting:
        rates = solve(capacity, [starts[f][1] for f in running]).rate
        ends = [
            now + left[f] / rate if rate > 0 else (now if left[f] == 0 else inf)
            for f, rate in zip(running, rates, strict=True)
        ]
        then = min([*ends, *(ready[f] for f in waiting[:1])])
        if then == inf:
            break
        for f, rate in zip(running, rates, strict=True):
            left[f] -= rate * (then - now)
        now = then
        for f, time in zip(list(running), ends, strict=True):
            if time <= now:
                end[f] = now
                running.remove(f)
        while waiting and ready[waiting[0]] <= now:
            running.append(waiting.pop(0))
    return end


@given(
    st.lists(positive(), min_size=1, max_size=6),
    st.lists(
        st.tuples(
            st.floats(0, 20),
            flows_of,
            st.one_of(st.just(0.0), positive()),
            st.one_of(st.just(0.0), st.floats(0, 5)),
        ),
        max_size=15,
    ),
)
def test_time_passes_as_in_a_loop_that_solves_afresh(
    capacity: list[float], starts: list[tuple[float, Flow, float, float]]
) -> None:
    starts.sort(key=lambda start: start[0])
    mirror = Mirror(capacity)
    index: dict[int, int] = {}
    end = [inf] * len(starts)

    def note(completions: tuple[np.ndarray, np.ndarray]) -> None:
        for time, id_ in zip(*completions, strict=True):
            end[index[int(id_)]] = float(time)

    for f, (time, flow, volume, latency) in enumerate(starts):
        note(mirror.net.advance(until=time))
        index[mirror.start(flow, volume, latency)] = f
    while (completions := mirror.net.advance())[0].size:
        note(completions)
    wrapped = [
        (time, mirror.flows[id_], volume, latency)
        for id_, (time, _, volume, latency) in zip(index, starts, strict=True)
    ]
    assert_allclose(end, play_afresh(capacity, wrapped), rtol=1e-7)


@given(st.lists(capacities, min_size=1, max_size=6), st.lists(changes, max_size=30))
def test_the_same_calls_give_the_same_bits(capacity: list[float], sequence: list[Change]) -> None:
    def play() -> bytes:
        mirror = Mirror(list(capacity))
        for change in sequence:
            mirror.change(change)
        return mirror.net.rates(list(mirror.flows)).tobytes()

    assert play() == play()
