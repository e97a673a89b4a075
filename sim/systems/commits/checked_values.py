"""Times that models count, and checks of parameters, which raise InputError: what was expected."""

from collections.abc import Sequence

from ....inputs import InputError

COUNT_MAX = 2**31 - 1
PS = 1e12  # a second
TIME_MAX_PS = 10**15  # a quarter of an hour: sums of many of them stay within 64 bits


def ps(seconds: float) -> int:
    """In whole picoseconds, as models count."""
    return round(seconds * PS)


def expect(fine: bool, what: str, found: str | None, expected: str) -> None:
    """Raises InputError where it is not fine."""
    if not fine:
        raise InputError(what, token=found, expected=expected)


def one_of(names: tuple[str, ...]) -> str:
    """In words."""
    return "one of " + ", ".join(names)


def at_least(least: int, **values: int) -> None:
    """Counts."""
    for name, value in values.items():
        expect(least <= value <= COUNT_MAX, name, str(value), f"at least {least}")


def up_to(most: int, what: str, value: int) -> None:
    """From 1 on."""
    expect(1 <= value <= most, what, str(value), f"from 1 to {most:,}")


def check_part(what: str, value: float) -> None:
    """Of a whole."""
    expect(0 <= value <= 1, what, f"{value:g}", "from 0 to 1")


def check_index(what: str, index: int, count: int) -> None:
    """Of one."""
    expect(0 <= index < count, what, str(index), f"an index from 0 to {count - 1}")


def indices(what: str, indices: Sequence[int], count: int) -> None:
    """Of each."""
    if indices and not 0 <= min(indices) <= max(indices) < count:
        for index in indices:  # which one?
            check_index(what, index, count)


def check_time(what: str, value: int) -> None:
    """Of picoseconds that models can count."""
    expect(0 <= value <= TIME_MAX_PS, what, str(value), "a time of at least 0 ps")
