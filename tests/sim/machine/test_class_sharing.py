"""Max-min paces of classes of alike users: by hand, and against the solver of single flows.

A case by hand is written as: resources A, B; class: members, time of each resource, least pace.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numatwin.sim import _kernel
from numatwin.sim.machine.reference.class_sharing import NONE, ClassSharing


def paces(sharing: ClassSharing) -> list[float]:
    sharing.share()
    return [state.pace for state in sharing.classes]


def test_members_of_a_class_share_alike() -> None:
    """A: 4 members of time 2: each unit takes 8. A second class of 1 member and time 2: 10."""
    sharing = ClassSharing(1)
    first, second = sharing.add_class([(0, 2.0)]), sharing.add_class([(0, 2.0)])
    sharing.change(first, 4, 1.0)
    assert paces(sharing) == [8, np.inf]
    sharing.change(second, 1, 1.0)
    assert paces(sharing) == [10, 10]
    sharing.change(first, 0, 1.0)
    assert paces(sharing) == [np.inf, 2]


def test_two_bottlenecks() -> None:
    """Class 0 uses A and B, 1 uses A, 2 uses B; times 1 in A, 4 in B; 1 member each, then 3 of 1.

    members   B is full                A is full
    1, 1, 1   pace 8 of 0 and 2        1 has the rest, 7/8 of A: pace 8/7
    1, 9, 1   0 and 2: 8; 1/8 of A     9 members share 7/8: pace 72/7, slower than B
              so A first: 10 at 10     2 has the rest of B, 6/10: pace 40/6
    """
    sharing = ClassSharing(2)
    both = sharing.add_class([(0, 1.0), (1, 4.0)])
    of_a, of_b = sharing.add_class([(0, 1.0)]), sharing.add_class([(1, 4.0)])
    for of in (both, of_a, of_b):
        sharing.change(of, 1, 0.5)
    assert paces(sharing) == [8, pytest.approx(8 / 7), 8]
    assert [sharing.classes[of].binding for of in (both, of_a, of_b)] == [1, 0, 1]
    sharing.change(of_a, 9, 0.5)
    assert paces(sharing) == [10, 10, pytest.approx(40 / 6)]
    assert [sharing.classes[of].binding for of in (both, of_a, of_b)] == [0, 0, 1]


def test_a_slow_class_leaves_the_rest() -> None:
    """Time 1 each: class 0 takes a unit in 10 at least, and leaves 0.9 to the two of class 1."""
    sharing = ClassSharing(1)
    slow, quick = sharing.add_class([(0, 1.0)]), sharing.add_class([(0, 1.0)])
    sharing.change(slow, 1, 10.0)
    sharing.change(quick, 2, 0.5)
    assert paces(sharing) == [10, pytest.approx(2 / 0.9)]
    assert sharing.classes[slow].binding == NONE
    assert sharing.resources[0].use == pytest.approx(1)


def test_only_what_a_change_reaches_is_paced_anew() -> None:
    """Classes 0 and 1 share A, 2 and 3 share B; 3 also uses A, which it does not notice: its pace
    stays, and so does that of 2."""
    sharing = ClassSharing(2)
    sharing.add_class([(0, 1.0)])
    sharing.add_class([(0, 1.0)])
    sharing.add_class([(1, 2.0)])
    sharing.add_class([(0, 0.01), (1, 2.0)])
    for of in range(4):
        sharing.change(of, 4, 0.5)
    assert sorted(sharing.share()) == [0, 1, 2, 3]
    assert [state.binding for state in sharing.classes] == [0, 0, 1, 1]
    sharing.change(0, 5, 0.5)
    assert sorted(sharing.share()) == [0, 1]


CLASSES = st.lists(
    st.dictionaries(st.integers(0, 4), st.sampled_from((0.5, 1.0, 1.0, 3.0)), max_size=4),
    min_size=1,
    max_size=9,
)
CHANGES = st.lists(
    st.lists(
        st.tuples(st.integers(0, 8), st.integers(0, 6), st.sampled_from((0.3, 1.0, 2.0, 7.0))),
        min_size=1,
        max_size=3,
    ),
    min_size=1,
    max_size=12,
)


@settings(deadline=None, max_examples=300)
@given(CLASSES, CHANGES)
def test_they_are_the_shares_of_single_flows(
    needs: list[dict[int, float]], changes: list[list[tuple[int, int, float]]]
) -> None:
    """After each change: as ``solve_max_min`` of all classes, members as weights; and no resource
    is busy for longer than time passes."""
    sharing = ClassSharing(5)
    for each in needs:
        sharing.add_class(each.items())
    for step in changes:
        for of, members, least in step:
            sharing.change(of % len(needs), members, least)
        sharing.share()
        present = [state for state in sharing.classes if state.members]
        if not present:
            continue
        rows = np.cumsum([0] + [len(state.needs) for state in present])
        rates = _kernel.solve_max_min(
            np.ones(5),
            rows,
            np.array([need.resource for state in present for need in state.needs], np.int64),
            np.array([need.time for state in present for need in state.needs]),
            np.array([state.members / state.least for state in present]),
            np.array([float(state.members) for state in present]),
        )[0]
        np.testing.assert_allclose([s.members / s.pace for s in present], rates, rtol=1e-9)
        assert all(resource.use <= 1 + 1e-9 for resource in sharing.resources)
