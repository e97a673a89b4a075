"""Hit rates and line states against caches simulated line by line, and what holds for any cache."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lru_caches import lru_hits, mean_interval, mesif_hits, uses, victim_hits

from numatwin.inputs.shared_work import SharedWork, shared
from numatwin.sim.kernel.arrays import Floats
from numatwin.sim.machine.caches import hit_rates, last_level_hits, shared_state

SEED = 20140901
# What Che's approximation may be off by at a few thousand lines, beside the noise of a simulation.
CHE_ERROR = 0.002

# Lines of each region, and how often the region is used.
ZIPF_LIKE = (np.array([20.0, 80, 400, 1500, 4000]), np.array([0.3, 0.25, 0.2, 0.15, 0.1]))
TREE_LIKE = (np.array([1.0, 32, 500, 4000]), np.array([1.0, 1, 1, 1]))
ONE = (np.array([3000.0]), np.array([1.0]))
HOT_AND_COLD = (np.array([500.0, 2500]), np.array([0.8, 0.2]))


def one_cache(case: tuple[Floats, Floats], capacity: float) -> Floats:
    lines, rate = case
    return np.asarray(hit_rates(lines[None], rate[None], np.array([float(capacity)]))[0])


def test_runs_that_share_work_share_answers() -> None:
    lines, rate = (part[None] for part in ZIPF_LIKE)
    small, large = np.array([100.0]), np.array([1000.0])
    alone = hit_rates(lines, rate, small)
    with shared(SharedWork()):
        first = hit_rates(lines, rate, small)
        assert hit_rates(lines.copy(), rate.copy(), small.copy()) is first
        assert hit_rates(lines, rate, large) is not first
        # As many numbers, of two caches.
        of_two, rates = (np.concatenate([part[:, :2]] * 2) for part in (lines, rate))
        assert hit_rates(of_two, rates, np.array([100.0, 100.0])).shape == (2, 2)
    assert first.tobytes() == alone.tobytes()
    assert hit_rates(lines, rate, small) is not alone


@pytest.mark.parametrize("case", [ZIPF_LIKE, TREE_LIKE, ONE, HOT_AND_COLD])
@pytest.mark.parametrize("part", [0.05, 0.3, 0.8])
def test_hit_rates_of_a_simulated_cache(case: tuple[Floats, Floats], part: float) -> None:
    capacity = int(part * case[0].sum())
    line, region = uses(*case, 500_000, np.random.Generator(np.random.Philox(SEED)))
    found = lru_hits(line, capacity)[100_000:]  # the cache is full and in its steady state
    region = region[100_000:]
    predicted = one_cache(case, capacity)
    for r in range(len(case[0])):
        mean, half = mean_interval(found, region == r)
        assert half < 0.02, "the simulation is too short to tell"
        assert abs(mean - predicted[r]) <= half + CHE_ERROR, (r, mean, predicted[r], half)


@pytest.mark.parametrize("caches", [2, 4, 8])
@pytest.mark.parametrize(("case", "part"), [(ONE, 0.3), (HOT_AND_COLD, 0.1), (HOT_AND_COLD, 0.6)])
def test_states_of_simulated_caches(case: tuple[Floats, Floats], part: float, caches: int) -> None:
    """Several caches read the same lines at one rate. Of hits: the part on Shared or Forward."""
    capacity = int(part * case[0].sum())
    random = np.random.Generator(np.random.Philox(SEED))
    line, region = uses(*case, 200_000 * caches, random)
    user = random.integers(0, caches, len(line))
    warm = len(line) // 5
    found, region = mesif_hits(line, user, caches, capacity)[warm:], region[warm:]
    predicted = shared_state(one_cache(case, capacity), caches - 1)
    for r in range(len(case[0])):
        mean, half = mean_interval(found == 2, (found > 0) & (region == r))
        assert half < 0.05, "the simulation is too short to tell"
        assert abs(mean - predicted[r]) <= half + 3 * CHE_ERROR, (r, mean, predicted[r], half)


@pytest.mark.parametrize("common", [False, True])
@pytest.mark.parametrize("case", [ZIPF_LIKE, TREE_LIKE, HOT_AND_COLD])
def test_hit_rates_of_a_simulated_victim_cache(case: tuple[Floats, Floats], common: bool) -> None:
    """Four private caches, which drop their lines into one of the size of three: each reads lines
    of its own, or all read the same ones."""
    users, lines, rate = 4, *case
    part = 0.12 if common else 0.4
    capacity, below = int(part * lines.sum()), 3 * int(part * lines.sum())
    random = np.random.Generator(np.random.Philox(SEED))
    line, region = uses(lines, rate, 600_000, random)
    user = random.integers(0, users, len(line))
    if not common:
        line = line + user * int(lines.sum())
    found = victim_hits(line, user, users, capacity, below)[200_000:]
    region = region[200_000:]
    in_private = one_cache(case, capacity)
    copies, times = (users, 1) if common else (1, users)
    above = float((times * lines * (1.0 - (1.0 - in_private) ** copies)).sum())
    room, all_lines = np.array([below + above]), times * lines[None]
    in_last = last_level_hits(all_lines, rate[None], in_private[None], room, np.array([True]))[0]
    predicted = (1.0 - in_private) * in_last
    for r in range(len(lines)):
        mean, half = mean_interval(found == 2, region == r)
        assert half < 0.02, "the simulation is too short to tell"
        assert abs(mean - predicted[r]) <= half + CHE_ERROR, (r, mean, predicted[r], half)


def test_one_cache_alone_shares_nothing() -> None:
    assert shared_state(np.array([0.0, 0.5, 1.0]), 0).tolist() == [0, 0, 0]


def test_lines_that_stay_for_good_are_shared_in_the_end() -> None:
    """All caches hold all lines: every one of them was read by another since it was fetched."""
    assert shared_state(np.array([1.0]), 3) == pytest.approx([1.0])


@given(st.floats(0, 1), st.integers(1, 100))
def test_states_are_probabilities_and_rise_with_sharers(hit: float, others: int) -> None:
    fewer, more = (shared_state(np.array([hit]), n)[0] for n in (others, others + 1))
    assert -1e-12 <= fewer <= 1 + 1e-12
    assert fewer <= more + 1e-12


@st.composite
def caches(draw: st.DrawFn) -> tuple[Floats, Floats, Floats]:
    """Lines and rates (n, R) of a few caches, some of them 0, and capacities (n,)."""
    n, regions = draw(st.integers(1, 4)), draw(st.integers(1, 5))

    def table(value: st.SearchStrategy[float], count: int) -> Floats:
        return np.array(draw(st.lists(value, min_size=count, max_size=count)), dtype=np.float64)

    lines = table(st.one_of(st.just(0.0), st.floats(0.5, 1e9)), n * regions).reshape(n, regions)
    rate = table(st.one_of(st.just(0.0), st.floats(1e-9, 1.0)), n * regions).reshape(n, regions)
    part = table(st.floats(0, 1.2), n)
    return lines, rate, part * np.where(rate > 0, lines, 0.0).sum(axis=1)


@given(caches())
def test_a_full_cache_is_full(case: tuple[Floats, Floats, Floats]) -> None:
    """A line is there as often as it is found there: the sum over used lines is the capacity."""
    lines, rate, capacity = case
    hit = hit_rates(lines, rate, capacity)
    assert (hit >= 0).all()
    assert (hit <= 1).all()
    used = np.where(rate > 0, lines, 0.0)
    there = (used * hit).sum(axis=1)
    assert there == pytest.approx(np.minimum(capacity, used.sum(axis=1)), rel=1e-6, abs=1e-9)
    assert (hit[(lines > 0) & (rate == 0)] == 0).all()
    assert (hit[lines == 0] == 1).all()


@given(caches())
def test_many_caches_at_once_are_each_by_itself(case: tuple[Floats, Floats, Floats]) -> None:
    lines, rate, capacity = case
    together = hit_rates(lines, rate, capacity)
    for row in range(len(lines)):
        alone = hit_rates(lines[[row]], rate[[row]], capacity[[row]])
        assert together[[row]] == pytest.approx(alone, rel=1e-7, abs=1e-12)


@given(caches(), st.floats(1e-6, 1e6))
def test_only_proportions_of_rates_matter(
    case: tuple[Floats, Floats, Floats], factor: float
) -> None:
    lines, rate, capacity = case
    scaled = hit_rates(lines, rate * factor, capacity)
    assert scaled == pytest.approx(hit_rates(lines, rate, capacity), rel=1e-6, abs=1e-12)


@given(caches(), st.floats(1, 3))
def test_more_room_never_hits_less(case: tuple[Floats, Floats, Floats], factor: float) -> None:
    lines, rate, capacity = case
    small, large = (hit_rates(lines, rate, capacity * f) for f in (1.0, factor))
    assert (large >= small - 1e-9).all()


@given(caches())
def test_lines_used_more_are_hit_more(case: tuple[Floats, Floats, Floats]) -> None:
    lines, rate, capacity = case
    hit = hit_rates(lines, rate, capacity)
    for row in range(len(lines)):
        used = (lines[row] > 0) & (rate[row] > 0)
        order = np.argsort(rate[row, used] / lines[row, used])
        assert (np.diff(hit[row, used][order]) >= -1e-12).all()


def test_limits_by_hand() -> None:
    """Room for all; for nothing; a region never used, and one without lines."""
    lines = np.array([[10.0, 20.0, 0.0, 30.0]])
    rate = np.array([[1.0, 1.0, 1.0, 0.0]])
    assert hit_rates(lines, rate, np.array([30.0])).tolist() == [[1, 1, 1, 0]]
    assert hit_rates(lines, rate, np.array([0.0])).tolist() == [[0, 0, 1, 0]]
    some = hit_rates(lines, rate, np.array([15.0]))
    assert some[:, :3] == pytest.approx(hit_rates(lines[:, :3], rate[:, :3], np.array([15.0])))


def test_equal_lines_share_the_room() -> None:
    """One region: as many lines are there as there is room for, each as likely as another."""
    for lines, room in [(100.0, 25.0), (1e9, 1.0), (1e9, 1e9 - 1)]:
        hit = hit_rates(np.array([[lines]]), np.ones((1, 1)), np.array([room]))
        assert hit[0, 0] == pytest.approx(room / lines, rel=1e-6)
