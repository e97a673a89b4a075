"""Branches that the plugin's predictor gets wrong, and the misses that those waited for."""

import random
from collections.abc import Iterable

import pytest
from played_caches import MIB, Counts, Played, Shape

CONDITIONAL, INDIRECT = 1, 2
LOOP, BEHIND, ELSEWHERE = 0x1000, 0x1010, 0x2000
SHAPE = Shape(2, 1, ((1, 4, 2), (1, 16, 4)), instructions=True)


def branches(played: Played, outcomes: Iterable[bool]) -> None:
    """One and the same branch, taken or not; each way leads back to it."""
    for taken in outcomes:
        played.block(0, LOOP, BEHIND, CONDITIONAL)
        played.block(0, ELSEWHERE if taken else BEHIND, BEHIND + 0x20)


def mispredicted(counts: Counts) -> int:
    return counts["mispredictions"].get((0, 0), 0) if "mispredictions" in counts else 0


@pytest.mark.parametrize("period", [1, 2, 3, 7])
def test_what_repeats_is_learned(period: int) -> None:
    """Taken each time but one in ``period``: the branches before it tell which."""
    played = Played(SHAPE)
    branches(played, (k % period != 0 for k in range(1000)))
    learned = mispredicted(played.counts())
    branches(played, (k % period != 0 for k in range(1000, 2000)))
    assert learned < 200
    assert mispredicted(played.counts()) == learned
    assert played.counts()["instructions"][0, 0] == 8000


@pytest.mark.parametrize(("part", "seed"), [(0.5, 1), (0.25, 2), (0.1, 3)])
def test_chance_is_not_learned(part: float, seed: int) -> None:
    """The less frequent way is the least that can be wrong; a fifth more comes with learning."""
    played, draws, n = Played(SHAPE), random.Random(seed), 20_000
    branches(played, (draws.random() < part for _ in range(n)))
    wrong = mispredicted(played.counts()) / n
    spread = 4 * (part * (1 - part) / n) ** 0.5
    assert part - spread < wrong < 1.2 * part + spread, f"seed {seed}"


def test_an_indirect_jump_goes_where_it_went_last() -> None:
    """Two places in turn: what came before tells which."""
    played = Played(SHAPE)

    def jump(to: int) -> None:
        played.block(0, LOOP, BEHIND, INDIRECT)
        played.block(0, to, to + 4)

    for k in range(200):
        jump(ELSEWHERE + 0x100 * (k % 2))
    learned = mispredicted(played.counts())
    for k in range(200):
        jump(ELSEWHERE + 0x100 * (k % 2))
    assert 0 < learned < 100
    assert mispredicted(played.counts()) == learned
    jump(0x9000)
    assert mispredicted(played.counts()) == learned + 1


def test_a_mispredicted_branch_waits_for_what_its_block_missed() -> None:
    """
    | block               | reads          | its branch   | serial |
    | loop, 100 ×         | nothing        | not taken    | 0      |
    | loop                | line 8, missed | taken, wrong | 1      |
    | loop                | line 8, found  | taken, wrong | 1      |
    | loop, then another  | line 64 in the other | taken, wrong | 1 |
    """
    played = Played(SHAPE)
    branches(played, [False] * 100)

    def reads_then_takes(address: int) -> int:
        played.block(0, LOOP, BEHIND, CONDITIONAL)
        played.read(0, address)
        played.block(0, ELSEWHERE, ELSEWHERE + 4)
        return played.counts().get("serial_misses", {}).get((0, 0), 0)

    before = mispredicted(played.counts())
    assert reads_then_takes(8 * 64) == 1
    assert reads_then_takes(8 * 64) == 1
    assert mispredicted(played.counts()) == before + 2
    played.read(0, MIB // 2)  # in the block behind the branch
    assert reads_then_takes(8 * 64) == 1
    assert mispredicted(played.counts()) == before + 3
    assert played.counts()["branch_misses"] == {(0, 0): 1}


def test_a_mispredicted_branch_waits_for_the_farthest_cache_that_its_block_read() -> None:
    """The first level has 4 sets of 2 lines, the second 16 of 4.

    | block | reads                              | its branch   | waits for |
    | loop  | line 8, found in the first         | taken, wrong | level 0   |
    | loop  | line 8, found in the second, and 9 | taken, wrong | level 1   |
    | loop  | nothing                            | taken, wrong | nothing   |
    | loop  | line 8                             | not taken    | nothing   |
    | loop  | line 100, missed                   | taken, wrong | memory    |
    """
    played = Played(SHAPE)
    branches(played, [False] * 100)

    def waits(*lines: int, taken: bool = True) -> dict[tuple[int, int], int]:
        played.block(0, LOOP, BEHIND, CONDITIONAL)
        played.read(0, *(64 * line for line in lines))
        played.block(0, ELSEWHERE if taken else BEHIND, ELSEWHERE + 4)
        return played.counts().get("waits", {})

    played.read(0, 64 * 8)
    assert waits(8) == {(0, 0): 1}
    played.read(0, *(64 * line for line in (12, 16, 20, 9)))  # 8 leaves the first level
    assert waits(8, 9) == {(0, 0): 1, (0, 1): 1}
    assert waits() == waits(8, taken=False) == {(0, 0): 1, (0, 1): 1}
    before = mispredicted(played.counts())
    assert waits(100) == {(0, 0): 1, (0, 1): 1}
    assert mispredicted(played.counts()) == before + 1
