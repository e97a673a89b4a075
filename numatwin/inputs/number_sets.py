"""Sets of CPU and node numbers, as the kernel and hwloc write them."""

import re
from collections.abc import Iterable

from .grouping import stretches

NUMBER_MAX = 65_535  # more than any kernel is configured for

_RANGE = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?", re.ASCII)
_WORD = re.compile(r"(?:0x)?([0-9a-fA-F]{1,8})?", re.ASCII)


def parse_list(text: str) -> frozenset[int]:
    """The numbers in ``0-3,8``; an empty text is the empty set. Raises ValueError."""
    return frozenset(listed_numbers(text))


def listed_numbers(text: str) -> list[int]:
    """The same in the order of the text, and as often as they stand there."""
    numbers: list[int] = []
    for part in filter(None, text.replace("\n", "").split(",", NUMBER_MAX + 1)):
        match = _RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        # A text that tells the same numbers again and again has no end.
        if not first <= last <= NUMBER_MAX or len(numbers) + last - first > NUMBER_MAX:
            raise ValueError("expected numbers such as '0-3,8'")
        numbers += range(first, last + 1)
    return numbers


def parse_mask(text: str) -> frozenset[int]:
    """The numbers of the bits in ``00000001,ffffffff``: words of 32 bits, the highest first.

    hwloc's form is read too: words with ``0x``, or left out where they are zero. Raises ValueError.
    """
    numbers: set[int] = set()
    words = text.replace("\n", "").strip().split(",")
    if len(words) > (NUMBER_MAX + 1) // 32:
        raise ValueError(f"expected a mask of at most {NUMBER_MAX + 1} bits")
    for place, word in enumerate(reversed(words)):
        match = _WORD.fullmatch(word.strip())
        if match is None:
            raise ValueError("expected a mask of words of 32 bits, such as '0000000f,ffffffff'")
        bits = int(match[1] or "0", 16)
        numbers.update(32 * place + bit for bit in range(32) if bits >> bit & 1)
    return frozenset(numbers)


def format_list(numbers: Iterable[int]) -> str:
    """``0-3,8``."""
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in stretches(numbers))
