"""The balancers of ERIS: its example worked by hand, and what holds for any loads."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from known import known
from policy_cases import column, index, observed

from numatwin.sim.control.family import decide
from numatwin.sim.control.policy import AnyPolicy, NoPolicy
from numatwin.sim.systems.eris.balancing import (
    BALANCING,
    SAME,
    MovingAverage,
    OneShot,
    bounds_for,
    imbalance,
    loads_of,
    sizes_for,
    target_loads,
)
from numatwin.workloads.keys import HotRange, KeyDistribution, Recorded

# Eight partitions of 60 keys each, four of them with 25% of the accesses each.
EXAMPLE = np.array([0.0, 0, 25, 25, 25, 25, 0, 0])
EXAMPLE_BOUNDS = 60 * np.arange(9)

positive = st.floats(1e-3, 1e6)
loads = st.lists(st.one_of(st.just(0.0), positive), min_size=1, max_size=24).map(np.array)
neighbours = st.integers(1, 30)


@st.composite
def partitioned(draw: st.DrawFn) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Bounds, some partitions empty, and a load for each."""
    load = draw(loads)
    widths = draw(st.lists(st.integers(0, 10**6), min_size=len(load), max_size=len(load)))
    return np.concatenate([[0], np.cumsum(widths)]).astype(np.int64), load


def test_one_shot_on_the_example() -> None:
    """12.5 for each of the eight: half of a hot partition, 30 keys. Idle keys go to the ends."""
    (command,) = OneShot().decide(observed(index=index(EXAMPLE, EXAMPLE_BOUNDS)))
    assert command.object == "index"
    assert known(command.bounds).tolist() == [0, 150, 180, 210, 240, 270, 300, 330, 480]


def test_ma_1_on_the_example() -> None:
    """Targets 0 25/3 50/3 25 25 50/3 25/3 0, whose sums are reached at 1/3 and 2/3 of a partition.

    Their total is 100, so that nothing is added. Partition 1 gets the first third of 2's keys, 20;
    partition 2 keeps the other 40. The idle partitions at the ends have no load to get, and stay.
    """
    targets = target_loads(EXAMPLE, 1)
    assert targets == pytest.approx([0, 25 / 3, 50 / 3, 25, 25, 50 / 3, 25 / 3, 0])
    (command,) = MovingAverage(k=1).decide(observed(index=index(EXAMPLE, EXAMPLE_BOUNDS)))
    assert known(command.bounds).tolist() == [0, 60, 140, 180, 240, 300, 340, 420, 480]


def test_ma_1_on_the_example_with_its_hot_half_first() -> None:
    """Targets 25 25 25 50/3 25/3 0 0 0: partition 3 keeps two thirds of its keys, 4 gets the rest.

    Partition 4 keeps its own keys, which have no load.
    """
    load = np.array([25.0, 25, 25, 25, 0, 0, 0, 0])
    assert target_loads(load, 1) == pytest.approx([25, 25, 25, 50 / 3, 25 / 3, 0, 0, 0])
    (command,) = MovingAverage(k=1).decide(observed(index=index(load, EXAMPLE_BOUNDS)))
    assert known(command.bounds).tolist() == [0, 60, 120, 180, 220, 300, 360, 420, 480]


def test_what_the_ends_lose_is_added_below_the_peak() -> None:
    """MA-1 averages 5 20/3 20/3 10 10 10, 5/3 too little; the room below 10 is 5 10/3 10/3, 35/3.

    A seventh of the room is added: 40/7 50/7 50/7 10 10 10.
    """
    targets = target_loads(np.array([10.0, 0, 10, 10, 10, 10]), 1)
    assert targets == pytest.approx([40 / 7, 50 / 7, 50 / 7, 10, 10, 10])


def test_what_the_ends_gain_is_taken_above_the_least() -> None:
    """MA-1 averages of 1 0 0: 1/2 1/3 0, 1/6 too little; of 0 1 1: 1/2 2/3 1, 1/6 too much.

    First: room below 1 is 1/2 2/3 1, of which 1/13 is added. Then: room above 0 is all of it, of
    which 1/13 is taken.
    """
    assert target_loads(np.array([1.0, 0, 0]), 1) == pytest.approx([7 / 13, 5 / 13, 1 / 13])
    assert target_loads(np.array([0.0, 1, 1]), 1) == pytest.approx([6 / 13, 8 / 13, 12 / 13])


def test_load_of_an_index_is_frequency_times_core_time() -> None:
    """Twice the accesses at half the core time each is the same load: nothing to do."""
    seen = index([1.0, 1.0])
    assert seen.accesses_per_s[0] == 2 * seen.accesses_per_s[1]
    assert loads_of(seen) == pytest.approx([1.0, 1.0])
    assert OneShot().decide(observed(index=seen)) == ()


def test_load_of_a_column_is_its_size() -> None:
    (command,) = OneShot().decide(observed(column=column([10, 20, 40, 30])))
    assert command.bounds is None
    assert known(command.sizes).tolist() == [25, 25, 25, 25]


def test_sizes_are_whole_entries() -> None:
    (command,) = OneShot().decide(observed(column=column([100, 0, 0])))
    assert known(command.sizes).tolist() == [33, 34, 33]


def test_what_is_left_of_an_entry_stays_with_the_last() -> None:
    """Sizes that are not whole themselves keep their sum."""
    assert sizes_for(np.array([10.5, 0.0]), np.array([5.25, 5.25])).tolist() == [5.0, 5.5]


@pytest.mark.parametrize(("threshold", "acts"), [(0.32, True), (0.34, False)])
def test_threshold(threshold: float, acts: bool) -> None:
    """Loads 1 and 2: mean 1.5, standard deviation 0.5, a third of the mean."""
    assert imbalance(np.array([1.0, 2.0])) == pytest.approx(1 / 3)
    for policy in (OneShot(threshold=threshold), MovingAverage(k=1, threshold=threshold)):
        assert bool(policy.decide(observed(index=index([1.0, 2.0])))) == acts


def test_each_object_by_itself() -> None:
    """Only the uneven object that no cycle is under way for is balanced."""
    seen = observed(
        even=index([1.0, 1.0]),
        busy=index([1.0, 9.0], balancing=True),
        uneven=index([1.0, 9.0]),
        idle=index([0.0, 0.0]),
        scanned=column([5.0, 1.0]),
    )
    assert [command.object for command in OneShot().decide(seen)] == ["uneven", "scanned"]
    assert NoPolicy().decide(seen) == ()


def test_nothing_to_balance() -> None:
    assert OneShot().decide(observed()) == ()


@pytest.mark.parametrize("threshold", [-0.1, float("nan"), float("inf"), "0.1", True])
def test_bad_threshold(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold: expected a number"):
        OneShot(threshold=threshold)


@pytest.mark.parametrize("k", [0, -1, 1.5, True])
def test_bad_k(k: int) -> None:
    with pytest.raises(ValueError, match="k: expected a whole number of at least 1"):
        MovingAverage(k=k)


@given(loads, neighbours)
def test_targets_keep_the_total_and_no_peak_rises(load: npt.NDArray[np.float64], k: int) -> None:
    targets = target_loads(load, k)
    slack = 10 * SAME * load.sum()
    assert targets.sum() == pytest.approx(load.sum(), rel=1e-8)
    assert targets.max() <= load.max() + slack
    assert targets.min() >= load.min() - slack


@given(partitioned(), st.integers(0, 30))
def test_ma_that_spans_all_is_one_shot(
    case: tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]], more: int
) -> None:
    """Exactly, not nearly."""
    bounds, load = case
    seen = observed(index=index(load, bounds))
    k = max(len(load) - 1, 1) + more
    for one, other in zip(
        OneShot(threshold=0.0).decide(seen),
        MovingAverage(k=k, threshold=0.0).decide(seen),
        strict=True,
    ):
        assert np.array_equal(one.bounds, other.bounds)  # type: ignore[arg-type]


@given(partitioned(), neighbours)
def test_bounds_are_valid(
    case: tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]], k: int
) -> None:
    """The check of commands itself accepts them, for every policy and object."""
    bounds, load = case
    sizes = np.floor(load)
    seen = observed(index=index(load, bounds), column=column(sizes))
    policies: list[AnyPolicy] = [NoPolicy(), OneShot(0.0), MovingAverage(0.0, k)]
    for policy in policies:
        for command in decide(BALANCING, policy, seen):
            if command.bounds is not None:
                assert (np.diff(command.bounds) >= 0).all()
                assert command.bounds[[0, -1]].tolist() == bounds[[0, -1]].tolist()
            else:
                assert command.sizes is not None
                assert command.sizes.sum() == sizes.sum()
                assert (command.sizes == np.rint(command.sizes)).all()


@given(partitioned(), neighbours)
def test_bounds_give_the_targets(
    case: tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]], k: int
) -> None:
    """Were each load even on its keys, each partition would have its target, but for whole keys."""
    bounds, load = case
    load = np.where(np.diff(bounds) > 0, load, 0.0)  # an empty partition has none
    targets = target_loads(load, k)
    found = bounds_for(bounds, load, targets)
    below = np.concatenate([[0.0], np.cumsum(load)])
    widths = np.diff(bounds)
    got = np.diff(
        [
            # np.interp takes the last of equal keys, where all loads before are counted
            np.interp(bound, bounds, below)
            for bound in found
        ]
    )
    per_key = np.divide(load, widths, out=np.zeros(len(load)), where=widths > 0).max()
    slack = per_key + 4 * SAME * load.sum()  # half a key at each bound
    assert np.abs(got - targets).max() <= slack * 1.01


@given(st.integers(1, 24), positive, st.integers(1, 10**6), neighbours)
def test_equal_loads_change_nothing(count: int, load: float, width: int, k: int) -> None:
    bounds = width * np.arange(count + 1)
    same = np.full(count, load)
    for reach in (k, count - 1):
        assert np.array_equal(bounds_for(bounds, same, target_loads(same, reach)), bounds)
    sizes = np.full(count, float(width))
    assert np.array_equal(sizes_for(sizes, target_loads(sizes, k)), sizes)
    assert OneShot().decide(observed(index=index(same, bounds), column=column(sizes))) == ()


@st.composite
def gentle_densities(draw: st.DrawFn) -> KeyDistribution:
    """A hot range from the first key on, or accesses that rise evenly over the domain.

    Neither the hot range nor the rest is a small part of the keys: see the test after next.
    """
    keys = 10**6
    if draw(st.booleans()):
        end = draw(st.integers(keys // 20, 3 * keys // 4))
        return HotRange(keys, 0, end, draw(st.floats(0.75, 0.9)))
    edges = np.linspace(0, keys, 101).astype(np.int64)
    counts = draw(st.integers(1, 200)) + np.arange(100.0)
    return Recorded(keys, edges[:-1], edges[1:], counts)


def _balanced(
    policy: OneShot | MovingAverage, density: KeyDistribution, partitions: int, periods: int
) -> list[float]:
    """The imbalance in each period, until the policy no longer acts."""
    bounds = np.linspace(0, density.keys, partitions + 1).astype(np.int64)
    seen = []
    for _ in range(periods):
        load = density.shares(bounds)
        seen.append(imbalance(load))
        commands = decide(BALANCING, policy, observed(index=index(load, bounds)))
        if not commands:
            break
        bounds = known(commands[0].bounds)
    return seen


@given(gentle_densities(), st.integers(2, 12), st.integers(1, 12))
def test_a_fixed_density_is_balanced_in_the_end(
    density: KeyDistribution, partitions: int, k: int
) -> None:
    """Load wanders about k partitions a period, as by diffusion: within so many periods."""
    for policy in (OneShot(), MovingAverage(k=k)):
        assert _balanced(policy, density, partitions, 200)[-1] <= policy.threshold


def test_what_gathers_within_a_partition_may_swing_for_good() -> None:
    """A limit of the algorithm: it sees one load per partition, and takes it to be even inside.

    Two partitions, accesses 4 1 9 1 on the quarters of the keys: no bound that it tries is seen to
    be the right one, and it goes back and forth between two.
    """
    edges = np.linspace(0, 10**6, 5).astype(np.int64)
    density = Recorded(10**6, edges[:-1], edges[1:], np.array([4.0, 1, 9, 1]))
    *_, first, second, third = _balanced(OneShot(), density, 2, 500)
    assert third == pytest.approx(first)
    assert sorted((first, second)) == pytest.approx([0.2552, 0.3355], abs=1e-4)


def test_wider_averages_are_sooner_done() -> None:
    """Figure 13's order: One-Shot in one step, then MA-8, then MA-1."""
    density = HotRange(512_000_000, 128_000_000, 384_000_000)
    policies = (OneShot(), MovingAverage(k=8), MovingAverage(k=1))
    one_shot, ma_8, ma_1 = (len(_balanced(policy, density, 16, 500)) - 1 for policy in policies)
    assert one_shot == 1
    assert one_shot <= ma_8 < ma_1
