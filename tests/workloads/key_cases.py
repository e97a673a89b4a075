"""Key distributions of every kind, for hypothesis."""

import numpy as np
from hypothesis import strategies as st

from numatwin.workloads.keys import HotRange, KeyDistribution, MovingHotRange, Recorded, Uniform
from numatwin.workloads.zipf import Zipf

domains = st.one_of(st.integers(2, 300), st.integers(2, 10**6), st.integers(2, 2**53))


@st.composite
def ranges(draw: st.DrawFn) -> tuple[int, int, int]:
    keys = draw(domains)
    first = draw(st.integers(0, keys - 1))
    return keys, first, draw(st.integers(first + 1, keys))


@st.composite
def hot_ranges(draw: st.DrawFn) -> HotRange:
    keys, first, end = draw(ranges())
    share = 1.0 if end - first == keys else draw(st.floats(0.01, 1.0))
    return HotRange(keys, first, end, share)


@st.composite
def moving_ranges(draw: st.DrawFn) -> MovingHotRange:
    keys, first, end = draw(ranges().filter(lambda r: r[2] - r[1] < r[0]))
    room = max(keys - end, first)
    step = draw(st.integers(1, room))
    return MovingHotRange(
        keys,
        first,
        end,
        draw(st.floats(0.01, 1.0)),
        step=step if room == keys - end else -step,
        every_s=draw(st.floats(0.001, 100.0)),
        first_move_s=draw(st.none() | st.floats(0.0, 100.0)),
    )


@st.composite
def recordings(draw: st.DrawFn) -> Recorded:
    keys = draw(domains)
    edges = sorted(draw(st.sets(st.integers(0, keys), min_size=2, max_size=20)))
    used = draw(st.lists(st.booleans(), min_size=len(edges) - 1, max_size=len(edges) - 1))
    rows = [k for k, use in enumerate(used) if use] or [0]
    counts = draw(
        st.lists(st.integers(0, 10**9), min_size=len(rows), max_size=len(rows)).filter(any)
    )
    bounds = np.array(edges, dtype=np.int64)
    return Recorded(keys, bounds[rows], bounds[np.array(rows) + 1], np.array(counts, dtype=float))


exponents = st.one_of(st.just(1.0), st.floats(0.05, 3.0))
zipfs = st.builds(Zipf, domains, exponents, scattered=st.booleans())
piecewise: st.SearchStrategy[KeyDistribution] = st.one_of(
    st.builds(Uniform, domains), hot_ranges(), moving_ranges(), recordings()
)
distributions: st.SearchStrategy[KeyDistribution] = st.one_of(piecewise, zipfs)
times_s = st.floats(0.0, 1_000.0)


def bounds_over(data: st.DataObject, keys: int, count: int = 8) -> np.ndarray:
    """Rising bounds from 0 to ``keys``, some ranges empty."""
    inner = data.draw(st.lists(st.integers(0, keys), max_size=count))
    return np.array(sorted([0, *inner, keys]), dtype=np.int64)
