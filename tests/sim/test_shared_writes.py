"""Lines that several caches read and write: where each access finds them, against caches played."""

import numpy as np
import pytest

from numatwin.sim.systems.eris.index import Hits
from numatwin.sim.systems.eris.shared import _written_elsewhere


def played(caches: int, upserts: float, stay: float, accesses: int) -> tuple[float, float]:
    """How often a line is found in the own cache, and in any as its last writer left it.

    One line; each access is by a cache drawn evenly, at the times of a Poisson process of rate 1
    for each cache, and a write with probability ``upserts``. A cache keeps the line for ``stay``
    after an access, unless another one writes it.
    """
    random = np.random.default_rng(7)
    time, until = 0.0, np.full(caches, -1.0)
    writer, own, anywhere = -1, 0, 0
    for by, gap, write in zip(
        random.integers(caches, size=accesses),
        random.exponential(1.0 / caches, size=accesses),
        random.random(accesses) < upserts,
        strict=True,
    ):
        time += gap
        mine = until[by] > time
        own += mine
        # Modified by another one, which has not written for longer than it may stay.
        anywhere += mine or (writer not in (-1, by) and until[writer] > time)
        if write:
            until[:] = -1.0
            writer = by
        until[by] = time + stay
    return own / accesses, anywhere / accesses


@pytest.mark.parametrize("caches", [2, 4, 8])
@pytest.mark.parametrize("hit", [0.05, 0.4, 0.95])
def test_upserts_find_lines_in_the_cache_that_wrote_last(caches: int, hit: float) -> None:
    stay = -np.log1p(-hit)
    own, anywhere = played(caches, 1.0, stay, 200_000)
    alone = Hits(np.zeros((1, 1, 1)), np.full((1, 1, 1), hit))
    found = [
        _written_elsewhere(alone, 0, 1.0, (caches, caches), anywhere=where).last[0, 0, 0]
        for where in (False, True)
    ]
    assert found == pytest.approx([own, anywhere], rel=0.02, abs=0.004)


def test_a_share_of_upserts_takes_fewer_lines_away() -> None:
    own, _ = played(4, 0.25, -np.log1p(-0.6), 200_000)
    alone = Hits(np.zeros((1, 1, 1)), np.full((1, 1, 1), 0.6))
    found = _written_elsewhere(alone, 0, 0.25, (4, 4)).last[0, 0, 0]
    assert found == pytest.approx(own, rel=0.02)


def test_without_upserts_nothing_is_taken_away() -> None:
    alone = Hits(np.full((1, 1, 1), 0.2), np.full((1, 1, 1), 0.6))
    assert _written_elsewhere(alone, 0, 0.0, (4, 4)) is alone
