"""What the plugin counts of the blocks that a processor executes, worked out by hand."""

import pytest
from played_caches import Played, Shape

KERNEL = 0xFFFF_FFFF_8100_0000
CONDITIONAL, SYSTEM_CALL = 1, 3


def shape(window: int | None = None) -> Shape:
    return Shape(1, 1, ((1, 4, 2), (1, 16, 4)), instructions=True, window=window)


def counted(played: Played, name: str) -> int:
    return played.counts().get(name, {}).get((0, 0), 0)


def test_system_calls_and_what_the_kernel_executes_for_them() -> None:
    """
    | block     | instructions | ends with   | the kernel runs for |
    | a program | 5            | SYSCALL     |                     |
    | kernel    | 7            |             | a call              |
    | kernel    | 9            |             | a call              |
    | a program | 5            |             |                     |
    | kernel    | 11           |             | an interruption     |
    | kernel    | 13           | SYSCALL (!) | an interruption     |
    | a program | 5            | SYSCALL     |                     |
    | a program | 5            |             | (it was interrupted before, and goes on) |
    """
    played = Played(shape())
    for place, instructions, ending in (
        (0x1000, 5, SYSTEM_CALL),
        (KERNEL, 7, 0),
        (KERNEL + 0x100, 9, 0),
        (0x1010, 5, 0),
        (KERNEL + 0x200, 11, 0),
        (KERNEL + 0x300, 13, SYSTEM_CALL),
        (0x1020, 5, SYSTEM_CALL),
        (0x1030, 5, 0),
    ):
        played.block(0, place, place + 0x10, ending, instructions=instructions)
    assert counted(played, "instructions") == 60
    assert counted(played, "calls") == 1
    assert counted(played, "call_instructions") == 16
    assert counted(played, "interruptions") == 1


def test_a_comparison_and_its_branch_are_one_operation() -> None:
    """What the kernel does for calls is told apart: its time is known otherwise."""
    played = Played(shape())
    played.block(0, 0x1000, 0x1010, CONDITIONAL, instructions=6, fused=True)
    played.block(0, 0x1000, 0x1010, SYSTEM_CALL, instructions=6)
    played.block(0, KERNEL, KERNEL + 0x10, CONDITIONAL, instructions=6, fused=True)
    assert counted(played, "instructions") == 18
    assert counted(played, "fused") == 1


@pytest.mark.parametrize(("window", "expected"), [(None, 61), (32, 59), (8, 24)])
def test_operations_from_miss_to_miss_as_far_as_a_core_looks(
    window: int | None, expected: int
) -> None:
    """A line is 64 B; lines in a row are streamed, and do not count.

    | operations | reads line | missed | since the last miss | with a window of 32; of 8 |
    | 10         | 0          | yes    | 10                  | 10; 8                     |
    | 5          | 0          | no     |                     |                           |
    | 12         | 100        | yes    | 17                  | 17; 8                     |
    | 3          | 101        | next   |                     |                           |
    | 32 - 1     | 50         | yes    | 34                  | 32; 8                     |
    |            | 200        | yes    | 0                   | 0; 0                      |
    """
    played = Played(shape(window))
    for operations, lines in ((10, [0]), (5, [0]), (12, [100]), (3, [101])):
        played.block(0, 0x1000, 0x1010, instructions=operations)
        played.read(0, *(64 * line for line in lines))
    played.block(0, 0x1000, 0x1010, CONDITIONAL, instructions=32, fused=True)
    played.read(0, 64 * 50, 64 * 200)
    assert counted(played, "looked_ahead") == expected
