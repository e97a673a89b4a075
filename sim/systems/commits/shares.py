"""Shares of machines and nodes, by group of those that are alike; how likely a number is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import comb

Counts = Mapping[int, float]
"""How likely a message has so many records carried."""


def add(sums: dict[int, float], key: int, amount: float) -> None:
    """Adds to the share of ``key``, if there is one yet."""
    sums[key] = sums.get(key, 0.0) + amount


def same(one: Mapping[int, float], other: Mapping[int, float]) -> float:
    """How likely both are the same one."""
    return sum(share * other.get(key, 0.0) for key, share in one.items())


def grouped(
    items: range, form: Callable[[int], tuple[float, ...]]
) -> tuple[list[int], list[list[int]]]:
    """The group of each, and the members of each group: those of the same form."""
    known: dict[tuple[float, ...], int] = {}
    exact: dict[tuple[float, ...], int] = {}  # before rounding, as most are equal
    group_of, groups = [], list[list[int]]()
    for item in items:
        values = form(item)
        group = exact.get(values)
        if group is None:
            key = tuple(round(value, 12) for value in values)
            group = exact[values] = known.setdefault(key, len(groups))
            if group == len(groups):
                groups.append([])
        group_of.append(group)
        groups[group].append(item)
    return group_of, groups


def by_group(shares: Mapping[int, float], group: Sequence[int]) -> dict[int, float]:
    """The shares of groups; ``group``: that of each item."""
    sums: dict[int, float] = {}
    for item, share in shares.items():
        add(sums, group[item], share)
    return sums


def binomial(count: int, chance: float) -> dict[int, float]:
    """How many of ``count`` come, each with this chance."""
    return {k: comb(count, k) * chance**k * (1.0 - chance) ** (count - k) for k in range(count + 1)}


def in_turn(count: int, servers: int) -> dict[int, float]:
    """Records that go round the servers: how many one of them gets."""
    least, more = divmod(count, servers)
    return {least: 1.0 - more / servers, **({least + 1: more / servers} if more else {})}


def sum_of(one: Counts, other: Counts) -> dict[int, float]:
    """The sum of two counts that are independent."""
    found: dict[int, float] = {}
    for (a, p), (b, q) in product(one.items(), other.items()):
        add(found, a + b, p * q)
    return found
