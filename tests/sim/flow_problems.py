"""Random max-min problems and an independent, slow, exact solver to hold the compiled ones to."""

from dataclasses import dataclass
from fractions import Fraction
from math import inf

import numpy as np
from hypothesis import strategies as st

from numatwin.sim._kernel import solve_max_min


@dataclass(frozen=True)
class Flow:
    """One flow: what it uses per unit of rate ({resource: coefficient}), its cap and weight."""

    uses: tuple[tuple[int, float], ...]
    cap: float = inf
    weight: float = 1.0


@dataclass(frozen=True)
class Shares:
    rate: np.ndarray
    binding: np.ndarray
    use: np.ndarray


def solve(capacity: list[float], flows: list[Flow]) -> Shares:
    """The compiled solver on a list of flows."""
    row_ptr = np.cumsum([0] + [len(flow.uses) for flow in flows])
    uses = [use for flow in flows for use in flow.uses]
    return Shares(
        *solve_max_min(
            np.array(capacity, float),
            row_ptr,
            np.array([resource for resource, _ in uses], np.int64),
            np.array([coefficient for _, coefficient in uses], float),
            np.array([flow.cap for flow in flows], float),
            np.array([flow.weight for flow in flows], float),
        )
    )


def solve_exactly(capacity: list[float], flows: list[Flow]) -> list[Fraction]:
    """Progressive filling by the book in rational numbers: no heap, no increments, no rounding."""
    rate: dict[int, Fraction] = {}
    while len(rate) < len(flows):
        rising = [f for f in range(len(flows)) if f not in rate]
        stops: list[tuple[Fraction, list[int]]] = [
            (Fraction(flows[f].cap) / Fraction(flows[f].weight), [f])
            for f in rising
            if flows[f].cap < inf
        ]
        for resource, limit in enumerate(capacity):
            free, slope, users = Fraction(limit), Fraction(0), []
            for f, flow in enumerate(flows):
                need = sum((Fraction(c) for r, c in flow.uses if r == resource), Fraction(0))
                if f in rate:
                    free -= need * rate[f]
                elif need > 0:
                    slope += need * Fraction(flow.weight)
                    users.append(f)
            if users:
                stops.append((free / slope, users))
        level = min(stop for stop, _ in stops)
        for stop, users in stops:
            if stop == level:
                rate.update({f: level * Fraction(flows[f].weight) for f in users})
    return [rate[f] for f in range(len(flows))]


def positive(minimum: float = 0.01, maximum: float = 100.0) -> st.SearchStrategy[float]:
    """Sizes that meet in exact ties now and then, and otherwise do not."""
    return st.one_of(st.sampled_from([0.5, 1.0, 2.0, 3.0]), st.floats(minimum, maximum))


@st.composite
def problems(
    draw: st.DrawFn, max_resources: int = 8, max_flows: int = 12
) -> tuple[list[float], list[Flow]]:
    """Capacities (some 0) and flows: several resources, repeated ones, caps (some 0), weights."""
    resources = draw(st.integers(1, max_resources))
    capacity = [draw(st.one_of(st.just(0.0), positive(), positive())) for _ in range(resources)]
    flows = []
    for _ in range(draw(st.integers(0, max_flows))):
        uses = draw(
            st.lists(st.tuples(st.integers(0, resources - 1), positive()), max_size=resources)
        )
        caps = st.one_of(st.just(0.0), positive())
        cap = draw(st.one_of(st.just(inf), caps) if uses else caps)
        flows.append(Flow(tuple(uses), cap, draw(st.one_of(st.just(1.0), positive()))))
    return capacity, flows
