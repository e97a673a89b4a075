"""Structures of all stages in the last-level caches: two nodes, 10 MiB and two threads each."""

import numpy as np
import pytest

from numatwin.sim.machine.caches import CacheFacts
from numatwin.sim.systems.tasks.cache_sharing import AtRandom, CacheSurvey, StageUse, used_where
from numatwin.sim.systems.tasks.program import Part, Table

MIB = 2**20
BOTH = np.full(2, 0.5), np.ones(2)
LINES, TWO = np.full(2, 10 * MIB / 64), np.full(2, 2.0)
CACHE = CacheFacts(TWO, LINES, np.zeros(2), np.full(2, fill_value=False))
FIRST = np.array([1.0, 0.0]), np.array([1.0, 0.0])


def survey() -> CacheSurvey:
    return CacheSurvey(TWO)


def dictionary(size: float, name: str = "") -> AtRandom:
    return AtRandom("part", 1.0, size, name=name)


def test_alone_a_structure_has_the_whole_cache() -> None:
    one = survey()
    one.add(StageUse("a", 1.0, *FIRST), 1.0, [dictionary(10 * MIB)])
    assert one.hits(CACHE)["a"][0] == [1.0]


def test_structures_of_two_stages_used_alike_share_the_cache_of_a_node() -> None:
    two = survey()
    two.add(StageUse("a", 1.0, *FIRST), 1.0, [dictionary(10 * MIB)])
    two.add(StageUse("b", 1.0, *BOTH), 1.0, [dictionary(10 * MIB)])
    found = two.hits(CACHE)
    # On the first node a is used twice as often as b, on the second b is alone. By Che: a line of b
    # is there with x = 1 - exp(-t), one of a with 1 - exp(-2t) = 1 - (1 - x)^2; both sum to 1.
    x = (3 - np.sqrt(5)) / 2
    assert found["a"][0, 0] == pytest.approx(1 - x)
    assert found["b"][:, 0] == pytest.approx([x, 1.0])


def test_what_two_stages_access_is_there_once() -> None:
    two = survey()
    for key in ("a", "b"):
        two.add(StageUse(key, 1.0, *FIRST), 1.0, [dictionary(10 * MIB, "values of t.c")])
    assert [hits[0].tolist() for hits in two.hits(CACHE).values()] == [[1.0], [1.0]]


def test_a_table_in_more_parts_finds_as_much_as_in_one() -> None:
    whole, parted = survey(), survey()
    whole.add(StageUse("a", 1.0, *FIRST), 1.0, [dictionary(40 * MIB)])
    four = np.array([1.0, 0.0]), np.array([4.0, 0.0])
    parted.add(StageUse("a", 1.0, *four), 1.0, [dictionary(10 * MIB)])
    assert whole.hits(CACHE)["a"][0] == pytest.approx([0.25])
    assert parted.hits(CACHE)["a"][0] == pytest.approx([0.25])


def test_own_tables_are_there_for_threads_that_run_such_tasks() -> None:
    # Two threads with 10 MiB each: half is found; if the other stage takes half of the time, all.
    own = AtRandom("local", 1.0, 10 * MIB, own=True)
    busy, shared = survey(), survey()
    busy.add(StageUse("a", 1.0, *FIRST), 5.0, [own])
    assert busy.hits(CACHE)["a"][0] == pytest.approx([0.5])
    shared.add(StageUse("a", 1.0, *FIRST), 5.0, [own])
    shared.add(StageUse("b", 1.0, *FIRST), 5.0, [])
    assert shared.hits(CACHE)["a"][0] == pytest.approx([1.0])


def test_one_of_a_name_is_there_once_for_each_thread_that_has_its_own() -> None:
    # Both threads have one of 10 MiB, whichever stage they run; where half of the accesses are to
    # one of all, half as many: as much as 1.5, of which the cache holds one.
    half = [AtRandom("local", 1.0, 10 * MIB, own=own, name="reused") for own in (True, False)]
    own, mixed = survey(), survey()
    for key in ("a", "b"):
        own.add(StageUse(key, 1.0, *FIRST), 5.0, half[:1])
    mixed.add(StageUse("a", 1.0, *FIRST), 5.0, half)
    assert [hits[0].tolist() for hits in own.hits(CACHE).values()] == [[0.5], [0.5]]
    assert mixed.hits(CACHE)["a"][0] == pytest.approx([1 / 1.5, 1 / 1.5])


def test_stages_are_used_where_parts_lie() -> None:
    workers = np.array([2, 2, 0])
    parts = Part(30, 0), Part(10, 1), Part(40, None), Part(20, 2)
    nodes, count = used_where(Table("t", parts, 1.0, 0.0), workers)
    assert nodes == pytest.approx([0.6, 0.4, 0.0])
    assert count.tolist() == [3, 3, 0]
    assert used_where(None, workers)[0].tolist() == [0.5, 0.5, 0.0]
